//! Follows a committed answer without copying it: has it finished, has it failed, did an event come, what did it use?
//! The bytes themselves pass by untouched, but for what [`LeaveOut`] leaves out; what to do is the relay's matter.

use std::collections::VecDeque;

use bytes::Bytes;

use super::frames::Frames;
use super::leave_out::LeaveOut;
use crate::dialect::sse::Event;
use crate::dialect::usage::{Reading, Spent};
use crate::dialect::{After, Rules};

/// Follows one committed answer.
#[derive(Debug)]
pub struct Tap {
    kind: Kind,
    saw_event: bool,
}

#[derive(Debug)]
enum Kind {
    Stream(Box<(Frames, Follow)>),
    Whole(Box<Reading>),
}

/// What to do with a chunk. After the answer was decided, every further chunk gets the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Forward it.
    Pass,
    /// Forward it; the answer is complete with it.
    Finish,
    /// Forward it; an error frame that the SDKs raise was in it, and the answer is cut.
    Raised,
    /// Forward the first `keep` bytes and then the closing frame: the answer failed in a way that the SDKs would
    /// take for a good end. The frame that says so is among those bytes, unless it is such an end itself.
    Replace {
        /// How many bytes of the chunk are forwarded.
        keep: usize,
    },
}

/// How a body that ended is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapEnd {
    /// It is a complete answer.
    Complete,
    /// It is a part of one: the closing frame is missing.
    Truncated,
}

/// The state of a stream, event by event.
#[derive(Debug)]
pub struct Follow {
    rules: &'static Rules,
    has_finish: bool,
    /// Where the last event ended, counted as `end` of the next one is.
    before: usize,
    /// The last word on it, `Pass` as long as there is none.
    flow: Flow,
    reading: Reading,
    leave_out: Option<LeaveOut>,
}

impl Follow {
    pub(super) fn new(rules: &'static Rules, leave_out: Option<LeaveOut>) -> Self {
        let reading = Reading::new(rules.usage);
        Follow { rules, has_finish: false, before: 0, flow: Flow::Pass, reading, leave_out }
    }

    /// A chunk begins, `before` bytes behind the place that `end` of an event counts from.
    pub(super) fn begin(&mut self, chunk: &[u8], before: usize) {
        if let Some(leave_out) = &mut self.leave_out {
            leave_out.begin(chunk, before);
        }
    }

    /// Whether the end of the body would now be a clean one.
    pub(super) fn has_finished(&self) -> bool {
        match self.flow {
            Flow::Pass => self.has_finish,
            Flow::Finish => true,
            Flow::Raised | Flow::Replace { .. } => false,
        }
    }

    /// Takes an event of a chunk that ends at `end`, which counts from where the caller wants `keep` to count.
    pub(super) fn on_event(&mut self, event: &Event<'_>, end: usize, chunk: &[u8]) -> Flow {
        if self.flow != Flow::Pass {
            return self.flow;
        }
        let part = event.end.saturating_sub(event.size)..event.end;
        self.reading.on_event(event, chunk.get(part).unwrap_or_default());
        if let Some(leave_out) = &mut self.leave_out {
            leave_out.on_event(event, end, chunk);
        }
        let before = std::mem::replace(&mut self.before, end);
        let flow = match (self.rules.observe)(event) {
            After::Ordinary => Flow::Pass,
            After::Finish => {
                self.has_finish = true;
                Flow::Pass
            }
            After::Done => Flow::Finish,
            After::Raises => Flow::Raised,
            After::Ends if self.has_finish => Flow::Finish,
            // Behind it nobody would read our frame.
            After::Ends => Flow::Replace { keep: before },
            After::FailedQuietly => Flow::Replace { keep: end },
        };
        // Of later chunks nothing is forwarded.
        self.flow = if let Flow::Replace { .. } = flow { Flow::Replace { keep: 0 } } else { flow };
        flow
    }

    /// The chunk that ends at `end` is over; so many bytes are those of an event that has no end yet.
    pub(super) fn finish(&mut self, chunk: &[u8], end: usize, open: usize) {
        if self.flow == Flow::Pass {
            self.reading.on_begun(chunk.get(chunk.len().saturating_sub(open)..).unwrap_or_default());
            if let Some(leave_out) = &mut self.leave_out {
                leave_out.finish(end, open);
            }
        }
    }
}

impl Tap {
    pub(super) fn of_stream(frames: Frames, follow: Follow) -> Self {
        Tap { kind: Kind::Stream(Box::new((frames, follow))), saw_event: false }
    }

    pub(super) fn of_whole(reading: Reading) -> Self {
        Tap { kind: Kind::Whole(Box::new(reading)), saw_event: false }
    }

    /// Takes the next bytes of the body.
    pub fn on_bytes(&mut self, chunk: &[u8]) -> Flow {
        let stream = match &mut self.kind {
            Kind::Stream(stream) => stream,
            Kind::Whole(reading) => {
                reading.on_bytes(chunk);
                self.saw_event = !chunk.is_empty();
                return Flow::Pass;
            }
        };
        let (frames, follow) = &mut **stream;
        self.saw_event = false;
        if follow.flow != Flow::Pass {
            return follow.flow;
        }
        follow.before = 0;
        let mut flow = Flow::Pass;
        let saw_event = &mut self.saw_event;
        follow.begin(chunk, 0);
        frames.push(chunk, &mut |event| {
            *saw_event |= !event.is_ping();
            if flow == Flow::Pass {
                flow = follow.on_event(&event, event.end, chunk);
            }
        });
        follow.finish(chunk, chunk.len(), frames.open());
        flow
    }

    /// Hands on what may pass of the bytes that [`Tap::on_bytes`] has seen, in order. What is not left out comes in the
    /// end: the rest of it now, or later.
    pub fn pass(&mut self, bytes: Bytes, out: &mut VecDeque<Bytes>) {
        match self.leave_out() {
            Some(leave_out) => leave_out.pass([bytes], out),
            None => out.push_back(bytes),
        }
    }

    /// The same for all that the gate held.
    pub(super) fn pass_held(&mut self, held: Vec<Bytes>) -> Vec<Bytes> {
        match self.leave_out() {
            Some(leave_out) => {
                let mut out = VecDeque::with_capacity(held.len() + 1);
                leave_out.pass(held, &mut out);
                out.into()
            }
            None => held,
        }
    }

    /// Hands on what was kept back: no more bytes come.
    pub fn release(&mut self, out: &mut VecDeque<Bytes>) {
        if let Some(leave_out) = self.leave_out() {
            leave_out.release(out);
        }
    }

    fn leave_out(&mut self) -> Option<&mut LeaveOut> {
        match &mut self.kind {
            Kind::Stream(stream) => stream.1.leave_out.as_mut(),
            Kind::Whole(_) => None,
        }
    }

    /// What there is to account for of the answer so far.
    pub fn spent(&self) -> Spent {
        match &self.kind {
            Kind::Stream(stream) => stream.1.reading.spent(),
            Kind::Whole(reading) => reading.spent(),
        }
    }

    /// Whether the last chunk completed a real event; comments, pings and blank lines are none. Bytes are, where it is
    /// no stream.
    pub fn saw_event(&self) -> bool {
        self.saw_event
    }

    /// The body ended as HTTP has it. An event that lacks only its blank line counts.
    pub fn on_end(&mut self) -> TapEnd {
        let Kind::Stream(stream) = &mut self.kind else { return TapEnd::Complete };
        let (frames, follow) = &mut **stream;
        frames.finish(&mut |event| {
            follow.on_event(&event, 0, &[]);
        });
        if follow.has_finished() && frames.may_end() { TapEnd::Complete } else { TapEnd::Truncated }
    }

    /// Whether a frame put here would become part of an event that has no end yet: two LF come first then. Also
    /// true after an end without the last blank line, which clients wait for.
    pub fn is_mid_event(&self) -> bool {
        match &self.kind {
            Kind::Stream(stream) => stream.0.is_mid_event(),
            Kind::Whole(_) => false,
        }
    }

    /// Whether the body is over and its last event lacks only the blank line, without which clients drop it.
    pub fn lacks_blank_line(&self) -> bool {
        match &self.kind {
            Kind::Stream(stream) => stream.0.lacks_blank_line(),
            Kind::Whole(_) => false,
        }
    }

    /// Whether it is a stream: its end is told by an event.
    pub fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Whether a closing frame means something to who reads it; else a cut can only be shown by aborting.
    pub fn takes_frame(&self) -> bool {
        match &self.kind {
            Kind::Stream(stream) => stream.0.takes_frame(),
            Kind::Whole(_) => false,
        }
    }
}
