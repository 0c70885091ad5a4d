//! The judgement as tables, and what holds for any fleet and any order of events.

mod clocks;
mod properties;

use std::collections::BTreeSet;

use super::choose::{Node, Presence, choose};
use super::*;
use common::catalog::rollout::{Plan, Stage};

const T0: u64 = 1_000_000_000;
const SECOND: u64 = 1000;
const BAKE: u64 = 60 * SECOND;

fn plan(stages: &[&str]) -> Plan {
    Plan { stages: stages.iter().map(|text| text.parse().unwrap()).collect(), ..Plan::default() }
}

fn staged(stages: &[&str]) -> Rollout {
    Rollout::begin(42, 41, Strategy::Staged, &plan(stages), T0)
}

fn node(id: &str) -> Node {
    Node { id: id.to_owned(), runs: 41, is_sound: true, last_seen_at_ms: T0, ..Node::default() }
}

fn fleet(size: usize) -> Vec<Node> {
    (1..=size).map(|n| node(&format!("n{n}"))).collect()
}

fn count(node: &str, served: u64, failed: u64) -> NodeCount {
    NodeCount { node: node.to_owned(), model: "m".to_owned(), tally: Tally { served, failed } }
}

/// A rollout, its fleet and a clock.
struct Scene {
    rollout: Rollout,
    nodes: Vec<Node>,
    evidence: Evidence,
    now_ms: u64,
}

impl Scene {
    fn new(stages: &[&str], size: usize) -> Self {
        Scene { rollout: staged(stages), nodes: fleet(size), evidence: Evidence::default(), now_ms: T0 }
    }

    /// A rollout whose first stage is open and acknowledged.
    fn acknowledged(stages: &[&str], size: usize) -> Self {
        let mut scene = Scene::new(stages, size);
        scene.settle();
        assert!(scene.rollout.open == 1, "{:?}", scene.rollout);
        scene
    }

    fn judge(&self) -> Decision {
        let Scene { rollout, nodes, evidence, now_ms } = self;
        judge(rollout, &Look { nodes, evidence, now_ms: *now_ms, watched_since_ms: 0 })
    }

    /// Carries a decision out, as `run` does, and says what it was.
    fn step(&mut self) -> Decision {
        let has_it: Vec<String> = self.nodes.iter().filter(|n| n.has_it).map(|n| n.id.clone()).collect();
        self.rollout.acknowledge(has_it.iter().map(String::as_str), self.now_ms);
        let decision = self.judge();
        match decision.clone() {
            Decision::Wait(_) => {}
            Decision::Open { open, members } => self.rollout.advance(open, members, self.now_ms),
            Decision::Pause(pause, why) => self.rollout.turn(State::Paused(pause), why, self.now_ms),
            Decision::Resume => self.rollout.turn(State::Running, "", self.now_ms),
            Decision::Undo(why) => self.rollout.turn(State::Undone(43), why, self.now_ms),
            Decision::Finish => self.rollout.turn(State::Done, "", self.now_ms),
        }
        decision
    }

    /// Every node that is there takes what it is given, and all that follows at once is done.
    fn settle(&mut self) {
        for _ in 0..20 {
            let rollout = &self.rollout;
            for node in self.nodes.iter_mut().filter(|node| node.presence == Presence::Here) {
                let wanted = rollout.wanted_for(&node.id);
                if wanted > node.runs {
                    node.runs = wanted;
                }
                node.has_it = node.runs == rollout.revision;
            }
            if !rollout.is_under_way()
                || matches!(self.step(), Decision::Wait(_)) && self.given() == self.have()
            {
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.rollout);
    }

    fn given(&self) -> BTreeSet<&str> {
        let given = self.nodes.iter().map(|node| node.id.as_str());
        given.filter(|id| self.rollout.wanted_for(id) == self.rollout.revision).collect()
    }

    fn have(&self) -> BTreeSet<&str> {
        self.nodes.iter().filter(|node| node.has_it).map(|node| node.id.as_str()).collect()
    }

    fn member(&mut self) -> &mut Node {
        let rollout = &self.rollout;
        self.nodes.iter_mut().find(|node| rollout.members.contains_key(&node.id)).unwrap()
    }

    fn undone(&self) -> String {
        match self.judge() {
            Decision::Undo(reason) => reason,
            other => panic!("not undone: {other:?}"),
        }
    }
}

#[test]
fn a_fleet_moves_by_one_node_a_quarter_and_all_with_a_pause_between() {
    let mut scene = Scene::new(&["1", "25%", "100%"], 20);
    let mut sizes = vec![];
    for _ in 0..3 {
        scene.settle();
        sizes.push(scene.have().len());
        scene.now_ms += BAKE - 1;
        scene.settle();
        assert_eq!(scene.have().len(), *sizes.last().unwrap(), "a stage opened before its time");
        scene.now_ms += 1;
    }
    assert_eq!(sizes, [1, 5, 20]);
    assert_eq!(scene.rollout.state, State::Done);
    assert_eq!(scene.rollout.proven(), 42);
}

#[test]
fn a_fleet_of_one_has_it_when_it_acknowledges_and_an_empty_one_at_once() {
    let mut scene = Scene::new(&["1", "25%", "100%"], 1);
    assert_eq!(scene.judge(), Decision::Open { open: 3, members: vec!["n1".to_owned()] });
    scene.settle();
    assert_eq!(scene.rollout.state, State::Done);
    assert_eq!(Scene::new(&["1", "100%"], 0).judge(), Decision::Finish);
}

#[test]
fn a_stage_waits_for_every_node_of_it() {
    let mut scene = Scene::new(&["2", "100%"], 4);
    scene.step();
    assert_eq!(scene.rollout.members.len(), 2);
    scene.member().has_it = true;
    scene.now_ms += 10 * BAKE;
    assert!(matches!(scene.step(), Decision::Wait(why) if why.starts_with("waits for n")));
    let acked = scene.rollout.members.values().filter(|member| member.acked_at_ms.is_some()).count();
    assert_eq!(acked, 1);
    scene.settle();
    scene.member().presence = Presence::Away;
    scene.now_ms += 10 * BAKE;
    assert!(
        matches!(scene.judge(), Decision::Wait(_)),
        "a node that is away has acknowledged and is not there"
    );
}

#[test]
fn fr_007_one_refusal_or_quarantine_undoes_it_and_names_the_node_and_why() {
    for stages in [&["1", "100%"][..], &["100%"]] {
        let mut scene = Scene::new(stages, 4);
        scene.step();
        let node = scene.member();
        node.refusal = Some("refused it: channels[0].base_url: no host".to_owned());
        let id = node.id.clone();
        assert_eq!(scene.undone(), format!("{id} refused it: channels[0].base_url: no host"));
        scene.rollout.turn(State::Paused(Pause::Operator), "", T0);
        scene.undone();
    }
}

#[test]
fn a_process_that_was_killed_bans_nothing() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    scene.member().presence = Presence::Away;
    assert!(matches!(scene.step(), Decision::Wait(_)));
    scene.member().presence = Presence::Here;
    scene.now_ms += BAKE;
    scene.settle();
    assert_eq!(scene.rollout.state, State::Done);
}

#[test]
fn a_lost_node_pauses_it_until_it_is_back_or_an_operator_goes_on_without_it() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    scene.now_ms += BAKE;
    scene.member().presence = Presence::Lost;
    let Decision::Pause(Pause::Lost, why) = scene.step() else { panic!("{:?}", scene.rollout) };
    assert!(why.ends_with("of its stage is lost"), "{why}");
    assert!(matches!(scene.step(), Decision::Wait(_)));
    scene.member().presence = Presence::Here;
    assert_eq!(scene.step(), Decision::Resume);
    assert!(matches!(scene.step(), Decision::Open { open: 2, .. }));

    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    scene.member().presence = Presence::Lost;
    scene.step();
    let lost = vec![scene.member().id.clone()];
    scene.rollout.resume(&lost, scene.now_ms);
    scene.now_ms += BAKE;
    scene.settle();
    assert_eq!((scene.rollout.state, scene.have().len()), (State::Done, 4));
}

#[test]
fn two_and_over_a_quarter_of_a_stage_that_are_lost_undo_it_unless_others_are_lost_too() {
    // (size of the stage, lost of it, others, lost of them) → undone
    for (size, lost, others, others_lost, is_undone) in [
        (1, 1, 7, 0, false),
        (2, 2, 6, 0, true),
        (7, 2, 7, 0, true),
        (8, 2, 8, 0, false),
        (8, 3, 8, 0, true),
        (4, 2, 8, 2, true),
        (4, 2, 8, 3, false),
        (4, 4, 4, 4, false),
    ] {
        let stages = [size.to_string(), "100%".to_owned()];
        let mut scene = Scene::acknowledged(&stages.each_ref().map(String::as_str), size + others);
        let members: BTreeSet<String> = scene.rollout.members.keys().cloned().collect();
        let (mut of_stage, mut of_others) = (lost, others_lost);
        for node in &mut scene.nodes {
            let left = if members.contains(&node.id) { &mut of_stage } else { &mut of_others };
            if *left > 0 {
                *left -= 1;
                node.presence = Presence::Lost;
            }
        }
        let decision = scene.judge();
        match is_undone {
            true => assert!(matches!(decision, Decision::Undo(_)), "{size} {lost}: {decision:?}"),
            false => assert!(matches!(decision, Decision::Pause(..)), "{size} {lost}: {decision:?}"),
        }
    }
    let mut scene = Scene::acknowledged(&["2", "100%"], 8);
    for node in scene.nodes.iter_mut().filter(|node| !scene.rollout.members.contains_key(&node.id)) {
        // These were gone long before.
        (node.presence, node.last_seen_at_ms) = (Presence::Lost, T0 - 1000 * SECOND);
    }
    let members: Vec<String> = scene.rollout.members.keys().cloned().collect();
    scene.nodes.iter_mut().filter(|n| members.contains(&n.id)).for_each(|n| n.presence = Presence::Lost);
    assert!(scene.undone().starts_with("2 of 2 nodes that have it are lost: n"));
}

#[test]
fn a_node_that_leaves_on_purpose_is_not_missed_but_a_stage_of_none_proves_nothing() {
    let mut scene = Scene::acknowledged(&["2", "100%"], 4);
    scene.now_ms += BAKE;
    scene.member().presence = Presence::Left;
    assert!(matches!(scene.judge(), Decision::Open { open: 2, .. }));
    let members: Vec<String> = scene.rollout.members.keys().cloned().collect();
    scene.nodes.iter_mut().filter(|n| members.contains(&n.id)).for_each(|n| n.presence = Presence::Left);
    assert!(matches!(scene.judge(), Decision::Wait(why) if why.contains("left on purpose")));
}

#[test]
fn success_that_falls_undoes_it_at_once_and_not_at_the_end_of_its_time() {
    // (served and failed of the stage, of the others, of the stage before) → undone
    for (stage, others, before, is_undone) in [
        ((0, 40), (120, 0), (0, 0), true),
        ((0, 20), (60, 0), (0, 0), true),
        ((0, 19), (60, 0), (0, 0), false),
        ((0, 40), (19, 0), (0, 0), false),
        ((0, 40), (0, 0), (40, 0), true),
        ((0, 40), (10, 0), (40, 0), true),
        ((900, 100), (3000, 0), (0, 0), true),
        // A fall of 1 %, however sure; one of 5 % that chance explains; one that all share; and a rise.
        ((99_000, 1000), (300_000, 0), (0, 0), false),
        ((19, 1), (60, 0), (0, 0), false),
        ((500, 500), (1500, 1500), (1000, 0), false),
        ((1000, 0), (1000, 1000), (0, 0), false),
        ((0, 0), (1000, 0), (1000, 0), false),
    ] {
        let mut scene = Scene::acknowledged(&["1", "100%"], 4);
        let member = scene.member().id.clone();
        let other = scene.nodes.iter().find(|node| node.id != member).unwrap().id.clone();
        scene.evidence.after = vec![count(&member, stage.0, stage.1), count(&other, others.0, others.1)];
        scene.evidence.before = vec![count(&member, before.0, before.1), count(&other, 0, 1000)];
        scene.now_ms += 1;
        let decision = scene.judge();
        assert_eq!(matches!(decision, Decision::Undo(_)), is_undone, "{stage:?} {others:?}: {decision:?}");
        scene.rollout.turn(State::Paused(Pause::Operator), "", scene.now_ms);
        assert_eq!(
            matches!(scene.judge(), Decision::Undo(_)),
            is_undone,
            "a pause changes nothing about that"
        );
    }
}

#[test]
fn one_broken_model_of_many_is_seen_in_its_own_requests() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    let member = scene.member().id.clone();
    let other = scene.nodes.iter().find(|node| node.id != member).unwrap().id.clone();
    let of = |model: &str, count: NodeCount| NodeCount { model: model.to_owned(), ..count };
    scene.evidence.after = vec![
        of("busy", count(&member, 5000, 0)),
        of("rare", count(&member, 0, 30)),
        of("busy", count(&other, 5000, 0)),
        of("rare", count(&other, 30, 0)),
    ];
    let want = "requests of rare fail on the new revision: 0 of 30 served, against 30 of 30 served on the nodes of the \
                revision before";
    assert_eq!(scene.undone(), want);
}

#[test]
fn without_traffic_the_time_alone_counts_and_the_status_says_so() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    assert_eq!(
        scene.judge(),
        Decision::Wait("watches the stage for 60 s more; too few requests to judge".into())
    );
    let member = scene.member().id.clone();
    let other = scene.nodes.iter().find(|node| node.id != member).unwrap().id.clone();
    scene.evidence.after = vec![count(&member, 40, 1), count(&other, 40, 0)];
    assert_eq!(scene.judge(), Decision::Wait("watches the stage for 60 s more; 40 of 41 served".into()));
    scene.rollout.bake_ms = 0;
    assert!(matches!(scene.judge(), Decision::Open { .. }));
}

#[test]
fn a_process_that_has_just_started_waits_for_reports_before_it_goes_on() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    scene.now_ms += 100 * BAKE;
    let look = |watched_since_ms| Look {
        nodes: &scene.nodes,
        evidence: &scene.evidence,
        now_ms: scene.now_ms,
        watched_since_ms,
    };
    assert!(matches!(judge(&scene.rollout, &look(scene.now_ms - SECOND)), Decision::Wait(_)));
    assert!(matches!(judge(&scene.rollout, &look(scene.now_ms - 15 * SECOND)), Decision::Open { .. }));
}

#[test]
fn a_stage_of_a_label_takes_those_nodes_and_pauses_where_there_are_none() {
    let mut scene = Scene::new(&["1", "region=eu", "100%"], 6);
    for node in &mut scene.nodes[..3] {
        node.labels.insert("region".to_owned(), "eu".to_owned());
    }
    scene.rollout.bake_ms = 0;
    scene.settle();
    assert_eq!(scene.rollout.state, State::Done);
    let second: Vec<&str> =
        scene.rollout.members.iter().filter(|(_, m)| m.stage == 2).map(|(id, _)| id.as_str()).collect();
    assert!(second.len() >= 2 && second.iter().all(|id| ["n1", "n2", "n3"].contains(id)), "{second:?}");

    let mut scene = Scene::new(&["canary=yes", "100%"], 3);
    assert!(matches!(scene.step(), Decision::Pause(Pause::Nobody, why) if why.contains("canary=yes")));
    scene.settle();
    assert!(scene.given().is_empty());
    let mut waited =
        Scene { rollout: scene.rollout.clone(), nodes: fleet(3), ..Scene::new(&["1", "100%"], 0) };
    waited.nodes[1].labels.insert("canary".to_owned(), "yes".to_owned());
    waited.settle();
    assert_eq!(waited.given(), BTreeSet::from(["n2"]));
    scene.rollout.resume(&[], scene.now_ms);
    scene.now_ms += BAKE;
    scene.settle();
    assert_eq!((scene.rollout.state, scene.have().len()), (State::Done, 3));
}

#[test]
fn the_first_stage_is_of_sound_nodes_and_of_those_that_have_something_unproven_before_others() {
    let first = |nodes: &[Node]| choose(&staged(&["1", "100%"]), &Stage::Count(1), nodes);
    let mut nodes = fleet(5);
    for node in &mut nodes {
        node.is_sound = node.id == "n4";
    }
    assert_eq!(first(&nodes), ["n4"]);
    let mut rollout = staged(&["1", "100%"]);
    (rollout.revision, rollout.base) = (44, 41);
    nodes[2].runs = 42;
    assert_eq!(choose(&rollout, &Stage::Count(1), &nodes), ["n3"]);
    nodes[2].is_refusing = true;
    assert_eq!(choose(&rollout, &Stage::Count(1), &nodes), ["n4"], "what refuses proves nothing");
    nodes[3].presence = Presence::Away;
    nodes.iter_mut().for_each(|node| node.is_refusing = true);
    assert_eq!(choose(&rollout, &Stage::Count(9), &nodes).len(), 4, "where nobody else is, those will do");
}

#[test]
fn it_is_not_always_the_same_node_that_goes_first() {
    let nodes = fleet(10);
    let first = |revision| {
        let rollout = Rollout { revision, ..staged(&["1", "100%"]) };
        choose(&rollout, &Stage::Count(1), &nodes).remove(0)
    };
    let chosen: BTreeSet<String> = (100..200).map(first).collect();
    assert!(chosen.len() >= 8, "{chosen:?}");
    assert_eq!(first(100), first(100));
}

#[test]
fn an_immediate_one_is_for_all_and_done_when_those_that_are_there_have_answered() {
    let mut scene = Scene::new(&["1", "100%"], 4);
    scene.rollout = Rollout::begin(42, 41, Strategy::Immediate, &Plan::default(), T0);
    assert_eq!(scene.given().len(), 4);
    assert_eq!(scene.rollout.wanted_for("a node of tomorrow"), 42);
    assert!(matches!(scene.judge(), Decision::Wait(_)));
    scene.nodes[0].refusal = Some("refused it".to_owned());
    scene.nodes[1].presence = Presence::Lost;
    scene.nodes[2].has_it = true;
    assert_eq!(scene.judge(), Decision::Wait("waits for n4".to_owned()));
    scene.nodes[3].has_it = true;
    assert_eq!(scene.judge(), Decision::Finish);
    let first = Rollout::begin(1, 0, Strategy::Staged, &Plan::default(), T0);
    assert_eq!((first.strategy, first.proven()), (Strategy::Immediate, 1), "nothing is before the first");
}

#[test]
fn what_is_kept_is_what_comes_back() {
    let mut scene = Scene::acknowledged(&["1", "25%", "region=eu", "100%"], 8);
    for state in [
        State::Running,
        State::Paused(Pause::Lost),
        State::Done,
        State::Undone(43),
        State::Aborted(43),
        State::Superseded(44),
    ] {
        scene.rollout.turn(state, "why", T0 + 5);
        assert_eq!(Rollout::from_row(&scene.rollout.to_row()), Some(scene.rollout.clone()));
    }
    assert_eq!(Rollout::from_row(&rows::Rollout { body: "{}".into(), ..scene.rollout.to_row() }), None);
}

#[test]
fn nodes_that_lack_what_it_needs_are_no_part_of_it() {
    let mut scene = Scene::new(&["1", "100%"], 4);
    scene.nodes[0].is_lacking = true;
    scene.rollout.bake_ms = 0;
    for _ in 0..6 {
        // They are not given it, whatever stage is open.
        scene.nodes.iter_mut().filter(|node| !node.is_lacking).for_each(|node| node.has_it = true);
        scene.step();
    }
    assert_eq!((scene.rollout.state, scene.rollout.members.len()), (State::Done, 3));
    let mut scene = Scene::new(&["1", "100%"], 2);
    scene.nodes.iter_mut().for_each(|node| node.is_lacking = true);
    assert!(matches!(scene.judge(), Decision::Wait(why) if why.contains("lack what it needs")));
}
