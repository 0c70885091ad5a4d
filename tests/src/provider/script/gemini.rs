//! Google's own API, as the simulated provider speaks it.

use bytes::Bytes;
use serde_json::json;

use super::{Asked, Wire, answer_id};

pub(super) const WIRE: Wire = Wire {
    id: "resp",
    preamble,
    delta,
    finish,
    error_frame: || format!("data: {}\r\n\r\n", error_body(503).replace('\n', "")),
    whole,
    error_body,
};

/// A count is never a stream.
pub(super) const COUNT: Wire =
    Wire { whole: |_, _| Bytes::from_static(b"{\n  \"totalTokens\": 14\n}\n"), ..WIRE };

/// Nor are embeddings.
pub(super) const EMBED: Wire = Wire {
    whole: |asked, _| {
        let one = "{\n  \"values\": [0.5, -0.25]\n}";
        let is_batch = asked.path.contains(":batchEmbedContents");
        Bytes::from(if is_batch {
            format!("{{\"embeddings\": [{one}]}}\n")
        } else {
            format!("{{\"embedding\": {one}}}\n")
        })
    },
    ..WIRE
};

/// The model in a path and whether it asks for a stream; `None` where it is not Google's.
pub(super) fn read_path(path: &str) -> Option<(&str, bool)> {
    let path = path.split('?').next().unwrap_or_default();
    let (model, verb) = path.split_once("/models/")?.1.rsplit_once(':')?;
    Some((model, verb == "streamGenerateContent"))
}

fn error_body(status: u16) -> String {
    let (name, message) = match status {
        400 => ("INVALID_ARGUMENT", "the temperature is out of range"),
        401 => ("UNAUTHENTICATED", "API keys are not supported by this API."),
        403 => ("PERMISSION_DENIED", "your API key may not use this"),
        404 => ("NOT_FOUND", "models/x is not found for API version v1beta"),
        429 => ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        503 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        504 => ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
        _ => ("INTERNAL", "An internal error has occurred."),
    };
    // As Google lays it out.
    format!(
        "{{\n  \"error\": {{\n    \"code\": {status},\n    \"message\": {},\n    \"status\": \"{name}\"\n  }}\n}}\n",
        json!(message)
    )
}

/// A frame with spaces and an unknown field in it, so that a gateway that writes it anew is noticed.
fn frame(asked: &Asked, members: &str) -> String {
    format!(
        "data: {{{members},  \"modelVersion\": {},\"responseId\": \"{}\",\"xServedBy\": null}}\r\n\r\n",
        json!(asked.model),
        answer_id(&asked.path, &asked.provider, asked.number),
    )
}

fn preamble(asked: &Asked) -> String {
    frame(asked, "\"usageMetadata\": {\"promptTokenCount\": 3}")
}

fn delta(asked: &Asked, text: &str) -> String {
    let text = json!(text);
    let content = format!("{{\"parts\": [{{\"text\": {text}}}],\"role\": \"model\"}}");
    frame(asked, &format!("\"candidates\": [{{\"content\": {content},\"index\": 0}}]"))
}

fn finish(asked: &Asked) -> String {
    last_frame(asked, "{\"text\": \"\"}")
}

/// The last frame, with this part in it.
pub(super) fn last_frame(asked: &Asked, part: &str) -> String {
    let usage =
        "\"usageMetadata\": {\"promptTokenCount\": 3,\"candidatesTokenCount\": 6,\"totalTokenCount\": 9}";
    let content = format!("\"content\": {{\"parts\": [{part}],\"role\": \"model\"}}");
    frame(asked, &format!("\"candidates\": [{{{content},\"finishReason\": \"STOP\",\"index\": 0}}],{usage}"))
}

fn whole(asked: &Asked, text: &str) -> Bytes {
    let body = format!(
        "{{\n  \"candidates\": [\n    {{\n      \"content\": {{\"parts\": [{{\"text\": {}}}], \"role\": \"model\"}},\n      \
         \"finishReason\": \"STOP\",\n      \"index\": 0\n    }}\n  ],\n  \"xServedBy\": null,\n  \
         \"usageMetadata\": {{\"promptTokenCount\": 3, \"candidatesTokenCount\": 6, \"totalTokenCount\": 9}},\n  \
         \"modelVersion\": {},\n  \"responseId\": \"{}\"\n}}\n",
        json!(text),
        json!(asked.model),
        answer_id(&asked.path, &asked.provider, asked.number),
    );
    Bytes::from(body)
}
