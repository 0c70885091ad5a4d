//! What holds for any fleet, whatever happens to it in whatever order.

use proptest::prelude::*;

use super::{BAKE, Decision, Node, Pause, Presence, SECOND, Scene, Stage, State, node, view};

/// What may happen to a fleet.
#[derive(Debug, Clone)]
enum Happens {
    Takes(usize),
    Comes(usize),
    Goes(usize, Presence),
    Joins,
    Time(u64),
    Pauses,
    Resumes,
}

fn happens() -> impl proptest::strategy::Strategy<Value = Happens> {
    let presence = prop_oneof![Just(Presence::Away), Just(Presence::Left), Just(Presence::Lost)];
    prop_oneof![
        6 => (0..16usize).prop_map(Happens::Takes),
        2 => (0..16usize).prop_map(Happens::Comes),
        2 => (0..16usize, presence).prop_map(|(node, presence)| Happens::Goes(node, presence)),
        1 => Just(Happens::Joins),
        4 => (1..90u64).prop_map(|seconds| Happens::Time(seconds * SECOND)),
        1 => Just(Happens::Pauses),
        1 => Just(Happens::Resumes),
    ]
}

proptest! {
    #[test]
    fn no_stage_opens_before_its_gate_nor_with_more_nodes_than_it_says(
        size in 1..12usize,
        first in 1..4u32,
        second in 1..100u8,
        events in proptest::collection::vec(happens(), 1..120),
    ) {
        let stages = [first.to_string(), format!("{second}%"), "100%".to_owned()];
        let mut scene = Scene::new(&stages.each_ref().map(String::as_str), size);
        for event in events {
            let count = scene.nodes.len();
            match event {
                Happens::Takes(n) => {
                    let wanted = scene.rollout.wanted_for(&scene.nodes[n % count].id);
                    let node = &mut scene.nodes[n % count];
                    if node.presence == Presence::Here {
                        node.runs = node.runs.max(wanted);
                        node.has_it = node.runs == 42;
                    }
                }
                Happens::Comes(n) => scene.nodes[n % count].presence = Presence::Here,
                Happens::Goes(n, presence) => scene.nodes[n % count].presence = presence,
                Happens::Joins => scene.nodes.push(node(&format!("n{}", count + 1))),
                Happens::Time(ms) => scene.now_ms += ms,
                Happens::Pauses if scene.rollout.is_under_way() => {
                    scene.rollout.turn(State::Paused(Pause::Operator), "", scene.now_ms);
                }
                Happens::Resumes if scene.rollout.is_under_way() => {
                    let lost = view::lost(&scene.rollout, &scene.nodes);
                    scene.rollout.resume(&lost, scene.now_ms);
                }
                Happens::Pauses | Happens::Resumes => {}
            }
            if !scene.rollout.is_under_way() {
                break;
            }
            let before = scene.rollout.clone();
            let decision = scene.step();
            let after = &scene.rollout;
            for (id, member) in &before.members {
                prop_assert_eq!(after.members[id].stage, member.stage, "once chosen they stay");
            }
            if let Decision::Open { open, .. } = decision {
                prop_assert_eq!(before.state, State::Running, "a paused one opens nothing");
                let alive = scene.nodes.iter().filter(|node| node.is_of_the_fleet()).count();
                let size = match &before.stages[open - 1] {
                    Stage::Count(count) => *count as usize,
                    Stage::Share(percent) => (alive * usize::from(*percent) / 100).max(1),
                    Stage::Label { .. } => unreachable!(),
                };
                prop_assert!(after.members.len() <= size.max(before.members.len()) || after.is_for_all());
                if before.open > 0 {
                    let acked = |id: &String| after.members[id].acked_at_ms;
                    for (id, member) in before.members.iter().filter(|(_, member)| !member.excused) {
                        let presence = scene.nodes.iter().find(|node| node.id == *id).unwrap().presence;
                        prop_assert_ne!(presence, Presence::Lost);
                        prop_assert_ne!(presence, Presence::Away);
                        let at = acked(id);
                        prop_assert!(presence == Presence::Left || at.is_some(), "{} of {:?}", id, member);
                        prop_assert!(at.is_none_or(|at| at + BAKE <= scene.now_ms), "too early");
                    }
                }
            }
            if decision == Decision::Finish && scene.nodes.iter().any(Node::is_of_the_fleet) {
                prop_assert!(after.is_for_all());
            }
        }
    }
}
