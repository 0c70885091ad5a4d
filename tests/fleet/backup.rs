//! A backup of a control plane that runs, and the way back while the fleet serves.

use harness::catalog::chain_of;
use harness::fleet::Fleet;
use harness::provider::Provider;

#[tokio::test]
async fn a_restored_backup_is_obeyed_by_nodes_that_run_something_newer() -> anyhow::Result<()> {
    let (first, second) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::with_catalog(2, &chain_of("m", &[&first])).await?;
    let file = fleet.dir().join("sluice.backup");
    let name = file.to_string_lossy().into_owned();
    let said = fleet.sluice(&["backup", &name, "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(said["bytes"].as_u64(), Some(std::fs::metadata(&file)?.len()), "{said}");
    let again = fleet.sluice(&["backup", &name]).await?.with_code(2)?;
    assert!(again.err.contains("is there already") && again.err.contains("--force"), "{}", again.err);

    let newer = fleet.apply(&chain_of("m", &[&second])).await?;
    fleet.in_sync(newer).await?;
    let unsure = fleet.sluice(&["restore", &name]).await?.with_code(2)?;
    assert!(unsure.err.contains("--yes"), "{}", unsure.err);
    let restored = fleet.sluice(&["restore", &name, "--yes", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(restored["revision"].as_u64(), Some(1), "{restored}");
    fleet.in_sync(1).await?;
    for node in 0..2 {
        let answer = fleet.caller(node)?.chat("m", false).await?;
        assert_eq!(answer.header("x-sluice-channel"), "p1", "the chain of the backup is served");
    }
    assert_eq!(fleet.apply(&chain_of("m", &[&second])).await?, 2, "numbers go on from the backup");
    fleet.in_sync(2).await?;

    std::fs::write(&file, "no backup at all, whatever its name says")?;
    let refused = fleet.sluice(&["restore", &name, "--yes"]).await?.with_code(2)?;
    assert!(refused.err.contains("this is no backup of a control plane"), "{}", refused.err);
    fleet.in_sync(2).await?;
    fleet.finish()
}
