//! Bytes → whole server-sent events, incrementally and without copying what lies inside one read.
//! Line ends are LF, CRLF or CR, also mixed; a BOM is skipped; nothing is decoded, so bad UTF-8 is nobody's
//! problem here. The bytes themselves are not kept: who needs them untouched has the chunks.
//!
//! An event larger than [`GATE_EVENT_BYTES_MAX`] is reported without its data, and without its name unless that stood
//! among the first bytes, as it does: memory per stream stays bounded, and what an event means does not depend on how
//! the reads cut it.

use std::borrow::Cow;

use common::limits::GATE_EVENT_BYTES_MAX;
use memchr::memchr2;

/// One event that has data. Comments, `id:`, `retry:` and events without data are never reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of the last `event:` line.
    pub name: Option<&'a [u8]>,
    /// The `data:` lines, joined by LF.
    pub data: Cow<'a, [u8]>,
    /// Where the event ends in the chunk that completed it, its blank line included.
    pub end: usize,
    /// How many bytes before that it begins, which may lie in earlier chunks: with its first line that is no comment.
    pub size: usize,
    /// The event was too large to be kept, and `data` is empty. The name is there if it came in front.
    pub is_opaque: bool,
}

impl Event<'_> {
    /// Whether it only keeps the connection alive, as a comment does.
    pub fn is_ping(&self) -> bool {
        self.name.is_some_and(|name| matches!(name.trim_ascii(), b"ping" | b"keepalive"))
    }
}

/// Splits a stream into events.
#[derive(Debug, Default)]
pub struct Splitter {
    /// Bytes of the BOM that were seen; 3 when that question is settled.
    bom: usize,
    /// The last line ended with a CR, whose LF may still come.
    skip_lf: bool,
    /// What is known of the begun event.
    begun: Begun,
    /// How many bytes of the begun event lie in earlier chunks, counted from its first line that is no comment.
    open: Option<usize>,
    /// The body ended inside an event.
    is_unclosed: bool,
    /// That event was whole but for its blank line.
    lacks_blank_line: bool,
}

/// An event between two chunks.
#[derive(Debug, Default)]
struct Begun {
    /// Bytes so far, kept or not.
    size: usize,
    /// The last line has no end yet.
    in_line: bool,
    line: Vec<u8>,
    has_data: bool,
    data: Vec<u8>,
    has_name: bool,
    name: Vec<u8>,
    /// It is too large, and what was kept of it is gone.
    is_opaque: bool,
}

/// A part of the begun event: in the current chunk, or copied into [`Begun`].
#[derive(Clone, Copy)]
enum Part<'c> {
    None,
    Here(&'c [u8]),
    Kept,
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Buffers above this are given back once the event is over: a stream lives long, a large event is rare.
const IDLE_CAPACITY: usize = 8 * 1024;

impl Splitter {
    /// A splitter at the start of a body.
    pub fn new() -> Self {
        Splitter::default()
    }

    /// Takes a chunk and reports each event that it completes.
    pub fn push(&mut self, chunk: &[u8], on_event: &mut dyn FnMut(Event<'_>)) {
        let mut at = self.skip_bom(chunk);
        let begun = &mut self.begun;
        // Before the chunk it is negative.
        let mut first = self.open.map(|open| -signed(open));
        let mut data = if begun.has_data { Part::Kept } else { Part::None };
        let mut name = if begun.has_name { Part::Kept } else { Part::None };
        while let Some(rest) = chunk.get(at..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.skip_lf) && rest.starts_with(b"\n") {
                at += 1;
                continue;
            }
            if first.is_none() && !begun.in_line && !matches!(rest, [b':' | b'\n' | b'\r', ..]) {
                first = Some(signed(at));
            }
            let Some(len) = memchr2(b'\n', b'\r', rest) else {
                begun.extend_line(rest);
                break;
            };
            let (line, end) = rest.split_at(len);
            at += len + 1;
            if end.starts_with(b"\r") {
                if end.starts_with(b"\r\n") {
                    at += 1;
                } else {
                    self.skip_lf = at == chunk.len();
                }
            }
            begun.size += len + 1;
            if line.is_empty() && !begun.in_line {
                begun.report(data, name, at, size(first, at), on_event);
                (data, name) = (Part::None, Part::None);
                first = None;
            } else if !begun.in_line {
                match field(line) {
                    Field::Data(value) => data = begun.add_data(data, value),
                    Field::Name(value) if begun.size <= GATE_EVENT_BYTES_MAX => name = Part::Here(value),
                    Field::Name(_) | Field::Other => {}
                }
            } else {
                (data, name) = begun.end_line(line, data, name);
            }
        }
        begun.keep(data, name);
        self.open = first.map(|first| size(Some(first), chunk.len()));
    }

    /// The body is over: reports the last event if only its blank line is missing and it was kept. Once; the stream then
    /// stays mid-event, since a client still waits for that line.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        if self.begun.size == 0 {
            return;
        }
        let data = if self.begun.has_data { Part::Kept } else { Part::None };
        let name = if self.begun.has_name { Part::Kept } else { Part::None };
        let (data, name) =
            if self.begun.in_line { self.begun.end_line(&[], data, name) } else { (data, name) };
        if self.begun.is_opaque || self.begun.size > GATE_EVENT_BYTES_MAX {
            // Nobody can tell whether all of it came.
            self.begun.clear();
        } else {
            let lacks_blank_line = &mut self.lacks_blank_line;
            self.begun.report(data, name, 0, self.open.unwrap_or_default(), &mut |event| {
                *lacks_blank_line = true;
                on_event(event);
            });
        }
        self.open = None;
        self.is_unclosed = true;
    }

    /// Whether the stream stands inside an event, so that a frame put here would become part of it.
    pub fn is_mid_event(&self) -> bool {
        self.begun.size > 0 || self.is_unclosed
    }

    /// Whether the body ended behind an event that lacks only its blank line, without which clients drop it.
    pub fn lacks_blank_line(&self) -> bool {
        self.lacks_blank_line
    }

    /// Bytes of the event that has no end yet.
    pub fn unfinished(&self) -> usize {
        self.begun.size
    }

    /// How many of the bytes so far are those of the event that has no end yet, counted as [`Event::size`].
    pub fn open(&self) -> usize {
        self.open.unwrap_or_default()
    }

    /// How many bytes of the chunk belong to a BOM at the start of the body.
    fn skip_bom(&mut self, chunk: &[u8]) -> usize {
        let mut at = 0;
        while let (Some(expected), Some(byte)) = (BOM.get(self.bom), chunk.get(at)) {
            if byte != expected {
                // It was no BOM: what looked like one begins the first line.
                self.begun.extend_line(BOM.get(..self.bom).unwrap_or_default());
                self.bom = BOM.len();
                break;
            }
            self.bom += 1;
            at += 1;
        }
        at
    }
}

impl Begun {
    fn extend_line(&mut self, part: &[u8]) {
        self.size += part.len();
        self.in_line |= !part.is_empty();
        if !self.is_opaque {
            self.line.extend_from_slice(part);
        }
    }

    /// Ends a line that began in an earlier chunk.
    fn end_line<'c>(&mut self, tail: &'c [u8], data: Part<'c>, name: Part<'c>) -> (Part<'c>, Part<'c>) {
        self.in_line = false;
        if self.is_opaque {
            return (data, name);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(tail);
        let parts = match field(&line) {
            Field::Data(value) => {
                // Not `Here`: the line lies in no chunk.
                self.join(data, value);
                (Part::Kept, name)
            }
            Field::Name(value) if self.size <= GATE_EVENT_BYTES_MAX => {
                self.name.clear();
                self.name.extend_from_slice(value);
                (data, Part::Kept)
            }
            Field::Name(_) | Field::Other => (data, name),
        };
        line.clear();
        self.line = line;
        parts
    }

    fn add_data<'c>(&mut self, data: Part<'c>, value: &'c [u8]) -> Part<'c> {
        if self.is_opaque {
            return data;
        }
        if let Part::None = data {
            return Part::Here(value);
        }
        self.join(data, value);
        Part::Kept
    }

    fn join(&mut self, data: Part<'_>, value: &[u8]) {
        match data {
            Part::None => self.data.clear(),
            Part::Here(first) => {
                self.data.clear();
                self.data.extend_from_slice(first);
                self.data.push(b'\n');
            }
            Part::Kept => self.data.push(b'\n'),
        }
        self.data.extend_from_slice(value);
    }

    /// Copies what the begun event has in the chunk that goes away now.
    fn keep(&mut self, data: Part<'_>, name: Part<'_>) {
        if let Part::Here(value) = name {
            self.name.clear();
            self.name.extend_from_slice(value);
        }
        self.has_name = !matches!(name, Part::None);
        if self.size > GATE_EVENT_BYTES_MAX && !self.is_opaque {
            (self.line, self.data) = (Vec::new(), Vec::new());
            self.is_opaque = true;
        }
        if self.is_opaque {
            return;
        }
        if let Part::Here(value) = data {
            self.data.clear();
            self.data.extend_from_slice(value);
        }
        self.has_data = !matches!(data, Part::None);
    }

    fn report(
        &mut self,
        data: Part<'_>,
        name: Part<'_>,
        end: usize,
        size: usize,
        on_event: &mut dyn FnMut(Event<'_>),
    ) {
        let is_opaque = self.is_opaque || self.size > GATE_EVENT_BYTES_MAX;
        let name = match name {
            Part::None => None,
            Part::Here(value) => Some(value),
            Part::Kept => Some(self.name.as_slice()),
        };
        let data = match data {
            _ if is_opaque => Some(&[][..]),
            Part::None => None,
            Part::Here(value) => Some(value),
            Part::Kept => Some(self.data.as_slice()),
        };
        if let Some(data) = data {
            on_event(Event { name, data: Cow::Borrowed(data), end, size, is_opaque });
        }
        self.clear();
    }

    fn clear(&mut self) {
        for buffer in [&mut self.line, &mut self.data, &mut self.name] {
            buffer.clear();
            if buffer.capacity() > IDLE_CAPACITY {
                *buffer = Vec::new();
            }
        }
        (self.size, self.in_line, self.has_data, self.has_name) = (0, false, false, false);
        self.is_opaque = false;
    }
}

fn signed(at: usize) -> isize {
    isize::try_from(at).unwrap_or(isize::MAX)
}

/// Bytes from `first` to `end`.
fn size(first: Option<isize>, end: usize) -> usize {
    usize::try_from(signed(end) - first.unwrap_or(signed(end))).unwrap_or_default()
}

enum Field<'a> {
    Data(&'a [u8]),
    Name(&'a [u8]),
    Other,
}

fn field(line: &[u8]) -> Field<'_> {
    match line.first() {
        Some(b'd') => value_of(line, b"data").map_or(Field::Other, Field::Data),
        Some(b'e') => value_of(line, b"event").map_or(Field::Other, Field::Name),
        _ => Field::Other,
    }
}

/// What stands after the colon, less one space; a line without a colon is a field with an empty value.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
