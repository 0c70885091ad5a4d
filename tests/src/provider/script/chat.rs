//! Chat completions, as the simulated provider sends them.

use bytes::Bytes;
use serde_json::json;

use super::{Asked, Wire, answer_id};

pub(super) const WIRE: Wire = Wire {
    id: "chatcmpl",
    preamble: role_frame,
    delta: delta_frame,
    finish: |asked| finish_frame(asked) + "data: [DONE]\n\n",
    error_frame: || format!("data: {}\n\ndata: [DONE]\n\n", json!({"error": error_object()})),
    whole,
    error_body,
};

pub(super) fn error_body(status: u16) -> String {
    let (kind, code, message) = match status {
        400 => ("invalid_request_error", "invalid_value", "the temperature is out of range"),
        401 => ("invalid_request_error", "invalid_api_key", "incorrect API key provided: sk-up…"),
        402 => ("insufficient_quota", "insufficient_quota", "you exceeded your current quota"),
        403 => ("permission_error", "unsupported_country", "not in this country"),
        404 => ("invalid_request_error", "model_not_found", "the model does not exist"),
        429 => ("rate_limit_error", "rate_limit_exceeded", "too many requests"),
        502 => return json!({"error": error_object()}).to_string(),
        _ => ("server_error", "server_error", "the upstream is in trouble"),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
}

fn error_object() -> serde_json::Value {
    json!({"message": "backend gone", "type": "server_error", "param": null, "code": 502})
}

/// A frame with spaces and an unknown field in it, so that a gateway that writes it anew is noticed.
fn frame(asked: &Asked, delta: &serde_json::Value, finish: &str) -> String {
    format!(
        "data: {{\"id\": \"{}\",  \"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":{},\
         \"x_served_by\":\"{}\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\
         \"finish_reason\":{finish}}}]}}\n\n",
        answer_id(&asked.path, &asked.provider, asked.number),
        json!(asked.model),
        asked.provider,
    )
}

fn role_frame(asked: &Asked) -> String {
    frame(asked, &json!({"role": "assistant", "content": "", "refusal": null}), "null")
}

fn delta_frame(asked: &Asked, content: &str) -> String {
    frame(asked, &json!({"content": content}), "null")
}

fn finish_frame(asked: &Asked) -> String {
    frame(asked, &json!({}), "\"stop\"")
}

fn whole(asked: &Asked, content: &str) -> Bytes {
    let id = answer_id(&asked.path, &asked.provider, asked.number);
    let body = format!(
        "{{\n  \"id\": \"{id}\",\n  \"object\": \"chat.completion\",\n  \"created\": 1700000000,\n  \"model\": {},\n  \
         \"x_served_by\": \"{}\",\n  \"choices\": [{{\"index\": 0, \"message\": {{\"role\": \"assistant\", \
         \"content\": {}, \"refusal\": null}}, \"logprobs\": null, \"finish_reason\": \"stop\"}}],\n  \
         \"usage\": {{\"prompt_tokens\": 3, \"completion_tokens\": 6, \"total_tokens\": 9}}\n}}\n",
        json!(asked.model),
        asked.provider,
        json!(content),
    );
    Bytes::from(body)
}
