//! Builds a node from its parts and takes it down in order. Nothing is global: several nodes run in
//! one process.
//!
//! Start: folder (locked) → journal of earlier runs → last known good in force → listeners → control
//! plane. Shutdown: not ready → a moment for balancers to notice → no new connections, farewell to the control plane → requests in flight
//! finish, for the grace period at most → counters sealed, spooled and reported once more → the rest.

mod folder;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use common::clock::Clock;
use common::id::BootId;
use common::limits::{CREDENTIAL_LOOK_EVERY, SHUTDOWN_BOUND};
use common::tasks::Tasks;
use common::tls::{self, Tls, Watch};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::api::{self, Gateway};
use crate::bindings::{Bindings, Lookup};
use crate::config::Config;
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::ops::Ops;
use crate::records::Records;
use crate::sync::{
    Applier, Binder, Certificates, Identity, Links, Reporter, Sync, Uploader, asking, keep_valid,
};
use crate::table::keep::Keep;
use crate::upstream::Connections;
use folder::Folder;

/// The last report at shutdown is tried for this long; what is not counted by then waits on disk.
const LAST_REPORT: Duration = Duration::from_secs(3);

/// Where a node listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Where applications call.
    pub data: SocketAddr,
    /// Where operators look.
    pub ops: SocketAddr,
}

/// Runs a node until `shutdown` resolves, and takes it down in order.
pub async fn serve(config: Config, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    serve_with(config, shutdown, |_| ()).await
}

/// As [`serve`]; tells where the listeners stand once they are open and the last known good is served.
pub async fn serve_with(
    config: Config,
    shutdown: impl Future<Output = ()>,
    on_ready: impl FnOnce(Addresses),
) -> anyhow::Result<()> {
    let node = Node::start(config).await?;
    on_ready(node.addresses);
    let mut data = node.data.resubscribe();
    let ended = tokio::select! {
        () = shutdown => Ok(()),
        () = node.ordered.cancelled() => Ok(()),
        () = data.ended() => Err(anyhow::anyhow!("the data listener has ended by itself")),
    };
    node.stop().await;
    ended
}

struct Node {
    folder: Folder,
    addresses: Addresses,
    grace: Duration,
    drain_delay: Duration,
    gateway: Arc<Gateway>,
    applier: Arc<Applier>,
    reporter: Reporter,
    binder: Binder,
    uploader: Uploader,
    tasks: Tasks,
    /// Ends the acceptance of callers.
    close: CancellationToken,
    /// Ends the stream with a farewell.
    leave: CancellationToken,
    /// Cancelled when an operator sends the node away.
    ordered: CancellationToken,
    data: Done,
    sync: Done,
}

impl Node {
    async fn start(config: Config) -> anyhow::Result<Node> {
        let folder = Folder::open(&config.data_dir)
            .with_context(|| format!("cannot use the data folder {}", config.data_dir.display()))?;
        let node_id = match &config.node_id {
            Some(id) => id.clone(),
            None => folder.node_id().context("cannot keep the node's id in the data folder")?,
        };
        let clock = Clock::system();
        let boot = BootId::from(uuid::Uuid::now_v7().to_string());
        let observer = Observer::open(folder.path(), boot.clone(), clock.clone())
            .context("cannot open the journal in the data folder")?;
        let (records, record_writer) =
            Records::open(folder.path()).context("cannot open the records in the data folder")?;
        let metrics = Metrics::new();
        let bindings = Bindings::open(folder.path(), clock.clone())
            .context("cannot open the journal of bindings in the data folder")?;
        let certificates = Arc::new(Certificates::open(folder.path(), node_id.as_str())?);
        let own = certificates.clone();
        let links = Arc::new(Links::new(config.token_file, config.control_plane_ca, own, clock.clone()));
        let (link, linked) = watch::channel(None);
        let lookup = Lookup::new(asking(config.control_planes.clone(), links.clone(), linked.clone()));
        let settings = api::Settings { allow_anonymous: config.allow_anonymous };
        let (connections, bound) = (Connections::new(), (bindings, lookup));
        let gateway = Gateway::new(settings, (observer, records), bound, metrics, connections, clock.clone());
        let keep = Keep::open(&folder.path().join("snapshots"), env!("CARGO_PKG_VERSION"))
            .context("cannot open the last known good config in the data folder")?;
        let applier = Arc::new(Applier::new(gateway.clone(), certificates, keep));
        applier.start().context("cannot read the last known good config in the data folder")?;

        let opened = config.tls.clone().map(Watch::open).transpose()?;
        let (data, ops) = (bind("data", config.listen).await?, bind("ops", config.ops_listen).await?);
        let addresses = Addresses { data: data.local_addr()?, ops: ops.local_addr()? };
        if let Err(error) = folder.write_listen(addresses) {
            // Scripts miss it; callers do not: a full disk keeps nobody from being served.
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "listen.json cannot be written into the data folder");
        }
        tracing::info!(
            node.id = %node_id,
            boot.id = %boot,
            "listening: data on {}, ops on {}",
            addresses.data,
            addresses.ops
        );

        let (tasks, close, leave) = (Tasks::new(), CancellationToken::new(), CancellationToken::new());
        let ordered = CancellationToken::new();
        let is_ops_far = !addresses.ops.ip().to_canonical().is_loopback();
        let pair = opened.as_ref().map(|(_, pair)| pair.clone());
        let ops_tls = pair.clone().filter(|_| is_ops_far);
        let data_tls = pair.map(|pair| Tls::new("data", tls::HTTP, pair)).transpose()?;
        let ops_tls = ops_tls.map(|pair| Tls::new("ops", tls::HTTP, pair)).transpose()?;
        if let Some((watch, _)) = opened {
            let listeners = [&data_tls, &ops_tls].into_iter().flatten().cloned().collect();
            let (clock, metrics) = (clock.clone(), gateway.metrics.clone());
            let tell = move |tls: &Tls| metrics.certificate(tls.listener(), tls.expires_at_ms());
            tasks.spawn("certificates", |stop| tls::follow(watch, listeners, clock, stop, tell));
        }
        let pages = Ops::new(node_id.to_string(), boot.to_string(), gateway.clone());
        tasks.spawn("ops", |stop| pages.run(ops, ops_tls, stop));
        let (callers, until, grace) = (gateway.clone(), close.clone(), config.shutdown_grace);
        let data = Done::of(&tasks, "data", async move {
            api::accept::run(data, data_tls, callers, until, grace).await;
        });
        tasks.spawn("settle", |stop| applier.clone().settle(stop));
        tasks.spawn("credentials", |stop| {
            look_at_credentials(gateway.clone(), applier.clone(), clock.clone(), stop)
        });
        tasks.spawn("seal", |stop| seal_every(config.window, gateway.clone(), clock.clone(), stop));

        let reporter = Reporter::new(node_id.to_string(), gateway.clone(), linked.clone(), clock.clone());
        tasks.spawn("report", |stop| reporter.clone().run(stop));
        let (bindings, metrics) = (gateway.bindings.clone(), gateway.metrics.clone());
        let uploads = linked.clone();
        let binder = Binder::new(node_id.to_string(), bindings, metrics, linked, clock.clone());
        tasks.spawn("bind", |stop| binder.clone().run(stop));
        tasks.spawn("records", |stop| record_writer.run(stop));
        let uploader = Uploader::new(node_id.to_string(), gateway.clone(), uploads, clock.clone());
        tasks.spawn("upload", |stop| uploader.clone().run(stop));
        let (keeping, planes, time) = (links.clone(), config.control_planes.clone(), clock);
        tasks.spawn("certificate", |stop| keep_valid(keeping, planes, time, stop));
        let identity = Identity {
            node_id: node_id.to_string(),
            labels: config.labels,
            boot_id: boot.to_string(),
            data_address: addresses.data.to_string(),
            ops_address: addresses.ops.to_string(),
        };
        let stream = Sync::new(
            identity,
            config.control_planes,
            links,
            link,
            applier.clone(),
            gateway.clone(),
            ordered.clone(),
        );
        let sync = Done::of(&tasks, "sync", stream.run(leave.clone(), tasks.token().clone()));
        Ok(Node {
            folder,
            addresses,
            grace: config.shutdown_grace,
            drain_delay: config.drain_delay,
            gateway,
            applier,
            reporter,
            binder,
            uploader,
            tasks,
            close,
            leave,
            ordered,
            data,
            sync,
        })
    }

    /// Bounded in every step: a peer that does not answer holds up nothing.
    async fn stop(mut self) {
        tracing::info!(in_flight = self.gateway.in_flight(), "shutting down");
        let is_watched = self.gateway.drain(Instant::now());
        if is_watched && !self.drain_delay.is_zero() {
            let delay_ms = self.drain_delay.as_millis() as u64;
            tracing::info!(delay_ms, "not ready any more; serving on until balancers have noticed");
            sleep(self.drain_delay).await;
        }
        self.close.cancel();
        self.leave.cancel();
        let farewell = timeout(SHUTDOWN_BOUND, self.sync.ended());
        let requests = timeout(self.grace + SHUTDOWN_BOUND, self.data.ended());
        let (has_left, has_finished) = tokio::join!(farewell, requests);
        if has_left.is_err() || has_finished.is_err() {
            tracing::warn!("connections did not end in time");
        }
        seal(&self.gateway).await;
        let (counted, bound, _uploaded) = tokio::join!(
            timeout(LAST_REPORT, self.reporter.report_all()),
            timeout(LAST_REPORT, self.binder.report_all()),
            timeout(LAST_REPORT, self.uploader.upload_rest()),
        );
        if bound != Ok(true) {
            let waiting = self.gateway.bindings.counts().1;
            tracing::info!(waiting, "bindings wait on disk for the next start");
        }
        if counted != Ok(true) {
            tracing::info!(
                windows = self.gateway.observer.spooled(),
                "windows wait on disk for the next start"
            );
        }
        self.applier.end();
        if !self.tasks.stop(SHUTDOWN_BOUND).await {
            tracing::warn!("tasks did not end in time");
        }
        self.folder.remove_listen();
        tracing::info!("stopped");
    }
}

/// A task's end, for more than one to wait for.
struct Done(watch::Receiver<bool>);

impl Done {
    fn of(tasks: &Tasks, name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let (ended, done) = watch::channel(false);
        // Dropped when the work panics: that is an end as well.
        let work = Box::pin(work);
        tasks.spawn(name, |_| async move {
            work.await;
            ended.send_replace(true);
        });
        Done(done)
    }

    fn resubscribe(&self) -> Self {
        Done(self.0.clone())
    }

    async fn ended(&mut self) {
        // A dropped sender is an error of this call, and an end.
        let ended = self.0.wait_for(|has_ended| *has_ended).await;
        drop(ended);
    }
}

async fn bind(name: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot open the {name} listener on {address}"))
}

/// Files with credentials are looked at by the clock: whoever replaces one tells nobody.
async fn look_at_credentials(
    gateway: Arc<Gateway>,
    applier: Arc<Applier>,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut ticks = interval(CREDENTIAL_LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let looking = applier.clone();
        match tokio::task::spawn_blocking(move || looking.look_at_credentials()).await {
            Ok(()) => gateway.metrics.beat("credentials", clock.now_ms()),
            Err(_) => tracing::error!("looking at the credentials broke down"),
        }
    }
}

async fn seal_every(window: Duration, gateway: Arc<Gateway>, clock: Clock, stop: CancellationToken) {
    let mut ticks = interval(window);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if seal(&gateway).await {
            gateway.metrics.beat("seal", clock.now_ms());
        }
    }
}

/// Seals the open window; what fails is tried again with the next one.
async fn seal(gateway: &Gateway) -> bool {
    let observer = gateway.observer.clone();
    let sealed = tokio::task::spawn_blocking(move || observer.seal()).await;
    gateway.metrics.spooled(gateway.observer.spooled());
    gateway.metrics.journal_failures(gateway.observer.write_failures());
    match sealed {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "counters cannot be sealed; they are kept"
            );
            false
        }
        Err(_) => {
            tracing::error!("sealing the counters broke down");
            false
        }
    }
}
