//! Which beats of a job are pinged: jobs run every second, and a watch wants to hear of them about once a minute. That a
//! job begins to fail, or succeeds again, is pinged at once. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A job that does well is pinged this often.
const EVERY: Duration = Duration::from_secs(60);

/// What is pinged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ping {
    /// It begins.
    Start,
    /// It succeeded.
    Success,
    /// It failed.
    Fail,
}

impl Ping {
    /// What is put behind the URL.
    pub fn path(self) -> &'static str {
        match self {
            Ping::Start => "/start",
            Ping::Success => "",
            Ping::Fail => "/fail",
        }
    }
}

/// What was pinged of a job.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the last end was pinged, and which.
    last: Option<(Instant, Ping)>,
}

impl Pace {
    /// It begins. Its beginning is pinged if a good end would be.
    pub fn began(&mut self, now: Instant) -> Option<Ping> {
        self.is_due(now).then_some(Ping::Start)
    }

    /// It succeeded.
    pub fn succeeded(&mut self, now: Instant) -> Option<Ping> {
        self.ended(Ping::Success, now)
    }

    /// It failed.
    pub fn failed(&mut self, now: Instant) -> Option<Ping> {
        self.ended(Ping::Fail, now)
    }

    fn ended(&mut self, how: Ping, now: Instant) -> Option<Ping> {
        let is_other = self.last.is_some_and(|(_, last)| last != how);
        if !is_other && !self.is_due(now) {
            return None;
        }
        self.last = Some((now, how));
        Some(how)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|(at, _)| now.saturating_duration_since(at) >= EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_job_of_every_second_is_pinged_once_a_minute_and_a_change_at_once() {
        let (t0, mut pace, mut pinged) = (Instant::now(), Pace::default(), Vec::new());
        for second in 0..=130_u64 {
            let now = t0 + Duration::from_secs(second);
            let failed = (70..=72).contains(&second);
            let ended = |pace: &mut Pace| if failed { pace.failed(now) } else { pace.succeeded(now) };
            pinged.extend(pace.began(now).map(|ping| (second, ping)));
            pinged.extend(ended(&mut pace).map(|ping| (second, ping)));
        }
        let want = [
            (0, Ping::Start),
            (0, Ping::Success),
            (60, Ping::Start),
            (60, Ping::Success),
            (70, Ping::Fail),
            (73, Ping::Success),
        ];
        assert_eq!(pinged, want);
    }
}
