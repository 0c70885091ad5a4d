//! Commands on alerts.

use std::time::Duration;

use clap::Subcommand;

/// Commands on alerts.
#[derive(Debug, Subcommand)]
pub enum AlertsCommand {
    /// Show what is wrong, what is silenced, and what receivers did not take
    List {
        /// Also what was over since this long ago
        #[arg(long, value_name = "DURATION", value_parser = super::duration)]
        since: Option<Duration>,
    },
    /// Tell every receiver that this is a test; exit code 1 when one does not take it
    Test,
    /// Tell nobody of some alerts for a while; the list shows them all the same
    Silence {
        /// The kind of alerts, as the list shows it; all for every kind
        kind: String,
        /// Only of this channel, node, job or revision, as the list shows it
        object: Option<String>,
        /// For how long, a minute to 30 days
        #[arg(long = "for", value_name = "DURATION", value_parser = super::duration)]
        length: Duration,
        /// Why, for those who read the list
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// End a silence
    Unsilence {
        /// Its id, as the list shows it
        id: String,
    },
}
