//! The whole fleet at once: the control plane is killed and started again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use harness::eventually::eventually;
use harness::meter::say;
use tokio::time::Instant;

use super::{Bench, LIMIT};

/// All nodes of a fleet of up to 5,000 are in sync again by then.
const BACK: Duration = Duration::from_secs(35);

/// Kills the control plane, starts it again, and says how long all nodes take to be in sync on `revision`.
pub async fn run(bench: &mut Bench, revision: u64) -> anyhow::Result<()> {
    while bench.acknowledged.try_recv().is_ok() {}
    bench.shared.refused.store(0, Ordering::Relaxed);
    bench.shared.confirmed.store(0, Ordering::Relaxed);
    let since = Instant::now();
    bench.fleet.control_plane.kill().await?;
    bench.fleet.control_plane.start_again().await?;
    let ready = since.elapsed();
    // The list alone says what is kept of nodes that were there before.
    let confirmed = bench.shared.confirmed.clone();
    eventually("each node is told that it has what it should", LIMIT, || async {
        let told = confirmed.load(Ordering::Relaxed);
        ensure!(told >= bench.nodes, "{told} are");
        Ok(())
    })
    .await?;
    bench.wait_for_all(revision).await?;
    let back = since.elapsed();
    let mut resent = 0;
    while bench.acknowledged.try_recv().is_ok() {
        resent += 1;
    }
    say(&format!(
        "restart: ready after {:.1} s, all {} nodes in sync after {:.1} s, {resent} snapshots sent again, {} times told to come \
         later",
        ready.as_secs_f64(),
        bench.nodes,
        back.as_secs_f64(),
        bench.shared.refused.load(Ordering::Relaxed),
    ))?;
    ensure!(resent == 0, "{resent} nodes were sent what they had");
    ensure!(bench.nodes > 5000 || back <= BACK, "{:.1} s is too long", back.as_secs_f64());
    Ok(())
}
