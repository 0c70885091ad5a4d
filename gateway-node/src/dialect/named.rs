//! Answers about one thing that has an id: a video, a stored response. That a job has failed is what was asked for and
//! no failure of the asking.

use common::class::FailureClass as F;
use serde_json::{Map, Value};

use super::json::trimmed;
use super::json_answer::{self, unanswered};
use super::{Rules, Verdict, fields, openai_error};

/// One JSON document about a thing, or the list of what it was made of.
pub const THING: Rules = Rules { judge_whole, find_error, ..json_answer::MODERATIONS };

/// The same where nothing needs to be said: the status says that it is done.
pub const DONE: Rules = Rules { judge_whole: judge_done, ..THING };

/// What a job has made, whatever bytes that are.
pub const CONTENT: Rules = Rules { judge_whole: judge_content, ..THING };

pub(super) fn judge_whole(body: &[u8]) -> Verdict {
    let body = trimmed(body);
    let text = String::from_utf8_lossy(body);
    match fields::object(&text, ["id", "object"]) {
        Ok([id, object])
            if object != Some("\"error\"") && id.or(object).is_some_and(|raw| raw.starts_with('"')) =>
        {
            Verdict::Content
        }
        _ => unanswered(&text, find_error, |_| false),
    }
}

fn judge_done(body: &[u8]) -> Verdict {
    if trimmed(body).is_empty() { Verdict::Content } else { judge_whole(body) }
}

fn judge_content(body: &[u8]) -> Verdict {
    let text = body.trim_ascii_start();
    let begins_with =
        |page: &[u8]| text.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page));
    if body.is_empty() {
        return Verdict::failed(F::Empty);
    }
    if begins_with(b"<html") || begins_with(b"<!doctype html") {
        return Verdict::failed(F::Malformed);
    }
    match matches!(text, [b'{' | b'[', ..])
        .then(|| unanswered(&String::from_utf8_lossy(text), find_error, |_| true))
    {
        Some(Verdict::Error(fault)) if fault.class != F::Malformed => Verdict::Error(fault),
        _ => Verdict::Content,
    }
}

/// Finds an error in a document, unless it is about a thing: then its error is the thing's own.
fn find_error(document: &Value) -> Option<super::parts::Parts> {
    let is_thing = |map: &Map<String, Value>| {
        let is_text = |name| map.get(name).is_some_and(Value::is_string);
        map.get("object").is_none_or(|object| object != "error") && (is_text("id") || is_text("object"))
    };
    match document.as_object() {
        Some(map) if is_thing(map) => None,
        _ => openai_error::find(document, |_| false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(rules: &Rules, body: &str) -> Option<F> {
        match (rules.judge_whole)(body.as_bytes()) {
            Verdict::Error(fault) => Some(fault.class),
            verdict => {
                assert_eq!(verdict, Verdict::Content);
                None
            }
        }
    }

    #[test]
    fn a_job_that_failed_is_an_answer_and_an_error_instead_of_it_is_none() {
        let table = [
            (r#"{"id":"video_1","object":"video","status":"queued","error":null}"#, None),
            (
                r#"{"id":"video_1","status":"failed","error":{"code":"moderation_blocked","message":"m"}}"#,
                None,
            ),
            (
                r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error"},"output":[]}"#,
                None,
            ),
            (r#"{"object":"list","data":[]}"#, None),
            ("\n\n {\"id\":\"video_1\",\"deleted\":true}\n", None),
            ("", Some(F::Empty)),
            (" \n", Some(F::Empty)),
            (r#"{"error":{"message":"b","code":503}}"#, Some(F::Overloaded)),
            (r#"{"error":{"message":"b","type":"server_error"}}"#, Some(F::UpstreamError)),
            (r#"{"object":"error","message":"b","code":500}"#, Some(F::UpstreamError)),
            ("{}", Some(F::Empty)),
            ("[1]", Some(F::Malformed)),
            ("<html>", Some(F::Malformed)),
            (r#"{"id":"video_1""#, Some(F::Malformed)),
        ];
        for (body, expected) in table {
            assert_eq!(class(&THING, body), expected, "{body}");
            let of_done = if body.trim().is_empty() { None } else { expected };
            assert_eq!(class(&DONE, body), of_done, "{body}");
        }
    }

    #[test]
    fn content_is_any_bytes_but_a_page_or_an_error() {
        let table = [
            ("\0\0\0\x18ftypmp42", None),
            ("{not json, and a picture all the same", None),
            (r#"{"frames":[]}"#, None),
            ("[1, 2", None),
            (r#"[{"error":{"message":"b","code":503}}]"#, Some(F::Overloaded)),
            (r#"{"error":{"message":"b","type":"server_error"}}"#, Some(F::UpstreamError)),
            (" <!DOCTYPE html><html>", Some(F::Malformed)),
            ("", Some(F::Empty)),
        ];
        for (body, expected) in table {
            assert_eq!(class(&CONTENT, body), expected, "{body}");
        }
    }
}
