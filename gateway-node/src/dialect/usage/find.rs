//! Finds the objects under given names in JSON that comes in pieces, and copies nothing else. Checks no grammar: what
//! is no JSON yields nothing, or nonsense that means nothing.
//!
//! ```text
//!            "                    "            :             {, under one of the names
//! Outside ─────► Text ─────► AfterText ─────► AfterName ─────► taken down until its }
//!    ▲             │ \           │ else           │ else
//!    └─────────────┴─ Escaped ───┴────────────────┘
//! ```

use memchr::{memchr2, memchr3};

use common::limits::USAGE_BYTES_MAX;

/// The longest name that is sought, and one more byte to tell a longer one by.
const NAME_MAX: usize = 16;

/// Where in a document the next byte stands.
#[derive(Debug)]
pub struct Find {
    at: At,
    /// Open objects; arrays do not count.
    objects: u32,
    /// The last text, where it may be a name that matters.
    name: [u8; NAME_MAX],
    name_len: usize,
    is_name_wanted: bool,
    /// The name at the top of what is around.
    outer: &'static str,
    /// The object that follows is sought.
    is_sought: bool,
    /// How many objects are around the one that is taken down.
    taking: Option<u32>,
    taken: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Outside,
    Text,
    Escaped,
    AfterText,
    AfterName,
}

type Places = &'static [(&'static str, &'static str)];

impl Find {
    pub fn new() -> Self {
        Find {
            at: At::Outside,
            objects: 0,
            name: [0; NAME_MAX],
            name_len: 0,
            is_name_wanted: false,
            outer: "",
            is_sought: false,
            taking: None,
            taken: Vec::new(),
        }
    }

    /// At the start of the next document.
    pub fn restart(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        *self = Find { taken, ..Find::new() };
    }

    /// Takes the next piece of the document and reports each object that it completes.
    pub fn push(&mut self, piece: &[u8], places: Places, on_object: &mut dyn FnMut(&[u8])) {
        let mut rest = piece;
        while !rest.is_empty() {
            let was_taking = self.taking.is_some();
            let (done, next) = rest.split_at(self.step(rest, places));
            rest = next;
            if was_taking || self.taking.is_some() {
                self.take_down(done, on_object);
            }
        }
    }

    /// Takes in some bytes of the rest, and says how many.
    fn step(&mut self, rest: &[u8], places: Places) -> usize {
        let first = rest.first().copied().unwrap_or_default();
        match self.at {
            At::Outside => {
                let Some(len) = memchr3(b'"', b'{', b'}', rest) else { return rest.len() };
                match rest.get(len) {
                    Some(b'"') => self.begin_text(),
                    Some(b'{') => self.objects += 1,
                    _ => self.objects = self.objects.saturating_sub(1),
                }
                len + 1
            }
            At::Text => {
                let len = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.extend_name(rest.get(..len).unwrap_or_default());
                match rest.get(len) {
                    Some(b'"') => self.at = At::AfterText,
                    Some(_) => {
                        // None of the names has anything to escape.
                        self.is_name_wanted = false;
                        self.at = At::Escaped;
                    }
                    None => return len,
                }
                len + 1
            }
            At::Escaped => {
                self.at = At::Text;
                1
            }
            At::AfterText | At::AfterName if first.is_ascii_whitespace() => 1,
            At::AfterText => {
                self.at = At::Outside;
                if first != b':' {
                    return 0;
                }
                self.at = At::AfterName;
                self.is_sought = self.is_sought(places);
                1
            }
            At::AfterName => {
                self.at = At::Outside;
                if first != b'{' || !std::mem::take(&mut self.is_sought) {
                    return 0;
                }
                self.taking = Some(self.objects);
                self.objects += 1;
                1
            }
        }
    }

    fn begin_text(&mut self) {
        self.at = At::Text;
        self.name_len = 0;
        self.is_name_wanted = self.taking.is_none() && matches!(self.objects, 1 | 2);
    }

    fn extend_name(&mut self, part: &[u8]) {
        if !self.is_name_wanted {
            return;
        }
        match self.name.get_mut(self.name_len..self.name_len + part.len()) {
            Some(place) => {
                place.copy_from_slice(part);
                self.name_len += part.len();
            }
            None => self.is_name_wanted = false,
        }
    }

    /// Whether the object under the name that was just read is one of those sought.
    fn is_sought(&mut self, places: Places) -> bool {
        let name = self.name.get(..self.name_len).unwrap_or_default();
        let is_known = self.is_name_wanted;
        if self.objects == 1 {
            let outer = places.iter().find(|(outer, _)| is_known && outer.as_bytes() == name);
            self.outer = outer.map_or("", |(outer, _)| outer);
        }
        let around = if self.objects == 1 { "" } else { self.outer };
        is_known
            && (self.objects == 1 || !around.is_empty())
            && places.iter().any(|(outer, inner)| *outer == around && inner.as_bytes() == name)
    }

    fn take_down(&mut self, part: &[u8], on_object: &mut dyn FnMut(&[u8])) {
        if self.taken.len() + part.len() <= USAGE_BYTES_MAX {
            self.taken.extend_from_slice(part);
        } else {
            // More than any upstream counts.
            self.taking = None;
        }
        if self.at == At::Outside && self.taking == Some(self.objects) {
            on_object(&self.taken);
            self.taking = None;
        }
        if self.taking.is_none() {
            self.taken.clear();
        }
    }
}

/// The form in which a document comes.
#[derive(Debug)]
pub enum Form {
    /// Not seen yet, or only its BOM.
    Unknown,
    /// As it is.
    Bare,
    /// As a server-sent event: the lines named `data` hold it.
    Lines(Line),
    /// It is none: sound, a page, plain text.
    Other,
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy)]
pub enum Line {
    /// So many bytes are those of `data:`.
    Start(usize),
    Data,
    Other,
}

const DATA: &[u8] = b"data:";

impl Form {
    /// Hands on what of the next bytes belongs to the document.
    pub fn each(&mut self, bytes: &[u8], on_piece: &mut dyn FnMut(&[u8])) {
        if let Form::Unknown = self {
            let is_first = |byte: &&u8| !byte.is_ascii_whitespace() && ![0xEF, 0xBB, 0xBF].contains(*byte);
            *self = match bytes.iter().find(is_first) {
                None => return,
                Some(b'{' | b'[') => Form::Bare,
                Some(first) if first.is_ascii_lowercase() => Form::Lines(Line::Start(0)),
                Some(_) => Form::Other,
            };
        }
        match self {
            Form::Bare => on_piece(bytes),
            Form::Lines(line) => *line = line.each(bytes, on_piece),
            Form::Unknown | Form::Other => {}
        }
    }
}

impl Line {
    fn each(self, bytes: &[u8], on_piece: &mut dyn FnMut(&[u8])) -> Line {
        let mut line = self;
        let mut rest = bytes;
        while let Some(first) = rest.first().copied() {
            line = match line {
                Line::Start(_) if matches!(first, b'\n' | b'\r') => {
                    rest = rest.get(1..).unwrap_or_default();
                    Line::Start(0)
                }
                Line::Start(len) if DATA.get(len) == Some(&first) => {
                    rest = rest.get(1..).unwrap_or_default();
                    if len + 1 == DATA.len() { Line::Data } else { Line::Start(len + 1) }
                }
                Line::Start(_) => Line::Other,
                Line::Data | Line::Other => {
                    let len = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    let (content, next) = rest.split_at(len);
                    if let Line::Data = line {
                        on_piece(content);
                    }
                    rest = next;
                    if rest.is_empty() { line } else { Line::Start(0) }
                }
            };
        }
        line
    }
}

#[cfg(test)]
mod tests;
