//! A chain is changed 200 times under traffic: nobody notices, every answer is that of the revision
//! which it names, and what did not change keeps its breaker and its connections.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use harness::caller::Outcome;
use harness::catalog::Document;
use harness::fleet::Fleet;
use harness::provider::{Provider, Script};

use crate::traffic::{Seen, Traffic};

const CHANGES: u64 = 200;
const WORKERS: usize = 8;

#[tokio::test]
async fn br_131_two_hundred_changes_under_load_fail_no_request_and_keep_what_did_not_change()
-> anyhow::Result<()> {
    let providers =
        [Provider::start("p1").await?, Provider::start("p2").await?, Provider::start("p3").await?];
    let broken = Provider::start("broken").await?;
    // Slow enough that many answers are on their way at the moment of a swap.
    for provider in &providers {
        provider.set(Script::Slow { deltas: 6, every: Duration::from_millis(8) }).await;
    }
    let fleet = Fleet::with_catalog(1, &catalog(&providers, &broken, 0)).await?;
    let caller = fleet.caller(0)?;

    broken.set(Script::Status(503)).await;
    for _ in 0..3 {
        assert_eq!(caller.chat("b", false).await?.header("x-sluice-channel"), "p1");
    }
    assert_eq!(broken.call_count(), 3);

    let traffic = Traffic::start(&caller, "m", WORKERS);
    let mut first_channel = BTreeMap::from([(1, first_of(0))]);
    for change in 1..=CHANGES {
        let revision = fleet.apply(&catalog(&providers, &broken, change)).await?;
        assert_eq!(revision, change + 1, "revisions have no gaps");
        first_channel.insert(revision, first_of(change));
        fleet.node_in_sync("node-1", revision).await?;
        if change % 20 == 0 {
            let answer = caller.chat("b", false).await?;
            assert_eq!(
                (answer.status, answer.header("x-sluice-attempts")),
                (200, "1"),
                "the breaker was forgotten"
            );
        }
    }
    let seen = traffic.stop().await?;

    assert_eq!(broken.call_count(), 3, "an open breaker was forgotten by a swap");
    check_answers(&seen, &first_channel, &providers)?;
    for provider in &providers {
        let connections = provider.connection_count();
        assert!(connections <= 3 * WORKERS, "{connections} connections to {}", provider.name());
    }
    fleet.finish()
}

fn check_answers(
    seen: &Seen,
    first_channel: &BTreeMap<u64, &str>,
    providers: &[Provider; 3],
) -> anyhow::Result<()> {
    assert_eq!(seen.errors, Vec::<String>::new());
    assert_eq!(seen.went_back, Vec::<String>::new());
    let served = seen.tally.of("m", Outcome::Served);
    assert_eq!(served, seen.tally.answered(), "a request failed: {:?}", seen.tally);
    assert!(served > 2 * CHANGES, "only {served} requests: no load");
    let mut revisions: BTreeMap<u64, u64> = BTreeMap::new();
    for answer in &seen.answers {
        let revision = answer.header("x-sluice-revision").parse()?;
        *revisions.entry(revision).or_default() += 1;
        let channel = answer.header("x-sluice-channel");
        assert_eq!(Some(&channel), first_channel.get(&revision), "revision {revision} has another chain");
        let provider = providers.iter().find(|p| p.name() == channel).context("a provider")?;
        let id = answer.answer_id().context("an id")?;
        let call = provider.call_of(&id).context("a call")?;
        assert!(answer.body() == call.sent, "not the bytes of {channel}: {}", answer.text());
    }
    assert!(revisions.len() as u64 > CHANGES / 2, "traffic met only {} revisions", revisions.len());
    Ok(())
}

/// The channel that the chain of a change begins with.
fn first_of(change: u64) -> &'static str {
    ["p1", "p2", "p3"][(change % 3) as usize]
}

/// Every change turns the chain of `m`; of the others it changes nothing.
fn catalog(providers: &[Provider; 3], broken: &Provider, change: u64) -> Document {
    let turn = (change % 3) as usize;
    let names = ["p1", "p2", "p3"];
    let mut chain: Vec<&str> = (0..3).map(|hop| names[(turn + hop) % 3]).collect();
    if change % 5 == 4 {
        chain.truncate(2);
    }
    let mut document =
        Document::new().policy("breaker = { failures = 3, window = \"30m\", cooldown = \"30m\" }");
    for provider in providers {
        document = document.provider(provider);
    }
    // A model of its own in every revision makes sure that each differs from the one before.
    document
        .provider(broken)
        .model("m", &chain)
        .model("b", &["broken", "p1"])
        .model(&format!("v{change}"), &["p1"])
}
