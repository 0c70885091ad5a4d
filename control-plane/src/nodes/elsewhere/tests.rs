//! Two control planes and a store between them, by hand.

use std::sync::Arc;

use common::clock::Clock;
use common::limits::HEARTBEAT_LOST;

use super::*;
use crate::nodes::State;

const LOST_MS: u64 = HEARTBEAT_LOST.as_millis() as u64;
const REPLICA_LOST_MS: u64 = REPLICA_LOST.as_millis() as u64;
const NOW_MS: u64 = 1_000_000;

fn replica(id: &str, silent_ms: u64) -> rows::Replica {
    rows::Replica { id: id.to_owned(), name: format!("{id}:7444"), silent_ms, ..rows::Replica::default() }
}

fn facts(boot: &str) -> Facts {
    Facts { boot_id: boot.to_owned(), open_channels: vec!["slow".to_owned()], ..Facts::default() }
}

/// The control planes a and b under one clock, and the version of what they last exchanged.
struct Pair {
    clock: Clock,
    a: Arc<Nodes>,
    b: Arc<Nodes>,
    version: u64,
}

impl Pair {
    fn new() -> Self {
        let clock = Clock::manual(NOW_MS);
        let plane = |id| Nodes::new(&replica(id, 0), clock.clone());
        let pair = Pair { a: plane("a"), b: plane("b"), clock, version: 1 };
        pair.both_live();
        pair
    }

    fn both_live(&self) {
        for nodes in [&self.a, &self.b] {
            nodes.see(vec![replica("a", 0), replica("b", 0)]);
        }
    }

    /// Both read what one of them writes, if the store takes it.
    fn writes(&mut self, writer: &Nodes) {
        self.version += 1;
        let rows = writer.take_dirty().into_iter();
        let rows: Vec<_> = rows.map(|row| rows::Node { list_version: self.version, ..row }).collect();
        for nodes in [&self.a, &self.b] {
            nodes.take_in(self.version, rows.clone());
        }
    }

    fn later(&self, ms: u64) {
        self.clock.set_ms(self.clock.now_ms() + ms);
    }
}

fn shown(nodes: &Nodes) -> (bool, String, State) {
    let [node] = &nodes.list(None)[..] else { panic!("one node is known") };
    (node.connected, node.control_plane.clone(), node.state)
}

#[test]
fn every_control_plane_shows_where_a_node_streams_and_what_it_says_there() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let conn = a.connect("n", facts("boot"));
    pair.writes(&a);
    for nodes in [&a, &b] {
        assert_eq!(shown(nodes), (true, "a:7444".to_owned(), State::Behind));
        assert_eq!(nodes.count(), (1, 1));
        assert_eq!(nodes.open_channels()["slow"], ["n"]);
    }
    assert_eq!((a.streams(), b.streams()), (1, 0));
    let names: Vec<_> = b.control_planes().into_iter().map(|replica| replica.name).collect();
    assert_eq!(names, ["a:7444", "b:7444"]);
    assert!(!b.may_have_unreported(Duration::from_secs(300), Duration::ZERO), "it is there");
    drop(conn);
    pair.writes(&a);
    for nodes in [&a, &b] {
        assert_eq!(shown(nodes), (false, String::new(), State::Behind));
        assert!(nodes.open_channels().is_empty());
    }
    pair.later(LOST_MS);
    assert_eq!((shown(&a).2, shown(&b).2), (State::Lost, State::Lost));
}

#[test]
fn fr_029_the_nodes_of_a_control_plane_that_dies_have_time_to_go_to_another_one() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let _conn = a.connect("n", facts("boot"));
    pair.writes(&a);
    pair.later(10 * LOST_MS);
    pair.both_live();
    // The database is away: nobody knows better.
    pair.later(10 * LOST_MS);
    assert_eq!(shown(&b), (true, "a:7444".to_owned(), State::Behind));
    pair.both_live();
    for silent_ms in (2_000..=REPLICA_LOST_MS).step_by(2_000) {
        pair.later(2_000);
        b.see(vec![replica("a", silent_ms), replica("b", 0)]);
        assert_eq!(shown(&b).0, silent_ms < REPLICA_LOST_MS, "{silent_ms}");
    }
    assert_eq!(shown(&b), (false, String::new(), State::Behind));
    pair.later(LOST_MS - 2_000);
    assert_eq!(shown(&b).2, State::Behind, "it was not looked since");
    b.see(vec![replica("b", 0)]);
    assert_eq!(shown(&b).2, State::Lost);
    let _again = b.connect("n", facts("boot"));
    assert_eq!(shown(&b), (true, "b:7444".to_owned(), State::Behind));
}

#[test]
fn after_an_outage_of_the_database_control_planes_have_time_to_be_heard_of_again() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let _conn = a.connect("n", facts("boot"));
    pair.writes(&a);
    // The database is away for an hour, and b is the first to come back.
    let hour_ms = 3_600_000;
    pair.later(hour_ms);
    b.see(vec![replica("a", hour_ms), replica("b", 0)]);
    assert_eq!(shown(&b), (true, "a:7444".to_owned(), State::Behind));
    pair.later(2_000);
    pair.both_live();
    for _ in 0..9 {
        pair.later(2_000);
        pair.both_live();
        assert!(shown(&b).0);
    }
    // Another outage, and a does not come back from it.
    pair.later(hour_ms);
    for step in 0..6 {
        let silent_ms = hour_ms + step * 2_000;
        b.see(vec![replica("a", silent_ms), replica("b", 0)]);
        assert_eq!(shown(&b).0, step * 2_000 < REPLICA_LOST_MS, "{step}");
        pair.later(2_000);
    }
}

#[test]
fn a_node_that_has_moved_is_written_by_the_one_that_it_moved_to() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let half_open = a.connect("n", facts("boot"));
    pair.writes(&a);
    pair.later(1_000);
    let _newer = b.connect("n", facts("boot"));
    pair.writes(&b);
    assert_eq!(a.take_dirty(), [], "the newer stream is there");
    drop(half_open);
    let [row] = &a.take_dirty()[..] else { panic!("its end is written") };
    assert_eq!(row.control_plane.as_deref(), Some(""));
    // Were that taken nevertheless, b would write anew what it knows.
    b.take_in(9, vec![rows::Node { list_version: 9, ..row.clone() }]);
    let [row] = &b.take_dirty()[..] else { panic!("it is here") };
    assert_eq!(row.control_plane.as_deref(), Some("b"));
    assert_eq!(shown(&b).1, "b:7444");
}

#[test]
fn two_processes_that_speak_as_one_node_at_two_control_planes_are_noticed_at_both() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let one = a.connect("n", facts("one"));
    pair.writes(&a);
    pair.later(1_000);
    let _other = b.connect("n", facts("other"));
    pair.writes(&b);
    pair.both_live();
    assert_eq!((a.cloned(), b.cloned()), (0, 0), "the first may be half open");
    pair.later(SKEW_MS);
    one.record(&facts("one"));
    pair.both_live();
    assert_eq!((a.cloned(), b.cloned()), (0, 0), "clocks may differ");
    pair.later(1);
    one.record(&facts("one"));
    pair.both_live();
    assert_eq!((a.cloned(), b.cloned()), (1, 0));
    let told = a.take_clones();
    let [(id, cloned)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((id.as_str(), a.take_clones()), ("n", vec![]), "told once");
    let row =
        rows::Node { cloned: Some(cloned.clone()), list_version: 9, ..facts("other").to_row("n", 0, 0) };
    b.take_in(9, vec![rows::Node { control_plane: Some("b".to_owned()), ..row }]);
    assert_eq!(b.cloned(), 1);
    let warned = &b.list(None)[0].facts.warnings;
    assert!(warned[0].message.contains("boots other and one"), "{warned:?}");
}

#[test]
fn a_restart_elsewhere_is_no_clone() {
    let mut pair = Pair::new();
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let _half_open = a.connect("n", facts("one"));
    pair.writes(&a);
    let _restarted = b.connect("n", facts("two"));
    pair.writes(&b);
    for _ in 0..9 {
        pair.later(SKEW_MS);
        pair.both_live();
    }
    assert_eq!((a.cloned(), b.cloned()), (0, 0));
}

#[test]
fn rows_are_news_once_and_again_when_the_database_went_back() {
    let pair = Pair::new();
    assert_eq!(pair.b.news_since(0), None);
    assert_eq!(pair.b.news_since(7), Some(1));
    let row = rows::Node { list_version: 7, ..facts("x").to_row("n", 5, 0) };
    pair.b.take_in(7, vec![row.clone()]);
    assert_eq!((pair.b.news_since(7), pair.b.news_since(9)), (None, Some(8)));
    let late = rows::Node { list_version: 6, boot_id: "older".to_owned(), ..row.clone() };
    pair.b.take_in(7, vec![late.clone()]);
    assert_eq!(pair.b.list(None)[0].facts.boot_id, "x", "a reader that was overtaken changes nothing");
    assert_eq!(pair.b.news_since(6), Some(0));
    pair.b.take_in(6, vec![late]);
    assert_eq!(pair.b.list(None)[0].facts.boot_id, "older");
}
