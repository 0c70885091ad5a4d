//! What is wrong now, by what is known of the fleet. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Beat, Finding, Kind};
use crate::nodes::{NodeView, State};
use crate::rollout::{self, Rollout};

/// A node that was not heard of for longer is not expected back.
const EXPECTED_BACK: Duration = Duration::from_secs(24 * 60 * 60);
/// A rollout that went back is told of for so long, unless a newer revision takes its place.
const UNDONE_TOLD: Duration = Duration::from_secs(24 * 60 * 60);
/// A control plane that is silent for longer has been taken away.
const SILENT_TOLD: Duration = Duration::from_secs(60 * 60);
/// So many names stand in a summary.
const NAMES_MAX: usize = 5;
/// What a node, an upstream or an operator says is cut to this.
const WORDS_MAX: usize = 200;

/// What is looked at.
#[derive(Debug, Default)]
pub struct Seen<'a> {
    /// Every node, but for those that were revoked.
    pub nodes: &'a [NodeView],
    /// The newest rollout.
    pub rollout: Option<&'a Rollout>,
    /// The rollout that it took the place of.
    pub before: Option<&'a Rollout>,
    /// How the jobs of all control planes do.
    pub beats: &'a [Beat],
    /// Nodes whose totals differed of late.
    pub mismatches: &'a [String],
}

/// What is wrong, each thing once.
pub fn find(seen: &Seen<'_>, missed_after: Duration, now_ms: u64) -> Vec<Finding> {
    let mut found = pauses(seen.nodes);
    found.extend(breakers(seen.nodes));
    found.extend(seen.nodes.iter().filter_map(|node| lost(node, now_ms)));
    found.extend(halted(seen.rollout, seen.before, now_ms));
    found.extend(beats(seen.beats, missed_after));
    found.extend(seen.mismatches.iter().map(|node| Finding {
        kind: Kind::CounterMismatch,
        object: node.clone(),
        summary: format!("running totals of node {node} differ from the sum of its counted windows"),
    }));
    found
}

/// On which nodes something is out, and why.
#[derive(Default)]
struct Out<'a> {
    on: BTreeSet<&'a str>,
    classes: BTreeSet<&'a str>,
}

/// Suspensions by what they are of, with the nodes on which they are.
fn pauses(nodes: &[NodeView]) -> Vec<Finding> {
    let mut by: BTreeMap<(Kind, String), Out<'_>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.connected) {
        for pause in &node.facts.pauses {
            let kind = match (pause.what.as_str(), pause.class.as_str()) {
                ("credential suspended", _) | ("suspended", "credential") => Kind::CredentialDisabled,
                ("suspended", "balance") => Kind::BalanceExhausted,
                ("suspended", _) => Kind::ChannelSuspended,
                _ => continue,
            };
            let object = match pause.model.as_str() {
                "" => pause.channel.clone(),
                model => format!("{} for {model}", pause.channel),
            };
            let out = by.entry((kind, object)).or_default();
            out.on.insert(&node.id);
            out.classes.extend(Some(pause.class.as_str()).filter(|class| !class.is_empty()));
        }
    }
    let finding = |((kind, object), Out { on, classes }): ((Kind, String), Out<'_>)| {
        let on = names(on.into_iter());
        let summary = match kind {
            Kind::CredentialDisabled => {
                format!("the credential of channel {object} is refused, or cannot be read, on {on}")
            }
            Kind::BalanceExhausted => format!("the upstream of channel {object} wants to be paid, says {on}"),
            _ => {
                let why = classes.into_iter().collect::<Vec<_>>().join(", ");
                let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
                format!("channel {object} is suspended{why} on {on}")
            }
        };
        Finding { kind, object, summary: short(&summary) }
    };
    by.into_iter().map(finding).collect()
}

/// Channels whose breaker is open on most of the nodes that are connected.
fn breakers(nodes: &[NodeView]) -> Vec<Finding> {
    let connected: Vec<&NodeView> = nodes.iter().filter(|node| node.connected).collect();
    let mut open: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in &connected {
        for channel in &node.facts.open_channels {
            open.entry(channel).or_default().push(&node.id);
        }
    }
    let most = open.into_iter().filter(|(_, on)| 2 * on.len() > connected.len());
    let finding = |(channel, on): (&str, Vec<&str>)| Finding {
        kind: Kind::BreakerOpen,
        object: channel.to_owned(),
        summary: short(&format!(
            "the breaker of channel {channel} is open on {} of {} nodes: {}",
            on.len(),
            connected.len(),
            names(on.into_iter())
        )),
    };
    most.map(finding).collect()
}

fn lost(node: &NodeView, now_ms: u64) -> Option<Finding> {
    let silent_ms = now_ms.saturating_sub(node.last_seen_at_ms);
    let is_expected = silent_ms < EXPECTED_BACK.as_millis() as u64;
    (node.state == State::Lost && is_expected).then(|| Finding {
        kind: Kind::NodeLost,
        object: node.id.clone(),
        summary: format!("node {} is not heard of and did not say goodbye", node.id),
    })
}

/// A rollout that stopped by itself, or went back.
fn halted(newest: Option<&Rollout>, before: Option<&Rollout>, now_ms: u64) -> Option<Finding> {
    let newest = newest?;
    let finding = |rollout: &Rollout, what: &str| Finding {
        kind: Kind::RolloutHalted,
        object: format!("revision {}", rollout.revision),
        summary: short(&format!("the rollout of revision {} {what}: {}", rollout.revision, rollout.reason)),
    };
    match newest.state {
        rollout::State::Paused(rollout::Pause::Operator) => None,
        rollout::State::Paused(_) => Some(finding(newest, "is halted")),
        _ => before
            .filter(|before| before.state == rollout::State::Undone(newest.revision))
            .filter(|before| now_ms.saturating_sub(before.since_ms) < UNDONE_TOLD.as_millis() as u64)
            .map(|before| finding(before, "was undone")),
    }
}

/// Jobs that are later than they should be, and control planes of which nothing is heard.
fn beats(beats: &[Beat], missed_after: Duration) -> Vec<Finding> {
    let missed_ms = missed_after.as_millis() as u64;
    let silent: BTreeMap<&str, u64> = beats
        .iter()
        .filter(|beat| beat.written_ago_ms > missed_ms)
        .map(|beat| (beat.name.as_str(), beat.written_ago_ms))
        .collect();
    let planes = silent.iter().filter(|(_, silent_ms)| **silent_ms < SILENT_TOLD.as_millis() as u64);
    let planes = planes.map(|(name, _)| Finding {
        kind: Kind::MissedBeat,
        object: (*name).to_owned(),
        summary: short(&format!("control plane {name} is silent: none of its periodic jobs is heard of")),
    });
    let late = beats.iter().filter(|beat| {
        !silent.contains_key(beat.name.as_str())
            && beat.age_ms + beat.written_ago_ms > beat.period_ms + missed_ms
    });
    let late = late.map(|Beat { name, job, .. }| Finding {
        kind: Kind::MissedBeat,
        object: format!("{job} at {name}"),
        summary: short(&format!("the periodic job {job} of control plane {name} has missed its beat")),
    });
    planes.chain(late).collect()
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// One line of limited length.
fn short(words: &str) -> String {
    let clean = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    let short: String = clean.take(WORDS_MAX).collect();
    if short.len() < words.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests;
