//! Acknowledgements, refusals, lost nodes, success old against new → wait, go on, pause or undo. Pure.

use std::collections::BTreeSet;

use common::catalog::rollout::Stage;
use common::limits::{HEARTBEAT_LOST, WINDOW_LENGTH};

use super::choose::{Node, Presence, choose};
use super::rate::{Evidence, Verdict, compare};
use super::{Pause, Rollout, State, Strategy};

/// After a start of this process counters need so long to come home: a window, and time for its report.
const REPORTS_WITHIN_MS: u64 = WINDOW_LENGTH.as_millis() as u64 * 3 / 2;
/// Ids that are named in a text; more are counted.
const NAMED_MAX: usize = 5;

/// What a rollout is judged by.
#[derive(Debug)]
pub struct Look<'a> {
    /// Every node that is known.
    pub nodes: &'a [Node],
    /// What they counted.
    pub evidence: &'a Evidence,
    /// Now.
    pub now_ms: u64,
    /// Since when this process watches.
    pub watched_since_ms: u64,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing yet; what it waits for.
    Wait(String),
    /// Open stages up to this number, with these nodes more.
    Open {
        /// How many stages are open then.
        open: usize,
        /// Who gets the revision besides those that have it.
        members: Vec<String>,
    },
    /// Open no further stage.
    Pause(Pause, String),
    /// What it was paused for is over.
    Resume,
    /// Go back to the base, and why.
    Undo(String),
    /// It is through.
    Finish,
}

/// Judges a rollout that is under way.
pub fn judge(rollout: &Rollout, look: &Look<'_>) -> Decision {
    if rollout.strategy == Strategy::Immediate {
        return settle(look.nodes);
    }
    if rollout.state == State::Paused(Pause::Stuck) {
        return Decision::Wait(rollout.reason.clone());
    }
    if let Some(reason) = refusal(look.nodes).or_else(|| falling(rollout, look)) {
        return Decision::Undo(reason);
    }
    let lost = lost(rollout, look.nodes);
    if let Some(reason) = too_many_lost(rollout, &lost, look.nodes) {
        return Decision::Undo(reason);
    }
    match rollout.state {
        State::Paused(Pause::Operator) => return Decision::Wait(rollout.reason.clone()),
        State::Paused(Pause::Lost) if lost.is_empty() => return Decision::Resume,
        State::Paused(Pause::Lost) => return Decision::Wait(rollout.reason.clone()),
        State::Running if !lost.is_empty() => {
            let reason = format!("{} of its stage {} lost", named(&lost), is_are(&lost));
            return Decision::Pause(Pause::Lost, reason);
        }
        State::Running
        | State::Paused(Pause::Nobody | Pause::Stuck)
        | State::Done
        | State::Undone(_)
        | State::Aborted(_)
        | State::Superseded(_) => {}
    }
    if rollout.open > 0 {
        if let Some(waiting) = unacknowledged(rollout, look.nodes) {
            return Decision::Wait(waiting);
        }
        if rollout.open >= rollout.stages.len() {
            return Decision::Finish;
        }
        if let Some(waiting) = baking(rollout, look) {
            return Decision::Wait(waiting);
        }
    }
    next(rollout, look.nodes)
}

/// An immediate rollout is through when every node that is there has taken or refused it.
fn settle(nodes: &[Node]) -> Decision {
    let open = nodes.iter().filter(|node| node.is_of_the_fleet() && !node.has_it && node.refusal.is_none());
    let open: Vec<&str> = open.map(|node| node.id.as_str()).collect();
    if open.is_empty() { Decision::Finish } else { Decision::Wait(format!("waits for {}", named(&open))) }
}

/// Of any node: who was given it and does not take it shows what the others would do.
fn refusal(nodes: &[Node]) -> Option<String> {
    let (node, why) = nodes.iter().find_map(|node| Some((node, node.refusal.as_ref()?)))?;
    Some(format!("{} {why}", node.id))
}

fn falling(rollout: &Rollout, look: &Look<'_>) -> Option<String> {
    match verdict(rollout, look) {
        Verdict::Falls(reason) => Some(reason),
        Verdict::TooFew | Verdict::Holds(_) => None,
    }
}

fn verdict(rollout: &Rollout, look: &Look<'_>) -> Verdict {
    let acked = rollout.members.iter().filter(|(_, member)| member.acked_at_ms.is_some());
    let stage: BTreeSet<&str> = acked.map(|(id, _)| id.as_str()).collect();
    // What runs neither the old revision nor the new one tells nothing about either.
    let old = look.nodes.iter().filter(|node| node.runs > 0 && node.runs <= rollout.base);
    let old = old.map(|node| node.id.as_str()).filter(|id| !rollout.members.contains_key(*id)).collect();
    compare(look.evidence, &stage, &old)
}

/// The members that are lost and were not excused.
fn lost<'a>(rollout: &Rollout, nodes: &'a [Node]) -> Vec<&'a str> {
    let lost = nodes.iter().filter(|node| node.presence == Presence::Lost);
    let counts = |node: &&Node| rollout.members.get(&node.id).is_some_and(|member| !member.excused);
    lost.filter(counts).map(|node| node.id.as_str()).collect()
}

/// At least two and over a quarter of the stage, while no more than a quarter of the others went with them: then it is
/// the revision, and not the network.
fn too_many_lost(rollout: &Rollout, lost: &[&str], nodes: &[Node]) -> Option<String> {
    let size = rollout.members.values().filter(|member| !member.excused).count();
    if lost.len() < 2 || lost.len() * 4 <= size {
        return None;
    }
    let alive_since_ms = rollout.opened_at_ms.saturating_sub(HEARTBEAT_LOST.as_millis() as u64);
    let others = || nodes.iter().filter(|node| !rollout.members.contains_key(&node.id));
    let others_lost = others().filter(|node| node.presence == Presence::Lost);
    let others_lost = others_lost.filter(|node| node.last_seen_at_ms >= alive_since_ms).count();
    let others_here = others().filter(|node| node.is_of_the_fleet()).count();
    if others_lost * 4 > others_lost + others_here {
        return None;
    }
    Some(format!("{} of {size} nodes that have it are lost: {}", lost.len(), named(lost)))
}

/// Who of the open stages does not run it yet, or is not there.
fn unacknowledged(rollout: &Rollout, nodes: &[Node]) -> Option<String> {
    let member = |node: &&Node| rollout.members.get(&node.id).is_some_and(|member| !member.excused);
    let counted = || nodes.iter().filter(member).filter(|node| node.presence != Presence::Left);
    let open = counted().filter(|node| !node.has_it || node.presence != Presence::Here);
    let open: Vec<&str> = open.map(|node| node.id.as_str()).collect();
    if !open.is_empty() {
        return Some(format!("waits for {}", named(&open)));
    }
    // Nodes that left on purpose tell nothing, and nobody has watched the revision then.
    let is_anybody_here = counted().next().is_some();
    let is_last = rollout.open >= rollout.stages.len();
    let is_excused = rollout.members.values().all(|member| member.excused);
    (!is_anybody_here && !is_last && !is_excused)
        .then(|| "waits for a node of its stage: all of them left on purpose".to_owned())
}

fn baking(rollout: &Rollout, look: &Look<'_>) -> Option<String> {
    if rollout.bake_ms == 0 {
        return None;
    }
    let acked_at_ms = rollout.members.values().filter_map(|member| member.acked_at_ms).max();
    let since_ms = acked_at_ms.unwrap_or(rollout.opened_at_ms).max(rollout.opened_at_ms);
    // A start that is not yet was read before the clock went back.
    let watched_since_ms =
        Some(look.watched_since_ms).filter(|since_ms| *since_ms <= look.now_ms).unwrap_or(0);
    let reports_ms = watched_since_ms.saturating_add(REPORTS_WITHIN_MS.min(rollout.bake_ms));
    let until_ms = since_ms.saturating_add(rollout.bake_ms).max(reports_ms);
    let left_ms = until_ms.saturating_sub(look.now_ms);
    if left_ms == 0 {
        return None;
    }
    let seen = match verdict(rollout, look) {
        Verdict::Holds(tally) => tally.to_string(),
        Verdict::TooFew | Verdict::Falls(_) => "too few requests to judge".to_owned(),
    };
    Some(format!("watches the stage for {} s more; {seen}", left_ms.div_ceil(1000)))
}

/// The next stage that adds somebody, or the last one. A stage with which the whole fleet has it is the last one too.
fn next(rollout: &Rollout, nodes: &[Node]) -> Decision {
    let last = rollout.stages.len();
    if !nodes.iter().any(Node::is_of_the_fleet) {
        let mut lacking = nodes.iter().filter(|node| node.is_lacking && node.presence == Presence::Here);
        return match lacking.next() {
            Some(_) => {
                Decision::Wait("waits for a node: all that are connected lack what it needs".to_owned())
            }
            None => Decision::Finish,
        };
    }
    for (number, stage) in (1..).zip(&rollout.stages).skip(rollout.open) {
        let members = choose(rollout, stage, nodes);
        if !members.is_empty() || number == last {
            if matches!(rollout.state, State::Paused(_)) {
                return Decision::Resume;
            }
            let has_it = |id: &String| rollout.members.contains_key(id) || members.contains(id);
            let is_all = nodes.iter().filter(|node| node.is_of_the_fleet()).all(|node| has_it(&node.id));
            return Decision::Open { open: if is_all { last } else { number }, members };
        }
        // A stage that adds nobody is full already, unless there is nobody for it.
        let Stage::Label { name, value } = stage else {
            if rollout.members.is_empty() {
                return Decision::Wait("waits for a node: none is connected".to_owned());
            }
            continue;
        };
        let is_in_it = |node: &&Node| node.labels.get(name) == Some(value);
        if nodes.iter().filter(is_in_it).any(|node| rollout.members.contains_key(&node.id)) {
            continue;
        }
        let reason = format!("no node for its stage {number}: none that is connected has the label {stage}");
        return match rollout.state {
            State::Paused(_) => Decision::Wait(reason),
            _ => Decision::Pause(Pause::Nobody, reason),
        };
    }
    Decision::Finish
}

fn named(ids: &[&str]) -> String {
    let shown = ids.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn is_are(ids: &[&str]) -> &'static str {
    if ids.len() == 1 { "is" } else { "are" }
}
