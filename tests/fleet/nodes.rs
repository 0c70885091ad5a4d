//! A snapshot that a node refuses: shown with its reason, while the node serves what it had.

use std::time::Duration;

use anyhow::ensure;
use common::pb::admin::NodeState;
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::Provider;

/// A catalog that is lawful, and that no node can build: the authority's file is on no node.
fn unbuildable(provider: &Provider, missing: &str) -> Document {
    let tls = format!("tls = {{ ca = \"file:{missing}\" }}");
    chain_of("m", &[provider])
        .channel("private", "https://private.example/v1", &tls)
        .model("private", &["private"])
}

async fn refuses(fleet: &Fleet, id: &str, missing: &str) -> anyhow::Result<()> {
    eventually(&format!("{id} is shown to refuse it"), SOON, || async {
        let node = fleet.node(id).await?;
        ensure!(node.state() == NodeState::Rejected && node.connected, "{node:?}");
        ensure!(node.violations.iter().any(|v| v.message.contains(missing)), "{node:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn fr_007_a_rejected_revision_is_shown_with_its_reason_and_the_node_serves_on() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let missing = fleet.dir().join("authority-of-nobody.pem");
    let missing = missing.to_string_lossy().into_owned();
    let revision = fleet.apply(&unbuildable(&provider, &missing)).await?;
    assert_eq!(revision, 2);
    refuses(&fleet, "node-1", &missing).await?;

    let node = fleet.node("node-1").await?;
    assert_eq!((node.applied_revision, node.target_revision), (1, 2), "{node:?}");
    let listed = fleet.sluice(&["nodes", "list"]).await?.with_code(0)?;
    assert!(listed.out.contains("rejected") && listed.out.contains(&missing), "{}", listed.out);
    let json = fleet.sluice(&["nodes", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(json["nodes"][0]["state"], "rejected", "{json}");
    let answer = fleet.caller(0)?.chat("m", true).await?;
    assert_eq!((answer.status, answer.header("x-sluice-revision")), (200, "1"));

    // The rejection is remembered over a restart of either side, and asked for again by nobody.
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    fleet.nodes[0].start_again().await?;
    refuses(&fleet, "node-1", &missing).await?;
    assert_eq!(fleet.caller(0)?.chat("m", true).await?.header("x-sluice-revision"), "1");
    fleet.control_plane.kill().await?;
    fleet.control_plane.start_again().await?;
    refuses(&fleet, "node-1", &missing).await?;

    // A node without anything gets the last revision that a node accepted.
    fleet.add_node().await?;
    eventually("the fresh node serves", SOON, || async {
        let answer = fleet.caller(1)?.chat("m", false).await?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
        Ok(())
    })
    .await?;

    let revision = fleet.apply(&chain_of("m", &[&provider]).model("mended", &["p1"])).await?;
    fleet.in_sync(revision).await?;
    assert!(fleet.node("node-1").await?.violations.is_empty());
    fleet.finish()
}

#[tokio::test]
async fn the_list_of_nodes_says_who_is_there_who_left_and_what_each_runs() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(2, &chain_of("m", &[&provider])).await?;
    let node = fleet.node("node-2").await?;
    assert_eq!(node.data_address, fleet.data_address(1)?.to_string());
    assert_eq!(node.version, env!("CARGO_PKG_VERSION"));
    fleet.nodes[1].terminate(Duration::from_secs(15)).await?;
    eventually("the node that left is shown as drained", SOON, || async {
        let node = fleet.node("node-2").await?;
        ensure!(node.state() == NodeState::Drained && !node.connected, "{node:?}");
        Ok(())
    })
    .await?;
    assert_eq!(fleet.node("node-1").await?.state(), NodeState::InSync);
    fleet.nodes[0].kill().await?;
    // Not before three heartbeats were missed.
    eventually("the node that died is shown as lost", Duration::from_secs(60), || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.state() == NodeState::Lost && !node.connected, "{node:?}");
        Ok(())
    })
    .await?;
    fleet.finish()
}
