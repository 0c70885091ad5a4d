//! What is wrong with a fleet of real processes, as a webhook hears of it: each kind of alert, its end, what is told once
//! and what again, and what is never told.

mod beats;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::fleet as pb;
use harness::catalog::{CREDENTIAL, Document};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON, with_token};
use harness::provider::{Provider, Script};
use harness::receiver::Receiver;
use pb::fleet_report_client::FleetReportClient;
use serde_json::Value;
use tonic::transport::Endpoint;

/// A node that is killed is lost when it missed three heartbeats.
const LOST: Duration = Duration::from_secs(90);
/// Stands in the path of the webhook and must stand nowhere else.
const PLANTED: &str = "planted-hook-5e1f";
const SIGNING: &str = "planted-key-91bc";

/// Times that a test can wait for.
const TIMING: &str = "[timing]\nwait = '1s'\ninterval = '1s'\nresolve-after = '3s'\nmissed-after = '12s'\n";

/// Where the receiver of these tests is called.
fn path() -> String {
    format!("/hook/{PLANTED}")
}

/// Writes an alerts file and returns the flags that name it.
fn flags(dir: &std::path::Path, tables: &str) -> anyhow::Result<Vec<String>> {
    let file: PathBuf = dir.join("alerts.toml");
    std::fs::write(&file, format!("{tables}\n{TIMING}"))?;
    let runbooks = "https://runbooks.example".to_owned();
    Ok(vec![
        "--alerts-file".to_owned(),
        file.to_string_lossy().into_owned(),
        "--runbooks-url".to_owned(),
        runbooks,
    ])
}

fn webhook(receiver: &Receiver) -> String {
    format!("[[webhooks]]\nname = 'ops'\nurl = '{}'\nsecret = '{SIGNING}'\n", receiver.url(&path()))
}

/// A fleet whose alerts go to a receiver.
async fn fleet_with(receiver: &Receiver, dir: &std::path::Path, nodes: usize) -> anyhow::Result<Fleet> {
    let control_plane_args = flags(dir, &webhook(receiver))?;
    Fleet::start_as(Plan { nodes, control_plane_args, ..Plan::default() }).await
}

fn is(kind: &'static str, status: &'static str, object: &'static str) -> impl Fn(&Value) -> bool {
    move |message: &Value| {
        let alerts = message["alerts"].as_array().cloned().unwrap_or_default();
        let is_of = |alert: &Value| alert["object"] == object && alert["status"] == status;
        message["kind"] == kind && alerts.iter().any(is_of)
    }
}

async fn told(
    receiver: &Receiver,
    kind: &'static str,
    status: &'static str,
    object: &'static str,
    limit: Duration,
) -> anyhow::Result<Value> {
    let what = format!("{kind} {status} {object}");
    let sent = receiver.gets(&path(), &what, limit, is(kind, status, object)).await?;
    let json = sent.json();
    ensure!(json["runbook"] == format!("https://runbooks.example/{kind}.md"), "{json}");
    ensure!(sent.header("x-sluice-signature").starts_with("t="), "{:?}", sent.headers);
    ensure!(sent.header("idempotency-key") == json["id"].as_str().unwrap_or_default(), "{json}");
    Ok(json)
}

/// One model for each channel, so that each is asked.
async fn providers(scripts: &[(&str, Script)]) -> anyhow::Result<(Vec<Provider>, Document)> {
    let (mut all, mut document) = (Vec::new(), Document::new());
    for (name, script) in scripts {
        let provider = Provider::start(name).await?;
        provider.set(script.clone()).await;
        document = document.provider(&provider).model(&format!("of-{name}"), &[name]);
        all.push(provider);
    }
    Ok((all, document))
}

#[tokio::test]
async fn br_042_what_channels_meet_is_told_to_a_webhook_and_again_when_it_is_over() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    let dir = tempfile::tempdir()?;
    let fleet = fleet_with(&receiver, dir.path(), 1).await?;
    let scripts = [
        ("p1", Script::Status(401)),
        ("p2", Script::Status(402)),
        ("p3", Script::Status(403)),
        ("p4", Script::Status(500)),
    ];
    let (providers, document) = providers(&scripts).await?;
    let revision = fleet
        .apply(&document.policy("breaker = { failures = 3, window = \"5m\", cooldown = \"5s\" }"))
        .await?;
    fleet.in_sync(revision).await?;
    let caller = fleet.caller(0)?;
    for name in ["p1", "p2", "p3", "p4", "p4", "p4"] {
        let answer = caller.chat(&format!("of-{name}"), false).await?;
        ensure!(answer.status != 200, "{name} answers");
    }
    told(&receiver, "credential-disabled", "firing", "p1", SOON).await?;
    told(&receiver, "balance-exhausted", "firing", "p2", SOON).await?;
    told(&receiver, "channel-suspended", "firing", "p3 for of-p3", SOON).await?;
    let open = told(&receiver, "breaker-open", "firing", "p4", SOON).await?;
    ensure!(open["summary"] == "the breaker of channel p4 is open on 1 of 1 nodes: node-1", "{open}");

    let listed = fleet.sluice(&["alerts", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    let kinds: Vec<&str> = listed["alerts"]
        .as_array()
        .context("alerts")?
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    ensure!(kinds.contains(&"credential-disabled") && kinds.contains(&"balance-exhausted"), "{listed}");
    ensure!(listed["receivers"] == serde_json::json!(["ops"]), "{listed}");
    let (_, metrics) = fleet.http("/metrics").await?;
    ensure!(metrics.contains("sluice_alerts_active{kind=\"credential-disabled\"} 1"), "{metrics}");

    // The first trial of what is suspended comes after a minute: the breaker is over before.
    told(&receiver, "breaker-open", "resolved", "p4", SOON).await?;
    for provider in &providers {
        provider.set(Script::Healthy).await;
    }
    eventually("the suspension of p3 ends", SOON * 3, || async {
        let answer = caller.chat("of-p3", false).await?;
        ensure!(answer.status == 200, "{}", answer.status);
        Ok(())
    })
    .await?;
    told(&receiver, "channel-suspended", "resolved", "p3 for of-p3", SOON).await?;
    let firing = receiver
        .sent(&path())
        .iter()
        .filter(|sent| is("credential-disabled", "firing", "p1")(&sent.json()))
        .count();
    ensure!(firing == 1, "told {firing} times");
    receiver.holds_none_of(&[PLANTED, SIGNING, CREDENTIAL, &fleet.key])?;
    for process in fleet.processes() {
        ensure!(
            !process.log().iter().any(|line| line.contains(PLANTED) || line.contains(SIGNING)),
            "a log has it"
        );
    }
    fleet.finish()
}

#[tokio::test]
async fn a_node_that_is_killed_in_its_stage_is_told_as_lost_and_its_rollout_as_halted() -> anyhow::Result<()>
{
    let receiver = Receiver::start().await?;
    let dir = tempfile::tempdir()?;
    let mut fleet = fleet_with(&receiver, dir.path(), 2).await?;
    let provider = Provider::start("p1").await?;
    let document = Document::new().provider(&provider).model("m", &["p1"]);
    let revision = fleet.apply(&document).await?;
    fleet.in_sync(revision).await?;
    let file = dir.path().join("next.toml");
    let next = document.model("n", &["p1"]).text();
    std::fs::write(&file, format!("[rollout]\nstages = [\"1\", \"100%\"]\nbake = \"10m\"\n{next}"))?;
    fleet.sluice(&["catalog", "apply", "-f", &file.to_string_lossy()]).await?.with_code(0)?;
    // One of both has it and is watched; were it the only one, there would be nothing to wait for.
    let staged = eventually("the first stage has the revision", SOON, || async {
        let nodes = fleet.list_nodes().await?;
        let mut running = nodes.iter().filter(|node| node.applied_revision == revision + 1);
        let first = running.next().context("no node has it")?;
        ensure!(running.next().is_none(), "both have it");
        Ok(usize::from(first.id == "node-2"))
    })
    .await?;
    let name = ["node-1", "node-2"][staged];
    fleet.nodes[staged].kill().await?;
    told(&receiver, "node-lost", "firing", name, LOST).await?;
    told(&receiver, "rollout-halted", "firing", "revision 2", LOST).await?;

    fleet.nodes[staged].start_again().await?;
    told(&receiver, "node-lost", "resolved", name, SOON * 2).await?;
    told(&receiver, "rollout-halted", "resolved", "revision 2", SOON * 2).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_node_that_counts_otherwise_is_told_of_and_a_silence_is_kept_and_written_down() -> anyhow::Result<()>
{
    let receiver = Receiver::start().await?;
    let dir = tempfile::tempdir()?;
    let fleet = fleet_with(&receiver, dir.path(), 0).await?;
    let silence =
        ["alerts", "silence", "counter-mismatch", "quiet", "--for", "1h", "--reason", "a test", "-o", "json"];
    let silence = fleet.sluice(&silence).await?.with_code(0)?.json()?;
    for node in ["quiet", "loud"] {
        report_wrong_totals(&fleet, node).await?;
    }
    told(&receiver, "counter-mismatch", "firing", "loud", SOON).await?;
    let listed = fleet.sluice(&["alerts", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    let silenced = listed["alerts"].as_array().context("alerts")?.iter().find(|one| one["object"] == "quiet");
    ensure!(silenced.is_some_and(|one| one["silenced"] == true && one["told"] == false), "{listed}");
    let any = |object| {
        receiver.sent(&path()).iter().any(|sent| is("counter-mismatch", "firing", object)(&sent.json()))
    };
    ensure!(!any("quiet"), "it is silenced");

    let id = silence["id"].as_str().context("an id")?;
    fleet.sluice(&["alerts", "unsilence", id]).await?.with_code(0)?;
    fleet.sluice(&["alerts", "unsilence", id]).await?.with_code(1)?;
    told(&receiver, "counter-mismatch", "firing", "quiet", SOON).await?;
    let audit =
        fleet.sluice(&["audit", "list", "--action", "alert", "-o", "json"]).await?.with_code(0)?.json()?;
    let actions: Vec<&str> = audit["entries"]
        .as_array()
        .context("entries")?
        .iter()
        .filter_map(|one| one["action"].as_str())
        .collect();
    ensure!(actions == ["alert.unsilence", "alert.silence"], "{audit}");
    fleet.finish()
}

/// Says that a node has served one request, in totals that know of none.
async fn report_wrong_totals(fleet: &Fleet, node: &str) -> anyhow::Result<()> {
    let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
    let conn = Endpoint::from_shared(fleet.fleet_url().to_owned())?.connect().await?;
    let now_ms = common::clock::Clock::system().now_ms();
    let served = pb::RequestCount { model: "m".to_owned(), outcome: "served".to_owned(), count: 1 };
    let window = pb::Window {
        first_seq: 1,
        last_seq: 1,
        start_ms: now_ms - 20_000,
        end_ms: now_ms - 10_000,
        requests: vec![served],
        ..pb::Window::default()
    };
    let request = pb::ReportRequest {
        node_id: node.to_owned(),
        boot_id: "boot".to_owned(),
        window: Some(window),
        totals: Some(pb::Totals::default()),
        acknowledged_through: 0,
    };
    let mut client = FleetReportClient::with_interceptor(conn, with_token(token.trim())?);
    client.report(request).await?;
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_is_away_is_told_again_under_the_same_name_and_a_test_says_who_takes_it()
-> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    receiver.answer(500);
    let dir = tempfile::tempdir()?;
    let mut fleet = fleet_with(&receiver, dir.path(), 0).await?;
    let test = fleet.sluice(&["alerts", "test"]).await?.with_code(1)?;
    ensure!(test.out.contains("ops") && test.out.contains("answered 500"), "{test:?}");
    report_wrong_totals(&fleet, "n").await?;
    told(&receiver, "counter-mismatch", "firing", "n", SOON).await?;
    let listed = fleet.sluice(&["alerts", "list"]).await?.with_code(0)?;
    ensure!(listed.out.contains("NOT TAKEN") && listed.out.contains("answered 500"), "{listed:?}");
    // What is to be told outlives the control plane.
    fleet.control_plane.kill().await?;
    fleet.control_plane.start_again().await?;
    receiver.answer(204);
    eventually("it is told again", SOON * 2, || async {
        let listed = fleet.sluice(&["alerts", "list", "-o", "json"]).await?.with_code(0)?.json()?;
        ensure!(listed["undelivered"] == serde_json::json!([]), "{listed}");
        Ok(())
    })
    .await?;
    let sent = receiver.sent(&path());
    let mut names: Vec<&str> = sent.iter().map(|sent| sent.header("idempotency-key")).collect();
    names.retain(|name| name.starts_with("counter-mismatch"));
    let count = names.len();
    names.dedup();
    ensure!(count > 1 && names.len() == 1, "{count} of {names:?}");
    let test = fleet.sluice(&["alerts", "test"]).await?.with_code(0)?;
    ensure!(test.out.contains("took it"), "{test:?}");
    fleet.finish()
}
