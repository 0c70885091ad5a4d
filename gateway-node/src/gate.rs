//! Layer 3: holds the start of an answer back until it is known to be good. Chunks in, steps out; the owner
//! reads, keeps the time and sends. What an event means is the dialect's matter.
//!
//! ```text
//!            first byte that is not blank
//!   Unknown ──────────── { [ < ──────────► Whole    judged when it is complete, or committed at 4 MiB
//!      └──────────────── else ───────────► Stream   judged event by event
//!      └─── [ where streams may be arrays ────┘
//! ```

mod frames;
mod leave_out;
pub mod stream;
pub mod tap;
mod whole;

use bytes::Bytes;
use common::class::FailureClass;
use common::limits::{GATE_HELD_BYTES_MAX, GATE_WHOLE_BYTES_MAX};

use crate::dialect::usage::Reading;
use crate::dialect::{Rules, elements, sse};
use crate::fault::Fault;
use frames::Frames;
use leave_out::LeaveOut;
use stream::Stream;
pub use tap::{Flow, Tap, TapEnd};

/// How far a stream is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until the first decisive event.
    Content,
    /// Until its terminal frame.
    Complete,
}

/// What the owner of a gate does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read on.
    Read,
    /// Call [`Gate::commit`] and answer.
    Commit(Decision),
    /// Forget this attempt: nothing of it may reach the caller.
    Drop(Box<Fault>),
}

/// Why an answer was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It has content.
    Content,
    /// It has none, and ended lawfully.
    End,
    /// It is complete, and no stream.
    Whole,
    /// The time was over.
    Timeout,
    /// There was more than is held.
    Bounds,
}

impl Decision {
    /// The name in metrics and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Content => "content",
            Decision::End => "end",
            Decision::Whole => "whole",
            Decision::Timeout => "timeout",
            Decision::Bounds => "bounds",
        }
    }
}

/// What is behind an opened gate.
#[derive(Debug)]
pub struct Committed {
    /// The bytes that were held and may be sent, untouched, to be sent first.
    pub held: Vec<Bytes>,
    /// Follows what comes after them.
    pub tap: Tap,
    /// No stream, and complete in `held`.
    pub whole: bool,
    /// What `tap` would have said of `held`. Where that is `Replace`, `held` is already cut to what may be sent.
    pub flow: Flow,
}

/// Layer 3 of one attempt.
#[derive(Debug)]
pub struct Gate {
    rules: &'static Rules,
    until: Until,
    content: Content,
    /// A stream may come as one array.
    takes_arrays: bool,
    /// Events that the caller of a stream does not get.
    leaves_out: Option<fn(&sse::Event<'_>) -> bool>,
    /// A stream may have nothing in it.
    takes_nothing: bool,
    shape: Shape,
    held: Vec<Bytes>,
    held_bytes: usize,
    is_over: bool,
}

/// What the headers say about the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// A JSON document or a page.
    Document,
    /// A stream, or nothing that is known.
    Stream,
}

#[derive(Debug)]
enum Shape {
    Unknown,
    Stream(Box<Stream>),
    Whole,
}

impl Gate {
    /// The gate of an attempt whose headers came. A caller that asked for no stream gets a whole answer or none.
    pub fn new(rules: &'static Rules, asked_stream: bool, content_type: Option<&str>, until: Until) -> Self {
        Gate {
            rules,
            until,
            content: Content::of(content_type.unwrap_or_default()),
            takes_arrays: false,
            leaves_out: None,
            takes_nothing: false,
            shape: if asked_stream { Shape::Unknown } else { Shape::Whole },
            held: Vec::new(),
            held_bytes: 0,
            is_over: false,
        }
    }

    /// The same where a stream may also come as one JSON array, judged element by element.
    pub fn taking_arrays(self) -> Self {
        Gate { takes_arrays: true, ..self }
    }

    /// The same where some events of a stream are only there because the upstream was asked for them.
    pub fn leaving_out(self, is_one: fn(&sse::Event<'_>) -> bool) -> Self {
        Gate { leaves_out: Some(is_one), ..self }
    }

    /// The same where a stream may have nothing in it, as one that is taken up again behind its last event.
    pub fn taking_nothing(self) -> Self {
        Gate { takes_nothing: true, ..self }
    }

    /// Takes the next bytes of the body.
    pub fn on_bytes(&mut self, chunk: Bytes) -> Step {
        if chunk.is_empty() {
            return Step::Read;
        }
        let before = self.held_bytes;
        self.held_bytes += chunk.len();
        self.held.push(chunk.clone());
        match &mut self.shape {
            Shape::Stream(stream) => stream.on_chunk(before, &chunk),
            Shape::Whole if self.held_bytes > GATE_WHOLE_BYTES_MAX => Step::Commit(Decision::Bounds),
            Shape::Whole => Step::Read,
            Shape::Unknown => self.sniff(&chunk),
        }
    }

    /// The body ended as it should.
    pub fn on_end(&mut self) -> Step {
        match &mut self.shape {
            Shape::Stream(stream) => {
                let step = stream.on_end(self.held_bytes);
                if self.takes_nothing && stream.is_nothing() { self.take_nothing() } else { step }
            }
            Shape::Unknown if self.takes_nothing => self.take_nothing(),
            Shape::Whole => {
                self.is_over = true;
                if self.held.len() > 1 {
                    // Joined once, for the judge and for the caller.
                    self.held = Vec::from([self.held.concat().into()]);
                }
                whole::judge(self.rules, self.held.first().map_or(&[], |whole| whole))
            }
            Shape::Unknown => failed(FailureClass::Empty),
        }
    }

    /// The body broke off, or came no further within the idle limit.
    pub fn on_read_error(&mut self) -> Step {
        failed(FailureClass::UpstreamError)
    }

    /// The time since the response headers is over.
    pub fn on_timeout(&mut self) -> Step {
        // Undecided events are committed, not dropped: by now the caller has waited longer than a failover would
        // save, and whatever follows is passed through as it comes.
        if self.has_timer() { Step::Commit(Decision::Timeout) } else { Step::Read }
    }

    /// All gates together hold more than they may. This one's part goes to its caller, judged or not: memory that is not
    /// there would take the answers of all callers with it.
    pub fn on_full(&mut self) -> Step {
        Step::Commit(Decision::Bounds)
    }

    /// Whether [`Gate::on_timeout`] would decide anything. May turn false with the first bytes.
    pub fn has_timer(&self) -> bool {
        match self.shape {
            Shape::Stream(_) => self.until == Until::Content,
            Shape::Unknown => self.until == Until::Content && self.content == Content::Stream,
            Shape::Whole => false,
        }
    }

    /// Counts the signs of an answer so far: events of a stream (comments are none), bytes of anything else.
    pub fn signs(&self) -> usize {
        match &self.shape {
            Shape::Stream(stream) => stream.seen(),
            Shape::Whole => self.held_bytes,
            Shape::Unknown => 0,
        }
    }

    /// Opens the gate.
    pub fn commit(mut self) -> Committed {
        if let Shape::Unknown = self.shape {
            self.become_stream(events());
        }
        match self.shape {
            Shape::Stream(stream) => {
                let (mut tap, flow) = stream.into_tap();
                if let Flow::Replace { keep } = flow {
                    cut(&mut self.held, keep);
                }
                let held = tap.pass_held(self.held);
                Committed { held, tap, whole: false, flow }
            }
            Shape::Whole | Shape::Unknown => {
                let mut reading = Reading::new(self.rules.usage);
                self.held.iter().for_each(|chunk| reading.on_bytes(chunk));
                let tap = Tap::of_whole(reading);
                Committed { held: self.held, tap, whole: self.is_over, flow: Flow::Pass }
            }
        }
    }

    /// There is no event to follow: what came is passed on as it is.
    fn take_nothing(&mut self) -> Step {
        (self.shape, self.is_over) = (Shape::Whole, true);
        Step::Commit(Decision::End)
    }

    /// Decides by the first byte that is not blank what the body is, whatever its headers say.
    fn sniff(&mut self, chunk: &[u8]) -> Step {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(byte);
        let blank = chunk.iter().take_while(|byte| is_blank(byte)).count();
        // Counted up to the first other byte and not to the end of the read, which must decide nothing.
        if self.held_bytes - chunk.len() + blank > GATE_HELD_BYTES_MAX {
            return Step::Commit(Decision::Bounds);
        }
        match chunk.get(blank) {
            None => Step::Read,
            Some(b'[') if self.takes_arrays => {
                self.become_stream(Frames::Elements(elements::Splitter::new()))
            }
            Some(b'{' | b'[' | b'<') => self.become_whole(),
            // `data:`, `event:`, `id:`, `retry:` or a comment.
            Some(b'd' | b'e' | b'i' | b'r' | b':') => self.become_stream(events()),
            Some(_) if self.content == Content::Document => self.become_whole(),
            Some(_) => self.become_stream(events()),
        }
    }

    fn become_whole(&mut self) -> Step {
        self.shape = Shape::Whole;
        if self.held_bytes > GATE_WHOLE_BYTES_MAX { Step::Commit(Decision::Bounds) } else { Step::Read }
    }

    fn become_stream(&mut self, frames: Frames) -> Step {
        let mut stream =
            Box::new(Stream::new(self.rules, self.until, frames, self.leaves_out.map(LeaveOut::new)));
        let mut before = 0;
        let mut step = Step::Read;
        for chunk in &self.held {
            // All but the last are blank, and decide nothing.
            step = stream.on_chunk(before, chunk);
            before += chunk.len();
        }
        self.shape = Shape::Stream(stream);
        step
    }
}

impl Content {
    fn of(content_type: &str) -> Self {
        let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            "text/html" | "application/json" => Content::Document,
            media if media.ends_with("+json") => Content::Document,
            _ => Content::Stream,
        }
    }
}

fn events() -> Frames {
    Frames::Events(sse::Splitter::new())
}

fn failed(class: FailureClass) -> Step {
    Step::Drop(Box::new(Fault::of(class)))
}

/// Keeps the first `keep` bytes.
fn cut(held: &mut Vec<Bytes>, keep: usize) {
    let mut left = keep;
    held.retain_mut(|chunk| {
        chunk.truncate(left);
        left -= chunk.len();
        !chunk.is_empty()
    });
}

#[cfg(test)]
mod tests;
