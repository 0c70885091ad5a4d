//! Which address of the control planes comes next after a stream has ended, and after how long. Pure.

use std::time::Duration;

use common::backoff::{full_jitter, told};
use common::limits::{RECONNECT_BASE, RECONNECT_MAX, RECONNECT_RESET};

use super::session::End;

/// After the control plane refused the node's token: it may be put right at any time, so a node never
/// gives up, and the refusals of a fleet are no load.
const REFUSED_WAIT: Duration = Duration::from_secs(60);
/// A stream that is drained sooner than this did not live: connecting anew at once would be a loop.
const DRAINED_LIFE_MIN: Duration = Duration::from_secs(1);

/// Which address to try next, and after how long.
#[derive(Debug)]
pub(super) struct Reconnect {
    addresses: usize,
    at: usize,
    /// Failures since a stream last lived for a while.
    failures: u32,
    /// Addresses in a row that refused the token.
    refused: usize,
}

impl Reconnect {
    /// Nothing tried yet; begins with one of the addresses at random (in 0..1), so that a fleet does
    /// not come to the same one.
    pub(super) fn new(addresses: usize, random: f64) -> Self {
        let at = (random * addresses as f64) as usize;
        Reconnect { addresses, at: at.min(addresses.saturating_sub(1)), failures: 0, refused: 0 }
    }

    /// The address to try.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves on after a stream that lived for `lived`; returns how long to wait. `random` lies in 0..1.
    pub(super) fn after(&mut self, end: &End, lived: Duration, random: f64) -> Duration {
        if *end != End::Again {
            self.at = (self.at + 1) % self.addresses.max(1);
        }
        if lived >= RECONNECT_RESET {
            self.failures = 0;
        }
        if *end != End::Refused {
            self.refused = 0;
        }
        match end {
            End::Drained(_) | End::Again if lived >= DRAINED_LIFE_MIN => {
                self.failures = 0;
                Duration::ZERO
            }
            End::Refused => {
                self.refused += 1;
                // Any one address is enough: the slow wait begins when all have refused.
                if self.refused < self.addresses {
                    self.jitter(random)
                } else {
                    self.refused = 0;
                    REFUSED_WAIT.mul_f64(1.0 + random / 4.0)
                }
            }
            End::Busy(place) => told(*place, random),
            End::Failed { retry_after: Some(least), .. } => {
                // Spread out again: all that were told the same would come back together.
                (*least).min(RECONNECT_MAX) + self.jitter(random)
            }
            End::Drained(_)
            | End::Again
            | End::Left
            | End::Silent
            | End::Protocol(_)
            | End::Failed { .. } => self.jitter(random),
        }
    }

    fn jitter(&mut self, random: f64) -> Duration {
        let wait = full_jitter(self.failures, RECONNECT_BASE, RECONNECT_MAX, random);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> End {
        End::Failed { why: "x".into(), retry_after: None }
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn waits_double_up_to_30_s_and_start_anew_after_a_minute_of_life() {
        let mut reconnect = Reconnect::new(1, 0.0);
        let waits: Vec<_> = (0..8).map(|_| reconnect.after(&failed(), s(0), 1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(reconnect.after(&failed(), s(59), 1.0), s(30));
        assert_eq!(reconnect.after(&failed(), s(60), 1.0), RECONNECT_BASE);
        assert_eq!(reconnect.after(&failed(), s(0), 0.5), RECONNECT_BASE, "full jitter");
    }

    #[test]
    fn a_drain_reconnects_at_once_and_a_clean_end_without_one_does_not() {
        let mut reconnect = Reconnect::new(1, 0.0);
        assert_eq!(reconnect.after(&End::Drained("age".into()), s(5), 1.0), Duration::ZERO);
        assert!(reconnect.after(&failed(), s(5), 1.0) > Duration::ZERO);
        let loops: Duration = (0..8).map(|_| reconnect.after(&End::Drained("x".into()), s(0), 1.0)).sum();
        assert!(loops > s(60), "a server that drains at once is no hot loop");
    }

    #[test]
    fn an_update_that_is_asked_for_again_comes_from_the_same_address_at_once() {
        let mut reconnect = Reconnect::new(2, 0.0);
        assert_eq!((reconnect.after(&End::Again, s(16), 1.0), reconnect.at()), (Duration::ZERO, 0));
    }

    #[test]
    fn fr_047_each_address_is_tried_in_turn_whatever_the_others_say() {
        let mut reconnect = Reconnect::new(3, 0.4);
        let mut tried = vec![reconnect.at()];
        for end in [End::Refused, failed(), End::Silent] {
            assert!(reconnect.after(&end, s(0), 1.0) < s(10));
            tried.push(reconnect.at());
        }
        assert_eq!(tried, [1, 2, 0, 1]);
    }

    #[test]
    fn fr_027_a_refused_token_is_tried_again_slowly_for_ever() {
        let mut reconnect = Reconnect::new(1, 0.0);
        for _ in 0..100 {
            let wait = reconnect.after(&End::Refused, s(0), 1.0);
            assert!((s(60)..=s(75)).contains(&wait), "{wait:?}");
        }
        assert_eq!(reconnect.after(&failed(), s(0), 1.0), RECONNECT_BASE, "refusals are no failures");
    }

    #[test]
    fn fr_025_who_was_told_when_there_is_a_place_comes_then() {
        let mut reconnect = Reconnect::new(1, 0.0);
        for _ in 0..10 {
            let wait = reconnect.after(&End::Busy(s(20)), s(0), 1.0);
            assert!((s(20)..s(21)).contains(&wait), "{wait:?}: however often");
        }
        assert_eq!(
            reconnect.after(&failed(), s(0), 1.0),
            RECONNECT_BASE,
            "waiting for a place is no failure"
        );
    }

    #[test]
    fn fr_025_a_time_to_come_back_is_kept_and_spread_out() {
        let mut reconnect = Reconnect::new(1, 0.0);
        let told = End::Failed { why: "busy".into(), retry_after: Some(s(5)) };
        assert_eq!(reconnect.after(&told, s(0), 0.0), s(5));
        assert!(reconnect.after(&told, s(0), 1.0) > s(5));
    }
}
