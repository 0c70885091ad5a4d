//! The parts of an upstream's error, from the many shapes in which they come: an object, a string, an
//! array of one, flat or nested. Says what stands there and judges nothing; `upstream::classify` does.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::fault::Detail;
use crate::upstream::hint;

/// What an upstream's error says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// For people. Never taken apart: upstreams echo the prompt in it, and relays put whole documents there.
    pub message: String,
    /// `type`
    pub kind: Option<String>,
    /// `code` where it is a name.
    pub code: Option<String>,
    /// `code` (or else `status`) where it is a number.
    pub number: Option<i64>,
    /// `status` where it is a name, as Google writes it.
    pub status: Option<String>,
    /// `details.error_code`, as Anthropic writes it, or `details[].reason`, as Google does.
    pub error_code: Option<String>,
    /// `metadata.error_type`, as OpenRouter writes it.
    pub error_type: Option<String>,
    /// `innererror.code`, as Azure writes it.
    pub inner_code: Option<String>,
    /// `metadata.limit_source`: whose limit a 402 or 403 is about.
    pub limit_source: Option<String>,
    /// The parameter at fault.
    pub param: Option<String>,
    /// The metadata says why the request was flagged.
    pub is_flagged: bool,
    /// How long to stay away.
    pub retry_delay: Option<Duration>,
    /// In which shape it came.
    pub shape: Shape,
}

/// How much an error looks like one of the dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// It is said as upstreams of the dialect say it.
    Dialect,
    /// `{"detail": …}`, which means something under a 422 only.
    Detail,
    /// Any JSON, or none at all: a proxy may have written it.
    #[default]
    Foreign,
}

impl Parts {
    /// An error of which nothing but a text is known.
    pub fn of_text(message: &str) -> Self {
        Parts { message: message.to_owned(), shape: Shape::Dialect, ..Parts::default() }
    }

    /// Reads an `error` value; `around` is the object in which it stood, for shapes that keep the code there.
    pub fn of(error: &Value, around: Option<&Map<String, Value>>) -> Self {
        let mut parts = match error {
            Value::Object(map) => Parts::of_map(map),
            Value::Array(items) => {
                return items.first().map(|first| Parts::of(first, around)).unwrap_or_default();
            }
            Value::String(text) => Parts::of_text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => Parts::of_text(&error.to_string()),
        };
        if let (false, Some(around)) = (error.is_object(), around) {
            parts.read_code(around);
            parts.kind = text(around, "type");
        }
        parts
    }

    /// Reads an error that stands flat in a document.
    pub fn of_map(map: &Map<String, Value>) -> Self {
        let mut parts = Parts { shape: Shape::Dialect, ..Parts::default() };
        parts.message = ["message", "msg", "error", "detail"]
            .into_iter()
            .find_map(|name| map.get(name).and_then(Value::as_str))
            .unwrap_or_default()
            .to_owned();
        parts.kind = text(map, "type").or_else(|| text(map, "__type"));
        parts.param = text(map, "param");
        parts.status = text(map, "status");
        parts.read_code(map);
        if let Some(metadata) = map.get("metadata").and_then(Value::as_object) {
            parts.error_type = text(metadata, "error_type");
            parts.limit_source = text(metadata, "limit_source");
            parts.is_flagged = metadata.contains_key("reasons") || metadata.contains_key("flagged_input");
        }
        parts.error_code = match map.get("details") {
            Some(Value::Object(details)) => text(details, "error_code"),
            Some(Value::Array(details)) => {
                details.iter().filter_map(Value::as_object).find_map(|detail| text(detail, "reason"))
            }
            _ => None,
        };
        parts.inner_code =
            map.get("innererror").and_then(Value::as_object).and_then(|inner| text(inner, "code"));
        parts.retry_delay = hint::in_details(map);
        parts
    }

    /// FastAPI's `detail`: a text, or a list of what is wrong where.
    pub fn of_detail(detail: &Value) -> Self {
        let first = detail.as_array().and_then(|items| items.first()).unwrap_or(detail);
        let (message, param) = match first {
            Value::Object(item) => {
                let place = item.get("loc").and_then(Value::as_array).map(|path| {
                    let steps =
                        path.iter().map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned));
                    steps.filter(|step| step != "body").collect::<Vec<_>>().join(".")
                });
                (text(item, "msg").or_else(|| text(item, "message")).unwrap_or_default(), place)
            }
            Value::String(words) => (words.clone(), None),
            _ => (String::new(), None),
        };
        Parts { message, param, shape: Shape::Detail, ..Parts::default() }
    }

    /// What is kept of it for records, and for the caller where the request was at fault.
    pub fn detail(&self) -> Option<Detail> {
        let number = self.number.map(|n| n.to_string());
        let code = self.code.as_deref().or(number.as_deref());
        let kind = self.kind.as_deref().or(self.status.as_deref());
        let message = self.message.trim();
        if message.is_empty() && code.is_none() && kind.is_none() {
            return None;
        }
        let message = if message.is_empty() { "the upstream gave no reason" } else { message };
        Some(Detail::new(message, kind, code, self.param.as_deref()))
    }

    fn read_code(&mut self, map: &Map<String, Value>) {
        for name in ["code", "status_code", "status"] {
            match map.get(name) {
                Some(Value::Number(number)) => self.number = self.number.or(number.as_i64()),
                Some(Value::String(words)) if !words.is_empty() => match words.parse() {
                    Ok(number) => self.number = self.number.or(Some(number)),
                    Err(_) if name == "code" => self.code = Some(words.clone()),
                    Err(_) => {}
                },
                _ => {}
            }
        }
    }
}

fn text(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).filter(|words| !words.is_empty()).map(str::to_owned)
}
