//! Puts the parts together, runs them, and ends them in order and in bounded time (FR-017): not ready,
//! streams drained, listeners closed, jobs ended, nodes written down, store closed.

mod certificates;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::backoff::full_jitter;
use common::clock::Clock;
use common::listen::listen_json;
use common::tasks::Tasks;
use common::tls::TlsFault;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic_health::server::HealthReporter;

use crate::access::known::Known;
use crate::access::oidc::Oidc;
use crate::alerts::deliver::Alerting;
use crate::alerts::receivers::{Receivers, ReceiversFault};
use crate::beats::Beats;
use crate::config::{AdminToken, Config, Hidden};
use crate::doctor::{self, Listening};
use crate::fleet::Fleet;
use crate::folder::{Folder, FolderFault};
use crate::grpc::auth::Token;
use crate::grpc::auth::admin::Guard;
use crate::grpc::auth::fleet::Gate;
use crate::http::{Open, Ready};
use crate::identity::Identity;
use crate::identity::authority::{Authorities, AuthorityFault};
use crate::leader::Leader;
use crate::listener::{Door, Listener, Protocol};
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::page::Sees;
use crate::plane::Plane;
use crate::records::book::Book;
use crate::revision::head::Head;
use crate::secrets::keyring::{KeyFileFault, Keyring, OpenFault};
use crate::store::rows::Replica;
use crate::store::{Store, StoreError};
use crate::{audit, error, folder, grpc, http, jobs};
use certificates::Certificates;

/// Streams say goodbye within this time.
const STREAMS_END_WITHIN: Duration = Duration::from_secs(3);
/// Requests that are being answered get this long, then their connections are dropped.
const REQUESTS_END_WITHIN: Duration = Duration::from_secs(3);
const JOBS_END_WITHIN: Duration = Duration::from_secs(2);
const STORE_CLOSES_WITHIN: Duration = Duration::from_secs(3);
/// A database that is away at the start is tried again, at first after this long, …
const STORE_AGAIN: Duration = Duration::from_millis(250);
/// … and at last after this.
const STORE_AGAIN_MAX: Duration = Duration::from_secs(5);

/// Where the listeners stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// gRPC for operators.
    pub admin: SocketAddr,
    /// gRPC for nodes.
    pub fleet: SocketAddr,
    /// The page, `/api` and the probes.
    pub http: SocketAddr,
}

/// Why the control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderFault),
    /// The certificate authority cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityFault),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsFault),
    /// An address is taken, or not ours.
    #[error("cannot listen on {address} for {name}")]
    Listen {
        /// The listener.
        name: &'static str,
        /// Where it was to stand.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key of secrets cannot be used.
    #[error(transparent)]
    SecretKey(#[from] KeyFileFault),
    /// None of the keys is the one that the secrets are sealed with.
    #[error(
        "{0}; give the key file that sealed it, also behind others, or none at all to start without secrets"
    )]
    SecretKeyWrong(OpenFault),
    /// What is wanted cannot be read.
    #[error(transparent)]
    Head(#[from] error::Error),
    /// No client for the OIDC issuer can be made.
    #[error("cannot make a client for the OIDC issuer; are there certificate authorities on this system?")]
    Oidc(#[from] reqwest::Error),
    /// The alerts file cannot be used.
    #[error(transparent)]
    Alerts(#[from] ReceiversFault),
    /// No client for those who are told of alerts can be made.
    #[error("cannot make a client for alerts; are there certificate authorities on this system?")]
    Client(#[source] reqwest::Error),
    /// The compiled-in protocol cannot be reflected.
    #[error(transparent)]
    Reflection(#[from] grpc::ReflectionFault),
}

/// Runs a control plane until `shutdown`.
pub async fn serve(config: Config, shutdown: CancellationToken) -> Result<(), ServeError> {
    serve_with(config, shutdown, |_| {}).await
}

/// As [`serve`]; calls `on_ready` once everything is answered.
pub async fn serve_with(
    config: Config,
    shutdown: CancellationToken,
    on_ready: impl FnOnce(Addresses),
) -> Result<(), ServeError> {
    let folder = Folder::open(&config.data_dir)?;
    folder.remove("listen.json")?;
    let admin_token = bootstrap(&config, &folder)?;
    let node_token = Token::new(&match &config.node_token_file {
        None => folder.token("node.token")?,
        Some(path) => folder::given_token(path)?,
    });
    let keyring = Arc::new(Keyring::load(&config.secret_key_files)?);
    let ready = Ready::default();
    let oidc = config.oidc.clone().map(Oidc::new).transpose()?;
    let jobs: Vec<&str> = jobs::names().map(|(name, _)| name).collect();
    let receivers = Receivers::load(config.alerts_file.as_deref(), &jobs)?;
    let (beats, pinging) = Beats::new(&receivers).map_err(ServeError::Client)?;
    let alerting = Alerting::new(receivers, config.runbooks_url.clone()).map_err(ServeError::Client)?;
    let clock = Clock::system();
    let authority = certificates::authority(&config, &folder, clock.now_ms())?;
    let certificates = Certificates::open(&config, authority.as_deref(), clock.now_ms())?;
    let listeners = Listeners::bind(&config, &certificates, &ready).await?;
    let addresses = listeners.addresses;
    let Addresses { admin, fleet, http } = addresses;
    folder.write("listen.json", &listen_json(&[("admin", admin), ("fleet", fleet), ("http", http)]))?;
    tracing::info!(%admin, %fleet, %http, "listening: admin {admin}, fleet {fleet}, http {http}");

    let doors = listeners.doors.clone();
    let listening = Tasks::new();
    let standing = listeners.standing(certificates.shown(config.node_certificate_life));
    listeners.start(&listening);
    let opened = tokio::select! {
        () = shutdown.cancelled() => Ok(None),
        opened = Box::pin(Running::open(&config, &folder, standing, clock, (authority, keyring), (alerting, beats))) => opened.map(Some),
    };
    let running = match opened {
        Ok(Some(running)) => running,
        ended => {
            listening.stop(REQUESTS_END_WITHIN * 2).await;
            folder.remove("listen.json")?;
            return ended.map(drop);
        }
    };
    let Running { plane, health, jobs } = &running;
    let guard = Guard::new(plane.clone(), admin_token, oidc);
    let open = match (http.ip().to_canonical().is_loopback(), config.public_status) {
        (true, _) => Open::Everything,
        (false, true) => Open::Status(if config.public_channels { Sees::Channels } else { Sees::Models }),
        (false, false) => Open::Probes,
    };
    let [admin_door, fleet_door, http_door] = doors;
    let gate = Gate { token: node_token, plane: plane.clone() };
    let nodes = Fleet::new(plane.clone(), plane.streams.clone(), config.stream_age);
    admin_door.open(grpc::admin(plane, health, guard.clone())?);
    fleet_door.open(grpc::fleet(nodes, health, gate));
    http_door.open(http::routes(plane, ready.clone(), &guard, open));
    pinging.start(plane, jobs);
    jobs::start(plane, jobs);
    certificates.follow(plane, jobs);
    grpc::set_health(health, true).await;
    ready.set(true);
    tracing::info!("control plane ready");
    on_ready(addresses);

    shutdown.cancelled().await;
    tracing::info!("control plane shutting down");
    ready.set(false);
    grpc::set_health(health, false).await;
    Box::pin(running.stop(listening)).await;
    folder.remove("listen.json")?;
    tracing::info!("control plane ended");
    Ok(())
}

/// The token that opens everything: what the settings give, else that of the data folder.
fn bootstrap(config: &Config, folder: &Folder) -> Result<Token, FolderFault> {
    Ok(Token::new(&match &config.admin_token {
        None => folder.token("admin.token")?,
        Some(AdminToken::File(path)) => folder::given_token(path)?,
        Some(AdminToken::Text(text)) => text.expose().to_owned(),
    }))
}

struct Listeners {
    listeners: [Listener; 3],
    doors: [Door; 3],
    addresses: Addresses,
}

impl Listeners {
    async fn bind(config: &Config, tls: &Certificates, ready: &Ready) -> Result<Self, ServeError> {
        let (admin, admin_at) = bind("admin", config.admin_listen).await?;
        let (fleet, fleet_at) = bind("fleet", config.fleet_listen).await?;
        let (http, http_at) = bind("http", config.http_listen).await?;
        let doors = [
            Door::closed(grpc::not_ready()),
            Door::closed(grpc::not_ready()),
            Door::closed(http::not_ready(ready.clone())),
        ];
        let [admin_door, fleet_door, http_door] = doors.clone();
        let grpc = |socket, tls, door| Listener { socket, tls, protocol: Protocol::Grpc, door };
        let listeners = [
            grpc(admin, tls.admin.clone(), admin_door),
            grpc(fleet, tls.fleet.clone(), fleet_door),
            Listener { socket: http, tls: tls.http.clone(), protocol: Protocol::Http, door: http_door },
        ];
        let addresses = Addresses { admin: admin_at, fleet: fleet_at, http: http_at };
        Ok(Listeners { listeners, doors, addresses })
    }

    fn standing(&self, shows: doctor::Certificate) -> Vec<Listening> {
        let Addresses { admin, fleet, http } = self.addresses;
        let named = [("admin", admin), ("fleet", fleet), ("http", http)].into_iter();
        named.map(|(name, address)| Listening { name, address, shows }).collect()
    }

    fn start(self, tasks: &Tasks) {
        for listener in self.listeners {
            tasks.spawn("listener", |stop| listener.run(stop, REQUESTS_END_WITHIN));
        }
    }
}

async fn bind(name: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let bound = async {
        let socket = TcpListener::bind(address).await?;
        let at = socket.local_addr()?;
        Ok((socket, at))
    };
    bound.await.map_err(|source| ServeError::Listen { name, address, source })
}

struct Running {
    plane: Arc<Plane>,
    health: HealthReporter,
    jobs: Tasks,
}

impl Running {
    async fn open(
        config: &Config,
        folder: &Folder,
        listeners: Vec<Listening>,
        clock: Clock,
        (authority, keyring): (Option<Arc<Authorities>>, Arc<Keyring>),
        (alerting, beats): (Alerting, Beats),
    ) -> Result<Self, ServeError> {
        let store = open_store(config, folder, &clock).await?;
        let own = Replica {
            id: uuid::Uuid::now_v7().to_string(),
            name: name(&listeners),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_ms: clock.now_ms(),
            silent_ms: 0,
        };
        let nodes = Nodes::new(&own, clock.clone());
        nodes.see(store.beat(&own).await?);
        nodes.take_in(store.nodes_version().await?, store.nodes().await?);
        if config.new_epoch {
            let over = store.heads().await?.epoch;
            let next = clock.now_ms().max(over + 1);
            store.begin_epoch(over, next, &audit::epoch_entry(clock.now_ms(), over, next)).await?;
            tracing::warn!(over, epoch = next, "a new epoch begins, as --new-epoch asks: nodes obey it");
        }
        let head = Head::unread(clock.clone(), keyring.clone());
        head.refresh(&store).await?;
        if let Some(fault @ OpenFault::OtherKey { .. }) =
            head.now().as_deref().and_then(|wanted| wanted.target.secrets.fault())
        {
            return Err(ServeError::SecretKeyWrong(fault.clone()));
        }
        let access = Known::default();
        access.refresh(&store).await?;
        let identity = Identity::new(authority);
        identity.nodes.refresh(&store).await?;
        let plane = Plane {
            store,
            head,
            keyring,
            access,
            nodes,
            identity,
            metrics: Metrics::new(),
            leader: Leader::new(&own.id),
            own,
            alerting,
            beats,
            keeping: config.keeping,
            book: Book::default(),
            listeners,
            clock,
            streams: Tasks::new(),
            counted: watch::Sender::new(0),
        };
        Ok(Running { plane: Arc::new(plane), health: HealthReporter::new(), jobs: Tasks::new() })
    }

    async fn stop(&self, listening: Tasks) {
        let plane = &self.plane;
        if !plane.streams.stop(STREAMS_END_WITHIN).await {
            tracing::info!("some streams did not take a goodbye");
        }
        listening.stop(REQUESTS_END_WITHIN * 2).await;
        self.jobs.stop(JOBS_END_WITHIN).await;
        let closing = async {
            if let Err(error) = jobs::keep_nodes(plane).await {
                tracing::warn!(%error, "what is known of nodes was not written down");
            }
            if let Err(error) = jobs::leave(plane).await {
                tracing::info!(%error, "other control planes were not told of the end and will notice it");
            }
            plane.store.close().await;
        };
        if timeout(STORE_CLOSES_WITHIN, closing).await.is_err() {
            tracing::warn!("the store did not close in time");
        }
    }
}

/// What people call this control plane: its machine, and the port that nodes call.
fn name(listeners: &[Listening]) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = if machine.trim().is_empty() { "control-plane" } else { machine.trim() };
    let fleet = listeners.iter().find(|listener| listener.name == "fleet");
    fleet.map_or_else(|| machine.to_owned(), |fleet| format!("{machine}:{}", fleet.address.port()))
}

/// Opens the store. A database server that is away is waited for; any other fault ends the start.
async fn open_store(config: &Config, folder: &Folder, clock: &Clock) -> Result<Store, StoreError> {
    let Some(url) = &config.database_url else {
        return Store::open_sqlite(folder.path(), clock.now_ms()).await;
    };
    let listen_url = config.database_listen_url.as_ref().map(Hidden::expose);
    let mut attempt = 0;
    loop {
        match Store::open_postgres(url.expose(), listen_url, clock.now_ms()).await {
            Err(error) if error.is_away() => {
                tracing::warn!(%error, "the database is away and is tried again");
                let pause = full_jitter(attempt, STORE_AGAIN, STORE_AGAIN_MAX, fastrand::f64());
                sleep(STORE_AGAIN + pause).await;
                attempt += 1;
            }
            opened => return opened,
        }
    }
}
