//! Providers, callers, nodes' metrics, counters, records: whoever is asked after a bad hour gives the same numbers.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED};
use harness::provider::{Provider, Script};
use serde_json::Value;

use crate::counters::short_windows;

/// Attempts by channel and class.
type Attempts = BTreeMap<(String, String), u64>;
/// Requests by outcome.
type Requests = BTreeMap<String, u64>;

/// What the numbers of a Prometheus page are, by the values of two labels.
fn metric(page: &str, name: &str, labels: [&str; 2]) -> anyhow::Result<BTreeMap<(String, String), u64>> {
    let mut found = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with(&format!("{name}{{"))) {
        let label = |label: &str| {
            let (_, rest) = line.split_once(&format!("{label}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let (a, b) = (label(labels[0]).context(line.to_owned())?, label(labels[1]).context(line.to_owned())?);
        let (_, number) = line.rsplit_once(' ').context(line.to_owned())?;
        *found.entry((a, b)).or_default() += number.parse::<f64>()? as u64;
    }
    found.retain(|_, number| *number > 0);
    Ok(found)
}

/// Attempts and requests as a status tells them.
fn told(status: &Value) -> (Attempts, Requests) {
    let (mut attempts, mut requests) = (Attempts::new(), Requests::new());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for channel in list(&status["channels"]) {
        let name = channel["channel"].as_str().unwrap_or("");
        let classes = channel["classes"].as_object().cloned().unwrap_or_default();
        let ok = [("ok".to_owned(), channel["ok"].clone())];
        for (class, count) in classes.into_iter().chain(ok) {
            *attempts.entry((name.to_owned(), class)).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    for model in list(&status["models"]) {
        for outcome in ["served", "exhausted", "cut", "bad_request", "canceled"] {
            *requests.entry(outcome.to_owned()).or_default() += model[outcome].as_u64().unwrap_or(0);
        }
    }
    attempts.retain(|_, count| *count > 0);
    requests.retain(|_, count| *count > 0);
    (attempts, requests)
}

#[tokio::test]
async fn page_cli_metrics_records_and_the_providers_own_logs_agree_on_every_attempt() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows(2)).await?;
    let patient = "breaker = { failures = 1000, window = \"5m\", cooldown = \"60s\" }";
    let revision = fleet.apply(&chain_of("m", &[&p1, &p2]).policy(patient)).await?;
    fleet.in_sync(revision).await?;
    let callers = [fleet.caller(0)?, fleet.caller(1)?];

    // What each of both does, how often it is asked, and what that is to the one who asks and to the channels.
    let (well, mut attempts, mut requests) = (Script::Healthy, Attempts::new(), Requests::new());
    for (first, second, stream, times, classes, outcome) in [
        (well.clone(), well.clone(), true, 7, vec!["ok"], "served"),
        (Script::Status(503), well.clone(), true, 5, vec!["overloaded", "ok"], "served"),
        (Script::Status(500), well.clone(), false, 3, vec!["upstream_error", "ok"], "served"),
        (Script::ErrorFirst, well.clone(), true, 4, vec!["upstream_error", "ok"], "served"),
        (Script::Empty, well.clone(), true, 2, vec!["empty", "ok"], "served"),
        (
            Script::Status(503),
            Script::Status(500),
            false,
            6,
            vec!["overloaded", "upstream_error"],
            "exhausted",
        ),
        (Script::Status(400), well.clone(), false, 2, vec!["bad_request"], "bad_request"),
        (Script::Cut, well.clone(), true, 3, vec!["cut"], "cut"),
    ] {
        p1.set(first.clone()).await;
        p2.set(second).await;
        let before = [p1.call_count(), p2.call_count()];
        for number in 0..times {
            callers[number % 2].chat("m", stream).await?;
        }
        *requests.entry(outcome.to_owned()).or_default() += times as u64;
        for (at, (provider, before)) in [&p1, &p2].into_iter().zip(before).enumerate() {
            let calls = (provider.call_count() - before) as u64;
            let class = classes.get(at);
            assert_eq!(
                calls,
                if class.is_some() { times as u64 } else { 0 },
                "{first:?}, {}",
                provider.name()
            );
            if let Some(class) = class {
                *attempts.entry((provider.name().to_owned(), (*class).to_owned())).or_default() += calls;
            }
        }
    }

    // The nodes' metrics.
    let (mut by_nodes, mut asked) = (Attempts::new(), Requests::new());
    for node in 0..2 {
        let (_, page) = fleet.ops(node, "/metrics").await?;
        for (of, count) in metric(&page, "sluice_attempts_total", ["channel", "class"])? {
            *by_nodes.entry(of).or_default() += count;
        }
        for ((_, outcome), count) in metric(&page, "sluice_requests_total", ["model", "outcome"])? {
            *asked.entry(outcome).or_default() += count;
        }
    }
    assert_eq!((&by_nodes, &asked), (&attempts, &requests), "the nodes' metrics");

    // The control plane's counters, over HTTP and through sluice.
    let status = eventually("all of it is counted", REPORTED, || async {
        let status: Value = serde_json::from_str(&fleet.http("/api/v1/status").await?.1)?;
        ensure!(told(&status) == (attempts.clone(), requests.clone()), "{:?}", told(&status));
        Ok(status)
    })
    .await?;
    let said = fleet.sluice(&["status", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(told(&said), (attempts.clone(), requests.clone()));

    // The page: both rates, in the words that are on it.
    let (_, page) = fleet.http("/").await?;
    let served =
        requests["served"] as f64 / (requests["served"] + requests["exhausted"] + requests["cut"]) as f64;
    assert!((status["models"][0]["success_rate"].as_f64().unwrap_or(0.0) - served).abs() < 1e-9, "{status}");
    let shown = format!("{:.2}", (served * 10_000.0).floor() / 100.0);
    assert!(page.contains(&shown), "{shown} is not on the page");

    // The records.
    eventually("the records agree", REPORTED, || async {
        let counts = fleet.sluice(&["requests", "failures", "-o", "json"]).await?.with_code(0)?.json()?;
        let mut failed = Attempts::new();
        for count in counts["failures"].as_array().context("no list")? {
            let text = |member: &str| count[member].as_str().unwrap_or("").to_owned();
            failed.insert((text("channel"), text("class")), count["attempts"].as_u64().unwrap_or(0));
        }
        let mut wanted = attempts.clone();
        wanted.retain(|(_, class), _| class != "ok");
        ensure!(failed == wanted, "{failed:?}, {wanted:?}");
        Ok(())
    })
    .await?;
    fleet.finish()
}
