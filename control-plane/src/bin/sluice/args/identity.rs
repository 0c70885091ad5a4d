//! Commands on who the nodes are: tokens by which they enrol, authorities that sign their certificates.

use std::time::Duration;

use clap::{Subcommand, value_parser};

use super::duration;

/// Commands on tokens for enrolment.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Make a token; this is the only time it is shown
    Create {
        /// How long nodes may enrol with it
        #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
        ttl: Duration,
        /// How many nodes may
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
        uses: u64,
        /// What each of them is labelled, whatever it says of itself; may stand several times
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = common::label::parse)]
        labels: Vec<(String, String)>,
    },
    /// List the tokens, also those that are over
    List,
    /// Make a token worthless; nodes that enrolled with it stay enrolled
    Revoke {
        /// Its id, as `tokens list` shows it
        id: String,
    },
}

/// Commands on certificate authorities.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum AuthorityCommand {
    /// List the authorities, the one that signs first
    List,
    /// Make a new one that signs from now on; the old one goes when no node needs it
    Rotate,
}
