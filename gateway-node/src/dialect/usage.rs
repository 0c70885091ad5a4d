//! What an answer used, as its upstream counts it: found in events and in whole answers of every dialect as their
//! bytes go by, without a tree or a copy of them, and brought to one meaning. Pure.
//!
//! | question | file |
//! | --- | --- |
//! | where in a document does a usage object stand | [`find`] |
//! | what do its members mean | [`meaning`] |
//!
//! The last object that says anything wins: `null`, `{}` and zeros never take back what was known.

mod find;
mod meaning;

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::sse::Event;
use find::{Find, Form};

/// What was used. Parts stand inside their whole: what was cached is input too, what was reasoned is output too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that went in.
    pub input: u64,
    /// Those of them that the upstream had cached.
    pub cached_input: u64,
    /// Those of them that it wrote into its cache.
    pub cache_write: u64,
    /// Tokens that came out.
    pub output: u64,
    /// Those of them that were reasoned and perhaps not shown.
    pub reasoning: u64,
    /// Searches, where those are counted.
    pub searches: u64,
    /// Milliseconds of audio, where its length is what counts.
    pub audio_ms: u64,
}

/// What of an answer there is to account for, at its end or where it broke off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spent {
    /// Nothing was delivered, or what was costs nothing.
    #[default]
    Nothing,
    /// Something was delivered, and its upstream did not say what it used.
    Unreported,
    /// What the upstream said. Of an answer that broke off it is what was known by then.
    Reported(Usage),
}

/// Where the answers of a dialect say what they used.
#[derive(Debug)]
pub struct Reader {
    /// The member that holds it, with the name of the member around that; `""` at the top. Arrays do not count.
    places: &'static [(&'static str, &'static str)],
    /// What an object says, given what was known before.
    read: fn(&[u8], &Usage) -> Usage,
    /// Whether an answer that says nothing of it lacks something.
    is_expected: bool,
}

/// Chat and legacy completions. Groq has it under a member of its own, Moonshot in the choice.
pub const CHAT: Reader =
    Reader { places: &[("", "usage"), ("x_groq", "usage"), ("choices", "usage")], ..TOP };

/// Responses: in the response of a terminal event, or of a whole answer.
pub const RESPONSES: Reader = Reader { places: &[("", "usage"), ("response", "usage")], ..TOP };

/// Messages: the input where the message begins, the rest where it ends.
pub const MESSAGES: Reader =
    Reader { places: &[("", "usage"), ("message", "usage")], read: meaning::anthropic, ..TOP };

/// Google's own API.
pub const GEMINI: Reader = Reader { places: &[("", "usageMetadata")], read: meaning::gemini, ..TOP };

/// What OpenAI has beside chat: at the top of the answer, or of the last event.
pub const TOP: Reader = Reader { places: &[("", "usage")], read: meaning::openai, is_expected: true };

/// Rankings: Cohere counts searches, others tokens.
pub const RANKING: Reader = Reader { places: &[("", "usage"), ("", "meta")], ..TOP };

/// Of answers that have no place to say it: sound and words.
pub const UNSAID: Reader = Reader { places: &[], ..TOP };

/// Of answers that cost nothing.
pub const NONE: Reader = Reader { places: &[], is_expected: false, ..TOP };

/// Reads what one answer used while it goes by.
#[derive(Debug)]
pub struct Reading {
    reader: &'static Reader,
    usage: Usage,
    find: Find,
    /// The event or document that is looked at piece by piece.
    form: Option<Form>,
}

impl Reading {
    /// Nothing was seen yet.
    pub fn new(reader: &'static Reader) -> Self {
        Reading { reader, usage: Usage::default(), find: Find::new(), form: None }
    }

    /// What there is to account for of an answer of which this much was delivered.
    pub fn spent(&self) -> Spent {
        match self.usage {
            usage if usage != Usage::default() => Spent::Reported(usage),
            _ if self.reader.is_expected => Spent::Unreported,
            _ => Spent::Nothing,
        }
    }

    /// Takes an event of a stream; `part` is as much of it as lies in the chunk that completed it. Nearly every event
    /// ends with one search.
    pub fn on_event(&mut self, event: &Event<'_>, part: &[u8]) {
        if self.form.is_some() || event.is_opaque {
            // It began in an earlier chunk, or is too large to be kept.
            self.take(part);
            self.form = None;
        } else if may_say(&event.data) {
            self.take(event.data.trim_ascii_start());
            self.form = None;
        }
    }

    /// Takes the part that a chunk has of an event which has no end yet.
    pub fn on_begun(&mut self, part: &[u8]) {
        if !part.is_empty() {
            self.take(part);
        }
    }

    /// Takes the next bytes of an answer that is no stream.
    pub fn on_bytes(&mut self, bytes: &[u8]) {
        self.take(bytes);
    }

    fn take(&mut self, part: &[u8]) {
        let Reading { reader, usage, find, form } = self;
        if reader.places.is_empty() {
            return;
        }
        let form = form.get_or_insert_with(|| {
            find.restart();
            Form::Unknown
        });
        form.each(part, &mut |piece| {
            find.push(piece, reader.places, &mut |object| *usage = (reader.read)(object, usage));
        });
    }
}

/// The start of the name in every dialect. Prepared once: it is sought in every event.
static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage"));

/// Whether there is an object under such a name. Most streams that have the name have `null` under it.
pub(super) fn may_say(data: &[u8]) -> bool {
    NAME.find_iter(data).any(|at| {
        let rest = data.get(at + NAME.needle().len()..).unwrap_or_default();
        let rest = rest.strip_prefix(b"Metadata").unwrap_or(rest);
        let value =
            rest.strip_prefix(b"\"").map(<[u8]>::trim_ascii_start).and_then(|rest| rest.strip_prefix(b":"));
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
    })
}

#[cfg(test)]
mod tests;
