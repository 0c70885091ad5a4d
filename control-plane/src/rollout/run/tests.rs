//! Rollouts over a store and a fleet of nodes that say what a test lets them say.

use std::collections::BTreeMap;

use common::window::Counts;

use super::*;
use crate::nodes::{Connection, Facts, Finding, Rejected};
use crate::observed::fixture::{Fixture, NOW_MS};
use crate::revision::change::{Rollback, roll_back};
use crate::revision::head::Head;
use crate::store::rows::Claim;

const S: u64 = 1000;

fn document(number: u64) -> String {
    let catalog = crate::observed::fixture::CATALOG.replace("8.00", &format!("8.{number}"));
    format!("[rollout]\nstages = [\"1\", \"50%\", \"100%\"]\nbake = \"60s\"\n{catalog}")
}

fn ann() -> Caller {
    Caller { name: "ann".to_owned(), ..Caller::bootstrap() }
}

/// A control plane with nodes that run its first revision.
struct Scene {
    fixture: Fixture,
    nodes: BTreeMap<String, Connection>,
    seq: u64,
}

impl Scene {
    async fn new(size: usize) -> Self {
        let fixture = Fixture::unread().await;
        let plane = &fixture.plane;
        plane.leader.claim(&plane.store).await.unwrap();
        let nodes = (1..=size).map(|n| format!("n{n}"));
        let nodes =
            nodes.map(|id| (id.clone(), fixture.plane.nodes.connect(&id, Facts::default()))).collect();
        let scene = Scene { fixture, nodes, seq: 0 };
        scene.apply(1).await;
        scene.take_all();
        scene.step().await;
        assert_eq!(scene.rollout().state, State::Done, "the first one goes to all at once");
        scene
    }

    fn plane(&self) -> &Plane {
        &self.fixture.plane
    }

    async fn apply(&self, number: u64) -> u64 {
        let ask = Apply::of(document(number), Caller::bootstrap());
        revision::apply(self.plane(), ask).await.unwrap().revision.number
    }

    fn rollout(&self) -> Rollout {
        self.plane().wanted().unwrap().rollout.as_deref().cloned().unwrap()
    }

    /// The nodes that should run the current revision.
    fn reached(&self) -> Vec<String> {
        let wanted = self.plane().wanted().unwrap();
        let head = wanted.revision();
        let views = self.plane().nodes.list(Some(&wanted)).into_iter();
        views.filter(|view| view.target_revision == head).map(|view| view.id).collect()
    }

    /// Lets a node take what it should run.
    fn take(&self, id: &str) {
        let wanted = self.plane().wanted().unwrap();
        let view = self.plane().nodes.list(Some(&wanted)).into_iter().find(|view| view.id == id).unwrap();
        self.nodes[id].record(&Facts { applied: view.aim.unwrap(), ..view.facts });
    }

    fn take_all(&self) {
        self.nodes.keys().for_each(|id| self.take(id));
    }

    async fn step(&self) {
        step(self.plane()).await.unwrap();
    }

    fn later(&self, seconds: u64) {
        self.plane().clock.set_ms(self.plane().clock.now_ms() + seconds * S);
    }

    /// A window of ten seconds that ends now.
    async fn count(&mut self, id: &str, served: u64, exhausted: u64) {
        self.seq += 1;
        let row = |outcome: &str, count| (("gpt-4o".to_owned(), outcome.to_owned()), count);
        let requests = BTreeMap::from([row("served", served), row("exhausted", exhausted)]);
        let now_ms = self.plane().clock.now_ms();
        let claim = Claim {
            node_id: id.to_owned(),
            boot_id: format!("{id}-{}", self.seq),
            first_seq: 1,
            last_seq: 1,
            from_ms: now_ms - 10 * S,
            until_ms: now_ms,
            counts: Counts { requests, ..Counts::default() },
            totals: None,
            acknowledged_through: 0,
        };
        self.plane().store.claim(&claim).await.unwrap();
    }
}

#[tokio::test]
async fn stages_open_one_after_the_other_and_a_node_that_comes_later_gets_the_base() {
    let mut scene = Scene::new(4).await;
    assert_eq!(scene.apply(2).await, 2);
    assert_eq!(scene.reached().len(), 1, "the first stage is open when the revision is there");
    let late = scene.plane().nodes.connect("late", Facts::default());
    scene.nodes.insert("late".to_owned(), late);
    assert_eq!(scene.reached().len(), 1);
    scene.take_all();
    scene.step().await;
    scene.later(59);
    scene.step().await;
    assert_eq!(scene.reached().len(), 1, "its time is not over");
    scene.later(1);
    scene.step().await;
    assert_eq!(scene.reached().len(), 2, "half of five");
    scene.take_all();
    scene.step().await;
    scene.later(60);
    scene.step().await;
    assert_eq!(scene.reached().len(), 5);
    assert_eq!(scene.rollout().state, State::Running, "not all have it");
    scene.take_all();
    scene.step().await;
    assert_eq!(scene.rollout().state, State::Done);
    scene.apply(3).await;
    assert_eq!(scene.rollout().base, 2);
}

#[tokio::test]
async fn a_refusal_brings_the_base_back_as_a_new_revision_that_says_why() {
    let scene = Scene::new(4).await;
    scene.apply(2).await;
    let [id] = &scene.reached()[..] else { panic!("{:?}", scene.reached()) };
    let wanted = scene.plane().wanted().unwrap();
    let part = wanted.target.catalog.as_ref().unwrap().part;
    let violations = vec![Finding { path: "channels[0].tls".into(), message: "no such file".into() }];
    let view = scene.plane().nodes.list(Some(&wanted)).into_iter().find(|view| view.id == *id).unwrap();
    scene.nodes[id].record(&Facts { rejected: vec![Rejected { part, violations }], ..view.facts });
    scene.step().await;

    let undone = find(scene.plane(), 2).await.unwrap().unwrap();
    let why = format!("{id} refused it: channels[0].tls: no such file");
    assert_eq!((undone.state, &undone.reason), (State::Undone(3), &why));
    let newest = revision::find(scene.plane(), 0).await.unwrap();
    assert_eq!((newest.revision.number, newest.revision.author.as_str()), (3, "sluice"));
    assert_eq!(newest.document, document(1));
    let message = format!("revision 1 again: the rollout of revision 2 was undone: {why}");
    assert_eq!(newest.revision.message, message);
    assert_eq!(scene.reached().len(), 4, "all at once");
    scene.take_all();
    scene.step().await;
    assert_eq!((scene.rollout().state, scene.rollout().base), (State::Done, 3));
}

#[tokio::test]
async fn requests_that_fail_on_the_new_revision_alone_undo_it_before_its_time_is_over() {
    let mut scene = Scene::new(4).await;
    for id in ["n1", "n2", "n3", "n4"] {
        scene.count(id, 100, 0).await;
    }
    scene.later(30);
    scene.apply(2).await;
    let first = scene.reached().remove(0);
    scene.take_all();
    scene.step().await;
    // This window began before the acknowledgement.
    scene.later(5);
    scene.count(&first, 0, 30).await;
    scene.step().await;
    assert_eq!(scene.rollout().revision, 2);
    scene.later(10);
    for id in ["n1", "n2", "n3", "n4"] {
        let is_first = id == first;
        scene.count(id, if is_first { 0 } else { 30 }, if is_first { 30 } else { 0 }).await;
    }
    scene.step().await;
    let undone = find(scene.plane(), 2).await.unwrap().unwrap();
    assert_eq!(undone.state, State::Undone(3));
    assert!(
        undone.reason.contains("0 of 30 served, against 90 of 90 served on the nodes"),
        "{}",
        undone.reason
    );
    assert_eq!(undone.members.len(), 1, "nobody else had it");
}

#[tokio::test]
async fn an_operator_pauses_resumes_and_aborts() {
    let scene = Scene::new(2).await;
    let none = pause(scene.plane(), &ann(), "").await;
    assert!(matches!(none, Err(Error::NotFound { what: "rollout", .. })), "{none:?}");
    scene.apply(2).await;
    let paused = pause(scene.plane(), &ann(), "lunch").await.unwrap();
    assert_eq!(paused.reason, "paused by ann: lunch");
    scene.take_all();
    scene.later(600);
    scene.step().await;
    assert_eq!(scene.reached().len(), 1);
    resume(scene.plane(), &ann()).await.unwrap();
    scene.step().await;
    scene.later(60);
    scene.step().await;
    assert_eq!(scene.reached().len(), 2);
    let aborted = abort(scene.plane(), ann(), "no").await.unwrap();
    assert_eq!((aborted.state, aborted.reason.as_str()), (State::Aborted(3), "by ann: no"));
    let newest = revision::find(scene.plane(), 0).await.unwrap();
    assert_eq!((newest.document, newest.revision.author), (document(1).into(), "ann".to_owned()));
}

#[tokio::test]
async fn a_newer_revision_takes_over_and_what_is_between_stays_where_it_is() {
    let scene = Scene::new(4).await;
    scene.apply(2).await;
    scene.take_all();
    scene.step().await;
    scene.later(60);
    scene.step().await;
    let exposed = scene.reached();
    assert_eq!(exposed.len(), 2);
    scene.take_all();
    assert_eq!(scene.apply(3).await, 3);
    let first = scene.reached();
    assert!(first.len() == 1 && exposed.contains(&first[0]), "{first:?} of {exposed:?}");
    assert_eq!(find(scene.plane(), 2).await.unwrap().unwrap().state, State::Superseded(3));
    assert_eq!(scene.rollout().base, 1, "what reached the whole fleet");
    let wanted = scene.plane().wanted().unwrap();
    for view in scene.plane().nodes.list(Some(&wanted)) {
        let want = if first.contains(&view.id) {
            3
        } else if exposed.contains(&view.id) {
            2
        } else {
            1
        };
        assert_eq!(view.target_revision, want, "{}", view.id);
    }
    // And what it goes back to is the base, whatever is between.
    abort(scene.plane(), ann(), "").await.unwrap();
    assert_eq!(revision::find(scene.plane(), 0).await.unwrap().document, document(1));
}

#[tokio::test]
async fn a_rollout_to_what_the_base_says_can_be_undone_too() {
    let scene = Scene::new(4).await;
    scene.apply(2).await;
    let back = Rollback {
        revision: 1,
        expected: None,
        message: "",
        caller: ann(),
        idempotency_key: "",
        strategy: Strategy::Staged,
        reason: "",
    };
    assert_eq!(roll_back(scene.plane(), back).await.unwrap().revision.number, 3);
    assert_eq!((scene.rollout().base, scene.reached().len()), (1, 1));
    let aborted = abort(scene.plane(), ann(), "").await.unwrap();
    assert_eq!(aborted.state, State::Aborted(4), "although the document is the same");
    assert_eq!(scene.reached().len(), 4);
}

#[tokio::test]
async fn at_once_needs_a_reason_and_opens_what_is_under_way() {
    let scene = Scene::new(4).await;
    let at_once = |reason: &'static str| Apply {
        strategy: Strategy::Immediate,
        reason,
        ..Apply::of(document(2), ann())
    };
    let refused = revision::apply(scene.plane(), at_once(" ")).await;
    assert!(matches!(refused, Err(Error::Argument { field: "reason", .. })), "{refused:?}");
    scene.apply(2).await;
    assert_eq!(scene.reached().len(), 1);
    let opened = revision::apply(scene.plane(), at_once("an outage")).await.unwrap();
    assert_eq!((opened.revision.number, opened.changed), (2, false));
    assert_eq!(scene.reached().len(), 4);
    assert_eq!(scene.rollout().reason, "an outage");
    scene.take_all();
    scene.step().await;
    assert_eq!((scene.rollout().state, scene.rollout().proven()), (State::Done, 2));
}

#[tokio::test]
async fn another_control_plane_aims_every_node_alike_and_of_two_that_move_it_one_does() {
    let scene = Scene::new(4).await;
    scene.apply(2).await;
    let other = Head::unread(scene.plane().clock.clone(), scene.plane().keyring.clone());
    other.refresh(&scene.plane().store).await.unwrap();
    let (here, there) = (scene.plane().wanted().unwrap(), other.now().unwrap());
    for id in ["n1", "n2", "n3", "n4", "n5"] {
        let nothing = crate::nodes::Facts::default();
        assert_eq!(here.aim(id, &nothing), there.aim(id, &nothing));
    }
    assert_eq!(there.base.as_ref().map(|base| base.part.version), Some(1));
    scene.take_all();
    let rollout = scene.rollout();
    let leader = scene.plane().leader.epoch().unwrap();
    let (a, b) = tokio::join!(
        go_on(scene.plane(), &here, &rollout, leader),
        go_on(scene.plane(), &there, &rollout, leader)
    );
    assert!(a.unwrap() && b.unwrap());
    let kept = find(scene.plane(), 2).await.unwrap().unwrap();
    assert_eq!(kept.version, rollout.version + 1, "one acknowledgement was kept, once");
    assert_eq!(kept.begun_at_ms, NOW_MS);
}

#[tokio::test]
async fn a_pinned_node_stays_where_it_is_and_a_rollout_neither_counts_nor_awaits_it() {
    let mut scene = Scene::new(3).await;
    let pin = crate::revision::pin::pin;
    pin(scene.plane(), &ann(), "n2", 1, "under investigation").await.unwrap();
    scene.apply(2).await;
    for _ in 0..3 {
        scene.take_all();
        scene.step().await;
        scene.later(60);
        scene.step().await;
    }
    assert_eq!((scene.rollout().state, scene.reached()), (State::Done, vec!["n1".into(), "n3".into()]));
    assert!(!scene.rollout().members.contains_key("n2"));
    // Neither does a revision for all at once reach it, and nobody waits for it.
    let ask =
        Apply { strategy: Strategy::Immediate, reason: "now", ..Apply::of(document(3), Caller::bootstrap()) };
    revision::apply(scene.plane(), ask).await.unwrap();
    for id in ["n1", "n3"] {
        scene.take(id);
    }
    scene.step().await;
    assert_eq!(scene.rollout().state, State::Done);
    assert_eq!(crate::revision::pin::unpin(scene.plane(), &ann(), "n2").await.unwrap(), 1);
    assert_eq!(scene.reached().len(), 3);

    // One that is alone in its stage, and has not taken the revision.
    scene.take_all();
    scene.step().await;
    scene.apply(4).await;
    let first = scene.reached().remove(0);
    pin(scene.plane(), &ann(), &first, 3, "").await.unwrap();
    scene.step().await;
    assert!(!scene.rollout().members.contains_key(&first), "{:?}", scene.rollout());
    assert_eq!(scene.reached().len(), 1, "another one takes its place");
    let late = scene.nodes.remove(&first).unwrap();
    drop(late);
    scene.later(120);
    scene.take_all();
    scene.step().await;
    assert_eq!(scene.rollout().state, State::Running, "it is lost, and not of the stage");
}
