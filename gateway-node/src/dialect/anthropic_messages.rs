//! Messages, as Anthropic and those that imitate it send them: what an event proves, what an error looks like, and
//! what of ours their SDKs understand. Unknown things count as content: a healthy new feature is never held back.
//!
//! The SDKs read the `event:` line and nothing else: an event without one is not there for them, be it an error.

use std::sync::LazyLock;

use bytes::Bytes;
use common::class::FailureClass as F;
use common::code::Code;
use memchr::memmem::Finder;
use serde::Serialize;
use serde_json::{Map, Value};

use super::json::{is_error_event, is_failure, is_something, read, trimmed};
use super::parts::Parts;
use super::sse::Event;
use super::{After, ErrorBody, Rules, Verdict, fields, json_answer, openai_error, usage};
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// The rules of `POST /v1/messages`.
pub const RULES: Rules = Rules {
    auth: Auth::XApiKey,
    headers: &[("anthropic-version", "2023-06-01")],
    judge,
    judge_whole,
    observe,
    find_error,
    usage: &usage::MESSAGES,
    error_body,
    closing_frame,
};

/// The rules of `POST /v1/messages/count_tokens`, whose answer is a number.
pub const COUNT_TOKENS: Rules = Rules { judge_whole: judge_count, usage: &usage::NONE, ..RULES };

fn judge(event: &Event<'_>) -> Verdict {
    let data = event.data.trim_ascii();
    if is_error_event(event) {
        return failed(&named_error(data));
    }
    if event.is_opaque {
        return Verdict::Content;
    }
    if data.is_empty() {
        return Verdict::Hold;
    }
    // No frame of this dialect; relays put it behind what they translate.
    if openai_error::is_done(data) {
        return Verdict::failed(F::Empty);
    }
    let Some(document) = read(data) else { return Verdict::failed(F::Malformed) };
    match &document {
        Value::Null => Verdict::Hold,
        Value::Object(map) => judge_event(map, event),
        _ => find_error(&document).map_or(Verdict::Content, |parts| failed(&parts)),
    }
}

fn judge_event(map: &Map<String, Value>, event: &Event<'_>) -> Verdict {
    let kind = kind(map, event);
    if let Some(error) = openai_error::find_member(map, is_event(kind)) {
        return failed(&Parts::of(error, Some(map)));
    }
    let member = |name: &str| map.get(name).and_then(Value::as_object);
    match kind {
        "ping" | "content_block_stop" => Verdict::Hold,
        "message_start" => {
            let content = member("message").and_then(|message| message.get("content"));
            if content.is_some_and(is_something) { Verdict::Content } else { Verdict::Hold }
        }
        "content_block_start" => judge_part(member("content_block"), &["text", "thinking"]),
        "content_block_delta" => judge_part(member("delta"), &DELTAS),
        "message_delta" => match member("delta").and_then(stop_reason) {
            Some(reason) if is_failure(reason) => Verdict::failed(F::UpstreamError),
            Some(_) => Verdict::End,
            None => Verdict::Hold,
        },
        // With a reason to stop before it, the gate would be open.
        "message_stop" => Verdict::failed(F::Empty),
        _ if openai_error::is_flat(map) => failed(&Parts::of_map(map)),
        _ => Verdict::Content,
    }
}

/// The kinds of deltas that may be empty.
const DELTAS: [&str; 5] =
    ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"];

/// Judges a block or delta: of the kinds that may be empty it has to say something, any other is content itself.
fn judge_part(part: Option<&Map<String, Value>>, may_be_empty: &[&str]) -> Verdict {
    let Some(part) = part else { return Verdict::Hold };
    let is_known = part.get("type").and_then(Value::as_str).is_none_or(|kind| may_be_empty.contains(&kind));
    let says_something = || part.iter().any(|(name, value)| name != "type" && is_something(value));
    if is_known && !says_something() { Verdict::Hold } else { Verdict::Content }
}

/// What an event is: its JSON says so, else its `event:` line.
fn kind<'a>(map: &'a Map<String, Value>, event: &'a Event<'_>) -> &'a str {
    let name = || event.name.and_then(|name| std::str::from_utf8(name.trim_ascii()).ok());
    map.get("type").and_then(Value::as_str).or_else(name).unwrap_or_default()
}

/// Whether it is one of the events of a message, or a ping.
fn is_event(kind: &str) -> bool {
    kind == "ping" || kind.starts_with("message_") || kind.starts_with("content_block_")
}

fn stop_reason(map: &Map<String, Value>) -> Option<&str> {
    map.get("stop_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty())
}

/// What an event named `error` says, also where it is no JSON.
fn named_error(data: &[u8]) -> Parts {
    match read(data) {
        Some(document) => find_error(&document).unwrap_or_default(),
        None => Parts::of_text(&String::from_utf8_lossy(data)),
    }
}

fn judge_whole(body: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    let Ok([kind, error, content, reason]) =
        fields::object(&text, ["type", "error", "content", "stop_reason"])
    else {
        return judge_unanswered(&text);
    };
    let reason = reason.and_then(|reason| serde_json::from_str::<String>(reason).ok());
    let reason = reason.filter(|reason| !reason.is_empty());
    // A message may lawfully have no content, but not without a reason to stop.
    let is_message = kind != Some("\"error\"")
        && fields::is_null(error)
        && (content.is_some_and(fields::is_filled_array) || reason.is_some());
    match reason {
        _ if !is_message => judge_unanswered(&text),
        Some(reason) if is_failure(&reason) => Verdict::failed(F::UpstreamError),
        _ => Verdict::Content,
    }
}

fn judge_count(body: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    match fields::object(&text, ["error", "input_tokens"]) {
        Ok([error, Some(count)]) if fields::is_null(error) && count.parse::<u64>().is_ok() => {
            Verdict::Content
        }
        _ => judge_unanswered(&text),
    }
}

fn judge_unanswered(body: &str) -> Verdict {
    json_answer::unanswered(body, find_error, |_| false)
}

fn observe(event: &Event<'_>) -> After {
    // The SDKs raise at its name, whatever is in it.
    if is_error_event(event) {
        return After::Raises;
    }
    if event.is_opaque {
        return After::Ordinary;
    }
    let data = event.data.trim_ascii();
    // Nearly every event ends here: two searches, no parse, no allocation.
    if ERROR.find(data).is_none() && STOP.find(data).is_none() && event.name != Some(b"message_stop") {
        return After::Ordinary;
    }
    let Some(document) = read(data) else { return After::Ordinary };
    let Some(map) = document.as_object() else { return After::Ordinary };
    let kind = kind(map, event);
    if openai_error::find_member(map, is_event(kind)).is_some() {
        return After::FailedQuietly;
    }
    let reason = || map.get("delta").and_then(Value::as_object).and_then(stop_reason);
    match kind {
        "message_stop" => After::Done,
        "message_delta" if reason().is_some_and(is_failure) => After::FailedQuietly,
        kind if !is_event(kind) && openai_error::is_flat(map) => After::FailedQuietly,
        _ => After::Ordinary,
    }
}

/// The end of every member, kind or reason that can mean a failure. Prepared once: it is sought in every event.
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"error\""));

static STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"message_stop\""));

fn find_error(document: &Value) -> Option<Parts> {
    let parts = openai_error::find(document, |map| map.get("content").is_some_and(is_something))?;
    let is_the_callers = parts.kind.as_deref() == Some("not_found_error") && is_named_by_request(&parts);
    let param = if is_the_callers { Some("id".to_owned()) } else { parts.param };
    Some(Parts { param, ..parts })
}

/// Whether what is missing is a file, a container or the like that the request names, and not the model or the path.
fn is_named_by_request(parts: &Parts) -> bool {
    // Not what is quoted: an id is what its caller calls it.
    let message = classify::unquoted(parts.message.trim().trim_end_matches('.'));
    !message.is_empty() && message != "not found" && !message.contains("model")
}

fn failed(parts: &Parts) -> Verdict {
    Verdict::Error(Box::new(classify::error_value(parts)))
}

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    error: ErrorMembers<'a>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct ErrorMembers<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
    code: &'a str,
}

fn error_body(error: &ErrorBody<'_>) -> Bytes {
    let ErrorBody { message, code, request_id, .. } = *error;
    let members = ErrorMembers { kind: error_kind(error), message, code };
    // Strings always have a JSON form.
    serde_json::to_vec(&Envelope { kind: "error", error: members, request_id }).unwrap_or_default().into()
}

/// The name that Anthropic has for an error of ours.
fn error_kind(error: &ErrorBody<'_>) -> &'static str {
    let is = |code: Code| error.code == code.as_str();
    match error.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ if is(Code::UpstreamOverloaded) || is(Code::GatewayOverloaded) => "overloaded_error",
        _ => "api_error",
    }
}

fn closing_frame(request_id: &str) -> Bytes {
    let code = Code::UpstreamStreamError;
    let (kind, name) = (code.kind(), code.as_str());
    let error =
        ErrorBody { status: code.status(), message: code.text(), kind, code: name, param: None, request_id };
    // Without the `event:` line the SDKs would not see it.
    [b"event: error\ndata: ", &error_body(&error)[..], b"\n\n"].concat().into()
}

#[cfg(test)]
mod tests;
