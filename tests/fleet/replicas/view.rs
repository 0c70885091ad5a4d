//! Whichever control plane is asked, it shows the whole fleet.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use common::pb::admin;
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{REPORTED, SOON};
use harness::operator::Operator;
use harness::provider::{Provider, Script};
use serde_json::Value;

use super::{fleet_of, leader, metric, name};

/// What the moment of a heartbeat decides, and is a minute old at most.
fn lasting(nodes: Vec<admin::Node>) -> Vec<admin::Node> {
    let lasting = |node| admin::Node { last_seen_at_ms: 0, in_flight: 0, ..node };
    nodes.into_iter().map(lasting).collect()
}

/// What doctors say of the fleet, and not of the control plane that is asked.
async fn doctor(operator: &Operator<'_>) -> anyhow::Result<Vec<Value>> {
    let said = operator.sluice(&["doctor", "-o", "json"]).await?.with_code(0)?.json()?;
    let checks = said["checks"].as_array().context("no checks")?.clone();
    let of_the_fleet = ["schema", "leader", "control planes", "nodes", "versions"];
    Ok(checks.into_iter().filter(|check| of_the_fleet.iter().any(|name| check["name"] == *name)).collect())
}

/// The status page's data, without the time at which it was made.
async fn status(operator: &Operator<'_>) -> anyhow::Result<String> {
    let (_, text) = operator.http("/api/v1/status").await?;
    let mut status: Value = serde_json::from_str(&text)?;
    forget_times(&mut status);
    Ok(status.to_string())
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["at_ms", "last_seen_at_ms", "in_flight"] {
                members.remove(name);
            }
            members.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn every_control_plane_shows_the_nodes_of_all_and_says_the_same_of_them() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let provider = Provider::start("p1").await?;
    let homes = vec![vec![0], vec![1], vec![2]];
    let fleet = fleet_of(postgres.create(&name("view"))?, 3, 3, homes, &provider).await?;
    leader(&fleet, &[0, 1, 2]).await?;

    // A breaker opens on the node of the third one.
    provider.set(Script::Status(500)).await;
    for _ in 0..3 {
        fleet.caller(2)?.chat("m", false).await?;
    }
    let operators = fleet.operators()?;
    for operator in &operators {
        eventually("the open breaker is shown", SOON, || async {
            let status = operator.status().await?;
            let open: Vec<_> = status.channels.iter().flat_map(|channel| channel.open_on.clone()).collect();
            ensure!(open == ["node-3"], "{open:?}");
            Ok(())
        })
        .await?;
        eventually("what was observed is counted", REPORTED, || async {
            let status = operator.status().await?;
            ensure!(status.models.iter().any(|model| model.exhausted == 3), "{status:?}");
            Ok(())
        })
        .await?;
    }
    let shown = eventually("all show the same nodes", SOON, || async {
        let shown = lasting(operators[0].list_nodes().await?);
        for operator in &operators[1..] {
            let other = lasting(operator.list_nodes().await?);
            ensure!(other == shown, "{other:?} is not {shown:?}");
        }
        Ok(shown)
    })
    .await?;
    let at: BTreeSet<&str> = shown.iter().map(|node| node.control_plane.as_str()).collect();
    assert!(at.len() == 3 && !at.contains(""), "{shown:?}");
    assert!(shown.iter().all(|node| node.connected && node.streaming_since_ms > 0), "{shown:?}");

    let (first, page) = (doctor(&operators[0]).await?, status(&operators[0]).await?);
    assert!(first.iter().any(|check| check["name"] == "control planes"), "{first:?}");
    for operator in &operators {
        assert_eq!(doctor(operator).await?, first);
        assert_eq!(status(operator).await?, page);
        let (_, html) = operator.http("/").await?;
        assert!(at.iter().all(|name| html.contains(name)), "{html}");
        for (name, value) in [
            ("sluice_nodes_connected", 3),
            ("sluice_nodes_known", 3),
            ("sluice_control_planes", 3),
            ("sluice_streams", 1),
            ("sluice_nodes_cloned", 0),
            ("sluice_revision", 1),
        ] {
            assert_eq!(metric(operator, name).await?, value, "{name}");
        }
    }

    // What a dry run says of nodes that lack something holds for all, and orders name whom to ask.
    let refused = operators[0].sluice(&["nodes", "drain", "node-2"]).await?;
    let where_it_is = shown.iter().find(|node| node.id == "node-2").context("node-2")?;
    assert!(refused.code == 2 && refused.err.contains(&where_it_is.control_plane), "{refused:?}");
    let listed = operators[1].sluice(&["nodes", "list"]).await?.with_code(0)?;
    assert!(at.iter().all(|name| listed.out.contains(name)), "{}", listed.out);
    provider.set(Script::Healthy).await;
    fleet.apply(&chain_of("m", &[&provider])).await?;
    for operator in &operators {
        operator.node_in_sync("node-3", 2).await?;
    }
    fleet.finish()
}
