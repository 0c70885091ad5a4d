//! What a rollout looks at in the nodes, wherever their streams are.

use super::Rollout;
use super::choose::{Node, Presence};
use crate::nodes::{NodeView, State};
use crate::plane::Plane;
use crate::revision::encoded::Encoded;
use crate::revision::head::Wanted;

/// Every node that is known, under a rollout that brings this content, but for those that are pinned to another one.
pub fn nodes(plane: &Plane, wanted: &Wanted, content: Option<&Encoded>) -> Vec<Node> {
    let left_out = wanted.pins.left_out_of(content.map(|content| content.part));
    let views = plane.nodes.list(Some(wanted)).into_iter();
    let taking_part = views.filter(|view| !left_out.contains_key(view.id.as_str()));
    taking_part.map(|view| node(view, wanted, content)).collect()
}

fn node(view: NodeView, wanted: &Wanted, content: Option<&Encoded>) -> Node {
    let part = content.map(|content| content.part);
    let applied = view.facts.applied;
    let is_same_epoch = applied.epoch == wanted.target.epoch;
    let runs = applied.catalog.filter(|_| is_same_epoch);
    let presence = match view.state {
        State::Lost => Presence::Lost,
        State::Drained => Presence::Left,
        _ if view.connected => Presence::Here,
        _ => Presence::Away,
    };
    Node {
        presence,
        runs: runs.map_or(0, |part| part.version),
        has_it: part.is_some() && runs == part,
        refusal: part.and_then(|part| view.facts.refusal(part)),
        is_sound: view.state == State::InSync && view.facts.open_channels.is_empty(),
        is_refusing: matches!(view.state, State::Rejected | State::Quarantined),
        is_lacking: content.is_some_and(|content| !view.facts.lacks(&content.needs).is_empty()),
        last_seen_at_ms: view.last_seen_at_ms,
        labels: view.facts.labels,
        id: view.id,
    }
}

/// The members of a rollout that are lost and were not excused.
pub fn lost(rollout: &Rollout, nodes: &[Node]) -> Vec<String> {
    let lost = nodes.iter().filter(|node| node.presence == Presence::Lost);
    let counts = |node: &&Node| rollout.members.get(&node.id).is_some_and(|member| !member.excused);
    lost.filter(counts).map(|node| node.id.clone()).collect()
}
