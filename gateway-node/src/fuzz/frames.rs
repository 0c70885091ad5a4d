//! Streams put together from frames whose meaning is known: what becomes of one follows from its frames alone, in any
//! order, with any line ends, comments and reads.

mod rows;

use common::class::FailureClass;
use common::limits::GATE_HELD_EVENTS_MAX;

use super::drive::{How, Seen, Tail, attempt, gate};
use super::{cut, head};
use crate::dialect::operation::{OPERATIONS, Operation};
use crate::gate::{Decision, Until};
use rows::{DIALECTS, Row};

/// What a frame says of a stream that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Hold,
    Content,
    End,
    Error(FailureClass),
}

/// What it says of a stream that the caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seeing {
    Ordinary,
    Finish,
    Done,
    Raises,
    Quiet,
    Ends,
}

pub(super) fn run(input: &[u8]) {
    let Some(([which, style, a, b], program)) = head(input) else { return };
    let (dialect, rows) = DIALECTS[usize::from(which) % DIALECTS.len()];
    let operation =
        OPERATIONS.iter().find(|operation| operation.upstream_path("m", None) == dialect).unwrap();
    let mut frames = Vec::new();
    let mut body = Vec::new();
    for byte in program.iter().take(GATE_HELD_EVENTS_MAX + 8) {
        match byte {
            0xF0..0xF8 => body.extend_from_slice(&styled(": keep-alive\n\n", style)),
            0xF8.. => body.extend_from_slice(&styled("id: 7\nretry: 10\n\n", style)),
            byte => {
                let row = &rows[usize::from(*byte) % rows.len()];
                let start = body.len();
                body.extend_from_slice(&styled(row.frame, style));
                frames.push((row, start, body.len()));
            }
        }
    }
    let seed = u32::from_le_bytes([a, b, style, 1]);
    let until = if style & 8 == 0 { Until::Content } else { Until::Complete };
    let chunks = if (a, b) == (0, 0) { vec![&body[..]] } else { cut(&body, seed) };
    let gate = gate(operation, true, false, Some("text/event-stream"), until);
    check(&expected(&frames, until), &attempt(gate, &chunks, Tail::Clean), &body, operation);
}

fn styled(frame: &str, style: u8) -> Vec<u8> {
    let frame = if style & 4 == 0 { frame.to_owned() } else { frame.replace("data: ", "data:") };
    let newline = ["\n", "\r\n", "\r", "\n"][usize::from(style & 3)];
    frame.replace('\n', newline).into_bytes()
}

/// What must become of it.
#[derive(Debug)]
enum Fate {
    Dropped(FailureClass),
    /// The bytes that the caller gets at least, and how they end.
    Sent(Decision, usize, How),
}

fn expected(frames: &[(&Row, usize, usize)], until: Until) -> Fate {
    let whole = frames.last().map_or(0, |(_, _, end)| *end);
    let (mut events, mut has_content, mut has_end, mut has_finish) = (0, false, false, false);
    let mut decision = None;
    let mut ended = None;
    for (row, start, end) in frames {
        if decision.is_none() {
            let has_finished = match ended {
                None => has_finish,
                Some((_, how)) => how == How::Finished,
            };
            let is_over = match row.seeing {
                Seeing::Done => has_content || has_end || has_finished,
                Seeing::Ends => has_finished,
                _ => false,
            };
            let all = if has_content { Decision::Content } else { Decision::End };
            decision = match (row.held, until) {
                _ if until == Until::Complete && is_over => Some(all),
                (Held::Error(class), _) => return Fate::Dropped(class),
                (Held::Content, Until::Content) => Some(Decision::Content),
                (Held::End, Until::Content) => Some(Decision::End),
                (held, _) => {
                    has_content |= held == Held::Content;
                    has_end |= held == Held::End;
                    events += 1;
                    let is_full = until == Until::Content && events >= GATE_HELD_EVENTS_MAX;
                    is_full.then_some(Decision::Bounds)
                }
            };
        }
        if ended.is_none() {
            ended = match row.seeing {
                Seeing::Ordinary => None,
                Seeing::Finish => {
                    has_finish = true;
                    None
                }
                Seeing::Done => Some((whole, How::Finished)),
                Seeing::Raises => Some((*end, How::Raised)),
                Seeing::Ends if has_finish => Some((whole, How::Finished)),
                Seeing::Ends => Some((*start, How::Cut)),
                Seeing::Quiet => Some((*end, How::Cut)),
            };
        }
    }
    let (bytes, how) = ended.unwrap_or((whole, if has_finish { How::Complete } else { How::Cut }));
    let may_end = matches!(how, How::Finished | How::Complete);
    match decision {
        Some(decision) => Fate::Sent(decision, bytes, how),
        None if until == Until::Complete && may_end => {
            Fate::Sent(if has_content { Decision::Content } else { Decision::End }, bytes, how)
        }
        None if has_content || has_end => Fate::Dropped(FailureClass::UpstreamError),
        None => Fate::Dropped(FailureClass::Empty),
    }
}

fn check(expected: &Fate, seen: &Seen, body: &[u8], operation: &Operation) {
    let said = || String::from_utf8_lossy(body);
    match (expected, seen) {
        (Fate::Dropped(class), Seen::Dropped(fault)) => {
            assert_eq!(*class, fault.class, "{}: {}", operation.dialect, said());
        }
        (Fate::Sent(decision, bytes, how), Seen::Sent(seen_decision, sent, seen_how)) => {
            assert_eq!((decision, how), (seen_decision, seen_how), "{}: {}", operation.dialect, said());
            assert!(body.starts_with(sent));
            match how {
                How::Finished | How::Complete => assert_eq!(sent, body),
                // The LF of the last CRLF may come with the next read; comments in front of a false end may be left out.
                How::Cut | How::Raised => assert!(sent.len() + 1 >= *bytes || *how == How::Cut, "{}", said()),
            }
        }
        _ => panic!("{}: {expected:?} became {seen:?}: {}", operation.dialect, said()),
    }
}
