//! What a node is sent: what it should run and does not, unless it refused it or lacks what it needs. Pure.

use bytes::Bytes;
use common::pb::fleet as pb;
use pb::sync_response::Message as Said;

use super::stand_in::Stand;
use super::{Action, Phase, Session};
use crate::nodes::Applied;
use crate::revision::encoded::{Encoded, Part};

impl Session {
    /// Sends what the node should have and does not; nothing while it still works on something.
    pub(super) fn catch_up(&mut self) -> Vec<Action> {
        if !matches!(self.phase, Phase::Idle) {
            return Vec::new();
        }
        let aim = self.aim();
        let (epoch, keys) = (aim.epoch, &self.wanted.target.keys);
        let applied = self.facts.applied;
        // It heard of a later epoch elsewhere, as this process will: what is wanted here is over, and would be refused.
        if applied.epoch > epoch {
            return Vec::new();
        }
        // The versions of another epoch say nothing about those of this one.
        let is_same_epoch = applied.epoch == epoch;
        let has = |part: Part, applied: Option<Part>| is_same_epoch && applied == Some(part);
        // What it runs already is never older than what is wanted, save while this process has not heard of it.
        let is_past = |part: Part, applied: Option<Part>| {
            is_same_epoch && applied.is_some_and(|applied| applied.version > part.version)
        };
        let is_due = |part: Part, applied: Option<Part>| {
            !has(part, applied) && !is_past(part, applied) && !self.refused.contains(&part)
        };
        let has_nothing = !is_same_epoch || applied.catalog.is_none();
        // What the node refused, or would not serve as it is meant.
        let is_out = |content: &Encoded| {
            self.refused.contains(&content.part) || !self.facts.lacks(&content.needs).is_empty()
        };
        // What the node keeps because it is newer than what it should have is neither the head nor the base.
        let mut catalog = aim.catalog.and_then(|part| self.wanted.content(part));
        let mut catalog_part = aim.catalog;
        if let Some(head) = catalog.filter(|head| has_nothing && is_out(head)) {
            match self.stand_in.stand(head.part, is_out) {
                Stand::Ready(stand_in) => {
                    catalog = Some(stand_in);
                    catalog_part = Some(stand_in.part);
                }
                Stand::Look(below) => return vec![Action::FindAccepted { epoch, below }],
                Stand::Nothing => {}
            }
        }
        let new_catalog = catalog.filter(|encoded| is_due(encoded.part, applied.catalog) && !is_out(encoded));
        let new_keys = Some(keys).filter(|encoded| is_due(encoded.part, applied.keys));
        // What it keeps because it is given none is not due.
        let held = &self.wanted.target.secrets;
        let new_secrets = aim.secrets.filter(|part| *part == held.part && is_due(*part, applied.secrets));
        if new_catalog.is_none() && new_keys.is_none() && new_secrets.is_none() {
            return self.confirm();
        }
        let id = self.next_update;
        // The node's own content stands for a part that it is not sent because it refused it.
        let stays = |part: Option<Part>, new: bool, applied: Option<Part>| {
            if new || part.is_some_and(|part| has(part, applied)) { part } else { applied }
        };
        let catalog_part = stays(catalog_part, new_catalog.is_some(), applied.catalog);
        let keys_part = stays(Some(keys.part), new_keys.is_some(), applied.keys);
        let target = pb::Target {
            epoch,
            catalog: catalog_part.map(Into::into),
            keys: keys_part.map(Into::into),
            live: None,
            secrets: stays(aim.secrets, new_secrets.is_some(), applied.secrets).map(Into::into),
        };
        let update = pb::ConfigUpdate {
            update_id: id,
            target: Some(target),
            catalog_zstd: new_catalog.map(|encoded| encoded.packed.clone()).unwrap_or_default(),
            keys_zstd: new_keys.map(|encoded| encoded.packed.clone()).unwrap_or_default(),
            secrets_sealed: Bytes::new(),
        };
        let sent = [new_catalog, new_keys].into_iter().flatten().map(|encoded| encoded.part);
        let sent = sent.chain(new_secrets).collect();
        let revision = catalog_part.map_or(0, |part| part.version);
        self.phase = Phase::Updating { id, sent, revision };
        self.next_update += 1;
        vec![match new_secrets {
            Some(_) => Action::Seal(update, held.clone()),
            None => Action::Send(Said::Update(update)),
        }]
    }

    /// Says once that the node runs what it should.
    fn confirm(&mut self) -> Vec<Action> {
        let aim = self.aim();
        if self.facts.applied != aim || self.confirmed == Some(aim) {
            return Vec::new();
        }
        self.confirmed = Some(aim);
        vec![Action::Send(Said::UpToDate(pb::UpToDate { target: Some(aim.into()) }))]
    }

    /// What this node should run now.
    pub(super) fn aim(&self) -> Applied {
        self.wanted.aim(&self.id, &self.facts)
    }
}
