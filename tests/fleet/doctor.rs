//! What `sluice doctor` says of a fleet.

use anyhow::Context as _;
use harness::catalog::chain_of;
use harness::fleet::Fleet;
use harness::provider::Provider;

#[tokio::test]
async fn a_doctor_looks_at_everything_and_finds_nothing_wrong_with_a_healthy_fleet() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(2, &chain_of("m", &[&provider])).await?;
    let said = fleet.sluice(&["doctor", "-o", "json"]).await?.with_code(0)?.json()?;
    let checks = said["checks"].as_array().context("no checks")?;
    let unwell: Vec<_> = checks.iter().filter(|check| check["verdict"] != "ok").collect();
    assert!(unwell.is_empty(), "{unwell:?}");
    let names: Vec<_> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    let wanted = [
        "database",
        "schema",
        "clock of the database",
        "leader",
        "clock of the caller",
        "jobs",
        "control planes",
        "nodes",
        "versions",
        "secrets",
        "listener",
        "listener",
        "listener",
    ];
    assert_eq!(names, wanted);
    fleet.finish()
}
