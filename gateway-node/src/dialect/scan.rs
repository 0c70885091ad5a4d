//! Finds `model` and `stream` in a request body without building a tree. The body stays bytes; what is found
//! are the places of the names, so that the splice changes nothing else.

use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::splice::Form;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// The public name of the model.
    pub model: String,
    /// Where it stands in the body, quotes included; more than once if the key is repeated.
    pub model_spans: Vec<Range<usize>>,
    /// How it is said there.
    pub model_form: Form,
    /// Whether the answer shall be a stream.
    pub stream: bool,
    /// Where the values of `stream_options` stand.
    pub stream_options: Vec<Range<usize>>,
    /// Whether the answer shall be words, where it is a JSON document else.
    pub wants_text: bool,
}

/// Why a body is not a request; the text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanFault {
    /// No bytes, or blanks only.
    #[error("the request body is empty")]
    Empty,
    /// Not one JSON object.
    #[error("the request body is not valid JSON: {0}")]
    Json(String),
    /// There is no `model`.
    #[error("the request body has no \"model\"")]
    NoModel,
    /// A member is there and is not what it must be.
    #[error("\"{param}\" must be {must} ({place})")]
    Member {
        /// Which one.
        param: &'static str,
        /// What it must be.
        must: &'static str,
        /// Where it stands.
        place: Place,
    },
    /// A member asks for what this version does not do.
    #[error("\"{param}\" is not served: {reason}")]
    NotServed {
        /// Which one.
        param: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A member is there more than once, and it is not clear which one is meant.
    #[error("\"{param}\" stands in the request body twice with different values ({place})")]
    Contradiction {
        /// Which one.
        param: &'static str,
        /// Where the later one stands.
        place: Place,
    },
    /// The content type does not say how the body is to be read.
    #[error("the content-type {0}")]
    Type(&'static str),
    /// Not a form as its content type says.
    #[error("the request body is not valid multipart/form-data: {what} ({place})")]
    Form {
        /// What is wrong.
        what: &'static str,
        /// Where.
        place: Place,
    },
}

/// A place in a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Of a JSON document.
    Line {
        /// Counted from 1.
        line: usize,
        /// In bytes, counted from 1.
        column: usize,
    },
    /// Of a form.
    Part {
        /// Counted from 1; 0 is what stands in front of the first.
        part: usize,
        /// Counted from 0, from the start of the body.
        byte: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { line, column } => write!(f, "line {line}, column {column}"),
            Place::Part { part: 0, byte } => write!(f, "byte {byte}"),
            Place::Part { part, byte } => write!(f, "part {part}, byte {byte}"),
        }
    }
}

/// Finds what the walk needs to know of a request.
pub fn scan(body: &[u8]) -> Result<Scanned, ScanFault> {
    scan_or(body, None)
}

/// The same of a request that means the model `unnamed` where it names none.
pub fn scan_or(body: &[u8], unnamed: Option<&str>) -> Result<Scanned, ScanFault> {
    if body.trim_ascii().is_empty() {
        return Err(ScanFault::Empty);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let members =
        deserializer.deserialize_map(Members::default()).map_err(|e| ScanFault::Json(e.to_string()))?;
    deserializer.end().map_err(|e| ScanFault::Json(e.to_string()))?;

    let mut model: Option<String> = None;
    let mut model_spans = Vec::with_capacity(members.model.len());
    for raw in members.model {
        let span = span(body, raw.get());
        let name = serde_json::from_str::<String>(raw.get()).ok().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| member(body, "model", "a string that is not empty", span.start))?;
        if model.as_ref().is_some_and(|first| *first != name) {
            return Err(contradiction(body, "model", span.start));
        }
        model = Some(name);
        model_spans.push(span);
    }

    let mut stream: Option<bool> = None;
    for raw in members.stream {
        let at = span(body, raw.get()).start;
        let value = match raw.get() {
            "true" => true,
            "false" | "null" => false,
            _ => return Err(member(body, "stream", "true or false", at)),
        };
        if stream.is_some_and(|first| first != value) {
            return Err(contradiction(body, "stream", at));
        }
        stream = Some(value);
    }

    let stream = stream.unwrap_or(false);
    let stream_options = members.stream_options.into_iter().map(|raw| span(body, raw.get())).collect();
    if let Some(model) = model {
        let model_form = Form::String;
        return Ok(Scanned { model, model_spans, model_form, stream, stream_options, wants_text: false });
    }
    let model = unnamed.ok_or(ScanFault::NoModel)?.to_owned();
    // The body is an object: its brace is the first one.
    let first = memchr::memchr(b'{', body).map_or(0, |brace| brace + 1);
    let is_only = body.get(first..).unwrap_or_default().trim_ascii_start().starts_with(b"}");
    Ok(Scanned {
        model,
        model_spans: std::iter::once(first..first).collect(),
        model_form: Form::Missing { is_only },
        stream,
        stream_options,
        wants_text: false,
    })
}

/// Where a value stands: it was borrowed from the body.
pub(super) fn span(body: &[u8], raw: &str) -> Range<usize> {
    let start = (raw.as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    start..start + raw.len()
}

/// A fault of the member that stands at `at`.
pub(super) fn member(body: &[u8], param: &'static str, must: &'static str, at: usize) -> ScanFault {
    ScanFault::Member { param, must, place: place(body, at) }
}

fn contradiction(body: &[u8], param: &'static str, at: usize) -> ScanFault {
    ScanFault::Contradiction { param, place: place(body, at) }
}

fn place(body: &[u8], at: usize) -> Place {
    let before = body.get(..at).unwrap_or(body);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1;
    Place::Line { line, column }
}

#[derive(Default)]
struct Members<'de> {
    model: Vec<&'de RawValue>,
    stream: Vec<&'de RawValue>,
    stream_options: Vec<&'de RawValue>,
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(key) = map.next_key_seed(KeySeed)? {
            match key {
                Key::Model => self.model.push(map.next_value()?),
                Key::Stream => self.stream.push(map.next_value()?),
                Key::StreamOptions => self.stream_options.push(map.next_value()?),
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(self)
    }
}

enum Key {
    Model,
    Stream,
    StreamOptions,
    Other,
}

/// Decodes a member's name, escapes included, without keeping it.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        // As bytes: a member whose name is not valid UTF-8 is the upstream's to judge.
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<Key, E> {
        Ok(match name {
            b"model" => Key::Model,
            b"stream" => Key::Stream,
            b"stream_options" => Key::StreamOptions,
            _ => Key::Other,
        })
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Key, E> {
        self.visit_bytes(name.as_bytes())
    }
}

#[cfg(test)]
mod tests;
