//! The staged move of the fleet from one revision to another: what a rollout is, how it changes, and which
//! revision a node should run under it. Pure; when it changes is `judge`'s matter, and `run` carries it out.
//!
//! ```text
//!            ┌─ lost node, operator ─► Paused ─ back, resume ─┐
//! begin ─► Running ◄──────────────────────────────────────────┘
//!            │  each stage: members chosen, acknowledged, watched ─► the next ─► … ─► Done
//!            └─ refused, put aside, falling success, lost nodes ─► Undone     (also while paused)
//!               operator ─► Aborted       a newer revision ─► Superseded
//! ```
//! Each revision has one rollout, and the newest one counts. Undone and aborted mean that the document of the base
//! was made a new revision, which all nodes get at once: inside an epoch no node goes back to a lower number.

mod choose;
mod judge;
mod rate;
pub mod run;
#[cfg(test)]
mod tests;
pub mod view;

use std::collections::BTreeMap;
use std::fmt;

use common::catalog::rollout::{Plan, Stage};
use serde::{Deserialize, Serialize};

pub use judge::{Decision, Look, judge};
pub use rate::{Evidence, NodeCount, Tally};

use crate::store::rows;

/// Of a fleet from one revision to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// Where to.
    pub revision: u64,
    /// The newest revision that reached the whole fleet before it; 0 when there is none.
    pub base: u64,
    /// In stages or at once.
    pub strategy: Strategy,
    /// In the order in which they open; the last one is the whole fleet.
    pub stages: Vec<Stage>,
    /// How long a stage is watched.
    pub bake_ms: u64,
    /// How many stages are open.
    pub open: usize,
    /// When the newest of them was opened.
    pub opened_at_ms: u64,
    /// The nodes of the open stages. Once chosen they stay.
    pub members: BTreeMap<String, Member>,
    /// Where it stands.
    pub state: State,
    /// Why it is paused, undone or aborted, or why it was to be at once; empty for nothing to say.
    pub reason: String,
    /// When it began.
    pub begun_at_ms: u64,
    /// When it came into this state.
    pub since_ms: u64,
    /// Grows with every change that is kept.
    pub version: u64,
}

/// How a revision reaches the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Stage by stage, judged, undone by itself.
    Staged,
    /// All nodes at once; nothing undoes it.
    Immediate,
}

/// A node that has, or is to have, the new revision before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Member {
    /// The stage that it was chosen for, from 1.
    pub stage: usize,
    /// When it was first seen to run the revision.
    pub acked_at_ms: Option<u64>,
    /// It is lost, and an operator said to go on without it.
    #[serde(default)]
    pub excused: bool,
}

/// Where a rollout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on by itself.
    Running,
    /// No further stage opens. It is judged all the same.
    Paused(Pause),
    /// Every node was given the revision, and those that were there acknowledged it.
    Done,
    /// It went back by itself; this revision took its place.
    Undone(u64),
    /// An operator ended it; this revision took its place.
    Aborted(u64),
    /// A newer revision took its place.
    Superseded(u64),
}

/// Why a rollout is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// An operator said so, and says when it goes on.
    Operator,
    /// Nodes of the stage are lost. It goes on when they are back, or when an operator says so.
    Lost,
    /// The next stage has no nodes. It goes on when there are some, or when an operator says so.
    Nobody,
    /// It should be undone and could not be.
    Stuck,
}

impl State {
    /// The name in the store, in metrics and for operators.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Paused(_) => "paused",
            State::Done => "done",
            State::Undone(_) => "undone",
            State::Aborted(_) => "aborted",
            State::Superseded(_) => "superseded",
        }
    }

    /// The revision that took its place, if one did.
    pub fn replaced_by(self) -> Option<u64> {
        match self {
            State::Undone(by) | State::Aborted(by) | State::Superseded(by) => Some(by),
            State::Running | State::Paused(_) | State::Done => None,
        }
    }
}

impl Rollout {
    /// A rollout of which no stage is open yet. Without a revision before it there is nothing to go back to, so
    /// that it is immediate.
    pub fn begin(revision: u64, base: u64, strategy: Strategy, plan: &Plan, now_ms: u64) -> Self {
        let strategy = if base == 0 { Strategy::Immediate } else { strategy };
        let base = if strategy == Strategy::Immediate { revision } else { base };
        Rollout {
            revision,
            base,
            strategy,
            stages: plan.stages.clone(),
            bake_ms: u64::try_from(plan.bake.as_millis()).unwrap_or(u64::MAX),
            open: 0,
            opened_at_ms: now_ms,
            members: BTreeMap::new(),
            state: State::Running,
            reason: String::new(),
            begun_at_ms: now_ms,
            since_ms: now_ms,
            version: 1,
        }
    }

    /// Whether it may still change.
    pub fn is_under_way(&self) -> bool {
        matches!(self.state, State::Running | State::Paused(_))
    }

    /// Whether every node is to have the revision, also one that comes later.
    pub fn is_for_all(&self) -> bool {
        self.strategy == Strategy::Immediate || self.state == State::Done || self.open >= self.stages.len()
    }

    /// The revision that a node should run while this is the newest rollout. The same on every control plane.
    pub fn wanted_for(&self, node: &str) -> u64 {
        if self.is_for_all() || self.members.contains_key(node) { self.revision } else { self.base }
    }

    /// The newest revision that the whole fleet may run: what the next rollout would go back to.
    pub fn proven(&self) -> u64 {
        if self.state == State::Done { self.revision } else { self.base }
    }

    /// Opens stages up to the one of this number, with these nodes more.
    pub fn advance(&mut self, open: usize, members: impl IntoIterator<Item = String>, now_ms: u64) {
        for id in members {
            self.members.entry(id).or_insert(Member { stage: open, ..Member::default() });
        }
        self.open = self.open.max(open);
        self.opened_at_ms = now_ms;
    }

    /// Notes which members run the revision by now. Returns whether there was news.
    pub fn acknowledge<'a>(&mut self, running: impl IntoIterator<Item = &'a str>, now_ms: u64) -> bool {
        let mut is_news = false;
        for id in running {
            if let Some(member) = self.members.get_mut(id).filter(|member| member.acked_at_ms.is_none()) {
                member.acked_at_ms = Some(now_ms);
                is_news = true;
            }
        }
        is_news
    }

    /// Leaves out nodes that are pinned to something else by now, unless they took the revision before. A first stage that
    /// has nobody then is opened anew.
    pub fn leave_out(&mut self, is_pinned: impl Fn(&str) -> bool) {
        let size = self.members.len();
        self.members.retain(|id, member| member.acked_at_ms.is_some() || !is_pinned(id));
        if self.members.is_empty() && size > 0 {
            self.open = 0;
        }
    }

    /// A time that is not yet was read from a clock that has gone back since, or from another control plane's: what is
    /// counted from it would stand still until then, so it counts from now.
    pub fn not_after(&mut self, now_ms: u64) {
        let acked = self.members.values_mut().filter_map(|member| member.acked_at_ms.as_mut());
        let times = [&mut self.opened_at_ms, &mut self.begun_at_ms, &mut self.since_ms];
        acked.chain(times).for_each(|time| *time = (*time).min(now_ms));
    }

    /// Comes into a state, and says why.
    pub fn turn(&mut self, state: State, reason: impl Into<String>, now_ms: u64) {
        self.state = state;
        self.reason = reason.into();
        self.since_ms = now_ms;
    }

    /// An operator lets it go on: without these nodes, which are lost, and without nodes in a stage that has none.
    pub fn resume(&mut self, lost: &[String], now_ms: u64) {
        for id in lost {
            if let Some(member) = self.members.get_mut(id) {
                member.excused = true;
            }
        }
        if self.state == State::Paused(Pause::Nobody) && self.open + 1 < self.stages.len() {
            self.open += 1;
        }
        self.turn(State::Running, "", now_ms);
    }

    /// As the store keeps it.
    pub fn to_row(&self) -> rows::Rollout {
        let body = Body {
            strategy: self.strategy,
            stages: self.stages.iter().map(Stage::to_string).collect(),
            bake_ms: self.bake_ms,
            open: self.open,
            opened_at_ms: self.opened_at_ms,
            members: self.members.clone(),
            state: self.state,
            reason: self.reason.clone(),
            begun_at_ms: self.begun_at_ms,
            since_ms: self.since_ms,
        };
        rows::Rollout {
            revision: self.revision,
            base: self.base,
            version: self.version,
            is_under_way: self.is_under_way(),
            body: serde_json::to_string(&body).unwrap_or_default(),
        }
    }

    /// The other way; `None` for what this version cannot read.
    pub fn from_row(row: &rows::Rollout) -> Option<Self> {
        let body: Body = serde_json::from_str(&row.body).ok()?;
        Some(Rollout {
            revision: row.revision,
            base: row.base,
            strategy: body.strategy,
            stages: body.stages.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?,
            bake_ms: body.bake_ms,
            open: body.open,
            opened_at_ms: body.opened_at_ms,
            members: body.members,
            state: body.state,
            reason: body.reason,
            begun_at_ms: body.begun_at_ms,
            since_ms: body.since_ms,
            version: row.version,
        })
    }
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rollout { revision, state, open, stages, members, .. } = self;
        write!(f, "revision {revision} {}", state.as_str())?;
        match self.strategy {
            Strategy::Immediate => f.write_str(", all nodes at once"),
            Strategy::Staged => {
                write!(f, ", stage {open} of {} open, {} nodes", stages.len(), members.len())
            }
        }
    }
}

/// What of a rollout has no column of its own.
#[derive(Serialize, Deserialize)]
struct Body {
    strategy: Strategy,
    stages: Vec<String>,
    bake_ms: u64,
    open: usize,
    opened_at_ms: u64,
    members: BTreeMap<String, Member>,
    state: State,
    reason: String,
    begun_at_ms: u64,
    since_ms: u64,
}
