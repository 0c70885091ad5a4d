//! What the store keeps of alerts, and of the beats that some of them are about.

use std::time::Duration;

use super::entry::Entry;
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};
pub use crate::alerts::{Alert, Beat, Books, Delivery, Group, Kind, Silence, Step, Told};

/// Beats of a control plane that was not heard of for so long are no news.
const BEATS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

impl Store {
    /// Alerts of which something is still to be said, and what decides what.
    pub async fn alert_books(&self, now_ms: u64) -> Result<Books, StoreError> {
        Ok(call!(self.read, alerts::books(now_ms)))
    }

    /// Keeps what a look led to and what is to be told of it, if `leader` still leads.
    pub async fn keep_alerts(
        &self,
        leader: u64,
        step: &Step,
        deliveries: &[Delivery],
    ) -> Result<(), StoreError> {
        fenced(soon(async { work!(self.write, alerts::keep(leader, step, deliveries)) }).await)
    }

    /// Keeps how far deliveries are, likewise.
    pub async fn keep_deliveries(&self, leader: u64, deliveries: &[Delivery]) -> Result<(), StoreError> {
        self.keep_alerts(leader, &Step::default(), deliveries).await
    }

    /// What is to be told by now, the oldest first.
    pub async fn deliveries_due(&self, now_ms: u64) -> Result<Vec<Delivery>, StoreError> {
        Ok(call!(self.read, alerts::due(now_ms)))
    }

    /// What was made since then and failed at its last try, newest first.
    pub async fn undelivered(&self, since_ms: u64) -> Result<Vec<Delivery>, StoreError> {
        Ok(call!(self.read, alerts::undelivered(since_ms)))
    }

    /// Alerts that are so, and those that were over since then, newest first.
    pub async fn alerts(&self, since_ms: u64) -> Result<Vec<Alert>, StoreError> {
        Ok(call!(self.read, alerts::list(since_ms)))
    }

    /// Keeps a silence.
    pub async fn silence_alerts(&self, new: &Silence, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, alerts::silence_for(new, entry));
        Ok(())
    }

    /// Ends a silence and returns it, if there is one that lasts.
    pub async fn unsilence_alerts(
        &self,
        id: &str,
        now_ms: u64,
        entry: &Entry,
    ) -> Result<Option<Silence>, StoreError> {
        Ok(call!(self.write, alerts::unsilence(id, now_ms, entry)))
    }

    /// Removes what was over before `before_ms`, as the leader of this epoch.
    pub async fn forget_alerts(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, alerts::forget(leader, before_ms))
    }

    /// Writes how the jobs of a control plane do.
    pub async fn write_beats(&self, beats: &[Beat]) -> Result<(), StoreError> {
        call!(self.write, beats::write(beats, BEATS_KEPT.as_millis() as u64));
        Ok(())
    }

    /// How the jobs of all control planes do.
    pub async fn beats(&self) -> Result<Vec<Beat>, StoreError> {
        Ok(call!(self.read, beats::list()))
    }

    /// A control plane ends: nobody waits for its beats.
    pub async fn leave_beats(&self, id: &str) -> Result<(), StoreError> {
        call!(self.write, beats::leave(id));
        Ok(())
    }

    /// Notes that a node's running totals differ from the sum of its counted windows.
    pub async fn note_mismatch(&self, node_id: &str, at_ms: u64) -> Result<(), StoreError> {
        call!(self.write, beats::mismatch(node_id, at_ms));
        Ok(())
    }

    /// Nodes of which that was noted since then.
    pub async fn mismatches(&self, since_ms: u64) -> Result<Vec<String>, StoreError> {
        Ok(call!(self.read, beats::mismatches(since_ms)))
    }

    /// Removes what was noted before.
    pub async fn forget_mismatches(&self, before_ms: u64) -> Result<(), StoreError> {
        call!(self.write, beats::forget_mismatches(before_ms));
        Ok(())
    }
}
