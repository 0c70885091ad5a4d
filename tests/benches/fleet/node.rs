//! A simulated node: the stream of a real one, with an acknowledgement as soon as an update has come.
//! It decodes nothing: what is measured is the control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use common::pb::fleet::{self as pb, sync_request, sync_response};
use harness::fleet::WithToken;
use pb::fleet_sync_client::FleetSyncClient;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Endpoint;

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
    /// Nodes that have their Welcome.
    pub welcomed: Arc<AtomicUsize>,
    /// Streams that were refused for coming too fast.
    pub refused: Arc<AtomicUsize>,
}

/// Connects, again where the control plane asks to come later, and stays.
pub async fn run(index: usize, shared: Shared) -> anyhow::Result<()> {
    let channel = Endpoint::from_shared(shared.url.clone())?.connect().await?;
    for _ in 0..100 {
        let client = FleetSyncClient::new(InterceptedService::new(channel.clone(), shared.token.clone()));
        match stay(index, client, &shared).await {
            Err(error) if is_too_fast(&error) => {
                shared.refused.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(fastrand::u64(500..3_000))).await;
            }
            ended => return ended,
        }
    }
    bail!("node {index} was refused a hundred times")
}

fn is_too_fast(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<tonic::Status>();
    status.is_some_and(|status| status.code() == tonic::Code::ResourceExhausted)
}

type Client = FleetSyncClient<InterceptedService<tonic::transport::Channel, WithToken>>;

async fn stay(index: usize, mut client: Client, shared: &Shared) -> anyhow::Result<()> {
    let (tx, rx) = mpsc::channel(4);
    let hello = pb::Hello {
        node_id: format!("node-{index:04}"),
        boot_id: format!("boot-{index:04}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema: common::limits::SNAPSHOT_SCHEMA,
        features: common::feature::known().into_iter().collect(),
        data_address: "127.0.0.1:1".to_owned(),
        ops_address: "127.0.0.1:2".to_owned(),
        ..pb::Hello::default()
    };
    let say = async |message| tx.send(pb::SyncRequest { message: Some(message) }).await.context("no stream");
    say(sync_request::Message::Hello(hello)).await?;
    let mut stream = client.sync(ReceiverStream::new(rx)).await?.into_inner();
    let mut applied = None;
    let mut beat = interval(common::limits::HEARTBEAT);
    beat.reset();
    loop {
        let message = tokio::select! {
            _ = beat.tick() => {
                let heartbeat = pb::NodeHeartbeat { applied: applied.clone(), ..pb::NodeHeartbeat::default() };
                say(sync_request::Message::Heartbeat(heartbeat)).await?;
                continue;
            }
            message = stream.message() => message?.and_then(|response| response.message),
        };
        match message {
            Some(sync_response::Message::Welcome(_)) => {
                shared.welcomed.fetch_add(1, Ordering::Relaxed);
            }
            Some(sync_response::Message::Update(update)) => {
                let revision = update.target.as_ref().and_then(|target| target.catalog.as_ref());
                let revision = revision.map_or(0, |catalog| catalog.version);
                applied = update.target;
                let ack = pb::ConfigAck {
                    update_id: update.update_id,
                    result: pb::AckResult::Applied.into(),
                    applied: applied.clone(),
                    ..pb::ConfigAck::default()
                };
                say(sync_request::Message::Ack(ack)).await?;
                let bytes = update.catalog_zstd.len() + update.keys_zstd.len();
                let _ = shared.acknowledged.send(Acknowledged { revision, at: Instant::now(), bytes });
            }
            Some(sync_response::Message::UpToDate(_) | sync_response::Message::Heartbeat(_)) => {}
            Some(
                sync_response::Message::Probe(_)
                | sync_response::Message::Leave(_)
                | sync_response::Message::Retry(_),
            ) => bail!("nobody asks these nodes for anything"),
            Some(sync_response::Message::Drain(_)) | None => bail!("the control plane ended the stream"),
        }
    }
}
