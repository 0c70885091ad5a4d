//! Asks for the usage of a stream where its caller did not, and knows the frame that comes of it. OpenAI's chat and
//! legacy completions say what a stream used only to those who ask, in a frame of its own. Pure.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use common::class::FailureClass;
use memchr::memmem::Finder;

use super::fields;
use super::splice::Edit;
use super::sse::Event;
use super::usage;
use crate::fault::{Detail, Fault};

/// The edits that make a streamed request ask; `options` are the places of its `stream_options`. `None` where it asks
/// already, or where what stands there is the upstream's to refuse.
pub fn edits(body: &[u8], options: &[Range<usize>]) -> Option<Vec<Edit>> {
    let Some((last, before)) = options.split_last() else {
        // A body that asks for a stream is an object, and has a member behind its brace.
        let first = memchr::memchr(b'{', body)? + 1;
        return Some(vec![insertion(first, "\"stream_options\":{\"include_usage\":true},")]);
    };
    // Of a repeated member most servers take the last, and some the first.
    let last = edit(body, last)?;
    Some(before.iter().filter_map(|span| edit(body, span)).chain([last]).collect())
}

/// Makes one value of `stream_options` ask.
fn edit(body: &[u8], span: &Range<usize>) -> Option<Edit> {
    let options = std::str::from_utf8(body.get(span.clone())?).ok()?;
    if options == "null" {
        return Some(replacement(span.clone(), "{\"include_usage\":true}"));
    }
    let [include] = fields::object(options, ["include_usage"]).ok()?;
    match include {
        None if options.get(1..)?.trim_start().starts_with('}') => {
            Some(insertion(span.start + 1, "\"include_usage\":true"))
        }
        None => Some(insertion(span.start + 1, "\"include_usage\":true,")),
        Some(no @ ("false" | "null")) => {
            // It was borrowed from there.
            let start = span.start + (no.as_ptr() as usize).saturating_sub(options.as_ptr() as usize);
            Some(replacement(start..start + no.len(), "true"))
        }
        Some(_) => None,
    }
}

fn insertion(at: usize, with: &'static str) -> Edit {
    replacement(at..at, with)
}

fn replacement(span: Range<usize>, with: &'static str) -> Edit {
    Edit { span, with: Bytes::from_static(with.as_bytes()) }
}

/// Whether a fault is about the question that the edits add. What an upstream quotes of a request is no reason for it:
/// the name must stand nowhere in the request.
pub fn is_refused(body: &[u8], fault: &Fault) -> bool {
    const NAME: &str = "stream_options";
    let is_named = |detail: &Detail| {
        detail.param.as_deref().is_some_and(|param| param.contains(NAME)) || detail.message.contains(NAME)
    };
    fault.class == FailureClass::BadRequest
        && fault.detail.as_ref().is_some_and(is_named)
        && memchr::memmem::find(body, NAME.as_bytes()).is_none()
}

/// Whether an event is the frame that is there for having been asked: no choice, a usage object, and no error beside it.
pub fn is_answer(event: &Event<'_>) -> bool {
    if event.is_opaque || !has_no_choice(&event.data) || !usage::may_say(&event.data) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(event.data.trim_ascii()) else { return false };
    match fields::object(text, ["choices", "usage", "error"]) {
        Ok([Some(choices), Some(usage), error]) => {
            is_empty_array(choices.as_bytes()) && usage.starts_with('{') && fields::is_null(error)
        }
        _ => false,
    }
}

static CHOICES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"choices\""));

/// Whether an empty `choices` stands somewhere. Nearly every chunk has filled ones.
fn has_no_choice(data: &[u8]) -> bool {
    CHOICES.find_iter(data).any(|at| {
        let rest = data.get(at + CHOICES.needle().len()..).unwrap_or_default().trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| is_empty_array(value.trim_ascii_start()))
    })
}

fn is_empty_array(value: &[u8]) -> bool {
    value.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"]"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::dialect::{scan, splice};

    fn asking(body: &'static str) -> Option<String> {
        let scanned = scan::scan(body.as_bytes()).unwrap();
        let edits = edits(body.as_bytes(), &scanned.stream_options)?;
        let body = splice::apply(&Bytes::from_static(body.as_bytes()), edits).concat();
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(said["stream_options"]["include_usage"], true);
        Some(String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_request_that_does_not_ask_is_made_to_and_nothing_else_of_it_changes() {
        for (body, asks) in [
            (
                r#" { "model":"m","stream":true}"#,
                r#" {"stream_options":{"include_usage":true}, "model":"m","stream":true}"#,
            ),
            (
                r#"{"model":"m","stream":true,"stream_options":null}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"model":"m","stream_options" : { },"stream":true}"#,
                r#"{"model":"m","stream_options" : {"include_usage":true },"stream":true}"#,
            ),
            (
                r#"{"model":"m","stream_options":{"x":{"include_usage":true}},"stream":true}"#,
                r#"{"model":"m","stream_options":{"include_usage":true,"x":{"include_usage":true}},"stream":true}"#,
            ),
            (
                r#"{"model":"m","stream_options":{"a":1, "include_usage" : false ,"b":2}}"#,
                r#"{"model":"m","stream_options":{"a":1, "include_usage" : true ,"b":2}}"#,
            ),
            (
                r#"{"model":"m","stream_options":{"include_us\u0061ge":null}}"#,
                r#"{"model":"m","stream_options":{"include_us\u0061ge":true}}"#,
            ),
            (
                r#"{"model":"m","stream_opti\u006fns":{},"messages":[{"stream_options":{}}]}"#,
                r#"{"model":"m","stream_opti\u006fns":{"include_usage":true},"messages":[{"stream_options":{}}]}"#,
            ),
            (
                r#"{"model":"m","stream_options":{"include_usage":true},"stream_options":{"include_usage":false}}"#,
                r#"{"model":"m","stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"model":"m","stream_options":null,"stream_options":{}}"#,
                r#"{"model":"m","stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}"#,
            ),
        ] {
            assert_eq!(asking(body).as_deref(), Some(asks), "{body}");
        }
    }

    #[test]
    fn a_request_that_asks_or_that_its_upstream_will_refuse_stays_as_it_is() {
        for body in [
            r#"{"model":"m","stream_options":{"include_usage":true}}"#,
            r#"{"model":"m","stream_options":{"include_usage": true ,"x":1}}"#,
            r#"{"model":"m","stream_options":{},"stream_options":{"include_usage":true}}"#,
            r#"{"model":"m","stream_options":{"include_usage":"no"}}"#,
            r#"{"model":"m","stream_options":"all"}"#,
            r#"{"model":"m","stream_options":[]}"#,
        ] {
            assert_eq!(asking(body), None, "{body}");
        }
    }

    #[test]
    fn only_a_frame_of_usage_and_nothing_else_is_an_answer() {
        let is = |data: &str| {
            let data = Cow::Borrowed(data.as_bytes());
            is_answer(&Event { name: None, data, end: 0, size: 0, is_opaque: false })
        };
        for data in [
            r#"{"id":"c","choices":[],"usage":{"prompt_tokens":1}}"#,
            " { \"usage\" : {\n}, \"choices\" : [ ] } ",
            r#"{"choices":[],"usage":{},"error":null,"obfuscation":"x"}"#,
        ] {
            assert!(is(data), "{data}");
        }
        for data in [
            r#"{"choices":[],"prompt_filter_results":[{"usage":{}}]}"#,
            r#"{"choices":[],"usage":null}"#,
            r#"{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"choices":[]}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1},"error":{"code":500}}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1}"#,
            r#"{"usage":{"prompt_tokens":1}}"#,
            "[DONE]",
            "",
        ] {
            assert!(!is(data), "{data}");
        }
    }
}
