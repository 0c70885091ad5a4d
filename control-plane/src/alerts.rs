//! What is wrong with the fleet and who is told of it. What is found (`find`) goes through a pure machine (`machine`),
//! which says what is raised, what is over, and what receivers are to be told; that is kept in one transaction under the
//! leader's epoch (`run`) and then sent until it is taken (`deliver`), so that another leader goes on where one has ended.
//!
//! ```text
//! found ──► raised ──gone for a while──► resolved
//!              │ waits for others of its kind   │
//!              └──────────► notice ◄────────────┘ ──► a delivery to each receiver, tried again, by the same name
//! ```

pub mod ask;
pub mod deliver;
mod find;
mod machine;
mod message;
pub mod receivers;
pub mod run;

use std::fmt;
use std::time::Duration;

pub use machine::{Books, Notice, Step, step};

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An upstream refuses the credential of a channel, or it cannot be read.
    CredentialDisabled,
    /// An upstream wants to be paid.
    BalanceExhausted,
    /// A channel, or a route of it, is suspended for another reason.
    ChannelSuspended,
    /// The breaker of a channel is open on most nodes.
    BreakerOpen,
    /// A node is not heard of and did not say goodbye.
    NodeLost,
    /// A rollout stopped or went back by itself.
    RolloutHalted,
    /// A periodic job does not run, or a control plane is silent.
    MissedBeat,
    /// A node counted otherwise than this database.
    CounterMismatch,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::CredentialDisabled,
        Kind::BalanceExhausted,
        Kind::ChannelSuspended,
        Kind::BreakerOpen,
        Kind::NodeLost,
        Kind::RolloutHalted,
        Kind::MissedBeat,
        Kind::CounterMismatch,
    ];

    /// The name, also of its runbook.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::CredentialDisabled => "credential-disabled",
            Kind::BalanceExhausted => "balance-exhausted",
            Kind::ChannelSuspended => "channel-suspended",
            Kind::BreakerOpen => "breaker-open",
            Kind::NodeLost => "node-lost",
            Kind::RolloutHalted => "rollout-halted",
            Kind::MissedBeat => "missed-beat",
            Kind::CounterMismatch => "counter-mismatch",
        }
    }

    /// The other way.
    pub fn named(name: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// Of what: a channel, a node, a job, a revision.
    pub object: String,
    /// In words for people: what is wrong and where.
    pub summary: String,
}

/// How much of an alert receivers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// That it is so.
    Raised,
    /// That it is over; or it is over and there is nobody to tell.
    Over,
}

/// Something that is wrong, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Made by the program.
    pub id: String,
    /// What is wrong.
    pub kind: Kind,
    /// Of what.
    pub object: String,
    /// In words for people.
    pub summary: String,
    /// When it was first found.
    pub raised_at_ms: u64,
    /// Since when it is not found any more; 0 while it is.
    pub gone_since_ms: u64,
    /// When it was over; 0 while it is not.
    pub resolved_at_ms: u64,
    /// What receivers know of it.
    pub told: Told,
}

impl Alert {
    /// Whether it is still so.
    pub fn is_active(&self) -> bool {
        self.resolved_at_ms == 0
    }
}

/// What nobody wants to be told of for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Made by the program.
    pub id: String,
    /// Of this kind; none for every kind.
    pub kind: Option<Kind>,
    /// Of this object; empty for every object.
    pub object: String,
    /// Why, in the operator's words.
    pub reason: String,
    /// The operator.
    pub created_by: String,
    /// When it began.
    pub created_at_ms: u64,
    /// When it ends.
    pub until_ms: u64,
}

impl Silence {
    /// Whether it is for this alert, now.
    pub fn covers(&self, alert: &Alert, now_ms: u64) -> bool {
        let is_of = |kind: Kind| kind == alert.kind;
        now_ms < self.until_ms
            && self.kind.is_none_or(is_of)
            && (self.object.is_empty() || self.object == alert.object)
    }
}

/// When receivers were last told of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// How often they were.
    pub number: u64,
    /// When.
    pub told_at_ms: u64,
}

/// How patient alerts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// An alert waits so long for others of its kind, so that one message tells of all.
    pub wait: Duration,
    /// Between two messages of a kind there is at least so much time.
    pub interval: Duration,
    /// What goes on is told again after this.
    pub repeat: Duration,
    /// What was not found for so long is over.
    pub resolve_after: Duration,
    /// A job that is this much later than its period has missed its beat.
    pub missed_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            wait: Duration::from_secs(10),
            interval: Duration::from_secs(5 * 60),
            repeat: Duration::from_secs(4 * 60 * 60),
            resolve_after: Duration::from_secs(2 * 60),
            missed_after: Duration::from_secs(2 * 60),
        }
    }
}

/// What is to be told to one receiver, and how far that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Names what is told: the same, however often it is sent.
    pub notice: String,
    /// The name of the receiver.
    pub receiver: String,
    /// What is told of.
    pub kind: String,
    /// The notice, as JSON.
    pub body: String,
    /// When it was made.
    pub made_at_ms: u64,
    /// How often it was tried.
    pub tries: u64,
    /// When it is tried next.
    pub next_at_ms: u64,
    /// When it was taken or given up; 0 before.
    pub done_at_ms: u64,
    /// Why the last try failed; empty for one that did not.
    pub failure: String,
}

/// How a periodic job of a control plane does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The process.
    pub control_plane: String,
    /// Its name, for people.
    pub name: String,
    /// The job.
    pub job: String,
    /// How long ago this was written, by the database's clock.
    pub written_ago_ms: u64,
    /// How long ago the job had succeeded when it was.
    pub age_ms: u64,
    /// How often it runs.
    pub period_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_runbook_that_says_what_it_means_and_what_to_do() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/runbooks");
        for kind in Kind::ALL {
            let text = std::fs::read_to_string(folder.join(format!("{kind}.md"))).unwrap_or_default();
            assert!(text.starts_with(&format!("# {kind}\n")), "{kind} has no runbook");
            for part in ["## What it means", "## Look here", "## Do this", "## Over when"] {
                assert!(text.contains(part), "{kind}.md: {part} is missing");
            }
            assert_eq!(Kind::named(kind.as_str()), Some(kind));
        }
    }
}
