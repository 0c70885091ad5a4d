//! The gate of streams: judges event by event until one is decisive, and knows how much may be held.
//! Every limit is a place in the stream and not in a read, so that how the reads cut it changes nothing.

use common::class::FailureClass;
use common::limits::{GATE_EVENT_BYTES_MAX, GATE_HELD_BYTES_MAX, GATE_HELD_EVENTS_MAX, GATE_WHOLE_BYTES_MAX};

use super::frames::Frames;
use super::leave_out::LeaveOut;
use super::tap::{Flow, Follow, Tap};
use super::{Decision, Step, Until};
use crate::dialect::sse::Event;
use crate::dialect::{After, Rules, Verdict};
use crate::fault::Fault;

/// A stream that is held.
#[derive(Debug)]
pub struct Stream {
    frames: Frames,
    judge: Judge,
}

#[derive(Debug)]
struct Judge {
    rules: &'static Rules,
    until: Until,
    /// Events that were held and proved nothing.
    events: usize,
    /// Events of every kind but pings.
    seen: usize,
    /// Something came that a caller could see.
    has_content: bool,
    /// A lawful end was announced.
    has_end: bool,
    /// The decision, once there is one.
    step: Option<Step>,
    /// Sees every event, so that it can go on after commit.
    follow: Follow,
    /// What it said of the held bytes, `keep` counted from their start.
    flow: Flow,
}

impl Stream {
    pub(super) fn new(
        rules: &'static Rules,
        until: Until,
        frames: Frames,
        leave_out: Option<LeaveOut>,
    ) -> Self {
        let judge = Judge {
            rules,
            until,
            events: 0,
            seen: 0,
            has_content: false,
            has_end: false,
            step: None,
            follow: Follow::new(rules, leave_out),
            flow: Flow::Pass,
        };
        Stream { frames, judge }
    }

    /// Takes a chunk that `before` bytes came before.
    pub(super) fn on_chunk(&mut self, before: usize, chunk: &[u8]) -> Step {
        let judge = &mut self.judge;
        judge.follow.begin(chunk, before);
        self.frames.push(chunk, &mut |event| judge.on_event(&event, before + event.end, chunk));
        judge.follow.finish(chunk, before + chunk.len(), self.frames.open());
        let is_full = before + chunk.len() > judge.bytes_max()
            || (judge.until == Until::Content && self.frames.unfinished() > GATE_EVENT_BYTES_MAX);
        match &judge.step {
            Some(step) => step.clone(),
            None if is_full => Step::Commit(Decision::Bounds),
            None => Step::Read,
        }
    }

    /// The body is over after `held` bytes; an event that lacks only its blank line counts.
    pub(super) fn on_end(&mut self, held: usize) -> Step {
        let judge = &mut self.judge;
        self.frames.finish(&mut |event| judge.on_event(&event, held, &[]));
        let may_end = self.frames.may_end() && judge.follow.has_finished();
        match judge.step.clone() {
            Some(step) => step,
            None if judge.until == Until::Complete && may_end => judge.commit(),
            // A stream that was held to its end and has none was cut.
            None if judge.has_content || judge.has_end => failed(FailureClass::UpstreamError),
            None => failed(FailureClass::Empty),
        }
    }

    /// Events so far, of every kind but pings.
    pub(super) fn seen(&self) -> usize {
        self.judge.seen
    }

    /// Whether the body ended without an event, and in the middle of none.
    pub(super) fn is_nothing(&self) -> bool {
        self.judge.seen == 0 && !self.frames.is_mid_event()
    }

    pub(super) fn into_tap(self) -> (Tap, Flow) {
        (Tap::of_stream(self.frames, self.judge.follow), self.judge.flow)
    }
}

impl Judge {
    fn on_event(&mut self, event: &Event<'_>, end: usize, chunk: &[u8]) {
        self.seen += usize::from(!event.is_ping());
        if self.step.is_none() {
            self.step = self.decide(event, end);
        }
        if self.flow == Flow::Pass {
            self.flow = self.follow.on_event(event, end, chunk);
        }
    }

    fn decide(&mut self, event: &Event<'_>, end: usize) -> Option<Step> {
        if end > self.bytes_max() {
            return Some(Step::Commit(Decision::Bounds));
        }
        if event.is_opaque && self.until == Until::Content {
            return Some(Step::Commit(Decision::Bounds));
        }
        let is_over = || match (self.rules.observe)(event) {
            After::Done => self.has_content || self.has_end || self.follow.has_finished(),
            After::Ends => self.follow.has_finished(),
            After::Ordinary | After::Finish | After::Raises | After::FailedQuietly => false,
        };
        if self.until == Until::Complete && is_over() {
            return Some(self.commit());
        }
        match ((self.rules.judge)(event), self.until) {
            (Verdict::Error(fault), _) => Some(Step::Drop(fault)),
            (Verdict::Content, Until::Content) => Some(Step::Commit(Decision::Content)),
            (Verdict::End, Until::Content) => Some(Step::Commit(Decision::End)),
            (Verdict::Content, Until::Complete) => {
                self.has_content = true;
                None
            }
            (Verdict::Hold, Until::Content) => {
                self.events += 1;
                (self.events >= GATE_HELD_EVENTS_MAX).then_some(Step::Commit(Decision::Bounds))
            }
            (Verdict::End, Until::Complete) => {
                self.has_end = true;
                None
            }
            (Verdict::Hold, Until::Complete) => None,
        }
    }

    fn commit(&self) -> Step {
        Step::Commit(if self.has_content { Decision::Content } else { Decision::End })
    }

    fn bytes_max(&self) -> usize {
        match self.until {
            Until::Content => GATE_HELD_BYTES_MAX,
            Until::Complete => GATE_WHOLE_BYTES_MAX,
        }
    }
}

fn failed(class: FailureClass) -> Step {
    Step::Drop(Box::new(Fault::of(class)))
}
