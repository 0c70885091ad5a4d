//! A snapshot that a node refuses: shown with its reason, while the node serves what it had.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::NodeState;
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::provider::{Provider, Script};

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

#[tokio::test]
async fn nodes_are_chosen_by_label_shown_and_sent_away() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    provider.set(Script::Slow { deltas: 20, every: Duration::from_millis(75) }).await;
    let node_args = ["--label", "zone=eu,tier=gold"].map(str::to_owned).to_vec();
    let mut fleet = Fleet::start_as(Plan { nodes: 1, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.in_sync(revision).await?;
    for (label, found) in [("zone=eu", 1), ("zone=us", 0)] {
        let listed = fleet.sluice(&["nodes", "list", "--label", label, "-o", "json"]).await?;
        let listed = listed.with_code(0)?.json()?;
        assert_eq!(listed["nodes"].as_array().map(Vec::len), Some(found), "{label}: {listed}");
    }
    let shown = fleet.sluice(&["nodes", "show", "node-1"]).await?.with_code(0)?.out;
    assert!(shown.contains("tier=gold, zone=eu") && shown.contains("gate-complete"), "{shown}");
    fleet.sluice(&["nodes", "show", "node-9"]).await?.with_code(1)?;
    fleet.sluice(&["nodes", "drain", "node-9"]).await?.with_code(1)?;

    let caller = fleet.caller(0)?;
    let mut stream = tokio::task::JoinSet::new();
    stream.spawn(async move { caller.chat("m", true).await });
    eventually("the stream is under way", SOON, || async {
        ensure!(provider.call_count() == 1);
        Ok(())
    })
    .await?;
    fleet.sluice(&["nodes", "drain", "node-1", "--reason", "maintenance"]).await?.with_code(0)?;
    let answer = stream.join_next().await.context("no stream")???;
    assert_eq!((answer.status, answer.broke.clone()), (200, None));
    assert!(answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
    let status = fleet.nodes[0].ended(Duration::from_secs(15)).await?;
    assert!(status.success(), "{status}");
    assert!(fleet.nodes[0].log().iter().any(|line| line.contains("maintenance")));
    eventually("it is shown as drained", SOON, || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.state() == NodeState::Drained, "{node:?}");
        Ok(())
    })
    .await?;
    let again = fleet.sluice(&["nodes", "drain", "node-1"]).await?.with_code(2)?;
    assert!(again.err.contains("not connected"), "{}", again.err);
    fleet.finish()
}

#[tokio::test]
async fn fr_009_a_channel_that_was_removed_while_a_node_was_away_is_gone_once_it_is_back()
-> anyhow::Result<()> {
    let (kept, removed) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let mut fleet = Fleet::with_catalog(1, &chain_of("m", &[&kept, &removed]).model("old", &["p2"])).await?;
    assert!(fleet.ops(0, "/debug/chains").await?.1.contains("\"p2\""));
    for is_stopped in [true, false] {
        // Gone in order, and cut off without a word.
        if is_stopped {
            fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
        } else {
            fleet.nodes[0].signal("STOP").await?;
        }
        let revision = fleet.apply(&chain_of("m", &[&kept])).await?;
        fleet.control_plane.kill().await?;
        fleet.control_plane.start_again().await?;
        if is_stopped {
            fleet.nodes[0].start_again().await?;
        } else {
            fleet.nodes[0].signal("CONT").await?;
        }
        // In sync is said of equal digests.
        fleet.node_in_sync("node-1", revision).await?;
        let chains = fleet.ops(0, "/debug/chains").await?.1;
        assert!(chains.contains("\"p1\"") && !chains.contains("\"p2\""), "{chains}");
        // What was counted stays; what is of this moment goes with the channel.
        let metrics = fleet.ops(0, "/metrics").await?.1;
        let open = |channel: &str| format!("sluice_breaker_open{{channel=\"{channel}\"}}");
        assert!(metrics.contains(&open("p1")) && !metrics.contains(&open("p2")), "{metrics}");
        assert_eq!(fleet.caller(0)?.chat("old", false).await?.status, 404);
        assert_eq!(removed.call_count(), 0);
        let back = fleet.apply(&chain_of("m", &[&kept, &removed]).model("old", &["p2"])).await?;
        fleet.node_in_sync("node-1", back).await?;
    }
    fleet.finish()
}

#[tokio::test]
async fn a_pinned_node_serves_its_revision_through_applies_and_restarts_until_it_is_unpinned()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(2, &chain_of("m", &[&provider])).await?;
    let mut client = common::pb::admin::node_service_client::NodeServiceClient::new(fleet.admin()?);
    let mut watch = client.watch_nodes(common::pb::admin::WatchNodesRequest::default()).await?.into_inner();
    fleet.sluice(&["nodes", "pin", "node-2", "--revision", "9"]).await?.with_code(1)?;
    fleet.sluice(&["nodes", "pin", "node-2", "--revision", "1", "--reason", "a look"]).await?.with_code(0)?;
    let seen = async {
        while let Some(news) = watch.message().await? {
            if news.nodes.iter().any(|node| node.pin.as_ref().is_some_and(|pin| pin.reason == "a look")) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(SOON, seen).await??;
    drop(watch);

    assert_eq!(fleet.apply(&chain_of("m", &[&provider]).model("n", &["p1"])).await?, 2);
    fleet.node_in_sync("node-1", 2).await?;
    let serves = async |fleet: &Fleet, revision: &str, n: u16| {
        fleet.take_the_key().await?;
        let answer = fleet.caller(1)?.chat("m", false).await?;
        ensure!((answer.status, answer.header("x-sluice-revision")) == (200, revision), "{}", answer.text());
        let status = fleet.caller(1)?.chat("n", false).await?.status;
        ensure!(status == n, "n answers {status}");
        anyhow::Ok(())
    };
    serves(&fleet, "1", 404).await?;
    eventually("the rollout is through without it", SOON, || async {
        let rollout = fleet.sluice(&["rollout", "status", "-o", "json"]).await?.with_code(0)?.json()?;
        ensure!(rollout["state"] == "done", "{rollout}");
        let left_out = serde_json::json!([{"node": "node-2", "pinned_revision": 1}]);
        ensure!(rollout["left_out"] == left_out, "{rollout}");
        Ok(())
    })
    .await?;
    let listed = fleet.sluice(&["nodes", "list"]).await?.with_code(0)?.out;
    assert!(listed.contains("pin 1"), "{listed}");
    let passed = fleet.sluice(&["nodes", "pin", "node-1", "--revision", "1"]).await?.with_code(2)?.err;
    assert!(passed.contains("runs revision 2 already"), "{passed}");

    fleet.control_plane.kill().await?;
    fleet.nodes[1].terminate(Duration::from_secs(15)).await?;
    fleet.control_plane.start_again().await?;
    fleet.nodes[1].start_again().await?;
    fleet.node_in_sync("node-2", 1).await?;
    serves(&fleet, "1", 404).await?;

    fleet.sluice(&["nodes", "unpin", "node-2"]).await?.with_code(0)?;
    fleet.node_in_sync("node-2", 2).await?;
    serves(&fleet, "2", 200).await?;
    let log = fleet.sluice(&["audit", "list", "--action", "node."]).await?.with_code(0)?.out;
    assert!(log.contains("node.pin") && log.contains("node.unpin"), "{log}");
    fleet.finish()
}
