//! The metrics that really exist: each is documented, each that is documented exists, and what is deployed beside the
//! programs (Prometheus rules, the Grafana dashboard) asks for nothing else.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use harness::catalog::{CREDENTIAL, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED};
use harness::provider::{Provider, Script};
use harness::tools::package_path;
use serde_json::Value;

use crate::counters::short_windows;

/// Made of metrics by how Prometheus counts: they are no metrics of their own.
const SUFFIXES: [&str; 4] = ["_bucket", "_sum", "_count", "_created"];

/// What a small healthy fleet over SQLite has no sample of.
const ELSEWHERE: [(&str, &str); 10] = [
    ("sluice_alert_deliveries_total", "webhooks"),
    ("sluice_pings_total", "URLs of beats"),
    ("sluice_enrolments_total", "nodes with certificates"),
    ("sluice_job_failures_total", "a job that fails"),
    ("sluice_stream_ends_total", "a node that leaves"),
    ("sluice_binding_lookups_total", "an id that the node does not know"),
    ("sluice_certificate_expiry_timestamp_seconds", "a listener with TLS"),
    ("sluice_units_total", "searches or audio"),
    ("sluice_changes_heard", "PostgreSQL"),
    ("sluice_calls_refused_total", "a wrong token"),
];

fn read(path: &str) -> anyhow::Result<String> {
    let path = package_path("").join("..").join(path);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The metrics of a page: of each line of a sample the name, without what histograms add to it.
fn exposed(page: &str) -> BTreeSet<String> {
    let histograms: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram")).collect();
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let names = samples.filter_map(|line| line.split(['{', ' ']).next()).filter(|name| !name.is_empty());
    let base = |name: &str| {
        let bases = SUFFIXES.iter().filter_map(|suffix| name.strip_suffix(suffix));
        let histogram = bases.into_iter().find(|base| histograms.contains(base));
        histogram.unwrap_or(name).to_owned()
    };
    names.map(base).collect()
}

/// The metrics in the first column of the README's table under a heading.
fn documented(readme: &str, heading: &str) -> anyhow::Result<BTreeSet<String>> {
    let (_, rest) = readme.split_once(heading).with_context(|| format!("no {heading:?}"))?;
    let section = rest.split("\n#").next().unwrap_or(rest);
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    Ok(cells.flat_map(named).collect())
}

/// Every name of a metric of ours in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("sluice_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_exists() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows(1)).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1, &p2])).await?;
    fleet.in_sync(revision).await?;
    let caller = fleet.caller(0)?;
    p1.set(Script::Status(503)).await;
    for stream in [true, false, true, false] {
        assert_eq!(caller.chat("m", stream).await?.status, 200);
    }
    assert_eq!(fleet.sluice(&["status"]).await?.code, 0);
    let readme = read("README.md")?;
    let of_node = documented(&readme, "### Metrics of a node")?;
    let of_plane = documented(&readme, "### Metrics of the control plane")?;
    eventually("both expose what is documented, and nothing else", REPORTED, || async {
        for (who, page, documented) in [
            ("the node", fleet.ops(0, "/metrics").await?.1, &of_node),
            ("the control plane", fleet.http("/metrics").await?.1, &of_plane),
        ] {
            let exposed = exposed(&page);
            let unknown: Vec<_> = exposed.difference(documented).collect();
            ensure!(unknown.is_empty(), "{who} exposes, and the README does not know: {unknown:?}");
            let elsewhere = |name: &str| ELSEWHERE.iter().any(|(other, _)| *other == name);
            let silent: Vec<_> = documented.difference(&exposed).filter(|name| !elsewhere(name)).collect();
            ensure!(silent.is_empty(), "the README knows, and {who} does not expose: {silent:?}");
            ensure!(!page.contains(CREDENTIAL), "{who} shows a credential");
        }
        Ok(())
    })
    .await?;
    fleet.finish()
}

#[test]
fn what_is_exposed_elsewhere_is_registered() -> anyhow::Result<()> {
    let code = read("gateway-node/src/metrics.rs")? + &read("control-plane/src/metrics.rs")?;
    for (name, when) in ELSEWHERE {
        // One program's registry has the prefix, the other's names have it themselves.
        let family = name.trim_end_matches("_total");
        let names = [family, family.trim_start_matches("sluice_")];
        let is_registered = names.iter().any(|name| code.contains(&format!("\"{name}\"")));
        assert!(is_registered, "no program registers {name} ({when})");
    }
    Ok(())
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_exist() -> anyhow::Result<()> {
    let readme = read("README.md")?;
    let mut known = documented(&readme, "### Metrics of a node")?;
    known.extend(documented(&readme, "### Metrics of the control plane")?);
    let rules = read("deploy/prometheus/sluice.rules.yaml")?;
    let recorded: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/sluice.json")?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let asked = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let asked: Vec<&str> = asked.filter_map(|target| target["expr"].as_str()).collect();
    assert!(asked.len() > 20 && recorded.len() > 3, "{} questions, {recorded:?}", asked.len());
    let base = |name: &str| {
        let bare = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
        if known.contains(name) { name.to_owned() } else { bare.unwrap_or(name).to_owned() }
    };
    for (what, text) in
        asked.iter().map(|expr| ("the dashboard", *expr)).chain([("the rules", rules.as_str())])
    {
        for name in named(text) {
            assert!(known.contains(&base(&name)), "{what} ask for {name}, which no program exposes");
        }
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
        for name in words.filter(|word| word.starts_with("sluice:")) {
            assert!(recorded.contains(name), "{what} ask for {name}, which no rule records");
        }
    }
    for runbook in rules.lines().filter_map(|line| line.trim().strip_prefix("runbook: ")) {
        assert!(package_path("").join("..").join(runbook).is_file(), "there is no {runbook}");
    }
    Ok(())
}
