//! A node starts from its own copy: at once, whatever the control plane does, whatever a crash left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::NodeState;
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::Provider;
use tokio::time::{Instant, sleep};

/// A catalog that differs by its number.
fn numbered(provider: &Provider, number: u64) -> harness::catalog::Document {
    chain_of("m", &[provider]).model(&format!("n{number}"), &[provider.name()])
}

/// A fleet of one node that took two revisions.
async fn with_two_revisions(provider: &Provider) -> anyhow::Result<Fleet> {
    let fleet = Fleet::with_catalog(1, &numbered(provider, 1)).await?;
    let revision = fleet.apply(&numbered(provider, 2)).await?;
    fleet.in_sync(revision).await?;
    Ok(fleet)
}

/// The revision that a node answers by.
async fn served_revision(fleet: &Fleet) -> anyhow::Result<u64> {
    let answer = fleet.caller(0)?.chat("m", false).await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
    Ok(answer.header("x-sluice-revision").parse()?)
}

/// Every file below a folder.
fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// The file of a node's data folder with this name.
fn kept(fleet: &Fleet, name: &str) -> anyhow::Result<PathBuf> {
    let all = files(fleet.nodes[0].data_dir())?;
    let found = all.iter().find(|path| path.file_name().is_some_and(|n| n == name)).cloned();
    found.with_context(|| format!("no {name} among {all:?}"))
}

#[tokio::test]
async fn a_node_serves_within_500_ms_of_its_start_while_the_control_plane_is_down() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = with_two_revisions(&provider).await?;
    fleet.control_plane.kill().await?;
    let caller = fleet.caller(0)?;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
        let since = Instant::now();
        fleet.nodes[0].spawn()?;
        // Whatever answers first must be the answer: never 404, 401 or 503 on the way.
        let answer = loop {
            match caller.chat("m", false).await {
                Ok(answer) => break answer,
                Err(error) => ensure!(since.elapsed() < SOON, "{error:#}"),
            }
            sleep(Duration::from_millis(2)).await;
        };
        best = best.min(since.elapsed());
        assert_eq!((answer.status, answer.header("x-sluice-revision")), (200, "2"));
        fleet.nodes[0].await_listening().await?;
    }
    assert!(best <= Duration::from_millis(500), "served only after {best:?}");
    fleet.finish()
}

#[tokio::test]
async fn fr_003_a_corrupt_or_half_written_copy_falls_back_to_the_previous_one() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = with_two_revisions(&provider).await?;
    fleet.control_plane.kill().await?;
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    let current = kept(&fleet, "catalog.current")?;
    let whole = std::fs::read(&current)?;
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let previous = std::fs::read(kept(&fleet, "catalog.previous")?)?;
    let damages = [flipped, whole[..whole.len() / 2].to_vec(), vec![], b"not a snapshot at all".to_vec()];
    for damaged in damages {
        std::fs::write(&current, damaged)?;
        std::fs::write(current.with_extension("previous"), &previous)?;
        std::fs::write(current.with_extension("candidate"), b"half")?;
        fleet.nodes[0].start_again().await?;
        assert_eq!(served_revision(&fleet).await?, 1);
        fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    }
    fleet.nodes[0].start_again().await?;
    fleet.control_plane.start_again().await?;
    fleet.in_sync(2).await?;
    assert_eq!(served_revision(&fleet).await?, 2);
    fleet.finish()
}

#[tokio::test]
async fn br_134_without_any_copy_a_node_says_no_config_until_it_has_one() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = with_two_revisions(&provider).await?;
    fleet.control_plane.kill().await?;
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    for name in ["catalog.current", "catalog.previous"] {
        std::fs::write(kept(&fleet, name)?, b"damaged")?;
    }
    fleet.nodes[0].start_again().await?;
    for caller in [fleet.caller(0)?, fleet.caller(0)?.with_key("sk-wrong")] {
        for answer in
            [caller.chat("m", true).await?, caller.chat("no-such", false).await?, caller.models().await?]
        {
            assert_eq!((answer.status, answer.code().as_str()), (503, "no_config"), "{}", answer.text());
        }
    }
    assert_eq!(fleet.ops(0, "/readyz").await?.0, 503);
    assert_eq!(fleet.ops(0, "/healthz").await?.0, 200);
    fleet.control_plane.start_again().await?;
    fleet.in_sync(2).await?;
    assert_eq!(fleet.ops(0, "/readyz").await?.0, 200);
    assert_eq!(served_revision(&fleet).await?, 2);
    fleet.finish()
}

/// Before each kill the node gets a revision that it has not died under yet, so that a second unclean
/// end never quarantines a good one.
#[tokio::test]
async fn fr_001_a_node_killed_at_ten_moments_of_an_apply_never_starts_on_an_older_revision()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &numbered(&provider, 1)).await?;
    for moment in 0..10_u64 {
        let fresh = fleet.apply(&numbered(&provider, 100 + 2 * moment)).await?;
        fleet.in_sync(fresh).await?;
        let wanted = fleet.apply(&numbered(&provider, 101 + 2 * moment)).await?;
        sleep(Duration::from_millis(moment * 4)).await;
        fleet.nodes[0].kill().await?;
        // Stopped, the control plane still holds what the node acknowledged, and can push nothing.
        let acknowledged = fleet.node("node-1").await?.applied_revision;
        fleet.control_plane.signal("STOP").await?;
        fleet.nodes[0].start_again().await?;
        let served = served_revision(&fleet).await?;
        fleet.control_plane.signal("CONT").await?;
        assert!(acknowledged >= fresh, "{acknowledged} < {fresh}");
        assert!(
            (acknowledged..=wanted).contains(&served),
            "moment {moment}: serves {served} after it had acknowledged {acknowledged}"
        );
        fleet.in_sync(wanted).await?;
    }
    fleet.finish()
}

#[tokio::test]
async fn a_revision_that_a_node_dies_under_twice_is_quarantined_and_shown() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = with_two_revisions(&provider).await?;
    for kills in 1..=2 {
        fleet.nodes[0].kill().await?;
        fleet.nodes[0].start_again().await?;
        eventually("it serves", SOON, || served_revision(&fleet)).await?;
        if kills == 1 {
            assert_eq!(served_revision(&fleet).await?, 2, "one kill alone bans nothing");
            fleet.node_in_sync("node-1", 2).await?;
        }
    }
    eventually("the quarantine is shown", SOON, || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.state() == NodeState::Quarantined && node.applied_revision == 1, "{node:?}");
        Ok(())
    })
    .await?;
    assert_eq!(served_revision(&fleet).await?, 1);

    // An operator who knows better ends the quarantine.
    let retried = fleet.sluice(&["nodes", "retry", "node-1", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(retried, serde_json::json!({"node": "node-1", "revisions": [2]}));
    fleet.node_in_sync("node-1", 2).await?;
    assert_eq!(served_revision(&fleet).await?, 2);
    let again = fleet.sluice(&["nodes", "retry", "node-1"]).await?.with_code(0)?;
    assert!(again.out.contains("nothing is in quarantine"), "{}", again.out);
    let revision = fleet.apply(&numbered(&provider, 3)).await?;
    fleet.in_sync(revision).await?;
    fleet.finish()
}
