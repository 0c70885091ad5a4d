//! The catalogs that records were decided by, so that they can be priced: the current one, and those of late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use common::catalog::Catalog;
use common::pb::fleet as pb;

use crate::error::Error;
use crate::plane::Plane;
use crate::revision;
use crate::revision::head::Current;

/// So many catalogs are held, and at most so many are read for one upload.
const HELD_MAX: usize = 16;

/// The catalogs of late. A revision that is gone, or that this version cannot read, is held as none.
#[derive(Debug, Default)]
pub struct Book(Mutex<BTreeMap<u64, Option<Arc<Current>>>>);

/// The catalogs of some records.
#[derive(Debug, Default)]
pub struct Pages {
    epoch: u64,
    revisions: BTreeMap<u64, Arc<Current>>,
}

impl Pages {
    /// The catalog that decided a record. None where it is not known any more: it was pruned, or went with the epoch
    /// that another one of that number stands in now.
    pub fn of(&self, record: &pb::Record) -> Option<&Catalog> {
        let current = self.revisions.get(&record.revision).filter(|_| record.epoch == self.epoch)?;
        current.catalog.as_ref()
    }
}

impl Book {
    /// The catalogs of these records, read where they are not held.
    pub async fn open(&self, plane: &Plane, records: &[pb::Record]) -> Result<Pages, Error> {
        let wanted = plane.wanted()?;
        let epoch = wanted.target.epoch;
        let of_epoch = records.iter().filter(|record| record.epoch == epoch && record.revision > 0);
        let named: BTreeSet<u64> = of_epoch.map(|record| record.revision).collect();
        let mut revisions = BTreeMap::new();
        // The newest first: an upload that names more than are read is not priced whole.
        for number in named.into_iter().rev().take(HELD_MAX) {
            let current = if number == wanted.revision() {
                wanted.current.clone()
            } else {
                self.old(plane, number).await?
            };
            revisions.extend(current.map(|current| (number, current)));
        }
        Ok(Pages { epoch, revisions })
    }

    async fn old(&self, plane: &Plane, number: u64) -> Result<Option<Arc<Current>>, Error> {
        if let Some(held) = self.held().get(&number) {
            return Ok(held.clone());
        }
        let read = match plane.store.revision(number).await? {
            Some(full) => revision::read(full.document).await?.ok(),
            None => None,
        };
        let current = read.map(|checked| Arc::new(Current { catalog: Some(checked.catalog) }));
        let mut held = self.held();
        held.insert(number, current.clone());
        if held.len() > HELD_MAX {
            held.pop_first();
        }
        Ok(current)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Option<Arc<Current>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
