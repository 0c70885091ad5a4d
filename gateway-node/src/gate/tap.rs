//! Follows a committed answer without copying it: has it finished, has it failed, did an event come? The bytes
//! themselves pass by untouched; what to do is the relay's matter.

use super::frames::Frames;
use crate::dialect::sse::Event;
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
    Whole,
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
}

impl Follow {
    pub(super) fn new(rules: &'static Rules) -> Self {
        Follow { rules, has_finish: false, before: 0, flow: Flow::Pass }
    }

    /// Whether the end of the body would now be a clean one.
    pub(super) fn has_finished(&self) -> bool {
        match self.flow {
            Flow::Pass => self.has_finish,
            Flow::Finish => true,
            Flow::Raised | Flow::Replace { .. } => false,
        }
    }

    /// Takes an event that ends at `end`, which counts from where the caller wants `keep` to count.
    pub(super) fn on_event(&mut self, event: &Event<'_>, end: usize) -> Flow {
        if self.flow != Flow::Pass {
            return self.flow;
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
}

impl Tap {
    pub(super) fn of_stream(frames: Frames, follow: Follow) -> Self {
        Tap { kind: Kind::Stream(Box::new((frames, follow))), saw_event: false }
    }

    pub(super) fn of_whole() -> Self {
        Tap { kind: Kind::Whole, saw_event: false }
    }

    /// Takes the next bytes of the body.
    pub fn on_bytes(&mut self, chunk: &[u8]) -> Flow {
        let Kind::Stream(stream) = &mut self.kind else {
            self.saw_event = !chunk.is_empty();
            return Flow::Pass;
        };
        let (frames, follow) = &mut **stream;
        self.saw_event = false;
        if follow.flow != Flow::Pass {
            return follow.flow;
        }
        follow.before = 0;
        let mut flow = Flow::Pass;
        let saw_event = &mut self.saw_event;
        frames.push(chunk, &mut |event| {
            *saw_event |= !event.is_ping();
            if flow == Flow::Pass {
                flow = follow.on_event(&event, event.end);
            }
        });
        flow
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
            follow.on_event(&event, 0);
        });
        if follow.has_finished() && frames.may_end() { TapEnd::Complete } else { TapEnd::Truncated }
    }

    /// Whether a frame put here would become part of an event that has no end yet: two LF come first then. Also
    /// true after an end without the last blank line, which clients wait for.
    pub fn is_mid_event(&self) -> bool {
        match &self.kind {
            Kind::Stream(stream) => stream.0.is_mid_event(),
            Kind::Whole => false,
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
            Kind::Whole => false,
        }
    }
}
