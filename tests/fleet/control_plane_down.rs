//! The control plane is killed, away, or back from an older backup: nodes serve, nobody runs an older
//! revision, and what was applied arrives in the end.

use std::time::Duration;

use anyhow::ensure;
use harness::caller::Outcome;
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON, apply_by};
use harness::process::free_port;
use harness::provider::Provider;
use tokio::time::sleep;

use crate::traffic::{Seen, Traffic};

fn numbered(provider: &Provider, number: u64) -> Document {
    chain_of("m", &[provider]).model(&format!("n{number}"), &[provider.name()])
}

pub fn nothing_failed(seen: &Seen) {
    assert_eq!(seen.errors, Vec::<String>::new());
    assert_eq!(seen.went_back, Vec::<String>::new());
    assert_eq!(seen.tally.of("m", Outcome::Served), seen.tally.answered(), "{:?}", seen.tally);
    assert!(seen.tally.answered() > 0);
}

#[tokio::test]
async fn nodes_serve_while_the_control_plane_is_away_and_take_what_is_new_when_it_is_back()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(2, &numbered(&provider, 1)).await?;
    let traffic = [Traffic::start(&fleet.caller(0)?, "m", 2), Traffic::start(&fleet.caller(1)?, "m", 2)];
    fleet.control_plane.kill().await?;
    sleep(Duration::from_secs(3)).await;
    for node in 0..2 {
        assert_eq!(fleet.ops(node, "/readyz").await?.0, 200, "a node without its control plane is ready");
    }
    fleet.control_plane.start_again().await?;
    fleet.in_sync(1).await?;
    let revision = fleet.apply(&numbered(&provider, 2)).await?;
    assert_eq!(revision, 2, "the control plane remembers what was");
    fleet.in_sync(revision).await?;
    for traffic in traffic {
        nothing_failed(&traffic.stop().await?);
    }
    fleet.finish()
}

#[tokio::test]
async fn a_control_plane_killed_during_pushes_leaves_every_node_on_the_head_and_no_request_fails()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(2, &numbered(&provider, 0)).await?;
    let traffic = [Traffic::start(&fleet.caller(0)?, "m", 2), Traffic::start(&fleet.caller(1)?, "m", 2)];
    let mut head = 1;
    for moment in 1..=6 {
        // The apply may be cut by the kill: then it is either in the history whole, or not at all.
        let document = numbered(&provider, moment);
        let apply = apply_by(fleet.admin()?, document.text(), None);
        let kill = async {
            sleep(Duration::from_millis(moment * 5)).await;
            fleet.control_plane.kill().await
        };
        let (applied, killed) = tokio::join!(apply, kill);
        killed?;
        fleet.control_plane.start_again().await?;
        let shown = fleet.sluice(&["catalog", "history", "-o", "json"]).await?.with_code(0)?.json()?;
        let newest = shown["revisions"][0]["revision"].as_u64().unwrap_or_default();
        assert!(newest == head || newest == head + 1, "{newest} after {head}");
        if let Ok(revision) = applied {
            assert_eq!(revision, newest, "an acknowledged apply is lost");
        }
        head = newest;
        fleet.in_sync(head).await?;
    }
    for traffic in traffic {
        nothing_failed(&traffic.stop().await?);
    }
    fleet.finish()
}

#[tokio::test]
async fn fr_005_a_change_at_the_moment_at_which_a_node_connects_is_not_lost() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(0, &numbered(&provider, 0)).await?;
    for round in 1..=6 {
        let index = fleet.add_node().await?;
        sleep(Duration::from_millis(round * 3)).await;
        let revision = fleet.apply(&numbered(&provider, round)).await?;
        fleet.in_sync(revision).await?;
        assert_eq!(fleet.caller(index)?.chat(&format!("n{round}"), false).await?.status, 200);
    }
    fleet.finish()
}

/// A fleet on revision 2 whose control plane then came back from a backup of revision 1, started
/// with `flags`.
async fn restored(provider: &Provider, flags: &[&str]) -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::with_catalog(1, &numbered(provider, 1)).await?;
    fleet.control_plane.terminate(Duration::from_secs(15)).await?;
    let folder = fleet.control_plane.data_dir().to_path_buf();
    let backup = fleet.dir().join("backup");
    copy(&folder, &backup)?;
    fleet.control_plane.start_again().await?;
    let revision = fleet.apply(&numbered(provider, 2)).await?;
    fleet.in_sync(revision).await?;

    fleet.control_plane.kill().await?;
    std::fs::remove_dir_all(&folder)?;
    copy(&backup, &folder)?;
    fleet.control_plane.program_mut().args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    fleet.control_plane.start_again().await?;
    eventually("the node is connected again", SOON, || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.connected && node.target_revision == 1, "{node:?}");
        Ok(())
    })
    .await?;
    Ok(fleet)
}

#[tokio::test]
async fn fr_011_a_lower_revision_of_the_same_epoch_is_refused() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = restored(&provider, &[]).await?;
    let caller = fleet.caller(0)?;
    for _ in 0..20 {
        assert_eq!(caller.chat("m", false).await?.header("x-sluice-revision"), "2", "it went back");
        sleep(Duration::from_millis(100)).await;
    }
    let node = fleet.node("node-1").await?;
    assert_eq!(node.applied_revision, 2, "{node:?}");
    for number in 3..=4 {
        fleet.apply(&numbered(&provider, number)).await?;
    }
    fleet.in_sync(3).await?;
    assert_eq!(caller.chat("n4", false).await?.header("x-sluice-revision"), "3");
    fleet.finish()
}

#[tokio::test]
async fn a_restored_backup_with_a_new_epoch_is_obeyed() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = restored(&provider, &["--new-epoch"]).await?;
    fleet.in_sync(1).await?;
    let caller = fleet.caller(0)?;
    assert_eq!(caller.chat("n1", false).await?.header("x-sluice-revision"), "1");
    assert_eq!(caller.chat("n2", false).await?.status, 404, "what was restored has no such model");
    let revision = fleet.apply(&numbered(&provider, 5)).await?;
    assert_eq!(revision, 2);
    fleet.in_sync(revision).await?;
    assert_eq!(caller.chat("n5", false).await?.header("x-sluice-revision"), "2");
    fleet.finish()
}

#[tokio::test]
async fn fr_047_one_dead_control_plane_of_several_blocks_nothing() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(0, &numbered(&provider, 1)).await?;
    let mut program = fleet.node_program()?;
    let dead = format!("http://127.0.0.1:{}", free_port()?);
    let at = program.args.iter().position(|arg| arg == "--control-plane").unwrap() + 1;
    program.args[at] = format!("{dead},{}", program.args[at]);
    fleet.nodes.push(harness::process::Process::start(program).await?);
    fleet.in_sync(1).await?;
    assert_eq!(fleet.caller(0)?.chat("m", true).await?.status, 200);
    fleet.finish()
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?
        } else {
            std::fs::copy(entry.path(), target).map(|_| ())?
        }
    }
    Ok(())
}
