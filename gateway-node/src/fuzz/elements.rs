//! The splitter of arrays: where the body is a JSON array it tells what a parser sees, and the reads change nothing.

use serde_json::value::RawValue;

use super::{cut, head};
use crate::dialect::elements::Splitter;

pub(super) fn run(input: &[u8]) {
    let Some(([a, b, c, _], body)) = head(input) else { return };
    let seed = u32::from_le_bytes([a, b, c, 0]);
    let told = split(&[body]);
    assert_eq!(split(&cut(body, seed)), told);
    let parsed =
        std::str::from_utf8(body).ok().and_then(|text| serde_json::from_str::<Vec<&RawValue>>(text).ok());
    if let Some(elements) = parsed {
        let expected: Vec<_> = elements.iter().map(|raw| raw.get().as_bytes().to_vec()).collect();
        let trimmed: Vec<_> = told.0.iter().map(|element| element.trim_ascii().to_vec()).collect();
        assert_eq!((trimmed, told.1), (expected, true));
    }
}

/// The elements, and whether the array was closed.
fn split(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut splitter = Splitter::new();
    let mut told = Vec::new();
    for chunk in chunks {
        let mut last = 0;
        splitter.push(chunk, &mut |event| {
            assert!(last <= event.end && event.end <= chunk.len());
            last = event.end;
            told.push(event.data.to_vec());
        });
    }
    splitter.finish(&mut |event| told.push(event.data.to_vec()));
    (told, splitter.is_closed())
}
