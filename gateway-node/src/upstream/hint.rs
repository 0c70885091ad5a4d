//! How long an upstream asks us to stay away: `retry-after` and its vendor cousins. Says what was asked;
//! how much of it is obeyed is the pause's matter.

use std::time::Duration;

use http::HeaderMap;
use jiff::fmt::rfc2822;
use memchr::memmem;
use serde_json::{Map, Value};

/// The hint of an answer: `retry-after-ms`, else `retry-after` (seconds or a date), else Google's `RetryInfo` in
/// the body. What cannot be understood is no hint.
pub fn retry_after(headers: &HeaderMap, body: &[u8], now_ms: u64) -> Option<Duration> {
    header(headers, "retry-after-ms")
        .and_then(|value| seconds(value).map(|ms| ms / 1000))
        .or_else(|| {
            header(headers, "retry-after").and_then(|value| seconds(value).or_else(|| date(value, now_ms)))
        })
        .or_else(|| in_body(body))
}

/// When the used-up limit of a 429 is full again, from `x-ratelimit-reset-*`. Says nothing under any other
/// status: those headers stand on every answer.
pub fn reset(headers: &HeaderMap) -> Option<Duration> {
    let limits = ["requests", "tokens"].map(|unit| {
        let reset = header(headers, &format!("x-ratelimit-reset-{unit}")).and_then(go_duration);
        let is_used_up = header(headers, &format!("x-ratelimit-remaining-{unit}")) == Some("0");
        (is_used_up, reset)
    });
    let used_up = limits.iter().filter(|(is_used_up, _)| *is_used_up).filter_map(|(_, reset)| *reset).max();
    used_up.or_else(|| limits.iter().filter_map(|(_, reset)| *reset).min())
}

/// `RetryInfo` among the `details` of Google's error object.
pub fn in_details(error: &Map<String, Value>) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let info = details.iter().find(|detail| {
        detail.get("@type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("google.rpc.RetryInfo"))
    })?;
    seconds(info.get("retryDelay")?.as_str()?.strip_suffix('s')?)
}

fn in_body(body: &[u8]) -> Option<Duration> {
    // Most error bodies have none, and need no tree.
    memmem::find(body, b"retryDelay")?;
    let document: Value = serde_json::from_slice(body).ok()?;
    let document = document.as_array().and_then(|items| items.first()).unwrap_or(&document);
    in_details(document.get("error")?.as_object()?)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn seconds(value: &str) -> Option<Duration> {
    // The standard parser also takes "inf", "nan" and exponents, which no server means.
    let is_plain = value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    Duration::try_from_secs_f64(value.parse().ok().filter(|_| is_plain)?).ok()
}

fn date(value: &str, now_ms: u64) -> Option<Duration> {
    let at = rfc2822::parse(value).ok()?.timestamp().as_millisecond();
    Some(Duration::from_millis(u64::try_from(at).ok()?.saturating_sub(now_ms)))
}

/// `6m0s`, `1.2s`, `120ms`: numbers with units, as Go prints a duration.
fn go_duration(value: &str) -> Option<Duration> {
    let mut rest = value;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit_len = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_len);
        let scale = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()?;
        total = total.checked_add(part)?;
        rest = tail;
    }
    (!value.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests;
