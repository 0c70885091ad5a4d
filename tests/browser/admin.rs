//! The admin pages: somebody logs in, looks and acts, by keyboard alone.

use harness::catalog::chain_of;
use harness::fleet::Fleet;
use harness::provider::Provider;

use crate::driver::{View, WalkStep, walk};
use crate::status::short_windows;

fn token(fleet: &Fleet) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(fleet.control_plane.data_dir().join("admin.token"))?;
    Ok(text.trim().to_owned())
}

/// The steps of logging in, to the page that was asked for.
fn logged_in<'a>(path: &'a str, token: &'a str, until: &'a str) -> [WalkStep<'a>; 5] {
    [("go", path), ("to", "Token"), ("write", token), ("press", "Enter"), ("until", until)]
}

fn is_well(views: &[View], stops: usize) {
    assert_eq!(views.len(), 4 * stops);
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
    steps.extend([("see", "models"), ("to", "m"), ("press", "Enter"), ("until", "Who would serve now")]);
    steps.extend([("see", "model"), ("to", "Catalog"), ("press", "Enter"), ("until", "the newest first")]);
    steps.extend([("see", "catalog"), ("to", "Compare"), ("press", "Enter"), ("until", "Before")]);
    steps.extend([("see", "diff"), ("to", "Log out"), ("press", "Enter"), ("until", "Log in")]);
    let views = walk(fleet.control_plane.address("http")?, "admin", &steps).await?;
    is_well(&views, 5);
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
