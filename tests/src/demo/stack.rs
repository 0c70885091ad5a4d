//! Everything that the demo runs, in one process and on port 0: the control plane, two gateway nodes,
//! the simulated providers; the catalog and the key that they begin with; and the end of it all.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use common::pb::admin;
use common::tasks::Tasks;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::args::Args;
use crate::caller::Caller;
use crate::eventually::eventually;
use crate::fleet::{Admin, admin_at};
use crate::provider::Provider;

/// The simulated providers, and the channels to them.
const PROVIDERS: [&str; 3] = ["alpha", "bravo", "charlie"];
const NODES: [&str; 2] = ["node-1", "node-2"];
const SOON: Duration = Duration::from_secs(20);
/// Requests in flight get this long at the end; the demo has stopped its own by then.
const GRACE: Duration = Duration::from_secs(1);
/// The last look at the counters.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// What runs.
pub(super) struct Stack {
    pub(super) admin: Admin,
    pub(super) addresses: control_plane::Addresses,
    pub(super) nodes: Vec<Node>,
    /// Empty with a catalog of the reader's own.
    pub(super) providers: Vec<Provider>,
    pub(super) key: String,
    /// Models that can be called in the chat dialect, the first one for examples.
    pub(super) models: Vec<String>,
    pub(super) cooldown: Option<Duration>,
    plane: Server,
    dir: Folder,
}

/// A gateway node.
pub(super) struct Node {
    pub(super) id: String,
    pub(super) addresses: gateway_node::Addresses,
    server: Server,
}

enum Folder {
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Folder::Temporary(dir) => dir.path(),
            Folder::Kept(path) => path,
        }
    }
}

/// Who hears that a server has ended while it should run.
type Ended = mpsc::Sender<(String, anyhow::Result<()>)>;

/// A program of the fleet, as a task.
struct Server {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts it and waits for its addresses.
    async fn start<A, F>(
        name: String,
        ended: Ended,
        run: impl FnOnce(CancellationToken, oneshot::Sender<A>) -> F,
    ) -> anyhow::Result<(Server, A)>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let (ready_tx, ready) = oneshot::channel();
        let (early_tx, early) = oneshot::channel();
        let future = run(stop.clone(), ready_tx);
        let (label, stopping) = (name.clone(), stop.clone());
        let task = Tasks::new().spawn("server", |_| async move {
            let end = future.await;
            if !stopping.is_cancelled() {
                // Before it was ready, the one who starts it takes the reason; afterwards the demo does.
                if let Err(end) = early_tx.send(end) {
                    let _ = ended.send((label, end)).await;
                }
            }
        });
        match ready.await {
            Ok(addresses) => Ok((Server { stop, task }, addresses)),
            Err(_) => match early.await {
                Ok(Err(error)) => Err(error.context(format!("{name} did not start"))),
                Ok(Ok(())) | Err(_) => bail!("{name} ended before it was ready"),
            },
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        // A task that panicked has ended too, and has said so.
        let _ = self.task.await;
    }
}

impl Stack {
    /// Starts everything and waits until every node runs the catalog and takes the key.
    pub(super) async fn start(args: &Args, ended: Ended) -> anyhow::Result<Stack> {
        let document = match &args.catalog {
            Some(file) => {
                Some(std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?)
            }
            None => None,
        };
        let dir = folder(args.data_dir.as_deref())?;
        let (plane, addresses) = start_plane(dir.path(), ended.clone()).await?;
        let token = std::fs::read_to_string(admin_token(dir.path())).context("admin.token")?;
        let admin = admin_at(addresses.admin, token.trim())?;
        let mut providers = Vec::new();
        let document = match document {
            Some(document) => document,
            None => {
                for name in PROVIDERS {
                    let provider = Provider::start(name).await?;
                    provider.forget_ended();
                    providers.push(provider);
                }
                simulated(&providers, dir.path(), args.cooldown())?.into_bytes()
            }
        };
        let revision = apply(&admin, document).await?;
        let key = client_key(&admin, dir.path()).await?;
        let mut nodes = Vec::new();
        for id in NODES {
            let (server, at) = start_node(id, dir.path(), addresses.fleet, ended.clone()).await?;
            nodes.push(Node { id: id.to_owned(), addresses: at, server });
        }
        let models = chat_models(&admin).await?;
        let cooldown = args.catalog.is_none().then(|| args.cooldown());
        let stack = Stack { admin, addresses, nodes, providers, key, models, cooldown, plane, dir };
        stack.await_ready(revision).await?;
        Ok(stack)
    }

    async fn await_ready(&self, revision: u64) -> anyhow::Result<()> {
        for node in &self.nodes {
            let what = format!("{} runs revision {revision} and takes the key", node.id);
            let caller = Caller::new(node.addresses.data, &self.key)?;
            let refused = eventually(&what, SOON, || async {
                if let Some(reasons) = self.rejection(&node.id).await? {
                    return Ok(Some(reasons));
                }
                let answer = caller.models().await?;
                ensure!(answer.status == 200, "it answers {}: {}", answer.status, answer.text());
                let shown = answer.header("x-sluice-revision").to_owned();
                ensure!(shown == revision.to_string(), "it runs revision {shown:?}");
                Ok(None)
            })
            .await?;
            if let Some(reasons) = refused {
                bail!("{} rejects the catalog:{reasons}", node.id);
            }
        }
        Ok(())
    }

    /// Why a node refused what it should run, a reason a line.
    async fn rejection(&self, id: &str) -> anyhow::Result<Option<String>> {
        let mut client = admin::node_service_client::NodeServiceClient::new(self.admin.clone());
        let nodes = client.list_nodes(admin::ListNodesRequest::default()).await?.into_inner().nodes;
        let rejected = |node: &&admin::Node| node.id == id && node.state() == admin::NodeState::Rejected;
        Ok(nodes.iter().find(rejected).map(|node| {
            node.violations.iter().map(|found| format!("\n  {}: {}", found.path, found.message)).collect()
        }))
    }

    /// Where everything is kept.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The token of operators.
    pub(super) fn admin_token(&self) -> PathBuf {
        admin_token(self.dir.path())
    }

    /// Whether the folder outlives the demo.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self.dir, Folder::Kept(_))
    }

    /// Ends it: nodes first, which report what they counted; then, after a last look, the rest.
    pub(super) async fn stop(self) -> Option<admin::Status> {
        let Stack { admin, nodes, providers, plane, dir, .. } = self;
        let stopping = Tasks::new();
        let ends: Vec<_> =
            nodes.into_iter().map(|node| stopping.spawn("stop a node", |_| node.server.stop())).collect();
        for end in ends {
            let _ = end.await;
        }
        let counted = timeout(LOOK_WITHIN, status(&admin)).await.ok().and_then(Result::ok);
        plane.stop().await;
        for provider in providers {
            provider.stop().await;
        }
        drop(dir);
        counted
    }
}

/// What the control plane has counted in the last hour.
pub(super) async fn status(admin: &Admin) -> anyhow::Result<admin::Status> {
    let mut client = admin::status_service_client::StatusServiceClient::new(admin.clone());
    let request = admin::GetStatusRequest { window_seconds: 3600, model: String::new() };
    client.get_status(request).await?.into_inner().status.context("no status in the answer")
}

fn folder(kept: Option<&Path>) -> anyhow::Result<Folder> {
    match kept {
        None => Ok(Folder::Temporary(tempfile::Builder::new().prefix("sluice-demo-").tempdir()?)),
        Some(path) => {
            let made = std::fs::create_dir_all(path).and_then(|()| path.canonicalize());
            Ok(Folder::Kept(made.with_context(|| format!("cannot use the folder {}", path.display()))?))
        }
    }
}

fn admin_token(dir: &Path) -> PathBuf {
    dir.join("control-plane").join("admin.token")
}

/// Port 0: whatever is free.
fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn start_plane(dir: &Path, ended: Ended) -> anyhow::Result<(Server, control_plane::Addresses)> {
    let config = control_plane::Config {
        admin_token: None,
        node_token_file: None,
        public_status: false,
        public_channels: false,
        oidc: None,
        data_dir: dir.join("control-plane"),
        admin_listen: any_port(),
        fleet_listen: any_port(),
        http_listen: any_port(),
        database_url: None,
        database_listen_url: None,
        tls: None,
        authority: None,
        server_names: Vec::new(),
        node_certificate_life: common::limits::NODE_CERTIFICATE_LIFE,
        secret_key_files: Vec::new(),
        stream_age: common::limits::STREAM_AGE,
        keeping: Default::default(),
        alerts_file: None,
        runbooks_url: "deploy/runbooks".to_owned(),
        new_epoch: false,
        log_format: common::telemetry::LogFormat::Text,
    };
    Server::start("the control plane".to_owned(), ended, |stop, ready| async move {
        let on_ready = move |addresses| {
            let _ = ready.send(addresses);
        };
        Ok(control_plane::serve_with(config, stop, on_ready).await?)
    })
    .await
}

async fn start_node(
    id: &str,
    dir: &Path,
    fleet: SocketAddr,
    ended: Ended,
) -> anyhow::Result<(Server, gateway_node::Addresses)> {
    let config = gateway_node::Config {
        labels: Default::default(),
        node_id: Some(id.into()),
        control_planes: vec![format!("http://{fleet}").parse()?],
        control_plane_ca: None,
        token_file: Some(dir.join("control-plane").join("node.token")),
        data_dir: dir.join(id),
        listen: any_port(),
        ops_listen: any_port(),
        tls: None,
        allow_anonymous: false,
        drain_delay: std::time::Duration::ZERO,
        shutdown_grace: GRACE,
        window: common::limits::WINDOW_LENGTH,
        log_format: common::telemetry::LogFormat::Text,
    };
    Server::start(id.to_owned(), ended, |stop, ready| async move {
        let on_ready = move |addresses| {
            let _ = ready.send(addresses);
        };
        gateway_node::serve_with(config, stop.cancelled_owned(), on_ready).await
    })
    .await
}

/// The catalog of the simulated providers: two models whose chains differ, and policies short enough
/// to be watched.
fn simulated(providers: &[Provider], dir: &Path, cooldown: Duration) -> anyhow::Result<String> {
    let credential = dir.join("provider.credential");
    std::fs::write(&credential, "sk-of-no-use\n").context("cannot write the providers' credential")?;
    let credential = credential.to_string_lossy();
    let cooldown = cooldown.as_millis();
    let mut text = format!(
        "# The catalog of the demo. What is shorter than usual: cooldown (60s), headers (240s), idle (300s).\n\
         [policy]\n\
         breaker  = {{ cooldown = \"{cooldown}ms\" }}\n\
         timeouts = {{ headers = \"3s\", idle = \"5s\" }}\n\n"
    );
    for provider in providers {
        text.push_str(&format!(
            "[channels.{}]\ndialects   = [\"openai-chat\"]\nbase_url   = \"{}\"\ncredential = {:?}\n\n",
            provider.name(),
            provider.url(),
            format!("file:{credential}"),
        ));
    }
    let models = [
        ("demo-large", [("1.00", "3.00"), ("2.00", "6.00"), ("2.50", "10.00")], [0, 1, 2]),
        ("demo-small", [("0.10", "0.30"), ("0.15", "0.60"), ("0.20", "0.80")], [1, 0, 2]),
    ];
    for (model, costs, order) in models {
        text.push_str(&format!(
            "[models.{model}]\nprice  = {{ input = \"3.00\", output = \"12.00\" }}\nroutes = [\n"
        ));
        for (provider, (input, output)) in order.iter().filter_map(|at| providers.get(*at)).zip(costs) {
            text.push_str(&format!(
                "  {{ channel = \"{}\", upstream_model = \"{model}-v1\", cost = {{ input = \"{input}\", \
                 output = \"{output}\" }} }},\n",
                provider.name(),
            ));
        }
        text.push_str("]\n\n");
    }
    Ok(text)
}

/// Applies a document; every fault of it is in the error.
async fn apply(admin: &Admin, document: Vec<u8>) -> anyhow::Result<u64> {
    let mut client = admin::catalog_service_client::CatalogServiceClient::new(admin.clone());
    let request = admin::ValidateCatalogRequest { document: document.clone() };
    let found = client.validate_catalog(request).await?.into_inner();
    if !found.faults.is_empty() {
        let faults = found.faults.iter().map(|f| format!("\n  line {}: {}: {}", f.line, f.path, f.message));
        bail!("the catalog has faults:{}", faults.collect::<String>());
    }
    let request = admin::ApplyCatalogRequest {
        document,
        message: "demo".to_owned(),
        // The providers of the last start are gone, and with them all that its catalog leads to.
        strategy: admin::RolloutStrategy::Immediate.into(),
        reason: "the demo starts".to_owned(),
        ..Default::default()
    };
    let applied = client.apply_catalog(request).await?.into_inner();
    Ok(applied.revision.context("no revision in the answer")?.number)
}

/// The key of this folder: made once, kept beside the rest, and made anew when it was revoked.
async fn client_key(admin: &Admin, dir: &Path) -> anyhow::Result<String> {
    let file = dir.join("client.key");
    let mut client = admin::key_service_client::KeyServiceClient::new(admin.clone());
    if let Ok(kept) = std::fs::read_to_string(&file)
        && let Some((id, secret)) = kept.trim().split_once(' ')
    {
        let keys = client.list_keys(admin::ListKeysRequest {}).await?.into_inner().keys;
        if keys.iter().any(|key| key.id == id && key.revoked_at_ms == 0) {
            return Ok(secret.to_owned());
        }
    }
    let made = client.create_key(admin::CreateKeyRequest { name: "demo".to_owned() }).await?.into_inner();
    let id = made.key.unwrap_or_default().id;
    write_private(&file, &format!("{id} {}\n", made.secret)).context("cannot keep the client key")?;
    Ok(made.secret)
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

async fn chat_models(admin: &Admin) -> anyhow::Result<Vec<String>> {
    let mut client = admin::chain_service_client::ChainServiceClient::new(admin.clone());
    let chains = client.list_chains(admin::ListChainsRequest {}).await?.into_inner().chains;
    let of_chat = chains.into_iter().filter(|chain| chain.dialect == "openai-chat");
    let mut models: Vec<String> = of_chat.map(|chain| chain.model).collect();
    models.dedup();
    ensure!(!models.is_empty(), "no model of the catalog has a chain for the openai-chat dialect");
    Ok(models)
}
