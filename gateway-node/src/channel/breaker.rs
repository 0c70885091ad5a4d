//! Layer 1, the rule: so many failures inside a sliding window take a channel out for a while.
//!
//! ```text
//! closed ──nth failure inside the window──▶ open until now + cooldown ──time──▶ closed
//!                                             ▲        │
//!                                             └────────┘ one more failure inside the window
//! ```
//! Successes and neutral outcomes change nothing. Knows no HTTP and reads no clock.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// When a breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Failures inside `window` that open it; at least 1.
    pub failures: u32,
    /// The sliding window.
    pub window: Duration,
    /// How long it stays open.
    pub cooldown: Duration,
}

/// The recent failures of one channel.
#[derive(Debug, Default)]
pub struct Breaker {
    failures: VecDeque<Instant>,
}

impl Breaker {
    /// Takes in a failure that counts; returns the new end of the pause if this one opened the
    /// breaker or kept it open longer.
    pub fn record_failure(&mut self, now: Instant, policy: &Policy) -> Option<Instant> {
        let needed = policy.failures.max(1) as usize;
        self.failures.retain(|&at| now.saturating_duration_since(at) < policy.window);
        self.failures.push_back(now);
        // Only the newest can still decide; an outage must not grow the list.
        while self.failures.len() > needed {
            self.failures.pop_front();
        }
        (self.failures.len() >= needed).then(|| now + policy.cooldown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy =
        Policy { failures: 3, window: Duration::from_secs(300), cooldown: Duration::from_secs(60) };

    fn at(t0: Instant, seconds: f64) -> Instant {
        t0 + Duration::from_secs_f64(seconds)
    }

    #[tokio::test]
    async fn the_third_failure_opens_while_the_first_is_inside_the_window_and_not_after() {
        let t0 = Instant::now();
        for (third, opens) in [(299.9, true), (300.0, false), (10.0, true)] {
            let mut breaker = Breaker::default();
            assert_eq!(breaker.record_failure(t0, &POLICY), None);
            assert_eq!(breaker.record_failure(at(t0, 5.0), &POLICY), None);
            let until = breaker.record_failure(at(t0, third), &POLICY);
            assert_eq!(until, opens.then(|| at(t0, third + 60.0)), "third failure at {third} s");
        }
    }

    #[tokio::test]
    async fn one_more_failure_inside_the_window_is_enough_again() {
        let t0 = Instant::now();
        let mut breaker = Breaker::default();
        for second in [0.0, 1.0, 2.0] {
            breaker.record_failure(at(t0, second), &POLICY);
        }
        assert_eq!(breaker.record_failure(at(t0, 70.0), &POLICY), Some(at(t0, 130.0)));
        // 301.5 s: the failures of 2 s, 70 s and this one are inside, the older ones are not.
        assert_eq!(breaker.record_failure(at(t0, 301.5), &POLICY), Some(at(t0, 361.5)));
        assert_eq!(breaker.record_failure(at(t0, 700.0), &POLICY), None);
    }

    #[tokio::test]
    async fn an_outage_of_many_failures_is_remembered_in_bounded_space() {
        let t0 = Instant::now();
        let mut breaker = Breaker::default();
        for n in 0..10_000 {
            breaker.record_failure(at(t0, f64::from(n) / 100.0), &POLICY);
        }
        assert_eq!(breaker.failures.len(), 3);
    }
}
