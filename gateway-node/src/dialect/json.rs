//! What all dialects need of a JSON document that came as an event or as a whole answer. Pure.

use serde_json::Value;

use super::sse::Event;

/// A document, also where its texts are not valid UTF-8, or half of an escaped pair is cut off: the caller gets the
/// bytes as they are.
pub fn read(data: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(data);
    serde_json::from_str(&text).or_else(|_| serde_json::from_str(&without_halves(&text))).ok()
}

/// The document with a replacement for each escaped surrogate that has no other half: relays that cut texts by UTF-16
/// units write them, the SDKs read them, and our parser does not.
fn without_halves(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xD800..0xDC00), Some(0xDC00..)) => 12,
            (Some(_), _) => {
                out.push('\u{fffd}');
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, tail) = escape.split_at(length);
        out.push_str(escape);
        rest = tail;
    }
    out + rest
}

/// The escaped surrogate that a text begins with.
fn surrogate(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

/// A body without its BOM and the blanks around it.
pub fn trimmed(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii()
}

/// Whether there is any text in it, however deep; numbers and flags say nothing by themselves.
pub fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => map.values().any(is_something),
    }
}

/// Whether a reason to stop is what relays give for a failure, and no end.
pub fn is_failure(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason == "error" || reason.ends_with("_error")
}

/// Whether an event is named `error`.
pub fn is_error_event(event: &Event<'_>) -> bool {
    event.name.is_some_and(|name| name.trim_ascii() == b"error")
}

/// The name of an event.
pub fn name<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    event.name.and_then(|name| std::str::from_utf8(name.trim_ascii()).ok())
}

/// What kind of event it is: that stands in its document, and else in its name.
pub fn kind<'a>(event: &'a Event<'_>, document: &'a Value) -> Option<&'a str> {
    document.get("type").and_then(Value::as_str).or_else(|| name(event)).filter(|kind| !kind.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_an_escaped_pair_is_no_fault_of_a_document() {
        for (json, read_as) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\uDE00x"}"#, r#"{"a":"\ufffdx"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00\\ud83d"}"#, r#"{"a":"\ufffd\ud83d\ude00\\ud83d"}"#),
            (r#"{"\ud83d":"\n\u00e9"}"#, r#"{"\ufffd":"\n\u00e9"}"#),
        ] {
            let expected: Value = serde_json::from_str(read_as).unwrap();
            assert_eq!(read(json.as_bytes()), Some(expected), "{json}");
        }
        for broken in [r#"{"a":"\ud83d"#, r#"{"a":"\u"}"#, r#"{"a":"\"#, "\\", "\\é", r#""\ud8"#] {
            assert_eq!(read(broken.as_bytes()), None, "{broken}");
        }
    }
}
