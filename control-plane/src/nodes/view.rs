//! A node as it is shown: what follows from what it says of itself and from what it should run. Pure.

use super::facts::{self, Applied, Facts, Finding};
use crate::revision::head::Wanted;
use crate::store::rows::Pin;

/// In which state a node is, as far as is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Runs what it should.
    InSync,
    /// On its way to the target.
    Behind,
    /// Refused the target and serves what it had.
    Rejected,
    /// Put the target aside after it died on it.
    Quarantined,
    /// On its way to the target for so long that something is wrong.
    Stale,
    /// Lacks what the target needs, is not given it and serves what it had.
    Incompatible,
    /// Left on purpose.
    Drained,
    /// Not heard of.
    Lost,
}

impl State {
    /// In words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            State::InSync => "in sync",
            State::Behind => "behind",
            State::Rejected => "rejected",
            State::Quarantined => "quarantined",
            State::Stale => "stale",
            State::Incompatible => "incompatible",
            State::Drained => "drained",
            State::Lost => "lost",
        }
    }
}

/// A node, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// The node's id.
    pub id: String,
    /// What it last said of itself.
    pub facts: Facts,
    /// What follows from that.
    pub state: State,
    /// Whether its stream is open, here or at another control plane.
    pub connected: bool,
    /// The name of that control plane; empty for none.
    pub control_plane: String,
    /// Since when it is open there; 0 for none.
    pub streaming_since_ms: u64,
    /// The revision that it runs; 0 when it runs none.
    pub applied_revision: u64,
    /// The revision that it should run; 0 when there is none.
    pub target_revision: u64,
    /// All that it should run; none while nothing was read from the store.
    pub aim: Option<Applied>,
    /// What an operator keeps it on, if one does.
    pub pin: Option<Pin>,
    /// What that needs and the node lacks, by name.
    pub lacks: Vec<String>,
    /// Since when the catalog that it runs is known to run there.
    pub config_since_ms: u64,
    /// When it was last heard of.
    pub last_seen_at_ms: u64,
}

impl NodeView {
    /// A node by what is known of it.
    pub fn of(
        id: &str,
        facts: Facts,
        connected: bool,
        is_lost: bool,
        wanted: Option<&Wanted>,
        last_seen_at_ms: u64,
    ) -> Self {
        let aim = wanted.map(|wanted| wanted.aim(id, &facts));
        let content = wanted.and_then(|wanted| wanted.content(aim?.catalog?));
        let lacks = content.map(|content| facts.lacks(&content.needs)).unwrap_or_default();
        NodeView {
            id: id.to_owned(),
            state: facts::state(&facts, connected, is_lost, aim.as_ref(), !lacks.is_empty()),
            lacks,
            connected,
            applied_revision: facts.applied.catalog.map_or(0, |part| part.version),
            target_revision: aim.and_then(|aim| aim.catalog).map_or(0, |part| part.version),
            aim,
            pin: wanted.and_then(|wanted| wanted.pins.of(id)).map(|pinned| pinned.pin.clone()),
            facts,
            control_plane: String::new(),
            streaming_since_ms: 0,
            config_since_ms: 0,
            last_seen_at_ms,
        }
    }

    /// Why it does not run what it should.
    pub fn violations(&self) -> Vec<Finding> {
        let rejected = self.facts.rejected.iter();
        rejected
            .filter(|rejected| self.aim.is_none_or(|aim| aim.runs(rejected.part)))
            .flat_map(|rejected| rejected.violations.iter().cloned())
            .chain(self.lacking())
            .collect()
    }

    /// What works but wants a person.
    pub fn warnings(&self) -> Vec<Finding> {
        self.facts.warnings.iter().cloned().chain(self.passed_by()).collect()
    }

    /// A node that runs more than what it is pinned to.
    fn passed_by(&self) -> Option<Finding> {
        let pinned = self.pin.as_ref().map(|pin| pin.revision)?;
        let runs = self.target_revision;
        (runs > pinned).then(|| Finding {
            path: "pin".to_owned(),
            message: format!(
                "it is pinned to revision {pinned} and keeps revision {runs}: no node goes back to a lower number"
            ),
        })
    }

    fn lacking(&self) -> Option<Finding> {
        let (version, revision, lacks) = (&self.facts.version, self.target_revision, self.lacks.join(", "));
        (!self.lacks.is_empty()).then(|| Finding {
            path: "features".to_owned(),
            message: format!(
                "version {version} of the node lacks {lacks}, which revision {revision} needs; update the node"
            ),
        })
    }
}
