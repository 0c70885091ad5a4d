//! How the dialects of OpenAI say an error: the shapes in which upstreams send one, inside a 200 or not, and the
//! ones in which their SDKs understand ours. Pure.

use bytes::Bytes;
use common::code::Code;
use serde::Serialize;
use serde_json::{Map, Value};

use super::ErrorBody;
use super::json::{is_error_event, is_something};
use super::parts::{Parts, Shape};
use super::sse::Event;

/// Finds an error in a document, unless an answer stands in it; an `error` member counts even then.
pub fn find(document: &Value, has_answer: fn(&Map<String, Value>) -> bool) -> Option<Parts> {
    let map = match document {
        Value::Object(map) => map,
        Value::Array(items) => match items.as_slice() {
            [Value::Object(map)] => map,
            _ => return None,
        },
        _ => return None,
    };
    let has_answer = has_answer(map);
    if let Some(parts) = find_nested(map, has_answer) {
        return Some(parts);
    }
    if has_answer {
        return None;
    }
    if is_flat(map) {
        return Some(Parts::of_map(map));
    }
    if let Some(detail) = map.get("detail").filter(|detail| is_something(detail)) {
        return Some(Parts::of_detail(detail));
    }
    // Cloudflare's own list.
    if let Some(errors) = map.get("errors").filter(|errors| errors.is_array() && is_something(errors)) {
        return Some(Parts::of(errors, None));
    }
    map.contains_key("message").then(|| Parts { shape: Shape::Foreign, ..Parts::of_map(map) })
}

/// An error member, also where an answer stands beside it.
pub fn find_nested(map: &Map<String, Value>, has_answer: bool) -> Option<Parts> {
    let groq = || map.get("x_groq").and_then(|own| own.get("error")).and_then(Value::as_str);
    match find_member(map, has_answer) {
        Some(error) => Some(Parts::of(error, Some(map))),
        None => groq().filter(|text| !text.is_empty()).map(Parts::of_text),
    }
}

/// The `error` member, unless it says nothing.
pub fn find_member(map: &Map<String, Value>, has_answer: bool) -> Option<&Value> {
    match map.get("error")? {
        Value::Null => None,
        // An empty one is how some servers write "none"; alone, without even an empty list of choices, it is all there is.
        error if is_something(error) || matches!(error, Value::Bool(true) | Value::Number(_)) => Some(error),
        Value::Object(members) if !members.is_empty() => map.get("error"),
        error => (!has_answer && !map.contains_key("choices")).then_some(error),
    }
}

/// The error in an event that is one: nested, or flat as the SDKs model it.
pub fn of_event(map: &Map<String, Value>) -> Parts {
    if let Some(error) = find_member(map, false) {
        return Parts::of(error, Some(map));
    }
    let mut parts = Parts::of_map(map);
    // That is the event's own type.
    parts.kind = parts.kind.filter(|kind| kind != "error");
    parts
}

/// Finds an error in an event of a stream whose events mostly say what they are; of one that does not, as in a whole
/// document.
pub fn find_in_event(
    event: &Event<'_>,
    kind: Option<&str>,
    document: &Value,
    find_error: fn(&Value) -> Option<Parts>,
) -> Option<Parts> {
    match document {
        Value::Object(map) if is_error_event(event) || kind == Some("error") => Some(of_event(map)),
        Value::Object(map) if kind.is_some() => find_nested(map, true),
        _ => find_error(document).filter(|parts| parts.shape != Shape::Foreign),
    }
}

/// Whether a document is an error without a member that holds it.
pub fn is_flat(map: &Map<String, Value>) -> bool {
    let is_error = |name: &str| map.get(name).and_then(Value::as_str) == Some("error");
    let has = |name: &str| map.get(name).is_some_and(|value| !value.is_null());
    is_error("object") || is_error("type") || (has("message") && (has("code") || has("type")))
}

/// Whether it is the marker behind the last event.
pub fn is_done(data: &[u8]) -> bool {
    data == b"[DONE]"
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Members<'a>,
}

/// An event that is an error. The SDKs raise for the object in it; other readers look beside it.
#[derive(Serialize)]
struct ErrorEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    sequence_number: i32,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
    error: Members<'a>,
}

#[derive(Serialize)]
struct Members<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    code: &'a str,
    param: Option<&'a str>,
    request_id: &'a str,
}

impl<'a> Members<'a> {
    fn broken_off(request_id: &'a str) -> Self {
        let code = Code::UpstreamStreamError;
        Members { message: code.text(), kind: code.kind(), code: code.as_str(), param: None, request_id }
    }
}

/// An error answer of ours.
pub fn body(error: &ErrorBody<'_>) -> Bytes {
    let ErrorBody { message, kind, code, param, request_id, .. } = *error;
    json(&Envelope { error: Members { message, kind, code, param, request_id } }).into()
}

/// The frame that ends a stream without named events.
pub fn closing_frame(request_id: &str) -> Bytes {
    let body = json(&Envelope { error: Members::broken_off(request_id) });
    [b"data: ", &body[..], b"\n\n"].concat().into()
}

/// The frame that ends a stream whose events have names and types.
pub fn closing_event(request_id: &str) -> Bytes {
    let error = Members::broken_off(request_id);
    let event = ErrorEvent {
        kind: "error",
        // Behind every number that the stream can have had: who drops what it has seen keeps it.
        sequence_number: i32::MAX,
        code: error.code,
        message: error.message,
        param: None,
        error,
    };
    [b"event: error\ndata: ", &json(&event)[..], b"\n\n"].concat().into()
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Strings and numbers always have a JSON form.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_words_are_in_the_dialects_shape() {
        let error = ErrorBody {
            status: 400,
            message: "say \"a\"",
            kind: "k",
            code: "c",
            param: None,
            request_id: "r",
        };
        assert_eq!(
            body(&error),
            r#"{"error":{"message":"say \"a\"","type":"k","code":"c","param":null,"request_id":"r"}}"#
        );
        let with_param = body(&ErrorBody { param: Some("model"), ..error });
        assert!(with_param.ends_with(br#""param":"model","request_id":"r"}}"#));
    }

    #[test]
    fn a_closing_frame_names_the_error_in_the_object_that_sdks_raise() {
        for (frame, start) in
            [(closing_frame("r-1"), "data: "), (closing_event("r-1"), "event: error\ndata: ")]
        {
            let text = std::str::from_utf8(&frame).unwrap();
            let data = text.strip_prefix(start).unwrap().strip_suffix("\n\n").unwrap();
            let document: Value = serde_json::from_str(data).unwrap();
            let error = &document["error"];
            assert_eq!(error["type"], "upstream_stream_error");
            assert_eq!(error["code"], "upstream_stream_error");
            assert_eq!(error["request_id"], "r-1");
            assert!(error["param"].is_null());
        }
    }

    #[test]
    fn an_answer_beside_it_makes_an_error_of_a_member_alone() {
        let has_answer = |map: &Map<String, Value>| map.contains_key("data");
        for (document, is_error) in [
            (r#"{"data":[],"error":{"code":500}}"#, true),
            (r#"{"data":[],"error":"x"}"#, true),
            (r#"{"data":[],"error":{}}"#, false),
            (r#"{"data":[],"error":null}"#, false),
            (r#"{"data":[],"message":"ok","code":0}"#, false),
            (r#"{"error":{}}"#, true),
            (r#"{"message":"m","code":1}"#, true),
            (r#"{"detail":"d"}"#, true),
            (r#"[{"error":"x"}]"#, true),
            (r#"{"id":"x"}"#, false),
            ("[]", false),
        ] {
            let document: Value = serde_json::from_str(document).unwrap();
            assert_eq!(find(&document, has_answer).is_some(), is_error, "{document}");
        }
    }
}
