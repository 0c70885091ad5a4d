//! Google's own API, as Gemini and Vertex speak it: `generateContent` whole, as server-sent events and as one JSON
//! array, embeddings and token counts. There is no `[DONE]`: an answer is complete when a candidate finished, or the
//! prompt was blocked, and the body then ends as it should. Unknown things count as content.

pub mod body;

use std::sync::LazyLock;

use bytes::Bytes;
use common::class::FailureClass as F;
use common::code::Code;
use memchr::memmem::Finder;
use serde::Serialize;
use serde_json::{Map, Value};

use super::json::{is_error_event, is_something, read, trimmed};
use super::parts::{Parts, Shape};
use super::sse::Event;
use super::{After, ErrorBody, Rules, Verdict, fields, json_answer, openai_error, usage};
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// The rules of generated content.
pub const RULES: Rules = Rules {
    auth: Auth::XGoogApiKey,
    headers: &[],
    judge,
    judge_whole,
    observe,
    find_error,
    usage: &usage::GEMINI,
    error_body,
    closing_frame,
};

/// The rules of embeddings.
pub const EMBEDDINGS: Rules = Rules { judge_whole: judge_embeddings, ..RULES };

/// The rules of token counts.
pub const COUNTS: Rules = Rules { judge_whole: judge_count, usage: &usage::NONE, ..RULES };

fn judge(event: &Event<'_>) -> Verdict {
    if event.is_opaque {
        return Verdict::Content;
    }
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Verdict::Hold;
    }
    let Some(message) = read(data) else { return Verdict::failed(F::Malformed) };
    let error = match &message {
        _ if is_error_event(event) => Some(find_error(&message).unwrap_or_default()),
        _ => find_error(&message).filter(|parts| parts.shape != Shape::Foreign),
    };
    match (error, &message) {
        (Some(parts), _) => Verdict::Error(Box::new(classify::error_value(&parts))),
        (None, Value::Null) => Verdict::Hold,
        (None, Value::Object(map)) => judge_message(map),
        (None, _) => Verdict::Content,
    }
}

/// Judges a message that has no error.
fn judge_message(map: &Map<String, Value>) -> Verdict {
    const SILENT: [&str; 7] = [
        "candidates",
        "promptFeedback",
        "usageMetadata",
        "modelVersion",
        "modelStatus",
        "responseId",
        "createTime",
    ];
    let is_new = |(name, value): (&String, &Value)| !SILENT.contains(&name.as_str()) && is_something(value);
    if candidates(map).any(has_content) || map.iter().any(is_new) {
        Verdict::Content
    } else if has_finished(map) {
        Verdict::End
    } else {
        Verdict::Hold
    }
}

fn candidates(map: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    map.get("candidates").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn has_content(candidate: &Map<String, Value>) -> bool {
    // What stands beside the content: where it is from, and how likely or harmful.
    const SILENT: [&str; 11] = [
        "index",
        "finishReason",
        "finishMessage",
        "safetyRatings",
        "citationMetadata",
        "groundingMetadata",
        "groundingAttributions",
        "urlContextMetadata",
        "avgLogprobs",
        "logprobsResult",
        "tokenCount",
    ];
    candidate.iter().any(|(name, value)| match value {
        Value::Object(content) if name == "content" => content.iter().any(|(name, value)| match value {
            Value::Array(parts) if name == "parts" => parts.iter().any(is_something),
            _ => name != "role" && is_something(value),
        }),
        _ => !SILENT.contains(&name.as_str()) && is_something(value),
    })
}

/// Whether a candidate ended, for whatever reason, or the prompt was refused: a policy's word is an answer too.
fn has_finished(map: &Map<String, Value>) -> bool {
    let is_said = |map: &Map<String, Value>, name: &str| {
        map.get(name)
            .and_then(Value::as_str)
            .is_some_and(|reason| !reason.is_empty() && !reason.ends_with("_UNSPECIFIED"))
    };
    candidates(map).any(|candidate| is_said(candidate, "finishReason"))
        || map
            .get("promptFeedback")
            .and_then(Value::as_object)
            .is_some_and(|feedback| is_said(feedback, "blockReason"))
}

fn observe(event: &Event<'_>) -> After {
    if event.is_opaque {
        // A picture and the finish often share an event that is too large to be looked at: a clean end behind it is
        // taken for one.
        return After::Finish;
    }
    let data = event.data.trim_ascii();
    let is_error_event = is_error_event(event);
    let may_matter = [&ERROR, &FINISH, &BLOCK].iter().any(|needle| needle.find(data).is_some());
    if !is_error_event && !may_matter {
        return After::Ordinary;
    }
    let Some(message) = read(data) else { return After::Ordinary };
    if is_error_event || find_error(&message).is_some_and(|parts| parts.shape != Shape::Foreign) {
        return if raises(data, &message) { After::Raises } else { After::FailedQuietly };
    }
    if message.as_object().is_some_and(has_finished) { After::Finish } else { After::Ordinary }
}

/// Whether Google's SDKs raise for an error: one wants the member first, the other a status for its code.
fn raises(data: &[u8], message: &Value) -> bool {
    let first = data.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let code = message.get("error").and_then(|error| error.get("code")).and_then(Value::as_u64);
    first.is_some_and(|rest| rest.starts_with(b"\"error\""))
        && code.is_some_and(|code| (400..600).contains(&code))
}

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"error\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"finishReason\""));
static BLOCK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"blockReason\""));
static VALUES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"values\""));

fn judge_whole(body: &[u8]) -> Verdict {
    judge_by(
        body,
        ["error", "candidates"],
        |[error, candidates]| {
            fields::is_null(error) && candidates.is_some_and(|raw| FINISH.find(raw.as_bytes()).is_some())
        },
        |map| judge_message(map) != Verdict::Hold,
    )
}

fn judge_embeddings(body: &[u8]) -> Verdict {
    let has_values = |raw: Option<&str>| raw.is_some_and(|raw| VALUES.find(raw.as_bytes()).is_some());
    judge_by(
        body,
        ["error", "embedding", "embeddings"],
        |[error, one, many]| fields::is_null(error) && (has_values(one) || has_values(many)),
        |_| false,
    )
}

fn judge_count(body: &[u8]) -> Verdict {
    judge_by(
        body,
        ["error", "totalTokens"],
        |[error, total]| fields::is_null(error) && !fields::is_null(total),
        |_| false,
    )
}

/// Judges a whole answer: by a few of its members where those suffice, else by all of it.
fn judge_by<const N: usize>(
    body: &[u8],
    names: [&str; N],
    is_answer: impl Fn([Option<&str>; N]) -> bool,
    says_something: impl Fn(&Map<String, Value>) -> bool,
) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    if fields::object(&text, names).is_ok_and(is_answer) {
        return Verdict::Content;
    }
    json_answer::unanswered(&text, find_error, says_something)
}

fn find_error(document: &Value) -> Option<Parts> {
    openai_error::find(document, |map| candidates(map).next().is_some())
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Members<'a>,
}

#[derive(Serialize)]
struct Members<'a> {
    code: u16,
    message: &'a str,
    status: &'a str,
    details: [ErrorInfo<'a>; 1],
}

#[derive(Serialize)]
struct ErrorInfo<'a> {
    #[serde(rename = "@type")]
    type_url: &'static str,
    reason: &'a str,
    domain: &'static str,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
}

fn error_body(error: &ErrorBody<'_>) -> Bytes {
    let is_google =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let is_number = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let members = Members {
        code: error.status,
        message: error.message,
        // What an upstream found wrong in the request keeps the name that the upstream gave it.
        status: if is_google(error.kind) { error.kind } else { status_name(error.status) },
        details: [ErrorInfo {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo",
            // Google's own code is the status once more.
            reason: if is_number(error.code) { Code::InvalidRequest.as_str() } else { error.code },
            domain: "sluice",
            metadata: Metadata { request_id: error.request_id, param: error.param },
        }],
    };
    // Strings and numbers always have a JSON form.
    serde_json::to_vec(&Envelope { error: members }).unwrap_or_default().into()
}

/// Google's name of a status.
fn status_name(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 => "FAILED_PRECONDITION",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 | 501 => "UNIMPLEMENTED",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        400..=499 => "INVALID_ARGUMENT",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

fn closing_frame(request_id: &str) -> Bytes {
    let code = Code::UpstreamStreamError;
    let body = error_body(&ErrorBody {
        status: code.status(),
        message: code.text(),
        kind: code.kind(),
        code: code.as_str(),
        param: None,
        request_id,
    });
    [b"data: ", &body[..], b"\r\n\r\n"].concat().into()
}

#[cfg(test)]
mod tests;
