//! Wall time, for what is kept or shown: windows, revisions, keys. Deadlines and windows of state
//! machines take tokio's `Instant` instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells wall time in milliseconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Clock(None)
    }

    /// A clock that stands at `at_ms` until [`Clock::set_ms`] moves it.
    pub fn manual(at_ms: u64) -> Self {
        Clock(Some(Arc::new(AtomicU64::new(at_ms))))
    }

    /// Milliseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Some(at) => at.load(Ordering::Acquire),
            None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64),
        }
    }

    /// Moves a manual clock, and all its clones; the machine's clock stays as it is.
    pub fn set_ms(&self, at_ms: u64) {
        if let Some(at) = &self.0 {
            at.store(at_ms, Ordering::Release);
        }
    }
}
