//! The splitter of server-sent events against a naive one that has the whole body at once.

use common::limits::GATE_EVENT_BYTES_MAX;

use super::{cut, head};
use crate::dialect::sse::{Event, Splitter};

/// An event as it was told, with its end counted from the start of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    name: Option<Vec<u8>>,
    data: Vec<u8>,
    end: usize,
    is_opaque: bool,
}

pub(super) fn run(input: &[u8]) {
    let Some(([a, b, c, pad], body)) = head(input) else { return };
    let seed = u32::from_le_bytes([a, b, c, 0]);
    let padded;
    let body = if pad >= 0xE0 {
        padded = super::gate::pad(body, pad, seed);
        padded.as_slice()
    } else {
        body
    };
    let (expected, is_mid_event) = naive(body);
    // One read now and then, else the cuts that the input names.
    let chunks = if seed == 0 { vec![body] } else { cut(body, seed) };
    let (told, is_mid) = split(body, &chunks);
    assert_eq!(told, expected);
    assert_eq!(is_mid, is_mid_event);
}

fn split(body: &[u8], chunks: &[&[u8]]) -> (Vec<Told>, bool) {
    let mut splitter = Splitter::new();
    let mut told = Vec::new();
    let mut before = 0;
    for chunk in chunks {
        splitter.push(chunk, &mut |event| {
            // The LF of a CRLF belongs to the event, but may come with the next read.
            let end = before + event.end;
            let end =
                if body[..end].ends_with(b"\r") && body[end..].starts_with(b"\n") { end + 1 } else { end };
            told.push(as_told(&event, end));
        });
        before += chunk.len();
    }
    let is_mid = splitter.is_mid_event();
    splitter.finish(&mut |event| told.push(as_told(&event, body.len())));
    assert_eq!(splitter.is_mid_event(), is_mid, "an end closes no event");
    splitter.finish(&mut |_| panic!("an end is told once"));
    (told, is_mid)
}

fn as_told(event: &Event<'_>, end: usize) -> Told {
    let name = event.name.map(<[u8]>::to_vec);
    Told { name, data: event.data.to_vec(), end, is_opaque: event.is_opaque }
}

/// Line by line, as the standard has it, with our limit on one event.
fn naive(body: &[u8]) -> (Vec<Told>, bool) {
    let mut at = if body.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut told = Vec::new();
    let (mut name, mut data, mut size) = (None, None::<Vec<u8>>, 0);
    let mut report = |name: &mut Option<Vec<u8>>, data: &mut Option<Vec<u8>>, size: &mut usize, end| {
        let is_opaque = *size > GATE_EVENT_BYTES_MAX;
        let data = if is_opaque { data.take().map(|_| Vec::new()).or(Some(Vec::new())) } else { data.take() };
        if let Some(data) = data {
            told.push(Told { name: name.take(), data, end, is_opaque });
        }
        (*name, *size) = (None, 0);
    };
    // A BOM that is not whole yet is part of no line.
    let is_half_bom = body.len() < 3 && b"\xEF\xBB\xBF".starts_with(body);
    while at < body.len() && !is_half_bom {
        let rest = &body[at..];
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let line = &rest[..length];
        let newline = match &rest[length..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        at += length + newline;
        size += length + newline.min(1);
        if line.is_empty() {
            report(&mut name, &mut data, &mut size, at);
            continue;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (field, &mut data) {
            (b"data", Some(data)) => data.extend([b"\n", value].concat()),
            (b"data", None) => data = Some(value.to_vec()),
            (b"event", _) if size <= GATE_EVENT_BYTES_MAX => name = Some(value.to_vec()),
            _ => {}
        }
    }
    let is_mid_event = size > 0;
    if is_mid_event && size <= GATE_EVENT_BYTES_MAX {
        report(&mut name, &mut data, &mut size, body.len());
    }
    (told, is_mid_event)
}
