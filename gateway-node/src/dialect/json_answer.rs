//! Answers that are one JSON document and no stream: embeddings, moderations, rankings, images. What they must have
//! differs; that they are whole, JSON and no error is judged the same for all.

use common::class::FailureClass as F;
use serde_json::{Map, Value};

use super::json::{read, trimmed};
use super::parts::{Parts, Shape};
use super::sse::Event;
use super::{After, Rules, Verdict, fields, openai_error, usage};
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// Embeddings: one for each input, and the SDKs raise where there is none.
pub const EMBEDDINGS: Rules = Rules { judge_whole: |body| judge_whole(body, &DATA), ..PLAIN };

/// Moderations: a result for each input.
pub const MODERATIONS: Rules =
    Rules { judge_whole: |body| judge_whole(body, &RESULTS), usage: &usage::NONE, ..PLAIN };

/// Rankings, as Cohere and Jina (`results`) or Voyage (`data`) send them.
pub const RERANK: Rules = Rules {
    judge_whole: |body| judge_whole(body, &RANKING),
    find_error: find_ranking_error,
    usage: &usage::RANKING,
    ..PLAIN
};

const PLAIN: Rules = Rules {
    auth: Auth::Bearer,
    headers: &[],
    judge,
    judge_whole: |body| judge_whole(body, &DATA),
    observe,
    find_error,
    usage: &usage::TOP,
    error_body: openai_error::body,
    closing_frame: openai_error::closing_frame,
};

/// What an answer must have.
#[derive(Debug)]
pub struct Wanted {
    /// One of these arrays.
    pub arrays: [&'static str; 2],
    /// Whether it may have nothing in it.
    pub may_be_empty: bool,
}

const DATA: Wanted = Wanted { arrays: ["data", "data"], may_be_empty: false };
const RESULTS: Wanted = Wanted { arrays: ["results", "results"], may_be_empty: false };
/// Where a threshold was asked for, nothing may be above it.
const RANKING: Wanted = Wanted { arrays: ["results", "data"], may_be_empty: true };

/// Judges a whole answer.
pub fn judge_whole(body: &[u8], wanted: &Wanted) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    let [first, second] = wanted.arrays;
    match fields::object(&text, ["error", first, second]) {
        Ok([error, first, second]) if unless_none(error).is_none() => match first.or(second) {
            Some(array) if fields::is_filled_array(array) => Verdict::Content,
            Some(array) if array.starts_with('[') && wanted.may_be_empty => Verdict::Content,
            _ => judge_unanswered(&text),
        },
        _ => judge_unanswered(&text),
    }
}

/// The raw `error` member, unless it says nothing: some servers write "none" so.
pub(super) fn unless_none(error: Option<&str>) -> Option<&str> {
    error.filter(|error| !matches!(*error, "null" | r#""""# | "{}" | "[]" | "false"))
}

fn judge_unanswered(body: &str) -> Verdict {
    unanswered(body, find_error, |_| false)
}

/// Judges a whole body of any dialect in which no answer was found, or an error beside it: small enough to be looked at
/// as a tree, or not JSON at all.
pub(super) fn unanswered(
    body: &str,
    find_error: fn(&Value) -> Option<Parts>,
    says_something: impl Fn(&Map<String, Value>) -> bool,
) -> Verdict {
    if body.is_empty() {
        return Verdict::failed(F::Empty);
    }
    let Some(document) = read(body.as_bytes()) else { return Verdict::failed(F::Malformed) };
    if let Some(parts) = find_error(&document) {
        return Verdict::Error(Box::new(classify::error_value(&parts)));
    }
    match &document {
        Value::Object(map) if says_something(map) => Verdict::Content,
        Value::Object(_) => Verdict::failed(F::Empty),
        _ => Verdict::failed(F::Malformed),
    }
}

/// Finds an error in a document, unless it has an array of answers.
pub fn find_error(document: &Value) -> Option<Parts> {
    let has_answer = |map: &Map<String, Value>| {
        ["data", "results"].iter().any(|name| map.get(*name).is_some_and(Value::is_array))
    };
    openai_error::find(document, has_answer)
}

/// The same where a message or a detail alone is how upstreams of the dialect say it.
fn find_ranking_error(document: &Value) -> Option<Parts> {
    find_error(document).map(|parts| Parts { shape: Shape::Dialect, ..parts })
}

/// A stream is no answer here, but it may say why there is none.
fn judge(event: &Event<'_>) -> Verdict {
    if event.data.trim_ascii().is_empty() && !event.is_opaque {
        return Verdict::Hold;
    }
    match read(&event.data).as_ref().and_then(find_error) {
        Some(parts) => Verdict::Error(Box::new(classify::error_value(&parts))),
        None => Verdict::failed(F::Malformed),
    }
}

fn observe(event: &Event<'_>) -> After {
    let document = read(&event.data);
    let map = document.as_ref().and_then(Value::as_object);
    let error = map.and_then(|map| openai_error::find_member(map, true));
    if error.is_some() { After::Raises } else { After::Ordinary }
}

#[cfg(test)]
mod tests;
