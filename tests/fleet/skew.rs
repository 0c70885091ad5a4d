//! Nodes of other versions: one that lacks what a catalog needs, shown before and after it is published, and one that
//! knows more than this control plane. And what real nodes say of a catalog before it is theirs.

use anyhow::{Context as _, ensure};
use common::pb::admin::NodeState;
use common::pb::fleet as pb;
use common::snapshot::{decode, unpack};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON, with_token};
use harness::provider::Provider;
use pb::fleet_sync_client::FleetSyncClient;
use pb::sync_request::Message as Up;
use pb::sync_response::Message as Down;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Endpoint;

/// A node of another version, as far as the control plane sees it.
struct Foreign {
    tx: mpsc::Sender<pb::SyncRequest>,
    rx: Streaming<pb::SyncResponse>,
}

impl Foreign {
    async fn connect(fleet: &Fleet, hello: pb::Hello) -> anyhow::Result<Self> {
        let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
        let channel = Endpoint::from_shared(fleet.fleet_url().to_owned())?.connect().await?;
        let mut client = FleetSyncClient::with_interceptor(channel, with_token(token.trim())?);
        let (tx, requests) = mpsc::channel(8);
        tx.send(pb::SyncRequest { message: Some(Up::Hello(hello)) }).await?;
        let rx = client.sync(ReceiverStream::new(requests)).await?.into_inner();
        Ok(Foreign { tx, rx })
    }

    /// The next update; what else comes is passed over.
    async fn update(&mut self) -> anyhow::Result<pb::ConfigUpdate> {
        loop {
            let message = self.rx.message().await?.context("the stream ended")?;
            if let Some(Down::Update(update)) = message.message {
                return Ok(update);
            }
        }
    }

    /// Takes an update as it is.
    async fn acknowledge(&self, update: &pb::ConfigUpdate) -> anyhow::Result<()> {
        let ack = pb::ConfigAck {
            update_id: update.update_id,
            result: pb::AckResult::Applied.into(),
            applied: update.target.clone(),
            ..Default::default()
        };
        Ok(self.tx.send(pb::SyncRequest { message: Some(Up::Ack(ack)) }).await?)
    }
}

fn revision(update: &pb::ConfigUpdate) -> u64 {
    update.target.as_ref().and_then(|target| target.catalog.as_ref()).map_or(0, |part| part.version)
}

fn hello(id: &str, version: &str) -> pb::Hello {
    pb::Hello {
        node_id: id.to_owned(),
        boot_id: format!("{id}-boot"),
        version: version.to_owned(),
        schema: 1,
        features: common::feature::known().into_iter().collect(),
        ..Default::default()
    }
}

/// A catalog that needs more of a node than the plain one.
fn demanding(provider: &Provider) -> Document {
    chain_of("m", &[provider]).channel("other", "https://other.example/v1", "include_usage = true")
}

#[tokio::test]
async fn a_node_that_lacks_a_feature_is_listed_before_publishing_and_keeps_what_it_has() -> anyhow::Result<()>
{
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let mut older = hello("older", "0.0.9");
    older.features.retain(|feature| feature != "include-usage");
    let mut older = Foreign::connect(&fleet, older).await?;
    let first = older.update().await?;
    assert_eq!(revision(&first), 1);
    older.acknowledge(&first).await?;
    fleet.node_in_sync("older", 1).await?;
    // A later version knows more, and needs no less.
    let mut newer = hello("newer", "9.9.9");
    newer.schema += 1;
    newer.features.push("telepathy".to_owned());
    let mut newer = Foreign::connect(&fleet, newer).await?;
    let sent = newer.update().await?;
    newer.acknowledge(&sent).await?;
    fleet.node_in_sync("newer", 1).await?;

    let document = fleet.dir().join("demanding.toml");
    std::fs::write(&document, demanding(&provider).text())?;
    let file = document.to_string_lossy().into_owned();
    let dry = ["catalog", "apply", "-f", &file, "--dry-run"];
    let json = fleet.sluice(&[&dry[..], &["-o", "json"]].concat()).await?.with_code(0)?.json()?;
    let listed = serde_json::json!([{"node": "older", "version": "0.0.9", "lacks": ["include-usage"]}]);
    assert_eq!(json["incompatible"], listed, "{json}");
    let at_once = ["--strategy", "immediate", "--reason", "a test"];
    let applied =
        fleet.sluice(&[&["catalog", "apply", "-f", &file], &at_once[..]].concat()).await?.with_code(0)?;
    assert!(applied.out.contains("older") && applied.out.contains("include-usage"), "{}", applied.out);

    fleet.node_in_sync("node-1", 2).await?;
    let sent = newer.update().await?;
    assert_eq!(revision(&sent), 2);
    let digest = &sent.target.as_ref().and_then(|t| t.catalog.as_ref()).context("no catalog")?.sha256;
    let snapshot: pb::Snapshot = decode(&unpack(&sent.catalog_zstd, digest)?)?;
    assert!(snapshot.features.iter().any(|feature| feature == "include-usage"));
    eventually("the older node is shown as incompatible", SOON, || async {
        let node = fleet.node("older").await?;
        ensure!(node.state() == NodeState::Incompatible && node.applied_revision == 1, "{node:?}");
        ensure!(node.violations.iter().any(|v| v.message.contains("include-usage")), "{node:?}");
        Ok(())
    })
    .await?;
    // What is no catalog still comes, beside the catalog that it has.
    fleet.create_key("another").await?;
    let keys = older.update().await?;
    assert_eq!((revision(&keys), keys.catalog_zstd.is_empty(), keys.keys_zstd.is_empty()), (1, true, false));
    older.acknowledge(&keys).await?;
    // It is served again by what it knows.
    let back = fleet.apply(&chain_of("m", &[&provider])).await?;
    assert_eq!(revision(&older.update().await?), back);
    fleet.finish()
}

#[tokio::test]
async fn a_dry_run_asks_real_nodes_what_they_would_make_of_it_and_changes_nothing() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(2, &chain_of("m", &[&provider])).await?;
    let good = fleet.dir().join("good.toml");
    std::fs::write(&good, chain_of("m", &[&provider]).model("n", &["p1"]).text())?;
    let missing = fleet.dir().join("authority-of-nobody.pem");
    let missing = missing.to_string_lossy().into_owned();
    let tls = format!("tls = {{ ca = \"file:{missing}\" }}");
    let bad = fleet.dir().join("bad.toml");
    let private = chain_of("m", &[&provider]).channel("private", "https://private.example/v1", &tls);
    std::fs::write(&bad, private.text())?;
    let probe = |file: &std::path::Path, count: &str| {
        let file = file.to_string_lossy().into_owned();
        let args = ["catalog", "apply", "-f", &file, "--dry-run", "--probe", count];
        args.map(str::to_owned).to_vec()
    };
    let run = async |args: Vec<String>| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        fleet.sluice(&args).await
    };

    let said = run(probe(&good, "2")).await?.with_code(0)?;
    assert_eq!(said.out.matches("accepted").count(), 2, "{}", said.out);
    let said = run(probe(&good, "3")).await?.with_code(0)?;
    assert!(said.out.contains("2 of 3 nodes could be asked"), "{}", said.out);
    let json = run([probe(&bad, "1"), vec!["-o".to_owned(), "json".to_owned()]].concat()).await?;
    let json = json.with_code(2)?.json()?;
    let probes = json["probes"].as_array().context("no probes")?;
    assert_eq!((probes.len(), probes[0]["result"].as_str()), (1, Some("refused")), "{json}");
    assert!(probes[0]["violations"].to_string().contains(&missing), "{json}");

    for index in 0..2 {
        let node = fleet.node(fleet.nodes[index].label()).await?;
        assert_eq!((node.state(), node.applied_revision), (NodeState::InSync, 1), "{node:?}");
        let answer = fleet.caller(index)?.chat("m", false).await?;
        assert_eq!((answer.status, answer.header("x-sluice-revision")), (200, "1"));
        let metrics = fleet.ops(index, "/metrics").await?.1;
        assert!(!metrics.contains("private"), "a probe left a metric behind");
    }
    fleet.finish()
}
