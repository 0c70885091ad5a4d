//! One node's stream: awaits an event, asks the session, carries its actions out. It ends by the
//! session's word, by the node's going, or with the process; it holds no lock while it waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use common::limits::{HEARTBEAT_LOST, STREAM_AGE_JITTER};
use common::pb::fleet as pb;
use pb::sync_response::Message as Said;
use prost::Message as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::session::{Action, End, Event, Greeting, Origin, REVOKED, Session};
use crate::error::Error;
use crate::metrics::{Ack, StreamEnd};
use crate::nodes::{Call, Connection, Order, Probed};
use crate::plane::Plane;
use crate::revision::encoded::{Encoded, Part};
use crate::revision::head::Wanted;
use crate::rollout::run;
use crate::secrets::held::Held;

/// Messages on their way to the transport: an update, and a heartbeat or a drain behind it.
pub const QUEUE: usize = 4;
/// So many revisions that nodes run are looked at for one that all may.
const LOOKED_AT_MAX: usize = 8;

/// The stream's ends.
pub struct Stream {
    /// What the services share.
    pub plane: Arc<Plane>,
    /// What the node says.
    pub inbound: Streaming<pb::SyncRequest>,
    /// What it is told.
    pub outbound: mpsc::Sender<Result<pb::SyncResponse, Status>>,
    /// What is known of the node before it says anything.
    pub origin: Origin,
}

/// When a stream is drained: at the age that is set, moved by up to [`STREAM_AGE_JITTER`] of it. `random` lies in 0..1.
pub fn age(set: Duration, random: f64) -> Duration {
    set.mul_f64(1.0 + STREAM_AGE_JITTER * (2.0 * random - 1.0))
}

impl Stream {
    /// Runs until the stream ends, at this age by itself.
    pub async fn run(
        mut self,
        greeting: Greeting,
        wanted: Subscription,
        age: Duration,
        stop: CancellationToken,
    ) {
        let Subscription { mut changes, first } = wanted;
        let session = Session::new(greeting, first, age, Instant::now());
        let mut session = session.known_as(self.origin.clone());
        let mut connection: Option<Connection> = None;
        let mut probes = Probes::default();
        loop {
            let event = self.next(&mut changes, &session, connection.as_mut(), &mut probes, &stop).await;
            let event = match event {
                Ok(event) => event,
                Err(()) => {
                    self.plane.metrics.stream_ended(StreamEnd::Lost);
                    return;
                }
            };
            let mut actions = VecDeque::from(session.on(event, Instant::now()));
            while let Some(action) = actions.pop_front() {
                match action {
                    Action::FindAccepted { epoch, below } => {
                        let found = find_accepted(&self.plane, epoch, below).await;
                        actions.extend(session.on(Event::Accepted(found), Instant::now()));
                    }
                    Action::Register(id) if self.plane.identity.nodes.is_revoked(&id) => {
                        self.end(End::Forbidden(REVOKED)).await;
                        return;
                    }
                    Action::Register(id) => {
                        let revision = session.facts().applied.catalog.map_or(0, |part| part.version);
                        tracing::info!(
                            node.id = id,
                            revision,
                            "node {id} connected with revision {revision}"
                        );
                        connection = Some(self.plane.nodes.connect(&id, session.facts().clone()));
                    }
                    Action::Send(mut message) => {
                        self.name_authorities(&mut message);
                        if !self.send(Ok(pb::SyncResponse { message: Some(message) })).await {
                            self.plane.metrics.stream_ended(StreamEnd::Lost);
                            return;
                        }
                    }
                    Action::Probed(id, probed) => probes.answer(id, probed),
                    Action::Seal(update, held) => {
                        actions.push_front(Action::Send(Said::Update(self.seal(update, &held))));
                    }
                    Action::Acknowledged(ack, revision) => {
                        self.acknowledged(connection.as_ref(), ack, revision);
                    }
                    Action::End(end) => {
                        if let Some(connection) = &connection {
                            connection.record(session.facts());
                        }
                        self.end(end).await;
                        return;
                    }
                }
            }
            if let Some(connection) = &connection {
                connection.record(session.facts());
            }
        }
    }

    async fn next(
        &mut self,
        changes: &mut watch::Receiver<Option<Arc<Wanted>>>,
        session: &Session,
        connection: Option<&mut Connection>,
        probes: &mut Probes,
        stop: &CancellationToken,
    ) -> Result<Event, ()> {
        let called = async {
            match connection {
                Some(connection) => connection.called().await,
                None => std::future::pending().await,
            }
        };
        let identities = &self.plane.identity.nodes;
        let revoked = async {
            match session.id() {
                Some(id) => identities.revoked(id).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(Event::Stop),
            () = revoked => Ok(Event::Revoked),
            call = called => Ok(match call {
                Call::Replaced => Event::Replaced,
                Call::Order(Order::Leave(reason)) => Event::Leave(reason),
                Call::Order(Order::Retry) => Event::Retry,
                Call::Order(Order::Probe(content, tx)) => Event::Probe(probes.begin(tx), content),
            }),
            message = self.inbound.message() => match message {
                Ok(Some(pb::SyncRequest { message: Some(heard) })) => Ok(Event::Heard(heard)),
                // A message of a later version: it is alive, and that is all we understand.
                Ok(Some(pb::SyncRequest { message: None })) => Ok(Event::Tick),
                Ok(None) | Err(_) => Err(()),
            },
            Ok(()) = changes.changed() => {
                let wanted = changes.borrow_and_update().clone();
                Ok(wanted.map_or(Event::Tick, Event::Wanted))
            }
            () = sleep_until(session.next_tick()) => Ok(Event::Tick),
        }
    }

    /// Nodes compare the digest with what they have, and renew if it differs.
    fn name_authorities(&self, message: &mut Said) {
        let authorities_sha256 = match message {
            Said::Welcome(welcome) => &mut welcome.authorities_sha256,
            Said::Heartbeat(beat) => &mut beat.authorities_sha256,
            Said::UpToDate(_)
            | Said::Update(_)
            | Said::Drain(_)
            | Said::Probe(_)
            | Said::Leave(_)
            | Said::Retry(_) => return,
        };
        *authorities_sha256 = self.plane.identity.authorities_sha256();
    }

    /// Puts the secrets into an update, for this node alone. Without them the node says that it does not run them.
    fn seal(&self, mut update: pb::ConfigUpdate, held: &Held) -> pb::ConfigUpdate {
        let Origin { recipient: Some(recipient), node_id: Some(node_id), .. } = &self.origin else {
            return update;
        };
        match held.seal_for(&self.plane.keyring, recipient, node_id) {
            Ok(sealed) => update.secrets_sealed = sealed.encode_to_vec().into(),
            Err(error) => tracing::error!(node.id = %node_id, "node {node_id} gets no secrets: {error}"),
        }
        update
    }

    /// Waits for a transport that does not take the message no longer than for a silent node.
    async fn send(&self, message: Result<pb::SyncResponse, Status>) -> bool {
        matches!(timeout(HEARTBEAT_LOST, self.outbound.send(message)).await, Ok(Ok(())))
    }

    fn acknowledged(&self, connection: Option<&Connection>, ack: Ack, revision: u64) {
        self.plane.metrics.acknowledged(ack);
        let id = connection.map_or("", Connection::id);
        match ack {
            Ack::Applied => tracing::debug!(node.id = id, revision, "node {id} runs revision {revision}"),
            Ack::Rejected => tracing::warn!(node.id = id, revision, "node {id} rejected revision {revision}"),
        }
    }

    async fn end(&self, end: End) {
        self.plane.metrics.stream_ended(end.counted());
        let status = match end {
            // A clean end: the node was told why, or it told us.
            End::Drained | End::Left => return,
            End::Silent => Status::deadline_exceeded("nothing was heard for too long"),
            End::Replaced => Status::aborted("a newer stream of this node took over"),
            End::Refused(reason) => Status::invalid_argument(reason),
            End::Forbidden(reason) => {
                tracing::warn!(reason, "a node was turned away: {reason}");
                Status::permission_denied(reason)
            }
        };
        // A transport that is stuck gets no farewell.
        let _ = self.outbound.try_send(Err(status));
    }
}

/// Probes that the node has not answered. Whoever waits for one hears of the stream's end.
#[derive(Default)]
struct Probes {
    last: u64,
    open: HashMap<u64, oneshot::Sender<Probed>>,
}

impl Probes {
    fn begin(&mut self, tx: oneshot::Sender<Probed>) -> u64 {
        // Nobody waits for these any more.
        self.open.retain(|_, tx| !tx.is_closed());
        self.last += 1;
        self.open.insert(self.last, tx);
        self.last
    }

    fn answer(&mut self, id: u64, probed: Probed) {
        if let Some(tx) = self.open.remove(&id) {
            // Whoever asked may have gone.
            let _ = tx.send(probed);
        }
    }
}

/// The newest catalog below a version that was for the whole fleet and that some node runs, as it was compiled when it
/// was applied. What a rollout brought to some nodes and did not bring to all is nothing for others.
pub async fn find_accepted(plane: &Plane, epoch: u64, below: u64) -> Option<Encoded> {
    for part in plane.nodes.applied(epoch, below).into_iter().take(LOOKED_AT_MAX) {
        match accepted(plane, part).await {
            Ok(Some(encoded)) => return Some(encoded),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a node refused the head, and no older revision could be read for it");
                return None;
            }
        }
    }
    None
}

async fn accepted(plane: &Plane, part: Part) -> Result<Option<Encoded>, Error> {
    let is_for_all = run::find(plane, part.version).await?.is_none_or(|rollout| rollout.is_for_all());
    if !is_for_all {
        return Ok(None);
    }
    let full = plane.store.revision(part.version).await?;
    match full.filter(|full| full.snapshot_sha256 == part.sha256) {
        Some(full) => Ok(Some(Encoded::kept(part, full.snapshot_zstd).await)),
        None => Ok(None),
    }
}

/// What is wanted, and a place to hear of changes that is not older than it.
pub struct Subscription {
    changes: watch::Receiver<Option<Arc<Wanted>>>,
    first: Arc<Wanted>,
}

impl Subscription {
    /// Subscribes, then reads, so that a change between the two is heard of (FR-005). `None` while
    /// nothing was read from the store.
    pub fn new(plane: &Plane) -> Option<Self> {
        let mut changes = plane.head.subscribe();
        let first = changes.borrow_and_update().clone()?;
        Some(Subscription { changes, first })
    }
}

#[cfg(test)]
mod tests {
    use common::limits::STREAM_AGE;

    use super::*;

    #[test]
    fn fr_013_streams_age_between_24_and_36_minutes() {
        assert_eq!(age(STREAM_AGE, 0.0), Duration::from_secs(24 * 60));
        assert_eq!(age(STREAM_AGE, 0.5), STREAM_AGE);
        assert_eq!(age(STREAM_AGE, 1.0), Duration::from_secs(36 * 60));
    }
}
