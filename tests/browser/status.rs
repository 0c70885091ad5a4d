//! The status page shows what callers and channels really lived through, to everybody who can look at it.

use anyhow::ensure;
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED};
use harness::provider::{Provider, Script};

use crate::driver::{Open, look};

/// One node, whose counts are there within seconds.
pub fn short_windows() -> Plan {
    Plan { nodes: 1, node_args: vec!["--window".to_owned(), "1s".to_owned()], ..Plan::default() }
}

/// Asks so often and gives how many answers were good.
async fn ask(fleet: &Fleet, times: usize) -> anyhow::Result<usize> {
    let mut good = 0;
    for number in 0..times {
        let answer = fleet.caller(0)?.chat("m", number % 2 == 0).await?;
        good += usize::from(answer.status == 200);
    }
    Ok(good)
}

#[tokio::test]
async fn the_page_shows_exactly_what_was_counted_in_both_themes_and_on_a_phone() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows()).await?;
    // The breaker of the second channel opens at its third failure.
    let catalog = chain_of("m", &[&p1, &p2])
        .model("unused", &["p2"])
        .policy("breaker = { failures = 3, window = \"5m\", cooldown = \"10m\" }")
        .map_text(|text| text.replace("[channels.p1]", "[channels.p1]\nbreaker = { failures = 1000 }"));
    let revision = fleet.apply(&catalog).await?;
    fleet.in_sync(revision).await?;

    assert_eq!(ask(&fleet, 6).await?, 6);
    p1.set(Script::Status(503)).await;
    assert_eq!(ask(&fleet, 4).await?, 4);
    p2.set(Script::Status(500)).await;
    assert_eq!(ask(&fleet, 3).await?, 0);
    assert_eq!((p1.call_count(), p2.call_count()), (13, 7));

    let address = fleet.control_plane.address("http")?;
    eventually("the counts and the open breaker have arrived", REPORTED, || async {
        let status = fleet.status().await?;
        let model = status.models.iter().find(|model| model.model == "m");
        ensure!(model.is_some_and(|model| (model.served, model.exhausted) == (10, 3)), "{status:?}");
        ensure!(status.channels.iter().any(|channel| channel.open_on == ["node-1"]), "{status:?}");
        Ok(())
    })
    .await?;

    let views = look(address, "/", "status").await?;
    assert_eq!(views.len(), 4);
    for view in &views {
        let table = view.table("m")?;
        assert_eq!(table.head, ["5 min", "1 h", "24 h", "7 d", "90 d"]);
        for (name, cell) in [
            ("requests callers saw first byte p50", "76.92 % 10 served, 3 failed"),
            ("p1 attempts first byte p50", "46.15 % 6 ok, 7 failed"),
            ("p2 attempts first byte p50", "57.14 % 4 ok, 3 failed"),
        ] {
            assert_eq!(table.below(name)?.1, [cell; 5], "{}", view.name);
        }
        let unused = view.table("unused")?;
        assert_eq!(unused.below("requests callers saw")?, ("requests callers saw", vec!["no data"; 5]));
        let all = view.table("Attempts on each channel, of all models")?;
        assert_eq!(all.below("p1 breaker closed")?.1, ["46.15 % 6 ok, 7 failed"; 5], "{}", view.name);
        assert_eq!(all.below("p2 breaker open")?.1, ["57.14 % 4 ok, 3 failed"; 5], "{}", view.name);
        let pictures = |what: &str, tones: &[&str]| {
            let named = view.pictures.iter().filter(|picture| picture.label.starts_with("requests by"));
            let of = named
                .filter(|picture| picture.bars.iter().map(|bar| bar.0.as_str()).eq(tones.iter().copied()));
            of.filter(|picture| picture.label.contains(what)).count()
        };
        // The model has one bar by hour and one by day, the model that nobody used has none.
        assert_eq!(pictures("76.92 %, 10 served, 3 failed", &["bad"]), 2, "{:?}", view.pictures);
        assert_eq!(pictures(": no data", &[]), 2, "{:?}", view.pictures);
        assert!(view.text.contains("p2 is open on node-1"), "{}", view.text);
        // What was good may lie in the five minutes before: it is no part of the incident then.
        for said in [
            "goes on",
            "served, 3 failed (3 exhausted).",
            "What failed most: p1 overloaded",
            "p2 upstream_error 3.",
        ] {
            assert!(view.text.contains(said), "{said} is not in\n{}", view.text);
        }
        assert_eq!(view.documents, ["/incidents.atom 200 feed", "/badge/m.svg 200 svg"], "{}", view.name);
        let node = view.table("What each node runs")?.row("node-1")?;
        assert_eq!(node[..4], ["in sync", "1", "p2", "0"], "{}", view.name);
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    assert_ne!(views[0].paper, views[2].paper, "the dark theme is the light one");
    fleet.finish()
}

#[tokio::test]
async fn a_page_without_data_says_so_and_shows_no_percentage() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    for view in look(fleet.control_plane.address("http")?, "/", "status-empty").await? {
        assert_eq!(view.table("m")?.below("requests callers saw")?.1, ["no data"; 5], "{}", view.name);
        assert!(!view.text.contains('%'), "{}", view.text);
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    fleet.finish()
}

#[tokio::test]
async fn an_open_page_shows_what_is_new_without_being_loaded_again_and_keeps_the_focus() -> anyhow::Result<()>
{
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::start_as(short_windows()).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1])).await?;
    fleet.in_sync(revision).await?;
    let address = fleet.control_plane.address("http")?;
    let page = Open::page(address, "status-live", "nodes-box", "2 served, 1 failed").await?;
    assert_eq!(ask(&fleet, 2).await?, 2);
    p1.set(Script::Status(500)).await;
    assert_eq!(ask(&fleet, 1).await?, 0);
    let seen = page.shown().await?;
    assert_eq!((&seen["loads"], &seen["focus"]), (&1.into(), &"nodes-box".into()), "{seen}");
    assert_eq!(seen["said"], serde_json::json!([]), "{seen}");
    fleet.finish()
}

#[tokio::test]
async fn what_is_suspended_or_cools_down_is_shown_with_its_reason() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows()).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1, &p2])).await?;
    fleet.in_sync(revision).await?;
    p1.set(Script::Status(401)).await;
    p2.set(Script::RateLimited(Some(50))).await;
    assert_eq!(ask(&fleet, 1).await?, 0);
    let address = fleet.control_plane.address("http")?;
    eventually("the node has said what is out", REPORTED, || async {
        let (_, page) = fleet.http("/").await?;
        ensure!(page.contains("credential suspended") && page.contains("cooling down"), "{page}");
        Ok(())
    })
    .await?;
    for view in look(address, "/", "status-out").await? {
        let lines: Vec<_> = view.text.lines().filter(|line| line.ends_with("on node-1")).collect();
        let [first, second] = lines[..] else { panic!("{}", view.text) };
        assert!(first.starts_with("p1 credential suspended (credential) since 20"), "{first}");
        assert!(first.contains(" UTC, next try at 20"), "{first}");
        assert!(second.starts_with("p2 cooling down for m (rate_limited) until 20"), "{second}");
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    fleet.finish()
}
