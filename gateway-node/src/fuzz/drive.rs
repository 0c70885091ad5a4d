//! One attempt as its owners drive it: the gate until it decides, then the tap.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::dialect::operation::Operation;
use crate::dialect::scan::Scanned;
use crate::dialect::splice::Form;
use crate::fault::Fault;
use crate::gate::{Committed, Decision, Flow, Gate, Step, TapEnd, Until};

/// How the body of an upstream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// As HTTP has it.
    Clean,
    /// The connection broke.
    Broken,
}

/// How the caller's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Complete by the end of the body.
    Complete,
    /// Complete by its terminal frame.
    Finished,
    /// The closing frame has to follow.
    Cut,
    /// It was cut behind an error frame of the upstream.
    Raised,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Dropped(Box<Fault>),
    /// Why it was committed, the bytes that the caller got, and how they ended.
    Sent(Decision, Vec<u8>, How),
}

/// The gate of an answer to a request that asks for this.
pub(crate) fn gate(
    operation: &Operation,
    stream: bool,
    wants_text: bool,
    media: Option<&str>,
    until: Until,
) -> Gate {
    let asked = Scanned {
        model: "m".to_owned(),
        model_spans: Vec::new(),
        model_form: Form::String,
        stream,
        stream_options: Vec::new(),
        wants_text,
    };
    let (rules, is_stream) = operation.reading(&asked, media);
    let gate = Gate::new(rules, is_stream, media, until);
    let gate = if operation.is_of_thing() { gate.taking_nothing() } else { gate };
    if operation.takes_arrays() { gate.taking_arrays() } else { gate }
}

/// What becomes of a body that comes in these reads.
pub(crate) fn attempt(mut gate: Gate, chunks: &[&[u8]], tail: Tail) -> Seen {
    let mut chunks = chunks.iter();
    let decision = loop {
        let step = match (chunks.next(), tail) {
            (Some(chunk), _) => gate.on_bytes(Bytes::copy_from_slice(chunk)),
            (None, Tail::Clean) => gate.on_end(),
            (None, Tail::Broken) => gate.on_read_error(),
        };
        match step {
            Step::Read => {}
            Step::Commit(decision) => break decision,
            Step::Drop(fault) => return Seen::Dropped(fault),
        }
    };
    follow(gate, decision, chunks.as_slice(), tail)
}

/// What becomes of it where the time is over before the read `at`.
pub(crate) fn attempt_timed(mut gate: Gate, chunks: &[&[u8]], at: usize, tail: Tail) -> Seen {
    for (index, chunk) in chunks.iter().enumerate() {
        if index == at && gate.has_timer() {
            assert_eq!(gate.on_timeout(), Step::Commit(Decision::Timeout));
            return follow(gate, Decision::Timeout, &chunks[index..], tail);
        }
        match gate.on_bytes(Bytes::copy_from_slice(chunk)) {
            Step::Read => {}
            Step::Commit(decision) => return follow(gate, decision, &chunks[index + 1..], tail),
            Step::Drop(fault) => return Seen::Dropped(fault),
        }
    }
    attempt(gate, &[], tail)
}

fn follow(gate: Gate, decision: Decision, rest: &[&[u8]], tail: Tail) -> Seen {
    let Committed { held, mut tap, whole, flow } = gate.commit();
    if whole {
        assert_eq!((tap.is_stream(), flow), (false, Flow::Pass));
        return Seen::Sent(decision, held.concat(), How::Complete);
    }
    let mut chunks = rest.iter();
    let mut sent = VecDeque::from(held);
    let mut has_finished = false;
    let mut next = Some((&[][..], flow));
    let mut how = None;
    while let Some((chunk, flow)) = next {
        let keep = match flow {
            Flow::Replace { keep } => keep.min(chunk.len()),
            Flow::Pass | Flow::Finish | Flow::Raised => chunk.len(),
        };
        how = match flow {
            Flow::Pass | Flow::Finish => None,
            Flow::Raised => Some(How::Raised),
            Flow::Replace { .. } => Some(How::Cut),
        };
        has_finished |= flow == Flow::Finish;
        if keep > 0 {
            tap.pass(Bytes::copy_from_slice(&chunk[..keep]), &mut sent);
        }
        next = if how.is_some() { None } else { chunks.next().map(|chunk| (*chunk, tap.on_bytes(chunk))) };
    }
    let how = how.unwrap_or_else(|| match tail {
        _ if has_finished => How::Finished,
        Tail::Clean if tap.on_end() == TapEnd::Complete => How::Complete,
        Tail::Clean | Tail::Broken => How::Cut,
    });
    tap.release(&mut sent);
    Seen::Sent(decision, sent.into_iter().flatten().collect(), how)
}
