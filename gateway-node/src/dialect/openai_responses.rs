//! The Responses API: what its typed events prove, what its two error shapes and a failed response mean, and what
//! a request needs of what one channel has stored. Unknown events count as content: a healthy new feature is
//! never held back.

use std::sync::LazyLock;

use common::class::FailureClass as F;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json::{is_error_event, is_something, kind, name, read, trimmed};
use super::parts::{Parts, Shape};
use super::scan::{self, ScanFault, Scanned};
use super::sse::Event;
use super::{After, Rules, Verdict, fields, named, openai_error, usage};
use crate::fault::Fault;
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// The rules of the dialect.
pub const RULES: Rules = Rules {
    auth: Auth::Bearer,
    headers: &[],
    judge,
    judge_whole,
    observe,
    find_error,
    usage: &usage::RESPONSES,
    error_body: openai_error::body,
    closing_frame: openai_error::closing_event,
};

/// The rules for a response that is stored: read whole, or as the stream that it was, from its beginning or from any
/// event on. That the response has failed is what was asked for, and no failure of the asking.
/// What it used was counted when it was made.
pub const STORED: Rules = Rules {
    judge: judge_stored,
    judge_whole: named::judge_whole,
    observe: observe_stored,
    usage: &usage::NONE,
    ..RULES
};

const NO_CONVERSATION: &str = "a conversation belongs to no one model, so that no channel can be chosen for it; go on by \
                               previous_response_id, or send the whole conversation as input";

/// What a request for a response asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// What any request says.
    pub scanned: Scanned,
    /// The response that it goes on from.
    pub previous: Option<String>,
    /// Whether the channel keeps what it answers.
    pub is_stored: bool,
}

/// Finds what a request asks for; refuses what no one channel can be chosen for.
pub fn scan(body: &[u8]) -> Result<Create, ScanFault> {
    let scanned = scan::scan(body)?;
    let text = String::from_utf8_lossy(body);
    let [previous, conversation, store] =
        fields::object(&text, ["previous_response_id", "conversation", "store"])
            .map_err(|error| ScanFault::Json(error.to_string()))?;
    if !fields::is_null(conversation) {
        return Err(ScanFault::NotServed { param: "conversation", reason: NO_CONVERSATION });
    }
    let previous = match previous.filter(|raw| *raw != "null") {
        None => None,
        Some(raw) => match serde_json::from_str::<String>(raw) {
            Ok(id) if !id.is_empty() => Some(id),
            _ => {
                let at = scan::span(text.as_bytes(), raw).start;
                let must = "the id of a response, or null";
                return Err(scan::member(text.as_bytes(), "previous_response_id", must, at));
            }
        },
    };
    Ok(Create { scanned, previous, is_stored: store != Some("false") })
}

fn judge_stored(event: &Event<'_>) -> Verdict {
    let is_failed = |event: &Event<'_>| {
        name(event) == Some("response.failed")
            || read(event.data.trim_ascii())
                .is_some_and(|document| kind(event, &document) == Some("response.failed"))
    };
    match judge(event) {
        Verdict::Error(_) if is_failed(event) => Verdict::End,
        verdict => verdict,
    }
}

fn observe_stored(event: &Event<'_>) -> After {
    match observe(event) {
        After::FailedQuietly if name(event) == Some("response.failed") => After::Done,
        after => after,
    }
}

fn judge(event: &Event<'_>) -> Verdict {
    if event.is_opaque {
        return judge_opaque(event);
    }
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Verdict::Hold;
    }
    if openai_error::is_done(data) {
        return Verdict::failed(F::Empty);
    }
    let document = match read(data) {
        None => return Verdict::failed(F::Malformed),
        Some(Value::Null) => return Verdict::Hold,
        Some(document) => document,
    };
    let Value::Object(map) = &document else {
        return find_error(&document).map_or(Verdict::Content, failed);
    };
    let kind = kind(event, &document);
    if is_error_event(event) || kind == Some("error") {
        return failed(openai_error::of_event(map));
    }
    if let Some(error) = openai_error::find_member(map, kind.is_some()) {
        return failed(Parts::of(error, Some(map)));
    }
    let Some(kind) = kind else {
        return match find_error(&document).filter(|parts| parts.shape != Shape::Foreign) {
            Some(parts) => failed(parts),
            None if map.is_empty() => Verdict::Hold,
            None => Verdict::Content,
        };
    };
    judge_event(kind, map)
}

/// An event that is too large to be kept is judged by its name.
fn judge_opaque(event: &Event<'_>) -> Verdict {
    match name(event).unwrap_or_default() {
        "response.created" | "response.in_progress" | "response.queued" => Verdict::Hold,
        "response.completed" | "response.incomplete" => Verdict::End,
        "response.failed" | "error" => Verdict::failed(F::UpstreamError),
        _ => Verdict::Content,
    }
}

fn judge_event(kind: &str, map: &Map<String, Value>) -> Verdict {
    let is_said = |says: bool| if says { Verdict::Content } else { Verdict::Hold };
    let member = |name: &str| map.get(name).and_then(Value::as_object);
    match kind {
        "response.failed" => Verdict::Error(Box::new(failed_response(member("response")))),
        "response.created" | "response.in_progress" | "response.queued" => {
            verdict_of(member("response"), Verdict::Hold)
        }
        "response.completed" | "response.incomplete" => verdict_of(member("response"), Verdict::End),
        "response.output_item.added" | "response.output_item.done" => {
            is_said(member("item").is_none_or(|item| match item.get("type").and_then(Value::as_str) {
                Some("message" | "reasoning") => {
                    ["content", "summary"].iter().any(|name| has_parts(item, name))
                }
                // Work with side effects has begun.
                _ => true,
            }))
        }
        "response.content_part.added"
        | "response.content_part.done"
        | "response.reasoning_summary_part.added"
        | "response.reasoning_summary_part.done" => is_said(member("part").is_none_or(says_something)),
        "ping" | "keepalive" => Verdict::Hold,
        _ if kind.ends_with(".delta") => is_said(map.get("delta").is_none_or(is_something)),
        _ if kind.ends_with(".done") => is_said(is_done_with_something(map)),
        _ => Verdict::Content,
    }
}

/// The response in an event of its life: the verdict is `good` unless it says that it failed.
fn verdict_of(response: Option<&Map<String, Value>>, good: Verdict) -> Verdict {
    let has_failed = response.is_some_and(|response| {
        response.get("status").and_then(Value::as_str) == Some("failed")
            || openai_error::find_member(response, true).is_some()
    });
    if has_failed { Verdict::Error(Box::new(failed_response(response))) } else { good }
}

fn failed_response(response: Option<&Map<String, Value>>) -> Fault {
    match response.and_then(|response| openai_error::find_member(response, true)) {
        Some(error) => classify::error_value(&Parts::of(error, None)),
        None => Fault::of(F::UpstreamError),
    }
}

fn has_parts(item: &Map<String, Value>, name: &str) -> bool {
    let parts = item.get(name).and_then(Value::as_array);
    parts.into_iter().flatten().any(|part| part.as_object().map_or(is_something(part), says_something))
}

/// Whether a part carries more than what kind it is.
fn says_something(part: &Map<String, Value>) -> bool {
    part.iter().any(|(name, value)| name != "type" && is_something(value))
}

/// Whether what is done has come to anything. Unknown kinds have, as far as can be told.
fn is_done_with_something(map: &Map<String, Value>) -> bool {
    const SAID: [&str; 6] = ["text", "refusal", "transcript", "arguments", "input", "code"];
    let mut said = SAID.iter().filter_map(|name| map.get(*name)).peekable();
    said.peek().is_none() || said.any(is_something)
}

fn failed(parts: Parts) -> Verdict {
    Verdict::Error(Box::new(classify::error_value(&parts)))
}

fn judge_whole(body: &[u8]) -> Verdict {
    let body = trimmed(body);
    if body.is_empty() {
        return Verdict::failed(F::Empty);
    }
    let text = String::from_utf8_lossy(body);
    match fields::object(&text, ["error", "status", "output"]) {
        Ok([error, status, Some(output)]) if output.starts_with('[') => {
            let error = error.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
            let says = error.filter(raises);
            match says {
                Some(error) => failed(Parts::of(&error, None)),
                None if status == Some("\"failed\"") => Verdict::failed(F::UpstreamError),
                None => Verdict::Content,
            }
        }
        _ => judge_unanswered(&text),
    }
}

/// Judges a body without an output.
fn judge_unanswered(body: &str) -> Verdict {
    let Some(document) = read(body.as_bytes()) else { return Verdict::failed(F::Malformed) };
    match (find_error(&document), &document) {
        (Some(parts), _) => failed(parts),
        (None, Value::Object(map)) if map.get("status").and_then(Value::as_str) == Some("failed") => {
            Verdict::failed(F::UpstreamError)
        }
        (None, Value::Object(_)) => Verdict::failed(F::Empty),
        (None, _) => Verdict::failed(F::Malformed),
    }
}

fn find_error(document: &Value) -> Option<Parts> {
    openai_error::find(document, |map| map.get("output").is_some_and(Value::is_array))
}

fn observe(event: &Event<'_>) -> After {
    let name = name(event);
    if event.is_opaque {
        return match name {
            Some("response.completed" | "response.incomplete") => After::Done,
            Some("response.failed" | "error") => After::FailedQuietly,
            Some(_) => After::Ordinary,
            // It may be the last one, which holds the whole answer once more.
            None => After::Finish,
        };
    }
    let data = event.data.trim_ascii();
    if openai_error::is_done(data) {
        return After::Ends;
    }
    // Nearly every event ends here: a look at its name and a search, no parse, no allocation.
    if name.is_some_and(|name| name != "error" && !is_last(name)) && ERROR.find(data).is_none() {
        return After::Ordinary;
    }
    let Some(head) = Head::read(data) else { return After::Ordinary };
    let kind = head.kind.as_deref().or(name).unwrap_or_default();
    if head.error.as_ref().is_some_and(raises) {
        return After::Raises;
    }
    if kind == "error" || name == Some("error") {
        return After::FailedQuietly;
    }
    match kind {
        "response.failed" => After::FailedQuietly,
        "response.completed" | "response.incomplete"
            if head.response.as_ref().is_some_and(Outcome::has_failed) =>
        {
            After::FailedQuietly
        }
        "response.completed" | "response.incomplete" => After::Done,
        _ => After::Ordinary,
    }
}

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));

fn is_last(kind: &str) -> bool {
    matches!(kind, "response.completed" | "response.incomplete" | "response.failed")
}

/// Whether the SDKs raise for an `error` member.
fn raises(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_true) => *is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// What of an event matters once the caller sees the stream; the rest of it is read over.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: Option<String>,
    error: Option<Value>,
    response: Option<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    status: Option<String>,
    error: Option<Value>,
}

impl Head {
    fn read(data: &[u8]) -> Option<Head> {
        serde_json::from_slice(data).or_else(|_| serde_json::from_str(&String::from_utf8_lossy(data))).ok()
    }
}

impl Outcome {
    fn has_failed(&self) -> bool {
        self.status.as_deref() == Some("failed") || self.error.as_ref().is_some_and(raises)
    }
}

#[cfg(test)]
mod tests;
