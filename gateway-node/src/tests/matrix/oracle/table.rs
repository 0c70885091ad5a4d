//! The design's class table, in the oracle's own words.

use common::class::FailureClass as F;

/// What happens to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Hop,
    /// Unless the request is older than 300 s.
    HopIfYoung,
    Return,
    Stop,
}

/// What happens to the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Counted,
    Cooldown,
    Credential,
    Channel,
    Route,
}

/// A row of the design's class table.
pub struct Row {
    pub class: F,
    pub signals: &'static str,
    pub next: Next,
    pub effect: Effect,
    /// What the caller sees if it was the last.
    pub status: u16,
    pub code: &'static str,
}

const fn row(
    class: F,
    next: Next,
    effect: Effect,
    status: u16,
    code: &'static str,
    signals: &'static str,
) -> Row {
    Row { class, signals, next, effect, status, code }
}

/// The class table.
pub const TABLE: [Row; 14] = [
    row(
        F::Connect,
        Next::Hop,
        Effect::Counted,
        503,
        "upstream_unavailable",
        "DNS, TCP, TLS, or closed before the headers",
    ),
    row(
        F::Timeout,
        Next::HopIfYoung,
        Effect::Counted,
        504,
        "upstream_timeout",
        "no headers within 240 s; 408, 504, 524",
    ),
    row(F::RateLimited, Next::Hop, Effect::Cooldown, 429, "upstream_rate_limited", "429, throttling"),
    row(F::Overloaded, Next::Hop, Effect::Counted, 503, "upstream_overloaded", "503, 529, 498"),
    row(
        F::UpstreamError,
        Next::Hop,
        Effect::Counted,
        502,
        "upstream_error",
        "every other 5xx, 424; cut before commit",
    ),
    row(F::Malformed, Next::Hop, Effect::Counted, 502, "upstream_error", "HTML or broken JSON under a 200"),
    row(F::Empty, Next::Hop, Effect::Counted, 502, "upstream_error", "a stream or body with nothing in it"),
    row(F::Transient, Next::Hop, Effect::Nothing, 503, "upstream_unavailable", "409, 425"),
    row(F::Credential, Next::Hop, Effect::Credential, 503, "no_available_channel", "401"),
    row(
        F::Balance,
        Next::Hop,
        Effect::Channel,
        503,
        "no_available_channel",
        "402, quota used up, credit too low",
    ),
    row(
        F::Misconfigured,
        Next::Hop,
        Effect::Route,
        503,
        "no_available_channel",
        "403, 404 of a model in the catalog, 3xx",
    ),
    row(
        F::BadRequest,
        Next::Return,
        Effect::Nothing,
        400,
        "invalid_request",
        "400, 413, 422, context length, content policy",
    ),
    row(F::Canceled, Next::Stop, Effect::Nothing, 499, "canceled", "the caller went away"),
    row(
        F::Cut,
        Next::Stop,
        Effect::Counted,
        502,
        "upstream_stream_error",
        "cut, stalled or without its last frame after commit",
    ),
];

/// The row of a class.
pub fn of(class: F) -> &'static Row {
    TABLE.iter().find(|row| row.class == class).expect("every class has a row")
}
