//! Bars and incidents match what was reported over 90 days, with a bad hour and silent times in it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use common::clock::Clock;
use common::pb::fleet as pb;
use harness::catalog::chain_of;
use harness::fleet::{Fleet, with_token};
use harness::provider::Provider;
use pb::fleet_report_client::FleetReportClient;
use tonic::transport::Endpoint;

use crate::driver::{View, look};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// When a window ended, and what callers saw in it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at_ms: u64,
    served: u64,
    failed: u64,
}

/// A window at noon of each day, most of them good, some silent, and one in each hour of today and yesterday.
fn history(now_ms: u64) -> Vec<Seen> {
    let today = now_ms / DAY_MS;
    let mut seen = Vec::new();
    for ago in (2..90).rev().filter(|ago| ago % 10 != 3) {
        let failed = [200, 50, 0, 0, 1, 0, 0][ago as usize % 7];
        seen.push(Seen { at_ms: (today - ago) * DAY_MS + DAY_MS / 2, served: 10_000 - failed, failed });
    }
    let this_hour = now_ms / HOUR_MS;
    for ago in (1..24).rev().filter(|ago| !(10..13).contains(ago)) {
        let failed = if ago == 5 { 300 } else { ago / 20 * 2 };
        seen.push(Seen { at_ms: (this_hour - ago) * HOUR_MS + HOUR_MS / 2, served: 1000 - failed, failed });
    }
    seen
}

fn report(seq: u64, seen: Seen) -> pb::ReportRequest {
    let attempt = |channel: &str, class: &str, count| pb::AttemptCount {
        model: "m".to_owned(),
        channel: channel.to_owned(),
        class: class.to_owned(),
        count,
    };
    let request =
        |outcome: &str, count| pb::RequestCount { model: "m".to_owned(), outcome: outcome.to_owned(), count };
    let Seen { at_ms, served, failed } = seen;
    pb::ReportRequest {
        node_id: "node-1".to_owned(),
        boot_id: "boot".to_owned(),
        window: Some(pb::Window {
            first_seq: seq,
            last_seq: seq,
            start_ms: at_ms - 10_000,
            end_ms: at_ms,
            attempts: vec![
                attempt("p1", "ok", served / 2),
                attempt("p1", "timeout", served - served / 2 + failed),
                attempt("p2", "ok", served - served / 2),
                attempt("p2", "overloaded", failed),
            ],
            requests: vec![request("served", served), request("exhausted", failed)],
            ..pb::Window::default()
        }),
        totals: None,
        acknowledged_through: seq - 1,
    }
}

fn percent(good: u64, bad: u64) -> String {
    match (good, bad) {
        (_, 0) => "100 %".to_owned(),
        _ => format!("{}.{:02} %", good * 100 / (good + bad), good * 10_000 / (good + bad) % 100),
    }
}

/// As the page says a moment, cut to the minute or to the day.
fn moment(at_ms: u64, characters: usize) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    let said = humantime::format_rfc3339_seconds(at).to_string().replace('T', " ");
    said[..characters].to_owned() + if characters > 10 { " UTC" } else { "" }
}

/// The bars of what was seen, from `steps` steps ago on.
fn bars(seen: &[Seen], now_ms: u64, step_ms: u64, steps: u64) -> Vec<(String, String)> {
    let from_ms = (now_ms / step_ms + 1 - steps) * step_ms;
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for seen in seen.iter().filter(|seen| seen.at_ms >= from_ms) {
        let sum = sums.entry(seen.at_ms / step_ms * step_ms).or_default();
        *sum = (sum.0 + seen.served, sum.1 + seen.failed);
    }
    let characters = if step_ms == DAY_MS { 10 } else { 16 };
    let bar = |(at_ms, (good, bad)): (u64, (u64, u64))| {
        let tone = match bad * 1000 {
            few if few <= good + bad => "well",
            some if some <= 10 * (good + bad) => "fair",
            _ => "bad",
        };
        let said =
            format!("{}: {}, {good} served, {bad} failed", moment(at_ms, characters), percent(good, bad));
        (tone.to_owned(), said)
    };
    sums.into_iter().map(bar).collect()
}

/// When the page was made.
fn made_at_ms(view: &View) -> anyhow::Result<u64> {
    let said = view.text.split("As of ").nth(1).and_then(|rest| rest.get(..19)).context("no time")?;
    let at = humantime::parse_rfc3339(&format!("{}Z", said.replace(' ', "T")))?;
    Ok(at.duration_since(SystemTime::UNIX_EPOCH)?.as_millis().try_into()?)
}

#[tokio::test]
async fn bars_and_incidents_are_what_was_reported_hour_by_hour_and_day_by_day() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start(0).await?;
    fleet.apply(&chain_of("m", &[&p1, &p2])).await?;
    let seen = history(Clock::system().now_ms());
    let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
    let conn = Endpoint::from_shared(fleet.fleet_url().to_owned())?.connect_lazy();
    let mut client = FleetReportClient::with_interceptor(conn, with_token(token.trim())?);
    for (seq, seen) in (1..).zip(&seen) {
        assert_eq!(client.report(report(seq, *seen)).await?.into_inner().claimed_through, seq);
    }

    let bad = seen.iter().find(|seen| seen.failed == 300).context("no bad hour")?;
    let (served, failed) = seen.iter().fold((0, 0), |sum, seen| (sum.0 + seen.served, sum.1 + seen.failed));
    for view in look(fleet.control_plane.address("http")?, "/", "status-history").await? {
        let made_ms = made_at_ms(&view)?;
        for (name, step_ms, steps) in
            [("requests by hour, last 24 h", HOUR_MS, 24), ("requests by day, last 90 d", DAY_MS, 90)]
        {
            let picture = view.pictures.iter().find(|picture| picture.label.starts_with(name));
            let picture = picture.with_context(|| format!("no {name} in {:?}", view.pictures))?;
            assert_eq!(picture.bars, bars(&seen, made_ms, step_ms, steps), "{} {}", view.name, picture.label);
        }
        let (_, cells) = view.table("m")?.below("requests callers saw")?;
        assert_eq!(cells[4], format!("{} {served} served, {failed} failed", percent(served, failed)));
        let began = moment(bad.at_ms - bad.at_ms % 300_000 - 300_000, 16);
        let told = format!("m from {began} to {}, 5 min", moment(bad.at_ms, 16));
        assert!(view.text.contains(&told), "{told} is not in\n{}", view.text);
        assert!(
            view.text.contains("Callers saw 70.00 %: 700 served, 300 failed (300 exhausted)."),
            "{}",
            view.text
        );
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    fleet.finish()
}
