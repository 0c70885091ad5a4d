//! A PostgreSQL that goes away and comes back, and questions to it that no program of ours asks.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::database::Postgres;

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In order: connections are closed, everything is written.
    Fast,
    /// As if the power went.
    Immediate,
}

impl Postgres {
    /// Ends the server of one's own cluster.
    pub fn end(&self, ending: Ending) -> anyhow::Result<()> {
        let mode = match ending {
            Ending::Fast => "fast",
            Ending::Immediate => "immediate",
        };
        self.run("pg_ctl", &["-w", "-s", "-m", mode, "stop", "-D"], &self.socket_dir.join("data"))
    }

    /// Runs statements in a database and returns what they gave, a line for each row.
    pub fn sql(&self, database: &str, statements: &str) -> anyhow::Result<String> {
        let output = Command::new(self.bin.join("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"])
            .arg(&self.socket_dir)
            .args(["-d", database, "-c", statements])
            .output()
            .context("cannot run psql")?;
        ensure!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }
}
