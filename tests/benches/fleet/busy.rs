//! What the windows of a busy fleet cost: every node reports one each ten seconds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use harness::meter::{cpu_time, percentile, say, time};
use tokio::time::sleep;

use super::Bench;

/// How long the fleet is busy: three windows of each node.
const BUSY: Duration = Duration::from_secs(30);

/// Lets all nodes report, and says how that went.
pub async fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let used = cpu_time(bench.pid()?)?;
    bench.shared.is_serving.store(true, Ordering::Relaxed);
    tokio::select! {
        () = sleep(BUSY) => {}
        Some(error) = bench.lost.recv() => return Err(error.context("a node was lost")),
    }
    bench.shared.is_serving.store(false, Ordering::Relaxed);
    let used = cpu_time(bench.pid()?)?.saturating_sub(used).as_secs_f64();
    let mut times = Vec::new();
    while let Ok(time) = bench.reported.try_recv() {
        times.push(time);
    }
    times.sort_unstable();
    let wanted = bench.nodes * BUSY.as_secs() as usize / 10;
    ensure!(times.len() * 10 >= wanted * 9, "{} windows were counted of {wanted}", times.len());
    say(&format!(
        "busy: {} windows counted, {:.0} a second; answered in {} (p50), {} (p99), {} (longest); {:.0} % of a core, \
         {:.0} µs CPU for a window",
        times.len(),
        times.len() as f64 / BUSY.as_secs_f64(),
        time(percentile(&times, 0.5)),
        time(percentile(&times, 0.99)),
        time(times.last().copied().unwrap_or_default()),
        used / BUSY.as_secs_f64() * 100.0,
        used * 1e6 / times.len().max(1) as f64,
    ))
}
