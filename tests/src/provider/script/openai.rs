//! What OpenAI has beside chat, and rankings, as the simulated provider sends them. What has no place for a text
//! carries it in a member that the SDKs show.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, Wire, answer_id, chat};

pub(super) const RESPONSES: Wire = Wire {
    id: "resp",
    preamble: |asked| {
        let response = response(asked, "in_progress", json!([]));
        let opened = json!({"output_index": 0, "item": message("in_progress", json!([]))});
        event("response.created", 0, &json!({"response": response}))
            + &event("response.in_progress", 1, &json!({"response": response}))
            + &event("response.output_item.added", 2, &opened)
            + &event("response.content_part.added", 3, &in_part(&json!({"part": part("")})))
    },
    delta: |_, text| {
        event("response.output_text.delta", 4, &in_part(&json!({"delta": text, "logprobs": []})))
    },
    finish: |asked| {
        let text = super::healthy_text(asked);
        let done = message("completed", json!([part(&text)]));
        let completed = response(asked, "completed", json!([done]));
        event("response.output_text.done", 96, &in_part(&json!({"text": text, "logprobs": []})))
            + &event("response.content_part.done", 97, &in_part(&json!({"part": part(&text)})))
            + &event("response.output_item.done", 98, &json!({"output_index": 0, "item": done}))
            + &event("response.completed", 99, &json!({"response": completed}))
    },
    error_frame: || {
        let error =
            json!({"type": "server_error", "code": "server_error", "message": "backend gone", "param": null});
        event("error", 4, &json!({"error": error}))
    },
    whole: |asked, text| {
        pretty(&response(asked, "completed", json!([message("completed", json!([part(text)]))])))
    },
    error_body: chat::error_body,
};

pub(super) const COMPLETIONS: Wire = Wire {
    id: "cmpl",
    // Nothing comes before the first text.
    preamble: |_| String::new(),
    delta: |asked, text| data(&completion(asked, text, Value::Null)),
    finish: |asked| data(&completion(asked, "", json!("stop"))) + "data: [DONE]\n\n",
    whole: |asked, text| pretty(&completion(asked, text, json!("stop"))),
    ..chat::WIRE
};

pub(super) const IMAGES: Wire = Wire {
    id: "img",
    preamble: |_| String::new(),
    delta: |_, text| {
        event(
            "image_generation.partial_image",
            0,
            &image(&json!({"b64_json": text, "partial_image_index": 0})),
        )
    },
    finish: |asked| {
        event("image_generation.completed", 0, &image(&json!({"b64_json": super::healthy_text(asked)})))
    },
    error_frame: RESPONSES.error_frame,
    whole: |_, text| pretty(&json!({"created": 1_700_000_000, "data": [{"b64_json": text}]})),
    error_body: chat::error_body,
};

pub(super) const EMBEDDINGS: Wire = Wire {
    id: "emb",
    whole: |asked, text| {
        let item = json!({"object": "embedding", "index": 0, "embedding": [0.5, asked.number]});
        pretty(
            &json!({"object": "list", "data": [item], "model": text, "usage": {"prompt_tokens": 3, "total_tokens": 3}}),
        )
    },
    ..chat::WIRE
};

pub(super) const MODERATIONS: Wire = Wire {
    id: "modr",
    whole: |asked, text| {
        let id = answer_id(&asked.path, &asked.provider, asked.number);
        let result = json!({"flagged": false, "categories": {}, "category_scores": {}, "category_applied_input_types": {}});
        pretty(&json!({"id": id, "model": text, "results": [result]}))
    },
    ..chat::WIRE
};

pub(super) const VIDEOS: Wire =
    Wire { id: "video", whole: |asked, _| pretty(&video(asked, "queued")), ..chat::WIRE };

pub(super) const RERANK: Wire = Wire {
    id: "rerank",
    whole: |asked, text| {
        let id = answer_id(&asked.path, &asked.provider, asked.number);
        pretty(&json!({"id": id, "results": [{"index": 1, "relevance_score": 0.5, "document": text}]}))
    },
    ..chat::WIRE
};

pub(super) fn message(status: &str, content: Value) -> Value {
    json!({"type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": content})
}

pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Members of an event about the one part of the one message.
fn in_part(members: &Value) -> Value {
    merged(json!({"item_id": "msg_1", "output_index": 0, "content_index": 0}), members)
}

/// An event with spaces in it, so that a gateway that writes it anew is noticed.
pub(super) fn event(kind: &str, number: u32, members: &Value) -> String {
    let members = members.to_string();
    let rest = members.strip_prefix('{').unwrap_or(&members);
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\",  \"sequence_number\":{number}, {rest}\n\n")
}

pub(super) fn data(chunk: &Value) -> String {
    format!("data:  {chunk}\n\n")
}

/// With line breaks, for the same reason.
pub(super) fn pretty(answer: &Value) -> Bytes {
    format!("{answer:#}\n").into()
}

/// A stored response, finished.
pub(in crate::provider) fn completed(asked: &Asked) -> Value {
    let text = super::healthy_text(asked);
    response(asked, "completed", json!([message("completed", json!([part(&text)]))]))
}

/// The stream that a response was, from its first event.
pub(in crate::provider) fn events(asked: &Asked) -> String {
    let delta = (RESPONSES.delta)(asked, &super::healthy_text(asked));
    (RESPONSES.preamble)(asked) + &delta + &(RESPONSES.finish)(asked)
}

/// A video in some state.
pub(in crate::provider) fn video(asked: &Asked, status: &str) -> Value {
    json!({
        "id": asked.answer_id(), "object": "video", "created_at": 1_700_000_000, "status": status,
        "model": asked.model, "progress": if status == "completed" { 100 } else { 0 },
        "seconds": "4", "size": "720x1280", "error": null, "x_served_by": asked.provider,
    })
}

pub(in crate::provider) fn response(asked: &Asked, status: &str, output: Value) -> Value {
    json!({
        "id": answer_id(&asked.path, &asked.provider, asked.number),
        "object": "response", "created_at": 1_700_000_000, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "model": asked.model, "output": output,
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "metadata": {},
        "temperature": 1.0, "top_p": 1.0, "x_served_by": asked.provider,
        "usage": {
            "input_tokens": 3, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 6, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 9,
        },
    })
}

fn completion(asked: &Asked, text: &str, finish: Value) -> Value {
    json!({
        "id": answer_id(&asked.path, &asked.provider, asked.number),
        "object": "text_completion", "created": 1_700_000_000, "model": asked.model,
        "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}],
    })
}

pub(super) fn image(members: &Value) -> Value {
    let image = json!({
        "created_at": 1_700_000_000, "background": "opaque", "output_format": "png", "quality": "low",
        "size": "1024x1024",
        "usage": {"input_tokens": 3, "output_tokens": 6, "total_tokens": 9,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": 3}},
    });
    merged(image, members)
}

fn merged(mut object: Value, members: &Value) -> Value {
    if let (Some(object), Some(members)) = (object.as_object_mut(), members.as_object()) {
        object.extend(members.clone());
    }
    object
}
