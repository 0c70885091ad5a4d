//! The store's records of requests.

use super::rows::{FailureCount, Filter, KeptRecord, RequestSummary};
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};

impl Store {
    /// Keeps records, all of them or none. One that is there already is left as it is.
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

    /// Node and encoded record of a request, by our id or the caller's own; of several of those the newest.
    pub async fn record(&self, id: &str) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        Ok(call!(self.read, records::find(id)))
    }

    /// Removes some thousands of the requests that began before `before_ms`, the oldest first, if `leader` still leads.
    /// Returns whether there may be more.
    pub async fn forget_records(&self, leader: u64, before_ms: u64) -> Result<bool, StoreError> {
        toil!(self.write, records::forget(leader, before_ms))
    }
}
