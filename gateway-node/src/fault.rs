//! What an upstream did wrong, judged once: its class, and what the walk and the caller need to know
//! beside it. What follows from a class is `common::class`'s matter.

use std::fmt;
use std::time::Duration;

use common::class::FailureClass;
use common::limits::ERROR_MESSAGE_BYTES_MAX;
use common::walk::{Failure, Reason};

/// The ending of an attempt that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Decides what happens next.
    pub class: FailureClass,
    /// What the class alone does not tell.
    pub reason: Reason,
    /// The upstream's HTTP status, or that of an error inside a 200. For `bad_request` always one that may
    /// be shown to the caller.
    pub status: Option<u16>,
    /// How long the upstream asks us to stay away, as it said it.
    pub retry_after: Option<Duration>,
    /// It is certain that the upstream did not take the request on, so that it may be sent elsewhere whatever it asks for.
    pub is_untaken: bool,
    /// The upstream's own words, without secrets. Shown to callers for `bad_request` alone.
    pub detail: Option<Detail>,
    /// What a channel's own rules are held against; none where the upstream said nothing.
    pub said: Option<Box<Said>>,
}

/// An upstream's error as it came, before it was judged. For nobody's eyes: the message may repeat a prompt.
#[derive(Clone, PartialEq, Eq)]
pub struct Said {
    /// HTTP status of the answer, or of the error inside a 200.
    pub status: Option<u16>,
    /// Its `code`, `type` and whatever else names it.
    pub names: Vec<String>,
    /// Its `message`.
    pub message: String,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Said(…)")
    }
}

impl Fault {
    /// A fault of which nothing but its class is known.
    pub fn of(class: FailureClass) -> Self {
        Fault {
            class,
            reason: Reason::Plain,
            status: None,
            retry_after: None,
            is_untaken: false,
            detail: None,
            said: None,
        }
    }

    /// What the walk is told of it.
    pub fn failure(&self) -> Failure {
        let Fault { class, reason, status, is_untaken, .. } = *self;
        Failure { class, reason, status, is_untaken }
    }

    /// The same with the upstream's status.
    pub fn with_status(self, status: u16) -> Self {
        Fault { status: Some(status), ..self }
    }

    /// The same with a reason.
    pub fn with_reason(self, reason: Reason) -> Self {
        Fault { reason, ..self }
    }

    /// The same with the upstream's hint.
    pub fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Fault { retry_after, ..self }
    }

    /// The same where it is known whether the upstream took the request on.
    pub fn with_untaken(self, is_untaken: bool) -> Self {
        Fault { is_untaken, ..self }
    }

    /// The same with the upstream's words.
    pub fn with_detail(self, detail: Option<Detail>) -> Self {
        Fault { detail, ..self }
    }

    /// The same with what a channel's own rules are held against.
    pub fn with_said(self, said: Said) -> Self {
        Fault { said: Some(Box::new(said)), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.as_str())?;
        if self.reason != Reason::Plain {
            write!(f, " ({})", self.reason.as_str())?;
        }
        if let Some(status) = self.status {
            write!(f, ", status {status}")?;
        }
        Ok(())
    }
}

/// The upstream's words about a fault: cut to a limit, secrets taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// What it says.
    pub message: String,
    /// The `type` in the OpenAI dialects.
    pub kind: Option<String>,
    /// Its code; numbers as text.
    pub code: Option<String>,
    /// The parameter that it is about.
    pub param: Option<String>,
}

impl Detail {
    /// Keeps what may be kept of the upstream's words.
    pub fn new(message: &str, kind: Option<&str>, code: Option<&str>, param: Option<&str>) -> Self {
        let short = |text: &str| keep(text, NAME_BYTES_MAX);
        Detail {
            message: keep(message, ERROR_MESSAGE_BYTES_MAX),
            kind: kind.map(short),
            code: code.map(short),
            param: param.map(short),
        }
    }
}

/// Types, codes and parameters are names, not texts.
const NAME_BYTES_MAX: usize = 128;

/// Stands for what was taken out.
pub const REDACTED: &str = "[redacted]";

fn keep(text: &str, max: usize) -> String {
    let mut kept = redact(text);
    if kept.len() > max {
        let end = (0..=max).rev().find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
        kept.truncate(end);
    }
    kept
}

/// Takes out what looks like a credential or like the name of an upstream's account.
fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    let mut rest = text;
    while !rest.is_empty() {
        let word_len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(word_len);
        let gap_len = tail.find(is_word).unwrap_or(tail.len());
        let (gap, tail) = tail.split_at(gap_len);
        let names_secret = NAMES.iter().any(|n| before.eq_ignore_ascii_case(n)) && looks_random(word);
        out.push_str(if names_secret || has_secret_prefix(word) { REDACTED } else { word });
        out.push_str(gap);
        // `Bearer x`, `key: x`, `key=x`, `"api_key":"x"`: the name is the word right before the value.
        if !word.is_empty() {
            before = word;
        }
        rest = tail;
    }
    out
}

/// Words after which a credential stands.
const NAMES: [&str; 10] = [
    "bearer",
    "basic",
    "key",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "x-api-key",
    "secret",
    "access_token",
];

/// How keys of known vendors, and the ids of the accounts that they belong to, begin.
const PREFIXES: [&str; 12] =
    ["sk-", "sk_", "pk-", "gsk_", "xai-", "AIza", "hf_", "r8_", "nvapi-", "org-", "proj_", "ya29."];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '+' | '/' | '~')
}

fn has_secret_prefix(word: &str) -> bool {
    // Also as a part of an address, and masked or shortened (`sk-abc***`): what is left of it is still part of a secret.
    let starts =
        word.char_indices().filter(|(_, c)| matches!(c, '.' | '*' | '/' | '+' | '~')).map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).any(|at| {
        let word = word.get(at..).unwrap_or_default();
        word.len() >= 8
            && PREFIXES.iter().any(|p| word.starts_with(p))
            && word.contains(|c: char| !c.is_ascii_lowercase() && c != '-')
    })
}

fn looks_random(word: &str) -> bool {
    word.len() >= 8 && word.contains(|c: char| c.is_ascii_digit() || c == '*' || c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_an_upstreams_words() {
        for (said, kept) in [
            ("Incorrect API key provided: sk-abcd1234efgh.", "Incorrect API key provided: [redacted]"),
            ("Incorrect API key provided: sk-proj-****wxyz", "Incorrect API key provided: [redacted]"),
            ("header was 'Bearer eyJhbGciOi.J9'", "header was 'Bearer [redacted]'"),
            ("GET /v1?key=AIzaSyA1234567&alt=sse", "GET /v1?key=[redacted]&alt=sse"),
            ("no route for /keys/sk-live-Abcdefgh12/models", "no route for [redacted]"),
            ("{\"api_key\":\"0123456789abcdef\"}", "{\"api_key\":\"[redacted]\"}"),
            ("limit of organization org-AbC123456 on tokens", "limit of organization [redacted] on tokens"),
            (
                "a task-force of risk-takers needs a token of love",
                "a task-force of risk-takers needs a token of love",
            ),
            ("the Bearer scheme is needed", "the Bearer scheme is needed"),
            ("grüße, 世界", "grüße, 世界"),
        ] {
            assert_eq!(Detail::new(said, None, None, None).message, kept);
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let detail = Detail::new(&"世".repeat(2000), Some(&"k".repeat(500)), None, None);
        assert!(detail.message.len() <= ERROR_MESSAGE_BYTES_MAX);
        assert!(detail.message.chars().all(|c| c == '世'));
        assert_eq!(detail.kind.unwrap().len(), NAME_BYTES_MAX);
    }

    #[test]
    fn a_fault_reads_alone() {
        let fault = Fault::of(FailureClass::RateLimited).with_status(429).with_reason(Reason::SingleRequest);
        assert_eq!(fault.to_string(), "rate_limited (single_request), status 429");
        assert_eq!(Fault::of(FailureClass::Empty).to_string(), "empty");
    }
}
