//! The database as `psql` shows it: what the documentation tells to ask, and what the audit log says of whoever writes.

use anyhow::ensure;
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::documented::{commands_below, run};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED};
use harness::provider::Provider;

#[tokio::test]
async fn psql_shows_the_success_that_was_observed_as_documented() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let url = postgres.create(&format!("psql_{}", std::process::id()))?;
    let provider = Provider::start("p1").await?;
    let node_args = vec!["--window".to_owned(), "1s".to_owned()];
    let database_url = Some(url.clone());
    let fleet = Fleet::start_as(Plan { nodes: 1, database_url, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.in_sync(revision).await?;
    for _ in 0..3 {
        assert_eq!(fleet.caller(0)?.chat("m", false).await?.status, 200);
    }
    let block = commands_below("### psql")?;
    eventually("the requests are shown", REPORTED, || async {
        let shown = run(&block, &[("SLUICE_DATABASE_URL", &url)], &[])?;
        let row = shown.lines().find(|line| line.trim_start().starts_with("m "));
        let cells: Vec<&str> = row.into_iter().flat_map(|row| row.split('|')).map(str::trim).collect();
        ensure!(cells == ["m", "100.00", "3", "0"], "{shown}");
        Ok(())
    })
    .await?;
    fleet.finish()
}

#[tokio::test]
async fn an_entry_that_somebody_altered_in_the_database_is_named_by_audit_verify() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let url = postgres.create(&format!("tampered_{}", std::process::id()))?;
    let psql = |sql: &str| run("psql -q -c \"$SQL\" \"$URL\"", &[("SQL", sql), ("URL", &url)], &[]);
    let fleet = Fleet::start_as(Plan { database_url: Some(url.clone()), ..Plan::default() }).await?;
    for name in ["second", "third"] {
        fleet.sluice(&["keys", "create", "--name", name]).await?.with_code(0)?;
    }
    let right = fleet.sluice(&["audit", "verify", "-o", "json"]).await?.with_code(0)?.json()?;
    assert!(right["broken"].is_null() && right["entries"].as_u64() >= Some(3), "{right}");

    psql("update audit set actor = 'somebody else' where seq = 2")?;
    let broken = fleet.sluice(&["audit", "verify", "-o", "json"]).await?.with_code(1)?.json()?;
    assert_eq!((&broken["broken"]["number"], &broken["entries"]), (&2.into(), &1.into()), "{broken}");
    let said = fleet.sluice(&["audit", "verify"]).await?.with_code(1)?;
    assert!(said.out.contains("entry 2 cannot be relied on"), "{said:?}");

    psql("update audit set actor = 'admin' where seq = 2")?;
    fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
    psql("delete from audit where seq = 3")?;
    let broken = fleet.sluice(&["audit", "verify", "-o", "json"]).await?.with_code(1)?.json()?;
    assert_eq!(broken["broken"]["number"], 3, "{broken}");
    fleet.finish()
}
