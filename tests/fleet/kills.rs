//! `kill -9` at fifty moments of a publish, an apply, a report and a rollout. Each kind of step is cut into as many parts
//! as it gets kills, and each kill comes somewhere in its part: where, the seed says, which a failure names and
//! `SLUICE_TEST_SEED` brings back.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::{self, RolloutState};
use harness::caller::{Outcome, Tally};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Admin, Fleet, Plan, REPORTED, SOON};
use harness::provider::Provider;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::control_plane_down::nothing_failed;
use crate::counters::{audit_is_clean, counted, short_windows, shows_exactly};
use crate::traffic::Traffic;

const PUBLISHES: u32 = 14;
const APPLIES: u32 = 12;
const REPORTS: u32 = 12;
const ROLLOUTS: u32 = 4;
const KILLS_OF_A_ROLLOUT: u32 = 3;
const _: () = assert!(PUBLISHES + APPLIES + REPORTS + ROLLOUTS * KILLS_OF_A_ROLLOUT == 50);

/// Windows of this length are sealed and reported all the time.
const WINDOW: Duration = Duration::from_secs(1);
/// A rollout goes on when the lease of the leader that was killed has ended, twice.
const ROLLED_OUT: Duration = Duration::from_secs(120);

/// The moments at which a kind of step is cut off.
struct Moments {
    seed: u64,
    random: fastrand::Rng,
}

impl Moments {
    fn new() -> anyhow::Result<Self> {
        let seed = match std::env::var("SLUICE_TEST_SEED") {
            Ok(seed) => seed.parse().context("SLUICE_TEST_SEED")?,
            Err(_) => fastrand::u64(..),
        };
        Ok(Moments { seed, random: fastrand::Rng::with_seed(seed) })
    }

    /// Somewhere in part number `point` of `points` of a step that takes so long.
    fn at(&mut self, point: u32, points: u32, step: Duration) -> Duration {
        step.mul_f64((f64::from(point) + self.random.f64()) / f64::from(points))
    }

    fn of(&self, step: &str, point: u32, after: Duration) -> String {
        format!("kill {point} of {step}, after {after:?}; SLUICE_TEST_SEED={}", self.seed)
    }
}

fn numbered(provider: &Provider, number: u32) -> Document {
    chain_of("m", &[provider])
        .model("alone", &[provider.name()])
        .model(&format!("n{number}"), &[provider.name()])
}

/// Applies under a key, so that it can be sent again whatever became of it.
async fn publish(admin: Admin, document: Document, key: String) -> anyhow::Result<u64> {
    let mut client = admin::catalog_service_client::CatalogServiceClient::new(admin);
    let request = admin::ApplyCatalogRequest {
        document: document.text().into_bytes(),
        idempotency_key: key,
        strategy: admin::RolloutStrategy::Immediate.into(),
        reason: "tests".to_owned(),
        ..Default::default()
    };
    Ok(client.apply_catalog(request).await?.into_inner().revision.context("no revision")?.number)
}

async fn newest(fleet: &Fleet) -> anyhow::Result<u64> {
    let shown = fleet.sluice(&["catalog", "history", "-o", "json"]).await?.with_code(0)?.json()?;
    let numbers: Vec<u64> =
        shown["revisions"].as_array().into_iter().flatten().filter_map(|r| r["revision"].as_u64()).collect();
    let newest = numbers.first().copied().unwrap_or_default();
    ensure!(numbers.iter().rev().copied().eq(1..=newest), "a gap, or one twice: {numbers:?}");
    Ok(newest)
}

#[tokio::test]
async fn a_publish_whose_control_plane_is_killed_is_there_whole_or_not_at_all_and_once() -> anyhow::Result<()>
{
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::start_as(short_windows(2)).await?;
    let since = Instant::now();
    let revision = fleet.apply(&numbered(&provider, 0)).await?;
    fleet.in_sync(revision).await?;
    let (took, mut moments) = (since.elapsed(), Moments::new()?);
    let traffic = Traffic::start(&fleet.caller(0)?, "m", 2);
    for point in 0..PUBLISHES {
        let after = moments.at(point, PUBLISHES, took);
        let done = killed_publish(&mut fleet, &provider, point, after).await;
        done.with_context(|| moments.of("a publish", point, after))?;
    }
    fleet.in_sync(u64::from(PUBLISHES) + 1).await?;
    let said = traffic.stop().await?;
    nothing_failed(&said);
    shows_exactly(&fleet, &said.tally).await?;
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

async fn killed_publish(
    fleet: &mut Fleet,
    provider: &Provider,
    point: u32,
    after: Duration,
) -> anyhow::Result<()> {
    let (document, key, wanted) =
        (numbered(provider, point + 1), format!("publish-{point}"), u64::from(point) + 2);
    audit_is_clean(&fleet.at(0)?).await?;
    let publishing = publish(fleet.admin()?, document.clone(), key.clone());
    let killing = async {
        sleep(after).await;
        fleet.control_plane.kill().await
    };
    let (published, killed) = tokio::join!(publishing, killing);
    killed?;
    fleet.control_plane.start_again().await?;
    let there = newest(fleet).await?;
    ensure!(there == wanted || there == wanted - 1, "{there}, not {wanted} or the one before");
    if let Ok(number) = published {
        ensure!((number, there) == (wanted, wanted), "{number} was acknowledged, {there} is there");
    }
    let again = publish(fleet.admin()?, document.clone(), key).await?;
    ensure!((again, newest(fleet).await?) == (wanted, wanted), "sent again, it is {again}");
    let file = fleet.dir().join("catalog.toml");
    std::fs::write(&file, document.text())?;
    fleet.sluice(&["catalog", "diff", "-f", &file.to_string_lossy()]).await?.with_code(0)?;
    fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
    // A fresh process dials at once, so that the next kill meets a node that is there.
    fleet.nodes[1].terminate(SOON).await?;
    fleet.nodes[1].start_again().await?;
    fleet.node_in_sync("node-2", wanted).await
}

#[tokio::test]
async fn fr_001_an_apply_whose_node_is_killed_leaves_what_it_acknowledged_or_what_is_newer()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &numbered(&provider, 0)).await?;
    let since = Instant::now();
    let revision = fleet.apply(&numbered(&provider, 1)).await?;
    fleet.in_sync(revision).await?;
    let (took, mut moments) = (since.elapsed(), Moments::new()?);
    for point in 0..APPLIES {
        let after = moments.at(point, APPLIES, took);
        let done = killed_apply(&mut fleet, &provider, point, after).await;
        done.with_context(|| moments.of("an apply", point, after))?;
    }
    fleet.finish()
}

async fn killed_apply(
    fleet: &mut Fleet,
    provider: &Provider,
    point: u32,
    after: Duration,
) -> anyhow::Result<()> {
    // Before each kill the node gets one that it has not died under yet: a second unclean end would put it aside.
    let fresh = fleet.apply(&numbered(provider, 100 + 2 * point)).await?;
    fleet.in_sync(fresh).await?;
    let since = Instant::now();
    let wanted = fleet.apply(&numbered(provider, 101 + 2 * point)).await?;
    sleep(after.saturating_sub(since.elapsed())).await;
    fleet.nodes[0].kill().await?;
    // Stopped, the control plane still holds what the node acknowledged, and can push nothing.
    let acknowledged = fleet.node("node-1").await?.applied_revision;
    fleet.control_plane.signal("STOP").await?;
    fleet.nodes[0].start_again().await?;
    let caller = fleet.caller(0)?;
    let answer = caller.chat("m", false).await?;
    let served: u64 = answer.header("x-sluice-revision").parse().unwrap_or_default();
    let (models, newest) =
        (caller.models().await?.text(), caller.chat(&format!("n{}", 101 + 2 * point), false).await?);
    fleet.control_plane.signal("CONT").await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
    ensure!(acknowledged >= fresh, "{acknowledged} < {fresh}");
    ensure!((acknowledged..=wanted).contains(&served), "serves {served}, had acknowledged {acknowledged}");
    ensure!(
        (newest.status == 200) == (served == wanted),
        "revision {served} with parts of another: {models}"
    );
    fleet.in_sync(wanted).await
}

#[tokio::test]
async fn a_report_whose_control_plane_or_node_is_killed_is_counted_once() -> anyhow::Result<()> {
    const WORKERS: usize = 3;
    let provider = Provider::start("p1").await?;
    let node_args = vec!["--window".to_owned(), humantime::format_duration(WINDOW).to_string()];
    let mut fleet = Fleet::start_as(Plan { nodes: 2, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&numbered(&provider, 0)).await?;
    fleet.in_sync(revision).await?;
    let mut moments = Moments::new()?;
    let untouched = Traffic::start(&fleet.caller(0)?, "m", WORKERS);
    let (mut seen, mut in_flight) = (Tally::default(), 0);
    for point in 0..REPORTS {
        let after = moments.at(point, REPORTS, WINDOW);
        let killed = async {
            let traffic = Traffic::start(&fleet.caller(1)?, "m", WORKERS);
            // A whole window first, so that one is sealed and reported at some moment of the next second.
            sleep(WINDOW + after).await;
            if point % 2 == 0 {
                audit_is_clean(&fleet.at(0)?).await?;
                fleet.control_plane.kill().await?;
            } else {
                fleet.nodes[1].kill().await?;
                in_flight += WORKERS as u64;
            }
            let said = traffic.stop().await?;
            ensure!(point % 2 == 1 || said.errors.is_empty(), "{:?}", said.errors);
            ensure!(said.tally.of("m", Outcome::Served) == said.tally.answered(), "{:?}", said.tally);
            seen.merge(&said.tally);
            if point % 2 == 0 {
                fleet.control_plane.start_again().await
            } else {
                fleet.nodes[1].start_again().await
            }
        };
        let killed = killed.await;
        killed.with_context(|| moments.of("a report", point, after))?;
    }
    let said = untouched.stop().await?;
    nothing_failed(&said);
    seen.merge(&said.tally);
    for node in 0..2 {
        assert_eq!(fleet.caller(node)?.chat("alone", false).await?.status, 200);
    }
    let status = eventually("the last windows are reported", REPORTED + SOON, || async {
        let status = fleet.status().await?;
        ensure!(counted(&status).0.of("alone", Outcome::Served) == 2, "{status:?}");
        Ok(status)
    })
    .await?;
    let (tally, canceled) = counted(&status);
    let (counts, seen) = (tally.answered() - 2 + canceled, seen.answered());
    assert!(
        (seen..=seen + in_flight).contains(&counts),
        "seen {seen}, in flight {in_flight}, counted {counts}; SLUICE_TEST_SEED={}",
        moments.seed
    );
    let channel = status.channels.iter().find(|channel| channel.channel == "p1").context("no p1")?;
    let (attempts, calls) = (channel.ok + channel.failed + channel.neutral, provider.call_count() as u64);
    assert!(
        (calls - in_flight..=calls).contains(&attempts),
        "the provider saw {calls} calls, {attempts} are counted; SLUICE_TEST_SEED={}",
        moments.seed
    );
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
    fleet.finish()
}

async fn rollout(fleet: &Fleet) -> anyhow::Result<admin::Rollout> {
    let mut client = admin::rollout_service_client::RolloutServiceClient::new(fleet.admin()?);
    let answer = client.get_rollout(admin::GetRolloutRequest { revision: 2 }).await?.into_inner();
    answer.rollout.context("no rollout in the answer")
}

#[tokio::test]
async fn a_rollout_goes_on_over_kills_and_skips_no_gate() -> anyhow::Result<()> {
    let mut rollouts = JoinSet::new();
    for number in 0..ROLLOUTS {
        rollouts.spawn(killed_rollout(number, Moments::new()?));
    }
    while let Some(done) = rollouts.join_next().await {
        done??;
    }
    Ok(())
}

async fn killed_rollout(number: u32, mut moments: Moments) -> anyhow::Result<()> {
    const BAKE_MS: i64 = 1500;
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(3, &numbered(&provider, 0)).await?;
    let traffic = Traffic::start(&fleet.caller(0)?, "m", 1);
    let file = fleet.dir().join("catalog.toml");
    let way = format!("[rollout]\nstages = [\"1\", \"2\", \"100%\"]\nbake = \"{BAKE_MS}ms\"\n");
    std::fs::write(&file, way + &numbered(&provider, 1).text())?;
    fleet.sluice(&["catalog", "apply", "-f", &file.to_string_lossy()]).await?.with_code(0)?;
    let known = Known::default();
    for point in 0..KILLS_OF_A_ROLLOUT {
        // At the beginning of each stage, and later in the bake the higher the number.
        let after = moments.at(number, ROLLOUTS, Duration::from_millis(BAKE_MS as u64));
        let name = moments.of("a rollout", number * KILLS_OF_A_ROLLOUT + point, after);
        let killed = async {
            eventually("its stage opens", ROLLED_OUT, || known.look(&fleet, |rollout| rollout.open >= point))
                .await?;
            sleep(after).await;
            // One with traffic stays; the others in turn.
            let node = 1 + (number + point) as usize % 2;
            if point == 1 {
                fleet.nodes[node].kill().await?;
                fleet.nodes[node].start_again().await?;
            } else {
                fleet.control_plane.kill().await?;
                fleet.control_plane.start_again().await?;
                fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
            }
            known.look(&fleet, |_| true).await
        };
        let killed = killed.await;
        killed.with_context(|| name)?;
    }
    let is_over = |rollout: &admin::Rollout| rollout.state() == RolloutState::Done;
    let done = eventually("it is through", ROLLED_OUT, || known.look(&fleet, is_over)).await;
    let done = done.with_context(|| moments.of("a rollout", number, Duration::ZERO))?;
    let acked =
        |stage: u32| done.members.iter().filter(move |m| m.stage == stage).map(|m| m.acknowledged_at_ms);
    for stage in 1..3 {
        let (last, next) = (acked(stage).max().unwrap_or(0), acked(stage + 1).min().unwrap_or(i64::MAX));
        ensure!(
            last > 0 && next >= last + BAKE_MS,
            "stage {} did not wait for the one before: {done:?}",
            stage + 1
        );
    }
    fleet.in_sync(2).await?;
    nothing_failed(&traffic.stop().await?);
    fleet.finish()
}

/// What was seen of a rollout, which only ever grows.
#[derive(Default)]
struct Known(Mutex<(u32, BTreeSet<String>)>);

impl Known {
    /// Looks at it, and at who runs it: never more than were chosen for the stages that are open.
    async fn look(
        &self,
        fleet: &Fleet,
        is_so: impl Fn(&admin::Rollout) -> bool,
    ) -> anyhow::Result<admin::Rollout> {
        let nodes = fleet.list_nodes().await?;
        let rollout = rollout(fleet).await?;
        let members: BTreeSet<String> = rollout.members.iter().map(|member| member.node_id.clone()).collect();
        let strangers = nodes.iter().find(|node| node.applied_revision == 2 && !members.contains(&node.id));
        // A breach is no reason to look again: it must fail the test.
        assert!(strangers.is_none(), "{strangers:?} is in no stage of {rollout:?}");
        assert_ne!(rollout.state(), RolloutState::Undone, "{rollout:?}");
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(rollout.open >= known.0 && members.is_superset(&known.1), "{known:?} became {rollout:?}");
        *known = (rollout.open, members);
        ensure!(is_so(&rollout), "{rollout:?}");
        Ok(rollout)
    }
}
