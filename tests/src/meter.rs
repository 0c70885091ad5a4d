//! What benchmarks read from the system and how they show it: CPU time and memory of a process,
//! percentiles, a table.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Context as _;

/// Kernel ticks a second in `/proc/PID/stat`; 100 on every Linux.
const TICKS: f64 = 100.0;

/// CPU time, user and system, that a process has used so far.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("/proc/PID/stat")?;
    // The name in parentheses may hold spaces; what follows it does not.
    let (_, rest) = text.rsplit_once(") ").context("/proc/PID/stat")?;
    let ticks = |field: usize| rest.split(' ').nth(field).and_then(|text| text.parse::<f64>().ok());
    let (user, system) = (ticks(11).context("no utime")?, ticks(12).context("no stime")?);
    Ok(Duration::from_secs_f64((user + system) / TICKS))
}

/// A line that says how quiet the machine is: other work on it shows in every latency.
pub fn load_average() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    let minute = text.split(' ').next().unwrap_or_default();
    Ok(format!("load average of the last minute before the start: {minute}"))
}

/// The value below which this share of the samples lies; zero when there are none.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

/// A duration in microseconds or milliseconds.
pub fn time(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 0.01 => format!("{:.0} µs", seconds * 1e6),
        seconds => format!("{:.1} ms", seconds * 1e3),
    }
}

/// Writes a table with aligned columns.
pub fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.chars().count())).max().unwrap_or_default()
    };
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().enumerate().map(|(at, cell)| {
            let pad = " ".repeat(width(at) - cell.chars().count());
            if at == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    let mut text = format!("\n{title}\n{}\n", line(head.to_vec()));
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
        text.push('\n');
    }
    say(&text)
}

/// Writes a line.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("cannot write")
}
