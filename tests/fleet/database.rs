//! The same fleet with its control plane on PostgreSQL.

use std::time::Duration;

use anyhow::ensure;
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED};
use harness::provider::Provider;

#[tokio::test]
async fn a_fleet_on_postgresql_applies_serves_counts_and_survives_a_kill() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let database_url = Some(postgres.create(&format!("fleet_{}", std::process::id()))?);
    let p1 = Provider::start("p1").await?;
    let node_args = vec!["--window".to_owned(), "1s".to_owned()];
    let mut fleet = Fleet::start_as(Plan { nodes: 2, database_url, node_args, ..Plan::default() }).await?;
    let document = chain_of("m", &[&p1]);
    let revision = fleet.apply(&document).await?;
    fleet.in_sync(revision).await?;
    for node in [0, 1, 0] {
        assert_eq!(fleet.caller(node)?.chat("m", true).await?.status, 200);
    }
    fleet.control_plane.kill().await?;
    assert_eq!(fleet.caller(1)?.chat("m", false).await?.status, 200);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    fleet.control_plane.start_again().await?;
    let revision = fleet.apply(&document.model("second", &["p1"])).await?;
    assert_eq!(revision, 2);
    fleet.in_sync(revision).await?;
    eventually("every request is counted once", REPORTED, || async {
        let status = fleet.status().await?;
        ensure!(status.models.iter().any(|m| m.model == "m" && m.served == 4), "{status:?}");
        Ok(())
    })
    .await?;
    let history = fleet.sluice(&["catalog", "history", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(history["revisions"].as_array().map(Vec::len), Some(2), "{history}");
    fleet.finish()
}
