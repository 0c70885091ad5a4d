//! The frames, each with what it says: the tables of what upstreams are known to send, in our own words.

mod openai;
mod vendors;

use super::{Held, Seeing};
use openai::{CHAT, IMAGES, RESPONSES};
use vendors::{GEMINI, MESSAGES};

/// A frame and its meaning.
#[derive(Debug)]
pub(super) struct Row {
    /// With LF as line ends.
    pub(super) frame: &'static str,
    pub(super) held: Held,
    pub(super) seeing: Seeing,
}

const fn row(frame: &'static str, held: Held, seeing: Seeing) -> Row {
    Row { frame, held, seeing }
}

/// By the path of an operation at an upstream.
pub(super) const DIALECTS: [(&str, &[Row]); 5] = [
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/messages", MESSAGES),
    ("/models/m:streamGenerateContent", GEMINI),
    ("/images/generations", IMAGES),
];
