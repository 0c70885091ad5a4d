//! Arguments of `sluice requests`.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, value_parser};

use super::duration;

/// Commands about records of requests.
#[derive(Debug, Subcommand)]
pub enum RequestsCommand {
    /// List requests, newest first
    List {
        /// Which of them.
        #[command(flatten)]
        filter: FilterArgs,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only those that began before this one
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        before: String,
    },
    /// Count failed attempts by channel and class
    Failures {
        /// Of which requests.
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Show one request: why it went where it went, and where its time went
    Show {
        /// Its x-request-id, or the one that the caller sent
        id: String,
    },
    /// Decide a request again, and say what would differ
    Replay {
        /// Its x-request-id, or the one that the caller sent
        id: String,
        /// Over the chain of this revision, instead of the recorded one
        #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
        revision: Option<u64>,
    },
}

/// Which requests.
#[derive(Debug, ClapArgs)]
pub struct FilterArgs {
    /// Not older than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// Asked for this model
    #[arg(long, default_value = "", hide_default_value = true)]
    pub model: String,
    /// Asked this channel on the way
    #[arg(long, default_value = "", hide_default_value = true)]
    pub channel: String,
    /// With an attempt that failed so; on that channel, where one is given
    #[arg(long, default_value = "", hide_default_value = true)]
    pub class: String,
    /// Served by this node
    #[arg(long, default_value = "", hide_default_value = true)]
    pub node: String,
    /// By the caller with the key of this id
    #[arg(long, default_value = "", hide_default_value = true)]
    pub key: String,
    /// Ended so: served, exhausted, cut, bad_request, canceled, or the code of a refusal
    #[arg(long, default_value = "", hide_default_value = true)]
    pub outcome: String,
    /// Answered with this HTTP status
    #[arg(long, value_name = "STATUS", value_parser = value_parser!(u32).range(100..=599))]
    pub status: Option<u32>,
    /// With at least so many attempts
    #[arg(long, value_name = "N")]
    pub min_hops: Option<u32>,
    /// Took at least this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub slower_than: Option<Duration>,
}
