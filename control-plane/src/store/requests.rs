//! The store's records of requests.

use super::rows::{FailureCount, Filter, FoundRecord, KeptRecord, RequestSummary, UsageFilter, Used, UsedBy};
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};

impl Store {
    /// Keeps and counts records, all of them or none. One that came before is left as it is.
    pub async fn keep_records(&self, rows: &[KeptRecord]) -> Result<(), StoreError> {
        call!(self.write, records::keep(rows));
        Ok(())
    }

    /// Requests that pass a filter, newest first; only those before `before`, where that is an id.
    pub async fn requests(
        &self,
        filter: &Filter,
        before: &str,
        limit: u32,
    ) -> Result<Vec<RequestSummary>, StoreError> {
        Ok(call!(self.read, records::list(filter, before, limit)))
    }

    /// Failed attempts of the requests that pass a filter, by channel and class, most first.
    pub async fn failures(&self, filter: &Filter) -> Result<Vec<FailureCount>, StoreError> {
        Ok(call!(self.read, records::failures(filter)))
    }

    /// The record of a request, by our id or the caller's own; of several of those the newest. Of this key, where one is
    /// given.
    pub async fn record(&self, id: &str, key: Option<&str>) -> Result<Option<FoundRecord>, StoreError> {
        Ok(call!(self.read, records::find(id, key)))
    }

    /// What was used, by day, key and model as far as these are told apart, at most ten thousand rows.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<Vec<(UsedBy, Used)>, StoreError> {
        Ok(call!(self.read, usage::list(filter)))
    }

    /// Removes what was used before a day (since 1970, UTC), if `leader` still leads.
    pub async fn forget_usage(&self, leader: u64, before_day: u32) -> Result<(), StoreError> {
        toil!(self.write, usage::forget(leader, before_day))
    }

    /// Removes some thousands of the requests that began before `before_ms`, the oldest first, if `leader` still leads.
    /// Returns whether there may be more.
    pub async fn forget_records(&self, leader: u64, before_ms: u64) -> Result<bool, StoreError> {
        toil!(self.write, records::forget(leader, before_ms))
    }
}
