//! An operator's hands on one control plane: gRPC, `sluice`, the http listener, and what to wait for there.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::eventually::eventually;
use crate::fleet::SOON;
use crate::process::{Process, get};
use crate::sluice::{self, Said};

/// Somebody with the token of the first admin, at one control plane.
#[derive(Clone)]
pub struct Operator<'a> {
    control_plane: &'a Process,
    token_path: PathBuf,
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

impl<'a> Operator<'a> {
    /// An operator of this control plane, whose token lies there.
    pub fn of(control_plane: &'a Process, token_path: PathBuf) -> Self {
        Operator { control_plane, token_path }
    }

    /// The control plane.
    pub fn control_plane(&self) -> &'a Process {
        self.control_plane
    }

    /// A connection to the admin listener.
    pub fn admin(&self) -> anyhow::Result<Admin> {
        let token = std::fs::read_to_string(&self.token_path).context("admin.token")?;
        self.admin_with(token.trim())
    }

    /// A connection to the admin listener with another token.
    pub fn admin_with(&self, token: &str) -> anyhow::Result<Admin> {
        admin_at(self.control_plane.address("admin")?, token)
    }

    /// What a path of the http listener answers.
    pub async fn http(&self, path: &str) -> anyhow::Result<(u16, String)> {
        get(self.control_plane.address("http")?, path).await
    }

    /// Applies a document to all nodes at once and returns its revision.
    pub async fn apply_text(&self, document: &str) -> anyhow::Result<u64> {
        apply_by(self.admin()?, document.to_owned(), None).await
    }

    /// Makes a client key.
    pub async fn create_key(&self, name: &str) -> anyhow::Result<String> {
        let mut client = admin::key_service_client::KeyServiceClient::new(self.admin()?);
        Ok(client.create_key(admin::CreateKeyRequest { name: name.to_owned() }).await?.into_inner().secret)
    }

    /// The nodes as this control plane shows them.
    pub async fn list_nodes(&self) -> anyhow::Result<Vec<admin::Node>> {
        let mut client = admin::node_service_client::NodeServiceClient::new(self.admin()?);
        Ok(client.list_nodes(admin::ListNodesRequest::default()).await?.into_inner().nodes)
    }

    /// One node as this control plane shows it.
    pub async fn node(&self, id: &str) -> anyhow::Result<admin::Node> {
        let nodes = self.list_nodes().await?;
        nodes.into_iter().find(|node| node.id == id).with_context(|| format!("{id} is not listed"))
    }

    /// Waits until this control plane shows this node in sync with this revision.
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
        let server = format!("http://{}", self.control_plane.address("admin")?);
        let flags =
            [OsStr::new("--server"), server.as_ref(), "--token-file".as_ref(), self.token_path.as_ref()];
        sluice::run(&flags, args).await
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
