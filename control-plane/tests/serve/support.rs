//! Starts and stops a control plane; speaks to it as an operator, as a node and over plain HTTP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::pb::{admin, fleet};
use control_plane::{Addresses, Config, ServeError, Settings};
use fleet::sync_request::Message as Says;
use fleet::sync_response::Message as Hears;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

/// Nothing that is awaited here takes this long.
pub const SOON: Duration = Duration::from_secs(20);

pub struct Plane {
    pub addresses: Addresses,
    pub dir: PathBuf,
    shutdown: CancellationToken,
    serving: JoinHandle<Result<(), ServeError>>,
}

pub fn settings(dir: &Path) -> Settings {
    let free = || Some("127.0.0.1:0".to_owned());
    Settings {
        data_dir: Some(dir.to_owned()),
        admin_listen: free(),
        fleet_listen: free(),
        http_listen: free(),
        ..Settings::default()
    }
}

impl Plane {
    pub async fn start(dir: &Path) -> Self {
        Plane::start_with(settings(dir)).await
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits for it by its handle")]
    pub async fn start_with(settings: Settings) -> Self {
        let config = Config::check(settings).unwrap();
        let dir = config.data_dir.clone();
        let shutdown = CancellationToken::new();
        let (tx, ready) = oneshot::channel();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move {
            control_plane::serve_with(config, stop, |addresses| tx.send(addresses).unwrap()).await
        });
        let addresses = timeout(SOON, ready).await.unwrap().expect("the control plane starts");
        Plane { addresses, dir, shutdown, serving }
    }

    /// Tells it to end; returns how long that took.
    pub async fn stop(self) -> Duration {
        let began = Instant::now();
        self.shutdown.cancel();
        timeout(Duration::from_secs(60), self.serving).await.unwrap().unwrap().unwrap();
        began.elapsed()
    }

    pub fn admin_token(&self) -> String {
        std::fs::read_to_string(self.dir.join("admin.token")).unwrap().trim().to_owned()
    }

    pub fn node_token(&self) -> String {
        std::fs::read_to_string(self.dir.join("node.token")).unwrap().trim().to_owned()
    }

    pub async fn admin(&self) -> Admin {
        Admin { conn: connect(self.addresses.admin.port()).await, token: self.admin_token() }
    }

    pub async fn apply(&self, document: &str) -> u64 {
        let applied = self.admin().await.apply(document, None).await.unwrap();
        applied.revision.unwrap().number
    }

    pub async fn node(&self, id: &str, applied: Option<fleet::Target>) -> Node {
        Node::connect(self, id, applied).await.unwrap()
    }

    /// The nodes as they are shown, once `is_so` holds of them.
    pub async fn nodes(&self, is_so: impl Fn(&[admin::Node]) -> bool) -> Vec<admin::Node> {
        let admin = self.admin().await;
        let mut client = admin::node_service_client::NodeServiceClient::new(admin.conn.clone());
        let watch = client.watch_nodes(admin.request(admin::WatchNodesRequest::default())).await.unwrap();
        let mut shown = watch.into_inner();
        let mut last = Vec::new();
        let found = timeout(SOON, async {
            while let Some(now) = shown.message().await.unwrap() {
                last = now.nodes;
                if is_so(&last) {
                    return true;
                }
            }
            false
        });
        assert!(matches!(found.await, Ok(true)), "last shown: {last:#?}");
        last
    }
}

pub async fn connect(port: u16) -> Channel {
    let endpoint = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    endpoint.http2_max_header_list_size(1024 * 1024).connect().await.unwrap()
}

/// A request that carries a token.
pub fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    request
}

pub struct Admin {
    pub conn: Channel,
    pub token: String,
}

impl Admin {
    pub fn request<T>(&self, message: T) -> Request<T> {
        with_token(&self.token, message)
    }

    pub fn catalog(&self) -> admin::catalog_service_client::CatalogServiceClient<Channel> {
        admin::catalog_service_client::CatalogServiceClient::new(self.conn.clone())
    }

    pub fn keys(&self) -> admin::key_service_client::KeyServiceClient<Channel> {
        admin::key_service_client::KeyServiceClient::new(self.conn.clone())
    }

    pub async fn apply(
        &self,
        document: &str,
        expected_revision: Option<u64>,
    ) -> Result<admin::ApplyCatalogResponse, Status> {
        let request = admin::ApplyCatalogRequest {
            document: document.as_bytes().to_vec(),
            expected_revision,
            message: "by a test".into(),
            ..Default::default()
        };
        self.catalog().apply_catalog(self.request(request)).await.map(tonic::Response::into_inner)
    }
}

/// A catalog with one model and one channel; each `n` is another content.
pub fn document(n: u64) -> String {
    format!(
        r#"
[channels.a]
dialects = ["openai-chat"]
base_url = "http://127.0.0.1:9/v{n}"
credential = "env:A"

[models.m]
routes = [{{ channel = "a", upstream_model = "x", cost = {{ input = "1", output = "2" }} }}]
"#
    )
}

/// A node as the control plane sees it.
pub struct Node {
    tx: mpsc::Sender<fleet::SyncRequest>,
    pub rx: Streaming<fleet::SyncResponse>,
}

impl Node {
    pub async fn connect(plane: &Plane, id: &str, applied: Option<fleet::Target>) -> Result<Node, Status> {
        let conn = connect(plane.addresses.fleet.port()).await;
        Node::connect_over(conn, &plane.node_token(), id, applied).await
    }

    pub async fn connect_over(
        conn: Channel,
        token: &str,
        id: &str,
        applied: Option<fleet::Target>,
    ) -> Result<Node, Status> {
        let (tx, messages) = mpsc::channel(16);
        let hello = fleet::Hello {
            node_id: id.into(),
            boot_id: format!("{id}-boot"),
            version: "0.1.0".into(),
            schema: common::limits::SNAPSHOT_SCHEMA,
            features: common::feature::known().into_iter().collect(),
            applied,
            data_address: "127.0.0.1:8080".into(),
            ..Default::default()
        };
        // A call returns with the server's headers, so Hello waits in the stream already.
        tx.send(fleet::SyncRequest { message: Some(Says::Hello(hello)) }).await.unwrap();
        let mut client = fleet::fleet_sync_client::FleetSyncClient::new(conn);
        let rx = client.sync(with_token(token, ReceiverStream::new(messages))).await?.into_inner();
        Ok(Node { tx, rx })
    }

    pub async fn say(&self, says: Says) {
        self.tx.send(fleet::SyncRequest { message: Some(says) }).await.unwrap();
    }

    /// The next message that is no heartbeat; `None` when the stream ended well.
    pub async fn hear(&mut self) -> Result<Option<Hears>, Status> {
        loop {
            let message = timeout(SOON, self.rx.message()).await.expect("something is said soon")?;
            match message.map(|message| message.message.unwrap()) {
                Some(Hears::Heartbeat(_)) => {}
                heard => return Ok(heard),
            }
        }
    }

    pub async fn welcome(&mut self) -> fleet::Welcome {
        match self.hear().await {
            Ok(Some(Hears::Welcome(welcome))) => welcome,
            other => panic!("{other:?} is no welcome"),
        }
    }

    pub async fn update(&mut self) -> fleet::ConfigUpdate {
        match self.hear().await {
            Ok(Some(Hears::Update(update))) => update,
            other => panic!("{other:?} is no update"),
        }
    }

    /// Takes an update as a node does that runs it.
    pub async fn apply(&mut self, update: &fleet::ConfigUpdate) {
        self.say(Says::Ack(fleet::ConfigAck {
            update_id: update.update_id,
            result: fleet::AckResult::Applied.into(),
            applied: update.target.clone(),
            ..Default::default()
        }))
        .await;
    }

    /// Takes updates until it runs a revision.
    pub async fn reach(&mut self, revision: u64) -> fleet::Target {
        loop {
            let update = self.update().await;
            self.apply(&update).await;
            let target = update.target.unwrap();
            if target.catalog.as_ref().is_some_and(|catalog| catalog.version == revision) {
                return target;
            }
        }
    }

    pub async fn connected(plane: &Plane, id: &str) -> (Node, fleet::Target) {
        let mut node = plane.node(id, None).await;
        node.welcome().await;
        let update = node.update().await;
        node.apply(&update).await;
        (node, update.target.unwrap())
    }
}

/// Status and body of a GET.
pub async fn get(port: u16, path: &str, token: Option<&str>) -> (u16, String) {
    let mut conn = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let auth = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{auth}\r\n");
    conn.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, conn.read_to_string(&mut answer)).await.unwrap().unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// A way to a Unix socket over TCP that can fall silent: nothing is closed, and nothing arrives.
pub struct Wire {
    pub port: u16,
    silent: CancellationToken,
}

impl Wire {
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    pub async fn to(socket: PathBuf) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Wire { port: listener.local_addr().unwrap().port(), silent: CancellationToken::new() };
        let silent = wire.silent.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (socket, silent) = (socket.clone(), silent.clone());
                tokio::spawn(async move {
                    let mut far = tokio::net::UnixStream::connect(socket).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        () = silent.cancelled() => std::future::pending().await,
                    }
                });
            }
        });
        wire
    }

    pub fn fall_silent(&self) {
        self.silent.cancel();
    }
}
