//! A fleet of real processes on loopback: one control plane, or several over one PostgreSQL, and n nodes, and conditions
//! to wait for. Logs are shown unless a test says that it is done. What an operator does is `operator`'s matter.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin;
use tempfile::TempDir;

use crate::caller::Caller;
use crate::catalog::{CREDENTIAL, Document, OWN_CREDENTIALS, credential};
use crate::eventually::eventually;
use crate::operator::Operator;
pub use crate::operator::{Admin, WithToken, admin_at, apply_by, with_token};
use crate::process::{Process, Program, free_port, get};
pub use crate::sluice::Said;

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
    /// How many control planes to start over the one database; 0 is one, like 1.
    pub control_planes: usize,
    /// `--database-url` of the control planes; SQLite in its folder without.
    pub database_url: Option<String>,
    /// Further flags of every control plane.
    pub control_plane_args: Vec<String>,
    /// The control planes whose addresses each node is given, by index; all of them for a node that is not here.
    pub homes: Vec<Vec<usize>>,
    /// Further flags of every node.
    pub node_args: Vec<String>,
    /// Do not make a key.
    pub without_key: bool,
}

/// One or more control planes and their nodes.
pub struct Fleet {
    /// The control plane; of several the first.
    pub control_plane: Process,
    /// The control planes beside it.
    pub others: Vec<Process>,
    /// The nodes, `node-1` first.
    pub nodes: Vec<Process>,
    /// The client key; empty when none was made.
    pub key: String,
    plan: Plan,
    fleet_urls: Vec<String>,
    dir: TempDir,
    is_done: bool,
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
        let several = plan.control_planes > 1;
        let mut fleet_urls = Vec::new();
        let mut started = Vec::new();
        for number in 1..=plan.control_planes.max(1) {
            let (program, url) = control_plane_program(&plan, dir.path(), several.then_some(number))?;
            fleet_urls.push(url);
            started.push(Process::start(program).await?);
        }
        let others = started.split_off(1);
        let control_plane = started.pop().context("no control plane")?;
        let mut fleet = Fleet {
            control_plane,
            others,
            nodes: vec![],
            key: String::new(),
            fleet_urls,
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

    /// Starts one more control plane over the same database and returns its index. Nodes that run do not know of it
    /// unless they were given its address before.
    pub async fn add_control_plane(&mut self) -> anyhow::Result<usize> {
        let number = self.others.len() + 2;
        let (program, url) = control_plane_program(&self.plan, self.dir.path(), Some(number))?;
        self.fleet_urls.push(url);
        self.others.push(Process::start(program).await?);
        Ok(self.others.len())
    }

    /// Starts one more node and returns its index.
    pub async fn add_node(&mut self) -> anyhow::Result<usize> {
        let program = self.node_program()?;
        self.nodes.push(Process::start(program).await?);
        Ok(self.nodes.len() - 1)
    }

    /// Starts one more node that dials these URLs, and returns its index.
    pub async fn add_node_at(&mut self, urls: &[&str]) -> anyhow::Result<usize> {
        let mut program = self.node_program()?;
        let at =
            program.args.iter().position(|arg| arg == "--control-plane").context("no --control-plane")?;
        program.args[at + 1] = urls.join(",");
        self.nodes.push(Process::start(program).await?);
        Ok(self.nodes.len() - 1)
    }

    /// How the next node would be started.
    pub fn node_program(&self) -> anyhow::Result<Program> {
        let id = format!("node-{}", self.nodes.len() + 1);
        let token = self.token_path("node.token");
        let homes = self.plan.homes.get(self.nodes.len());
        let is_home = |at: &usize| homes.is_none_or(|homes| homes.contains(at));
        let urls = (0..).zip(&self.fleet_urls).filter(|(at, _)| is_home(at)).map(|(_, url)| url.as_str());
        let mut args = flags(&[
            ("--node-id", &id),
            ("--control-plane", &urls.collect::<Vec<_>>().join(",")),
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

    /// The URL by which nodes call the first control plane.
    pub fn fleet_url(&self) -> &str {
        self.fleet_urls.first().map_or("", String::as_str)
    }

    /// A control plane, the first one first.
    pub fn plane(&self, at: usize) -> anyhow::Result<&Process> {
        let found = std::iter::once(&self.control_plane).chain(&self.others).nth(at);
        found.with_context(|| format!("no control plane {at}"))
    }

    /// The same, to be stopped and started.
    pub fn plane_mut(&mut self, at: usize) -> anyhow::Result<&mut Process> {
        let found = std::iter::once(&mut self.control_plane).chain(&mut self.others).nth(at);
        found.with_context(|| format!("no control plane {at}"))
    }

    /// An operator of this control plane.
    pub fn at(&self, at: usize) -> anyhow::Result<Operator<'_>> {
        Ok(Operator::of(self.plane(at)?, self.token_path("admin.token")))
    }

    /// Operators of all control planes.
    pub fn operators(&self) -> anyhow::Result<Vec<Operator<'_>>> {
        (0..=self.others.len()).map(|at| self.at(at)).collect()
    }

    fn first(&self) -> Operator<'_> {
        Operator::of(&self.control_plane, self.token_path("admin.token"))
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
        self.first().http(path).await
    }

    /// The file of a token: the control plane's own, or the one that several are given.
    fn token_path(&self, name: &str) -> PathBuf {
        if self.plan.control_planes > 1 {
            return self.dir.path().join(name);
        }
        self.control_plane.data_dir().join(name)
    }

    /// A connection to the admin listener.
    pub fn admin(&self) -> anyhow::Result<Admin> {
        self.first().admin()
    }

    /// A connection to the admin listener with another token.
    pub fn admin_with(&self, token: &str) -> anyhow::Result<Admin> {
        self.first().admin_with(token)
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
        self.first().create_key(name).await
    }

    /// The nodes as the control plane shows them.
    pub async fn list_nodes(&self) -> anyhow::Result<Vec<admin::Node>> {
        self.first().list_nodes().await
    }

    /// One node as the control plane shows it.
    pub async fn node(&self, id: &str) -> anyhow::Result<admin::Node> {
        self.first().node(id).await
    }

    /// Waits until every node that runs shows this revision, in sync, and takes the fleet's key.
    pub async fn in_sync(&self, revision: u64) -> anyhow::Result<()> {
        for node in &self.nodes {
            self.node_in_sync(node.label(), revision).await?;
        }
        self.take_the_key().await
    }

    /// Waits until every node that runs takes the fleet's key.
    pub async fn take_the_key(&self) -> anyhow::Result<()> {
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
        self.first().node_in_sync(id, revision).await
    }

    /// The success really observed, over the last hour.
    pub async fn status(&self) -> anyhow::Result<admin::Status> {
        self.first().status().await
    }

    /// Runs `sluice` against this control plane.
    pub async fn sluice(&self, args: &[&str]) -> anyhow::Result<Said> {
        self.first().sluice(args).await
    }

    /// Every process of the fleet, the control planes first.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        std::iter::once(&self.control_plane).chain(&self.others).chain(&self.nodes)
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

/// How a control plane is started, and by which URL nodes call it. One of several has a number, and the tokens that all
/// are given.
fn control_plane_program(
    plan: &Plan,
    dir: &Path,
    number: Option<usize>,
) -> anyhow::Result<(Program, String)> {
    let fleet_address = format!("127.0.0.1:{}", free_port()?);
    let mut args = flags(&[
        ("--admin-listen", &format!("127.0.0.1:{}", free_port()?)),
        ("--fleet-listen", &fleet_address),
        ("--http-listen", "127.0.0.1:0"),
    ]);
    if let Some(url) = &plan.database_url {
        args.extend(flags(&[("--database-url", url)]));
    }
    if number.is_some() {
        for name in ["admin.token", "node.token"] {
            let path = dir.join(name);
            if !path.exists() {
                std::fs::write(&path, format!("{}-{}\n", name.replace('.', "-"), fastrand::u128(..)))?;
            }
            args.extend(flags(&[(&format!("--{}-file", name.replace('.', "-")), &path.to_string_lossy())]));
        }
    }
    args.extend(plan.control_plane_args.iter().cloned());
    let label = number.map_or("control-plane".to_owned(), |number| format!("control-plane-{number}"));
    let data_dir = dir.join(&label);
    let program =
        Program { binary: "control-plane", label, data_dir, args, env: vec![], ready_at: Some("http") };
    Ok((program, format!("http://{fleet_address}")))
}

/// Installs the TLS provider that HTTP clients want, once.
pub fn init() {
    // It is installed already when another test of this process was here before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect()
}
