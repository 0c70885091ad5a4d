//! The one table that decides: what kind of failure an attempt met, what happens next, what it does
//! to the channel, whether the breaker counts it, and what the caller sees if it was the last.
//! No other file asks whether something can be retried.

use std::fmt;
use std::str::FromStr;

use crate::code::Code;

/// What kind of failure an attempt met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureClass {
    /// DNS, TCP, TLS; HTTP/2 refused or GOAWAY-unprocessed.
    Connect,
    /// The headers timeout, or the upstream's own (408, 504, 524).
    Timeout,
    /// The upstream throttles us.
    RateLimited,
    /// The upstream has no capacity.
    Overloaded,
    /// Every other fault of the upstream.
    UpstreamError,
    /// HTML or broken JSON under a 200.
    Malformed,
    /// A stream or body with nothing in it.
    Empty,
    /// 409 and 425: a conflict that another channel does not have.
    Transient,
    /// The upstream refused our credential.
    Credential,
    /// The upstream wants money.
    Balance,
    /// The upstream does not have what our catalog says it has.
    Misconfigured,
    /// The request itself is at fault.
    BadRequest,
    /// The caller went away.
    Canceled,
    /// The answer broke off after commit.
    Cut,
}

/// What happens to the request after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next channel of the chain.
    Hop,
    /// The next channel, unless the request is too old for another wait.
    HopIfYoung,
    /// Back to the caller.
    Return,
    /// Nobody is there to answer, or an answer has begun.
    Stop,
}

/// What happens to the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// One failure in the breaker's window.
    Failure,
    /// The route (or the channel) cools down for as long as the upstream says.
    Cooldown,
    /// The credential is suspended on this node.
    SuspendCredential,
    /// The channel is suspended.
    SuspendChannel,
    /// The route is suspended.
    SuspendRoute,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    /// What happens to the request.
    pub next: Next,
    /// What happens to the channel.
    pub effect: Effect,
    /// What the caller sees if this was the last; for `bad_request` the upstream's own status is kept.
    pub code: Code,
    /// Whether it lowers the success rate; what does not is in neither side of the ratio.
    pub is_failure: bool,
    /// Whether it says something about the request's success that a later, more telling class may not override:
    /// `credential`, `balance` and `misconfigured` concern the operator, and give way to any other.
    pub decides_status: bool,
}

impl FailureClass {
    /// Every class, in the order of the table.
    pub const ALL: [FailureClass; 14] = [
        FailureClass::Connect,
        FailureClass::Timeout,
        FailureClass::RateLimited,
        FailureClass::Overloaded,
        FailureClass::UpstreamError,
        FailureClass::Malformed,
        FailureClass::Empty,
        FailureClass::Transient,
        FailureClass::Credential,
        FailureClass::Balance,
        FailureClass::Misconfigured,
        FailureClass::BadRequest,
        FailureClass::Canceled,
        FailureClass::Cut,
    ];

    /// The row of the table.
    pub fn consequence(self) -> Consequence {
        use {Effect as E, FailureClass as F, Next as N};
        let row = |next, effect, code, is_failure, decides_status| Consequence {
            next,
            effect,
            code,
            is_failure,
            decides_status,
        };
        match self {
            F::Connect => row(N::Hop, E::Failure, Code::UpstreamUnavailable, true, true),
            F::Timeout => row(N::HopIfYoung, E::Failure, Code::UpstreamTimeout, true, true),
            F::RateLimited => row(N::Hop, E::Cooldown, Code::UpstreamRateLimited, true, true),
            F::Overloaded => row(N::Hop, E::Failure, Code::UpstreamOverloaded, true, true),
            F::UpstreamError => row(N::Hop, E::Failure, Code::UpstreamError, true, true),
            F::Malformed => row(N::Hop, E::Failure, Code::UpstreamError, true, true),
            F::Empty => row(N::Hop, E::Failure, Code::UpstreamError, true, true),
            F::Transient => row(N::Hop, E::None, Code::UpstreamUnavailable, true, true),
            F::Credential => row(N::Hop, E::SuspendCredential, Code::NoAvailableChannel, true, false),
            F::Balance => row(N::Hop, E::SuspendChannel, Code::NoAvailableChannel, true, false),
            F::Misconfigured => row(N::Hop, E::SuspendRoute, Code::NoAvailableChannel, true, false),
            F::BadRequest => row(N::Return, E::None, Code::InvalidRequest, false, true),
            F::Canceled => row(N::Stop, E::None, Code::Canceled, false, true),
            F::Cut => row(N::Stop, E::Failure, Code::UpstreamStreamError, true, true),
        }
    }

    /// Whether it counts in the breaker's window.
    pub fn counts_for_breaker(self) -> bool {
        self.consequence().effect == Effect::Failure
    }

    /// The name in records, counters and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Connect => "connect",
            FailureClass::Timeout => "timeout",
            FailureClass::RateLimited => "rate_limited",
            FailureClass::Overloaded => "overloaded",
            FailureClass::UpstreamError => "upstream_error",
            FailureClass::Malformed => "malformed",
            FailureClass::Empty => "empty",
            FailureClass::Transient => "transient",
            FailureClass::Credential => "credential",
            FailureClass::Balance => "balance",
            FailureClass::Misconfigured => "misconfigured",
            FailureClass::BadRequest => "bad_request",
            FailureClass::Canceled => "canceled",
            FailureClass::Cut => "cut",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no class's.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no such failure class \"{0}\"")]
pub struct UnknownClass(pub String);

impl FromStr for FailureClass {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Self, UnknownClass> {
        FailureClass::ALL
            .into_iter()
            .find(|c| c.as_str() == name)
            .ok_or_else(|| UnknownClass(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_of_the_design() {
        let table = [
            ("connect", Next::Hop, Effect::Failure, 503),
            ("timeout", Next::HopIfYoung, Effect::Failure, 504),
            ("rate_limited", Next::Hop, Effect::Cooldown, 429),
            ("overloaded", Next::Hop, Effect::Failure, 503),
            ("upstream_error", Next::Hop, Effect::Failure, 502),
            ("malformed", Next::Hop, Effect::Failure, 502),
            ("empty", Next::Hop, Effect::Failure, 502),
            ("transient", Next::Hop, Effect::None, 503),
            ("credential", Next::Hop, Effect::SuspendCredential, 503),
            ("balance", Next::Hop, Effect::SuspendChannel, 503),
            ("misconfigured", Next::Hop, Effect::SuspendRoute, 503),
            ("bad_request", Next::Return, Effect::None, 400),
            ("canceled", Next::Stop, Effect::None, 499),
            ("cut", Next::Stop, Effect::Failure, 502),
        ];
        assert_eq!(table.len(), FailureClass::ALL.len());
        for (name, next, effect, status) in table {
            let class: FailureClass = name.parse().unwrap();
            let row = class.consequence();
            assert_eq!((row.next, row.effect, row.code.status()), (next, effect, status), "{name}");
            assert_eq!(class.as_str(), name);
        }
    }

    #[test]
    fn only_what_the_caller_did_is_no_failure() {
        let neutral: Vec<_> = FailureClass::ALL.into_iter().filter(|c| !c.consequence().is_failure).collect();
        assert_eq!(neutral, [FailureClass::BadRequest, FailureClass::Canceled]);
    }
}
