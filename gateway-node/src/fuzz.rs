//! What must hold for any bytes at all, as functions that a fuzzer calls: the splitters agree with naive ones, a scan
//! with a parser, a splice changes the model and nothing else, a verdict depends on no read, a class on no prompt, and
//! a damaged file costs what is damaged in it. One input is tried in one way, which its first bytes name.
//! Built for tests, which run them on a small corpus, and for `tests/fuzz`, which runs them for hours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken property must stop the run"
)]

mod classify;
mod decode;
pub(crate) mod drive;
mod elements;
mod frames;
mod gate;
mod journal;
mod keep;
mod made;
mod multipart;
mod names;
mod scan;
mod sse;
#[cfg(test)]
mod tests;

use crate::dialect::operation::{self, Operation};

/// One property, or a few about one thing.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `tests/fuzz/corpus`.
    pub name: &'static str,
    /// Panics where the property does not hold.
    pub run: fn(&[u8]),
    /// A short input may stand for far more bytes than it has.
    pub swells: bool,
}

/// All that there are.
pub const TARGETS: &[Target] = &[
    Target { name: "sse", run: sse::run, swells: false },
    Target { name: "elements", run: elements::run, swells: false },
    Target { name: "scan", run: scan::run, swells: false },
    Target { name: "google_scan", run: scan::run_google, swells: false },
    Target { name: "multipart", run: multipart::run, swells: false },
    Target { name: "decode", run: decode::run, swells: true },
    Target { name: "gate", run: gate::run, swells: false },
    Target { name: "frames", run: frames::run, swells: false },
    Target { name: "classify", run: classify::run, swells: false },
    Target { name: "echo", run: classify::run_echo, swells: false },
    Target { name: "names", run: names::run, swells: false },
    Target { name: "journal", run: journal::run, swells: false },
    Target { name: "made", run: made::run, swells: false },
    Target { name: "keep", run: keep::run, swells: false },
];

/// One of all operations, those on things with an id behind the others.
fn operation(which: u8) -> &'static Operation {
    let which = usize::from(which) % operation::all().count();
    operation::all().nth(which).expect("there are so many")
}

/// The first `N` bytes of an input, which say how the rest is used. Corpus files write letters there.
fn head<const N: usize>(input: &[u8]) -> Option<([u8; N], &[u8])> {
    let (head, rest) = input.split_first_chunk::<N>()?;
    Some((head.map(|byte| byte.wrapping_sub(b'a')), rest))
}

/// Cuts bytes into reads: mostly short ones, some long, some of one byte.
fn cut(bytes: &[u8], seed: u32) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    // A long body in a few hundred reads.
    let least = bytes.len() / 256;
    let mut rest = bytes;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        // A xorshift: the cuts need not be random, but different.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let size = match state % 8 {
            0 => 1,
            1 => 2,
            2..5 => 3 + (state >> 8) as usize % 14,
            5 | 6 => 17 + (state >> 8) as usize % 200,
            _ => 1 + (state >> 8) as usize % rest.len(),
        };
        let (chunk, tail) = rest.split_at((least + size).min(rest.len()));
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}
