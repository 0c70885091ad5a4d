//! A fleet of which the control planes reach their database through a pgbouncer in transaction mode.

use anyhow::{Context as _, ensure};
use harness::bouncer::Bouncer;
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED, SOON};
use harness::operator::Operator;
use harness::provider::Provider;
use serde_json::Value;

/// What the doctor says of the changes of other control planes.
async fn changes(operator: &Operator<'_>) -> anyhow::Result<Value> {
    let said = operator.sluice(&["doctor", "-o", "json"]).await?.with_code(0)?.json()?;
    let checks = said["checks"].as_array().context("no checks")?;
    checks.iter().find(|check| check["name"] == "changes").cloned().context("it says nothing of changes")
}

#[tokio::test]
async fn fr_035_a_fleet_behind_pgbouncer_in_transaction_mode_applies_serves_counts_and_hears_of_changes()
-> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let pooler = Bouncer::start(&postgres, "transaction")?;
    let url = postgres.create(&format!("bouncer_{}", std::process::id()))?;
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::start_as(Plan {
        nodes: 2,
        control_planes: 2,
        database_url: Some(pooler.through(&url)?),
        control_plane_args: vec!["--database-listen-url".to_owned(), url],
        homes: vec![vec![0], vec![1]],
        node_args: vec!["--window".to_owned(), "1s".to_owned()],
        ..Plan::default()
    })
    .await?;
    let document = chain_of("m", &[&provider]);
    let revision = fleet.apply(&document).await?;
    for (at, node) in [(0, "node-1"), (1, "node-2")] {
        fleet.at(at)?.node_in_sync(node, revision).await?;
    }
    fleet.take_the_key().await?;
    for node in [0, 1, 0, 1, 1] {
        assert_eq!(fleet.caller(node)?.chat("m", true).await?.status, 200);
    }
    for operator in fleet.operators()? {
        eventually("every request is counted once", REPORTED, || async {
            let status = operator.status().await?;
            ensure!(status.models.iter().any(|m| m.model == "m" && m.served == 5), "{status:?}");
            Ok(())
        })
        .await?;
        eventually("changes are heard of", SOON, || async {
            let said = changes(&operator).await?;
            ensure!(said["verdict"] == "ok", "{said}");
            Ok(())
        })
        .await?;
    }
    fleet.plane_mut(0)?.kill().await?;
    let next = fleet.at(1)?.apply_text(&document.model("second", &["p1"]).text()).await?;
    fleet.at(1)?.node_in_sync("node-2", next).await?;
    fleet.at(1)?.sluice(&["audit", "verify"]).await?.with_code(0)?;
    fleet.finish()
}

#[tokio::test]
async fn fr_035_without_a_second_way_to_the_database_the_doctor_and_the_log_say_what_is_missing()
-> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let pooler = Bouncer::start(&postgres, "transaction")?;
    let url = postgres.create(&format!("deaf_fleet_{}", std::process::id()))?;
    let database_url = Some(pooler.through(&url)?);
    let fleet = Fleet::start_as(Plan { database_url, control_planes: 2, ..Plan::default() }).await?;
    for operator in fleet.operators()? {
        eventually("the doctor knows", SOON, || async {
            let said = changes(&operator).await?;
            let advice = said["advice"].as_str().unwrap_or_default();
            ensure!(said["verdict"] == "warning" && advice.contains("--database-listen-url"), "{said}");
            Ok(())
        })
        .await?;
        let log = operator.control_plane().log();
        assert!(log.iter().any(|line| line.contains("--database-listen-url")), "{log:?}");
    }
    let revision = fleet.apply(&chain_of("m", &[&Provider::start("p1").await?])).await?;
    eventually("the other one sees the change by itself", SOON, || async {
        let (_, metrics) = fleet.at(1)?.http("/metrics").await?;
        ensure!(metrics.contains(&format!("sluice_revision {revision}\n")), "{metrics}");
        ensure!(metrics.contains("sluice_changes_heard 0\n"), "{metrics}");
        Ok(())
    })
    .await?;
    fleet.finish()
}
