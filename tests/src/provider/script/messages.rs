//! Messages of Anthropic and their count of tokens, as the simulated provider sends them.

use bytes::Bytes;
use serde_json::json;

use super::{Asked, Wire, answer_id};

pub(super) const WIRE: Wire = Wire {
    id: "msg",
    preamble,
    delta,
    finish,
    error_frame: || format!("event: error\ndata: {}\n\n", error_body(529)),
    whole,
    error_body,
};

/// A count is never a stream.
pub(super) const COUNT: Wire =
    Wire { whole: |_, _| Bytes::from_static(b"{ \"input_tokens\": 14 }\n"), ..WIRE };

fn error_body(status: u16) -> String {
    let (kind, message) = match status {
        400 => ("invalid_request_error", "temperature: the temperature is out of range"),
        401 => ("authentication_error", "invalid x-api-key"),
        402 => ("billing_error", "there is a problem with the billing of your account"),
        403 => ("permission_error", "your API key may not use this"),
        404 => ("not_found_error", "model: no such model"),
        429 => ("rate_limit_error", "this request would exceed your organization's rate limit"),
        503 | 529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_upstream"})
        .to_string()
}

/// An event with spaces and an unknown field in it, so that a gateway that writes it anew is noticed. Real ones pad
/// their JSON with blanks too.
pub(super) fn event(asked: &Asked, kind: &str, rest: &str) -> String {
    format!(
        "event: {kind}\ndata: {{\"type\":\"{kind}\",  \"x_served_by\":\"{}\"{rest}     }}\n\n",
        asked.provider
    )
}

fn preamble(asked: &Asked) -> String {
    let message = format!(
        ",\"message\":{{\"id\": \"{}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":{},\"content\":[],\
         \"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":3,\"output_tokens\":1}}}}",
        answer_id(&asked.path, &asked.provider, asked.number),
        json!(asked.model),
    );
    let block = ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}";
    event(asked, "message_start", &message)
        + &event(asked, "ping", "")
        + &event(asked, "content_block_start", block)
}

fn delta(asked: &Asked, text: &str) -> String {
    let delta = format!(",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{}}}", json!(text));
    event(asked, "content_block_delta", &delta)
}

fn finish(asked: &Asked) -> String {
    let delta =
        ",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":6}";
    event(asked, "content_block_stop", ",\"index\":0")
        + &event(asked, "message_delta", delta)
        + &event(asked, "message_stop", "")
}

fn whole(asked: &Asked, text: &str) -> Bytes {
    let body = format!(
        "{{\n  \"id\": \"{}\",\n  \"type\": \"message\",\n  \"role\": \"assistant\",\n  \"model\": {},\n  \
         \"x_served_by\": \"{}\",\n  \"content\": [{{\"type\": \"text\", \"text\": {}}}],\n  \
         \"stop_reason\": \"end_turn\", \"stop_sequence\": null,\n  \
         \"usage\": {{\"input_tokens\": 3, \"output_tokens\": 6}}\n}}\n",
        answer_id(&asked.path, &asked.provider, asked.number),
        json!(asked.model),
        asked.provider,
        json!(text),
    );
    Bytes::from(body)
}
