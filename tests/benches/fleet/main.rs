//! What a fleet costs its control plane: 1,000 simulated nodes in this process, each with a connection
//! and a stream of its own, on one real `control-plane` process. Measures the time from `apply` to the
//! last acknowledgement, and the memory of a stream.
//!
//! By hand, on a quiet machine:
//!
//! ```text
//! cargo build --release --workspace --bins && cargo run --release --bin bench-fleet
//! ```
//! `-- --nodes 2000 --rounds 50 --models 200` after it sets the size of fleet, series and catalog.

mod node;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Parser as _;
use common::pb::admin::NodeState;
use common::tasks::Tasks;
use harness::catalog::Document;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan};
use harness::meter::{self, cpu_time, percentile, say, table, time};
use harness::system::{allow_files, resident};
use node::{Acknowledged, Shared};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// A round, or the admission of all nodes, that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// Benchmark of a control plane with many nodes.
#[derive(clap::Parser)]
struct Args {
    /// Simulated nodes.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How many catalogs are applied.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Models in the catalog, each with three routes.
    #[arg(long, default_value_t = 50)]
    models: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(&args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    say(&meter::load_average()?)?;
    let files = allow_files(args.nodes as u64 + 500)?;
    ensure!(files as usize > args.nodes + 200, "only {files} open files are allowed");
    let fleet = Fleet::start_as(Plan::default()).await?;
    let plane = fleet.control_plane.pid().context("no control plane")?;
    let tasks = Tasks::new();
    fleet.apply(&catalog(args.models, 0)).await?;
    let before = resident(plane)?;

    let (tx, mut acknowledged) = mpsc::unbounded_channel();
    let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
    let shared = Shared {
        url: fleet.fleet_url().to_owned(),
        token: harness::fleet::with_token(token.trim())?,
        acknowledged: tx,
        welcomed: Arc::new(AtomicUsize::new(0)),
        refused: Arc::new(AtomicUsize::new(0)),
    };
    let (lost_tx, mut lost) = mpsc::channel(1);
    let since = Instant::now();
    for index in 0..args.nodes {
        let (shared, lost) = (shared.clone(), lost_tx.clone());
        tasks.spawn("node", |stop| async move {
            if let Some(Err(error)) = stop.run_until_cancelled(node::run(index, shared)).await {
                let _ = lost.try_send(error);
            }
        });
        if index % 100 == 99 {
            sleep(Duration::from_millis(100)).await;
        }
    }
    tokio::select! {
        all = all_show(&fleet, args.nodes, 1) => all?,
        Some(error) = lost.recv() => return Err(error.context("a node was lost")),
    }
    let took = since.elapsed();
    while acknowledged.try_recv().is_ok() {}
    let after = resident(plane)?;
    say(&format!(
        "control plane: process {plane}; {} nodes in sync after {:.1} s ({} refused and come again: 200 streams/s are \
         let in)",
        shared.welcomed.load(Ordering::Relaxed),
        took.as_secs_f64(),
        shared.refused.load(Ordering::Relaxed),
    ))?;

    let used = cpu_time(plane)?;
    let mut rounds = Vec::new();
    for round in 1..=args.rounds.clamp(1, 1000) {
        let one = one_round(&fleet, args, round, &mut acknowledged);
        tokio::select! {
            one = timeout(LIMIT, one) => rounds.push(one.context("a round took too long")??),
            Some(error) = lost.recv() => return Err(error.context("a node was lost")),
        }
    }
    let used = cpu_time(plane)?.saturating_sub(used);
    let end = resident(plane)?;
    tasks.stop(Duration::from_secs(5)).await;
    show(args, &rounds, used)?;
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let per_stream =
        |now: u64| format!("{:.1} kB", now.saturating_sub(before) as f64 / 1e3 / args.nodes as f64);
    table(
        "Memory of the control plane",
        &["when", "resident", "per stream"],
        &[
            vec!["before the nodes".to_owned(), megabytes(before), String::new()],
            vec![format!("{} nodes in sync", args.nodes), megabytes(after), per_stream(after)],
            vec![format!("after {} catalogs", rounds.len()), megabytes(end), per_stream(end)],
        ],
    )?;
    fleet.finish()
}

/// A catalog whose prices differ from round to round, so that each is a revision of its own.
fn catalog(models: usize, round: u64) -> Document {
    let channels = ["one", "two", "three"];
    let document = channels.iter().fold(Document::new(), |document, channel| {
        // A header that changes makes the snapshot change, too.
        let lines = format!("headers = {{ \"x-round\" = \"{round}\" }}");
        document.channel(channel, &format!("https://{channel}.example/v1"), &lines)
    });
    (0..models).fold(document, |document, model| document.model(&format!("model-{model}"), &channels))
}

/// Waits until the control plane shows every node in sync on this revision.
async fn all_show(fleet: &Fleet, count: usize, revision: u64) -> anyhow::Result<()> {
    eventually(&format!("{count} nodes show revision {revision}"), LIMIT, || async {
        let nodes = fleet.list_nodes().await?;
        let there = nodes
            .iter()
            .filter(|node| node.applied_revision == revision && node.state() == NodeState::InSync)
            .count();
        ensure!(there == count, "{there} do");
        Ok(())
    })
    .await
}

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

async fn one_round(
    fleet: &Fleet,
    args: &Args,
    round: u64,
    acknowledged: &mut mpsc::UnboundedReceiver<Acknowledged>,
) -> anyhow::Result<Round> {
    let document = catalog(args.models, round);
    let since = Instant::now();
    let revision = fleet.apply(&document).await?;
    let answered = since.elapsed();
    let (mut times, mut bytes) = (Vec::with_capacity(args.nodes), 0);
    while times.len() < args.nodes {
        let Some(one) = acknowledged.recv().await else { bail!("no nodes left") };
        if one.revision == revision {
            times.push(one.at.saturating_duration_since(since));
            bytes = one.bytes;
        }
    }
    all_show(fleet, args.nodes, revision).await?;
    let shown = since.elapsed();
    times.sort_unstable();
    Ok(Round { answered, acknowledged: times, shown, bytes })
}

fn show(args: &Args, rounds: &[Round], used: Duration) -> anyhow::Result<()> {
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
    let title = format!(
        "Time from apply: {} nodes, {} rounds, {} models, updates of {bytes} bytes; {:.0} ms CPU of the control plane \
         a round",
        args.nodes,
        rounds.len(),
        args.models,
        used.as_secs_f64() * 1e3 / rounds.len().max(1) as f64,
    );
    table(&title, &["until", "p50", "p99", "longest"], &rows)
}
