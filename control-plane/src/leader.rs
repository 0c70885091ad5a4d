//! Whether this control plane is the one that does the periodic work. A lease in the database says so: taken for some
//! seconds by the database's clock and renewed long before it ends. A process that stood still believes its lease until
//! it looks at the time; what it writes then is refused, because every such write names the lease's epoch (FR-031).
//!
//! ```text
//! follower ──claimed──► leader(epoch) ──renewed──► leader(epoch)
//!     ▲                     │ not renewed in time, taken by another, resigned
//!     └─────────────────────┘
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::store::Store;

/// How long a lease holds. A leader that died is followed by another one after this.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often it is renewed, or asked for: twice it may fail.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);
/// It is taken for over this long before it is, so that clocks may run a little apart.
const MARGIN: Duration = Duration::from_secs(1);

/// What is known of the lease. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Term(Option<(u64, Instant)>);

impl Term {
    /// The epoch of a lease that holds at this time.
    fn epoch(self, now: Instant) -> Option<u64> {
        self.0.filter(|(_, until)| now < *until).map(|(epoch, _)| epoch)
    }

    /// A claim was answered that was begun at this time: with the epoch of the lease, or that another one has it.
    fn answered(epoch: Option<u64>, begun: Instant) -> Self {
        Term(epoch.map(|epoch| (epoch, begun + LEASE - MARGIN)))
    }
}

/// This process as one that may be the leader.
#[derive(Debug)]
pub struct Leader {
    holder: String,
    term: Mutex<Term>,
}

impl Leader {
    /// A process that has not asked yet.
    pub fn new(process: &str) -> Self {
        Leader { holder: process.to_owned(), term: Mutex::default() }
    }

    /// The epoch of the lease, while this process holds it. What is written under it names it.
    pub fn epoch(&self) -> Option<u64> {
        self.lock().epoch(Instant::now())
    }

    /// Takes or renews the lease. While the database is away the present one is believed to its end.
    pub async fn claim(&self, store: &Store) -> Result<(), Error> {
        let (begun, was) = (Instant::now(), self.lock().0);
        let claimed = store.claim_leader(&self.holder, LEASE).await;
        if let Ok(epoch) = claimed {
            *self.lock() = Term::answered(epoch, begun);
        }
        // Of a lease that has run out meanwhile it is said here, too: nobody has looked since.
        match (was.map(|(epoch, _)| epoch), self.lock().0.map(|(epoch, _)| epoch)) {
            (was, Some(epoch)) if was != Some(epoch) => tracing::info!(epoch, "this control plane leads"),
            (Some(epoch), None) => tracing::info!(epoch, "another control plane leads, or none"),
            (Some(_) | None, Some(_)) | (None, None) => {}
        }
        Ok(claimed.map(drop)?)
    }

    /// Gives the lease back, so that another one can go on at once.
    pub async fn resign(&self, store: &Store) -> Result<(), Error> {
        let Some(epoch) = self.epoch() else { return Ok(()) };
        *self.lock() = Term::default();
        Ok(store.resign_leader(&self.holder, epoch).await?)
    }

    fn lock(&self) -> MutexGuard<'_, Term> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::fixture::Fixture;

    #[test]
    fn fr_033_a_lease_ends_for_its_holder_before_it_ends_for_others() {
        let begun = Instant::now();
        let term = Term::answered(Some(7), begun);
        for (after, epoch) in [
            (Duration::ZERO, Some(7)),
            (LEASE - MARGIN - Duration::from_millis(1), Some(7)),
            (LEASE - MARGIN, None),
            (LEASE * 10, None),
        ] {
            assert_eq!(term.epoch(begun + after), epoch, "after {after:?}");
        }
        assert_eq!(Term::answered(None, begun).epoch(begun), None, "another one has it");
        assert!(RENEW_EVERY * 2 < LEASE - MARGIN, "a renewal may fail once without an end");
    }

    #[tokio::test]
    async fn one_of_several_leads_and_the_next_one_when_it_resigns() {
        let fixture = Fixture::unread().await;
        let store = &fixture.plane.store;
        let (one, other) = (Leader::new("one"), Leader::new("other"));
        one.claim(store).await.unwrap();
        other.claim(store).await.unwrap();
        let first = one.epoch();
        assert!(first.is_some() && other.epoch().is_none());
        one.claim(store).await.unwrap();
        assert_eq!(one.epoch(), first, "renewed, not taken anew");
        one.resign(store).await.unwrap();
        other.claim(store).await.unwrap();
        assert!(one.epoch().is_none() && other.epoch() > first);
    }
}
