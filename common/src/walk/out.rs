//! Why a route may not be asked, and what the caller is told when all of a chain are out. Pure.

use tokio::time::Instant;

use super::{Ending, Retry, bounded};
use crate::code::Code;

/// Why a route is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// The channel's breaker is open until then.
    BreakerOpen(Instant),
    /// The route cools down until then.
    CoolingDown(Instant),
    /// Credential, channel or route is suspended; `None` while another request finds out.
    Suspended(Option<Instant>),
    /// This node could not get the channel's credential.
    NoCredential,
}

impl Out {
    /// The name in records and on the ops listener.
    pub fn as_str(self) -> &'static str {
        match self {
            Out::BreakerOpen(_) => "breaker_open",
            Out::CoolingDown(_) => "cooling_down",
            Out::Suspended(_) => "suspended",
            Out::NoCredential => "no_credential",
        }
    }

    /// The reason of a name, until then.
    pub fn from_name(name: &str, until: Option<Instant>) -> Option<Self> {
        match (name, until) {
            ("breaker_open", Some(until)) => Some(Out::BreakerOpen(until)),
            ("cooling_down", Some(until)) => Some(Out::CoolingDown(until)),
            ("suspended", until) => Some(Out::Suspended(until)),
            ("no_credential", _) => Some(Out::NoCredential),
            _ => None,
        }
    }

    /// When it comes back, where that is known.
    pub fn returns_at(self) -> Option<Instant> {
        match self {
            Out::BreakerOpen(at) | Out::CoolingDown(at) | Out::Suspended(Some(at)) => Some(at),
            Out::Suspended(None) | Out::NoCredential => None,
        }
    }
}

/// The ending when no route could be asked, each for its reason: 429 if all only cool down, else 503.
pub fn none_left(outs: &[Out], now: Instant) -> Ending {
    // Without a credential only the operator can help; all else comes back by itself or is being tried now.
    if outs.iter().all(|out| matches!(out, Out::NoCredential)) {
        return Ending::of(Code::NoAvailableChannel, Retry::Never);
    }
    let only_cool_down = outs.iter().all(|out| matches!(out, Out::CoolingDown(_)));
    let code = if only_cool_down { Code::AllRateLimited } else { Code::NoAvailableChannel };
    let earliest = outs.iter().filter_map(|out| out.returns_at()).min();
    Ending::of(code, Retry::After(bounded(earliest.map(|at| at.saturating_duration_since(now)))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_ending_says_why_the_routes_were_out_even_if_they_are_back_by_now() {
        let now = Instant::now();
        let s = Duration::from_secs;
        let table = [
            (vec![Out::CoolingDown(now)], 429, Retry::After(s(1))),
            (vec![Out::BreakerOpen(now), Out::CoolingDown(now + s(9))], 503, Retry::After(s(1))),
            (
                vec![Out::BreakerOpen(now + s(50)), Out::Suspended(Some(now + s(20)))],
                503,
                Retry::After(s(20)),
            ),
            (vec![Out::CoolingDown(now + s(7)), Out::NoCredential], 503, Retry::After(s(7))),
            (vec![Out::Suspended(Some(now + s(20))), Out::NoCredential], 503, Retry::After(s(20))),
            (vec![Out::Suspended(None)], 503, Retry::After(s(1))),
            (vec![Out::Suspended(Some(now + s(900)))], 503, Retry::After(s(60))),
            (vec![Out::NoCredential], 503, Retry::Never),
            (vec![], 503, Retry::Never),
        ];
        for (outs, status, retry) in table {
            let ending = none_left(&outs, now);
            assert_eq!((ending.status, ending.retry), (status, retry), "{outs:?}");
        }
    }
}
