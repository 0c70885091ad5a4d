//! What a dialect must tell the data plane, as one table of functions per dialect. All of them are pure:
//! bytes in, judgement or bytes out. A further dialect is one more file, and rows in the table of [`operation`].
//!
//! | question | file |
//! | --- | --- |
//! | which path asks for what, of which dialect | [`operation`]; what of the query goes up: [`query`]; names in both: [`percent`] |
//! | which model, and is it a stream | [`scan`] (JSON), [`multipart`] (forms), [`gemini::body`]; another name in its place: [`splice`] |
//! | where does an event of a stream end | [`sse`], or [`elements`] of one JSON array |
//! | what does an event or a whole answer mean | the [`Rules`] of [`openai_chat`] (and [`openai_completions`]), [`openai_responses`], [`openai_images`], [`openai_audio`], [`anthropic_messages`], [`gemini`]; of what is one document: [`json_answer`]; of what has an id: [`named`] |
//! | which id does an answer give to what it made | [`made`] |
//! | what does an error say | [`parts`], found by [`openai_error`]; what follows from it: `upstream::classify` |
//! | what did an answer use | [`usage`]; asked for in a stream: [`ask_usage`] |
//! | how is JSON read without a tree | `fields`, `json` |

pub mod anthropic_messages;
pub mod ask_usage;
pub mod elements;
mod fields;
pub mod gemini;
pub(crate) mod json;
pub mod json_answer;
pub mod made;
pub mod multipart;
pub mod named;
pub mod openai_audio;
pub mod openai_chat;
pub mod openai_completions;
pub mod openai_error;
pub mod openai_images;
pub mod openai_responses;
pub mod operation;
pub mod parts;
pub mod percent;
pub mod query;
pub mod scan;
pub mod splice;
pub mod sse;
pub mod usage;

use bytes::Bytes;
use common::class::FailureClass;
use serde_json::Value;

use crate::fault::Fault;
use crate::upstream::credential::Auth;
use parts::Parts;

/// The rules of one dialect.
#[derive(Debug)]
pub struct Rules {
    /// Where a channel's credential goes unless the channel says otherwise.
    pub auth: Auth,
    /// Headers that an upstream wants where the caller did not send them.
    pub headers: &'static [(&'static str, &'static str)],
    /// Judges an event of a stream of which nothing decisive was seen yet.
    pub judge: fn(&sse::Event<'_>) -> Verdict,
    /// Judges a complete answer that is no stream; `Hold` is never its verdict.
    pub judge_whole: fn(&[u8]) -> Verdict,
    /// Says what an event means for a stream that the caller already sees.
    pub observe: fn(&sse::Event<'_>) -> After,
    /// Finds an error in a JSON document, in all the shapes that upstreams of this dialect are known to use.
    pub find_error: fn(&Value) -> Option<Parts>,
    /// Where an answer says what it used.
    pub usage: &'static usage::Reader,
    /// Writes an error answer of ours.
    pub error_body: fn(&ErrorBody<'_>) -> Bytes,
    /// Writes the frame that ends a stream which broke off, such that the SDKs raise. Takes the request id.
    pub closing_frame: fn(&str) -> Bytes,
}

/// What an event says about a stream that is still held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Proves nothing: preamble.
    Hold,
    /// The answer has begun.
    Content,
    /// A lawful end, perhaps of an empty answer.
    End,
    /// The attempt failed.
    Error(Box<Fault>),
}

impl Verdict {
    /// The attempt failed, and more than its class is not known.
    pub fn failed(class: FailureClass) -> Self {
        Verdict::Error(Box::new(Fault::of(class)))
    }
}

/// What an event says about a stream that the caller already sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Goes on.
    Ordinary,
    /// A lawful finish was announced: from here on the end of the body is a clean one.
    Finish,
    /// The terminal frame.
    Done,
    /// An error frame that the dialect's SDKs raise.
    Raises,
    /// A failure that the SDKs take for an ordinary event.
    FailedQuietly,
    /// What SDKs take for the end, though it is none of the dialect's: a clean one only behind a finish.
    Ends,
}

/// An error answer of ours, before a dialect gives it its shape.
#[derive(Debug, Clone, Copy)]
pub struct ErrorBody<'a> {
    /// The HTTP status that it goes with.
    pub status: u16,
    /// For people.
    pub message: &'a str,
    /// The `type` in the OpenAI dialects.
    pub kind: &'a str,
    /// Stable, for programs.
    pub code: &'a str,
    /// The parameter at fault.
    pub param: Option<&'a str>,
    /// Our id of the request.
    pub request_id: &'a str,
}
