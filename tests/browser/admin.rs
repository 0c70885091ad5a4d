//! The admin pages: somebody logs in, looks and acts, by keyboard alone.

use anyhow::ensure;
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED};
use harness::provider::{Provider, Script};

use crate::driver::{View, WalkStep, walk, walk_once};
use crate::status::short_windows;

fn token(fleet: &Fleet) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(fleet.control_plane.data_dir().join("admin.token"))?;
    Ok(text.trim().to_owned())
}

/// The steps of logging in, to the page that was asked for.
fn logged_in<'a>(path: &'a str, token: &'a str, until: &'a str) -> [WalkStep<'a>; 5] {
    [("go", path), ("to", "Token"), ("write", token), ("follow", "Enter"), ("until", until)]
}

fn is_well(views: &[View], stops: usize) {
    assert_eq!(views.len(), stops);
    for view in views {
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
}

/// What was seen at a stop.
fn at<'a>(views: &'a [View], stop: &'a str) -> impl Iterator<Item = &'a View> {
    views.iter().filter(move |view| view.name.split(' ').next() == Some(stop))
}

#[tokio::test]
async fn somebody_logs_in_looks_at_a_chain_and_compares_two_revisions() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows()).await?;
    let catalog = chain_of("m", &[&p1, &p2]);
    fleet.apply(&catalog).await?;
    let other =
        catalog.map_text(|text| text.replace("[channels.p1]", "[channels.p1]\nbreaker = { failures = 7 }"));
    let revision = fleet.apply(&other).await?;
    fleet.in_sync(revision).await?;
    let token = token(&fleet)?;

    let mut steps = vec![("go", "/admin"), ("until", "Log in"), ("see", "login")];
    steps.extend(logged_in("/admin", &token, "Open breakers"));
    steps.extend([("see", "models"), ("to", "m"), ("follow", "Enter"), ("until", "Who would serve now")]);
    steps.extend([("see", "model"), ("to", "Catalog"), ("follow", "Enter"), ("until", "the newest first")]);
    steps.extend([("see", "catalog"), ("to", "Compare"), ("follow", "Enter"), ("until", "Before")]);
    steps.extend([("see", "diff"), ("to", "Log out"), ("follow", "Enter"), ("until", "Log in")]);
    let views = walk(fleet.control_plane.address("http")?, "admin", &steps).await?;
    is_well(&views, 4 * 5);
    for view in at(&views, "model") {
        let chain = view.table("The chain of revision 2")?;
        assert_eq!(chain.rows[0][..3], ["1", "p1", "up-m"], "{}", view.name);
        let serving = view.table("Who would serve now")?.row("node-1")?;
        assert_eq!(serving[..], ["2", "p1", "p2", "nothing is out"], "{}", view.name);
    }
    for view in at(&views, "catalog") {
        let row = view.table("Revisions, the newest first")?.row("2")?;
        assert_eq!((row[1], row[3]), ("admin", "since 1"), "{}", view.name);
    }
    for view in at(&views, "diff") {
        let row = view.table("What changes in meaning")?.row("channels.p1.breaker.failures")?;
        assert_eq!(row[..], ["nothing", "7"], "{}", view.name);
    }
    assert!(views.iter().all(|view| !view.text.contains(&token)));
    fleet.finish()
}

#[tokio::test]
async fn somebody_searches_a_request_and_sees_where_its_time_went() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(short_windows()).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1, &p2])).await?;
    fleet.in_sync(revision).await?;
    p1.set(Script::Status(503)).await;
    assert_eq!(fleet.caller(0)?.chat("m", true).await?.status, 200);
    let (token, address) = (token(&fleet)?, fleet.control_plane.address("http")?);
    eventually("the record has come home", REPORTED, || async {
        let listed = fleet.sluice(&["requests", "list", "-o", "json"]).await?;
        ensure!(listed.json()?["requests"].as_array().is_some_and(|all| all.len() == 1), "{listed:?}");
        Ok(())
    })
    .await?;

    let mut steps = logged_in("/admin/requests", &token, "What failed on the way").to_vec();
    steps.extend([
        ("see", "requests"),
        ("to", "Failed with class"),
        ("write", "overloaded"),
        ("follow", "Enter"),
    ]);
    steps.extend([("until", "Served all the same"), ("see", "found"), ("to", "Requests, the newest first")]);
    steps.extend([
        ("press", "Tab"),
        ("follow", "Enter"),
        ("until", "Where its time went"),
        ("see", "request"),
    ]);
    let views = walk(address, "admin", &steps).await?;
    is_well(&views, 4 * 3);
    for view in at(&views, "found") {
        let failed = view.table("What failed on the way, most first")?;
        assert_eq!(failed.row("p1")?[..], ["overloaded", "1", "1"], "{}", view.name);
        let [found] = &view.table("Requests, the newest first")?.rows[..] else { panic!("{}", view.text) };
        assert_eq!(
            (found[2..7].join(" "), &found[8]),
            ("m p2 2 served 200".to_owned(), &"node-1".to_owned())
        );
    }
    for view in at(&views, "request") {
        let hops = view.table("What became of each hop")?;
        assert_eq!(hops.rows[0][..4], ["1", "p1", "up-m", "overloaded, status 503"], "{}", view.name);
        assert!(hops.rows[1][3].starts_with("ok, status 200, gate: content"), "{:?}", hops.rows[1]);
        assert!(view.text.contains("The same is decided again"), "{}", view.text);
        let lanes: Vec<_> =
            view.pictures.iter().map(|lane| (lane.label.split(':').next(), lane.bars.len())).collect();
        assert_eq!(lanes, [(Some("p1"), 2), (Some("p2"), 3)], "{:?}", view.pictures);
    }
    fleet.finish()
}

#[tokio::test]
async fn somebody_pauses_resumes_and_aborts_a_rollout() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::start_as(Plan { nodes: 2, ..short_windows() }).await?;
    let catalog = chain_of("m", &[&p1, &p2]);
    let revision = fleet.apply(&catalog).await?;
    fleet.in_sync(revision).await?;
    // It waits at its first stage until somebody comes.
    let staged = |text: &str| format!("{text}\n[rollout]\nstages = [\"1\", \"100%\"]\nbake = \"1h\"\n");
    let file = fleet.dir().join("staged.toml");
    std::fs::write(&file, catalog.model("other", &["p2"]).map_text(staged).text())?;
    fleet.sluice(&["catalog", "apply", "-f", &file.to_string_lossy()]).await?.with_code(0)?;
    let (token, address) = (token(&fleet)?, fleet.control_plane.address("http")?);

    let mut steps = logged_in("/admin/rollouts", &token, "Nodes of the open stages").to_vec();
    steps.extend([("until", "This page updates itself."), ("see", "rollout"), ("to", "Why it is paused")]);
    steps.extend([
        ("write", "a closer look"),
        ("follow", "Enter"),
        ("until", "paused by admin: a closer look"),
    ]);
    steps.extend([("see", "paused"), ("to", "Resume"), ("follow", "Enter"), ("until", "Why it is paused")]);
    let views = walk(address, "admin", &steps).await?;
    is_well(&views, 4 * 2);
    for view in at(&views, "rollout") {
        let members = &view.table("Nodes of the open stages")?.rows;
        assert!(matches!(&members[..], [one] if one[1] == "1"), "{}: {members:?}", view.name);
        assert!(view.text.contains("running") && view.text.contains("1, 100%"), "{}", view.text);
    }

    let mut steps = logged_in("/admin/rollouts", &token, "Nodes of the open stages").to_vec();
    steps.extend([("to", "Abort"), ("follow", "Enter"), ("until", "aborted"), ("see", "aborted")]);
    steps.extend([
        ("to", "Nodes"),
        ("follow", "Enter"),
        ("until", "node-2"),
        ("see", "nodes"),
        ("to", "node-1"),
    ]);
    steps.extend([
        ("follow", "Enter"),
        ("until", "Out now"),
        ("see", "node"),
        ("to", "Keys"),
        ("follow", "Enter"),
    ]);
    steps.extend([("until", "Keys of applications"), ("see", "keys")]);
    let views = walk_once(address, "admin", &steps).await?;
    is_well(&views, 4);
    assert_eq!(views[0].table("The rollouts before")?.row("2")?[0], "aborted", "{}", views[0].text);
    assert_eq!(views[1].table("Nodes")?.rows.len(), 2, "{}", views[1].text);
    assert!(views[2].text.contains("Callers reach it at"), "{}", views[2].text);
    assert_eq!(views[3].table("Keys of applications")?.rows.len(), 1, "{}", views[3].text);
    fleet.in_sync(3).await?;
    let log = fleet.sluice(&["audit", "list", "-o", "json"]).await?.out;
    for action in ["rollout.pause", "rollout.resume", "rollout.abort"] {
        assert!(log.contains(action), "{action} is not in {log}");
    }
    fleet.finish()
}
