//! The session as a table of events and actions, with the time as an argument.

mod orders;
mod past;

use super::*;
use crate::revision::encoded::{Encoded, Target};
use crate::rollout::{Rollout, Strategy};
use crate::secrets::held::Held;
use common::snapshot::unpack;

mod secrets;

struct Node {
    session: Session,
    now: Instant,
}

fn content(version: u64, kind: &str) -> Encoded {
    let snapshot = pb::Snapshot {
        revision: version,
        models: vec![pb::Model { name: kind.to_owned(), chains: vec![] }],
        ..Default::default()
    };
    Encoded::of(version, &snapshot).unwrap()
}

fn wanted(epoch: u64, revision: u64, keys: u64) -> Arc<Wanted> {
    let catalog = (revision > 0).then(|| content(revision, "catalog"));
    let target = Target { epoch, catalog, keys: content(keys, "keys"), secrets: Held::none() };
    Arc::new(Wanted { target, current: None, base: None, rollout: None, pins: Arc::default() })
}

fn target(wanted: &Wanted) -> pb::Target {
    wanted.aim("n1", &Facts::default()).into()
}

fn hello(applied: Option<pb::Target>) -> pb::Hello {
    pb::Hello { node_id: "n1".into(), boot_id: "b1".into(), schema: 1, applied, ..Default::default() }
}

fn ack(update_id: u64, result: pb::AckResult, applied: pb::Target) -> Event {
    Event::Heard(Heard::Ack(pb::ConfigAck {
        update_id,
        result: result.into(),
        applied: Some(applied),
        ..Default::default()
    }))
}

fn rejection(part: Part, message: &str) -> pb::Rejection {
    let violation = pb::Violation { path: "channels[0].base_url".into(), message: message.into() };
    pb::Rejection { part: Some(part.into()), kind: pb::PartKind::Catalog.into(), violations: vec![violation] }
}

impl Node {
    fn new(wanted: Arc<Wanted>) -> Self {
        let greeting = Greeting { control_plane_id: "cp".into(), version: "1".into() };
        let now = Instant::now();
        Node { session: Session::new(greeting, wanted, Duration::from_secs(1800), now), now }
    }

    /// A node that said Hello; gives what came after Welcome.
    fn greeted(wanted: Arc<Wanted>, hello: pb::Hello) -> (Self, Vec<Action>) {
        let mut node = Node::new(wanted);
        let mut actions = node.on(Event::Heard(Heard::Hello(hello)));
        assert_eq!(actions.remove(0), Action::Register("n1".into()));
        assert!(matches!(actions.remove(0), Action::Send(Said::Welcome(w)) if w.heartbeat_ms == 15_000));
        (node, actions)
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        self.session.on(event, self.now)
    }

    fn after(&mut self, seconds: u64) -> Vec<Action> {
        self.now += Duration::from_secs(seconds);
        self.on(Event::Tick)
    }
}

fn update(actions: &[Action]) -> &pb::ConfigUpdate {
    let updates: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Send(Said::Update(update)) => Some(update),
            _ => None,
        })
        .collect();
    assert_eq!(updates.len(), 1, "{actions:?}");
    updates[0]
}

fn revision_of(update: &pb::ConfigUpdate) -> u64 {
    update.target.as_ref().unwrap().catalog.as_ref().unwrap().version
}

#[tokio::test(start_paused = true)]
async fn a_new_node_gets_everything_in_one_update_and_is_then_in_sync() {
    let w = wanted(7, 3, 2);
    let (mut node, actions) = Node::greeted(w.clone(), hello(None));
    let sent = update(&actions).clone();
    assert_eq!((sent.update_id, sent.target.clone()), (1, Some(target(&w))));
    let catalog = &w.target.catalog.as_ref().unwrap().part;
    let unpacked = unpack(&sent.catalog_zstd, &catalog.sha256).unwrap();
    assert_eq!(common::snapshot::decode::<pb::Snapshot>(&unpacked).unwrap().revision, 3);
    assert!(!sent.keys_zstd.is_empty());
    let acked = node.on(ack(1, pb::AckResult::Applied, target(&w)));
    assert_eq!(acked, [Action::Acknowledged(Ack::Applied, 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_runs_the_target_is_told_so_once() {
    let w = wanted(7, 3, 2);
    let (mut node, actions) = Node::greeted(w.clone(), hello(Some(target(&w))));
    let up_to_date = Action::Send(Said::UpToDate(pb::UpToDate { target: Some(target(&w)) }));
    assert_eq!(actions, [up_to_date]);
    assert_eq!(node.on(Event::Wanted(w)), []);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_revision_a_node_gets_the_keys_alone() {
    let w = wanted(7, 0, 1);
    let (_, actions) = Node::greeted(w, hello(None));
    let sent = update(&actions);
    assert!(sent.catalog_zstd.is_empty() && !sent.keys_zstd.is_empty());
    assert_eq!(sent.target.as_ref().unwrap().catalog, None);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_did_not_change_is_not_sent() {
    let w = wanted(7, 3, 2);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    let newer_keys = wanted(7, 3, 3);
    let actions = node.on(Event::Wanted(newer_keys.clone()));
    let sent = update(&actions);
    assert!(sent.catalog_zstd.is_empty() && !sent.keys_zstd.is_empty());
    assert_eq!(sent.target, Some(target(&newer_keys)));
}

#[tokio::test(start_paused = true)]
async fn fr_021_one_update_is_unacknowledged_and_the_newest_wins() {
    let (mut node, actions) = Node::greeted(wanted(7, 1, 1), hello(None));
    assert_eq!(revision_of(update(&actions)), 1);
    for revision in 2..50 {
        assert_eq!(node.on(Event::Wanted(wanted(7, revision, 1))), []);
    }
    let actions = node.on(ack(1, pb::AckResult::Applied, target(&wanted(7, 1, 1))));
    let sent = update(&actions);
    assert_eq!((sent.update_id, revision_of(sent)), (2, 49));
}

#[tokio::test(start_paused = true)]
async fn fr_007_a_rejected_content_is_shown_and_not_sent_to_that_node_again() {
    let good = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(good.clone(), hello(Some(target(&good))));
    let bad = wanted(7, 2, 1);
    assert_eq!(revision_of(update(&node.on(Event::Wanted(bad.clone())))), 2);
    let part = bad.target.catalog.as_ref().unwrap().part;
    let refused = Event::Heard(Heard::Ack(pb::ConfigAck {
        update_id: 1,
        result: pb::AckResult::Rejected.into(),
        applied: Some(target(&good)),
        rejected: vec![rejection(part, "not a URL")],
        warnings: vec![],
    }));
    assert_eq!(node.on(refused), [Action::Acknowledged(Ack::Rejected, 2)]);
    let facts = node.session.facts();
    assert_eq!(facts.applied.catalog.unwrap().version, 1);
    assert_eq!(facts.rejected[0].violations[0].message, "not a URL");
    assert_eq!(node.on(Event::Wanted(bad)), []);

    // A new key still comes, with the catalog that the node has in the target.
    let actions = node.on(Event::Wanted(wanted(7, 2, 2)));
    let sent = update(&actions);
    assert_eq!(revision_of(sent), 1);
    assert!(sent.catalog_zstd.is_empty() && !sent.keys_zstd.is_empty());
    node.on(ack(2, pb::AckResult::Applied, sent.target.clone().unwrap()));

    // The next revision is another content.
    assert_eq!(revision_of(update(&node.on(Event::Wanted(wanted(7, 3, 2))))), 3);
}

#[tokio::test(start_paused = true)]
async fn fr_007_a_fresh_node_that_refuses_the_head_gets_the_newest_content_that_another_node_runs() {
    let head = wanted(7, 5, 1);
    let refuse = |node: &mut Node, update: u64, part: Part, keys: bool| {
        let keys = keys.then(|| wanted(7, 5, 1).target.keys.part.into());
        let applied = Some(pb::Target { epoch: 7, keys, ..Default::default() });
        let rejected = vec![rejection(part, "no")];
        let result = pb::AckResult::Rejected.into();
        node.on(Event::Heard(Heard::Ack(pb::ConfigAck {
            update_id: update,
            result,
            applied,
            rejected,
            warnings: vec![],
        })))
    };
    let (mut node, _) = Node::greeted(head.clone(), hello(None));
    let part = head.target.catalog.as_ref().unwrap().part;
    let looked = refuse(&mut node, 1, part, true);
    assert_eq!(looked, [Action::Acknowledged(Ack::Rejected, 5), Action::FindAccepted { epoch: 7, below: 5 }]);
    let fourth = content(4, "catalog");
    assert_eq!(revision_of(update(&node.on(Event::Accepted(Some(fourth.clone()))))), 4);

    // That one is refused too: further down, and then there is nothing.
    let looked = refuse(&mut node, 2, fourth.part, true);
    assert_eq!(looked, [Action::Acknowledged(Ack::Rejected, 4), Action::FindAccepted { epoch: 7, below: 4 }]);
    assert_eq!(node.on(Event::Accepted(None)), []);
    assert_eq!(node.on(Event::Wanted(head)), [], "it is looked for once");

    // Another head is another content.
    assert_eq!(revision_of(update(&node.on(Event::Wanted(wanted(7, 6, 1))))), 6);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_rejected_or_put_aside_before_it_connected_is_not_sent_either() {
    let (good, bad) = (wanted(7, 1, 1), wanted(7, 2, 1));
    let part = bad.target.catalog.as_ref().unwrap().part;
    let rejected = pb::Hello { rejected: vec![rejection(part, "no")], ..hello(Some(target(&good))) };
    assert_eq!(Node::greeted(bad.clone(), rejected).1, []);
    let quarantined = pb::Hello {
        quarantined: vec![pb::Quarantine { part: Some(part.into()), crashes: 2 }],
        ..hello(Some(target(&good)))
    };
    let (node, actions) = Node::greeted(bad, quarantined);
    assert_eq!(actions, []);
    assert_eq!(node.session.facts().quarantined[0].crashes, 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_acknowledged_but_not_run_is_not_sent_for_ever() {
    let (mut node, _) = Node::greeted(wanted(7, 1, 1), hello(None));
    let acked = node.on(ack(1, pb::AckResult::Applied, pb::Target { epoch: 7, ..Default::default() }));
    assert_eq!(acked, [Action::Acknowledged(Ack::Applied, 1)]);
    assert_eq!(node.session.facts().rejected.len(), 2);
}

/// As `wanted`, with a catalog that needs a feature.
fn demanding(revision: u64, feature: &str) -> Arc<Wanted> {
    let features = vec![feature.to_owned()];
    let snapshot = pb::Snapshot { revision, schema: 1, features, ..Default::default() };
    let catalog = Some(Encoded::of_snapshot(&snapshot).unwrap());
    let target = Target { epoch: 7, catalog, keys: content(1, "keys"), secrets: Held::none() };
    Arc::new(Wanted { target, current: None, base: None, rollout: None, pins: Arc::default() })
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lacks_what_a_catalog_needs_keeps_what_it_has_and_gets_everything_else() {
    let plain = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(plain.clone(), hello(Some(target(&plain))));
    let second = demanding(2, "telepathy");
    assert_eq!(node.on(Event::Wanted(second.clone())), []);
    let mut keys = Arc::into_inner(demanding(2, "telepathy")).unwrap();
    keys.target.keys = content(2, "keys");
    let actions = node.on(Event::Wanted(Arc::new(keys)));
    let sent = update(&actions);
    assert!(sent.catalog_zstd.is_empty() && !sent.keys_zstd.is_empty());
    assert_eq!(revision_of(sent), 1, "the target names what it has");

    // One that knows it gets it, whatever else it knows.
    let able = pb::Hello { features: vec!["b".into(), "telepathy".into()], ..hello(Some(target(&plain))) };
    assert_eq!(revision_of(update(&Node::greeted(second, able).1)), 2);
    // One that has nothing gets what another node runs, if it can serve that.
    let (mut fresh, actions) = Node::greeted(demanding(5, "telepathy"), hello(None));
    assert_eq!(actions, [Action::FindAccepted { epoch: 7, below: 5 }]);
    let looked = fresh.on(Event::Accepted(demanding(4, "telepathy").target.catalog.clone()));
    assert_eq!(looked, [Action::FindAccepted { epoch: 7, below: 4 }]);
    let actions = fresh.on(Event::Accepted(Some(content(3, "catalog"))));
    assert_eq!(revision_of(update(&actions)), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_says_in_an_enum_is_known_or_ends_the_stream() {
    let w = wanted(7, 1, 1);
    let part = w.target.catalog.as_ref().unwrap().part;
    for result in [0, 3, 99, -1] {
        let (mut node, _) = Node::greeted(w.clone(), hello(None));
        let odd = pb::ConfigAck { update_id: 1, result, applied: Some(target(&w)), ..Default::default() };
        let ended = node.on(Event::Heard(Heard::Ack(odd)));
        assert!(matches!(ended[..], [Action::End(End::Refused(_))]), "{result}: {ended:?}");
    }
    for kind in [0, 3, 5, 99, -1] {
        let (mut node, _) = Node::greeted(w.clone(), hello(None));
        let rejected = vec![pb::Rejection { kind, ..rejection(part, "no") }];
        let result = pb::AckResult::Rejected.into();
        let odd = pb::ConfigAck { update_id: 1, result, rejected, ..Default::default() };
        let ended = node.on(Event::Heard(Heard::Ack(odd)));
        assert!(matches!(ended[..], [Action::End(End::Refused(_))]), "{kind}: {ended:?}");
    }
    // A later version's node may have refused what a later version's control plane sent.
    let of_kind = |kind: i32| {
        let rejected = vec![pb::Rejection { kind, ..rejection(part, "no") }];
        let mut node = Node::new(w.clone());
        node.on(Event::Heard(Heard::Hello(pb::Hello { rejected, ..hello(None) })))
    };
    assert_eq!(revision_of(update(&of_kind(99))), 1);
    assert!(matches!(of_kind(0)[..], [Action::End(End::Refused(_))]));
}

#[tokio::test(start_paused = true)]
async fn another_epoch_is_sent_whole_even_where_versions_are_lower() {
    let old = wanted(7, 9, 9);
    let (_, actions) = Node::greeted(wanted(8, 1, 1), hello(Some(target(&old))));
    let sent = update(&actions);
    assert_eq!((sent.target.as_ref().unwrap().epoch, revision_of(sent)), (8, 1));
    assert!(!sent.catalog_zstd.is_empty() && !sent.keys_zstd.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_message_is_hello_and_there_is_one() {
    let mut node = Node::new(wanted(7, 1, 1));
    let early = node.on(Event::Heard(Heard::Heartbeat(pb::NodeHeartbeat::default())));
    assert!(matches!(early[..], [Action::End(End::Refused(_))]));
    let (mut node, _) = Node::greeted(wanted(7, 1, 1), hello(None));
    let second = node.on(Event::Heard(Heard::Hello(hello(None))));
    assert!(matches!(second[..], [Action::End(End::Refused(_))]));
    assert_eq!(node.on(Event::Tick), [], "an ended session does nothing");
    for nameless in [
        pb::Hello { node_id: String::new(), ..hello(None) },
        pb::Hello { boot_id: "a\nb".into(), ..hello(None) },
    ] {
        let mut node = Node::new(wanted(7, 1, 1));
        let refused = node.on(Event::Heard(Heard::Hello(nameless)));
        assert!(matches!(refused[..], [Action::End(End::Refused(_))]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_of_nothing_breaks_the_protocol() {
    let w = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    assert!(matches!(
        node.on(ack(1, pb::AckResult::Applied, target(&w)))[..],
        [Action::End(End::Refused(_))]
    ));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_go_out_every_15_seconds_and_a_node_silent_for_45_is_gone() {
    let w = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    assert_eq!(node.after(14), []);
    let beat =
        Action::Send(Said::Heartbeat(pb::ServerHeartbeat { target: Some(target(&w)), ..Default::default() }));
    assert_eq!(node.after(1), std::slice::from_ref(&beat));
    node.on(Event::Heard(Heard::Heartbeat(pb::NodeHeartbeat { in_flight: 4, ..Default::default() })));
    assert_eq!(node.session.facts().in_flight, 4);
    assert_eq!(node.after(15), std::slice::from_ref(&beat));
    assert_eq!(node.after(29), [beat]);
    assert_eq!(node.after(1), [Action::End(End::Silent)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_says_hello_is_gone_after_ten_seconds() {
    let mut node = Node::new(wanted(7, 1, 1));
    assert_eq!(node.after(9), []);
    assert_eq!(node.after(1), [Action::End(End::Silent)]);
}

#[tokio::test(start_paused = true)]
async fn fr_015_an_old_stream_is_drained_by_us() {
    let w = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    for _ in 0..119 {
        node.after(15);
        node.on(Event::Heard(Heard::Heartbeat(pb::NodeHeartbeat::default())));
    }
    let drained = node.after(15);
    assert!(matches!(drained[..], [Action::Send(Said::Drain(_)), Action::End(End::Drained)]), "{drained:?}");
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_and_on_the_nodes_own_drain_the_stream_ends_well() {
    let w = wanted(7, 1, 1);
    let (mut node, _) = Node::greeted(w.clone(), hello(None));
    assert!(matches!(node.on(Event::Stop)[..], [Action::Send(Said::Drain(_)), Action::End(End::Drained)]));
    let (mut node, _) = Node::greeted(w, hello(None));
    let left = node.on(Event::Heard(Heard::Drain(pb::NodeDrain { reason: "deploy".into() })));
    assert_eq!(left, [Action::End(End::Left)]);
    assert!(node.session.facts().drained);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_shows_another_content_is_answered_with_the_target() {
    let w = wanted(7, 2, 1);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    let beat = pb::NodeHeartbeat { applied: Some(target(&wanted(7, 1, 1))), ..Default::default() };
    assert_eq!(revision_of(update(&node.on(Event::Heard(Heard::Heartbeat(beat))))), 2);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_an_update_are_shared_and_not_copied() {
    let w = wanted(7, 1, 1);
    let (_, first) = Node::greeted(w.clone(), hello(None));
    let (_, second) = Node::greeted(w.clone(), hello(None));
    let shared = w.target.catalog.as_ref().unwrap().packed.as_ptr();
    assert_eq!(update(&first).catalog_zstd.as_ptr(), shared);
    assert_eq!(update(&second).catalog_zstd.as_ptr(), shared);
}

/// A rollout from 41 to 42 that has reached these nodes.
fn rolling(members: &[&str]) -> Arc<Wanted> {
    let mut rollout = Rollout::begin(42, 41, Strategy::Staged, &Default::default(), 0);
    rollout.advance(1, members.iter().map(|id| (*id).to_owned()), 0);
    let target = Target {
        epoch: 7,
        catalog: Some(content(42, "new")),
        keys: content(1, "keys"),
        secrets: Held::none(),
    };
    let base = Some(content(41, "old"));
    Arc::new(Wanted { target, current: None, base, rollout: Some(Arc::new(rollout)), pins: Arc::default() })
}

fn running(revision: u64, kind: &str) -> pb::Target {
    let applied = Applied {
        epoch: 7,
        catalog: Some(content(revision, kind).part),
        keys: Some(content(1, "keys").part),
        secrets: None,
    };
    applied.into()
}

#[tokio::test(start_paused = true)]
async fn a_node_of_no_open_stage_gets_the_base_and_the_new_revision_when_its_stage_opens() {
    let (mut node, actions) = Node::greeted(rolling(&["n2"]), hello(None));
    let sent = update(&actions).clone();
    assert_eq!(revision_of(&sent), 41, "a fresh node too");
    assert!(unpack(&sent.catalog_zstd, &content(41, "old").part.sha256).is_ok());
    let acked = node.on(ack(1, pb::AckResult::Applied, running(41, "old")));
    assert_eq!(acked, [Action::Acknowledged(Ack::Applied, 41)]);
    assert_eq!(node.on(Event::Wanted(rolling(&["n2", "n3"]))), []);
    assert_eq!(revision_of(update(&node.on(Event::Wanted(rolling(&["n1", "n2"]))))), 42);
}

#[tokio::test(start_paused = true)]
async fn fr_011_a_node_that_has_more_than_the_base_is_not_sent_back_and_goes_on_when_its_turn_comes() {
    // 42 took the place of 41½, which has reached this node: the base is below it, and it keeps what it has.
    let mut between = rolling(&["n2"]);
    let wanted = Arc::get_mut(&mut between).unwrap();
    wanted.base = Some(content(40, "old"));
    let (mut node, actions) = Node::greeted(between, hello(Some(running(41, "superseded"))));
    let up_to_date = pb::UpToDate { target: Some(running(41, "superseded")) };
    assert_eq!(actions, [Action::Send(Said::UpToDate(up_to_date))]);
    assert_eq!(revision_of(update(&node.on(Event::Wanted(rolling(&["n1", "n2"]))))), 42);
    // Keys are not staged.
    let (_, actions) = Node::greeted(rolling(&["n2"]), hello(Some(target(&wanted_keys(0)))));
    assert!(!update(&actions).keys_zstd.is_empty());
}

fn wanted_keys(keys: u64) -> Arc<Wanted> {
    let target = Target {
        epoch: 7,
        catalog: Some(content(41, "old")),
        keys: content(keys, "keys"),
        secrets: Held::none(),
    };
    Arc::new(Wanted { target, current: None, base: None, rollout: None, pins: Arc::default() })
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_the_base_are_shared_as_those_of_the_head_are() {
    let wanted = rolling(&["n2"]);
    let (_, first) = Node::greeted(wanted.clone(), hello(None));
    let shared = wanted.base.as_ref().unwrap().packed.as_ptr();
    assert_eq!(update(&first).catalog_zstd.as_ptr(), shared);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_speaks_for_its_node_alone_and_its_labels_win() {
    let origin = |node_id: &str| Origin {
        node_id: Some(node_id.into()),
        labels: [("zone".to_owned(), "eu".to_owned())].into(),
        recipient: None,
    };
    let label = |name: &str, value: &str| pb::Label { name: name.into(), value: value.into() };
    let claims = pb::Hello { labels: vec![label("zone", "us"), label("rack", "7")], ..hello(None) };
    let mut node = Node::new(wanted(7, 3, 2));
    node.session = node.session.known_as(origin("n1"));
    let actions = node.on(Event::Heard(Heard::Hello(claims.clone())));
    assert_eq!(actions[0], Action::Register("n1".into()));
    let labels: Vec<_> = node.session.facts().labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(labels, ["rack=7", "zone=eu"]);
    assert_eq!(node.on(Event::Revoked), [Action::End(End::Forbidden(REVOKED))]);
    let mut node = Node::new(wanted(7, 3, 2));
    node.session = node.session.known_as(origin("n2"));
    let refused = node.on(Event::Heard(Heard::Hello(claims)));
    assert_eq!(refused, [Action::End(End::Forbidden("the certificate is another node's"))]);
}
