//! Pauses that are no open breaker: the cooldown after a rate limit, and the suspension of a
//! credential, channel or route that only an operator can mend.
//!
//! ```text
//! clear ──suspend──▶ suspended (60 s, then 120 s, … 15 min) ──time──▶ due
//!   ▲                    ▲                                             │ one request at a time
//!   └────────────────────┼──────────── a success ──────────────────────┤
//!                        └──────────── refused again ──────────────────┘
//! ```
//! Reads no clock; the machine says what happened, the shell logs it.

use std::time::Duration;

use tokio::time::Instant;

use common::class::FailureClass;
use common::limits::{COOLDOWN_DEFAULT, COOLDOWN_MAX, COOLDOWN_MIN, SUSPENSION_FIRST, SUSPENSION_MAX};

/// How long a rate limit keeps a route out: the upstream's hint inside its bounds, or the default.
pub fn cooldown(hint: Option<Duration>) -> Duration {
    hint.map_or(COOLDOWN_DEFAULT, |hint| hint.clamp(COOLDOWN_MIN, COOLDOWN_MAX))
}

/// Whether a request may use what is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Nothing is suspended.
    Clear,
    /// The time is over; this request may find out.
    Trial,
    /// Out until then; `None` while another request is finding out.
    Out(Option<Instant>),
}

/// A suspension and its trials.
#[derive(Debug, Default)]
pub struct Suspension {
    /// How often in a row it was refused.
    refusals: u32,
    until: Option<Instant>,
    trying: bool,
    /// When it began, and the class of what it met last.
    since: Option<Instant>,
    why: &'static str,
}

/// How a pause stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// When it began, where that is known.
    pub since: Option<Instant>,
    /// When it ends, or when the first request may try.
    pub until: Instant,
    /// The class of what it met; empty where that is not kept.
    pub why: &'static str,
}

impl Standing {
    /// That of a cooldown: only rate limits lead to one.
    pub fn cooling(until: Instant) -> Self {
        Standing { since: None, until, why: FailureClass::RateLimited.as_str() }
    }
}

impl Suspension {
    /// Takes in a refusal. Returns whether it was clear before: that is when it is alerted.
    pub fn suspend(&mut self, now: Instant, why: &'static str) -> bool {
        // Requests that were in flight when the first refusal came say nothing new.
        if self.until.is_some_and(|until| until > now) {
            return false;
        }
        let was_clear = self.until.is_none();
        let length = SUSPENSION_FIRST.saturating_mul(2u32.saturating_pow(self.refusals)).min(SUSPENSION_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.until = Some(now + length);
        self.trying = false;
        self.since.get_or_insert(now);
        self.why = why;
        was_clear
    }

    /// Says whether a request may pass, without taking the place of the trial.
    pub fn look(&self, now: Instant) -> Admission {
        match self.until {
            None => Admission::Clear,
            Some(until) if until > now => Admission::Out(Some(until)),
            Some(_) if self.trying => Admission::Out(None),
            Some(_) => Admission::Trial,
        }
    }

    /// As [`Suspension::look`], and takes the place of the trial if that is the answer. The place
    /// is given back by [`Suspension::succeed`], [`Suspension::suspend`] or [`Suspension::release`].
    pub fn admit(&mut self, now: Instant) -> Admission {
        let admission = self.look(now);
        self.trying |= admission == Admission::Trial;
        admission
    }

    /// A success ends it. Returns whether there was something to end.
    pub fn succeed(&mut self) -> bool {
        let was_suspended = self.until.is_some();
        *self = Suspension::default();
        was_suspended
    }

    /// A trial that told nothing (a neutral ending, or its request was dropped) gives its place back.
    pub fn release(&mut self) {
        self.trying = false;
    }

    /// How it stands, until a success ends it.
    pub fn standing(&self) -> Option<Standing> {
        Some(Standing { since: self.since, until: self.until?, why: self.why })
    }

    /// Whether there is nothing to ask about.
    pub fn is_clear(&self) -> bool {
        self.until.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br_047_a_rate_limit_without_a_hint_cools_down_for_fifteen_seconds() {
        let s = Duration::from_secs;
        let table = [
            (None, s(15)),
            (Some(s(0)), s(1)),
            (Some(s(7)), s(7)),
            (Some(s(3600)), s(60)),
            (Some(Duration::from_millis(1500)), Duration::from_millis(1500)),
        ];
        for (hint, expected) in table {
            assert_eq!(cooldown(hint), expected, "{hint:?}");
        }
    }

    #[tokio::test]
    async fn a_suspension_doubles_from_a_minute_to_a_quarter_of_an_hour_and_is_new_only_once() {
        let mut now = Instant::now();
        let mut suspension = Suspension::default();
        let mut lengths = Vec::new();
        for n in 0..6 {
            assert_eq!(suspension.suspend(now, "balance"), n == 0);
            let Admission::Out(Some(until)) = suspension.look(now) else { panic!("not out") };
            lengths.push((until - now).as_secs());
            now = until;
            assert_eq!(suspension.admit(now), Admission::Trial);
        }
        assert_eq!(lengths, [60, 120, 240, 480, 900, 900]);
    }

    #[tokio::test]
    async fn br_061_one_request_at_a_time_may_try_and_a_dropped_one_gives_its_place_back() {
        let t0 = Instant::now();
        let due = t0 + SUSPENSION_FIRST;
        let mut suspension = Suspension::default();
        suspension.suspend(t0, "balance");
        assert_eq!(suspension.admit(due), Admission::Trial);
        assert_eq!(suspension.admit(due), Admission::Out(None));
        suspension.release();
        assert_eq!(suspension.admit(due), Admission::Trial);
        assert!(suspension.succeed());
        assert_eq!(suspension.admit(due), Admission::Clear);
    }

    #[tokio::test]
    async fn it_tells_since_when_it_stands_and_what_it_met_last() {
        let t0 = Instant::now();
        let mut suspension = Suspension::default();
        assert_eq!(suspension.standing(), None);
        suspension.suspend(t0, "balance");
        let later = t0 + SUSPENSION_FIRST;
        suspension.suspend(later, "misconfigured");
        let until = later + 2 * SUSPENSION_FIRST;
        assert_eq!(suspension.standing(), Some(Standing { since: Some(t0), until, why: "misconfigured" }));
        suspension.succeed();
        assert_eq!(suspension.standing(), None);
    }

    #[tokio::test]
    async fn refusals_of_requests_in_flight_do_not_lengthen_a_suspension() {
        let t0 = Instant::now();
        let mut suspension = Suspension::default();
        suspension.suspend(t0, "balance");
        suspension.suspend(t0 + Duration::from_secs(1), "balance");
        assert_eq!(suspension.look(t0), Admission::Out(Some(t0 + SUSPENSION_FIRST)));
    }
}
