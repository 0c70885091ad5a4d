//! Chat completions, as OpenAI and all that imitate it send them: what a chunk proves, what an error looks
//! like, and what of ours their SDKs understand. Unknown things count as content: a healthy new feature is never
//! held back.

use std::sync::LazyLock;

use common::class::FailureClass as F;
use memchr::memmem::Finder;
use serde_json::{Map, Value};

use super::json::{is_error_event, is_failure, is_something, read, trimmed};
use super::parts::{Parts, Shape};
use super::sse::Event;
use super::{After, Rules, Verdict, fields, json_answer, openai_error, usage};
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
    usage: &usage::CHAT,
    error_body: openai_error::body,
    closing_frame: openai_error::closing_frame,
};

fn judge(event: &Event<'_>) -> Verdict {
    if event.is_opaque {
        return Verdict::Content;
    }
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Verdict::Hold;
    }
    if openai_error::is_done(data) {
        return Verdict::failed(F::Empty);
    }
    let Some(chunk) = read(data) else { return Verdict::failed(F::Malformed) };
    let error = match &chunk {
        _ if is_error_event(event) => Some(find_error(&chunk).unwrap_or_default()),
        Value::Object(map) if has_choices(map) => find_nested(map),
        Value::Object(_) | Value::Array(_) => {
            find_error(&chunk).filter(|parts| parts.shape != Shape::Foreign)
        }
        _ => None,
    };
    if let Some(parts) = error {
        return Verdict::Error(Box::new(classify::error_value(&parts)));
    }
    match &chunk {
        Value::Null => Verdict::Hold,
        Value::Object(map) => match map.get("choices") {
            Some(Value::Array(choices)) => judge_choices(choices),
            Some(_) => Verdict::Hold,
            None if map.keys().all(|name| ENVELOPE.contains(&name.as_str())) || is_ping(map) => Verdict::Hold,
            None => Verdict::Content,
        },
        _ => Verdict::Content,
    }
}

/// Members of a chunk that prove nothing by themselves.
const ENVELOPE: [&str; 13] = [
    "id",
    "object",
    "created",
    "model",
    "system_fingerprint",
    "service_tier",
    "usage",
    "obfuscation",
    "prompt_filter_results",
    "prompt_progress",
    "moderation",
    "provider",
    "x_groq",
];

fn judge_choices(choices: &[Value]) -> Verdict {
    let mut verdict = Verdict::Hold;
    for choice in choices.iter().filter_map(Value::as_object) {
        let has_content = has_content(choice);
        if let Some(fault) = failed_choice(choice, has_content) {
            return Verdict::Error(Box::new(fault));
        }
        if has_content {
            verdict = Verdict::Content;
        } else if verdict == Verdict::Hold && finish_reason(choice).is_some() {
            verdict = Verdict::End;
        }
    }
    verdict
}

fn has_content(choice: &Map<String, Value>) -> bool {
    let is_said = |name: &str| choice.get(name).and_then(Value::as_object).is_some_and(says_something);
    is_said("delta") || is_said("message") || choice.get("text").is_some_and(is_something)
}

/// Whether a delta carries more than who is speaking.
fn says_something(delta: &Map<String, Value>) -> bool {
    const SILENT: [&str; 4] = ["role", "prompt_progress", "content_filter_results", "content_filter_offsets"];
    delta.iter().any(|(name, value)| !SILENT.contains(&name.as_str()) && is_something(value))
}

/// A choice that ended with a failure. `has_content`: the upstream's second reason counts only where nothing came.
fn failed_choice(choice: &Map<String, Value>, has_content: bool) -> Option<Fault> {
    let native = choice.get("native_finish_reason").and_then(Value::as_str).filter(|_| !has_content);
    let has_failed = finish_reason(choice).is_some_and(is_failure)
        || (finish_reason(choice).is_some() && native.is_some_and(is_failure));
    has_failed.then(|| match choice.get("error").filter(|error| is_something(error)) {
        Some(error) => classify::error_value(&Parts::of(error, None)),
        None => Fault::of(F::UpstreamError),
    })
}

fn finish_reason(choice: &Map<String, Value>) -> Option<&str> {
    choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty())
}

fn judge_whole(body: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    let choices = match fields::object(&text, ["error", "choices"]) {
        Ok([error, Some(choices)]) if fields::is_null(error) && fields::is_filled_array(choices) => choices,
        _ => return json_answer::unanswered(&text, find_error, has_choices),
    };
    if ERROR.find(choices.as_bytes()).is_none() {
        return Verdict::Content;
    }
    match serde_json::from_str::<Value>(choices) {
        Ok(Value::Array(choices)) => match judge_choices(&choices) {
            Verdict::Error(fault) => Verdict::Error(fault),
            Verdict::Hold | Verdict::Content | Verdict::End => Verdict::Content,
        },
        _ => Verdict::Content,
    }
}

fn observe(event: &Event<'_>) -> After {
    if event.is_opaque {
        return After::Ordinary;
    }
    let data = event.data.trim_ascii();
    if openai_error::is_done(data) {
        return After::Done;
    }
    // Nearly every chunk ends here: two searches, no parse, no allocation.
    let is_error_event = is_error_event(event);
    if !is_error_event && ERROR.find(data).is_none() && !may_finish(data) {
        return After::Ordinary;
    }
    let Some(chunk) = read(data) else { return After::Ordinary };
    let Some(map) = chunk.as_object() else { return After::Ordinary };
    if openai_error::find_member(map, has_choices(map)).is_some() {
        return After::Raises;
    }
    if is_error_event || find_nested(map).is_some() || (!has_choices(map) && openai_error::is_flat(map)) {
        return After::FailedQuietly;
    }
    let choices =
        || map.get("choices").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    if choices().any(|choice| failed_choice(choice, true).is_some()) {
        After::FailedQuietly
    } else if choices().any(|choice| finish_reason(choice).is_some()) {
        After::Finish
    } else {
        After::Ordinary
    }
}

/// The end of every member, or reason, that can mean a failure. Prepared once: it is sought in every chunk.
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"error\""));

static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"finish_reason\""));

/// Whether some `finish_reason` is anything but `null`.
fn may_finish(data: &[u8]) -> bool {
    FINISH.find_iter(data).any(|at| {
        let rest = data.get(at + FINISH.needle().len()..).unwrap_or_default().trim_ascii_start();
        !rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
    })
}

fn find_error(document: &Value) -> Option<Parts> {
    openai_error::find(document, has_choices)
}

/// An error member of a chunk, also where choices stand beside it.
fn find_nested(map: &Map<String, Value>) -> Option<Parts> {
    openai_error::find_nested(map, has_choices(map))
}

fn has_choices(map: &Map<String, Value>) -> bool {
    map.get("choices").and_then(Value::as_array).is_some_and(|choices| !choices.is_empty())
}

fn is_ping(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str) == Some("ping")
}

#[cfg(test)]
mod tests;
