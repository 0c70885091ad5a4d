//! Which revision and which keys are wanted now, in memory, whoever changed them: this process wakes
//! it after a change of its own, and it looks every two seconds for those of others. While the
//! database is away it stays as it was.

use std::sync::Arc;

use common::catalog::{self, Catalog};
use common::pb::fleet as pb;
use tokio::sync::watch;

use super::encoded::{Encoded, Part, Target};
use crate::error::Error;
use crate::store::Store;
use crate::store::rows::{FullRevision, Heads};

/// A read that was overtaken this often waits for the next look.
const OVERTAKEN_MAX: usize = 5;

/// The current revision, for those who read it.
#[derive(Debug)]
pub struct Current {
    /// What its document says; none when this version of the program cannot read a document that an
    /// earlier one accepted. Nodes get the snapshot that was compiled then.
    pub catalog: Option<Catalog>,
}

/// What is wanted now.
#[derive(Debug)]
pub struct Wanted {
    /// What nodes should run.
    pub target: Target,
    /// The revision that the target's catalog was compiled from; none before the first.
    pub current: Option<Arc<Current>>,
}

impl Wanted {
    /// Number of the current revision; 0 before the first.
    pub fn revision(&self) -> u64 {
        self.target.catalog.as_ref().map_or(0, |encoded| encoded.part.version)
    }

    fn heads(&self) -> Heads {
        let (epoch, keys) = (self.target.epoch, self.target.keys.part.version);
        Heads { epoch, revision: self.revision(), keys }
    }
}

/// Holds what is wanted now; `None` until it was read for the first time.
#[derive(Debug)]
pub struct Head {
    wanted: watch::Sender<Option<Arc<Wanted>>>,
}

impl Head {
    /// Nothing was read yet.
    pub fn unread() -> Self {
        Head { wanted: watch::Sender::new(None) }
    }

    /// What is wanted now.
    pub fn now(&self) -> Option<Arc<Wanted>> {
        self.wanted.borrow().clone()
    }

    /// Tells what is wanted, at once and after each change. The newest wins: who is slow misses the
    /// ones between and never the last one.
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Wanted>>> {
        self.wanted.subscribe()
    }

    /// Reads what is wanted and, if it changed, tells all. A read that was overtaken changes nothing and
    /// is made again, so that afterwards nothing older is held than was there at the beginning.
    pub async fn refresh(&self, store: &Store) -> Result<(), Error> {
        for _ in 0..OVERTAKEN_MAX {
            let heads = store.heads().await?;
            let known = self.now();
            if known.as_ref().is_some_and(|wanted| wanted.heads() == heads) {
                return Ok(());
            }
            let read = Arc::new(read(store, heads, known.as_deref()).await?);
            let is_told = self.wanted.send_if_modified(|wanted| {
                let is_newer = wanted.as_ref().is_none_or(|old| is_newer(read.heads(), old.heads()));
                if is_newer {
                    *wanted = Some(read);
                }
                is_newer
            });
            if is_told {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Both versions only grow inside an epoch.
fn is_newer(read: Heads, known: Heads) -> bool {
    read.epoch != known.epoch || (read.revision >= known.revision && read.keys >= known.keys && read != known)
}

async fn read(store: &Store, heads: Heads, known: Option<&Wanted>) -> Result<Wanted, Error> {
    let known = known.filter(|wanted| wanted.target.epoch == heads.epoch);
    let (catalog, current) = match known.filter(|wanted| wanted.revision() == heads.revision) {
        Some(wanted) => (wanted.target.catalog.clone(), wanted.current.clone()),
        None if heads.revision == 0 => (None, None),
        None => {
            let full = store.revision(heads.revision).await?;
            let full = full.ok_or(Error::Broken("the newest revision is not there"))?;
            let part = Part { version: full.revision.number, sha256: full.snapshot_sha256 };
            let encoded = Encoded { part, packed: full.snapshot_zstd.clone() };
            (Some(encoded), Some(Arc::new(current(full))))
        }
    };
    let keys = match known.filter(|wanted| wanted.target.keys.part.version == heads.keys) {
        Some(wanted) => wanted.target.keys.clone(),
        None => read_keys(store).await?,
    };
    Ok(Wanted { target: Target { epoch: heads.epoch, catalog, keys }, current })
}

fn current(full: FullRevision) -> Current {
    let catalog = match catalog::parse(&full.document) {
        Ok(checked) => Some(checked.catalog),
        Err(faults) => {
            let (revision, faults) = (full.revision.number, faults.len());
            tracing::error!(
                revision,
                "revision {revision} has {faults} faults for this version; apply a new one"
            );
            None
        }
    };
    Current { catalog }
}

async fn read_keys(store: &Store) -> Result<Encoded, Error> {
    let (version, keys) = store.keys().await?;
    let keys_exist = !keys.is_empty();
    let valid = keys.into_iter().filter(|key| key.revoked_at_ms.is_none());
    let keys = valid.map(|key| pb::ClientKey { id: key.id, sha256: key.sha256.to_vec() }).collect();
    let list = pb::KeySet { version, keys_exist, keys };
    Encoded::of(version, &list).map_err(|_| Error::Broken("the key list cannot be compressed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fr_011_what_is_wanted_never_goes_back_inside_an_epoch() {
        let at = |epoch, revision, keys| Heads { epoch, revision, keys };
        let known = at(7, 5, 3);
        for (read, newer) in [
            (at(7, 6, 3), true),
            (at(7, 5, 4), true),
            (at(7, 5, 3), false),
            (at(7, 4, 4), false),
            (at(7, 6, 2), false),
            (at(8, 1, 1), true),
        ] {
            assert_eq!(is_newer(read, known), newer, "{read:?}");
        }
    }
}
