//! Which channels name which secrets, in the revisions that count: the current one, the one that a rollout leads away
//! from, and those that nodes run or are pinned to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use common::pb::fleet as pb;
use common::snapshot::{decode, unpack};

use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::FullRevision;

/// A channel of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its id.
    pub channel: String,
    /// The revision.
    pub revision: u64,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (revision {})", self.channel, self.revision)
    }
}

/// Who uses which secret, the newest revision first.
pub async fn all(plane: &Plane) -> Result<BTreeMap<String, Vec<Use>>, Error> {
    let wanted = plane.wanted()?;
    let mut revisions: BTreeSet<u64> = plane.nodes.applied_revisions(wanted.target.epoch);
    revisions.insert(wanted.revision());
    revisions.extend(wanted.base.as_ref().map(|base| base.part.version));
    revisions.extend(wanted.pins.contents().map(|content| content.part.version));
    let mut uses: BTreeMap<String, Vec<Use>> = BTreeMap::new();
    for revision in revisions.into_iter().rev() {
        let Some(full) = plane.store.revision(revision).await? else { continue };
        let named = tokio::task::spawn_blocking(move || named(&full));
        let named = named.await.map_err(|_| Error::Broken("the reader of a snapshot broke down"))?;
        for (channel, secret) in named {
            uses.entry(secret).or_default().push(Use { channel, revision });
        }
    }
    Ok(uses)
}

/// The channels of a snapshot that name a secret. A snapshot that cannot be read is served by no node either.
fn named(full: &FullRevision) -> Vec<(String, String)> {
    let encoded = unpack(&full.snapshot_zstd, &full.snapshot_sha256);
    let snapshot = encoded.and_then(|encoded| decode::<pb::Snapshot>(&encoded)).unwrap_or_default();
    let named = snapshot.channels.into_iter().filter_map(|channel| {
        let secret = channel.credential.strip_prefix("secret:")?.to_owned();
        Some((channel.id, secret))
    });
    named.collect()
}
