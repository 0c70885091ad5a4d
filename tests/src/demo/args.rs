//! What the demo is asked for.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// A Sluice fleet in one process: a real control plane, two real gateway nodes, three simulated
/// providers, a little traffic, and a live view of it all.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "demo", version)]
pub struct Args {
    /// Keep the fleet's data here, for the next time [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Serve this catalog with its real upstreams instead of the simulated ones. The demo then calls
    /// one of its models every ten seconds, which costs what the upstream takes; see --no-traffic
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// End by itself after this time, such as 20s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub r#for: Option<Duration>,
    /// Send no requests of its own; on a terminal, p starts them
    #[arg(long)]
    pub no_traffic: bool,
    /// Print plain lines also on a terminal
    #[arg(long)]
    pub plain: bool,
}

impl Args {
    /// Whether there is a terminal to draw on and to take keys from.
    pub(super) fn wants_screen(&self) -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !self.plain && !is_dumb && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }

    /// How long a channel of the simulated catalog stays out: short enough that it comes back while
    /// somebody watches.
    pub(super) fn cooldown(&self) -> Duration {
        let usual = Duration::from_secs(5);
        let fifth = self.r#for.map_or(usual, |time| Duration::from_millis(time.as_millis() as u64 / 5));
        fifth.clamp(Duration::from_secs(1), usual)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_secs(1) && time <= Duration::from_secs(86_400) => Ok(time),
        Ok(_) => Err("must be within 1s and 24h".to_owned()),
        Err(_) => Err("no duration with a unit, such as 20s".to_owned()),
    }
}
