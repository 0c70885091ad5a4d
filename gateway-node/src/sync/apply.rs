//! Takes an update: unpack, decode, check, build, keep, swap. Secrets come first, for a catalog may name them; then
//! every part is judged before any is activated. A part is taken whole or not at all. A refused part leaves the node serving what it had,
//! and does not hold back the others: a revoked key must not wait for a catalog to be mended.
//!
//! Nothing here waits for the network. All calls but the look-ups block on files.

mod credentials;
mod judge;
mod recall;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use common::limits::QUARANTINE_WITHIN;
use common::pb::fleet as pb;
use common::snapshot::Sha;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificates;
use crate::api::Gateway;
use crate::table::Table;
use crate::table::keep::{Keep, Kept, Kind};
use judge::{Blame, Ready, Refusal, Runs, judge, prepare, try_out};
use recall::{recall, remember};

/// Said of a content in quarantine.
const PUT_ASIDE: &str = "the process died repeatedly soon after activating this content";
/// Refusals that are remembered; the oldest is forgotten first.
const REFUSALS_MAX: usize = 64;

/// What became of an update.
#[derive(Debug)]
pub(super) struct Taken {
    /// What to say of it.
    pub ack: pb::ConfigAck,
    /// The node is at fault, not the update: it is worth sending again.
    pub is_worth_a_retry: bool,
}

/// Keeps the node on what the control plane wants.
pub(crate) struct Applier {
    gateway: Arc<Gateway>,
    certificates: Arc<Certificates>,
    keep: Mutex<Keep>,
    state: Mutex<State>,
    /// Held by who builds a table: an update that is taken, or a look at the credentials.
    building: Mutex<()>,
    /// Counts activations of a catalog.
    activations: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<Kind, Runs>,
    /// What the table in force was built from.
    catalog: Option<Arc<Kept>>,
    /// The key that opened the secrets.
    opened_with: Option<Sha>,
    refused: Vec<pb::Rejection>,
    /// The table could not be built anew.
    is_rebuild_due: bool,
}

impl Applier {
    /// Nothing is served yet.
    pub(crate) fn new(gateway: Arc<Gateway>, certificates: Arc<Certificates>, keep: Keep) -> Self {
        let (activations, _) = watch::channel(0);
        let refused = keep.refused().iter().filter_map(recall).collect();
        let state = Mutex::new(State { refused, ..State::default() });
        let (keep, building) = (Mutex::new(keep), Mutex::default());
        Applier { gateway, certificates, keep, state, building, activations }
    }

    /// Serves the last known good, if there is one. What cannot be used any more gives way to the one
    /// before it.
    pub(crate) fn start(&self) -> io::Result<()> {
        for kind in Kind::ALL {
            loop {
                let loaded = lock(&self.keep).load(kind)?;
                let Some(kept) = loaded else { break };
                let version = kept.version;
                match prepare(kind, &kept, &self.gateway, &self.certificates) {
                    Ok(ready) => {
                        // A full disk keeps nobody from serving what is known to be good.
                        if let Err(error) = self.mark(kind, &kept) {
                            let error = &error as &dyn std::error::Error;
                            tracing::warn!(error, "the marks of this run cannot be written");
                        }
                        self.swap(kind, kept, ready);
                        tracing::info!("starting with {} {version} from disk", kind.as_str());
                        break;
                    }
                    Err(violations) => {
                        tracing::error!(
                            "the kept {} {version} cannot be used: {}",
                            kind.as_str(),
                            describe(&violations)
                        );
                        lock(&self.keep).refuse(kind)?;
                    }
                }
            }
        }
        self.show();
        Ok(())
    }

    /// Takes an update as far as it is good, and says what became of it.
    pub(super) fn take(&self, update: &pb::ConfigUpdate) -> Taken {
        let _building = lock(&self.building);
        let target = update.target.clone().unwrap_or_default();
        let mut ack = pb::ConfigAck { update_id: update.update_id, ..Default::default() };
        let mut is_worth_a_retry = false;
        let secrets = [(Kind::Secrets, &target.secrets, &update.secrets_sealed)];
        let others = [
            (Kind::Catalog, &target.catalog, &update.catalog_zstd),
            (Kind::Keys, &target.keys, &update.keys_zstd),
        ];
        let mut taken = self.take_parts(target.epoch, &secrets);
        taken.extend(self.take_parts(target.epoch, &others));
        let has_taken = |kind| taken.iter().any(|(taken, _, refusal)| *taken == kind && refusal.is_none());
        if has_taken(Kind::Secrets) && !has_taken(Kind::Catalog) {
            self.rebuild();
        }
        for (kind, part, refusal) in taken {
            let Some(refusal) = refusal else { continue };
            tracing::error!(
                "{} {} is refused: {}",
                kind.as_str(),
                part.version,
                describe(&refusal.violations)
            );
            is_worth_a_retry |= refusal.blame == Blame::Node;
            ack.rejected.push(self.refuse(kind, part, refusal));
        }
        let is_applied = ack.rejected.is_empty();
        let result = if is_applied { pb::AckResult::Applied } else { pb::AckResult::Rejected };
        ack.result = result.into();
        ack.applied = Some(self.applied());
        ack.warnings = self.warnings();
        self.gateway.metrics.update(is_applied);
        self.show();
        Taken { ack, is_worth_a_retry }
    }

    /// Says what would become of a catalog. It is built and let go: nothing changes here, also no metric and no
    /// connection.
    pub(super) fn probe(&self, probe: &pb::ProbeRequest) -> pb::ProbeResult {
        let _building = lock(&self.building);
        let part = probe.catalog.clone().unwrap_or_default();
        let tried = try_out(&part, &probe.catalog_zstd, &self.gateway).and_then(|(sha256, warnings)| {
            if lock(&self.keep).is_quarantined(&sha256) {
                return Err(Refusal::of(Blame::Content, "", PUT_ASIDE));
            }
            Ok(warnings)
        });
        let mut result = pb::ProbeResult { probe_id: probe.probe_id, ..Default::default() };
        match tried {
            Ok(warnings) => result.warnings = warnings,
            Err(refusal) => result.violations = refusal.violations,
        }
        result
    }

    /// Ends every quarantine, as an operator wants it.
    pub(super) fn forgive(&self) {
        self.log_marks(Keep::forgive);
        // Answered from memory otherwise.
        let refused = &mut lock(&self.state).refused;
        refused.retain(|rejection| !is_put_aside(rejection));
        let remembered = refused.iter().map(remember).collect();
        self.log_marks(|keep| keep.remember(remembered));
        tracing::info!("an operator ended the quarantines of this node");
    }

    /// Judges parts that were sent, then activates those that are good. Says of each why it is not.
    fn take_parts(
        &self,
        epoch: u64,
        sent: &[(Kind, &Option<pb::Part>, &Bytes)],
    ) -> Vec<(Kind, pb::Part, Option<Refusal>)> {
        let judged: Vec<_> = sent
            .iter()
            .filter(|(_, _, packed)| !packed.is_empty())
            .map(|(kind, part, packed)| {
                let part = (*part).clone().unwrap_or_default();
                let ready = self.judge(*kind, epoch, &part, packed);
                (*kind, part, ready)
            })
            .collect();
        let activated = judged.into_iter().map(|(kind, part, ready)| {
            let refusal = ready.and_then(|(kept, ready)| self.activate(kind, kept, ready)).err();
            (kind, part, refusal)
        });
        activated.collect()
    }

    /// What to say of an update under which taking it broke down.
    pub(super) fn broke_down(&self, update_id: u64, target: Option<pb::Target>) -> Taken {
        let target = target.unwrap_or_default();
        let parts =
            [(Kind::Catalog, target.catalog), (Kind::Keys, target.keys), (Kind::Secrets, target.secrets)];
        let rejected = parts
            .into_iter()
            .filter_map(|(kind, part)| Some((kind, part.filter(|part| !self.runs(kind, part))?)))
            .map(|(kind, part)| {
                let message = "the node broke down while it took this content";
                let refusal = Refusal::of(Blame::Content, "", message);
                self.refuse(kind, part, refusal)
            })
            .collect();
        let ack = pb::ConfigAck {
            update_id,
            result: pb::AckResult::Rejected.into(),
            applied: Some(self.applied()),
            rejected,
            warnings: Vec::new(),
        };
        Taken { ack, is_worth_a_retry: false }
    }

    /// What the node runs.
    pub(crate) fn applied(&self) -> pb::Target {
        let state = lock(&self.state);
        let runs = &state.runs;
        let epoch = runs.values().map(|runs| runs.epoch).max().unwrap_or(0);
        // A part of an epoch that is over is served, and is nothing of this one.
        let of_epoch = |kind| runs.get(&kind).filter(|runs| runs.epoch == epoch);
        let part = |kind| of_epoch(kind).map(|runs| runs.part.clone());
        // With another key than the one that opened them, a restart could not open them again: they are wanted anew.
        let own = self.certificates.held().map(|held| held.facts.key_sha256);
        let secrets = part(Kind::Secrets).filter(|_| own == state.opened_with);
        pb::Target { epoch, catalog: part(Kind::Catalog), keys: part(Kind::Keys), live: None, secrets }
    }

    /// What works but wants a person, now.
    pub(super) fn warnings(&self) -> Vec<pb::Violation> {
        self.gateway.tables.load().map_or_else(Vec::new, |table| table.warnings().to_vec())
    }

    /// What this binary refused, and would again.
    pub(super) fn refused(&self) -> Vec<pb::Rejection> {
        lock(&self.state).refused.clone()
    }

    /// What was put aside.
    pub(super) fn quarantined(&self) -> Vec<pb::Quarantine> {
        let quarantined = lock(&self.keep).quarantined().into_iter();
        quarantined
            .map(|q| pb::Quarantine {
                part: Some(pb::Part { version: q.version, sha256: q.sha256.to_vec() }),
                crashes: q.crashes,
            })
            .collect()
    }

    /// Clears each activated catalog of suspicion once it has been served long enough.
    pub(crate) async fn settle(self: Arc<Self>, stop: CancellationToken) {
        let mut activations = self.activations.subscribe();
        activations.mark_changed();
        loop {
            let settled = async {
                while activations.changed().await.is_ok() {
                    let another = tokio::time::timeout(QUARANTINE_WITHIN, activations.changed()).await;
                    if another.is_err() {
                        return true;
                    }
                    activations.mark_changed();
                }
                false
            };
            match stop.run_until_cancelled(settled).await {
                Some(true) => {
                    let this = self.clone();
                    let settled = tokio::task::spawn_blocking(move || this.log_marks(|keep| keep.settle()));
                    if settled.await.is_err() {
                        return;
                    }
                }
                Some(false) | None => return,
            }
        }
    }

    /// Marks the end of this run as intended.
    pub(crate) fn end(&self) {
        self.log_marks(|keep| keep.end());
    }

    fn log_marks(&self, mark: impl FnOnce(&mut Keep) -> io::Result<()>) {
        if let Err(error) = mark(&mut lock(&self.keep)) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the marks of this run cannot be written"
            );
        }
    }

    fn judge(
        &self,
        kind: Kind,
        epoch: u64,
        part: &pb::Part,
        packed: &Bytes,
    ) -> Result<(Kept, Ready), Refusal> {
        let known = lock(&self.state).refused.iter().find(|r| is_of(r, kind, part)).cloned();
        if let Some(known) = known {
            return Err(Refusal { blame: Blame::Content, violations: known.violations });
        }
        let runs = lock(&self.state).runs.get(&kind).cloned();
        let kept = judge(kind, epoch, part, packed, runs.as_ref())?;
        if lock(&self.keep).is_quarantined(&kept.sha256) {
            return Err(Refusal::of(Blame::Content, "", PUT_ASIDE));
        }
        // What is sealed for another key may be sealed for this one the next time.
        let blame = if kind == Kind::Secrets { Blame::Sending } else { Blame::Content };
        let ready = prepare(kind, &kept, &self.gateway, &self.certificates)
            .map_err(|violations| Refusal { blame, violations })?;
        Ok((kept, ready))
    }

    fn activate(&self, kind: Kind, kept: Kept, ready: Ready) -> Result<(), Refusal> {
        let candidate = lock(&self.keep).candidate(kind, &kept);
        let kept_for_good = candidate.and_then(|()| self.mark(kind, &kept)).and_then(|()| {
            // Before it is served: a process that dies right after that must not go back.
            lock(&self.keep).promote(kind)
        });
        if let Err(error) = kept_for_good {
            let discarded = lock(&self.keep).discard(kind);
            tracing::debug!(is_discarded = discarded.is_ok(), "a candidate that could not be kept");
            return Err(Refusal::of(Blame::Node, "", format!("the node cannot keep it on disk: {error}")));
        }
        let version = kept.version;
        self.swap(kind, kept, ready);
        tracing::info!("{} {version} is served", kind.as_str());
        Ok(())
    }

    /// Notes, before a catalog is activated, that it is.
    fn mark(&self, kind: Kind, kept: &Kept) -> io::Result<()> {
        match kind {
            Kind::Catalog => lock(&self.keep).activate(kept.version, kept.sha256),
            Kind::Keys | Kind::Secrets => Ok(()),
        }
    }

    fn swap(&self, kind: Kind, kept: Kept, ready: Ready) {
        let runs = Runs::of(kind, &kept);
        match ready {
            Ready::Keys(keys) => self.gateway.keys.store(Arc::new(keys)),
            Ready::Secrets(secrets, key_sha256) => {
                self.gateway.sources.give(secrets);
                lock(&self.state).opened_with = Some(key_sha256);
            }
            Ready::Catalog(table) => {
                self.install(table);
                lock(&self.state).catalog = Some(Arc::new(kept));
                self.activations.send_modify(|count| *count += 1);
            }
        }
        lock(&self.state).runs.insert(kind, runs);
    }

    fn install(&self, table: Table) {
        let Gateway { metrics, tables, .. } = &*self.gateway;
        metrics.retain_channels(table.channels().map(|c| c.id.to_string()));
        self.gateway.watch_credentials_of(Some(&table));
        for warning in table.warnings() {
            tracing::warn!("{}: {}", warning.path, warning.message);
        }
        tables.install(Arc::new(table));
    }

    fn refuse(&self, kind: Kind, part: pb::Part, refusal: Refusal) -> pb::Rejection {
        let is_final = refusal.blame == Blame::Content;
        let violations = refusal.violations;
        let rejection = pb::Rejection { part: Some(part), kind: kind_pb(kind).into(), violations };
        let refused = &mut lock(&self.state).refused;
        let is_known =
            refused.iter().any(|known| known.kind == rejection.kind && known.part == rejection.part);
        if is_final && !is_known {
            if refused.len() >= REFUSALS_MAX {
                refused.remove(0);
            }
            refused.push(rejection.clone());
            let remembered = refused.iter().map(remember).collect();
            self.log_marks(|keep| keep.remember(remembered));
        }
        rejection
    }

    fn runs(&self, kind: Kind, part: &pb::Part) -> bool {
        lock(&self.state).runs.get(&kind).is_some_and(|runs| runs.part == *part)
    }

    fn show(&self) {
        let applied = self.applied();
        self.gateway.metrics.serving(applied.epoch, applied.catalog.map_or(0, |part| part.version));
    }
}

fn kind_pb(kind: Kind) -> pb::PartKind {
    match kind {
        Kind::Catalog => pb::PartKind::Catalog,
        Kind::Keys => pb::PartKind::Keys,
        Kind::Secrets => pb::PartKind::Secrets,
    }
}

/// Whether a refusal is that of a quarantine.
fn is_put_aside(rejection: &pb::Rejection) -> bool {
    rejection.violations.iter().any(|violation| violation.message == PUT_ASIDE)
}

fn is_of(rejection: &pb::Rejection, kind: Kind, part: &pb::Part) -> bool {
    rejection.kind() == kind_pb(kind) && rejection.part.as_ref() == Some(part)
}

fn describe(violations: &[pb::Violation]) -> String {
    let lines = violations.iter().map(|v| match v.path.as_str() {
        "" => v.message.clone(),
        path => format!("{path}: {}", v.message),
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
