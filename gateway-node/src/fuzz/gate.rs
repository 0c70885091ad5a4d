//! The gate and the tap of every operation, with any body, in any reads: the caller gets a prefix of what came, and
//! what becomes of an answer depends on no read.

use common::limits::{GATE_EVENT_BYTES_MAX, GATE_HELD_BYTES_MAX, GATE_WHOLE_BYTES_MAX};

use super::drive::{How, Seen, Tail, attempt, attempt_timed, gate};
use super::{cut, head, operation};
use crate::dialect::ask_usage;
use crate::dialect::sse::Splitter;
use crate::gate::{Gate, Until};

/// How many bytes of an input say how its body is used.
pub(super) const HEAD: usize = 8;

const CONTENT_TYPES: [Option<&str>; 6] = [
    Some("text/event-stream"),
    Some("application/json"),
    None,
    Some("text/html"),
    Some("text/plain; charset=utf-8"),
    Some("audio/mpeg"),
];

pub(super) fn run(input: &[u8]) {
    let Some(([which, flags, media, at, a, b, extra, _], body)) = head::<HEAD>(input) else { return };
    let operation = operation(which);
    let seed = u32::from_le_bytes([a, b, at, 7]);
    let padded = pad(body, extra, seed);
    let has = |bit: u8| flags & bit != 0;
    let make = || {
        let until = if has(2) { Until::Complete } else { Until::Content };
        gate(operation, !has(1), has(32), CONTENT_TYPES[usize::from(media) % CONTENT_TYPES.len()], until)
    };
    let tail = if has(4) { Tail::Broken } else { Tail::Clean };
    let chunks = cut(&padded, seed);
    if has(16) {
        return check_left_out(&padded, &make, seed, tail);
    }
    if has(8) {
        let at = usize::from(at) % (chunks.len() + 1);
        return check_bytes(&padded, &attempt_timed(make(), &chunks, at, tail));
    }
    let one = attempt(make(), &[&padded], tail);
    check_bytes(&padded, &one);
    let many = attempt(make(), &chunks, tail);
    check_bytes(&padded, &many);
    assert_alike(&one, &many);
}

/// What the caller gets is what came, from its start and without a gap; of a complete answer all of it.
fn check_bytes(body: &[u8], seen: &Seen) {
    if let Seen::Sent(_, sent, how) = seen {
        assert!(body.starts_with(sent), "bytes out are bytes in");
        assert!(matches!(how, How::Cut | How::Raised) || sent.len() == body.len(), "{how:?}");
    }
}

/// Where the frames of usage are left out, what comes is the body without a part of it, and depends on no read.
fn check_left_out(body: &[u8], make: &dyn Fn() -> Gate, seed: u32, tail: Tail) {
    let leaving_out = || make().leaving_out(ask_usage::is_answer);
    let one = attempt(leaving_out(), &[body], tail);
    let many = attempt(leaving_out(), &cut(body, !seed), tail);
    match (&one, &many) {
        (Seen::Sent(_, left, How::Finished | How::Complete), Seen::Sent(_, right, _)) => {
            assert_eq!(left, right)
        }
        (Seen::Sent(..), Seen::Sent(..)) => {}
        _ => assert_eq!(one, many),
    }
    if let Seen::Sent(_, sent, _) = &many {
        let mut rest = body.iter();
        assert!(sent.iter().all(|byte| rest.any(|own| own == byte)), "a byte that never came");
    }
}

/// Whether two runs of one body differ in no more than they may: behind a frame that ends an answer, what of no
/// event came with the same read.
fn assert_alike(one: &Seen, many: &Seen) {
    match (one, many) {
        (Seen::Sent(a, left, left_how), Seen::Sent(b, right, right_how)) => {
            assert_eq!((a, left_how), (b, right_how));
            let (short, long) = if left.len() < right.len() { (left, right) } else { (right, left) };
            assert!(long.starts_with(short));
            let mut events = 0;
            if *left_how == How::Cut {
                let mut splitter = Splitter::new();
                splitter.push(b"\n", &mut |_| {});
                splitter.push(&long[short.len()..], &mut |_| events += 1);
            }
            assert!(events == 0, "an event depends on the reads");
            assert!(short.len() == long.len() || matches!(left_how, How::Cut | How::Raised));
        }
        _ => assert_eq!(one, many),
    }
}

/// The body with a run of one byte in it, now and then, so that short inputs reach the limits of what is held.
pub(super) fn pad(body: &[u8], extra: u8, seed: u32) -> Vec<u8> {
    const SIZES: [usize; 8] = [
        1,
        GATE_EVENT_BYTES_MAX - GATE_EVENT_BYTES_MAX / 16,
        GATE_EVENT_BYTES_MAX - 136,
        GATE_EVENT_BYTES_MAX,
        GATE_EVENT_BYTES_MAX + 1,
        GATE_HELD_BYTES_MAX - 44,
        GATE_HELD_BYTES_MAX,
        // The megabytes that a whole answer may have are left to others.
        if cfg!(fuzzing) { GATE_WHOLE_BYTES_MAX } else { 100_000 },
    ];
    if extra < 0xE0 {
        return body.to_vec();
    }
    let size = SIZES[usize::from(extra & 7)];
    let filler = [b' ', b'x', b'\n', b':'][usize::from(extra >> 3 & 3)];
    let at = seed as usize % (body.len() + 1);
    [&body[..at], &vec![filler; size], &body[at..]].concat()
}
