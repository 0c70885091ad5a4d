//! Commands on the catalog, and on the rollout by which a revision of it reaches the fleet.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, value_parser};

use super::duration;

/// Commands on the catalog.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Check a document; nothing is kept
    Validate {
        /// TOML or JSON; - reads stdin
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Make a document the new revision
    Apply(ApplyArgs),
    /// Show what changes in meaning; exit code 1 when something does
    Diff {
        /// Revision that the changes lead away from; the current one without it
        #[arg(value_name = "FROM", value_parser = value_parser!(u64).range(1..))]
        from: Option<u64>,
        /// Revision that they lead to; the current one without it
        #[arg(value_name = "TO", value_parser = value_parser!(u64).range(1..), conflicts_with = "file")]
        to: Option<u64>,
        /// Document that they lead to: TOML or JSON; - reads stdin
        #[arg(short, long, value_name = "FILE", required_unless_present = "from")]
        file: Option<PathBuf>,
    },
    /// Make the document of an earlier revision the new one
    Rollback(RollbackArgs),
    /// Print the document of a revision
    Get {
        /// Number of the revision; the current one without it
        #[arg(value_name = "REV", value_parser = value_parser!(u64).range(1..))]
        revision: Option<u64>,
    },
    /// Show who made a revision, why, and what it changed
    Show {
        /// Number of the revision; the current one without it
        #[arg(value_name = "REV", value_parser = value_parser!(u64).range(1..))]
        revision: Option<u64>,
    },
    /// List revisions, newest first
    History {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50,
              value_parser = value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only revisions below this one
        #[arg(long, value_name = "REV", value_parser = value_parser!(u64).range(1..))]
        before: Option<u64>,
    },
}

/// What to apply, and how.
#[derive(Debug, ClapArgs)]
pub struct ApplyArgs {
    /// TOML or JSON; - reads stdin
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Refuse when another revision than this one is current
    #[arg(long, value_name = "N")]
    pub expect: Option<u64>,
    /// Why, for the history
    #[arg(short, long, value_name = "MSG", default_value = "", hide_default_value = true)]
    pub message: String,
    /// Check it and show what it would change; nothing is kept
    #[arg(long)]
    pub dry_run: bool,
    /// Ask this many nodes what they would make of it; exit code 2 when one would refuse it
    #[arg(long, value_name = "N", requires = "dry_run", value_parser = value_parser!(u32).range(1..))]
    pub probe: Option<u32>,
    /// Name of this change: applied again under it, it makes no second revision
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    pub idempotency_key: String,
    /// How it reaches the fleet.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// How a revision reaches the fleet.
#[derive(Debug, ClapArgs)]
pub struct ReachArgs {
    /// In stages that are watched, or all nodes at once, which needs --reason
    #[arg(long, value_enum, value_name = "STRATEGY", default_value_t = Strategy::Staged)]
    pub strategy: Strategy,
    /// Why all nodes are to have it at once
    #[arg(long, value_name = "REASON", default_value = "", hide_default_value = true)]
    pub reason: String,
    /// Whether to wait for its end.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Whether to wait for the end of a rollout.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub struct WaitArgs {
    /// Wait until it is done; exit code 3 when it pauses or goes back
    #[arg(long)]
    pub wait: bool,
    /// How long to wait; exit code 4 when it is over
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub within: Duration,
}

/// How a revision reaches the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// Stage by stage, undone by itself when a stage fails
    Staged,
    /// All nodes at once
    Immediate,
}

/// Commands on the rollout.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show where it stands; exit code 3 when it is paused or went back
    Status {
        /// Of which revision; the current one without it
        #[arg(value_name = "REV", value_parser = value_parser!(u64).range(1..))]
        revision: Option<u64>,
        /// Whether to wait for its end.
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Open no further stage until it is resumed; it is watched all the same
    Pause {
        /// Why, for others
        #[arg(long, value_name = "REASON", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Let it go on, without the nodes of its stages that are lost
    Resume,
    /// End it: the revision before it comes back on all nodes
    Abort {
        /// Why, for others
        #[arg(long, value_name = "REASON", default_value = "", hide_default_value = true)]
        reason: String,
    },
}

/// What to go back to, and how.
#[derive(Debug, ClapArgs)]
pub struct RollbackArgs {
    /// Number of the revision
    #[arg(value_name = "REV", value_parser = value_parser!(u64).range(1..))]
    pub revision: u64,
    /// Refuse when another revision than this one is current
    #[arg(long, value_name = "N")]
    pub expect: Option<u64>,
    /// Why, for the history; "rollback to revision REV" without it
    #[arg(short, long, value_name = "MSG", default_value = "", hide_default_value = true)]
    pub message: String,
    /// Name of this change: made again under it, it makes no second revision
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    pub idempotency_key: String,
    /// How it reaches the fleet.
    #[command(flatten)]
    pub reach: ReachArgs,
}
