//! What the store keeps of times to the first byte.

use super::rows::FirstByteRow;
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};

impl Store {
    /// The times that were counted in the buckets that begin at `since_ms` or later, of one model or of all; the buckets
    /// are those of [`Store::windows`].
    pub async fn first_bytes(
        &self,
        since_ms: u64,
        model: Option<&str>,
    ) -> Result<Vec<FirstByteRow>, StoreError> {
        Ok(call!(self.read, first_bytes::counted(since_ms, model)))
    }

    /// Removes times older than `before_ms`, as the leader of this epoch.
    pub async fn forget_first_bytes(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, first_bytes::forget(leader, before_ms))
    }
}
