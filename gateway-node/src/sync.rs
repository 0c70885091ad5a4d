//! Follows the control plane: one stream, opened anew by jitter for as long as the node lives, over
//! which the node learns what to serve. `session` decides, `apply` takes updates, `report` brings
//! counts home over the same connection, `connect` opens it, `enrol` gets the certificate for it. The node serves whether or not any of
//! this works.

mod apply;
mod bind;
mod certificate;
mod connect;
mod enrol;
mod paused;
mod reconnect;
mod records;
mod report;
mod session;

use std::sync::Arc;
use std::time::Duration;

use common::feature;
use common::label::Labels;
use common::limits::{HEARTBEAT, HEARTBEAT_LOST, SNAPSHOT_BYTES_MAX, SNAPSHOT_SCHEMA};
use common::pb::fleet as pb;
use http::Uri;
use pb::fleet_sync_client::FleetSyncClient;
use pb::sync_request::Message as Up;
use pb::sync_response::Message as Down;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use crate::api::Gateway;
use apply::Taken;
use paused::Paused;
use reconnect::Reconnect;
use session::{Action, End, Event, Session};

pub(crate) use apply::Applier;
pub(crate) use bind::{Binder, asking};
pub(crate) use certificate::Certificates;
pub(crate) use connect::{Link, Links};
pub(crate) use enrol::keep_valid;
pub(crate) use records::Uploader;
pub(crate) use report::Reporter;

/// Messages that wait to be read by the control plane; there are never more than a few.
const QUEUE: usize = 16;
/// Probes that are tried at the same time; each holds a whole table.
const PROBES_MAX: usize = 2;
/// Room in a message beside the snapshot.
const ENVELOPE_BYTES_MAX: usize = 1024 * 1024;
/// How often it is looked whether breakers opened or closed, or a credential cannot be had; that is told without waiting
/// for the heartbeat.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a leaving node waits for its farewell to be read.
const FAREWELL: Duration = Duration::from_secs(1);

type Said = mpsc::Sender<pb::SyncRequest>;
type Heard = Streaming<pb::SyncResponse>;

/// Who this node is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Its name.
    pub node_id: String,
    /// By what operators choose it.
    pub labels: Labels,
    /// This run.
    pub boot_id: String,
    /// Where applications call.
    pub data_address: String,
    /// Where operators look.
    pub ops_address: String,
}

/// What operators are told of without waiting for the heartbeat.
#[derive(Clone, PartialEq)]
struct Now {
    /// Channels with an open breaker.
    open_channels: Vec<String>,
    /// What is out for another reason.
    paused: Paused,
    /// What works but wants a person.
    warnings: Vec<pb::Violation>,
}

/// The stream's owner.
pub(crate) struct Sync {
    identity: Identity,
    addresses: Vec<Uri>,
    links: Arc<Links>,
    link: watch::Sender<Option<Link>>,
    applier: Arc<Applier>,
    gateway: Arc<Gateway>,
    /// Cancelled when an operator sends the node away.
    ordered: CancellationToken,
    /// An update that is being taken outlives its stream, and is waited for before the next one.
    taking: Option<JoinHandle<Taken>>,
}

impl Sync {
    /// A node that has not connected yet. It tries the addresses in turn, in an order of its own, so that the nodes of a
    /// control plane that ends spread over the others. `link` is where others find the open connection; `ordered` is cancelled
    /// when an operator sends the node away.
    pub(crate) fn new(
        identity: Identity,
        mut addresses: Vec<Uri>,
        links: Arc<Links>,
        link: watch::Sender<Option<Link>>,
        applier: Arc<Applier>,
        gateway: Arc<Gateway>,
        ordered: CancellationToken,
    ) -> Self {
        fastrand::shuffle(&mut addresses);
        Sync { identity, addresses, links, link, applier, gateway, ordered, taking: None }
    }

    /// Follows the control plane until `stop`; says farewell when `leave` is cancelled.
    pub(crate) async fn run(mut self, leave: CancellationToken, stop: CancellationToken) {
        let mut reconnect = Reconnect::new(self.addresses.len(), fastrand::f64());
        let mut is_first_failure = true;
        loop {
            let Some(address) = self.addresses.get(reconnect.at()).cloned() else { return };
            let begun = Instant::now();
            let Some(end) = stop.run_until_cancelled(Box::pin(self.stream(&address, &leave))).await else {
                return;
            };
            self.gateway.metrics.connected(false);
            if end == End::Left {
                return;
            }
            // Reports wait for the next stream; after a farewell the last ones still go out.
            self.link.send_replace(None);
            let lived = begun.elapsed();
            let wait = reconnect.after(&end, lived, fastrand::f64());
            log_end(&address, &end, wait, &mut is_first_failure, lived);
            tokio::select! {
                () = sleep(wait) => {}
                () = leave.cancelled() => return,
                () = stop.cancelled() => return,
            }
        }
    }

    /// One stream, from its opening to its end.
    async fn stream(&mut self, address: &Uri, leave: &CancellationToken) -> End {
        if let Some(taking) = self.taking.take() {
            // Its outcome stands in what the Hello says.
            drop(taking.await);
        }
        let opened = leave.run_until_cancelled(Box::pin(self.open(address))).await;
        match opened {
            Some(Ok((link, tx, inbound))) => self.follow(link, tx, inbound, leave).await,
            Some(Err(end)) => end,
            None => End::Left,
        }
    }

    async fn open(&self, address: &Uri) -> Result<(Link, Said, Heard), End> {
        match self.try_open(address).await? {
            Ok(open) => Ok(open),
            // With another certificate, if there is one.
            Err(_doubtful) => self.try_open(address).await?,
        }
    }

    /// The inner error is one that another certificate may mend.
    async fn try_open(&self, address: &Uri) -> Result<Result<(Link, Said, Heard), End>, End> {
        let link = self.links.open(address).await?;
        let (tx, rx) = mpsc::channel(QUEUE);
        // The call returns with the server's headers, which may wait for the Hello. Where they do not come within a
        // heartbeat's time the next address is tried: any one of several is enough.
        send(&tx, Up::Hello(self.hello()))?;
        let mut client = FleetSyncClient::new(link.channel.clone())
            .max_decoding_message_size(SNAPSHOT_BYTES_MAX + ENVELOPE_BYTES_MAX);
        let call = client.sync(link.request(ReceiverStream::new(rx)));
        match timeout(HEARTBEAT, call).await {
            Ok(Ok(answer)) => Ok(Ok((link, tx, answer.into_inner()))),
            Ok(Err(status)) if self.links.doubt(&link, &status) => Ok(Err(self.links.end_of(&status))),
            Ok(Err(status)) => Err(self.links.end_of(&status)),
            Err(_) => Err(End::Silent),
        }
    }

    async fn follow(&mut self, link: Link, tx: Said, mut inbound: Heard, leave: &CancellationToken) -> End {
        let mut session = Session::new(Instant::now());
        let mut told = self.now();
        let mut look_at = Instant::now() + LOOK_EVERY;
        let mut probes = JoinSet::new();
        loop {
            let event = tokio::select! {
                message = inbound.message() => match message {
                    Ok(Some(message)) => {
                        self.hear_of_authorities(&message);
                        Event::Received(message)
                    }
                    Ok(None) => return failed("the stream ended without a farewell"),
                    Err(status) => {
                        let end = self.links.end_of(&status);
                        if end == End::Refused {
                            self.links.doubt(&link, &status);
                        }
                        return end;
                    }
                },
                taken = outcome(&mut self.taking) => {
                    self.taking = None;
                    Event::Taken(taken)
                }
                Some(Ok(result)) = probes.join_next() => {
                    if let Err(end) = send(&tx, Up::Probe(result)) {
                        return end;
                    }
                    continue;
                }
                () = sleep_until(session.deadline()) => Event::Tick,
                () = sleep_until(look_at) => {
                    look_at = Instant::now() + LOOK_EVERY;
                    if self.now() == told {
                        continue;
                    }
                    Event::Changed
                }
                () = leave.cancelled() => Event::Leave("shutting down".to_owned()),
            };
            for action in session.on(event, Instant::now()) {
                match action {
                    Action::Send(message) => {
                        if let Err(end) = send(&tx, message) {
                            return end;
                        }
                    }
                    Action::Beat => {
                        told = self.now();
                        if let Err(end) = send(&tx, Up::Heartbeat(self.heartbeat(told.clone()))) {
                            return end;
                        }
                    }
                    Action::Take(update) => {
                        // The database may go back under a control plane that runs on.
                        self.enter(&link, update.target.as_ref().map_or(0, |target| target.epoch));
                        self.taking = Some(self.take(update));
                    }
                    Action::Probe(probe) => self.probe(probe, &mut probes),
                    Action::Leave(reason) => {
                        tracing::info!("an operator sends this node away: {reason}");
                        self.ordered.cancel();
                    }
                    Action::Retry => self.retry().await,
                    Action::Confirmed(target) => {
                        let revision = target.catalog.map_or(0, |part| part.version);
                        tracing::info!(revision, "up to date with the control plane");
                    }
                    Action::Welcomed(welcome) => {
                        tracing::info!(
                            control_plane.id = %welcome.control_plane_id,
                            epoch = welcome.epoch,
                            "connected to the control plane"
                        );
                        self.gateway.metrics.connected(true);
                        self.enter(&link, welcome.epoch);
                    }
                    Action::End(End::Left) => {
                        farewell(tx, inbound).await;
                        return End::Left;
                    }
                    Action::End(end) => return end,
                }
            }
        }
    }

    /// Shows others the connection and in which epoch its control plane is, unless they know.
    fn enter(&self, link: &Link, epoch: u64) {
        self.link.send_if_modified(|open| {
            let is_known = open.as_ref().is_some_and(|open| open.epoch >= epoch);
            if !is_known {
                *open = Some(link.in_epoch(epoch));
            }
            !is_known
        });
    }

    fn hear_of_authorities(&self, message: &pb::SyncResponse) {
        match &message.message {
            Some(Down::Welcome(welcome)) => self.links.certificates().hear(&welcome.authorities_sha256),
            Some(Down::Heartbeat(beat)) => self.links.certificates().hear(&beat.authorities_sha256),
            _ => {}
        }
    }

    fn take(&self, update: pb::ConfigUpdate) -> JoinHandle<Taken> {
        let applier = self.applier.clone();
        tokio::task::spawn_blocking(move || {
            let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| applier.take(&update)));
            taken.unwrap_or_else(|_| applier.broke_down(update.update_id, update.target))
        })
    }

    fn probe(&self, probe: pb::ProbeRequest, probes: &mut JoinSet<pb::ProbeResult>) {
        let (probe_id, applier) = (probe.probe_id, self.applier.clone());
        if probes.len() >= PROBES_MAX {
            let not_tried = "the node tries others at this moment".to_owned();
            probes.spawn(async move { pb::ProbeResult { probe_id, not_tried, ..Default::default() } });
            return;
        }
        probes.spawn(async move {
            let tried = tokio::task::spawn_blocking(move || applier.probe(&probe)).await;
            tried.unwrap_or_else(|_| {
                let message = "the node broke down while it tried this content".to_owned();
                let violations = vec![pb::Violation { path: String::new(), message }];
                pb::ProbeResult { probe_id, violations, ..Default::default() }
            })
        });
    }

    /// Before the next message is looked at: it may be what was put aside.
    async fn retry(&self) {
        let applier = self.applier.clone();
        if tokio::task::spawn_blocking(move || applier.forgive()).await.is_err() {
            tracing::error!("ending the quarantines broke down");
        }
    }

    fn hello(&self) -> pb::Hello {
        let Identity { node_id, labels, boot_id, data_address, ops_address } = self.identity.clone();
        let labels = labels.into_iter().map(|(name, value)| pb::Label { name, value }).collect();
        pb::Hello {
            node_id,
            boot_id,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: SNAPSHOT_SCHEMA,
            features: feature::known().into_iter().collect(),
            labels,
            applied: Some(self.applier.applied()),
            rejected: self.applier.refused(),
            quarantined: self.applier.quarantined(),
            data_address,
            ops_address,
        }
    }

    fn heartbeat(&self, Now { open_channels, paused, warnings }: Now) -> pb::NodeHeartbeat {
        pb::NodeHeartbeat {
            applied: Some(self.applier.applied()),
            open_channels,
            in_flight: self.gateway.in_flight(),
            oldest_window_age_ms: self.gateway.observer.oldest_window_age().as_millis() as u64,
            warnings: Some(pb::Warnings { violations: warnings }),
            pauses: Some(paused.told(Instant::now(), self.gateway.now_ms())),
        }
    }

    fn now(&self) -> Now {
        let table = self.gateway.tables.load();
        let paused = table.as_ref().map(|table| Paused::of(table, Instant::now())).unwrap_or_default();
        Now { open_channels: self.open_channels(), paused, warnings: self.applier.warnings() }
    }

    fn open_channels(&self) -> Vec<String> {
        let now = Instant::now();
        let table = self.gateway.tables.load();
        let channels = table.iter().flat_map(|table| table.channels());
        let open = channels.filter(|channel| channel.open_until(now).is_some());
        open.map(|channel| channel.id.to_string()).collect()
    }
}

/// What became of the update that is being taken; never resolves when there is none.
async fn outcome(taking: &mut Option<JoinHandle<Taken>>) -> Taken {
    if let Some(handle) = taking
        && let Ok(taken) = handle.await
    {
        return taken;
    }
    std::future::pending().await
}

fn send(tx: &Said, message: Up) -> Result<(), End> {
    tx.try_send(pb::SyncRequest { message: Some(message) })
        .map_err(|_| failed("the control plane does not read what the node sends"))
}

fn failed(why: &str) -> End {
    End::Failed { why: why.to_owned(), retry_after: None }
}

/// Lets the last message out and waits for the other side to close.
async fn farewell(tx: Said, mut inbound: Heard) {
    drop(tx);
    let closed = timeout(FAREWELL, async { while let Ok(Some(_)) = inbound.message().await {} }).await;
    if closed.is_err() {
        tracing::debug!("the control plane did not close the stream after the farewell");
    }
}

/// Warns once when the control plane is lost, not at each further try.
fn log_end(address: &Uri, end: &End, wait: Duration, is_first_failure: &mut bool, lived: Duration) {
    let wait_ms = wait.as_millis() as u64;
    let why = match end {
        End::Drained(reason) => {
            *is_first_failure = true;
            tracing::info!(wait_ms, "the control plane drained the stream: {reason}");
            return;
        }
        End::Again => {
            tracing::info!(wait_ms, "an update that could not be taken is asked for again");
            return;
        }
        End::Left => return,
        End::Silent => "nothing was heard for too long",
        End::Protocol(why) => why,
        End::Busy(_) => {
            tracing::info!(
                wait_ms,
                "too many nodes come to the control plane at {address} at once; serving on"
            );
            return;
        }
        End::Refused => "the control plane does not take the node's token or certificate",
        End::Failed { why, .. } => why,
    };
    if std::mem::take(is_first_failure) || lived >= HEARTBEAT_LOST {
        tracing::warn!(wait_ms, "no stream to the control plane at {address}: {why}; serving on");
    } else {
        tracing::info!(wait_ms, "no stream to the control plane at {address}: {why}");
    }
}
