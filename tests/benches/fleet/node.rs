//! A simulated node: the stream of a real one, with an acknowledgement as soon as an update has come, its windows, and its
//! way back when the stream ends. It decodes nothing: what is measured is the control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use common::backoff::{full_jitter, told};
use common::limits::{HEARTBEAT, RECONNECT_BASE, RECONNECT_MAX, RECONNECT_RESET};
use common::pb::fleet::{self as pb, sync_request, sync_response};
use harness::fleet::WithToken;
use pb::fleet_report_client::FleetReportClient;
use pb::fleet_sync_client::FleetSyncClient;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

/// Windows are as long as those of real nodes.
const WINDOW: Duration = Duration::from_secs(10);

/// An update that was acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledged {
    /// The revision in it.
    pub revision: u64,
    /// When the acknowledgement was handed to the connection.
    pub at: Instant,
    /// Bytes of the update's parts.
    pub bytes: usize,
}

/// What all nodes share.
#[derive(Clone)]
pub struct Shared {
    /// Where the control plane is.
    pub url: String,
    /// The token of nodes.
    pub token: WithToken,
    /// Who hears of acknowledgements.
    pub acknowledged: mpsc::UnboundedSender<Acknowledged>,
    /// Who hears how long the answers to reports took.
    pub reported: mpsc::UnboundedSender<Duration>,
    /// Whether nodes have something to report.
    pub is_serving: Arc<AtomicBool>,
    /// Times that a node was told that it has what it should.
    pub confirmed: Arc<AtomicUsize>,
    /// Streams that were told to come later.
    pub refused: Arc<AtomicUsize>,
}

/// One node.
pub struct Node {
    index: usize,
    shared: Shared,
    /// What it runs, across its streams.
    applied: Option<pb::Target>,
    /// Its last window that was sealed.
    sealed: u64,
}

type Client = InterceptedService<Channel, WithToken>;

impl Node {
    /// A node that knows nothing yet.
    pub fn new(index: usize, shared: Shared) -> Self {
        Node { index, shared, applied: None, sealed: 0 }
    }

    /// Connects and stays, and comes back as real nodes do. Ends with what no real node would be told.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let ended = self.connect().await;
            if begun.elapsed() >= RECONNECT_RESET {
                failures = 0;
            }
            let Err(error) = ended else { return Ok(()) };
            let status = error.downcast_ref::<tonic::Status>();
            let place = status.filter(|status| status.code() == Code::ResourceExhausted);
            let place = place.and_then(|status| status.get_details_retry_info()?.retry_delay);
            let wait = match place {
                Some(place) => {
                    self.shared.refused.fetch_add(1, Ordering::Relaxed);
                    told(place, fastrand::f64())
                }
                None if status.is_some() || error.is::<tonic::transport::Error>() => {
                    failures += 1;
                    full_jitter(failures - 1, RECONNECT_BASE, RECONNECT_MAX, fastrand::f64())
                }
                None => return Err(error),
            };
            sleep(wait).await;
        }
    }

    async fn connect(&mut self) -> anyhow::Result<()> {
        let channel = Endpoint::from_shared(self.shared.url.clone())?.connect().await?;
        self.stay(InterceptedService::new(channel, self.shared.token.clone())).await
    }

    fn hello(&self) -> pb::Hello {
        pb::Hello {
            node_id: format!("node-{:05}", self.index),
            boot_id: self.boot_id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: common::limits::SNAPSHOT_SCHEMA,
            features: common::feature::known().into_iter().collect(),
            data_address: "127.0.0.1:1".to_owned(),
            ops_address: "127.0.0.1:2".to_owned(),
            applied: self.applied.clone(),
            ..pb::Hello::default()
        }
    }

    fn boot_id(&self) -> String {
        format!("boot-{:05}", self.index)
    }

    async fn stay(&mut self, client: Client) -> anyhow::Result<()> {
        let (tx, rx) = mpsc::channel(4);
        let say = async |message| {
            let sent = tx.send(pb::SyncRequest { message: Some(message) }).await;
            sent.map_err(|_| tonic::Status::unavailable("the stream ended"))
        };
        say(sync_request::Message::Hello(self.hello())).await?;
        let mut sync = FleetSyncClient::new(client.clone());
        let mut stream = sync.sync(ReceiverStream::new(rx)).await?.into_inner();
        // Nodes came up at different times, and report at different times.
        let later = |every: Duration| {
            let mut ticks = interval_at(Instant::now() + every.mul_f64(fastrand::f64()), every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut beat, mut window) = (later(HEARTBEAT), later(WINDOW));
        loop {
            let message = tokio::select! {
                _ = beat.tick() => {
                    let heartbeat = pb::NodeHeartbeat { applied: self.applied.clone(), ..Default::default() };
                    say(sync_request::Message::Heartbeat(heartbeat)).await?;
                    continue;
                }
                _ = window.tick() => {
                    if self.shared.is_serving.load(Ordering::Relaxed) {
                        self.report(client.clone()).await?;
                    }
                    continue;
                }
                message = stream.message() => message?.and_then(|response| response.message),
            };
            match message {
                Some(sync_response::Message::UpToDate(_)) => {
                    self.shared.confirmed.fetch_add(1, Ordering::Relaxed);
                }
                Some(sync_response::Message::Update(update)) => {
                    say(sync_request::Message::Ack(self.take(update))).await?;
                }
                Some(sync_response::Message::Welcome(_) | sync_response::Message::Heartbeat(_)) => {}
                Some(
                    sync_response::Message::Probe(_)
                    | sync_response::Message::Leave(_)
                    | sync_response::Message::Retry(_),
                ) => bail!("nobody asks these nodes for anything"),
                // A connection that breaks shows as an error of the stream.
                Some(sync_response::Message::Drain(_)) | None => {
                    return Err(tonic::Status::unavailable("the stream ended").into());
                }
            }
        }
    }

    fn take(&mut self, update: pb::ConfigUpdate) -> pb::ConfigAck {
        let revision = update.target.as_ref().and_then(|target| target.catalog.as_ref());
        let revision = revision.map_or(0, |catalog| catalog.version);
        self.applied = update.target;
        let bytes = update.catalog_zstd.len() + update.keys_zstd.len();
        let _ = self.shared.acknowledged.send(Acknowledged { revision, at: Instant::now(), bytes });
        pb::ConfigAck {
            update_id: update.update_id,
            result: pb::AckResult::Applied.into(),
            applied: self.applied.clone(),
            ..pb::ConfigAck::default()
        }
    }

    /// A window of a node that served three models, one of them over two channels.
    async fn report(&mut self, client: Client) -> anyhow::Result<()> {
        let attempt = |model: &str, channel: &str, class: &str| pb::AttemptCount {
            model: model.to_owned(),
            channel: channel.to_owned(),
            class: class.to_owned(),
            count: 100,
        };
        let request = |model: &str| pb::RequestCount {
            model: model.to_owned(),
            outcome: "served".to_owned(),
            count: 100,
        };
        let seq = self.sealed + 1;
        let now_ms = common::clock::Clock::system().now_ms();
        let window = pb::Window {
            first_seq: seq,
            last_seq: seq,
            start_ms: now_ms - WINDOW.as_millis() as u64,
            end_ms: now_ms,
            attempts: vec![
                attempt("model-0", "one", "overloaded"),
                attempt("model-0", "two", "ok"),
                attempt("model-1", "one", "ok"),
                attempt("model-2", "one", "ok"),
            ],
            requests: vec![request("model-0"), request("model-1"), request("model-2")],
            ..Default::default()
        };
        let request = pb::ReportRequest {
            node_id: self.hello().node_id,
            boot_id: self.boot_id(),
            window: Some(window),
            totals: Some(pb::Totals {
                attempts: 400 * seq,
                attempts_ok: 300 * seq,
                requests: 300 * seq,
                requests_served: 300 * seq,
            }),
            acknowledged_through: self.sealed,
        };
        let since = Instant::now();
        let answer = FleetReportClient::new(client).report(request).await?.into_inner();
        if answer.claimed_through != seq {
            bail!("window {seq} of node {} is not counted: {}", self.index, answer.claimed_through);
        }
        self.sealed = seq;
        let _ = self.shared.reported.send(since.elapsed());
        Ok(())
    }
}
