//! What is shown of nodes: by what they said, by whether they are connected, by time.

use super::*;
use crate::error::Error;
use crate::revision::encoded::{Encoded, Part, Target};
use crate::secrets::held::Held;

const LOST_MS: u64 = HEARTBEAT_LOST.as_millis() as u64;

fn own() -> rows::Replica {
    rows::Replica { id: "p1".to_owned(), name: "one:7444".to_owned(), ..rows::Replica::default() }
}

fn part(version: u64) -> Part {
    Part { version, sha256: [version as u8; 32] }
}

fn target(revision: u64) -> Wanted {
    let encoded = |part| Encoded { part, packed: Default::default(), needs: Default::default() };
    let secrets = Held::none();
    let target =
        Target { epoch: 1, catalog: Some(encoded(part(revision))), keys: encoded(part(100)), secrets };
    Wanted { target, current: None, base: None, rollout: None, pins: Arc::default() }
}

fn running(revision: u64) -> Facts {
    let applied = Applied { epoch: 1, catalog: Some(part(revision)), keys: Some(part(100)), secrets: None };
    Facts { boot_id: "b".into(), applied, ..Facts::default() }
}

fn state(nodes: &Nodes, target: &Wanted) -> State {
    nodes.list(Some(target))[0].state
}

#[test]
fn a_node_is_in_sync_behind_rejected_or_quarantined_by_what_it_says() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let conn = nodes.connect("n", running(1));
    assert_eq!(state(&nodes, &target(1)), State::InSync);
    assert_eq!(state(&nodes, &target(2)), State::Behind);
    let violations = vec![Finding { path: "p".into(), message: "no".into() }];
    let mut facts = Facts { rejected: vec![Rejected { part: part(2), violations }], ..running(1) };
    conn.record(&facts);
    assert_eq!(state(&nodes, &target(2)), State::Rejected);
    assert_eq!(nodes.list(Some(&target(2)))[0].violations().len(), 1);
    assert_eq!(nodes.list(Some(&target(3)))[0].violations(), []);
    assert_eq!(state(&nodes, &target(3)), State::Behind);
    facts.quarantined = vec![Quarantined { part: part(3), crashes: 2 }];
    conn.record(&facts);
    assert_eq!(state(&nodes, &target(3)), State::Quarantined);
}

#[test]
fn a_node_that_lacks_what_the_target_needs_is_incompatible_and_says_what_it_lacks() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let known = ["a".to_owned()].into();
    let conn = nodes.connect("n", Facts { schema: 1, features: known, version: "0.9".into(), ..running(1) });
    let needs = |names: &[&str]| {
        let features = names.iter().map(|name| (*name).to_owned()).collect();
        Arc::new(Needs { schema: 1, features })
    };
    let mut wants = target(2);
    wants.target.catalog.as_mut().unwrap().needs = needs(&["a"]);
    assert_eq!(state(&nodes, &wants), State::Behind);
    assert_eq!(nodes.lacking(&needs(&["a"])), []);
    wants.target.catalog.as_mut().unwrap().needs = needs(&["a", "b"]);
    assert_eq!(state(&nodes, &wants), State::Incompatible);
    let [said] = &nodes.list(Some(&wants))[0].violations()[..] else { panic!() };
    assert!(said.message.contains("version 0.9") && said.message.contains("lacks b"), "{}", said.message);
    let lacking = Lacking { node_id: "n".into(), version: "0.9".into(), lacks: vec!["b".into()] };
    assert_eq!(nodes.lacking(&needs(&["a", "b"])), [lacking]);
    // A node that left is not asked, and what one did not say is not held against it.
    conn.record(&Facts { drained: true, schema: 1, ..running(1) });
    drop(conn);
    let _silent = nodes.connect("m", running(1));
    assert_eq!(nodes.lacking(&needs(&["b"])), []);
}

#[test]
fn fr_029_a_node_that_is_away_is_only_shown_and_has_time_to_come_back() {
    let clock = Clock::manual(0);
    let nodes = Nodes::new(&own(), clock.clone());
    drop(nodes.connect("n", running(1)));
    clock.set_ms(LOST_MS - 1);
    assert_eq!(state(&nodes, &target(1)), State::InSync);
    clock.set_ms(LOST_MS);
    assert_eq!(state(&nodes, &target(1)), State::Lost);
    assert_eq!(nodes.count(), (0, 1));
}

#[test]
fn fr_029_after_a_restart_every_node_has_time_to_find_its_way_here() {
    let (clock, before) = (Clock::manual(0), Nodes::new(&own(), Clock::manual(0)));
    let conn = before.connect("n", running(1));
    let rows = before.take_dirty();
    drop(conn);
    clock.set_ms(10 * LOST_MS);
    let nodes = Nodes::new(&own(), clock.clone());
    nodes.take_in(1, rows);
    assert_eq!(state(&nodes, &target(1)), State::InSync);
    assert!(!nodes.list(None)[0].connected);
    clock.set_ms(11 * LOST_MS);
    assert_eq!(state(&nodes, &target(1)), State::Lost);
}

#[test]
fn a_node_that_left_on_purpose_is_drained_and_not_lost() {
    let clock = Clock::manual(0);
    let nodes = Nodes::new(&own(), clock.clone());
    let conn = nodes.connect("n", running(1));
    conn.record(&Facts { drained: true, ..running(1) });
    drop(conn);
    clock.set_ms(10 * LOST_MS);
    assert_eq!(state(&nodes, &target(1)), State::Drained);
}

#[test]
fn a_newer_stream_of_the_same_node_takes_over_and_the_older_changes_nothing_any_more() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let older = nodes.connect("n", running(1));
    let newer = nodes.connect("n", running(2));
    assert!(older.replaced.is_cancelled() && !newer.replaced.is_cancelled());
    older.record(&running(1));
    drop(older);
    assert_eq!(nodes.count(), (1, 1));
    assert_eq!(nodes.list(None)[0].applied_revision, 2);
}

#[test]
fn a_stream_that_ends_while_a_newer_one_takes_over_does_not_close_that() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let mut newest = nodes.connect("n", running(1));
    for round in 0..2_000 {
        let older = newest;
        newest = std::thread::scope(|scope| {
            let ending = scope.spawn(move || drop(older));
            let newer = nodes.connect("n", running(2));
            ending.join().unwrap();
            newer
        });
        assert_eq!(nodes.count(), (1, 1), "round {round}");
    }
}

#[test]
fn open_breakers_are_those_of_connected_nodes() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let open = |channels: &[&str]| Facts {
        open_channels: channels.iter().map(ToString::to_string).collect(),
        ..running(1)
    };
    let (a, b) = (nodes.connect("n1", running(1)), nodes.connect("n2", running(1)));
    a.record(&open(&["x", "y"]));
    b.record(&open(&["x"]));
    assert_eq!(nodes.open_channels()["x"], ["n1", "n2"]);
    drop(a);
    assert_eq!(nodes.open_channels().keys().collect::<Vec<_>>(), ["x"]);
}

#[test]
fn the_store_hears_of_lasting_changes_at_once_and_of_mere_life_once_a_minute() {
    let clock = Clock::manual(0);
    let nodes = Nodes::new(&own(), clock.clone());
    let conn = nodes.connect("n", running(1));
    let rows = nodes.take_dirty();
    assert_eq!((rows.len(), rows[0].applied_revision), (1, 1));
    nodes.give_back(&rows);
    assert_eq!(nodes.take_dirty(), rows, "what the store did not take is taken again");
    clock.set_ms(15_000);
    conn.record(&Facts { in_flight: 9, ..running(1) });
    assert_eq!(nodes.take_dirty(), []);
    clock.set_ms(60_000);
    conn.record(&running(1));
    assert_eq!(nodes.take_dirty()[0].last_seen_at_ms, 60_000);
    conn.record(&running(2));
    assert_eq!(nodes.take_dirty()[0].applied_revision, 2);
}

#[test]
fn watchers_hear_of_visible_changes_alone() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let conn = nodes.connect("n", running(1));
    let mut changes = nodes.subscribe();
    changes.borrow_and_update();
    conn.record(&running(1));
    assert!(!changes.has_changed().unwrap());
    conn.record(&running(2));
    assert!(changes.has_changed().unwrap());
}

#[test]
fn the_store_remembers_what_lasts() {
    let facts = Facts {
        version: "1.2".into(),
        schema: 3,
        features: ["a".to_owned()].into(),
        labels: [("zone".to_owned(), "eu".to_owned())].into(),
        data_address: "127.0.0.1:1".into(),
        rejected: vec![Rejected { part: part(2), violations: vec![] }],
        quarantined: vec![Quarantined { part: part(3), crashes: 2 }],
        warnings: vec![Finding { path: "channels.a.credential".into(), message: "A is not set".into() }],
        ..running(1)
    };
    assert_eq!(Facts::from_row(&facts.to_row("n", 5, 4)), facts);
}

#[test]
fn only_a_node_that_was_lost_a_moment_ago_may_hold_what_it_has_not_reported() {
    let (doubt, arrival) = (Duration::from_secs(300), Duration::from_secs(45));
    let clock = Clock::manual(1_000_000);
    let nodes = Nodes::new(&own(), clock.clone());
    let may = |nodes: &Nodes| nodes.may_have_unreported(doubt, arrival);
    assert!(!may(&nodes), "there is none");
    let conn = nodes.connect("n", running(1));
    assert!(!may(&nodes), "it is here, and reports");
    drop(conn);
    let lost_at = clock.now_ms();
    for (after_ms, expected) in [(0, true), (299_999, true), (300_000, false)] {
        clock.set_ms(lost_at + after_ms);
        assert_eq!(may(&nodes), expected, "{after_ms} ms after it was lost");
    }
    let rows = nodes.take_dirty();
    let conn = nodes.connect("n", Facts { drained: true, ..running(1) });
    drop(conn);
    assert!(!may(&nodes), "it left on purpose, with everything reported");

    // After a restart nobody knows since when a node is gone that is not back yet.
    let started_at = clock.now_ms() + 1_000_000;
    clock.set_ms(started_at);
    let restarted = Nodes::new(&own(), clock.clone());
    restarted.take_in(1, rows);
    for (after_ms, expected) in [(0, true), (44_999, true), (45_000, false)] {
        clock.set_ms(started_at + after_ms);
        assert_eq!(may(&restarted), expected, "{after_ms} ms after the start");
    }
}

#[test]
fn a_connected_node_that_owes_its_target_for_a_minute_is_stale_until_it_has_it() {
    let clock = Clock::manual(0);
    let nodes = Nodes::new(&own(), clock.clone());
    let conn = nodes.connect("n", running(1));
    let stale_ms = NODE_STALE.as_millis() as u64;
    assert_eq!(state(&nodes, &target(2)), State::Behind);
    clock.set_ms(stale_ms - 1);
    assert_eq!(state(&nodes, &target(2)), State::Behind);
    // Another target is owed anew.
    assert_eq!(state(&nodes, &target(3)), State::Behind);
    clock.set_ms(stale_ms);
    assert_eq!(state(&nodes, &target(3)), State::Behind);
    clock.set_ms(2 * stale_ms);
    assert_eq!(state(&nodes, &target(3)), State::Stale);
    let refused = vec![Rejected { part: part(3), violations: vec![] }];
    conn.record(&Facts { rejected: refused, ..running(1) });
    assert_eq!(state(&nodes, &target(3)), State::Rejected, "it said why");
    conn.record(&running(3));
    assert_eq!(state(&nodes, &target(3)), State::InSync);
    conn.record(&running(1));
    assert_eq!(state(&nodes, &target(3)), State::Behind, "it owes it anew");
    clock.set_ms(4 * stale_ms);
    conn.record(&running(1));
    assert_eq!(state(&nodes, &target(3)), State::Stale);
    drop(conn);
    assert_eq!(state(&nodes, &target(3)), State::Behind, "who is away is lost by and by, not stale");
}

#[test]
fn the_age_of_a_config_counts_from_when_it_was_first_seen_there_over_reconnects_and_restarts() {
    let clock = Clock::manual(1_000);
    let nodes = Nodes::new(&own(), clock.clone());
    let since = |nodes: &Nodes| nodes.list(None)[0].config_since_ms;
    let conn = nodes.connect("n", running(1));
    clock.set_ms(2_000);
    conn.record(&running(1));
    assert_eq!(since(&nodes), 1_000);
    let newer = nodes.connect("n", running(1));
    assert_eq!(since(&nodes), 1_000);
    let restarted = Nodes::new(&own(), clock.clone());
    restarted.take_in(1, nodes.take_dirty());
    assert_eq!(since(&restarted), 1_000);
    let _again = restarted.connect("n", running(1));
    assert_eq!(since(&restarted), 1_000);
    newer.record(&running(2));
    assert_eq!(since(&nodes), 2_000);
    drop(conn);
}

#[tokio::test]
async fn an_order_reaches_the_open_stream_of_a_node_that_understands_it() {
    let nodes = Nodes::new(&own(), Clock::manual(0));
    let leave = || Order::Leave("maintenance".to_owned());
    assert!(matches!(nodes.order("n", leave()), Err(Error::NotFound { .. })));
    let old = nodes.connect("n", running(1));
    let refused = nodes.order("n", leave()).unwrap_err().to_string();
    assert!(refused.contains("does not understand"), "{refused}");
    let features = common::feature::known();
    let mut conn = nodes.connect("n", Facts { features, ..running(1) });
    nodes.order("n", leave()).unwrap();
    assert!(matches!(conn.called().await, Call::Order(Order::Leave(why)) if why == "maintenance"));
    for _ in 0..ORDERS_MAX {
        nodes.order("n", Order::Retry).unwrap();
    }
    assert!(matches!(nodes.order("n", Order::Retry), Err(Error::Busy)));
    let _newest = nodes.connect("n", running(1));
    assert!(matches!(conn.called().await, Call::Replaced));
    drop((old, conn, _newest));
    assert!(matches!(nodes.order("n", leave()), Err(Error::Unfit(_))));
}
