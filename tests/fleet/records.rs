//! Records of requests, from the callers' ids to the operator's answers: why each went where it went, whether it would again,
//! and that whatever was flushed outlives `kill -9`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::caller::{Answer, chat_body};
use harness::catalog::{CREDENTIAL, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED, SOON};
use harness::provider::{Provider, Script};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::counters::short_windows;
use crate::traffic::Traffic;

/// What waits in memory for the disk of a node; far more than it takes.
const FLUSHED: Duration = Duration::from_millis(500);

fn id(answer: &Answer) -> String {
    answer.header("x-request-id").to_owned()
}

/// Every request that the control plane lists, by id.
async fn listed(fleet: &Fleet, filter: &[&str]) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    let mut before = String::new();
    loop {
        let mut args = vec!["requests", "list", "--limit", "1000", "-o", "json"];
        args.extend(filter);
        if !before.is_empty() {
            args.extend(["--before", &before]);
        }
        let page = fleet.sluice(&args).await?.with_code(0)?.json()?;
        let page = page["requests"].as_array().context("no list")?.clone();
        let Some(last) = page.last() else { return Ok(all) };
        before = last["request_id"].as_str().context("no id")?.to_owned();
        for request in page {
            let id = request["request_id"].as_str().context("no id")?.to_owned();
            ensure!(all.insert(id, request).is_none(), "one twice");
        }
    }
}

async fn has_all(fleet: &Fleet, ids: &BTreeSet<String>) -> anyhow::Result<BTreeMap<String, Value>> {
    eventually("the records have come home", REPORTED, || async {
        let there = listed(fleet, &[]).await?;
        let missing: Vec<_> = ids.iter().filter(|id| !there.contains_key(*id)).collect();
        ensure!(missing.is_empty(), "{} of {} are missing: {:?}", missing.len(), ids.len(), missing.first());
        Ok(there)
    })
    .await
}

#[tokio::test]
async fn a_request_says_where_it_went_and_why_and_would_go_there_again() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let breaker = "breaker = { failures = 2, window = \"5m\", cooldown = \"60s\" }";
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2]).policy(breaker)).await?;
    let caller = fleet.caller(0)?;
    let first = caller.chat("m", false).await?;
    p1.set(Script::Status(503)).await;
    let over = [caller.chat("m", true).await?, caller.chat("m", false).await?];
    let past = caller.chat("m", false).await?;
    p2.set(Script::Status(500)).await;
    let lost = caller.chat("m", false).await?;
    let refused = caller.chat("no-such-model", false).await?;
    let ids = [&first, &over[0], &over[1], &past, &lost, &refused].map(id);
    let there = has_all(&fleet, &ids.iter().cloned().collect()).await?;
    assert_eq!(there.len(), ids.len(), "one each");
    for (id, (channel, outcome, status, attempts)) in ids.iter().zip([
        ("p1", "served", 200, 1),
        ("p2", "served", 200, 2),
        ("p2", "served", 200, 2),
        ("p2", "served", 200, 1),
        ("p2", "exhausted", u64::from(lost.status), 1),
        ("", "model_not_found", 404, 0),
    ]) {
        let one = &there[id];
        let found = (one["channel"].as_str(), one["outcome"].as_str(), one["status"].as_u64());
        assert_eq!(found, (Some(channel), Some(outcome), Some(status)), "{one}");
        assert_eq!(one["attempts"], attempts, "{one}");
        let again = fleet.sluice(&["requests", "replay", id]).await?.with_code(0)?;
        assert!(again.out.starts_with("the same, over the chain of revision "), "{}", again.out);
    }

    let shown = fleet.sluice(&["requests", "show", &ids[3], "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(shown["chain"][0]["out"], "breaker_open", "{shown}");
    assert!(shown["chain"][0]["out_until_us"].as_u64().is_some_and(|us| us > 50_000_000), "{shown}");
    let shown = fleet.sluice(&["requests", "show", &ids[1], "-o", "json"]).await?.with_code(0)?.json()?;
    let (failed, served) = (&shown["attempts"][0], &shown["attempts"][1]);
    assert_eq!((failed["channel"].as_str(), failed["class"].as_str()), (Some("p1"), Some("overloaded")));
    assert_eq!((served["class"].as_str(), served["gate"].as_str()), (Some("ok"), Some("content")));
    let times = ["began_us", "headers_us", "first_byte_us", "decisive_us", "ended_us"].map(|at| &served[at]);
    let times = times.map(|at| at.as_u64().unwrap_or(u64::MAX));
    assert!(times.is_sorted() && times[4] < u64::MAX, "{shown}");

    // By channel and class, as the provider and the counters have it.
    let counts =
        fleet.sluice(&["requests", "failures", "--since", "1h", "-o", "json"]).await?.with_code(0)?;
    let counts = counts.json()?;
    let wanted = serde_json::json!([
        {"channel": "p1", "class": "overloaded", "attempts": 2, "cured": 2},
        {"channel": "p2", "class": "upstream_error", "attempts": 1, "cured": 0},
    ]);
    assert_eq!(counts["failures"], wanted);
    let over = listed(&fleet, &["--min-hops", "2", "--channel", "p1", "--class", "overloaded"]).await?;
    assert_eq!(over.keys().collect::<BTreeSet<_>>(), ids[1..3].iter().collect());

    // Another revision's chain would have gone elsewhere.
    let turned = fleet.apply(&chain_of("m", &[&p2, &p1]).policy(breaker)).await?;
    let turned = turned.to_string();
    let other = fleet.sluice(&["requests", "replay", &ids[0], "--revision", &turned]).await?.with_code(1)?;
    assert!(other.out.contains("asked; how it would answer is not known"), "{}", other.out);
    let unknown = fleet.sluice(&["requests", "show", "no-such-request"]).await?.with_code(1)?;
    assert!(unknown.err.contains("no-such-request"), "{}", unknown.err);
    fleet.finish()
}

#[tokio::test]
async fn what_was_flushed_outlives_kills_of_nodes_and_control_planes_under_load() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let mut fleet = Fleet::start_as(short_windows(2)).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1, &p2])).await?;
    fleet.in_sync(revision).await?;
    let (mut sure, mut seen) = (BTreeSet::new(), 0);
    for round in 0..4 {
        p1.set(if round % 2 == 0 { Script::Healthy } else { Script::Status(503) }).await;
        let before = [Traffic::start(&fleet.caller(0)?, "m", 2), Traffic::start(&fleet.caller(1)?, "m", 2)];
        sleep(Duration::from_millis(300)).await;
        // What was answered by now was flushed when the node is killed.
        for traffic in before {
            sure.extend(traffic.stop().await?.answers.iter().map(id));
        }
        let during = Traffic::start(&fleet.caller(0)?, "m", 2);
        let since = Instant::now();
        if round == 2 {
            fleet.control_plane.kill().await?;
        }
        sleep(FLUSHED.saturating_sub(since.elapsed())).await;
        fleet.nodes[0].kill().await?;
        seen += during.stop().await?.answers.len();
        if round == 2 {
            fleet.control_plane.start_again().await?;
        }
        fleet.nodes[0].start_again().await?;
        fleet.in_sync(revision).await?;
    }
    ensure!(sure.len() > 100 && seen > 50, "there was too little to lose: {} and {seen}", sure.len());
    let there = has_all(&fleet, &sure).await?;
    for (id, one) in there.iter().step_by(there.len().div_ceil(20)) {
        ensure!(one["outcome"] == "served" || one["outcome"] == "canceled", "{one}");
        fleet.sluice(&["requests", "replay", id]).await?.with_code(0)?;
    }
    fleet.finish()
}

#[tokio::test]
async fn nothing_of_what_is_asked_answered_or_shown_as_a_credential_is_in_a_record() -> anyhow::Result<()> {
    const PLANTED: &str = "planted-8c1f";
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let caller = fleet.caller(0)?;
    let chunks =
        vec![format!("{{\"id\": \"{PLANTED}\", \"choices\": [{{\"message\": \"{PLANTED}\"}}]}}").into()];
    provider.set(Script::Raw { content_type: "application/json", chunks }).await;
    let answers = [
        caller.post(chat_body("m", false).replace("grüß", PLANTED)).await?,
        caller.with_key(&format!("sk-{PLANTED}")).chat("m", false).await?,
    ];
    ensure!(answers[0].text().contains(PLANTED) && answers[1].status == 401, "{answers:?}");
    has_all(&fleet, &answers.iter().map(id).collect()).await?;
    fleet.control_plane.terminate(SOON).await?;
    for file in files(fleet.control_plane.data_dir())?.iter().chain(&files(fleet.nodes[0].data_dir())?) {
        let bytes = std::fs::read(file)?;
        for planted in [PLANTED, CREDENTIAL] {
            let is_there = bytes.windows(planted.len()).any(|part| part == planted.as_bytes());
            ensure!(!is_there, "{} holds {planted}", file.display());
        }
    }
    fleet.finish()
}

fn files(dir: &std::path::Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    Ok(files)
}
