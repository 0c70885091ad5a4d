//! Takes an update: unpack, decode, check, build, keep, swap. Every part is judged before any is
//! activated; a part is taken whole or not at all. A refused part leaves the node serving what it had,
//! and does not hold back the other: a revoked key must not wait for a catalog to be mended.
//!
//! Nothing here waits for the network. All calls but the look-ups block on files.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use common::limits::QUARANTINE_WITHIN;
use common::pb::fleet as pb;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::Gateway;
use crate::table::keep::{Keep, Kept, Kind};
use judge::{Blame, Ready, Refusal, Runs, judge, prepare, try_out};

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
    keep: Mutex<Keep>,
    state: Mutex<State>,
    /// Counts activations of a catalog.
    activations: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<Kind, Runs>,
    refused: Vec<pb::Rejection>,
}

impl Applier {
    /// Nothing is served yet.
    pub(crate) fn new(gateway: Arc<Gateway>, keep: Keep) -> Self {
        let (activations, _) = watch::channel(0);
        Applier { gateway, keep: Mutex::new(keep), state: Mutex::default(), activations }
    }

    /// Serves the last known good, if there is one. What cannot be used any more gives way to the one
    /// before it.
    pub(crate) fn start(&self) -> io::Result<()> {
        for kind in Kind::ALL {
            loop {
                let loaded = lock(&self.keep).load(kind)?;
                let Some(kept) = loaded else { break };
                let (version, runs) = (kept.version, Runs::from(&kept));
                match prepare(kind, &kept, &self.gateway) {
                    Ok(ready) => {
                        // A full disk keeps nobody from serving what is known to be good.
                        if let Err(error) = self.mark(kind, &kept) {
                            let error = &error as &dyn std::error::Error;
                            tracing::warn!(error, "the marks of this run cannot be written");
                        }
                        self.swap(ready);
                        lock(&self.state).runs.insert(kind, runs);
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
        let target = update.target.clone().unwrap_or_default();
        let sent = [
            (Kind::Catalog, &target.catalog, &update.catalog_zstd),
            (Kind::Keys, &target.keys, &update.keys_zstd),
        ];
        let judged: Vec<_> = sent
            .into_iter()
            .filter(|(_, _, packed)| !packed.is_empty())
            .map(|(kind, part, packed)| {
                let part = part.clone().unwrap_or_default();
                let ready = self.judge(kind, target.epoch, &part, packed);
                (kind, part, ready)
            })
            .collect();
        let mut ack = pb::ConfigAck { update_id: update.update_id, ..Default::default() };
        let mut is_worth_a_retry = false;
        for (kind, part, ready) in judged {
            let refusal = match ready.and_then(|(kept, ready)| self.activate(kind, &kept, ready)) {
                Ok(warnings) => {
                    ack.warnings.extend(warnings);
                    continue;
                }
                Err(refusal) => refusal,
            };
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
        self.gateway.metrics.update(is_applied);
        self.show();
        Taken { ack, is_worth_a_retry }
    }

    /// Says what would become of a catalog. It is built and let go: nothing changes here, also no metric and no
    /// connection.
    pub(super) fn probe(&self, probe: &pb::ProbeRequest) -> pb::ProbeResult {
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
        lock(&self.state).refused.retain(|rejection| !is_put_aside(rejection));
        tracing::info!("an operator ended the quarantines of this node");
    }

    /// What to say of an update under which taking it broke down.
    pub(super) fn broke_down(&self, update_id: u64, target: Option<pb::Target>) -> Taken {
        let target = target.unwrap_or_default();
        let parts = [(Kind::Catalog, target.catalog), (Kind::Keys, target.keys)];
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
        let runs = &lock(&self.state).runs;
        let part = |kind| runs.get(&kind).map(|runs| runs.part.clone());
        pb::Target {
            epoch: runs.values().map(|runs| runs.epoch).max().unwrap_or(0),
            catalog: part(Kind::Catalog),
            keys: part(Kind::Keys),
            live: None,
            secrets: None,
        }
    }

    /// What was refused in this run, and would be again.
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
        let ready = prepare(kind, &kept, &self.gateway)
            .map_err(|violations| Refusal { blame: Blame::Content, violations })?;
        Ok((kept, ready))
    }

    fn activate(&self, kind: Kind, kept: &Kept, ready: Ready) -> Result<Vec<pb::Violation>, Refusal> {
        let candidate = lock(&self.keep).candidate(kind, kept);
        if let Err(error) = candidate.and_then(|()| self.mark(kind, kept)) {
            let discarded = lock(&self.keep).discard(kind);
            tracing::debug!(is_discarded = discarded.is_ok(), "a candidate that could not be kept");
            return Err(Refusal::of(Blame::Node, "", format!("the node cannot keep it on disk: {error}")));
        }
        let mut warnings = self.swap(ready);
        lock(&self.state).runs.insert(kind, Runs::from(kept));
        let promoted = lock(&self.keep).promote(kind);
        if let Err(error) = promoted {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "what is served cannot be kept for a restart"
            );
            let message = format!("served, but a restart would begin with the one before: {error}");
            warnings.push(pb::Violation { path: String::new(), message });
        }
        tracing::info!("{} {} is served", kind.as_str(), kept.version);
        Ok(warnings)
    }

    /// Notes, before a catalog is activated, that it is.
    fn mark(&self, kind: Kind, kept: &Kept) -> io::Result<()> {
        match kind {
            Kind::Catalog => lock(&self.keep).activate(kept.version, kept.sha256),
            Kind::Keys => Ok(()),
        }
    }

    fn swap(&self, ready: Ready) -> Vec<pb::Violation> {
        match ready {
            Ready::Keys(keys) => {
                self.gateway.keys.store(Arc::new(keys));
                Vec::new()
            }
            Ready::Catalog(built) => {
                let table = Arc::new(built.table);
                self.gateway.metrics.retain_channels(table.channels().map(|c| c.id.to_string()));
                self.gateway.tables.install(table);
                self.activations.send_modify(|count| *count += 1);
                for warning in &built.warnings {
                    tracing::warn!("{}: {}", warning.path, warning.message);
                }
                built.warnings
            }
        }
    }

    fn refuse(&self, kind: Kind, part: pb::Part, refusal: Refusal) -> pb::Rejection {
        let is_final = refusal.blame == Blame::Content;
        let violations = refusal.violations;
        let rejection = pb::Rejection { part: Some(part), kind: kind_pb(kind).into(), violations };
        let refused = &mut lock(&self.state).refused;
        if is_final && !refused.contains(&rejection) {
            if refused.len() >= REFUSALS_MAX {
                refused.remove(0);
            }
            refused.push(rejection.clone());
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
