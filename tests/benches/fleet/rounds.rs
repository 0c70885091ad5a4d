//! From `apply` to the last acknowledgement.

use std::time::Duration;

use anyhow::{Context as _, bail};
use harness::meter::{cpu_time, percentile, table, time};
use tokio::time::{Instant, timeout};

use super::{Bench, LIMIT, all_show, catalog};

struct Round {
    /// Until the apply call was answered.
    answered: Duration,
    /// Until each acknowledgement, sorted.
    acknowledged: Vec<Duration>,
    /// Until the control plane showed all of them.
    shown: Duration,
    /// Bytes of one update.
    bytes: usize,
}

/// Applies so many catalogs, each when every node shows the one before.
pub async fn run(bench: &mut Bench, count: u64) -> anyhow::Result<()> {
    let used = cpu_time(bench.pid()?)?;
    let mut rounds = Vec::new();
    for round in 1..=count {
        rounds.push(timeout(LIMIT, one(bench, round)).await.context("a round took too long")??);
    }
    let used = cpu_time(bench.pid()?)?.saturating_sub(used);
    show(bench, &rounds, used)
}

async fn one(bench: &mut Bench, round: u64) -> anyhow::Result<Round> {
    let document = catalog(bench.models, round);
    let since = Instant::now();
    let revision = bench.fleet.apply(&document).await?;
    let answered = since.elapsed();
    let (mut times, mut bytes) = (Vec::with_capacity(bench.nodes), 0);
    while times.len() < bench.nodes {
        let one = tokio::select! {
            one = bench.acknowledged.recv() => one.context("no nodes left")?,
            lost = bench.lost.recv() => match lost {
                Some(error) => return Err(error.context("a node was lost")),
                None => bail!("no nodes left"),
            },
        };
        if one.revision == revision {
            times.push(one.at.saturating_duration_since(since));
            bytes = one.bytes;
        }
    }
    all_show(&bench.fleet, bench.nodes, revision).await?;
    let shown = since.elapsed();
    times.sort_unstable();
    Ok(Round { answered, acknowledged: times, shown, bytes })
}

fn show(bench: &Bench, rounds: &[Round], used: Duration) -> anyhow::Result<()> {
    let row = |name: &str, of: &dyn Fn(&Round) -> Duration| {
        let mut times: Vec<Duration> = rounds.iter().map(of).collect();
        times.sort_unstable();
        let last = times.last().copied().unwrap_or_default();
        vec![name.to_owned(), time(percentile(&times, 0.5)), time(percentile(&times, 0.99)), time(last)]
    };
    let rows = [
        row("apply is answered", &|round| round.answered),
        row("half of the nodes have acknowledged", &|round| percentile(&round.acknowledged, 0.5)),
        row("99 % have", &|round| percentile(&round.acknowledged, 0.99)),
        row("the last has", &|round| round.acknowledged.last().copied().unwrap_or_default()),
        row("the node list shows all (polled every 50 ms)", &|round| round.shown),
    ];
    let bytes = rounds.last().map_or(0, |round| round.bytes);
    let cpu = used.as_secs_f64() * 1e3 / rounds.len().max(1) as f64;
    let title = format!(
        "Time from apply: {} nodes, {} rounds, updates of {bytes} bytes compressed; {cpu:.0} ms CPU of the control plane a \
         round, {:.0} µs for a stream",
        bench.nodes,
        rounds.len(),
        cpu * 1e3 / bench.nodes as f64,
    );
    table(&title, &["until", "p50", "p99", "longest"], &rows)
}
