//! The records of a node's requests, each walked again before it is forgotten.

use std::sync::{Mutex, PoisonError};

use common::pb::fleet as pb;
use common::record::{again, recorded};
use tokio::time::Instant;

use crate::records::Writer;

/// What a node has recorded.
pub struct Recorded(Mutex<Writer>);

impl Recorded {
    pub fn of(written: Writer) -> Self {
        Recorded(Mutex::new(written))
    }

    /// The records of what has ended since the last call.
    pub fn take(&self) -> Vec<pb::Record> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for record in &records {
            assert_eq!(again(record, Instant::now()), Ok(recorded(record)), "{record:#?}");
        }
        records
    }
}

impl Drop for Recorded {
    /// Whatever a test did: what was decided follows from each record alone.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.take();
        }
    }
}
