//! Full jitter: how long to wait before the next try. Randomness is an argument.

use std::time::Duration;

use crate::limits::PLACE_WAIT_MAX;

/// The bucket of who gives the places takes so much up.
const PLACE_SPREAD: Duration = Duration::from_millis(500);

/// A random share of min(`max`, `base` × 2ⁿ), for the `attempt`-th failure in a row (from 0).
/// `random` lies in 0..1.
pub fn full_jitter(attempt: u32, base: Duration, max: Duration, random: f64) -> Duration {
    let ceiling = base.saturating_mul(2u32.saturating_pow(attempt)).min(max);
    ceiling.mul_f64(random.clamp(0.0, 1.0))
}

/// When to come to a place that one was told of: those who were told of one each do not come in step. `random` lies in
/// 0..1.
pub fn told(place: Duration, random: f64) -> Duration {
    place.min(PLACE_WAIT_MAX) + PLACE_SPREAD.mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_come_to_when_it_was_told_and_not_in_step() {
        let s = Duration::from_secs;
        assert_eq!(told(s(20), 0.0), s(20));
        assert_eq!(told(s(20), 2.0), s(20) + PLACE_SPREAD);
        assert_eq!(told(Duration::MAX, 0.0), PLACE_WAIT_MAX);
    }

    #[test]
    fn the_ceiling_doubles_up_to_the_maximum() {
        let (base, max) = (Duration::from_millis(500), Duration::from_secs(30));
        let ceilings: Vec<_> = (0..8).map(|n| full_jitter(n, base, max, 1.0).as_millis()).collect();
        assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(full_jitter(u32::MAX, base, max, 1.0), max);
        assert_eq!(full_jitter(5, base, max, 0.0), Duration::ZERO);
    }
}
