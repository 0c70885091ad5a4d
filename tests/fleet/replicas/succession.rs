//! The leader ends, dies, or stands still, and another control plane goes on.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::{self, RolloutState};
use harness::catalog::Document;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::operator::Operator;
use harness::provider::Provider;
use tokio::time::{Instant, sleep};

use super::{all_served_and_counted, fleet_of, leader, metric, name, numbered, provider, traffic};

/// A lease of the leader holds this long.
const LEASE: Duration = Duration::from_secs(15);
/// Whoever does not lead asks this often.
const ASKED_EVERY: Duration = Duration::from_secs(5);

async fn rollout(operator: &Operator<'_>, revision: u64) -> anyhow::Result<admin::Rollout> {
    let mut client = admin::rollout_service_client::RolloutServiceClient::new(operator.admin()?);
    let answer = client.get_rollout(admin::GetRolloutRequest { revision }).await?.into_inner();
    answer.rollout.context("no rollout in the answer")
}

async fn until(
    operator: &Operator<'_>,
    revision: u64,
    is_so: impl Fn(&admin::Rollout) -> bool,
) -> anyhow::Result<admin::Rollout> {
    eventually(&format!("the rollout of revision {revision} is there"), SOON * 2, || async {
        let rollout = rollout(operator, revision).await?;
        ensure!(is_so(&rollout), "{rollout:?}");
        Ok(rollout)
    })
    .await
}

/// Applies a document in stages at this control plane.
async fn apply(fleet: &Fleet, at: usize, rollout: &str, document: &Document) -> anyhow::Result<()> {
    let path = fleet.dir().join("catalog.toml");
    std::fs::write(&path, format!("[rollout]\n{rollout}\n{}", document.text()))?;
    fleet.at(at)?.sluice(&["catalog", "apply", "-f", &path.to_string_lossy()]).await?.with_code(0)?;
    Ok(())
}

struct Two {
    fleet: Fleet,
    provider: Provider,
    /// Which of the two leads.
    leads: usize,
    other: usize,
    _postgres: Postgres,
}

async fn two(test: &str, nodes: usize, homes: Vec<Vec<usize>>) -> anyhow::Result<Two> {
    let (postgres, provider) = (Postgres::lend()?, provider().await?);
    let fleet = fleet_of(postgres.create(&name(test))?, 2, nodes, homes, &provider).await?;
    let leads = leader(&fleet, &[0, 1]).await?;
    Ok(Two { fleet, provider, leads, other: 1 - leads, _postgres: postgres })
}

#[tokio::test]
async fn a_leader_that_is_killed_is_followed_and_nothing_is_counted_twice_or_lost() -> anyhow::Result<()> {
    let Two { mut fleet, provider, leads, other, _postgres } = two("killed", 2, vec![]).await?;
    let traffic = traffic(&fleet)?;
    sleep(Duration::from_secs(2)).await;
    fleet.plane_mut(leads)?.kill().await?;
    let killed_at = Instant::now();
    assert_eq!(leader(&fleet, &[other]).await?, other);
    let limit = LEASE + ASKED_EVERY + Duration::from_secs(10);
    assert!(killed_at.elapsed() < limit, "{:?}", killed_at.elapsed());
    for node in ["node-1", "node-2"] {
        fleet.at(other)?.node_in_sync(node, 1).await?;
    }
    // The periodic work goes on: what only a leader moves moves.
    apply(&fleet, other, "stages = [\"1\", \"100%\"]\nbake = \"1s\"", &numbered(&provider, 2)).await?;
    until(&fleet.at(other)?, 2, |rollout| rollout.state() == RolloutState::Done).await?;
    fleet.plane_mut(leads)?.start_again().await?;
    assert_eq!(leader(&fleet, &[0, 1]).await?, other, "who comes back follows");
    all_served_and_counted(&fleet, traffic, &[0, 1]).await?;
    fleet.finish()
}

#[tokio::test]
async fn fr_031_a_leader_that_stood_still_does_nothing_under_its_old_lease() -> anyhow::Result<()> {
    let Two { fleet, provider, leads, other, _postgres } = two("stopped", 2, vec![]).await?;
    let traffic = traffic(&fleet)?;
    // The next stage is due while the old leader stands still, and would be opened by it when it goes on.
    apply(&fleet, leads, "stages = [\"1\", \"100%\"]\nbake = \"8s\"", &numbered(&provider, 2)).await?;
    fleet.plane(leads)?.signal("STOP").await?;
    let stopped_at = Instant::now();
    assert_eq!(leader(&fleet, &[other]).await?, other);
    until(&fleet.at(other)?, 2, |rollout| rollout.state() == RolloutState::Done).await?;
    apply(&fleet, other, "stages = [\"1\", \"100%\"]\nbake = \"1h\"", &numbered(&provider, 3)).await?;
    let third = until(&fleet.at(other)?, 3, |rollout| rollout.open == 1).await?;
    sleep((LEASE + ASKED_EVERY).saturating_sub(stopped_at.elapsed())).await;
    fleet.plane(leads)?.signal("CONT").await?;
    fleet.plane(leads)?.says("another control plane leads", SOON).await?;
    for _ in 0..20 {
        assert_eq!(metric(&fleet.at(leads)?, "sluice_leader").await?, 0);
        assert_eq!(metric(&fleet.at(other)?, "sluice_leader").await?, 1);
        let now = rollout(&fleet.at(other)?, 3).await?;
        assert_eq!((now.open, now.state()), (third.open, third.state()), "{now:?}");
        sleep(Duration::from_millis(100)).await;
    }
    eventually("the old leader sees what became of it", SOON, || async {
        let seen = rollout(&fleet.at(leads)?, 3).await?;
        ensure!(seen.members == third.members || seen.open == 1, "{seen:?}");
        Ok(())
    })
    .await?;
    all_served_and_counted(&fleet, traffic, &[0, 1]).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_leader_that_ends_in_order_hands_over_at_once_and_no_caller_notices() -> anyhow::Result<()> {
    let Two { mut fleet, provider: _provider, leads, other, _postgres } = two("handed", 2, vec![]).await?;
    let traffic = traffic(&fleet)?;
    sleep(Duration::from_secs(1)).await;
    let status = fleet.plane_mut(leads)?.terminate(Duration::from_secs(20)).await?;
    let ended_at = Instant::now();
    assert!(status.success(), "{status}");
    assert_eq!(leader(&fleet, &[other]).await?, other);
    // Sooner than by asking, and much sooner than by waiting for the end of the lease.
    assert!(ended_at.elapsed() < ASKED_EVERY - Duration::from_secs(1), "{:?}", ended_at.elapsed());
    for node in ["node-1", "node-2"] {
        fleet.at(other)?.node_in_sync(node, 1).await?;
    }
    eventually("it has said goodbye", Duration::from_secs(6), || async {
        let living = metric(&fleet.at(other)?, "sluice_control_planes").await?;
        ensure!(living == 1, "{living}");
        Ok(())
    })
    .await?;
    fleet.plane_mut(leads)?.start_again().await?;
    all_served_and_counted(&fleet, traffic, &[0, 1]).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_rollout_counts_the_nodes_of_the_others_and_goes_on_when_the_leader_dies_in_its_middle()
-> anyhow::Result<()> {
    // Every node is at the second control plane; the leader is the one that was there first.
    let homes = vec![vec![1]; 4];
    let Two { mut fleet, provider, leads, other, _postgres } = two("rollout", 4, homes).await?;
    let stages = "stages = [\"1\", \"50%\", \"75%\", \"100%\"]\nbake = \"3s\"";
    apply(&fleet, leads, stages, &numbered(&provider, 2)).await?;
    let before = until(&fleet.at(leads)?, 2, |rollout| rollout.open == 2).await?;
    assert_eq!(before.members.len(), 2, "{before:?}");
    let first = before.members.iter().find(|member| member.stage == 1).context("the first stage")?;
    assert!(first.acknowledged_at_ms > 0, "it was seen to run it, wherever it streams: {before:?}");
    if leads == 0 {
        fleet.plane_mut(leads)?.kill().await?;
        let after = rollout(&fleet.at(other)?, 2).await?;
        assert_eq!((after.open, after.members.len()), (2, 2), "{after:?}");
        assert_eq!(leader(&fleet, &[other]).await?, other);
    }
    let done = until(&fleet.at(1)?, 2, |rollout| rollout.state() == RolloutState::Done).await?;
    assert_eq!(done.members.len(), 4);
    for node in ["node-1", "node-2", "node-3", "node-4"] {
        fleet.at(1)?.node_in_sync(node, 2).await?;
    }
    fleet.finish()
}
