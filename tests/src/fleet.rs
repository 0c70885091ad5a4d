//! A fleet of real processes on loopback: one control plane and n nodes, an operator's hands on it
//! (gRPC and `sluice`), and conditions to wait for. Logs are shown unless a test says that it is done.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin;
use tempfile::TempDir;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::caller::Caller;
use crate::catalog::{CREDENTIAL, Document, OWN_CREDENTIALS, credential};
use crate::eventually::eventually;
use crate::process::{Process, Program, binary_path, free_port, get};

/// Enough for a change to reach every node, also one that was refused so often that it waits 30 s
/// before it connects again.
pub const SOON: Duration = Duration::from_secs(45);
/// Enough for a window to be sealed, reported and added.
pub const REPORTED: Duration = Duration::from_secs(30);

/// What a fleet is made of.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// How many nodes to start.
    pub nodes: usize,
    /// `--database-url` of the control plane; SQLite in its folder without.
    pub database_url: Option<String>,
    /// Further flags of every node.
    pub node_args: Vec<String>,
    /// Do not make a key.
    pub without_key: bool,
}

/// A control plane and its nodes.
pub struct Fleet {
    /// The control plane.
    pub control_plane: Process,
    /// The nodes, `node-1` first.
    pub nodes: Vec<Process>,
    /// The client key; empty when none was made.
    pub key: String,
    plan: Plan,
    fleet_url: String,
    dir: TempDir,
    is_done: bool,
}

/// Puts a token on each call.
#[derive(Clone)]
pub struct WithToken(MetadataValue<Ascii>);

impl Interceptor for WithToken {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, tonic::Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// A connection to the admin listener with the admin token.
pub type Admin = InterceptedService<Channel, WithToken>;

/// What `sluice` said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Standard output as JSON.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }

    /// Itself, if the exit code is this one.
    pub fn with_code(self, code: i32) -> anyhow::Result<Self> {
        ensure!(self.code == code, "sluice ended with {}, not {code}: {self:?}", self.code);
        Ok(self)
    }
}

impl Fleet {
    /// Starts a control plane and this many nodes, without a catalog, with one client key.
    pub async fn start(nodes: usize) -> anyhow::Result<Self> {
        Fleet::start_as(Plan { nodes, ..Plan::default() }).await
    }

    /// Starts a fleet as planned.
    pub async fn start_as(plan: Plan) -> anyhow::Result<Self> {
        init();
        let dir = tempfile::Builder::new().prefix("sluice-fleet-").tempdir()?;
        let fleet_address = format!("127.0.0.1:{}", free_port()?);
        let mut args = flags(&[
            ("--admin-listen", &format!("127.0.0.1:{}", free_port()?)),
            ("--fleet-listen", &fleet_address),
            ("--http-listen", "127.0.0.1:0"),
        ]);
        if let Some(url) = &plan.database_url {
            args.extend(flags(&[("--database-url", url)]));
        }
        let control_plane = Process::start(Program {
            binary: "control-plane",
            label: "control-plane".to_owned(),
            data_dir: dir.path().join("control-plane"),
            args,
            env: vec![],
            ready_at: Some("http"),
        })
        .await?;
        let mut fleet = Fleet {
            control_plane,
            nodes: vec![],
            key: String::new(),
            fleet_url: format!("http://{fleet_address}"),
            plan,
            dir,
            is_done: false,
        };
        if !fleet.plan.without_key {
            fleet.key = fleet.create_key("tests").await?;
        }
        for _ in 0..fleet.plan.nodes {
            fleet.add_node().await?;
        }
        Ok(fleet)
    }

    /// Starts a fleet with a catalog and waits until every node runs it.
    pub async fn with_catalog(nodes: usize, catalog: &Document) -> anyhow::Result<Self> {
        let fleet = Fleet::start(nodes).await?;
        let revision = fleet.apply(catalog).await?;
        fleet.in_sync(revision).await?;
        Ok(fleet)
    }

    /// Starts one more node and returns its index.
    pub async fn add_node(&mut self) -> anyhow::Result<usize> {
        let program = self.node_program()?;
        self.nodes.push(Process::start(program).await?);
        Ok(self.nodes.len() - 1)
    }

    /// How the next node would be started.
    pub fn node_program(&self) -> anyhow::Result<Program> {
        let id = format!("node-{}", self.nodes.len() + 1);
        let token = self.control_plane.data_dir().join("node.token");
        let mut args = flags(&[
            ("--node-id", &id),
            ("--control-plane", &self.fleet_url),
            ("--node-token-file", &token.to_string_lossy()),
            ("--listen", &format!("127.0.0.1:{}", free_port()?)),
            ("--ops-listen", "127.0.0.1:0"),
        ]);
        if !self.plan.node_args.iter().any(|arg| arg == "--drain-delay") {
            // Nobody goes by the readiness of these nodes but the tests themselves.
            args.extend(flags(&[("--drain-delay", "0s")]));
        }
        args.extend(self.plan.node_args.iter().cloned());
        Ok(Program {
            binary: "gateway-node",
            data_dir: self.dir.path().join(&id),
            label: id,
            args,
            env: OWN_CREDENTIALS.into_iter().chain(["shared"]).map(credential).collect(),
            ready_at: None,
        })
    }

    /// The folder that everything is in.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The URL that nodes dial.
    pub fn fleet_url(&self) -> &str {
        &self.fleet_url
    }

    /// A caller of this node with the fleet's key.
    pub fn caller(&self, node: usize) -> anyhow::Result<Caller> {
        Caller::new(self.data_address(node)?, &self.key)
    }

    /// Where this node answers callers.
    pub fn data_address(&self, node: usize) -> anyhow::Result<SocketAddr> {
        self.nodes.get(node).with_context(|| format!("no node {node}"))?.address("data")
    }

    /// What a path of this node's ops listener answers.
    pub async fn ops(&self, node: usize, path: &str) -> anyhow::Result<(u16, String)> {
        let address = self.nodes.get(node).with_context(|| format!("no node {node}"))?.address("ops")?;
        get(address, path).await
    }

    /// What a path of the control plane's http listener answers.
    pub async fn http(&self, path: &str) -> anyhow::Result<(u16, String)> {
        get(self.control_plane.address("http")?, path).await
    }

    fn token_path(&self) -> PathBuf {
        self.control_plane.data_dir().join("admin.token")
    }

    /// A connection to the admin listener.
    pub fn admin(&self) -> anyhow::Result<Admin> {
        let token = std::fs::read_to_string(self.token_path()).context("admin.token")?;
        self.admin_with(token.trim())
    }

    /// A connection to the admin listener with another token.
    pub fn admin_with(&self, token: &str) -> anyhow::Result<Admin> {
        admin_at(self.control_plane.address("admin")?, token)
    }

    /// Applies a catalog to all nodes at once, whatever its rollout says, and returns its revision.
    pub async fn apply(&self, catalog: &Document) -> anyhow::Result<u64> {
        self.apply_text(&catalog.text(), None).await
    }

    /// Applies a document to all nodes at once and returns its revision.
    pub async fn apply_text(&self, document: &str, expected_revision: Option<u64>) -> anyhow::Result<u64> {
        apply_by(self.admin()?, document.to_owned(), expected_revision).await
    }

    /// Makes a client key.
    pub async fn create_key(&self, name: &str) -> anyhow::Result<String> {
        let mut client = admin::key_service_client::KeyServiceClient::new(self.admin()?);
        Ok(client.create_key(admin::CreateKeyRequest { name: name.to_owned() }).await?.into_inner().secret)
    }

    /// The nodes as the control plane shows them.
    pub async fn list_nodes(&self) -> anyhow::Result<Vec<admin::Node>> {
        let mut client = admin::node_service_client::NodeServiceClient::new(self.admin()?);
        Ok(client.list_nodes(admin::ListNodesRequest::default()).await?.into_inner().nodes)
    }

    /// One node as the control plane shows it.
    pub async fn node(&self, id: &str) -> anyhow::Result<admin::Node> {
        let nodes = self.list_nodes().await?;
        nodes.into_iter().find(|node| node.id == id).with_context(|| format!("{id} is not listed"))
    }

    /// Waits until every node that runs shows this revision, in sync, and takes the fleet's key.
    pub async fn in_sync(&self, revision: u64) -> anyhow::Result<()> {
        for node in &self.nodes {
            self.node_in_sync(node.label(), revision).await?;
        }
        if self.key.is_empty() {
            return Ok(());
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let caller = self.caller(index)?;
            eventually(&format!("{} takes the key", node.label()), SOON, || async {
                let status = caller.models().await?.status;
                ensure!(status == 200, "GET /v1/models answers {status}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until this node shows this revision, in sync.
    pub async fn node_in_sync(&self, id: &str, revision: u64) -> anyhow::Result<()> {
        eventually(&format!("{id} runs revision {revision}"), SOON, || async {
            let node = self.node(id).await?;
            let is_there = node.applied_revision == revision && node.state() == admin::NodeState::InSync;
            ensure!(is_there && node.connected, "shown: {node:?}");
            Ok(())
        })
        .await
    }

    /// The success really observed, over the last hour.
    pub async fn status(&self) -> anyhow::Result<admin::Status> {
        let mut client = admin::status_service_client::StatusServiceClient::new(self.admin()?);
        let request = admin::GetStatusRequest { window_seconds: 3600, model: String::new() };
        client.get_status(request).await?.into_inner().status.context("no status in the answer")
    }

    /// Runs `sluice` against this control plane.
    pub async fn sluice(&self, args: &[&str]) -> anyhow::Result<Said> {
        let output = tokio::process::Command::new(binary_path("sluice")?)
            .arg("--server")
            .arg(format!("http://{}", self.control_plane.address("admin")?))
            .arg("--token-file")
            .arg(self.token_path())
            .args(args)
            .env("NO_COLOR", "1")
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Every process of the fleet, the control plane first.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        std::iter::once(&self.control_plane).chain(&self.nodes)
    }

    /// Ends a test that went well: no task panicked, no log holds the upstream's or the caller's
    /// credential, and the logs are not shown.
    pub fn finish(mut self) -> anyhow::Result<()> {
        for process in self.processes() {
            for line in process.log() {
                ensure!(!line.contains("panicked"), "{} panicked: {line}", process.label());
                ensure!(
                    !line.contains(CREDENTIAL),
                    "{} logs an upstream credential: {line}",
                    process.label()
                );
                let has_key = !self.key.is_empty() && line.contains(&self.key);
                ensure!(!has_key, "{} logs a client key: {line}", process.label());
            }
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Fleet {
    #[expect(clippy::print_stderr, reason = "the logs of a test that failed belong into its output")]
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        for process in self.processes() {
            let log = process.log();
            let skipped = log.len().saturating_sub(200);
            eprintln!("--- log of {} ({skipped} lines skipped)", process.label());
            for line in &log[skipped..] {
                eprintln!("{line}");
            }
        }
    }
}

/// A connection to an admin listener; it is opened by the first call.
pub fn admin_at(address: SocketAddr, token: &str) -> anyhow::Result<Admin> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(20));
    Ok(InterceptedService::new(endpoint.connect_lazy(), with_token(token)?))
}

/// Puts this token on each call.
pub fn with_token(token: &str) -> anyhow::Result<WithToken> {
    Ok(WithToken(format!("Bearer {token}").parse()?))
}

/// Applies a document over a connection of its own, so that the fleet can be handled meanwhile.
pub async fn apply_by(admin: Admin, document: String, expected_revision: Option<u64>) -> anyhow::Result<u64> {
    let mut client = admin::catalog_service_client::CatalogServiceClient::new(admin);
    let request = admin::ApplyCatalogRequest {
        document: document.into_bytes(),
        expected_revision,
        message: "tests".to_owned(),
        strategy: admin::RolloutStrategy::Immediate.into(),
        reason: "tests".to_owned(),
        ..Default::default()
    };
    let response = client.apply_catalog(request).await?.into_inner();
    Ok(response.revision.context("no revision in the answer")?.number)
}

/// Installs the TLS provider that HTTP clients want, once.
pub fn init() {
    // It is installed already when another test of this process was here before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect()
}
