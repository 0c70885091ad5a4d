//! Counters of ten seconds: adding, merging, totals. A window is the same whether it holds one
//! attempt or five minutes; the node's journal is made of windows with a single count in them.
//! When to seal and what was already sent is the node's matter; that each counts once, the control plane's.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::class::FailureClass;
use crate::code::Code;
use crate::first_byte::bucket_ms;
use crate::pb::fleet as pb;

/// How an attempt ended, for the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttemptEnd {
    /// The answer was good to its end.
    Ok,
    /// It failed, or counts neither way; the class says which.
    Failed(FailureClass),
}

impl AttemptEnd {
    /// `ok` or the name of the class.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptEnd::Ok => "ok",
            AttemptEnd::Failed(class) => class.as_str(),
        }
    }

    /// Reads what [`AttemptEnd::as_str`] writes.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "ok" { Some(AttemptEnd::Ok) } else { name.parse().ok().map(AttemptEnd::Failed) }
    }
}

/// How a request ended, for the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestOutcome {
    /// The caller has a whole answer.
    Served,
    /// All hops failed, or no channel was available.
    Exhausted,
    /// The answer broke off after commit.
    Cut,
    /// The request itself was at fault.
    BadRequest,
    /// The caller went away.
    Canceled,
    /// A refusal of our own before any channel was asked for.
    Refused(Code),
}

impl RequestOutcome {
    /// The name in counters; of a refusal its code.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestOutcome::Served => "served",
            RequestOutcome::Exhausted => "exhausted",
            RequestOutcome::Cut => "cut",
            RequestOutcome::BadRequest => "bad_request",
            RequestOutcome::Canceled => "canceled",
            RequestOutcome::Refused(code) => code.as_str(),
        }
    }

    /// Reads what [`RequestOutcome::as_str`] writes.
    pub fn parse(name: &str) -> Option<Self> {
        let named = [
            RequestOutcome::Served,
            RequestOutcome::Exhausted,
            RequestOutcome::Cut,
            RequestOutcome::BadRequest,
            RequestOutcome::Canceled,
        ];
        let refused = || Code::ALL.iter().copied().map(RequestOutcome::Refused);
        named.into_iter().chain(refused()).find(|o| o.as_str() == name)
    }
}

/// Running totals of a boot, kept apart from the windows to check them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Attempts of every ending.
    pub attempts: u64,
    /// Attempts that were good.
    pub attempts_ok: u64,
    /// Requests of every outcome.
    pub requests: u64,
    /// Requests that were served.
    pub requests_served: u64,
}

impl std::ops::Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            attempts: self.attempts + other.attempts,
            attempts_ok: self.attempts_ok + other.attempts_ok,
            requests: self.requests + other.requests,
            requests_served: self.requests_served + other.requests_served,
        }
    }
}

impl From<Totals> for pb::Totals {
    fn from(t: Totals) -> Self {
        pb::Totals {
            attempts: t.attempts,
            attempts_ok: t.attempts_ok,
            requests: t.requests,
            requests_served: t.requests_served,
        }
    }
}

impl From<pb::Totals> for Totals {
    fn from(t: pb::Totals) -> Self {
        Totals {
            attempts: t.attempts,
            attempts_ok: t.attempts_ok,
            requests: t.requests,
            requests_served: t.requests_served,
        }
    }
}

/// Counters and nothing else. Names are kept as they came, so that a newer node's are not lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// (model, channel, `ok` or class) → attempts.
    pub attempts: BTreeMap<(String, String, String), u64>,
    /// (model, outcome) → requests.
    pub requests: BTreeMap<(String, String), u64>,
    /// (model, channel, or nothing for what callers saw, bound in milliseconds) → times to the first byte.
    pub first_bytes: BTreeMap<(String, String, u32), u64>,
}

impl Counts {
    /// Adds one attempt.
    pub fn add_attempt(&mut self, model: &str, channel: &str, end: AttemptEnd) {
        *self.attempts.entry((model.to_owned(), channel.to_owned(), end.as_str().to_owned())).or_default() +=
            1;
    }

    /// Adds one request.
    pub fn add_request(&mut self, model: &str, outcome: RequestOutcome) {
        *self.requests.entry((model.to_owned(), outcome.as_str().to_owned())).or_default() += 1;
    }

    /// Adds one time to the first byte on a channel, or without one what a caller saw.
    pub fn add_first_byte(&mut self, model: &str, channel: &str, time: Duration) {
        *self.first_bytes.entry((model.to_owned(), channel.to_owned(), bucket_ms(time))).or_default() += 1;
    }

    /// Adds the counters of another.
    pub fn merge(&mut self, other: Counts) {
        for (key, count) in other.attempts {
            *self.attempts.entry(key).or_default() += count;
        }
        for (key, count) in other.requests {
            *self.requests.entry(key).or_default() += count;
        }
        for (key, count) in other.first_bytes {
            *self.first_bytes.entry(key).or_default() += count;
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.requests.is_empty() && self.first_bytes.is_empty()
    }

    /// The sums that running totals are checked against.
    pub fn totals(&self) -> Totals {
        Totals {
            attempts: self.attempts.values().sum(),
            attempts_ok: self.attempts.iter().filter(|((_, _, end), _)| end == "ok").map(|(_, n)| n).sum(),
            requests: self.requests.values().sum(),
            requests_served: self.requests.iter().filter(|((_, o), _)| o == "served").map(|(_, n)| n).sum(),
        }
    }
}

/// A sealed window: numbered from 1 within its boot, or several that follow each other, merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    /// Number of the first ten seconds in it.
    pub first_seq: u64,
    /// Number of the last; the same unless merged.
    pub last_seq: u64,
    /// Wall time of its beginning, in milliseconds since 1970.
    pub start_ms: u64,
    /// Wall time of its end.
    pub end_ms: u64,
    /// What was counted.
    pub counts: Counts,
}

impl Window {
    /// Takes in the window that follows directly; gives it back when it does not follow or lies in
    /// another bucket of `bucket_ms`.
    pub fn try_merge(&mut self, next: Window, bucket_ms: u64) -> Result<(), Window> {
        let bucket = |w: &Window| w.start_ms / bucket_ms.max(1);
        if next.first_seq != self.last_seq + 1 || bucket(&next) != bucket(self) {
            return Err(next);
        }
        self.last_seq = next.last_seq;
        self.end_ms = self.end_ms.max(next.end_ms);
        self.counts.merge(next.counts);
        Ok(())
    }
}

impl From<Window> for pb::Window {
    fn from(window: Window) -> Self {
        let attempts = window.counts.attempts.into_iter();
        let requests = window.counts.requests.into_iter();
        let first_bytes = window.counts.first_bytes.into_iter();
        pb::Window {
            first_seq: window.first_seq,
            last_seq: window.last_seq,
            start_ms: window.start_ms,
            end_ms: window.end_ms,
            attempts: attempts
                .map(|((model, channel, class), count)| pb::AttemptCount { model, channel, class, count })
                .collect(),
            requests: requests
                .map(|((model, outcome), count)| pb::RequestCount { model, outcome, count })
                .collect(),
            first_bytes: first_bytes
                .map(|((model, channel, bound_ms), count)| pb::FirstByteCount {
                    model,
                    channel,
                    bound_ms,
                    count,
                })
                .collect(),
        }
    }
}

impl From<pb::Window> for Window {
    fn from(window: pb::Window) -> Self {
        let mut counts = Counts::default();
        for a in window.attempts {
            *counts.attempts.entry((a.model, a.channel, a.class)).or_default() += a.count;
        }
        for r in window.requests {
            *counts.requests.entry((r.model, r.outcome)).or_default() += r.count;
        }
        for f in window.first_bytes {
            *counts.first_bytes.entry((f.model, f.channel, f.bound_ms)).or_default() += f.count;
        }
        Window {
            first_seq: window.first_seq,
            last_seq: window.last_seq,
            start_ms: window.start_ms,
            end_ms: window.end_ms,
            counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(seq: u64, start_ms: u64) -> Window {
        let mut counts = Counts::default();
        counts.add_attempt("m", "a", AttemptEnd::Failed(FailureClass::Overloaded));
        counts.add_attempt("m", "b", AttemptEnd::Ok);
        counts.add_request("m", RequestOutcome::Served);
        counts.add_first_byte("m", "", Duration::from_millis(320));
        counts.add_first_byte("m", "b", Duration::from_millis(55));
        Window { first_seq: seq, last_seq: seq, start_ms, end_ms: start_ms + 10_000, counts }
    }

    #[test]
    fn windows_that_follow_each_other_inside_a_bucket_merge_and_keep_every_count() {
        let mut merged = window(1, 0);
        merged.try_merge(window(2, 10_000), 300_000).unwrap();
        assert_eq!((merged.first_seq, merged.last_seq, merged.end_ms), (1, 2, 20_000));
        let totals = Totals { attempts: 4, attempts_ok: 2, requests: 2, requests_served: 2 };
        assert_eq!(merged.counts.totals(), totals);
        let times: Vec<_> = merged.counts.first_bytes.iter().map(|((_, c, ms), n)| (&**c, *ms, *n)).collect();
        assert_eq!(times, [("", 330, 2), ("b", 56, 2)]);
    }

    #[test]
    fn windows_of_other_buckets_or_with_a_gap_between_them_do_not_merge() {
        let mut first = window(1, 290_000);
        assert!(first.try_merge(window(2, 300_000), 300_000).is_err());
        assert!(first.try_merge(window(3, 291_000), 300_000).is_err());
        assert_eq!(first, window(1, 290_000));
    }

    #[test]
    fn a_window_survives_the_wire() {
        let there = pb::Window::from(window(7, 70_000));
        assert_eq!(Window::from(there), window(7, 70_000));
    }

    #[test]
    fn every_name_is_read_back() {
        for class in FailureClass::ALL {
            let end = AttemptEnd::Failed(class);
            assert_eq!(AttemptEnd::parse(end.as_str()), Some(end));
        }
        let refused = RequestOutcome::Refused(Code::InvalidApiKey);
        for outcome in [RequestOutcome::Served, RequestOutcome::Cut, refused] {
            assert_eq!(RequestOutcome::parse(outcome.as_str()), Some(outcome));
        }
    }
}
