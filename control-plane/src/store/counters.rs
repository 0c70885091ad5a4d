//! The store's counters: windows of nodes, each counted once, and what becomes of them with time.

use super::rows::{Claim, Claimed, Counted};
use super::{BUCKET_MS, DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};
use crate::rollout::NodeCount;

impl Store {
    /// Counts a window, exactly once.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        Ok(call!(self.write, windows::claim(claim, BUCKET_MS)))
    }

    /// What was counted in the buckets that begin at `since_ms` or later, of one model or of all, put
    /// together into buckets of `step_ms`: `u64::MAX` gives one sum over all of them.
    ///
    /// Buckets have ten seconds, a minute once they are two hours old, an hour after two days; a
    /// window lies in the bucket in which it ended.
    pub async fn windows(
        &self,
        since_ms: u64,
        step_ms: u64,
        model: Option<&str>,
    ) -> Result<Counted, StoreError> {
        Ok(call!(self.read, windows::counted(since_ms, step_ms, model)))
    }

    /// Requests by node and model, in the windows that began from `since_ms` to before `until_ms`.
    pub async fn node_counts(&self, since_ms: u64, until_ms: u64) -> Result<Vec<NodeCount>, StoreError> {
        Ok(call!(self.read, rollouts::counts(since_ms, until_ms)))
    }

    /// Removes the counts by node of windows that began before `before_ms`, as the leader of this epoch.
    pub async fn forget_node_counts(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, rollouts::forget_counts(leader, before_ms))
    }

    /// Puts counters older than `before_ms` together into buckets of `bucket_ms`, as the leader of this epoch.
    pub async fn roll_up(&self, leader: u64, before_ms: u64, bucket_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, windows::roll_up(leader, before_ms, bucket_ms))
    }

    /// Removes counters older than `before_ms`, as the leader of this epoch.
    pub async fn forget(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, windows::forget(leader, before_ms))
    }

    /// Removes boots whose newest window ended before `before_ms`, likewise.
    pub async fn forget_boots(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, windows::forget_boots(leader, before_ms))
    }
}
