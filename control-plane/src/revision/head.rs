//! Which revisions and which keys are wanted now, by which node, in memory, whoever changed them: this process wakes
//! it after a change of its own, and it looks every two seconds for those of others. While the
//! database is away it stays as it was.

use std::sync::Arc;

use common::catalog::Catalog;
use common::clock::Clock;
use common::pb::fleet as pb;
use tokio::sync::watch;

use super::encoded::{Encoded, Part, Target};
use super::pin::Pins;
use crate::audit;
use crate::error::Error;
use crate::nodes::{Applied, Facts};
use crate::rollout::Rollout;
use crate::secrets::held::Held;
use crate::secrets::keyring::Keyring;
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
    /// What nodes should run in the end: the newest of each part.
    pub target: Target,
    /// The revision that the target's catalog was compiled from; none before the first.
    pub current: Option<Arc<Current>>,
    /// How that revision reaches the fleet; none where an earlier version of the program made it, for all at once.
    pub rollout: Option<Arc<Rollout>>,
    /// The catalog for nodes that the rollout has not reached; none once it is for all.
    pub base: Option<Encoded>,
    /// The nodes that an operator keeps on a revision, whatever the rollouts say.
    pub pins: Arc<Pins>,
}

impl Wanted {
    /// Number of the current revision; 0 before the first.
    pub fn revision(&self) -> u64 {
        self.target.catalog.as_ref().map_or(0, |encoded| encoded.part.version)
    }

    /// What a node should run now. All parts but the catalog are the same for all. A node that was given more than what
    /// it is pinned to, or than the base, by a rollout that did not come through, keeps it until its turn comes: inside an
    /// epoch nodes do not go back. A node that is given no secrets keeps those that it has.
    pub fn aim(&self, node: &str, facts: &Facts) -> Applied {
        let Target { epoch, catalog, keys, secrets } = &self.target;
        let applied = &facts.applied;
        let at_least = |part: Part| {
            let kept = applied.catalog.filter(|_| applied.epoch == *epoch);
            Some(kept.filter(|kept| kept.version > part.version).unwrap_or(part))
        };
        let head = catalog.as_ref().map(|encoded| encoded.part);
        let staged = self.rollout.as_ref().filter(|rollout| rollout.wanted_for(node) != rollout.revision);
        let catalog = match (self.pins.of(node), staged, &self.base) {
            (Some(pinned), ..) => at_least(pinned.part),
            (None, Some(_), Some(base)) => at_least(base.part),
            (None, ..) => head,
        };
        // An empty list is worth sending to a node that holds another one.
        let is_given = facts.takes_secrets() && secrets.fault().is_none();
        let is_worth_it = secrets.len() > 0 || applied.secrets.is_some();
        let secrets = if is_given && is_worth_it { Some(secrets.part) } else { applied.secrets };
        Applied { epoch: *epoch, catalog, keys: Some(keys.part), secrets }
    }

    /// A catalog to be sent: the head's, the base's, or one that nodes are pinned to.
    pub fn content(&self, part: Part) -> Option<&Encoded> {
        let contents = self.target.catalog.iter().chain(&self.base).chain(self.pins.contents());
        contents.into_iter().find(|encoded| encoded.part == part)
    }

    /// The rollout of the current revision while it may still change.
    pub fn under_way(&self) -> Option<&Rollout> {
        self.rollout.as_deref().filter(|rollout| rollout.is_under_way())
    }

    fn heads(&self) -> Heads {
        let (epoch, keys) = (self.target.epoch, self.target.keys.part.version);
        let rollout = self.rollout.as_ref().map_or(0, |rollout| rollout.version);
        let Target { secrets, .. } = &self.target;
        let (secrets, pins) = (secrets.part.version, self.pins.version);
        Heads { epoch, revision: self.revision(), keys, rollout, secrets, pins }
    }
}

/// Holds what is wanted now; `None` until it was read for the first time.
#[derive(Debug)]
pub struct Head {
    clock: Clock,
    keyring: Arc<Keyring>,
    wanted: watch::Sender<Option<Arc<Wanted>>>,
}

impl Head {
    /// Nothing was read yet. Secrets are opened with these keys.
    pub fn unread(clock: Clock, keyring: Arc<Keyring>) -> Self {
        Head { clock, keyring, wanted: watch::Sender::new(None) }
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
    ///
    /// A store that is behind what was read from it before was restored from a backup. Nodes hold what
    /// it has lost and refuse what it has, so it begins a new epoch, which they obey.
    pub async fn refresh(&self, store: &Store) -> Result<(), Error> {
        for _ in 0..OVERTAKEN_MAX {
            // Known before the store is asked: it can only be newer then.
            let known = self.now();
            let heads = store.heads().await?;
            if known.as_ref().is_some_and(|wanted| wanted.heads() == heads) {
                return Ok(());
            }
            if let Some(known) = known.as_ref().map(|wanted| wanted.heads())
                && is_behind(heads, known)
            {
                let now_ms = self.clock.now_ms();
                let epoch = now_ms.max(known.epoch + 1);
                let entry = audit::epoch_entry(now_ms, heads.epoch, epoch);
                store.begin_epoch(heads.epoch, epoch, &entry).await?;
                tracing::error!(
                    revision = heads.revision,
                    lost = known.revision,
                    epoch,
                    "the database went back to revision {} while revision {} was out: it was restored from \
                     a backup; a new epoch begins, and nodes take what it holds",
                    heads.revision,
                    known.revision
                );
                continue;
            }
            let read = Arc::new(read(store, heads, known.as_deref(), &self.keyring).await?);
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

/// Epochs only grow, and both versions inside one.
fn is_newer(read: Heads, known: Heads) -> bool {
    read != known && !is_behind(read, known)
}

fn is_behind(read: Heads, known: Heads) -> bool {
    let is_lower_rollout = read.revision == known.revision && read.rollout < known.rollout;
    let is_lower_list = read.keys < known.keys || read.secrets < known.secrets || read.pins < known.pins;
    let is_lower = read.revision < known.revision || is_lower_list || is_lower_rollout;
    read.epoch < known.epoch || (read.epoch == known.epoch && is_lower)
}

async fn read(
    store: &Store,
    heads: Heads,
    known: Option<&Wanted>,
    keyring: &Keyring,
) -> Result<Wanted, Error> {
    let known = known.filter(|wanted| wanted.target.epoch == heads.epoch);
    let (catalog, current) = match known.filter(|wanted| wanted.revision() == heads.revision) {
        Some(wanted) => (wanted.target.catalog.clone(), wanted.current.clone()),
        None if heads.revision == 0 => (None, None),
        None => {
            let full = store.revision(heads.revision).await?;
            let full = full.ok_or(Error::Broken("the newest revision is not there"))?;
            (Some(encoded(&full).await), Some(Arc::new(current(full).await?)))
        }
    };
    let rollout = match store.rollout(heads.revision).await? {
        Some(row) => {
            let unread = Error::Broken("the rollout is of a later version of this program");
            Some(Arc::new(Rollout::from_row(&row).ok_or(unread)?))
        }
        None => None,
    };
    let base = match rollout.as_deref().filter(|rollout| !rollout.is_for_all()) {
        Some(rollout) => Some(read_base(store, rollout.base, known).await?),
        None => None,
    };
    let keys = match known.filter(|wanted| wanted.target.keys.part.version == heads.keys) {
        Some(wanted) => wanted.target.keys.clone(),
        None => read_keys(store).await?,
    };
    let secrets = match known.filter(|wanted| wanted.target.secrets.part.version == heads.secrets) {
        Some(wanted) => wanted.target.secrets.clone(),
        None => read_secrets(store, keyring).await?,
    };
    let pins = match known.filter(|wanted| wanted.pins.version == heads.pins) {
        Some(wanted) => wanted.pins.clone(),
        None => Arc::new(Pins::read(store, known).await?),
    };
    let target = Target { epoch: heads.epoch, catalog, keys, secrets };
    Ok(Wanted { target, current, rollout, base, pins })
}

async fn encoded(full: &FullRevision) -> Encoded {
    let part = Part { version: full.revision.number, sha256: full.snapshot_sha256 };
    Encoded::kept(part, full.snapshot_zstd.clone()).await
}

/// What nodes get that a rollout has not reached; mostly what was the head a moment ago.
async fn read_base(store: &Store, number: u64, known: Option<&Wanted>) -> Result<Encoded, Error> {
    let gone = Error::Broken("the revision that a rollout leads away from is not there");
    content_of(store, number, known).await?.ok_or(gone)
}

/// The content of a revision, from what is held already where it is. None where it was pruned.
pub(super) async fn content_of(
    store: &Store,
    number: u64,
    known: Option<&Wanted>,
) -> Result<Option<Encoded>, Error> {
    let held = known
        .into_iter()
        .flat_map(|wanted| wanted.target.catalog.iter().chain(&wanted.base).chain(wanted.pins.contents()));
    if let Some(held) = held.into_iter().find(|encoded| encoded.part.version == number) {
        return Ok(Some(held.clone()));
    }
    match store.revision(number).await? {
        Some(full) => Ok(Some(encoded(&full).await)),
        None => Ok(None),
    }
}

async fn current(full: FullRevision) -> Result<Current, Error> {
    let catalog = match super::read(full.document).await? {
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
    Ok(Current { catalog })
}

async fn read_keys(store: &Store) -> Result<Encoded, Error> {
    let (version, keys) = store.keys().await?;
    let keys_exist = !keys.is_empty();
    let valid = keys.into_iter().filter(|key| key.revoked_at_ms.is_none());
    let keys = valid.map(|key| pb::ClientKey { id: key.id, sha256: key.sha256.to_vec() }).collect();
    let list = pb::KeySet { version, keys_exist, keys };
    Encoded::of(version, &list).map_err(|_| Error::Broken("the key list cannot be compressed"))
}

async fn read_secrets(store: &Store, keyring: &Keyring) -> Result<Held, Error> {
    let (version, rows) = store.secrets().await?;
    let held = Held::of(version, rows, keyring);
    if let Some(fault) = held.fault() {
        tracing::error!("{fault}; nodes keep the secrets that they have, and get none from here");
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Caller;
    use crate::observed::fixture::{CATALOG, Fixture};
    use crate::revision::Apply;

    #[test]
    fn fr_011_what_is_wanted_never_goes_back_inside_an_epoch() {
        let at = |epoch, revision, keys| Heads { epoch, revision, keys, rollout: 2, secrets: 4, pins: 1 };
        let known = at(7, 5, 3);
        assert!(is_newer(Heads { rollout: 3, ..known }, known));
        assert!(is_newer(Heads { revision: 6, rollout: 1, ..known }, known));
        assert!(!is_newer(Heads { rollout: 1, ..known }, known));
        assert!(is_newer(Heads { secrets: 5, ..known }, known));
        assert!(!is_newer(Heads { secrets: 3, ..known }, known));
        assert!(is_newer(Heads { pins: 2, ..known }, known) && !is_newer(Heads { pins: 0, ..known }, known));
        for (read, newer) in [
            (at(7, 6, 3), true),
            (at(7, 5, 4), true),
            (at(7, 5, 3), false),
            (at(7, 4, 4), false),
            (at(7, 6, 2), false),
            (at(8, 1, 1), true),
            (at(6, 9, 9), false),
        ] {
            assert_eq!(is_newer(read, known), newer, "{read:?}");
        }
    }

    #[tokio::test]
    async fn a_database_that_went_back_begins_a_new_epoch_and_is_told() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        crate::keys::create(plane, &Caller::bootstrap(), "a").await.unwrap();
        let before = plane.wanted().unwrap().target.epoch;
        fixture.execute("delete from revision; update part set version = 1").await;
        plane.head.refresh(&plane.store).await.unwrap();
        let after = plane.wanted().unwrap();
        assert!(after.target.epoch > before);
        assert_eq!((after.revision(), after.target.keys.part.version), (0, 1));
        assert_eq!(plane.store.heads().await.unwrap().epoch, after.target.epoch, "it is kept");
        // Only the first of several that notice it begins one.
        let late = audit::epoch_entry(0, before, u64::MAX >> 2);
        plane.store.begin_epoch(before, u64::MAX >> 2, &late).await.unwrap();
        assert_eq!(plane.store.heads().await.unwrap().epoch, after.target.epoch);
    }

    #[tokio::test]
    async fn a_change_after_the_database_went_back_is_not_taken_for_the_one_that_was_lost() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let lost = plane.wanted().unwrap().target.clone();
        fixture.execute("delete from revision").await;
        let document = CATALOG.replace("https://direct", "https://other");
        let ask = Apply::of(document, Caller::bootstrap());
        assert_eq!(crate::revision::apply(plane, ask).await.unwrap().revision.number, 1);
        let told = plane.wanted().unwrap().target.clone();
        assert!(told.epoch > lost.epoch && told.catalog != lost.catalog, "{told:?}");
    }
}
