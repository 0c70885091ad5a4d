//! Whether the success of a stage falls: what its nodes served since they have the new revision, beside what the
//! nodes on the old one served at the same time, or beside what the stage's own nodes served before. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use common::limits::{ROLLOUT_DROP_MIN, ROLLOUT_REQUESTS_MIN, ROLLOUT_Z_MIN};

/// Requests of a node, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCount {
    /// The node.
    pub node: String,
    /// The model.
    pub model: String,
    /// How they ended.
    pub tally: Tally,
}

/// Requests that were served, and those that were exhausted or cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// The caller has a whole answer.
    pub served: u64,
    /// The caller has none.
    pub failed: u64,
}

/// What was counted, by node and model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// In windows that began when every node of the stage that has acknowledged ran the revision.
    pub after: Vec<NodeCount>,
    /// In windows shortly before the first stage was opened.
    pub before: Vec<NodeCount>,
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Too little was counted on one side.
    TooFew,
    /// Nothing that chance does not explain.
    Holds(Tally),
    /// The stage fails more than it may; in words.
    Falls(String),
}

/// What a stage is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    Others,
    Before,
}

impl Tally {
    fn total(self) -> u64 {
        self.served + self.failed
    }

    fn share(self) -> f64 {
        self.served as f64 / self.total() as f64
    }

    fn is_enough(self) -> bool {
        self.total() >= ROLLOUT_REQUESTS_MIN
    }

    /// Whether this is so much less than the reference that neither chance nor a trifle explains it: a one-sided
    /// test of two proportions with a pooled variance.
    pub fn falls_below(self, reference: Tally) -> bool {
        if !self.is_enough() || !reference.is_enough() {
            return false;
        }
        let drop = reference.share() - self.share();
        if drop < ROLLOUT_DROP_MIN {
            return false;
        }
        let (n, m) = (self.total() as f64, reference.total() as f64);
        let pooled = (self.served + reference.served) as f64 / (n + m);
        let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
        drop > ROLLOUT_Z_MIN * error
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.served += other.served;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} served", self.served, self.total())
    }
}

/// Compares the nodes of a stage with those on the old revision; where those counted too little, with the stage's
/// own time before. All requests together first, then each model: one broken model of many shows in its own.
pub fn compare(evidence: &Evidence, stage: &BTreeSet<&str>, old: &BTreeSet<&str>) -> Verdict {
    let after = sums(&evidence.after, stage);
    let others = sums(&evidence.after, old);
    let before = sums(&evidence.before, stage);
    let mut verdict = Verdict::TooFew;
    let keys: BTreeSet<Option<&str>> = after.keys().copied().collect();
    for key in keys {
        let got = after.get(&key).copied().unwrap_or_default();
        let reference = |of: &BTreeMap<Option<&str>, Tally>, what| {
            of.get(&key).copied().filter(|tally| tally.is_enough()).map(|tally| (tally, what))
        };
        let found = reference(&others, Against::Others).or_else(|| reference(&before, Against::Before));
        let Some((reference, against)) = found.filter(|_| got.is_enough()) else { continue };
        if got.falls_below(reference) {
            return Verdict::Falls(words(key, got, reference, against));
        }
        if key.is_none() {
            verdict = Verdict::Holds(got);
        }
    }
    verdict
}

/// By model, and under `None` all of them.
fn sums<'a>(counts: &'a [NodeCount], nodes: &BTreeSet<&str>) -> BTreeMap<Option<&'a str>, Tally> {
    let mut sums: BTreeMap<Option<&str>, Tally> = BTreeMap::new();
    for count in counts.iter().filter(|count| nodes.contains(count.node.as_str())) {
        *sums.entry(None).or_default() += count.tally;
        *sums.entry(Some(&count.model)).or_default() += count.tally;
    }
    sums
}

fn words(model: Option<&str>, got: Tally, reference: Tally, against: Against) -> String {
    let of = model.map(|model| format!(" of {model}")).unwrap_or_default();
    let whose = match against {
        Against::Others => "on the nodes of the revision before",
        Against::Before => "on the same nodes before",
    };
    format!("requests{of} fail on the new revision: {got}, against {reference} {whose}")
}
