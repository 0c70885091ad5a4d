//! What to send to a node for what came from it. Pure: events and the time go in, actions come out.
//!
//! ```text
//!            Hello                     target differs                ConfigAck
//! Waiting ─────────► Idle ──────────────────────────► Updating{id} ──────────► Idle
//!    │ silent          │ silent, old, drained, stopped      │
//!    └────────────────►└───────────────► ended ◄────────────┘
//! ```
//! Level-triggered: the newest target wins, and at most one update is not acknowledged. A content
//! that the node refused is not sent to it again; a part that it has is not sent at all.

mod catch_up;
mod read;
mod stand_in;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use common::hpke::Recipient;
use common::label::Labels;
use common::limits::{HEARTBEAT, HEARTBEAT_LOST};
use common::pb::fleet as pb;
use pb::sync_request::Message as Heard;
use pb::sync_response::Message as Said;
use tokio::time::Instant;

use crate::metrics::{Ack, StreamEnd};
use crate::nodes::{Applied, Facts, Finding, Probed, Quarantined, Rejected};
use crate::revision::encoded::{Encoded, Part};
use crate::revision::head::Wanted;
use crate::secrets::held::Held;
use read::{
    LIST_MAX, cut, hello_fault, is_known_kind, read_applied, read_labels, read_pauses, read_probed,
    read_quarantine, read_violations,
};
use stand_in::StandIn;

/// A node says Hello within this time.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// What a node hears that is revoked.
pub const REVOKED: &str = "this node is revoked";
/// Rejections that are shown of a node; older ones go.
const REJECTED_MAX: usize = 16;

/// What is the same for all sessions of this process.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// Names this process.
    pub control_plane_id: String,
    /// Version of the program.
    pub version: String,
}

/// What is known of a node before it says anything.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The node of its certificate; without one it may be any.
    pub node_id: Option<Arc<str>>,
    /// What it is labelled, whatever it says.
    pub labels: Labels,
    /// The key of its certificate, which secrets are sealed for; without one it gets none.
    pub recipient: Option<Recipient>,
}

/// What happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one call and is in no queue")]
pub enum Event {
    /// The node said something.
    Heard(Heard),
    /// What is wanted may be something else now.
    Wanted(Arc<Wanted>),
    /// What was looked for: the newest content below a version that some node runs.
    Accepted(Option<Encoded>),
    /// Time went by.
    Tick,
    /// The control plane goes away.
    Stop,
    /// A newer stream of the same node took over.
    Replaced,
    /// Nobody speaks for the node any more.
    Revoked,
    /// The node is to leave, for this reason.
    Leave(String),
    /// The node's quarantines are to end.
    Retry,
    /// The node is to say under this number what it would make of a catalog.
    Probe(u64, Encoded),
}

/// What to do about it.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Register the node under this id; its facts are there now.
    Register(String),
    /// Send this.
    Send(Said),
    /// Send this with these secrets, sealed for the node.
    Seal(pb::ConfigUpdate, Held),
    /// Look for the newest catalog below this version that some node of the epoch runs.
    FindAccepted { epoch: u64, below: u64 },
    /// The node answered the probe of this number.
    Probed(u64, Probed),
    /// Count an acknowledgement of a revision.
    Acknowledged(Ack, u64),
    /// End the stream.
    End(End),
}

/// Why a stream ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By us and in good order; the node connects anew at once.
    Drained,
    /// The node left on purpose.
    Left,
    /// The node was silent for too long.
    Silent,
    /// A newer stream took over.
    Replaced,
    /// The node broke the protocol.
    Refused(&'static str),
    /// It may not speak for this node.
    Forbidden(&'static str),
}

impl End {
    /// How it is counted.
    pub fn counted(&self) -> StreamEnd {
        match self {
            End::Drained => StreamEnd::Drained,
            End::Left => StreamEnd::Left,
            End::Silent => StreamEnd::Lost,
            End::Replaced => StreamEnd::Replaced,
            End::Refused(_) | End::Forbidden(_) => StreamEnd::Refused,
        }
    }
}

/// One node's stream.
#[derive(Debug)]
pub struct Session {
    greeting: Greeting,
    origin: Origin,
    phase: Phase,
    /// Of the node; empty before its Hello.
    id: String,
    facts: Facts,
    wanted: Arc<Wanted>,
    /// Contents that are not sent to this node again.
    refused: HashSet<Part>,
    /// For the head, where the node refused it and has nothing.
    stand_in: StandIn,
    /// What `UpToDate` was said for.
    confirmed: Option<Applied>,
    next_update: u64,
    heard_at: Instant,
    heartbeat_at: Instant,
    drain_at: Instant,
}

#[derive(Debug)]
enum Phase {
    Waiting { until: Instant },
    Idle,
    Updating { id: u64, sent: Vec<Part>, revision: u64 },
    Ended,
}

impl Session {
    /// A stream that was just opened, and lives for `age` at most.
    pub fn new(greeting: Greeting, wanted: Arc<Wanted>, age: Duration, now: Instant) -> Self {
        Session {
            greeting,
            origin: Origin::default(),
            phase: Phase::Waiting { until: now + HELLO_WITHIN },
            id: String::new(),
            facts: Facts::default(),
            wanted,
            refused: HashSet::new(),
            stand_in: StandIn::default(),
            confirmed: None,
            next_update: 1,
            heard_at: now,
            heartbeat_at: now + HEARTBEAT,
            drain_at: now + age,
        }
    }

    /// The same of a node of which something is known.
    pub fn known_as(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// The node's id; none before it said it.
    pub fn id(&self) -> Option<&str> {
        Some(self.id.as_str()).filter(|id| !id.is_empty())
    }

    /// What the node said of itself up to now.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// When the next `Tick` has something to do.
    pub fn next_tick(&self) -> Instant {
        match self.phase {
            Phase::Waiting { until } => until,
            Phase::Idle | Phase::Updating { .. } | Phase::Ended => {
                self.heartbeat_at.min(self.drain_at).min(self.heard_at + HEARTBEAT_LOST)
            }
        }
    }

    /// Takes an event.
    pub fn on(&mut self, event: Event, now: Instant) -> Vec<Action> {
        if matches!(self.phase, Phase::Ended) {
            return Vec::new();
        }
        match event {
            Event::Heard(heard) => {
                self.heard_at = now;
                self.on_heard(heard)
            }
            Event::Wanted(wanted) => {
                self.wanted = wanted;
                self.catch_up()
            }
            Event::Accepted(found) => {
                self.stand_in.take(found);
                self.catch_up()
            }
            Event::Tick => self.on_tick(now),
            Event::Stop => self.drain("shutting down"),
            Event::Replaced => self.end(End::Replaced),
            Event::Revoked => self.end(End::Forbidden(REVOKED)),
            Event::Leave(reason) => vec![Action::Send(Said::Leave(pb::LeaveOrder { reason }))],
            Event::Retry => self.retry(),
            Event::Probe(probe_id, content) => {
                let (catalog, catalog_zstd) = (Some(content.part.into()), content.packed);
                vec![Action::Send(Said::Probe(pb::ProbeRequest { probe_id, catalog, catalog_zstd }))]
            }
        }
    }

    fn on_heard(&mut self, heard: Heard) -> Vec<Action> {
        let is_waiting = matches!(self.phase, Phase::Waiting { .. });
        match heard {
            Heard::Hello(hello) if is_waiting => self.on_hello(hello),
            Heard::Hello(_) => self.end(End::Refused("a stream has one Hello")),
            _ if is_waiting => self.end(End::Refused("the first message must be Hello")),
            Heard::Ack(ack) => self.on_ack(ack),
            Heard::Heartbeat(beat) => self.on_heartbeat(beat),
            Heard::Probe(result) => {
                let probe_id = result.probe_id;
                vec![Action::Probed(probe_id, read_probed(result))]
            }
            Heard::Drain(_) => {
                self.facts.drained = true;
                self.end(End::Left)
            }
        }
    }

    fn on_hello(&mut self, hello: pb::Hello) -> Vec<Action> {
        if let Some(fault) = hello_fault(&hello) {
            return self.end(End::Refused(fault));
        }
        if self.origin.node_id.as_deref().is_some_and(|own| own != hello.node_id) {
            return self.end(End::Forbidden("the certificate is another node's"));
        }
        let mut labels = read_labels(&hello.labels).unwrap_or_default();
        labels.extend(self.origin.labels.clone());
        let quarantined: Vec<Quarantined> =
            hello.quarantined.iter().filter_map(read_quarantine).take(LIST_MAX).collect();
        self.facts = Facts {
            boot_id: hello.boot_id,
            version: cut(hello.version),
            schema: hello.schema,
            features: hello.features.into_iter().take(LIST_MAX).map(cut).collect(),
            is_certified: self.origin.recipient.is_some(),
            labels,
            data_address: cut(hello.data_address),
            ops_address: cut(hello.ops_address),
            applied: read_applied(hello.applied.as_ref()),
            rejected: Vec::new(),
            quarantined,
            ..Facts::default()
        };
        // A quarantined content is sent again by nobody: the node would only put it aside again.
        self.refused.extend(self.facts.quarantined.iter().map(|quarantined| quarantined.part));
        // Parts that this version does not send are of no concern to it.
        let rejected = hello.rejected.into_iter().filter(|rejection| is_known_kind(rejection.kind));
        self.reject(rejected.collect());
        self.phase = Phase::Idle;
        self.id.clone_from(&hello.node_id);
        let welcome = pb::Welcome {
            epoch: self.wanted.target.epoch,
            control_plane_id: self.greeting.control_plane_id.clone(),
            version: self.greeting.version.clone(),
            heartbeat_ms: HEARTBEAT.as_millis() as u64,
            authorities_sha256: Vec::new(),
        };
        let mut actions = vec![Action::Register(hello.node_id), Action::Send(Said::Welcome(welcome))];
        actions.extend(self.catch_up());
        actions
    }

    fn on_ack(&mut self, ack: pb::ConfigAck) -> Vec<Action> {
        let Phase::Updating { id, sent, revision } = &mut self.phase else {
            return self.end(End::Refused("nothing was to be acknowledged"));
        };
        if *id != ack.update_id {
            return self.end(End::Refused("another update was to be acknowledged"));
        }
        let (sent, revision) = (std::mem::take(sent), *revision);
        let counted = match pb::AckResult::try_from(ack.result) {
            Ok(pb::AckResult::Applied) => Ack::Applied,
            Ok(pb::AckResult::Rejected) => Ack::Rejected,
            Ok(pb::AckResult::Unspecified) | Err(_) => {
                return self
                    .end(End::Refused("the result of an acknowledgement must be one that is known here"));
            }
        };
        if ack.rejected.iter().any(|rejection| !is_known_kind(rejection.kind)) {
            return self.end(End::Refused("what was rejected must be of a kind that was sent"));
        }
        self.phase = Phase::Idle;
        self.facts.applied = read_applied(ack.applied.as_ref());
        self.facts.warnings = read_violations(ack.warnings);
        self.reject(ack.rejected);
        let applied = &self.facts.applied;
        // Whatever the node calls it: what was sent and does not run was refused. It would be sent for ever else.
        let unapplied: Vec<Part> = sent
            .into_iter()
            .filter(|part| !applied.runs(*part))
            .filter(|part| !self.refused.contains(part))
            .collect();
        for part in unapplied {
            let message = "the node acknowledged this content without running it".to_owned();
            let violations = vec![Finding { path: String::new(), message }];
            self.refused.insert(part);
            self.facts.rejected.push(Rejected { part, violations });
        }
        let surplus = self.facts.rejected.len().saturating_sub(REJECTED_MAX);
        self.facts.rejected.drain(..surplus);
        // What the node runs is not rejected any more.
        let running = self.facts.applied;
        self.facts.rejected.retain(|r| !running.runs(r.part));
        let mut actions = vec![Action::Acknowledged(counted, revision)];
        self.confirmed = Some(self.facts.applied);
        actions.extend(self.catch_up());
        actions
    }

    fn on_heartbeat(&mut self, beat: pb::NodeHeartbeat) -> Vec<Action> {
        self.facts.open_channels = beat.open_channels.into_iter().take(LIST_MAX).map(cut).collect();
        self.facts.open_channels.sort();
        self.facts.in_flight = beat.in_flight;
        if let Some(applied) = beat.applied {
            self.facts.applied = read_applied(Some(&applied));
        }
        if let Some(pb::Warnings { violations }) = beat.warnings {
            self.facts.warnings = read_violations(violations);
        }
        if let Some(pb::Pauses { pauses }) = beat.pauses {
            self.facts.pauses = read_pauses(pauses);
        }
        self.catch_up()
    }

    fn on_tick(&mut self, now: Instant) -> Vec<Action> {
        if let Phase::Waiting { until } = self.phase {
            return if now >= until { self.end(End::Silent) } else { Vec::new() };
        }
        if now.duration_since(self.heard_at) >= HEARTBEAT_LOST {
            return self.end(End::Silent);
        }
        if now >= self.drain_at {
            return self.drain("old stream");
        }
        if now < self.heartbeat_at {
            return Vec::new();
        }
        self.heartbeat_at = now + HEARTBEAT;
        let target = Some(self.aim().into());
        vec![Action::Send(Said::Heartbeat(pb::ServerHeartbeat { target, authorities_sha256: Vec::new() }))]
    }

    /// What was put aside is sent again; the node hears before that it may try it.
    fn retry(&mut self) -> Vec<Action> {
        for Quarantined { part, .. } in std::mem::take(&mut self.facts.quarantined) {
            self.refused.remove(&part);
            // It is refused in words as well, where it was sent in spite of the quarantine.
            self.facts.rejected.retain(|rejected| rejected.part != part);
        }
        let mut actions = vec![Action::Send(Said::Retry(pb::RetryOrder {}))];
        actions.extend(self.catch_up());
        actions
    }

    fn drain(&mut self, reason: &str) -> Vec<Action> {
        let drain = Said::Drain(pb::ServerDrain { reason: reason.to_owned() });
        self.phase = Phase::Ended;
        vec![Action::Send(drain), Action::End(End::Drained)]
    }

    fn end(&mut self, end: End) -> Vec<Action> {
        self.phase = Phase::Ended;
        vec![Action::End(end)]
    }

    fn reject(&mut self, rejections: Vec<pb::Rejection>) {
        for rejection in rejections.into_iter().take(LIST_MAX) {
            let Some(part) = rejection.part.as_ref().and_then(Part::read) else { continue };
            self.refused.insert(part);
            self.facts.rejected.retain(|known| known.part != part);
            let violations = read_violations(rejection.violations);
            self.facts.rejected.push(Rejected { part, violations });
        }
    }
}
