//! A control plane that does what the test says: streams are handed to the test, reports are counted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::pb::fleet as pb;
use common::snapshot::{digest, pack};
use common::tasks::Tasks;
use common::window::{Counts, Totals, Window};
use pb::fleet_report_server::{FleetReport, FleetReportServer};
use pb::fleet_sync_server::{FleetSync, FleetSyncServer};
use pb::sync_request::Message as Up;
use pb::sync_response::Message as Down;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

pub const TOKEN: &str = "sluice-node-token";
const PATIENCE: Duration = Duration::from_secs(20);

/// A running control plane.
pub struct Plane {
    pub address: SocketAddr,
    pub counted: Arc<Mutex<Counted>>,
    streams: AsyncMutex<mpsc::Receiver<Stream>>,
    tasks: Tasks,
}

/// One node's stream, driven by the test.
pub struct Stream {
    up: Streaming<pb::SyncRequest>,
    down: mpsc::Sender<Result<pb::SyncResponse, Status>>,
}

/// What was reported.
#[derive(Default)]
pub struct Counted {
    through: BTreeMap<String, u64>,
    totals: BTreeMap<String, Totals>,
    pub counts: Counts,
    /// Answers every report with UNAVAILABLE.
    pub is_away: bool,
    /// Reports that were refused so.
    pub refused: u64,
    pub reports: u64,
}

#[derive(Clone)]
struct Service {
    streams: mpsc::Sender<Stream>,
    counted: Arc<Mutex<Counted>>,
}

fn authorize<M>(request: &Request<M>) -> Result<(), Status> {
    let shown = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
    if shown == Some(&format!("Bearer {TOKEN}")) {
        Ok(())
    } else {
        Err(Status::unauthenticated("who are you"))
    }
}

#[tonic::async_trait]
impl FleetSync for Service {
    type SyncStream = ReceiverStream<Result<pb::SyncResponse, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<pb::SyncRequest>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        authorize(&request)?;
        let (down, rx) = mpsc::channel(16);
        let stream = Stream { up: request.into_inner(), down };
        self.streams.send(stream).await.map_err(|_| Status::unavailable("the test has ended"))?;
        Ok(Response::new(ReceiverStream::new(rx)))
    }
}

#[tonic::async_trait]
impl FleetReport for Service {
    async fn report(
        &self,
        request: Request<pb::ReportRequest>,
    ) -> Result<Response<pb::ReportResponse>, Status> {
        authorize(&request)?;
        let report = request.into_inner();
        let mut counted = self.counted.lock().unwrap();
        if counted.is_away {
            counted.refused += 1;
            return Err(Status::unavailable("the database is away"));
        }
        counted.reports += 1;
        let window = Window::from(report.window.unwrap());
        let through = counted.through.entry(report.boot_id.clone()).or_default();
        if window.first_seq == *through + 1 {
            *through = window.last_seq;
            let totals = counted.totals.entry(report.boot_id.clone()).or_default();
            *totals = *totals + window.counts.totals();
            assert_eq!(Some(*totals), report.totals.map(Totals::from), "the audit");
            counted.counts.merge(window.counts);
        }
        let claimed_through = counted.through[&report.boot_id];
        Ok(Response::new(pb::ReportResponse { claimed_through }))
    }
}

impl Plane {
    pub async fn start() -> Plane {
        Plane::start_with(|server| server).await
    }

    /// A control plane whose server is set up in another way.
    pub async fn start_with(
        set_up: impl FnOnce(tonic::transport::Server) -> tonic::transport::Server,
    ) -> Plane {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tx, streams) = mpsc::channel(64);
        let counted = Arc::<Mutex<Counted>>::default();
        let service = Service { streams: tx, counted: counted.clone() };
        let tasks = Tasks::new();
        let mut server = set_up(tonic::transport::Server::builder());
        tasks.spawn("plane", |stop| async move {
            let routes = server
                .add_service(FleetSyncServer::new(service.clone()))
                .add_service(FleetReportServer::new(service));
            stop.run_until_cancelled(routes.serve_with_incoming(TcpListenerStream::new(listener))).await;
        });
        Plane { address, counted, streams: AsyncMutex::new(streams), tasks }
    }

    /// The next stream that the node opens.
    pub async fn stream(&self) -> Stream {
        timeout(PATIENCE, async { self.streams.lock().await.recv().await })
            .await
            .expect("the node opens a stream")
            .unwrap()
    }

    /// The next stream, greeted.
    pub async fn welcomed(&self) -> (Stream, pb::Hello) {
        let mut stream = self.stream().await;
        let Up::Hello(hello) = stream.hear().await.expect("a Hello") else { panic!("the first message") };
        let welcome = pb::Welcome { epoch: 1, control_plane_id: "test".into(), ..Default::default() };
        stream.say(Down::Welcome(welcome)).await;
        (stream, hello)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn counts(&self) -> Counts {
        self.counted.lock().unwrap().counts.clone()
    }

    /// Goes away without a word: connections are closed.
    pub async fn kill(self) {
        self.tasks.stop(Duration::from_secs(5)).await;
    }
}

impl Stream {
    pub async fn say(&self, message: Down) {
        self.down.send(Ok(pb::SyncResponse { message: Some(message) })).await.unwrap();
    }

    /// The node's next message; `None` when it has closed its side.
    pub async fn hear(&mut self) -> Option<Up> {
        let message = timeout(PATIENCE, self.up.message()).await.expect("the node says something");
        message.ok().flatten().and_then(|message| message.message)
    }

    /// Sends an update and waits for what the node says of it.
    pub async fn update(&mut self, update: pb::ConfigUpdate) -> pb::ConfigAck {
        self.say(Down::Update(update)).await;
        self.ack().await
    }

    pub async fn ack(&mut self) -> pb::ConfigAck {
        loop {
            if let Up::Ack(ack) = self.hear().await.expect("an ack") {
                return ack;
            }
        }
    }

    pub async fn heartbeat(&mut self) -> pb::NodeHeartbeat {
        loop {
            if let Up::Heartbeat(heartbeat) = self.hear().await.expect("a heartbeat") {
                return heartbeat;
            }
        }
    }

    /// Everything that the node still says.
    pub async fn rest(&mut self) -> Vec<Up> {
        let mut rest = Vec::new();
        while let Some(message) = self.hear().await {
            rest.push(message);
        }
        rest
    }

    pub async fn drain(self) {
        self.say(Down::Drain(pb::ServerDrain { reason: "old".into() })).await;
    }
}

/// A catalog of one model on one channel that refuses connections.
pub fn snapshot(revision: u64) -> pb::Snapshot {
    let timeouts = pb::Timeouts { connect_ms: 1000, headers_ms: 1000, idle_ms: 1000 };
    let route = pb::Route {
        channel: "a".into(),
        upstream_model: "m1".into(),
        gate: Some(pb::Gate { timeout_ms: 1000, until: pb::GateUntil::Content.into() }),
        timeouts: Some(timeouts),
        context_window: 0,
    };
    let chain = pb::Chain { dialect: "openai-chat".into(), routes: vec![route] };
    let channel = pb::Channel {
        id: "a".into(),
        dialects: vec!["openai-chat".into()],
        base_url: "http://127.0.0.1:9/v1".into(),
        breaker: Some(pb::Breaker { failures: 1000, window_ms: 1000, cooldown_ms: 1000 }),
        ..Default::default()
    };
    let model = pb::Model { name: "m".into(), chains: vec![chain] };
    pb::Snapshot { revision, channels: vec![channel], models: vec![model], ..Default::default() }
}

/// An update to that catalog, with an empty key list.
pub fn update(epoch: u64, snapshot: &pb::Snapshot) -> pb::ConfigUpdate {
    let encoded = snapshot.encode_to_vec();
    let keys = pb::KeySet { version: 1, keys_exist: false, keys: vec![] }.encode_to_vec();
    let part = |version, bytes: &[u8]| pb::Part { version, sha256: digest(bytes).to_vec() };
    let target = pb::Target {
        epoch,
        catalog: Some(part(snapshot.revision, &encoded)),
        keys: Some(part(1, &keys)),
        live: None,
        secrets: None,
    };
    pb::ConfigUpdate {
        update_id: snapshot.revision,
        target: Some(target),
        catalog_zstd: pack(&encoded).unwrap().into(),
        keys_zstd: pack(&keys).unwrap().into(),
        ..Default::default()
    }
}
