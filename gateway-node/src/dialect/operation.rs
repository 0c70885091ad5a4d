//! What callers may ask for: which path is which operation, and what of it the path says. Pure.
//! A further operation is one more row of [`OPERATIONS`].

use std::borrow::Cow;

use common::code::Code;
use common::dialect::Dialect;
use http::{HeaderMap, Method};

use super::{Rules, anthropic_messages, openai_chat};

/// One thing that a dialect can be asked for, the same on every channel that speaks it.
#[derive(Debug)]
pub struct Operation {
    /// Which chain of the model is walked.
    pub dialect: Dialect,
    /// How what comes back is judged, and errors are said.
    pub rules: &'static Rules,
    /// Where the request says which model it wants, and whether it wants a stream.
    pub input: Input,
    /// Where callers find it, behind the API's prefix; `{model}` stands for the model's name.
    path: &'static str,
    /// Which prefixes callers may put in front, the usual one first.
    prefixes: &'static [&'static str],
    /// Appended to the `base_url` of a channel; `{model}` stands for the upstream's name of the model.
    upstream_path: &'static str,
}

/// Where the request says what it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// `model` and `stream` in a JSON body.
    Json,
    /// The model in the path; the path also says whether the answer is a stream.
    Path {
        /// Whether it is.
        streams: bool,
    },
}

/// What a path asks for.
#[derive(Debug)]
pub enum Asked<'a> {
    /// An operation, of the model in the path where it stands there.
    Operation(&'static Operation, Option<Cow<'a, str>>),
    /// The list of models.
    Models,
    /// One entry of the list.
    Model(Cow<'a, str>),
    /// Nothing that there is.
    Nothing(Code),
}

const OPENAI: &[&str] = &["/v1"];
const ANTHROPIC: &[&str] = &["/v1"];

const OPERATIONS: &[Operation] = &[
    Operation {
        dialect: Dialect::OpenaiChat,
        rules: &openai_chat::RULES,
        input: Input::Json,
        path: "/chat/completions",
        prefixes: OPENAI,
        upstream_path: "/chat/completions",
    },
    Operation {
        dialect: Dialect::AnthropicMessages,
        rules: &anthropic_messages::RULES,
        input: Input::Json,
        path: "/messages",
        prefixes: ANTHROPIC,
        upstream_path: "/messages",
    },
    Operation {
        dialect: Dialect::AnthropicMessages,
        rules: &anthropic_messages::COUNT_TOKENS,
        input: Input::Json,
        path: "/messages/count_tokens",
        prefixes: ANTHROPIC,
        upstream_path: "/messages/count_tokens",
    },
];

/// Finds what a method and path ask for.
pub fn find<'a>(method: &Method, path: &'a str) -> Asked<'a> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let found = OPERATIONS.iter().find_map(|operation| Some((operation, operation.matches(path)?)));
    if let Some((operation, model)) = found {
        return if method == Method::POST { Asked::Operation(operation, model) } else { wrong_method() };
    }
    match path.strip_prefix("/v1/models") {
        Some("") if method == Method::GET => Asked::Models,
        Some(name) if name.starts_with('/') && name.len() > 1 && method == Method::GET => {
            Asked::Model(decoded(&name[1..]))
        }
        Some(name) if name.is_empty() || name.starts_with('/') => wrong_method(),
        _ => Asked::Nothing(Code::NotFound),
    }
}

/// Whether this version serves a dialect.
pub fn is_served(dialect: Dialect) -> bool {
    OPERATIONS.iter().any(|operation| operation.dialect == dialect)
}

/// Whose error shape a path speaks, also where there is nothing. Where SDKs of several dialects come, their headers
/// tell them apart.
pub fn shape(path: &str, headers: &HeaderMap) -> &'static Rules {
    let is_below = |start| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_below("/v1/messages") || (is_below("/v1/models") && is_anthropics(headers)) {
        return &anthropic_messages::RULES;
    }
    &openai_chat::RULES
}

/// Whether an SDK of Anthropic sent it.
pub fn is_anthropics(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

fn wrong_method() -> Asked<'static> {
    Asked::Nothing(Code::MethodNotAllowed)
}

impl Operation {
    /// The path behind a channel's `base_url`.
    pub fn upstream_path(&self, upstream_model: &str) -> Cow<'static, str> {
        match self.upstream_path.split_once("{model}") {
            None => Cow::Borrowed(self.upstream_path),
            Some((before, after)) => Cow::Owned(format!("{before}{}{after}", encoded(upstream_model))),
        }
    }

    /// The model in the path where it stands there; `None` where the path is another one.
    fn matches<'a>(&self, path: &'a str) -> Option<Option<Cow<'a, str>>> {
        self.prefixes.iter().find_map(|prefix| {
            let rest = path.strip_prefix(prefix)?;
            match self.path.split_once("{model}") {
                None => (rest == self.path).then_some(None),
                Some((before, after)) => {
                    let model = rest.strip_prefix(before)?.strip_suffix(after)?;
                    (!model.is_empty()).then(|| Some(decoded(model)))
                }
            }
        })
    }
}

/// Percent-decodes a part of a path; what is not valid is left as it is.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let value = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Percent-encodes all but the unreserved characters of RFC 3986 and the slash.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str) -> String {
        match find(&method.parse().unwrap(), path) {
            Asked::Operation(operation, model) => {
                format!("{} {}", operation.dialect, model.unwrap_or_default())
            }
            Asked::Models => "models".into(),
            Asked::Model(name) => format!("model {name}"),
            Asked::Nothing(code) => code.to_string(),
        }
    }

    #[test]
    fn a_path_asks_for_one_thing_and_what_is_not_there_is_said() {
        let table = [
            ("POST", "/v1/chat/completions", "openai-chat "),
            ("POST", "/v1/chat/completions/", "openai-chat "),
            ("GET", "/v1/chat/completions", "method_not_allowed"),
            ("POST", "/chat/completions", "not_found"),
            ("POST", "/v1/messages", "anthropic-messages "),
            ("POST", "/v1/messages/count_tokens", "anthropic-messages "),
            ("GET", "/v1/messages", "method_not_allowed"),
            ("POST", "/v1/messages/batches", "not_found"),
            ("GET", "/v1/models", "models"),
            ("GET", "/v1/models/gpt-4o", "model gpt-4o"),
            ("GET", "/v1/models/org/name%20x", "model org/name x"),
            ("POST", "/v1/models", "method_not_allowed"),
            ("GET", "/v1/modelsx", "not_found"),
            ("GET", "/", "not_found"),
        ];
        for (method, path, expected) in table {
            assert_eq!(asked(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn errors_are_said_as_the_path_or_the_sdk_reads_them() {
        let anthropics = HeaderMap::from_iter([("anthropic-version".parse().unwrap(), "x".parse().unwrap())]);
        let is_anthropics = |path, headers| shape(path, headers).headers == anthropic_messages::RULES.headers;
        let none = HeaderMap::new();
        for path in ["/v1/messages", "/v1/messages/", "/v1/messages/count_tokens", "/v1/messages/batches"] {
            assert!(is_anthropics(path, &none), "{path}");
        }
        for path in ["/v1/models", "/v1/models/m"] {
            assert!(is_anthropics(path, &anthropics) && !is_anthropics(path, &none), "{path}");
        }
        for path in ["/v1/chat/completions", "/v1/messagesx", "/"] {
            assert!(!is_anthropics(path, &anthropics), "{path}");
        }
    }
}
