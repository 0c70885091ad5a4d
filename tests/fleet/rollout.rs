//! Revisions on their way through the fleet, with real processes: stage by stage, back by themselves when they fail,
//! whoever is killed meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::{self, RolloutState};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::{Provider, Script};
use tokio::time::{Instant, interval};

/// A node that is killed is lost when it missed three heartbeats.
const LOST: Duration = Duration::from_secs(75);

fn numbered(provider: &Provider, number: u64) -> Document {
    chain_of("m", &[provider]).model(&format!("n{number}"), &[provider.name()])
}

/// Writes a document with its way through the fleet.
fn file(fleet: &Fleet, rollout: &str, document: &Document) -> anyhow::Result<String> {
    let path = fleet.dir().join("catalog.toml");
    std::fs::write(&path, format!("[rollout]\n{rollout}\n{}", document.text()))?;
    Ok(path.to_string_lossy().into_owned())
}

async fn rollout(fleet: &Fleet, revision: u64) -> anyhow::Result<admin::Rollout> {
    let mut client = admin::rollout_service_client::RolloutServiceClient::new(fleet.admin()?);
    let answer = client.get_rollout(admin::GetRolloutRequest { revision }).await?.into_inner();
    answer.rollout.context("no rollout in the answer")
}

/// Waits until a rollout is as it should be.
async fn until(
    fleet: &Fleet,
    revision: u64,
    limit: Duration,
    is_so: impl Fn(&admin::Rollout) -> bool,
) -> anyhow::Result<admin::Rollout> {
    eventually(&format!("the rollout of revision {revision} is there"), limit, || async {
        let rollout = rollout(fleet, revision).await?;
        ensure!(is_so(&rollout), "{rollout:?}");
        Ok(rollout)
    })
    .await
}

fn members(rollout: &admin::Rollout) -> BTreeSet<String> {
    rollout.members.iter().map(|member| member.node_id.clone()).collect()
}

fn has_acknowledged(rollout: &admin::Rollout) -> bool {
    rollout.open > 0 && rollout.members.iter().all(|member| member.acknowledged_at_ms > 0)
}

/// How many nodes run a revision, and how many stages were open a moment later.
async fn seen(fleet: &Fleet, revision: u64) -> anyhow::Result<(usize, u32)> {
    let nodes = fleet.list_nodes().await?;
    let run = nodes.iter().filter(|node| node.applied_revision == revision).count();
    Ok((run, rollout(fleet, revision).await?.open))
}

fn index(node: &str) -> anyhow::Result<usize> {
    let number: usize = node.strip_prefix("node-").context("a node of this fleet")?.parse()?;
    Ok(number - 1)
}

#[tokio::test]
async fn a_revision_moves_stage_by_stage_and_never_to_more_nodes_than_its_stage_has() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(4, &numbered(&provider, 1)).await?;
    let file = file(&fleet, "stages = [\"1\", \"50%\", \"100%\"]\nbake = \"3s\"", &numbered(&provider, 2))?;
    let apply = ["catalog", "apply", "-f", &file, "--wait", "-o", "json"];
    let applying = fleet.sluice(&apply);
    let watching = async {
        let mut sizes = BTreeSet::new();
        loop {
            // Not before the revision is there.
            let Ok((run, open)) = seen(&fleet, 2).await else { continue };
            let most = [0, 1, 2, 4][open as usize];
            ensure!(run <= most, "{run} nodes run it in stage {open}");
            sizes.insert(run);
            if run == 4 {
                return Ok(sizes);
            }
        }
    };
    let (said, sizes) = tokio::try_join!(applying, watching)?;
    assert_eq!(said.with_code(0)?.json()?["revision"], 2);
    assert!(sizes.is_superset(&BTreeSet::from([1, 2, 4])), "{sizes:?}");
    assert!(!sizes.contains(&3) || sizes.len() == 5, "{sizes:?}");
    let done = rollout(&fleet, 2).await?;
    assert_eq!((done.state(), done.members.len()), (RolloutState::Done, 4));
    fleet.in_sync(2).await?;
    assert_eq!(fleet.caller(3)?.chat("n2", false).await?.header("x-sluice-revision"), "2");
    fleet.finish()
}

#[tokio::test]
async fn a_bad_revision_reaches_one_node_and_is_undone_by_itself() -> anyhow::Result<()> {
    let (good, bad) = (Provider::start("p1").await?, Provider::start("p2").await?);
    bad.set(Script::Status(500)).await;
    let fleet = Fleet::with_catalog(4, &chain_of("m", &[&good])).await?;
    let file = file(&fleet, "stages = [\"1\", \"100%\"]\nbake = \"10m\"", &chain_of("m", &[&bad]))?;
    let callers = (0..4).map(|node| fleet.caller(node)).collect::<anyhow::Result<Vec<_>>>()?;
    let apply = ["catalog", "apply", "-f", &file, "--wait", "--within", "2m"];
    let applying = fleet.sluice(&apply);
    let calling = async {
        // One call to each node at a time, as a load balancer spreads them.
        let (mut calls, mut failed, mut reached) = (0u32, 0u32, BTreeSet::new());
        let mut while_bad = None;
        let mut ticks = interval(Duration::from_millis(100));
        let give_up_at = Instant::now() + Duration::from_secs(120);
        loop {
            ticks.tick().await;
            for (node, caller) in callers.iter().enumerate() {
                let answer = caller.chat("m", false).await?;
                calls += 1;
                if answer.status != 200 {
                    failed += 1;
                    reached.insert(node);
                    let (first, _) = while_bad.unwrap_or((calls, calls));
                    while_bad = Some((first, calls));
                }
            }
            let newest = fleet.list_nodes().await?;
            ensure!(newest.iter().filter(|node| node.applied_revision == 2).count() <= 1, "{newest:?}");
            if newest.iter().all(|node| node.applied_revision == 3) {
                return Ok((calls, failed, reached, while_bad));
            }
            ensure!(Instant::now() < give_up_at, "it was not undone: {:?}", rollout(&fleet, 2).await?);
        }
    };
    let (said, (calls, failed, reached, while_bad)) = tokio::try_join!(applying, calling)?;
    let said = said.with_code(3)?;
    assert!(said.err.contains("requests fail on the new revision: 0 of"), "{}", said.err);
    assert_eq!(reached.len(), 1, "{reached:?}");
    assert!(
        failed > 0 && failed * 4 < calls,
        "{failed} of {calls} calls failed: more than the share of the stage"
    );
    // Nor while it was out: from the first call that failed to the last, each of four nodes was called in turn.
    let (first, last) = while_bad.context("no call failed")?;
    let out = last - first + 1;
    assert!(failed * 4 <= out + 3, "{failed} of {out} calls failed while it was out");
    let undone = rollout(&fleet, 2).await?;
    assert_eq!((undone.state(), undone.replaced_by, undone.members.len()), (RolloutState::Undone, 3, 1));
    for caller in &callers {
        let answer = caller.chat("m", true).await?;
        assert_eq!((answer.status, answer.header("x-sluice-revision")), (200, "3"));
    }
    let shown = fleet.sluice(&["catalog", "show"]).await?.with_code(0)?;
    assert!(shown.out.contains("revision 1 again: the rollout of revision 2 was undone"), "{}", shown.out);
    fleet.finish()
}

#[tokio::test]
async fn fr_007_a_revision_that_a_node_refuses_is_undone_and_the_others_never_see_it() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(3, &numbered(&provider, 1)).await?;
    let missing = fleet.dir().join("authority-of-nobody.pem");
    let tls = format!("tls = {{ ca = \"file:{}\" }}", missing.display());
    let unbuildable = numbered(&provider, 2)
        .channel("private", "https://private.example/v1", &tls)
        .model("private", &["private"]);
    let file = file(&fleet, "bake = \"10m\"", &unbuildable)?;
    let said = fleet.sluice(&["catalog", "apply", "-f", &file, "--wait"]).await?.with_code(3)?;
    assert!(said.err.contains(" refused it: ") && said.err.contains("authority-of-nobody"), "{}", said.err);
    fleet.in_sync(3).await?;
    assert_eq!(rollout(&fleet, 2).await?.members.len(), 1);
    fleet.finish()
}

#[tokio::test]
async fn a_revision_that_kills_its_node_twice_is_put_aside_and_undone() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(3, &numbered(&provider, 1)).await?;
    let file = file(&fleet, "bake = \"10m\"", &numbered(&provider, 2))?;
    fleet.sluice(&["catalog", "apply", "-f", &file]).await?.with_code(0)?;
    let rollout = until(&fleet, 2, SOON, has_acknowledged).await?;
    let node = index(&rollout.members[0].node_id)?;
    fleet.nodes[node].kill().await?;
    fleet.nodes[node].start_again().await?;
    // One unclean end alone bans nothing.
    fleet.node_in_sync(&rollout.members[0].node_id, 2).await?;
    assert_eq!(self::rollout(&fleet, 2).await?.state(), RolloutState::Running);
    fleet.nodes[node].kill().await?;
    fleet.nodes[node].start_again().await?;
    let undone = until(&fleet, 2, SOON, |rollout| rollout.state() == RolloutState::Undone).await?;
    assert!(undone.reason.contains("put it aside: its process died on it 2 times"), "{}", undone.reason);
    fleet.in_sync(3).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_node_that_is_lost_in_its_stage_pauses_it_until_it_is_back() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(3, &numbered(&provider, 1)).await?;
    let file = file(&fleet, "stages = [\"1\", \"100%\"]\nbake = \"20s\"", &numbered(&provider, 2))?;
    fleet.sluice(&["catalog", "apply", "-f", &file]).await?.with_code(0)?;
    let started = until(&fleet, 2, SOON, has_acknowledged).await?;
    let lost = started.members[0].node_id.clone();
    fleet.nodes[index(&lost)?].kill().await?;
    let paused = until(&fleet, 2, LOST, |rollout| rollout.state() == RolloutState::Paused).await?;
    assert_eq!(paused.reason, format!("{lost} of its stage is lost"));
    assert_eq!(members(&paused), members(&started), "nobody else got it");
    let said = fleet.sluice(&["rollout", "status", "--wait"]).await?.with_code(3)?;
    assert!(said.out.contains(&paused.reason), "{}", said.out);
    fleet.nodes[index(&lost)?].start_again().await?;
    fleet.sluice(&["rollout", "resume"]).await?.with_code(0)?;
    fleet.sluice(&["rollout", "status", "--wait", "--within", "2m"]).await?.with_code(0)?;
    fleet.in_sync(2).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_control_plane_that_is_killed_in_the_middle_goes_on_where_it_was() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(4, &numbered(&provider, 1)).await?;
    let file = file(&fleet, "stages = [\"1\", \"50%\", \"100%\"]\nbake = \"4s\"", &numbered(&provider, 2))?;
    fleet.sluice(&["catalog", "apply", "-f", &file]).await?.with_code(0)?;
    let before = until(&fleet, 2, SOON, |rollout| rollout.open == 2).await?;
    fleet.control_plane.kill().await?;
    fleet.control_plane.start_again().await?;
    let after = rollout(&fleet, 2).await?;
    assert_eq!((after.open, members(&after)), (2, members(&before)), "{after:?}");
    let nodes = fleet.list_nodes().await?;
    assert_eq!(nodes.iter().filter(|node| node.target_revision == 2).count(), 2, "{nodes:?}");
    fleet.sluice(&["rollout", "status", "2", "--wait", "--within", "2m"]).await?.with_code(0)?;
    fleet.in_sync(2).await?;
    fleet.finish()
}

#[tokio::test]
async fn operators_pause_resume_abort_and_supersede_and_scripts_can_tell_by_the_exit_code()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::start(3).await?;
    fleet.sluice(&["rollout", "status"]).await?.with_code(1)?;
    let revision = fleet.apply(&numbered(&provider, 1)).await?;
    fleet.in_sync(revision).await?;
    fleet.sluice(&["rollout", "status", "--wait"]).await?.with_code(0)?;
    fleet.sluice(&["rollout", "status", "99"]).await?.with_code(1)?;
    fleet.sluice(&["rollout", "pause"]).await?.with_code(1)?;

    let second = file(&fleet, "bake = \"1h\"", &numbered(&provider, 2))?;
    let refused = fleet.sluice(&["catalog", "apply", "-f", &second, "--strategy", "immediate"]).await?;
    assert!(refused.with_code(2)?.err.contains("reason"));
    let late = fleet.sluice(&["catalog", "apply", "-f", &second, "--wait", "--within", "1s"]).await?;
    assert!(late.with_code(4)?.err.contains("not through after 1s"));
    let started = until(&fleet, 2, SOON, has_acknowledged).await?;
    fleet.sluice(&["rollout", "status"]).await?.with_code(0)?;
    fleet.sluice(&["rollout", "pause", "--reason", "lunch"]).await?.with_code(0)?;
    let paused = fleet.sluice(&["rollout", "status", "-o", "json"]).await?.with_code(3)?.json()?;
    assert_eq!((&paused["state"], &paused["open"]), (&"paused".into(), &1.into()), "{paused}");
    fleet.sluice(&["rollout", "resume"]).await?.with_code(0)?;
    let (status, page) = fleet.http("/api/v1/status").await?;
    assert!(status == 200 && page.contains("revision 2 running, stage 1 of 3 open"), "{page}");
    let metrics = fleet.http("/metrics").await?.1;
    assert!(metrics.contains("sluice_rollout_state{state=\"running\"} 1"), "{metrics}");

    // The node that has the unproven one is the first to get what takes its place.
    let third = file(&fleet, "bake = \"1h\"", &numbered(&provider, 3))?;
    fleet.sluice(&["catalog", "apply", "-f", &third]).await?.with_code(0)?;
    fleet.sluice(&["rollout", "status", "2"]).await?.with_code(3)?;
    let taken_over = until(&fleet, 3, SOON, has_acknowledged).await?;
    assert_eq!((members(&taken_over), taken_over.base), (members(&started), 1));
    fleet.sluice(&["rollout", "abort", "--reason", "no"]).await?.with_code(0)?;
    fleet.sluice(&["rollout", "status", "3"]).await?.with_code(3)?;
    fleet.in_sync(4).await?;
    assert_eq!(fleet.caller(0)?.chat("n1", false).await?.status, 200);
    fleet.sluice(&["rollout", "status", "--wait"]).await?.with_code(0)?;

    let now = ["catalog", "rollback", "3", "--strategy", "immediate", "--reason", "an outage", "--wait"];
    fleet.sluice(&now).await?.with_code(0)?;
    fleet.in_sync(5).await?;
    fleet.finish()
}
