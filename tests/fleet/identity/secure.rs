//! A fleet whose listeners speak TLS on loopback: the control plane signs for itself and for its nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::certificate::{self, Facts};
use common::clock::Clock;
use harness::catalog::{Document, OWN_CREDENTIALS, credential};
use harness::eventually::eventually;
use harness::fleet::SOON;
use harness::process::{Process, Program, free_port};
use harness::sluice::{self, Said};
use serde_json::Value;
use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// Nothing else than TLS is different from other fleets.
pub struct Secure {
    /// The control plane.
    pub control_plane: Process,
    /// Where nodes call.
    pub fleet_url: String,
    /// Where operators call.
    pub admin_url: String,
    dir: TempDir,
    ca: PathBuf,
    is_done: bool,
}

impl Secure {
    /// A control plane that has a certificate of its own authority.
    pub async fn start(more: &[&str]) -> anyhow::Result<Self> {
        let names = ["--ca-server-names", "127.0.0.1,localhost"];
        Secure::start_as(
            TempDir::with_prefix("sluice-secure-")?,
            &[&names[..], more].concat(),
            "control-plane/ca.crt",
        )
        .await
    }

    /// A control plane with these flags, whose certificate is signed by `ca`, a path in the folder.
    pub async fn start_as(dir: TempDir, args: &[&str], ca: &str) -> anyhow::Result<Self> {
        harness::fleet::init();
        let (admin, fleet) = (free_port()?, free_port()?);
        let listen = [
            format!("--admin-listen=127.0.0.1:{admin}"),
            format!("--fleet-listen=127.0.0.1:{fleet}"),
            "--http-listen=127.0.0.1:0".to_owned(),
        ];
        let control_plane = Process::start(Program {
            binary: "control-plane",
            label: "control-plane".to_owned(),
            data_dir: dir.path().join("control-plane"),
            args: listen.into_iter().chain(args.iter().map(|arg| (*arg).to_owned())).collect(),
            env: vec![],
            ready_at: None,
        })
        .await?;
        let secure = Secure {
            control_plane,
            fleet_url: format!("https://127.0.0.1:{fleet}"),
            admin_url: format!("https://127.0.0.1:{admin}"),
            ca: dir.path().join(ca),
            dir,
            is_done: false,
        };
        secure.ready().await?;
        Ok(secure)
    }

    /// Waits until the operators' calls are answered.
    pub async fn ready(&self) -> anyhow::Result<()> {
        eventually("the control plane answers over TLS", SOON, || async {
            self.sluice(&["nodes", "list"]).await?.with_code(0).map(drop)
        })
        .await
    }

    /// The folder that everything is in.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The authorities to trust.
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// Runs `sluice` against this control plane.
    pub async fn sluice(&self, args: &[&str]) -> anyhow::Result<Said> {
        let token = self.control_plane.data_dir().join("admin.token");
        let flags = [
            "--server".as_ref(),
            self.admin_url.as_ref(),
            "--ca-file".as_ref(),
            self.ca.as_os_str(),
            "--token-file".as_ref(),
            token.as_os_str(),
        ];
        sluice::run(&flags, args).await
    }

    /// What `sluice … -o json` says.
    pub async fn json(&self, args: &[&str]) -> anyhow::Result<Value> {
        self.sluice(&[args, &["-o", "json"]].concat()).await?.with_code(0)?.json()
    }

    /// Applies a catalog.
    pub async fn apply(&self, catalog: &Document) -> anyhow::Result<()> {
        let file = self.dir().join("catalog.toml");
        std::fs::write(&file, catalog.text())?;
        self.sluice(&["catalog", "apply", "-f", &file.to_string_lossy()]).await?.with_code(0).map(drop)
    }

    /// Makes a token with these flags, and puts it into a file.
    pub async fn token(&self, name: &str, args: &[&str]) -> anyhow::Result<PathBuf> {
        let made = self.json(&[&["tokens", "create"], args].concat()).await?;
        let secret = made["token"].as_str().context("no token")?;
        ensure!(secret.starts_with("enrol-"), "{made}");
        let file = self.dir().join(name);
        std::fs::write(&file, secret)?;
        Ok(file)
    }

    /// A node with this token, if it has one.
    pub fn node(&self, id: &str, token: Option<&Path>) -> Program {
        let mut args: Vec<String> = [
            "--node-id",
            id,
            "--control-plane",
            &self.fleet_url,
            "--control-plane-ca",
            &self.ca.to_string_lossy(),
            "--listen=127.0.0.1:0",
            "--ops-listen=127.0.0.1:0",
            "--allow-anonymous",
            "--window=200ms",
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(token) = token {
            args.extend(["--node-token-file".to_owned(), token.to_string_lossy().into_owned()]);
        }
        Program {
            binary: "gateway-node",
            label: id.to_owned(),
            data_dir: self.dir().join(id),
            args,
            env: OWN_CREDENTIALS.into_iter().chain(["shared"]).map(credential).collect(),
            ready_at: None,
        }
    }

    /// A node as it is shown.
    pub async fn shown(&self, id: &str) -> anyhow::Result<Value> {
        let listed = self.json(&["nodes", "list"]).await?;
        let nodes = listed["nodes"].as_array().context("no list")?;
        nodes.iter().find(|node| node["id"] == id).cloned().with_context(|| format!("{id} is not listed"))
    }

    /// Waits until a node is connected and in sync; returns it as it is shown.
    pub async fn in_sync(&self, id: &str) -> anyhow::Result<Value> {
        eventually(&format!("{id} is in sync"), SOON, || async {
            let node = self.shown(id).await?;
            ensure!(node["connected"] == true && node["state"] == "in_sync", "{node}");
            Ok(node)
        })
        .await
    }

    /// Waits until a node is connected in another process than `boot`.
    pub async fn in_sync_after(&self, id: &str, boot: &Value) -> anyhow::Result<Value> {
        eventually(&format!("{id} is back"), SOON, || async {
            let node = self.shown(id).await?;
            ensure!(node["connected"] == true && node["boot_id"] != *boot, "{node}");
            Ok(node)
        })
        .await
    }

    /// What stands in a node's certificate.
    pub fn certificate(&self, id: &str) -> anyhow::Result<Facts> {
        let chain = certificate::chain(&std::fs::read(self.dir().join(id).join("identity.pem"))?)?;
        certificate::read(chain.first().context("no certificate")?).context("no certificate")
    }

    /// Waits until the certificate in a node's folder is over.
    pub async fn expired(&self, id: &str) -> anyhow::Result<()> {
        eventually("the certificate is over", SOON, || async {
            let left = self.certificate(id)?.expires_at_ms.saturating_sub(Clock::system().now_ms());
            ensure!(left == 0, "{left} ms are left");
            Ok(())
        })
        .await
    }

    /// A connection to the fleet listener, with the key and certificate of a PEM file.
    pub async fn dial(&self, identity: Option<&Path>) -> anyhow::Result<Channel> {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(std::fs::read(&self.ca)?));
        if let Some(path) = identity {
            let pem = std::fs::read(path)?;
            tls = tls.identity(Identity::from_pem(&pem, &pem));
        }
        let endpoint = Endpoint::from_shared(self.fleet_url.clone())?.tls_config(tls)?;
        Ok(endpoint.timeout(Duration::from_secs(10)).connect().await?)
    }

    /// Ends a test that went well: nothing panicked, and no log or file that others read holds a token or a key.
    pub fn finish(mut self, nodes: &[&Process]) -> anyhow::Result<()> {
        for process in nodes.iter().copied().chain([&self.control_plane]) {
            for line in process.log() {
                let is_bad = ["panicked", "enrol-", "PRIVATE KEY"].iter().any(|bad| line.contains(bad));
                ensure!(!is_bad, "{} says: {line}", process.label());
            }
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Secure {
    #[expect(clippy::print_stderr, reason = "the log of a test that failed belongs into its output")]
    fn drop(&mut self) {
        if !self.is_done {
            eprintln!("--- log of the control plane\n{}", self.control_plane.log().join("\n"));
        }
    }
}
