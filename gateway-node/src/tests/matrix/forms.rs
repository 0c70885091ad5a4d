//! The forms in which callers ask: an operation of a dialect, streamed or whole. Each says how it is asked for and
//! what a healthy upstream answers, in pieces. A further one is one more entry in [`list`].
//!
//! `MODEL` stands for the model's name, and `WHO` for the channel that speaks, so that bytes tell whose they are.
//! [`THING`] is the id of what one channel made before.

mod list;

/// What the by-id forms name.
pub const THING: &str = "thing_1";

/// Whom a request may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Every channel of the chain, one after the other.
    Chain,
    /// The same, but a further one only where it is certain that nobody took it: it begins work that goes on.
    Submission,
    /// The channel that made what it goes on from, and no other.
    GoesOn,
    /// The channel that made what it names, and no other.
    ById,
}

impl Way {
    /// Whether there is one channel only that could answer.
    pub fn is_bound(self) -> bool {
        matches!(self, Way::GoesOn | Way::ById)
    }
}

pub use list::{CHAT, COMPLETIONS, FORMS, GEMINI, MESSAGES, RESPONSES};

use super::super::support::{Act, Script, chunk, end};
use super::says::Speech;

/// One form.
pub struct Form {
    pub dialect: &'static str,
    pub way: Way,
    pub method: &'static str,
    /// What it is called beside the dialect.
    pub name: &'static str,
    /// Where callers find it.
    pub path: &'static str,
    /// Where the upstream has it.
    pub upstream: &'static str,
    /// The request, and of what media type it is.
    pub ask: &'static str,
    pub ask_media: &'static str,
    /// Whether the caller wants a stream held to its end, by `x-sluice-gate: complete`.
    pub is_held: bool,
    /// How errors are said.
    pub speech: Speech,
    pub answer: Answer,
}

/// A healthy answer.
pub enum Answer {
    Whole(&'static str),
    /// The same, and no JSON.
    Sound(&'static str),
    Stream(Stream),
}

/// A stream, in pieces.
pub struct Stream {
    pub style: Style,
    /// Proves nothing.
    pub preamble: &'static str,
    /// The first thing that a caller can use.
    pub content: &'static str,
    /// The reason to stop, where it comes before the last frame.
    pub finish: &'static str,
    /// The last frame.
    pub last: &'static str,
    /// Whether the answer is half of one without the last frame.
    pub needs_last: bool,
    /// What follows the preamble where the answer is lawfully empty; "" where there is no such thing.
    pub nothing: &'static str,
}

/// How the events of a stream look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Data alone, and `[DONE]` behind the last.
    Chunks,
    /// Data alone, whose type says what it is, as of audio.
    Typed,
    /// Events with names, as of the Responses API and of images.
    Named,
    /// Events of Anthropic.
    Messages,
    /// Data alone, as Google sends it.
    Google,
    /// The elements of one JSON array.
    Array,
}

impl Form {
    /// The stream, where it is one.
    pub fn stream(&self) -> Option<&Stream> {
        match &self.answer {
            Answer::Stream(stream) => Some(stream),
            Answer::Whole(_) | Answer::Sound(_) => None,
        }
    }

    /// Whether it is answered by something that has no shape of its own.
    pub fn is_sound(&self) -> bool {
        matches!(self.answer, Answer::Sound(_))
    }

    /// Whether an answer may be empty: its status says that it is done.
    pub fn may_be_empty(&self) -> bool {
        self.way == Way::ById && self.method != "GET"
    }

    /// Whether it is a stream that is one JSON array.
    pub fn is_array(&self) -> bool {
        self.stream().is_some_and(|stream| stream.style == Style::Array)
    }

    /// The media type of a healthy answer.
    pub fn media(&self) -> &'static str {
        match &self.answer {
            Answer::Sound(_) if self.dialect == "openai-videos" => "video/mp4",
            Answer::Sound(_) => "audio/mpeg",
            Answer::Stream(stream) if stream.style != Style::Array => "text/event-stream",
            Answer::Whole(_) | Answer::Stream(_) => "application/json",
        }
    }

    /// What a healthy `who` sends, event by event or in one.
    pub fn pieces(&self, who: &str) -> Vec<String> {
        let pieces = match &self.answer {
            Answer::Whole(body) | Answer::Sound(body) => vec![*body],
            Answer::Stream(s) => vec![s.preamble, s.content, s.finish, s.last],
        };
        let said = pieces.into_iter().filter(|piece| !piece.is_empty());
        said.map(|piece| piece.replace("WHO", who)).collect()
    }

    /// The bytes of a healthy answer of `who`.
    pub fn good(&self, who: &str) -> String {
        self.pieces(who).concat()
    }

    /// What a healthy `who` does.
    pub fn healthy(&self, who: &str) -> Script {
        self.says(&self.pieces(who))
    }

    /// An answer of these pieces that ends as it should.
    pub fn says(&self, pieces: &[String]) -> Script {
        [self.begins(pieces), vec![end()]].concat()
    }

    /// The same, and the end is still to come.
    pub fn begins(&self, pieces: &[String]) -> Script {
        let head = vec![head(200, self.media(), "transfer-encoding: chunked\r\n")];
        [head, pieces.iter().map(|piece| chunk(piece)).collect()].concat()
    }
}

/// What an upstream says of the operator's account with every answer, and callers must never see.
pub const PRIVATE: &str = "x-should-retry: true\r\nset-cookie: session=upstream\r\nopenai-organization: org-upstream\r\nx-request-id: req_upstream\r\nx-ratelimit-limit-requests: 60\r\n";

/// The head of an answer.
pub fn head(status: u16, media: &str, more: &str) -> Act {
    let media = if media.is_empty() { String::new() } else { format!("content-type: {media}\r\n") };
    Act::Send(format!("HTTP/1.1 {status} X\r\n{media}{PRIVATE}{more}\r\n").into_bytes())
}

/// An answer in one piece.
pub fn answers(status: u16, media: &str, more: &str, body: &str) -> Script {
    let head = head(status, media, &format!("{more}content-length: {}\r\n", body.len()));
    vec![head, Act::Send(body.as_bytes().to_vec())]
}
