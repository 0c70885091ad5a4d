//! Ten thousand requests of random fates, each decided the same again from its record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::admin::request_service_client::RequestServiceClient;
use common::pb::admin::{ListRequestsRequest, ReplayRequestRequest, RequestSummary};
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::operator::Admin;
use harness::provider::{Provider, Script};
use tokio::task::JoinSet;

use crate::counters::short_windows;

const REQUESTS: u64 = 10_000;
/// Callers at once, at each of two nodes.
const CALLERS: u64 = 12;
/// After so many requests another channel fails in another way.
const CHANGES_EVERY: u64 = 40;
/// How long a channel is out.
const OUT: Duration = Duration::from_millis(100);
/// Replays under way.
const REPLAYS: u64 = 8;

/// How a channel may fare. Most of the time it is well, or no request would get past the first failures.
fn fate(random: &mut fastrand::Rng) -> Script {
    match random.u8(0..25) {
        0..8 => Script::Healthy,
        8 | 9 => Script::Status(503),
        10 => Script::Status(500),
        11 => Script::Status(400),
        12 => Script::Status(413),
        13 => Script::RateLimited(Some(1)),
        14 | 15 => Script::Refuse,
        16 => Script::Reset,
        17 => Script::ErrorFirst,
        18 => Script::ErrorAfterRole,
        19 => Script::CutFirst,
        20 => Script::Html,
        21 => Script::Empty,
        22 => Script::Cut,
        23 => Script::CutByReset,
        _ => Script::NoFinish,
    }
}

async fn every_request(admin: Admin) -> anyhow::Result<Vec<RequestSummary>> {
    let mut client = RequestServiceClient::new(admin);
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let ask = ListRequestsRequest { filter: None, limit: 1000, before };
        let page = client.list_requests(ask).await?.into_inner().requests;
        let Some(last) = page.last() else { return Ok(all) };
        before = last.request_id.clone();
        all.extend(page);
    }
}

#[tokio::test]
async fn ten_thousand_requests_of_random_fates_are_decided_the_same_again() -> anyhow::Result<()> {
    let providers =
        [Provider::start("p1").await?, Provider::start("p2").await?, Provider::start("p3").await?];
    let [p1, p2, p3] = &providers;
    let fleet = Fleet::start_as(Plan { nodes: 2, ..short_windows(2) }).await?;
    let breaker = "breaker = { failures = 3, window = \"1s\", cooldown = \"100ms\" }";
    let revision = fleet.apply(&chain_of("m", &[p1, p2, p3]).policy(breaker)).await?;
    fleet.in_sync(revision).await?;

    let asked = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for number in 0..2 * CALLERS {
        let (caller, asked) = (fleet.caller(number as usize % 2)?, asked.clone());
        callers.spawn(async move {
            while asked.fetch_add(1, Ordering::Relaxed) < REQUESTS {
                let answer = caller.chat("m", number % 3 > 0).await?;
                if answer.header("x-sluice-attempts") == "0" {
                    // All are out, and would be for the next thousand as well.
                    tokio::time::sleep(OUT).await;
                }
            }
            anyhow::Ok(())
        });
    }
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut changes = 0;
    loop {
        tokio::select! {
            ended = callers.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            },
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        if asked.load(Ordering::Relaxed) / CHANGES_EVERY > changes {
            changes += 1;
            let provider = random.choice(&providers).context("there are three")?;
            provider.set(fate(&mut random)).await;
        }
    }

    let all = eventually("every record has come home", SOON, || async {
        let all = every_request(fleet.admin()?).await?;
        ensure!(all.len() as u64 == REQUESTS, "{} of {REQUESTS}", all.len());
        Ok(all)
    })
    .await?;
    let mut kinds: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for request in &all {
        *kinds.entry((request.outcome.clone(), request.attempts)).or_default() += 1;
    }
    eprintln!("{kinds:?}");
    for outcome in ["served", "exhausted", "cut", "bad_request"] {
        let of_it = kinds.keys().filter(|(kind, _)| kind == outcome).count();
        assert!(of_it > 0, "nothing was {outcome}: {kinds:?}");
    }
    let tried: Vec<u32> = kinds.keys().map(|(_, attempts)| *attempts).collect();
    assert!((0..=3).all(|attempts| tried.contains(&attempts)), "{kinds:?}");

    let ids: Arc<Vec<String>> = Arc::new(all.into_iter().map(|request| request.request_id).collect());
    let next = Arc::new(AtomicU64::new(0));
    let mut replays = JoinSet::new();
    for _ in 0..REPLAYS {
        let (mut client, ids, next) = (RequestServiceClient::new(fleet.admin()?), ids.clone(), next.clone());
        replays.spawn(async move {
            while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let ask = ReplayRequestRequest { id: id.clone(), revision: 0 };
                let replay = client.replay_request(ask).await?.into_inner();
                ensure!(replay.is_same, "{replay:?}");
            }
            Ok(())
        });
    }
    replays.join_all().await.into_iter().collect::<anyhow::Result<()>>()?;
    fleet.finish()
}
