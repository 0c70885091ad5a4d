//! What all dialects need of a JSON document that came as an event or as a whole answer. Pure.

use serde_json::Value;

use super::sse::Event;

/// A document, also where its texts are not valid UTF-8: the caller gets the bytes as they are.
pub fn read(data: &[u8]) -> Option<Value> {
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(data)).ok(),
    }
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
