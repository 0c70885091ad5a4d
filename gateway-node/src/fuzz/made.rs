//! The id of what an answer makes: it is found in one piece if and only if it is found in many, and it stands there.

use serde_json::Value;

use super::{cut, head};
use crate::dialect::made::{InDocument, InStream, in_document};

/// Less than is looked through before it is given up, which depends on the reads.
const LOOKED_AT: usize = 60_000;

pub(super) fn run(input: &[u8]) {
    let Some(([a, b, is_stream], body)) = head(input) else { return };
    let body = &body[..body.len().min(LOOKED_AT)];
    let seed = u32::from_le_bytes([a, b, 9, 5]);
    let look = |chunks: &[&[u8]]| {
        let (mut stream, mut document) = (InStream::default(), InDocument::default());
        chunks.iter().find_map(|chunk| {
            if is_stream % 2 == 0 { stream.on_bytes(chunk) } else { document.on_bytes(chunk) }
        })
    };
    let (one, many) = (look(&[body]), look(&cut(body, seed)));
    assert_eq!(one.is_some(), many.is_some(), "{one:?} {many:?}");
    for id in [one, many].into_iter().flatten() {
        assert!(!id.is_empty());
        let raw = serde_json::to_string(&id).unwrap();
        // Escapes may be written in several ways.
        let is_there = memchr::memmem::find(body, raw.as_bytes()).is_some() || body.contains(&b'\\');
        assert!(is_there, "{id} stands nowhere");
    }
    if is_stream % 2 != 0
        && let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(body)
        && let Some(id) = members.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
    {
        assert_eq!(in_document(body).as_deref(), Some(id), "a parser finds another one");
    }
}
