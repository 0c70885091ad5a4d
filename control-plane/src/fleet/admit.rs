//! How many new streams are let in: a bucket of tokens that fills by the second, so that a fleet that
//! comes back all at once is taken in at a rate that the process can serve. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Lets new streams in, `rate` a second.
#[derive(Debug)]
pub struct Admission {
    rate: f64,
    tokens: f64,
    at: Instant,
}

impl Admission {
    /// A full bucket: one second's worth may come at once.
    pub fn new(rate: u32, now: Instant) -> Self {
        Admission { rate: f64::from(rate), tokens: f64::from(rate), at: now }
    }

    /// Lets a stream in, or says when to come again.
    pub fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.rate;
        self.tokens = (self.tokens + gained).min(self.rate);
        self.at = self.at.max(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate).max(Duration::from_secs(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fr_025_a_fleet_that_comes_back_at_once_is_let_in_by_the_second() {
        let t0 = Instant::now();
        let mut admission = Admission::new(200, t0);
        let admitted =
            |admission: &mut Admission, now| (0..1000).filter(|_| admission.admit(now).is_ok()).count();
        assert_eq!(admitted(&mut admission, t0), 200);
        assert_eq!(admitted(&mut admission, t0), 0);
        assert_eq!(admitted(&mut admission, t0 + Duration::from_millis(500)), 100);
        assert_eq!(admitted(&mut admission, t0 + Duration::from_secs(60)), 200);
        let again = admission.admit(t0 + Duration::from_secs(60)).unwrap_err();
        assert!(again >= Duration::from_secs(1) && again <= Duration::from_secs(2));
    }
}
