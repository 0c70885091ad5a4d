//! The operator's command line, run as a user would.

use std::ffi::OsStr;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::process::binary_path;

/// What `sluice` said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Standard output as JSON.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }

    /// Itself, if the exit code is this one.
    pub fn with_code(self, code: i32) -> anyhow::Result<Self> {
        ensure!(self.code == code, "sluice ended with {}, not {code}: {self:?}", self.code);
        Ok(self)
    }
}

/// Runs `sluice` with these flags, which say where and as whom, and these arguments.
pub async fn run(flags: &[&OsStr], args: &[&str]) -> anyhow::Result<Said> {
    let output = Command::new(binary_path("sluice")?)
        .args(flags)
        .args(args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    Ok(Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
