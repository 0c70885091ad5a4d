//! What an upstream's refusal means: status, headers and error body → class. The one place that compares
//! statuses; errors inside a 200 are judged by the same rules. What is said by name counts more than the status,
//! the status more than what can be read out of a message.

mod overrides;
mod words;

use common::class::FailureClass as F;
use common::walk::Reason;
use http::{HeaderMap, StatusCode};

use super::hint;
use crate::dialect::Rules;
use crate::dialect::json::{read, trimmed};
use crate::dialect::parts::{Parts, Shape};
use crate::fault::{Fault, Said};
pub use overrides::overridden;
pub(crate) use words::unquoted;
use words::{Word, word};

/// Judges an answer whose status is not 2xx; redirects are not followed. `body` is what was read of it, perhaps cut.
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], now_ms: u64, rules: &Rules) -> Fault {
    let status = status.as_u16();
    let mut parts =
        read(trimmed(body)).and_then(|document| (rules.find_error)(&document)).unwrap_or_default();
    if let (None, Some(kind)) =
        (&parts.kind, headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok()))
    {
        parts.kind = kind.split(':').next().map(str::to_owned);
    }
    let (class, reason) = exactly(Some(status), &parts).unwrap_or_else(|| by_status(status, &parts));
    let hint = hint::retry_after(headers, body, now_ms).or(parts.retry_delay);
    let hint = hint.or_else(|| (status == 429).then(|| hint::reset(headers)).flatten());
    finish(class, reason, Some(status), &parts)
        .with_retry_after(hint)
        .with_untaken(is_refusal(status) && parts.shape == Shape::Dialect)
}

/// A status that says, together with an error of the dialect, that nothing was begun.
fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 404 | 429 | 503)
}

/// What a refusal means where no other channel can be asked: a proxy's page ends the request as an upstream's own words
/// do. `is_of_thing` says that it is about what one channel made: that it is not there, or not in a state for what was
/// asked, is the answer then, and takes no route away.
pub fn alone(fault: Fault, is_of_thing: bool) -> Fault {
    let is_answer = is_of_thing && matches!(fault.status, Some(404 | 405 | 409 | 410));
    match fault.class {
        F::Misconfigured | F::Transient | F::BadRequest if is_answer => {
            Fault { class: F::BadRequest, reason: Reason::Plain, ..fault }
        }
        F::BadRequest if fault.reason == Reason::Unshaped => Fault { reason: Reason::Plain, ..fault },
        _ => fault,
    }
}

/// Judges an error inside a 200.
pub fn error_value(parts: &Parts) -> Fault {
    let number = parts.number.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n));
    let (class, reason) = exactly(number, parts)
        .or_else(|| parts.error_type.as_deref().and_then(word).map(|word| read_word(word, parts)))
        .or_else(|| number.map(|status| by_status(status, parts)))
        .or_else(|| names(parts).find_map(word).map(|word| read_word(word, parts)))
        .or_else(|| words::phrase(&parts.message))
        .unwrap_or((F::UpstreamError, Reason::Plain));
    finish(class, reason, number, parts).with_retry_after(parts.retry_delay)
}

fn finish(class: F, reason: Reason, status: Option<u16>, parts: &Parts) -> Fault {
    let fault =
        Fault::of(class).with_reason(reason).with_detail(parts.detail()).with_said(said(status, parts));
    match status {
        _ if class == F::BadRequest => fault.with_status(shown(status)),
        Some(status) => fault.with_status(status),
        None => fault,
    }
}

fn said(status: Option<u16>, parts: &Parts) -> Said {
    let number = parts.number.map(|number| number.to_string());
    let others = number.into_iter().chain(parts.limit_source.clone());
    Said {
        status,
        names: names(parts).map(str::to_owned).chain(others).collect(),
        message: parts.message.clone(),
    }
}

/// The status of a bad request as callers may see it: a 4xx that is about the request and not about the
/// operator's account, and that the SDKs do not repeat.
fn shown(status: Option<u16>) -> u16 {
    match status {
        Some(401 | 402 | 403 | 407 | 408 | 409 | 425 | 429 | 498 | 499) | None => 400,
        Some(status) if (400..500).contains(&status) => status,
        Some(_) => 400,
    }
}

/// The names in an error, most telling first.
fn names(parts: &Parts) -> impl Iterator<Item = &str> {
    [&parts.error_type, &parts.code, &parts.error_code, &parts.inner_code, &parts.status, &parts.kind]
        .into_iter()
        .filter_map(|name| name.as_deref())
}

/// What an error says so exactly that its status does not matter.
fn exactly(status: Option<u16>, parts: &Parts) -> Option<(F, Reason)> {
    match parts.limit_source.as_deref() {
        Some("openrouter_in_flight_budget") => return Some((F::RateLimited, Reason::Plain)),
        Some(_) => return Some((F::Balance, Reason::Plain)),
        None => {}
    }
    let message = parts.message.to_ascii_lowercase();
    let is_rate = matches!(status, Some(413 | 429))
        || names(parts).any(|n| word(n) == Some(Word::General(F::RateLimited)));
    if is_rate && message.starts_with("request too large") {
        return Some((F::RateLimited, Reason::SingleRequest));
    }
    if parts.is_flagged {
        return Some((F::BadRequest, Reason::ContentPolicy));
    }
    // What this request needs is missing there; others of the same route do well.
    if message.starts_with("no endpoints found that support") || words::is_about_resource(&message) {
        return Some((F::BadRequest, Reason::Unshaped));
    }
    names(parts).find_map(|name| match word(name) {
        Some(Word::Exact(F::BadRequest, Reason::TooLarge)) if status == Some(413) => None,
        // Not the model is missing, but what the request names by id.
        Some(Word::Exact(F::Misconfigured, _))
            if matches!(status, None | Some(403 | 404)) && is_named_by_request(parts) =>
        {
            // Its status may still say what is wrong with it.
            status.is_none().then_some((F::BadRequest, Reason::Unshaped))
        }
        Some(Word::Exact(class, reason)) => Some((class, reason)),
        Some(Word::General(_)) | None => None,
    })
}

fn read_word(word: Word, parts: &Parts) -> (F, Reason) {
    match word {
        Word::Exact(class, reason) => (class, reason),
        Word::General(F::BadRequest) => bad_request(parts),
        Word::General(class) => (class, Reason::Plain),
    }
}

fn by_status(status: u16, parts: &Parts) -> (F, Reason) {
    let class = match status {
        300..400 => F::Misconfigured,
        400 | 422 => return bad_request_unless_shared(status, parts),
        401 => F::Credential,
        402 => F::Balance,
        403 if words::is_about_policy(&parts.message) => return (F::BadRequest, Reason::ContentPolicy),
        // What is no error of the dialect may come from a filter that dislikes what the request says: that must not
        // take the route away from everybody.
        403 if parts.shape == Shape::Foreign && names(parts).next().is_none() => {
            return (F::BadRequest, Reason::Unshaped);
        }
        // What the request names by id is missing there, not the model.
        403 | 404 if is_named_by_request(parts) => return (F::BadRequest, Reason::Unshaped),
        // It depends on what the request names, such as a server of tools.
        424 if is_named_by_request(parts) => return (F::BadRequest, Reason::Plain),
        403 | 404 | 405 | 407 | 410 | 426 => F::Misconfigured,
        408 | 504 | 524 => F::Timeout,
        409 | 421 | 425 => F::Transient,
        413 => return (F::BadRequest, Reason::Unshaped),
        424 | 499 => F::UpstreamError,
        429 => F::RateLimited,
        498 | 503 | 529 => F::Overloaded,
        400..500 => return bad_request_unless_shared(status, parts),
        _ => shared(parts).unwrap_or(F::UpstreamError),
    };
    (class, Reason::Plain)
}

/// Whether an error is about something that the request names, and not about the model.
fn is_named_by_request(parts: &Parts) -> bool {
    match parts.param.as_deref() {
        Some(param) => param != "model",
        None => words::is_about_id(&parts.message),
    }
}

/// A name that says that the upstream has too much to do, under a status that does not.
fn shared(parts: &Parts) -> Option<F> {
    names(parts).find_map(|name| match word(name) {
        Some(Word::General(class @ (F::RateLimited | F::Overloaded | F::Timeout))) => Some(class),
        _ => None,
    })
}

fn bad_request_unless_shared(status: u16, parts: &Parts) -> (F, Reason) {
    if let Some(class) = shared(parts) {
        return (class, Reason::Plain);
    }
    match (parts.shape, bad_request(parts)) {
        (Shape::Foreign, (F::BadRequest, Reason::Plain)) => (F::BadRequest, Reason::Unshaped),
        (Shape::Detail, (F::BadRequest, Reason::Plain)) if status != 422 => (F::BadRequest, Reason::Unshaped),
        (_, judged) => judged,
    }
}

/// What the request is to blame for, unless the message says that it is not the request at all.
fn bad_request(parts: &Parts) -> (F, Reason) {
    // An error that points at a parameter is about that parameter, whatever its text quotes.
    let head = if parts.param.is_none() { words::unquoted(&parts.message) } else { String::new() };
    if words::is_about_money(&head) {
        (F::Balance, Reason::Plain)
    } else if words::is_about_key(&head) {
        (F::Credential, Reason::Plain)
    } else if parts.param.as_deref() == Some("model")
        || (parts.param.is_none() && words::is_about_model(&parts.message))
    {
        // The model's name is ours, not the caller's.
        (F::Misconfigured, Reason::Plain)
    } else if words::is_about_length(&parts.message) {
        (F::BadRequest, Reason::ContextLength)
    } else if words::is_about_policy(&parts.message) {
        (F::BadRequest, Reason::ContentPolicy)
    } else {
        (F::BadRequest, Reason::Plain)
    }
}

#[cfg(test)]
mod tests;
