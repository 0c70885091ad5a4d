//! Audio, image edits and the forms that ask for them, as the simulated provider reads and sends them.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::openai::{IMAGES, data, event, image, pretty};
use super::{Wire, chat, healthy_text};

pub(super) const SPEECH: Wire = Wire {
    id: "speech",
    preamble: |_| data(&json!({"type": "speech.audio.delta", "audio": ""})),
    delta: |_, text| data(&json!({"type": "speech.audio.delta", "audio": text})),
    finish: |_| data(&json!({"type": "speech.audio.done", "usage": usage()})),
    // Every byte that there is, so that whoever takes it for text is noticed.
    whole: |_, text| {
        b"ID3\x04\r\n\r\n".iter().copied().chain(text.bytes()).chain(0..=255).collect::<Vec<u8>>().into()
    },
    ..chat::WIRE
};

pub(super) const TRANSCRIPTS: Wire = Wire {
    id: "transcript",
    preamble: |_| data(&json!({"type": "transcript.text.delta", "delta": ""})),
    delta: |_, text| data(&json!({"type": "transcript.text.delta", "delta": text, "logprobs": []})),
    finish: |asked| {
        data(
            &json!({"type": "transcript.text.done", "text": healthy_text(asked), "logprobs": [], "usage": usage()}),
        )
    },
    whole: |_, text| pretty(&json!({"text": text, "usage": usage()})),
    ..chat::WIRE
};

pub(super) const EDITS: Wire = Wire {
    id: "edit",
    delta: |_, text| {
        event("image_edit.partial_image", 0, &image(&json!({"b64_json": text, "partial_image_index": 0})))
    },
    finish: |asked| event("image_edit.completed", 0, &image(&json!({"b64_json": healthy_text(asked)}))),
    ..IMAGES
};

fn usage() -> Value {
    json!({"type": "tokens", "input_tokens": 3, "input_token_details": {"audio_tokens": 3, "text_tokens": 0},
        "output_tokens": 6, "total_tokens": 9})
}

/// The fields of a form, its files left out; `None` where the body is none.
pub(super) fn form(body: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(body);
    let (delimiter, _) = text.strip_prefix("--").and_then(|rest| rest.split_once("\r\n"))?;
    let mut fields = Map::new();
    for part in text.split(&format!("--{delimiter}")) {
        let Some((head, value)) = part.split_once("\r\n\r\n") else { continue };
        let name = head.split("name=\"").nth(1).and_then(|rest| rest.split('"').next());
        if let Some(name) = name.filter(|_| !head.contains("filename")) {
            fields.insert(name.to_owned(), value.strip_suffix("\r\n").unwrap_or(value).into());
        }
    }
    Some(fields.into())
}

/// What was sent as a file of a form.
pub(crate) fn file(body: &Bytes) -> Option<Bytes> {
    let find = |from: usize, words: &[u8]| {
        let rest = body.get(from..)?;
        rest.windows(words.len()).position(|window| window == words).map(|at| from + at)
    };
    let start = find(find(0, b"filename=")?, b"\r\n\r\n")? + 4;
    let line = find(0, b"\r\n")?;
    let delimiter = [b"\r\n", body.get(..line)?].concat();
    Some(body.slice(start..find(start, &delimiter)?))
}
