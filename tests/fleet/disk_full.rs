//! A disk is full: of a node, which serves on and loses no count, and of the control plane, which says so, keeps nothing
//! half-written, and goes on when there is room. Files that must not grow stand for it (`Process::limit_files`): that asks
//! for no rights, and a write that would pass the limit is done in part, as on a disk that runs full.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::Provider;
use tokio::time::Instant;

use crate::control_plane_down::nothing_failed;
use crate::counters::{audit_is_clean, short_windows, shows_exactly};
use crate::traffic::Traffic;

fn numbered(provider: &Provider, number: u64) -> Document {
    chain_of("m", &[provider]).model(&format!("n{number}"), &[provider.name()])
}

/// A fleet with short windows on revision 1.
async fn fleet_of(nodes: usize, provider: &Provider) -> anyhow::Result<Fleet> {
    let fleet = Fleet::start_as(short_windows(nodes)).await?;
    let revision = fleet.apply(&numbered(provider, 1)).await?;
    fleet.in_sync(revision).await?;
    Ok(fleet)
}

/// What a metric of a node shows.
async fn metric(fleet: &Fleet, node: usize, name: &str) -> anyhow::Result<u64> {
    let (_, text) = fleet.ops(node, "/metrics").await?;
    let line = text.lines().find(|line| line.starts_with(name)).with_context(|| format!("no {name}"))?;
    let value: f64 = line.rsplit(' ').next().context("a value")?.parse()?;
    Ok(value as u64)
}

#[tokio::test]
async fn a_node_whose_disk_is_full_serves_on_counts_in_memory_and_loses_nothing() -> anyhow::Result<()> {
    const FAILURES: &str = "sluice_journal_write_failures_total";
    let provider = Provider::start("p1").await?;
    let mut fleet = fleet_of(2, &provider).await?;
    let traffic = Traffic::start(&fleet.caller(0)?, "m", 2);
    // First a journal that breaks off in the middle of a count, then no byte more.
    fleet.nodes[0].limit_files(Some(2000)).await?;
    eventually("counts cannot be written", SOON, || async {
        ensure!(metric(&fleet, 0, FAILURES).await? > 0, "none failed");
        Ok(())
    })
    .await?;
    fleet.nodes[0].limit_files(Some(0)).await?;
    let failed = metric(&fleet, 0, FAILURES).await?;

    // What cannot be kept for a restart is not served: it is refused, shown, and comes again.
    let revision = fleet.apply(&numbered(&provider, 2)).await?;
    fleet.node_in_sync("node-2", revision).await?;
    let refused = eventually("the refusal is shown", SOON, || async {
        let node = fleet.node("node-1").await?;
        ensure!(format!("{node:?}").contains("cannot keep it on disk"), "{node:?}");
        Ok(node)
    })
    .await?;
    assert_eq!(refused.applied_revision, 1, "{refused:?}");
    eventually("more counts cannot be written", SOON, || async {
        let more = metric(&fleet, 0, FAILURES).await?;
        ensure!(more > failed + 20, "{more} after {failed}");
        Ok(())
    })
    .await?;
    let answer = fleet.caller(0)?.chat("m", false).await?;
    assert_eq!((answer.status, answer.header("x-sluice-revision")), (200, "1"));
    assert_eq!(fleet.ops(0, "/readyz").await?.0, 200);
    let extra = 1;

    fleet.nodes[0].limit_files(None).await?;
    fleet.in_sync(revision).await?;
    let said = traffic.stop().await?;
    nothing_failed(&said);
    let mut seen = said.tally;
    *seen.seen.entry(("m".to_owned(), harness::caller::Outcome::Served)).or_default() += extra;
    let status = shows_exactly(&fleet, &seen).await?;
    let channel = status.channels.iter().find(|channel| channel.channel == "p1").context("no p1")?;
    assert_eq!(channel.ok + channel.failed + channel.neutral, provider.call_count() as u64, "{channel:?}");
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_node_that_starts_on_a_full_disk_serves_what_it_last_had() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = fleet_of(1, &provider).await?;
    let caller = fleet.caller(0)?;
    fleet.nodes[0].kill().await?;
    fleet.nodes[0].limit_files(Some(0)).await?;
    // It cannot write where it listens either, so that nothing is waited for but an answer.
    fleet.nodes[0].spawn()?;
    eventually("it serves", SOON, || async {
        let answer = caller.chat("m", false).await?;
        ensure!((answer.status, answer.header("x-sluice-revision")) == (200, "1"), "{}", answer.text());
        Ok(())
    })
    .await?;
    fleet.nodes[0].limit_files(None).await?;
    let revision = fleet.apply(&numbered(&provider, 2)).await?;
    fleet.in_sync(revision).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_control_plane_whose_disk_is_full_says_so_keeps_nothing_half_written_and_recovers()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = fleet_of(1, &provider).await?;
    let traffic = Traffic::start(&fleet.caller(0)?, "m", 2);
    let log = fleet.control_plane.data_dir().join("sluice.db-wal");
    let file = fleet.dir().join("catalog.toml");
    std::fs::write(&file, numbered(&provider, 2).text())?;
    let file = file.to_string_lossy().into_owned();
    let apply = ["catalog", "apply", "-f", &file];
    // The end of the room lies in the middle of a transaction, then before each.
    for room in [std::fs::metadata(&log)?.len() + 6_000, 0] {
        fleet.control_plane.limit_files(Some(room)).await?;
        let since = Instant::now();
        // A checkpoint may make room once in the log.
        let said = eventually("an apply meets the end of the room", SOON, || async {
            fleet.sluice(&["keys", "create", "--name", "more"]).await?.with_code(2)
        })
        .await?;
        assert!(said.err.contains("its disk is full"), "{}", said.err);
        let said = fleet.sluice(&apply).await?.with_code(2)?;
        assert!(said.err.contains("its disk is full"), "{}", said.err);
        assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
        let shown = fleet.sluice(&["catalog", "history", "-o", "json"]).await?.with_code(0)?.json()?;
        assert_eq!(shown["revisions"].as_array().map(Vec::len), Some(1), "{shown}");
        assert_eq!(fleet.http("/readyz").await?.0, 200);
        assert_eq!(fleet.http("/api/v1/status").await?.0, 200);
        assert!(fleet.node("node-1").await?.connected);
        eventually("reports wait", SOON, || async {
            ensure!(metric(&fleet, 0, "sluice_spooled_windows").await? > 0, "none waits");
            Ok(())
        })
        .await?;
    }
    fleet.control_plane.limit_files(None).await?;
    let said = eventually("an apply goes through", SOON, || async {
        fleet.sluice(&["catalog", "apply", "-f", &file, "-o", "json"]).await?.with_code(0)?.json()
    })
    .await?;
    assert_eq!(said["revision"], 2);
    fleet.in_sync(2).await?;
    fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
    let said = traffic.stop().await?;
    nothing_failed(&said);
    shows_exactly(&fleet, &said.tally).await?;
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}
