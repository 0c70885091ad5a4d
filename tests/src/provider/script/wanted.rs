//! What a good answer is made of: text, an object of a given shape, or a call of a tool that was offered. How a
//! call looks in each wire format that has tools.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, answer_id, gemini, messages, openai};

/// What a caller asks the model for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Plain text, or what the operation has instead.
    #[default]
    Text,
    /// An object with the text in this member.
    Object {
        /// The first member of the schema that was sent.
        member: String,
    },
    /// A call of a tool, with the text in this member of its arguments.
    Call {
        /// The first tool that was offered.
        tool: String,
        /// The first member of its arguments.
        member: String,
    },
}

/// Where a body has the result of a tool: then the answer is text.
const RESULTS: [&str; 4] =
    ["\"role\":\"tool\"", "\"tool_result\"", "\"function_call_output\"", "\"functionResponse\""];

impl Wanted {
    /// Reads it from where the wire formats say so.
    pub fn of(body: &Value) -> Self {
        let tool = &body["tools"][0];
        let declared = &tool["functionDeclarations"][0];
        let calls = [&tool["function"], tool, declared]
            .into_iter()
            .find_map(|tool| Some((tool["name"].as_str()?, tool)));
        if let Some((name, tool)) = calls {
            let sent = body.to_string();
            if RESULTS.iter().any(|result| sent.contains(result)) {
                return Wanted::Text;
            }
            // Google reads both spellings of a member.
            let keys = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"];
            let schemas = keys.map(|key| &tool[key]);
            let member = schemas.into_iter().find_map(first_member).unwrap_or_default();
            return Wanted::Call { tool: name.to_owned(), member };
        }
        let config = &body["generationConfig"];
        let schemas = [
            &body["response_format"]["json_schema"]["schema"],
            &body["text"]["format"]["schema"],
            &body["output_config"]["format"]["schema"],
            &body["output_format"]["schema"],
            &config["responseSchema"],
            &config["responseJsonSchema"],
        ];
        match schemas.into_iter().find_map(first_member) {
            Some(member) => Wanted::Object { member },
            None => Wanted::Text,
        }
    }

    /// The member that carries the text.
    pub(super) fn member(&self) -> Option<&str> {
        match self {
            Wanted::Text => None,
            Wanted::Object { member } | Wanted::Call { member, .. } => Some(member),
        }
    }
}

fn first_member(schema: &Value) -> Option<String> {
    schema["properties"].as_object()?.keys().next().cloned()
}

const CALL_ID: &str = "call_1";

/// The tool that is called in an answer to this call.
fn called(asked: &Asked) -> Option<&str> {
    match &asked.wanted {
        Wanted::Call { tool, .. } => Some(tool),
        _ => None,
    }
}

/// A whole answer that calls a tool; `None` where none was asked for or the operation has none.
pub(super) fn whole_call(asked: &Asked, arguments: &str) -> Option<Bytes> {
    let name = called(asked)?;
    let id = answer_id(&asked.path, &asked.provider, asked.number);
    let parsed = || serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let answer = match path(asked) {
        path if path.ends_with("/chat/completions") => json!({
            "id": id, "object": "chat.completion", "created": 1_700_000_000, "model": asked.model,
            "choices": [{"index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": null, "refusal": null, "tool_calls": [
                    {"id": CALL_ID, "type": "function", "function": {"name": name, "arguments": arguments}},
                ],
            }}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9},
        }),
        path if path.ends_with("/responses") => {
            openai::response(asked, "completed", json!([function_call(name, arguments, "completed")]))
        }
        path if path.ends_with("/messages") => json!({
            "id": id, "type": "message", "role": "assistant", "model": asked.model,
            "content": [{"type": "tool_use", "id": CALL_ID, "name": name, "input": parsed()}],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 6},
        }),
        path if gemini::read_path(path).is_some() => json!({
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                {"functionCall": {"name": name, "args": parsed()}},
            ]}}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 6, "totalTokenCount": 9},
            "modelVersion": asked.model, "responseId": id,
        }),
        _ => return None,
    };
    Some(format!("{answer:#}\n").into())
}

/// The frames of a call behind what comes first in a stream, to the end; `None` as above.
pub(super) fn call_frames(asked: &Asked, arguments: &[String]) -> Option<Vec<String>> {
    let name = called(asked)?;
    let frames = match path(asked) {
        path if path.ends_with("/chat/completions") => chat_frames(asked, name, arguments),
        path if path.ends_with("/responses") => responses_frames(asked, name, arguments),
        path if path.ends_with("/messages") => messages_frames(asked, name, arguments),
        // Google sends a call in one piece.
        path if gemini::read_path(path).is_some() => {
            let args = arguments.concat();
            let part = format!("{{\"functionCall\": {{\"name\": {}, \"args\": {args}}}}}", json!(name));
            vec![gemini::last_frame(asked, &part)]
        }
        _ => return None,
    };
    Some(frames)
}

fn chat_frames(asked: &Asked, name: &str, arguments: &[String]) -> Vec<String> {
    let frame = |delta: Value, finish: Value| {
        let chunk = json!({
            "id": answer_id(&asked.path, &asked.provider, asked.number), "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": asked.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        });
        format!("data: {chunk}\n\n")
    };
    let call = |call: Value| frame(json!({"tool_calls": [call]}), Value::Null);
    let opened =
        json!({"index": 0, "id": CALL_ID, "type": "function", "function": {"name": name, "arguments": ""}});
    let mut frames = vec![call(opened)];
    frames.extend(arguments.iter().map(|piece| call(json!({"index": 0, "function": {"arguments": piece}}))));
    frames.push(frame(json!({}), json!("tool_calls")) + "data: [DONE]\n\n");
    frames
}

fn function_call(name: &str, arguments: &str, status: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": CALL_ID, "name": name, "arguments": arguments, "status": status})
}

/// Behind the message, which stays empty.
fn responses_frames(asked: &Asked, name: &str, arguments: &[String]) -> Vec<String> {
    let event = |kind: &str, members: Value| openai::event(kind, 5, &members);
    let whole = arguments.concat();
    let done = function_call(name, &whole, "completed");
    let message = openai::message("completed", json!([openai::part("")]));
    let completed = openai::response(asked, "completed", json!([message, done]));
    let opened = json!({"output_index": 1, "item": function_call(name, "", "in_progress")});
    let mut frames = vec![
        event("response.output_item.done", json!({"output_index": 0, "item": message})),
        event("response.output_item.added", opened),
    ];
    for piece in arguments {
        let members = json!({"item_id": "fc_1", "output_index": 1, "delta": piece});
        frames.push(event("response.function_call_arguments.delta", members));
    }
    let members = json!({"item_id": "fc_1", "output_index": 1, "name": name, "arguments": whole});
    frames.push(event("response.function_call_arguments.done", members));
    frames.push(event("response.output_item.done", json!({"output_index": 1, "item": done})));
    frames.push(event("response.completed", json!({"response": completed})));
    frames
}

/// Behind the text, which stays empty.
fn messages_frames(asked: &Asked, name: &str, arguments: &[String]) -> Vec<String> {
    let event = |kind: &str, rest: &str| messages::event(asked, kind, rest);
    let name = json!(name);
    let opened = format!(
        ",\"index\":1,\"content_block\":{{\"type\":\"tool_use\",\"id\":\"{CALL_ID}\",\"name\":{name},\"input\":{{}}}}"
    );
    let mut frames = vec![event("content_block_stop", ",\"index\":0"), event("content_block_start", &opened)];
    for piece in arguments {
        let delta = format!(
            ",\"index\":1,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{}}}",
            json!(piece)
        );
        frames.push(event("content_block_delta", &delta));
    }
    let last =
        ",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":6}";
    frames.extend([
        event("content_block_stop", ",\"index\":1"),
        event("message_delta", last),
        event("message_stop", ""),
    ]);
    frames
}

fn path(asked: &Asked) -> &str {
    asked.path.split('?').next().unwrap_or_default()
}
