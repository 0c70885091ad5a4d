//! Which nodes make up a stage: so many as it says and no more, the soundest first, and not always the same one. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use common::catalog::rollout::Stage;
use common::snapshot::digest;

use super::Rollout;

/// What a rollout looks at in a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is there.
    pub presence: Presence,
    /// The revision that it runs in this epoch; 0 when it runs none.
    pub runs: u64,
    /// Whether it runs exactly what the rollout brings.
    pub has_it: bool,
    /// Why it does not take what the rollout brings.
    pub refusal: Option<String>,
    /// Whether it runs what it should and has no open breaker.
    pub is_sound: bool,
    /// Whether it refused or put aside what it should run now.
    pub is_refusing: bool,
    /// Whether it lacks what the rollout's content needs, and is not given it.
    pub is_lacking: bool,
    /// When it was last heard of.
    pub last_seen_at_ms: u64,
}

/// Whether a node is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// Its stream is open.
    #[default]
    Here,
    /// Its stream is not open, and it still has time to come back.
    Away,
    /// It left on purpose.
    Left,
    /// It was not heard of for too long.
    Lost,
}

impl Node {
    /// Whether it belongs to the fleet that a share is a share of: it is there, and can be given the revision.
    pub fn is_of_the_fleet(&self) -> bool {
        matches!(self.presence, Presence::Here | Presence::Away) && !self.is_lacking
    }
}

/// The nodes that a stage adds to the members: none when it is full already, or when nobody is fit for it.
///
/// A stage before the last takes connected nodes only. Nodes above the base come first, since unproven content
/// has reached them already; then sound ones; those that refuse what they should run only where nobody else is.
/// Among equals a hash of node and revision decides, which every control plane computes alike.
pub fn choose(rollout: &Rollout, stage: &Stage, nodes: &[Node]) -> Vec<String> {
    let fleet = || nodes.iter().filter(|node| node.is_of_the_fleet());
    let is_new = |node: &&Node| !rollout.members.contains_key(&node.id);
    let id = |node: &Node| node.id.clone();
    if *stage == Stage::ALL {
        return fleet().filter(is_new).map(id).collect();
    }
    let here = || fleet().filter(|node| node.presence == Presence::Here).filter(is_new);
    let size = match stage {
        Stage::Label { name, value } => {
            return here().filter(|node| node.labels.get(name) == Some(value)).map(id).collect();
        }
        Stage::Count(count) => *count as usize,
        Stage::Share(percent) => (fleet().count() * usize::from(*percent) / 100).max(1),
    };
    let mut ranked: Vec<&Node> = here().collect();
    ranked.sort_by_cached_key(|node| {
        let is_exposed = node.runs > rollout.base && !node.is_refusing;
        (node.is_refusing, Reverse(is_exposed), !node.is_sound, turn(rollout.revision, &node.id))
    });
    ranked.truncate(size.saturating_sub(rollout.members.len()));
    ranked.into_iter().map(id).collect()
}

fn turn(revision: u64, id: &str) -> [u8; 32] {
    digest(format!("{revision}/{id}").as_bytes())
}
