//! The decoders of content codings: any bytes are decoded or refused, a little at a time, and the reads change nothing.

use bytes::Bytes;

use super::{cut, head};
use crate::upstream::encoding::{Coding, Decoder};

const CODINGS: [&[Coding]; 6] = [
    &[Coding::Gzip],
    &[Coding::Deflate],
    &[Coding::Brotli],
    &[Coding::Zstd],
    &[Coding::Gzip, Coding::Brotli],
    &[Coding::Deflate, Coding::Zstd],
];

/// What a few bytes swell to is not looked at beyond this.
const ENOUGH: usize = if cfg!(fuzzing) { 32 * 1024 } else { 256 * 1024 };

/// The largest piece that is made at a time.
const PIECE: usize = 8 * 1024;

pub(super) fn run(input: &[u8]) {
    let Some(([which, a, b, _], body)) = head(input) else { return };
    let codings = CODINGS[usize::from(which) % CODINGS.len()];
    let (one, one_end) = decode(codings, &[body]);
    let (many, many_end) = decode(codings, &cut(body, u32::from_le_bytes([a, b, 3, 5])));
    let shorter = one.len().min(many.len());
    assert_eq!(one[..shorter], many[..shorter]);
    if one_end != End::Enough && many_end != End::Enough {
        assert_eq!(one_end, many_end);
        assert!(one.len() == many.len() || one_end == End::Broken);
    }
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Cut,
    Broken,
    Enough,
}

fn decode(codings: &[Coding], chunks: &[&[u8]]) -> (Vec<u8>, End) {
    let mut decoder = Decoder::new(codings).expect("the codings are known");
    let mut decoded = Vec::new();
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        loop {
            match decoder.next() {
                Ok(Some(piece)) => {
                    assert!(!piece.is_empty() && piece.len() <= PIECE);
                    decoded.extend_from_slice(&piece);
                }
                Ok(None) => break,
                Err(_) => return (decoded, End::Broken),
            }
            if decoded.len() > ENOUGH {
                return (decoded, End::Enough);
            }
        }
    }
    let end = if decoder.may_end() { End::Complete } else { End::Cut };
    (decoded, end)
}
