//! Upstreams that nobody here wrote, as processes on loopback: a mock of LLM providers with faults, and llama.cpp's
//! server. `tests/run` installs them.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use harness::eventually::eventually;
use harness::fleet::SOON;
use harness::process::{free_port, get};
use harness::tools::tools_dir;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// One of them; it ends when it is dropped.
pub struct Foreign {
    address: SocketAddr,
    // Where its log is, and what it needs.
    dir: TempDir,
    // `None` until it is started.
    child: Option<Child>,
}

impl Foreign {
    /// A free port for a server that does not run yet.
    pub fn new() -> anyhow::Result<Self> {
        harness::fleet::init();
        let dir = tempfile::Builder::new().prefix("sluice-upstream-").tempdir()?;
        Ok(Foreign { address: SocketAddr::from(([127, 0, 0, 1], free_port()?)), dir, child: None })
    }

    /// A folder of its own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a program of the upstreams' environment on the port; it takes `--host` and `--port`.
    pub fn start(&mut self, program: &str, args: &[&str]) -> anyhow::Result<()> {
        let log = File::create(self.dir.path().join("log"))?;
        let child = Command::new(tool(program)?)
            .args(args)
            .args(["--host", &self.address.ip().to_string(), "--port", &self.address.port().to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{program} does not start; tests/run installs it"))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it says that it is well.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let look = || async {
            let (status, text) = get(self.address, "/health").await?;
            ensure!(status == 200, "{status}: {text}");
            Ok(())
        };
        eventually("the upstream is well", SOON, look).await.with_context(|| self.log())
    }

    /// Ends it as a crash would.
    pub async fn crash(&self) -> anyhow::Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("it does not run")?;
        let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().await?;
        ensure!(status.success(), "kill ended with {status}");
        Ok(())
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.wait().await?;
        }
        Ok(())
    }

    /// A URL on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What a path answers to who shows this key.
    pub async fn json(&self, path: &str, key: &str) -> anyhow::Result<Value> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let response = client.get(self.url(path)).bearer_auth(key).send().await?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success(), "{path}: {status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Tells it something.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let response = client.post(self.url(path)).body(body.to_string()).send().await?;
        let status = response.status();
        ensure!(status.is_success(), "{path}: {status}: {}", response.text().await?);
        Ok(())
    }

    /// What it said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

/// A program of the upstreams' environment.
pub fn tool(name: &str) -> anyhow::Result<std::path::PathBuf> {
    Ok(tools_dir()?.join("upstreams/bin").join(name))
}
