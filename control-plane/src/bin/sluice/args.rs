//! Commands, flags and environment, as clap sees them. What they do is the matter of the command files.

mod alerts;
mod catalog;
mod identity;
mod requests;
mod secrets;
#[cfg(test)]
mod tests;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;

pub use alerts::AlertsCommand;
pub use catalog::{ApplyArgs, CatalogCommand, RollbackArgs, RolloutCommand, Strategy, WaitArgs};
use common::dialect::Dialect;
pub use identity::{AuthorityCommand, TokensCommand};
pub use requests::{FilterArgs, RequestsCommand};
pub use secrets::SecretCommand;
pub use usage::{By, UsageArgs};

/// Speaks to the control plane of a Sluice fleet.
#[derive(Debug, Parser)]
#[command(
    name = "sluice",
    version,
    args_override_self = true,
    after_help = "The token itself may stand in SLUICE_TOKEN, instead of a file.\n\
                  Exit codes: 0 done, 1 difference or not found, 2 error, 3 halted, 4 timeout."
)]
pub struct Args {
    /// How to reach the control plane.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// What the result looks like on stdout.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output: Format,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How to reach the control plane, and as whom.
#[derive(Debug, Clone, ClapArgs)]
pub struct ConnectArgs {
    /// Admin address of the control plane
    #[arg(
        long,
        global = true,
        env = "SLUICE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:7443"
    )]
    pub server: String,
    /// File with the admin token; the control plane writes admin.token into its data folder
    #[arg(long, global = true, env = "SLUICE_TOKEN_FILE", value_name = "FILE", value_parser = path())]
    pub token_file: Option<PathBuf>,
    /// The admin token itself. Only by the environment: a flag would show in the list of processes.
    #[arg(skip = std::env::var("SLUICE_TOKEN").ok())]
    pub token: Option<String>,
    /// PEM file with the certificate authority of an https server; without it the public ones count
    #[arg(long, global = true, env = "SLUICE_CA_FILE", value_name = "FILE", value_parser = path())]
    pub ca_file: Option<PathBuf>,
    /// Time for each call; exit code 4 when it is over
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
    /// Send the token in clear to a host that is not this one
    #[arg(long, global = true)]
    pub insecure_plaintext: bool,
}

/// What the result looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs: one line for each result
    Json,
}

/// A command or a group of them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check, apply and read the catalog
    Catalog {
        /// Which of them.
        #[command(subcommand)]
        command: CatalogCommand,
    },
    /// Show the chain of a model: its channels, cheapest first, and where their breakers are open now
    Chain {
        /// The name that callers put in `model`
        model: String,
        /// Only for this wire format
        #[arg(long, value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::as_str)))]
        dialect: Option<String>,
    },
    /// Show the chains of all models
    Chains,
    /// The gateway nodes and what they run
    Nodes {
        /// Which of them.
        #[command(subcommand)]
        command: NodesCommand,
    },
    /// How the current revision reaches the fleet
    Rollout {
        /// Which of them.
        #[command(subcommand)]
        command: RolloutCommand,
    },
    /// The tokens that nodes enrol with
    Tokens {
        /// Which of them.
        #[command(subcommand)]
        command: TokensCommand,
    },
    /// The authorities that sign the nodes' certificates
    Ca {
        /// Which of them.
        #[command(subcommand)]
        command: AuthorityCommand,
    },
    /// The keys that applications call with
    Keys {
        /// Which of them.
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// The credentials of channels that the control plane keeps sealed
    Secret {
        /// Which of them.
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Who may call the control plane
    Access {
        /// Which of them.
        #[command(subcommand)]
        command: AccessCommand,
    },
    /// Who changed what, when and from where
    Audit {
        /// Which of them.
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// What is wrong, and who is told of it
    Alerts {
        /// Which of them.
        #[command(subcommand)]
        command: AlertsCommand,
    },
    /// What was decided of each request, and whether it would be again
    Requests {
        /// Which of them.
        #[command(subcommand)]
        command: RequestsCommand,
    },
    /// What client keys used, and what it comes to
    Usage(UsageArgs),
    /// Show the success really observed
    Status(StatusArgs),
    /// Write a copy of everything that the control plane keeps into a file, while it runs
    Backup(BackupArgs),
    /// Put a backup in the place of everything that the control plane keeps
    Restore(RestoreArgs),
    /// Look what is wrong with the control plane and its fleet, and what to do; exit code 1 when there is a fault
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Commands on the nodes.
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// List the nodes, what they run and what they refused
    List {
        /// Show it again whenever it changes
        #[arg(long)]
        watch: bool,
        /// Only nodes with this label; given again, with all of them
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Show all that is known of a node
    Show {
        /// Its id, as `nodes list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Send a node away: it turns not ready, finishes what is in flight and ends
    Drain {
        /// Its id, as `nodes list` shows it
        #[arg(value_name = "ID")]
        id: String,
        /// Why, for the node's log
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// End a node's quarantines: what it put aside is tried again
    Retry {
        /// Its id, as `nodes list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Keep a node on a revision, out of every rollout of another one
    Pin {
        /// Its id, as `nodes list` shows it
        #[arg(value_name = "ID")]
        id: String,
        /// What it is to run, whatever else is applied
        #[arg(long, value_name = "REV", value_parser = value_parser!(u64).range(1..))]
        revision: u64,
        /// Why, for others
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Let a pinned node follow the fleet again
    Unpin {
        /// Its id, as `nodes list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Take a node's identity away: it is turned out within seconds, and let in again only with a new token
    Revoke {
        /// Its id, as `nodes list` shows it
        id: String,
    },
}

/// Commands on client keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key; this is the only time it is shown
    Create {
        /// What or who it is for
        #[arg(long)]
        name: String,
    },
    /// List the keys
    List,
    /// Make a key worthless
    Revoke {
        /// Its id, as `keys list` shows it
        id: String,
    },
}

/// Commands on the tokens of operators.
#[derive(Debug, Subcommand)]
pub enum AccessCommand {
    /// Make a token; this is the only time it is shown
    Create {
        /// Who or what it is for; the author of what is done with it
        #[arg(long)]
        name: String,
        /// What it may do
        #[arg(long, value_enum)]
        role: AccessRole,
        /// How long it lives, or "never" for one that does not end
        #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = ttl)]
        ttl: Ttl,
    },
    /// List the tokens
    List,
    /// Make a token worthless, within seconds and everywhere
    Revoke {
        /// Its id, as `access list` shows it
        id: String,
    },
    /// Show who the control plane takes you for
    Whoami,
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessRole {
    /// Reads
    Viewer,
    /// Changes what the fleet serves: catalog, rollouts, nodes, channels, keys
    Operator,
    /// Everything, also access, secrets and the fleet's identity
    Admin,
}

/// How long a token lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// Until it is revoked.
    Never,
    /// So many seconds.
    Seconds(u64),
}

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List what was changed, newest first
    List(AuditArgs),
    /// Walk the whole log and see that nobody altered it; exit code 1 when somebody did
    Verify {
        /// What an earlier walk came to: the log must still hold that entry
        #[arg(long, value_name = "NUMBER:SHA256")]
        from: Option<String>,
    },
}

/// Which entries to list.
#[derive(Debug, ClapArgs)]
pub struct AuditArgs {
    /// How far back
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Only entries below this number
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u64).range(1..))]
    pub before: Option<u64>,
    /// Only what this one did
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub actor: String,
    /// Only actions that begin so: catalog, key.revoke
    #[arg(long, value_name = "ACTION", default_value = "", hide_default_value = true)]
    pub action: String,
}

/// Where a backup goes.
#[derive(Debug, ClapArgs)]
pub struct BackupArgs {
    /// File to write
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    pub force: bool,
}

/// Which backup to put back.
#[derive(Debug, ClapArgs)]
pub struct RestoreArgs {
    /// File that `sluice backup` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Do it: what came after the backup is lost
    #[arg(long)]
    pub yes: bool,
}

/// What of the status to show.
#[derive(Debug, ClapArgs)]
pub struct StatusArgs {
    /// How far back
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = window)]
    pub window: Duration,
    /// Only this model
    #[arg(long)]
    pub model: Option<String>,
    /// Show it again whenever the numbers change
    #[arg(long)]
    pub watch: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    common::label::parse(text).map_err(|fault| fault.to_string())
}

/// A path that may be empty: a variable that is set to nothing counts as not set.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be more than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(cause) => Err(format!("{cause}; write it with a unit: 30s, 5m, 1h, 24h")),
    }
}

fn ttl(text: &str) -> Result<Ttl, String> {
    if text == "never" {
        return Ok(Ttl::Never);
    }
    window(text).map(|ttl| Ttl::Seconds(ttl.as_secs()))
}

fn window(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short.as_secs() == 0 => Err("must be a second at least".to_owned()),
        window => Ok(window),
    }
}
