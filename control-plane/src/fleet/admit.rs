//! How many new streams are let in: a bucket of tokens that fills by the second, so that a fleet that comes back all at
//! once is taken in at a rate that the process can serve. Who finds it empty is told of a place of its own, one after the
//! other, so that the last of a fleet is in as soon as the rate allows and nobody asks in vain again and again. Pure.

use std::time::Duration;

use common::limits::PLACE_WAIT_MAX;
use tokio::time::Instant;

/// Places begin so far ahead.
const PLACES_AFTER: Duration = Duration::from_secs(1);
/// Places lie so much wider apart than the rate would allow: others come in between.
const SLACK: f64 = 1.1;

/// Lets new streams in, `rate` a second.
#[derive(Debug)]
pub struct Admission {
    rate: f64,
    tokens: f64,
    at: Instant,
    /// The last place that was given.
    given: Instant,
}

impl Admission {
    /// A full bucket: one second's worth may come at once.
    pub fn new(rate: u32, now: Instant) -> Self {
        Admission { rate: f64::from(rate), tokens: f64::from(rate), at: now, given: now }
    }

    /// Lets a stream in, or says after how long there is a place for it.
    pub fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.rate;
        self.tokens = (self.tokens + gained).min(self.rate);
        self.at = self.at.max(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let last = now + PLACE_WAIT_MAX;
        self.given = self.given.max(now + PLACES_AFTER) + Duration::from_secs_f64(SLACK / self.rate);
        self.given = self.given.min(last);
        Err(self.given - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn fr_025_a_fleet_that_comes_back_at_once_is_let_in_by_the_second() {
        let t0 = Instant::now();
        let mut admission = Admission::new(200, t0);
        let admitted =
            |admission: &mut Admission, now| (0..1000).filter(|_| admission.admit(now).is_ok()).count();
        assert_eq!(admitted(&mut admission, t0), 200);
        assert_eq!(admitted(&mut admission, t0), 0);
        assert_eq!(admitted(&mut admission, t0 + S / 2), 100);
        assert_eq!(admitted(&mut admission, t0 + 60 * S), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn fr_025_each_is_told_of_a_place_of_its_own_and_the_last_is_in_as_soon_as_the_rate_allows() {
        let t0 = Instant::now();
        let mut admission = Admission::new(200, t0);
        // Everybody comes back at once, and then when it was told to, give or take.
        let mut random = fastrand::Rng::with_seed(7);
        let mut coming: Vec<(Instant, u32)> = (0..5000).map(|_| (t0 + S.mul_f64(random.f64()), 0)).collect();
        let (mut last, mut asked) = (t0, 0);
        while !coming.is_empty() {
            coming.sort_unstable();
            let (at, times) = coming.remove(0);
            asked = asked.max(times);
            match admission.admit(at) {
                Ok(()) => last = last.max(at),
                Err(place) => coming.push((at + common::backoff::told(place, random.f64()), times + 1)),
            }
        }
        assert!(last - t0 < 30 * S, "{:?}", last - t0);
        assert!(asked <= 3, "{asked} times");
    }

    #[tokio::test(start_paused = true)]
    async fn no_place_lies_further_ahead_than_anybody_would_wait() {
        let t0 = Instant::now();
        let mut admission = Admission::new(1, t0);
        let places: Vec<_> = (0..2000).filter_map(|_| admission.admit(t0).err()).collect();
        assert!(places.is_sorted() && places.iter().all(|place| *place <= PLACE_WAIT_MAX));
        assert_eq!(places.last(), Some(&PLACE_WAIT_MAX));
        assert!(admission.admit(t0 + 2 * PLACE_WAIT_MAX).is_ok());
    }
}
