//! What Linux says of a process, and lets it have.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).context("/proc/PID/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS")?;
    Ok(kilobytes * 1024)
}

/// How many files this process may have open, after it has asked for `wanted`. What it starts inherits that.
pub fn allow_files(wanted: u64) -> anyhow::Result<u64> {
    let pid = std::process::id();
    let limit = || -> anyhow::Result<(u64, u64)> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).context("no limit")?;
        let mut fields = line.split_whitespace().map(|text| text.parse().unwrap_or(u64::MAX));
        Ok((fields.next().context("no soft limit")?, fields.next().context("no hard limit")?))
    };
    let (soft, hard) = limit()?;
    if soft < wanted {
        let ask = wanted.min(hard);
        run("prlimit", &["--pid", &pid.to_string(), &format!("--nofile={ask}:{hard}")])?;
    }
    Ok(limit()?.0)
}

/// Runs a small program that must succeed.
pub fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(args).output().with_context(|| format!("no {program}"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
