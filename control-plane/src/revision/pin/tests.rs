//! What may be pinned, what a pinned node should run, and who hears of it.

use super::*;
use crate::nodes::{Applied, Connection, Facts, Finding, Quarantined, Rejected};
use crate::observed::fixture::{CATALOG, Fixture, NOW_MS};
use crate::revision::{Apply, apply};
use crate::rollout::Strategy;
use crate::store::entry::Ask;

fn ann() -> Caller {
    Caller { name: "ann".to_owned(), ..Caller::bootstrap() }
}

/// Three revisions, the last of them for all.
async fn scene() -> Fixture {
    let fixture = Fixture::with_catalog().await;
    for cost in ["8.01", "8.02"] {
        let ask = Apply {
            strategy: Strategy::Immediate,
            reason: "a test",
            ..Apply::of(CATALOG.replace("8.00", cost), ann())
        };
        apply(&fixture.plane, ask).await.unwrap();
    }
    fixture
}

async fn part(plane: &Plane, revision: u64) -> Part {
    let full = plane.store.revision(revision).await.unwrap().unwrap();
    Part { version: revision, sha256: full.snapshot_sha256 }
}

/// A node that runs a revision.
async fn running(fixture: &Fixture, id: &str, revision: u64) -> (Connection, Facts) {
    let plane = &fixture.plane;
    let wanted = plane.wanted().unwrap();
    let catalog = Some(part(plane, revision).await);
    let applied =
        Applied { epoch: wanted.target.epoch, catalog, keys: Some(wanted.target.keys.part), secrets: None };
    let facts = Facts { applied, ..Facts::default() };
    (plane.nodes.connect(id, facts.clone()), facts)
}

fn target(plane: &Plane, id: &str) -> u64 {
    let wanted = plane.wanted().unwrap();
    plane.nodes.list(Some(&wanted)).into_iter().find(|view| view.id == id).unwrap().target_revision
}

async fn refused(plane: &Plane, node: &str, revision: u64) -> String {
    match pin(plane, &ann(), node, revision, "").await {
        Err(Error::Unfit(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pinned_node_is_given_that_revision_until_it_is_unpinned_and_both_are_audited() {
    let fixture = scene().await;
    let plane = &fixture.plane;
    let (_conn, _) = running(&fixture, "n", 1).await;
    let (_other, _) = running(&fixture, "other", 1).await;
    pin(plane, &ann(), "n", 2, "canary").await.unwrap();
    assert_eq!((target(plane, "n"), target(plane, "other")), (2, 3));
    let wanted = plane.wanted().unwrap();
    let aim = wanted.aim("n", &Facts::default()).catalog.unwrap();
    assert_eq!(wanted.content(aim).unwrap().part.version, 2, "there is something to send");
    assert_eq!(wanted.pins.of("n").unwrap().pin.pinned_at_ms, NOW_MS);

    // Another control plane reads the same.
    let second = crate::revision::head::Head::unread(plane.clock.clone(), plane.keyring.clone());
    second.refresh(&plane.store).await.unwrap();
    assert_eq!(second.now().unwrap().aim("n", &Facts::default()).catalog, Some(aim));

    pin(plane, &ann(), "n", 3, "").await.unwrap();
    assert_eq!(target(plane, "n"), 3);
    assert_eq!(unpin(plane, &ann(), "n").await.unwrap(), 3);
    assert_eq!(unpin(plane, &ann(), "n").await.unwrap(), 0);
    assert_eq!(target(plane, "n"), 3);
    let ask = Ask { before: u64::MAX, limit: 10, action: "node.".to_owned(), ..Ask::default() };
    let log = plane.store.log(&ask).await.unwrap();
    let told = |kept: &crate::store::entry::Kept| {
        let entry = &kept.entry;
        (entry.actor.clone(), entry.action.clone(), entry.object.clone(), entry.before.clone())
    };
    let entry = |action: &str, before: Option<&str>| {
        ("ann".to_owned(), action.to_owned(), "n".to_owned(), before.map(str::to_owned))
    };
    let want = [
        entry("node.unpin", Some(r#"{"reason":"","revision":3}"#)),
        entry("node.pin", Some(r#"{"reason":"canary","revision":2}"#)),
        entry("node.pin", None),
    ];
    assert_eq!(log.iter().map(told).collect::<Vec<_>>(), want);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let fixture = scene().await;
    let plane = &fixture.plane;
    let (_conn, _) = running(&fixture, "n", 1).await;
    let is_unknown = |result: Result<(), Error>| matches!(result, Err(Error::NotFound { .. }));
    assert!(is_unknown(pin(plane, &ann(), "nobody", 1, "").await));
    assert!(is_unknown(pin(plane, &ann(), "n", 4, "").await));
    assert!(is_unknown(unpin(plane, &ann(), "nobody").await.map(drop)));
    fixture.execute("delete from revision where number = 2").await;
    assert!(is_unknown(pin(plane, &ann(), "n", 2, "").await));
    let long = "x".repeat(REASON_BYTES_MAX + 1);
    assert!(matches!(pin(plane, &ann(), "n", 3, &long).await, Err(Error::Argument { field: "reason", .. })));
    assert_eq!(plane.store.pins().await.unwrap().1, []);
}

#[tokio::test]
async fn a_node_is_not_kept_on_what_it_has_passed_refused_or_cannot_serve() {
    let fixture = scene().await;
    let plane = &fixture.plane;
    let (conn, facts) = running(&fixture, "n", 2).await;
    let why = refused(plane, "n", 1).await;
    assert!(why.contains("runs revision 2 already") && why.contains("catalog rollback 1"), "{why}");

    let three = part(plane, 3).await;
    let violations = vec![Finding { path: "channels[0]".into(), message: "no".into() }];
    conn.record(&Facts { rejected: vec![Rejected { part: three, violations }], ..facts.clone() });
    let why = refused(plane, "n", 3).await;
    assert!(why.contains("refused it: channels[0]: no"), "{why}");
    let quarantined = vec![Quarantined { part: three, crashes: 2 }];
    conn.record(&Facts { quarantined, ..facts.clone() });
    assert!(refused(plane, "n", 3).await.contains("put it aside"));
    // What a node did not say is not held against it: it says its schema, and knows nothing.
    conn.record(&Facts { schema: 1, version: "0.0.9".into(), ..facts.clone() });
    let demanding = CATALOG.replacen("credential", "include_usage = true\ncredential", 1);
    apply(plane, Apply::of(demanding, ann())).await.unwrap();
    let why = refused(plane, "n", 4).await;
    assert!(why.contains("0.0.9") && why.contains("include-usage"), "{why}");

    // After a new epoch there is nothing that it has passed.
    conn.record(&facts);
    let epoch = plane.wanted().unwrap().target.epoch;
    let entry = crate::audit::epoch_entry(0, epoch, epoch + 1);
    plane.store.begin_epoch(epoch, epoch + 1, &entry).await.unwrap();
    pin(plane, &ann(), "n", 1, "").await.unwrap();
    assert_eq!(target(plane, "n"), 1);
}

#[tokio::test]
async fn a_node_that_passed_its_pin_meanwhile_keeps_what_it_has_and_it_is_said() {
    let fixture = scene().await;
    let plane = &fixture.plane;
    let (conn, facts) = running(&fixture, "n", 2).await;
    pin(plane, &ann(), "n", 2, "").await.unwrap();
    let catalog = Some(part(plane, 3).await);
    conn.record(&Facts { applied: Applied { catalog, ..facts.applied }, ..facts });
    let wanted = plane.wanted().unwrap();
    let view = plane.nodes.list(Some(&wanted)).remove(0);
    assert_eq!(view.target_revision, 3);
    assert!(view.warnings()[0].message.contains("pinned to revision 2 and keeps revision 3"), "{view:?}");
}

#[tokio::test]
async fn a_pin_of_a_revision_that_was_lost_counts_for_nothing_and_stops_nobody() {
    let fixture = scene().await;
    let plane = &fixture.plane;
    let (_conn, _) = running(&fixture, "n", 1).await;
    pin(plane, &ann(), "n", 2, "").await.unwrap();
    fixture.execute("delete from revision where number = 2").await;
    let second = crate::revision::head::Head::unread(plane.clock.clone(), plane.keyring.clone());
    second.refresh(&plane.store).await.unwrap();
    let wanted = second.now().unwrap();
    assert_eq!(wanted.aim("n", &Facts::default()).catalog.unwrap().version, 3);
    assert!(wanted.pins.of("n").is_none());
}
