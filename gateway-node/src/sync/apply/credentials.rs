//! A credential that changes, in a secret or in a file, has the same table built anew with it: no revision is needed, and
//! nothing on the path of a request waits.

use std::collections::BTreeMap;

use super::judge::{Ready, prepare};
use super::{Applier, describe, lock};
use crate::channel::Channel;
use crate::table::Table;
use crate::table::keep::Kind;

impl Applier {
    /// Looks whether credentials have changed, and serves with those that there are now.
    pub(crate) fn look_at_credentials(&self) {
        let _building = lock(&self.building);
        if self.gateway.sources.look() || lock(&self.state).is_rebuild_due {
            self.rebuild();
        }
    }

    /// Builds the table in force anew with the credentials that there are now. Requests in flight keep theirs.
    pub(super) fn rebuild(&self) {
        let Some(kept) = lock(&self.state).catalog.clone() else { return };
        let before = self.gateway.tables.load();
        let built = prepare(Kind::Catalog, &kept, &self.gateway, &self.certificates);
        let was_due = std::mem::replace(&mut lock(&self.state).is_rebuild_due, built.is_err());
        match built {
            Ok(Ready::Catalog(table)) => {
                self.gateway.metrics.credentials_changed(tell_changes(before.as_deref(), &table));
                self.install(table);
            }
            Ok(Ready::Keys(_) | Ready::Secrets(..)) => {}
            Err(violations) if !was_due => {
                tracing::error!(
                    "credentials have changed and cannot be taken yet: {}",
                    describe(&violations)
                );
            }
            Err(_) => {}
        }
    }
}

/// Says which channels show another credential in a table that was built anew. Returns how many.
fn tell_changes(before: Option<&Table>, after: &Table) -> usize {
    let shown = |channel: &Channel| channel.credential.fingerprint();
    let known: BTreeMap<_, _> =
        before.into_iter().flat_map(Table::channels).map(|channel| (&channel.id, shown(channel))).collect();
    let changed = after.channels().filter(|channel| known.get(&channel.id) != Some(&shown(channel)));
    changed
        .inspect(|one| tracing::info!(channel.id = %one.id, "channel {} has another credential", one.id))
        .count()
}
