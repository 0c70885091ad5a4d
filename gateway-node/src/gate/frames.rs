//! How a stream is cut into events: server-sent ones, or the elements of one JSON array.

use crate::dialect::sse::Event;
use crate::dialect::{elements, sse};

/// The splitter of a stream.
#[derive(Debug)]
pub enum Frames {
    /// Server-sent events.
    Events(sse::Splitter),
    /// The elements of an array.
    Elements(elements::Splitter),
}

impl Frames {
    pub(super) fn push(&mut self, chunk: &[u8], on_event: &mut dyn FnMut(Event<'_>)) {
        match self {
            Frames::Events(splitter) => splitter.push(chunk, on_event),
            Frames::Elements(splitter) => splitter.push(chunk, on_event),
        }
    }

    pub(super) fn finish(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        match self {
            Frames::Events(splitter) => splitter.finish(on_event),
            Frames::Elements(splitter) => splitter.finish(on_event),
        }
    }

    /// Bytes of the event that has no end yet.
    pub(super) fn unfinished(&self) -> usize {
        match self {
            Frames::Events(splitter) => splitter.unfinished(),
            Frames::Elements(splitter) => splitter.unfinished(),
        }
    }

    /// How many of the bytes so far are those of the event that has no end yet, without what came before it.
    pub(super) fn open(&self) -> usize {
        match self {
            Frames::Events(splitter) => splitter.open(),
            Frames::Elements(splitter) => splitter.unfinished(),
        }
    }

    /// Whether a frame put here would become part of an event that has no end yet.
    pub(super) fn is_mid_event(&self) -> bool {
        match self {
            Frames::Events(splitter) => splitter.is_mid_event(),
            Frames::Elements(_) => false,
        }
    }

    /// Whether the last event lacks only its blank line, without which clients drop it.
    pub(super) fn lacks_blank_line(&self) -> bool {
        match self {
            Frames::Events(splitter) => splitter.lacks_blank_line(),
            Frames::Elements(_) => false,
        }
    }

    /// Whether the stream may end here as far as its form goes: an array must be closed.
    pub(super) fn may_end(&self) -> bool {
        match self {
            Frames::Events(_) => true,
            Frames::Elements(splitter) => splitter.is_closed(),
        }
    }

    /// Whether an error frame can be put behind what came. An array has no place for one.
    pub(super) fn takes_frame(&self) -> bool {
        matches!(self, Frames::Events(_))
    }
}
