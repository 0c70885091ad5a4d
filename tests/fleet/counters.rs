//! The counts that the control plane shows are those that callers and providers saw: exactly, over
//! failures, an absent control plane and killed processes.

use std::time::Duration;

use anyhow::ensure;
use common::pb::admin::Status;
use harness::caller::{Caller, Outcome, Tally};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED};
use harness::operator::Operator;
use harness::provider::{Provider, Script};
use tokio::time::sleep;

use crate::traffic::Traffic;

/// What the control plane counted, in the words of a tally; `canceled` beside it.
pub fn counted(status: &Status) -> (Tally, u64) {
    let mut tally = Tally::default();
    let mut canceled = 0;
    for model in &status.models {
        let outcomes = [
            (Outcome::Served, model.served),
            (Outcome::Exhausted, model.exhausted),
            (Outcome::Cut, model.cut),
            (Outcome::BadRequest, model.bad_request),
        ];
        for (outcome, count) in outcomes.into_iter().filter(|(_, count)| *count > 0) {
            tally.seen.insert((model.model.clone(), outcome), count);
        }
        canceled += model.canceled;
    }
    (tally, canceled)
}

fn refused(status: &Status) -> u64 {
    status.models.iter().map(|model| model.refused).sum()
}

/// Waits until the control plane shows exactly this.
pub async fn shows_exactly(fleet: &Fleet, seen: &Tally) -> anyhow::Result<Status> {
    let mut wanted = seen.clone();
    wanted.seen.retain(|(_, outcome), _| *outcome != Outcome::Refused);
    eventually("the counters are what callers saw", REPORTED, || async {
        let status = fleet.status().await?;
        let (counted, _) = counted(&status);
        ensure!(counted == wanted, "counted {counted:?}, seen {wanted:?}");
        Ok(status)
    })
    .await
}

/// The sums agree with the running totals, by the control plane's own audit.
pub async fn audit_is_clean(operator: &Operator<'_>) -> anyhow::Result<()> {
    let (_, metrics) = operator.http("/metrics").await?;
    let line = metrics.lines().find(|line| line.starts_with("sluice_counter_audit_mismatch_total"));
    ensure!(line.is_some_and(|line| line.ends_with(" 0")), "{line:?}");
    Ok(())
}

async fn ask(caller: &Caller, tally: &mut Tally, model: &str, times: u32) {
    for number in 0..times {
        tally.add(model, &caller.chat(model, number % 2 == 0).await);
    }
}

/// Breakers stay out of the way, so that the numbers are known.
fn catalog(providers: &[&Provider]) -> Document {
    chain_of("m", providers)
        .model("alone", &["p1"])
        .policy("breaker = { failures = 1000, window = \"5m\", cooldown = \"60s\" }")
}

#[tokio::test]
async fn br_097_every_outcome_is_counted_as_the_callers_and_the_providers_saw_it() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    // The default length of a window, so that this test sees what operators run.
    let fleet = Fleet::with_catalog(1, &catalog(&[&p1, &p2])).await?;
    let caller = fleet.caller(0)?;
    let mut seen = Tally::default();

    ask(&caller, &mut seen, "m", 6).await;
    p1.set(Script::Status(503)).await;
    ask(&caller, &mut seen, "m", 4).await;
    p2.set(Script::Status(500)).await;
    ask(&caller, &mut seen, "m", 3).await;
    p1.set(Script::Status(400)).await;
    ask(&caller, &mut seen, "m", 2).await;
    p1.set(Script::Cut).await;
    seen.add("m", &caller.chat("m", true).await);
    p1.set(Script::NoFinish).await;
    seen.add("alone", &caller.chat("alone", true).await);
    p1.set(Script::Healthy).await;
    ask(&caller, &mut seen, "alone", 2).await;
    ask(&caller, &mut seen, "no-such-model", 2).await;
    ask(&caller.with_key("sk-wrong"), &mut seen, "m", 3).await;
    p1.set(Script::Slow { deltas: 200, every: Duration::from_millis(50) }).await;
    caller.chat_and_leave("m", true, 10).await?;
    caller.chat_and_leave("alone", true, 10).await?;

    let wanted = [("m", Outcome::Served, 10), ("m", Outcome::Exhausted, 3), ("m", Outcome::BadRequest, 2)];
    for (model, outcome, count) in wanted {
        assert_eq!(seen.of(model, outcome), count, "{seen:?}");
    }
    assert_eq!((seen.of("m", Outcome::Cut), seen.of("alone", Outcome::Cut)), (1, 1), "{seen:?}");

    shows_exactly(&fleet, &seen).await?;
    let status = eventually("the callers that left are counted", REPORTED, || async {
        let status = fleet.status().await?;
        ensure!(counted(&status).1 == 2, "{status:?}");
        Ok(status)
    })
    .await?;
    assert_eq!(refused(&status), 5);
    for (provider, name) in [(&p1, "p1"), (&p2, "p2")] {
        let channel = status.channels.iter().find(|c| c.channel == name).unwrap();
        let attempts = channel.ok + channel.failed + channel.neutral;
        assert_eq!(attempts, provider.call_count() as u64, "{channel:?}");
    }
    let p1_counts = status.channels.iter().find(|c| c.channel == "p1").unwrap();
    assert_eq!((p1_counts.ok, p1_counts.failed, p1_counts.neutral), (8, 4 + 3 + 2, 2 + 2), "{p1_counts:?}");
    let model = status.models.iter().find(|m| m.model == "m").unwrap();
    let rate = model.success_rate.unwrap();
    assert!((rate - 10.0 / 14.0).abs() < 1e-9, "{rate}");
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

/// Windows of one second, by the setting that operators have too.
pub fn short_windows(nodes: usize) -> Plan {
    Plan { nodes, node_args: vec!["--window".to_owned(), "1s".to_owned()], ..Plan::default() }
}

#[tokio::test]
async fn while_the_control_plane_is_away_no_count_is_lost_and_none_is_doubled() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let mut fleet = Fleet::start_as(short_windows(2)).await?;
    let revision = fleet.apply(&catalog(&[&p1, &p2])).await?;
    fleet.in_sync(revision).await?;
    let traffic = [Traffic::start(&fleet.caller(0)?, "m", 2), Traffic::start(&fleet.caller(1)?, "m", 2)];
    for outage in 0..3_u64 {
        p1.set(if outage % 2 == 0 { Script::Status(503) } else { Script::Healthy }).await;
        sleep(Duration::from_millis(1500 + 250 * outage)).await;
        fleet.control_plane.kill().await?;
        sleep(Duration::from_millis(2500)).await;
        fleet.control_plane.start_again().await?;
    }
    let mut seen = Tally::default();
    for traffic in traffic {
        seen.merge(&traffic.stop().await?.tally);
    }
    assert_eq!(seen.unanswered, 0);
    let status = shows_exactly(&fleet, &seen).await?;
    for (provider, name) in [(&p1, "p1"), (&p2, "p2")] {
        let channel = status.channels.iter().find(|c| c.channel == name).unwrap();
        assert_eq!(
            channel.ok + channel.failed + channel.neutral,
            provider.call_count() as u64,
            "{channel:?}"
        );
    }
    // Nothing more comes in later either.
    sleep(Duration::from_secs(3)).await;
    shows_exactly(&fleet, &seen).await?;
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

#[tokio::test]
async fn what_a_caller_got_stays_counted_when_the_node_is_killed_right_after_it() -> anyhow::Result<()> {
    const WORKERS: usize = 6;
    let p1 = Provider::start("p1").await?;
    p1.set(Script::Slow { deltas: 4, every: Duration::from_millis(3) }).await;
    let mut fleet = Fleet::start_as(short_windows(1)).await?;
    let revision = fleet.apply(&catalog(&[&p1])).await?;
    fleet.in_sync(revision).await?;
    let (mut seen, mut in_flight) = (Tally::default(), 0);
    for kill in 0..4_u64 {
        // The first request of the node's life, a window just sealed, one being reported.
        let traffic = Traffic::start(&fleet.caller(0)?, "m", WORKERS);
        sleep(Duration::from_millis(400 + 550 * kill)).await;
        fleet.nodes[0].kill().await?;
        let new = traffic.stop().await?;
        // Each worker had at most one request on its way; later ones found nobody.
        in_flight += WORKERS as u64;
        assert!(new.tally.of("m", Outcome::Served) > 0);
        assert_eq!(new.tally.of("m", Outcome::Served), new.tally.answered(), "{:?}", new.tally);
        seen.merge(&new.tally);
        fleet.nodes[0].start_again().await?;
        // A revision that was active for less than a minute is suspected; a new one is not.
        let revision = fleet.apply(&catalog(&[&p1]).model(&format!("n{kill}"), &["p1"])).await?;
        fleet.in_sync(revision).await?;
    }
    let mut last = Tally::default();
    ask(&fleet.caller(0)?, &mut last, "alone", 1).await;
    let status = eventually("the last boot has reported too", REPORTED, || async {
        let status = fleet.status().await?;
        ensure!(counted(&status).0.of("alone", Outcome::Served) == 1, "{status:?}");
        Ok(status)
    })
    .await?;
    let (counted, canceled) = counted(&status);
    let counted = counted.answered() - 1 + canceled;
    let seen = seen.answered();
    assert!(
        (seen..=seen + in_flight).contains(&counted),
        "seen {seen}, in flight {in_flight}, counted {counted}"
    );
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_node_that_was_away_for_good_reports_its_last_windows_when_it_is_started_again()
-> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let mut fleet = Fleet::start_as(short_windows(1)).await?;
    let revision = fleet.apply(&catalog(&[&p1])).await?;
    fleet.in_sync(revision).await?;
    fleet.control_plane.kill().await?;
    let mut seen = Tally::default();
    ask(&fleet.caller(0)?, &mut seen, "m", 7).await;
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    fleet.control_plane.start_again().await?;
    assert_eq!(counted(&fleet.status().await?).0, Tally::default());
    fleet.nodes[0].start_again().await?;
    shows_exactly(&fleet, &seen).await?;
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}
