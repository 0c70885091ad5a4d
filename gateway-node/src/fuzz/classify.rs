//! Classification: every answer has a class, what callers may see of it is bounded and without keys, and what a
//! message quotes decides nothing.

use common::class::FailureClass;
use common::limits::ERROR_MESSAGE_BYTES_MAX;
use common::walk::Reason;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;

use super::{head, operation};
use crate::fault::Fault;
use crate::upstream::classify::classify;

const STATUSES: [u16; 30] = [
    400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422, 424, 425, 426, 429, 431, 498, 499, 500,
    501, 502, 503, 504, 520, 524, 529, 301, 599,
];

pub(super) fn run(input: &[u8]) {
    let Some(([status, which, hint, _], body)) = head(input) else { return };
    let status = STATUSES[usize::from(status) % STATUSES.len()];
    let rules = operation(which).rules;
    let mut headers = HeaderMap::new();
    let (value, rest) = body.split_at(body.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    if let (Some(name), Ok(value)) = (HEADERS.get(usize::from(hint)), HeaderValue::from_bytes(value)) {
        headers.insert(*name, value);
    }
    check(&classify(StatusCode::from_u16(status).unwrap(), &headers, rest, 1_764_000_000_000, rules));
}

const HEADERS: [&str; 6] = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-amzn-errortype",
    "x-should-retry",
];

fn check(fault: &Fault) {
    if fault.class == FailureClass::BadRequest {
        let status = fault.status.expect("a bad request has a status");
        assert!((400..500).contains(&status), "{status}");
        // Those are about the operator's account, or repeated by the SDKs.
        assert!(![401, 402, 403, 407, 408, 409, 425, 429].contains(&status), "{status}");
    } else {
        assert!(!matches!(fault.reason, Reason::ContextLength | Reason::ContentPolicy | Reason::Unshaped));
    }
    if let Some(detail) = &fault.detail {
        assert!(detail.message.len() <= ERROR_MESSAGE_BYTES_MAX);
        for name in [&detail.kind, &detail.code, &detail.param].into_iter().flatten() {
            assert!(name.len() <= 128);
        }
        assert!(!shows_secret(&detail.message), "{}", detail.message);
    }
}

/// Whether a key stands in it, by itself or as a part of an address.
fn shows_secret(message: &str) -> bool {
    message.match_indices("sk-Secret123").any(|(at, _)| {
        let before = message[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '-' | '_'))
    })
}

/// What stands in front of a prompt that an upstream repeats, and around it.
const HEADS: [&str; 12] = [
    "Invalid value: ",
    "Unsupported value: ",
    "could not parse the message ",
    "The model could not answer ",
    "This model does not take ",
    "Model output for the input ",
    "The request was rejected: ",
    "unexpected token in ",
    "Failed to deserialize the JSON body into the target type: messages[0] ",
    "Extra inputs are not permitted: ",
    "Unknown name ",
    "",
];
const QUOTES: [(&str, &str); 6] = [("\"", "\""), ("'", "'"), ("`", "`"), ("{", "}"), ("[", "]"), ("“", "”")];
const KINDS: [Option<&str>; 5] =
    [Some("invalid_request_error"), Some("BadRequestError"), Some("server_error"), Some("api_error"), None];

/// The same error with another prompt in it is the same error, or at most the caller's.
pub(super) fn run_echo(input: &[u8]) {
    let Some(([status, which, at, kind], prompt)) = head(input) else { return };
    let status = [400, 422, 500, 502, 404, 403][usize::from(status) % 6];
    let rules = operation(which).rules;
    let begins = HEADS[usize::from(at) % HEADS.len()];
    let quotes = QUOTES[usize::from(at) / HEADS.len() % QUOTES.len()];
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    let class = |prompt: &str| {
        let message = [begins, quotes.0, prompt, quotes.1].concat();
        let body =
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}}).to_string();
        let status = StatusCode::from_u16(status).unwrap();
        classify(status, &HeaderMap::new(), body.as_bytes(), 0, rules).class
    };
    let prompt = String::from_utf8_lossy(prompt);
    let (echoed, other) = (class(&prompt), class("x"));
    // That harms nobody, so the whole message may say it.
    let is_harmless = echoed == FailureClass::BadRequest;
    assert!(is_harmless || echoed == other, "{status} {begins}{}{prompt}{}: {echoed}", quotes.0, quotes.1);
}
