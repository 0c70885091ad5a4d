//! What a fleet costs its control plane: simulated nodes in this process, each with a connection and a stream of its own, on
//! one real `control-plane` process. Measures the time from `apply` to the last acknowledgement, CPU and memory of a stream,
//! what the reports of a busy fleet cost, and how long all take to come back after `kill -9`.
//!
//! By hand, on a quiet machine:
//!
//! ```text
//! cargo build --release --workspace --bins && cargo run --release --bin bench-fleet -- --nodes 5000
//! ```
//! `--rounds 50 --raw-kib 256` sets how many catalogs are applied, and their size.

mod busy;
mod node;
mod restart;
mod rounds;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use common::pb::admin::NodeState;
use common::tasks::Tasks;
use harness::catalog::Document;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan};
use harness::meter::{self, cpu_time, say, table};
use harness::system::{allow_files, resident};
use node::{Acknowledged, Node, Shared};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// A round, or the admission of all nodes, that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);
/// How long a fleet that has nothing to do is watched.
const QUIET: Duration = Duration::from_secs(30);

/// Benchmark of a control plane with many nodes.
#[derive(clap::Parser)]
struct Args {
    /// Simulated nodes.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How many catalogs are applied.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Size of a catalog.
    #[arg(long, default_value_t = 64)]
    raw_kib: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(&args))
}

/// The fleet as the phases of the benchmark see it.
struct Bench {
    fleet: Fleet,
    nodes: usize,
    models: usize,
    shared: Shared,
    acknowledged: mpsc::UnboundedReceiver<Acknowledged>,
    reported: mpsc::UnboundedReceiver<Duration>,
    lost: mpsc::Receiver<anyhow::Error>,
}

async fn run(args: &Args) -> anyhow::Result<()> {
    say(&meter::load_average()?)?;
    let files = allow_files(args.nodes as u64 + 500)?;
    ensure!(files as usize > args.nodes + 200, "only {files} open files are allowed");
    let fleet = Fleet::start_as(Plan::default()).await?;
    let models = models_for(args.raw_kib * 1024);
    let first = catalog(models, 0);
    fleet.apply(&first).await?;
    let before = resident(pid(&fleet)?)?;
    let tasks = Tasks::new();
    let since = Instant::now();
    let mut bench = start(fleet, args.nodes, models, &tasks).await?;
    bench.wait_for_all(1).await?;
    while bench.acknowledged.try_recv().is_ok() {}
    let joined = resident(bench.pid()?)?;
    say(&format!(
        "{} nodes in sync after {:.1} s ({} times told to come later: 200 streams/s are let in); catalogs of {} bytes, {models} models",
        bench.nodes,
        since.elapsed().as_secs_f64(),
        bench.shared.refused.swap(0, Ordering::Relaxed),
        first.text().len(),
    ))?;
    rounds::run(&mut bench, args.rounds).await?;
    let applied = resident(bench.pid()?)?;
    quiet(&mut bench).await?;
    busy::run(&mut bench).await?;
    let reported = resident(bench.pid()?)?;
    restart::run(&mut bench, 1 + args.rounds).await?;
    let again = resident(bench.pid()?)?;
    tasks.stop(Duration::from_secs(5)).await;
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let per_stream =
        |now: u64| format!("{:.1} kB", now.saturating_sub(before) as f64 / 1e3 / args.nodes as f64);
    let row = |when: &str, bytes| vec![when.to_owned(), megabytes(bytes), per_stream(bytes)];
    table(
        "Memory of the control plane",
        &["when", "resident", "per stream"],
        &[
            vec!["before the nodes".to_owned(), megabytes(before), String::new()],
            row("all nodes in sync", joined),
            row("after the catalogs", applied),
            row("after the reports", reported),
            row("after the restart", again),
        ],
    )?;
    bench.fleet.finish()
}

async fn start(fleet: Fleet, nodes: usize, models: usize, tasks: &Tasks) -> anyhow::Result<Bench> {
    let (acknowledged_tx, acknowledged) = mpsc::unbounded_channel();
    let (reported_tx, reported) = mpsc::unbounded_channel();
    let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
    let shared = Shared {
        url: fleet.fleet_url().to_owned(),
        token: harness::fleet::with_token(token.trim())?,
        acknowledged: acknowledged_tx,
        reported: reported_tx,
        is_serving: Arc::new(AtomicBool::new(false)),
        confirmed: Arc::new(AtomicUsize::new(0)),
        refused: Arc::new(AtomicUsize::new(0)),
    };
    let (lost_tx, lost) = mpsc::channel(1);
    for index in 0..nodes {
        let (node, lost) = (Node::new(index, shared.clone()), lost_tx.clone());
        tasks.spawn("node", |stop| async move {
            if let Some(Err(error)) = stop.run_until_cancelled(node.run()).await {
                let _ = lost.try_send(error);
            }
        });
        if index % 100 == 99 {
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(Bench { fleet, nodes, models, shared, acknowledged, reported, lost })
}

impl Bench {
    fn pid(&self) -> anyhow::Result<u32> {
        pid(&self.fleet)
    }

    /// Waits until the control plane shows every node in sync on this revision.
    async fn wait_for_all(&mut self, revision: u64) -> anyhow::Result<()> {
        tokio::select! {
            all = all_show(&self.fleet, self.nodes, revision) => all,
            Some(error) = self.lost.recv() => Err(error.context("a node was lost")),
        }
    }
}

fn pid(fleet: &Fleet) -> anyhow::Result<u32> {
    fleet.control_plane.pid().context("no control plane")
}

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

/// A catalog whose snapshot differs from round to round.
fn catalog(models: usize, round: u64) -> Document {
    let channels = ["one", "two", "three"];
    let document = channels.iter().fold(Document::new(), |document, channel| {
        let lines = format!("headers = {{ \"x-round\" = \"{round}\" }}");
        document.channel(channel, &format!("https://{channel}.example/v1"), &lines)
    });
    (0..models).fold(document, |document, model| document.model(&format!("model-{model}"), &channels))
}

/// How many models fill a catalog of so many bytes.
fn models_for(bytes: usize) -> usize {
    let of = |models| catalog(models, 0).text().len();
    let (none, per_model) = (of(0), (of(1000) - of(0)) / 1000);
    bytes.saturating_sub(none).div_ceil(per_model).max(3)
}

/// What streams cost on which nothing but heartbeats passes.
async fn quiet(bench: &mut Bench) -> anyhow::Result<()> {
    let used = cpu_time(bench.pid()?)?;
    sleep(QUIET).await;
    let used = cpu_time(bench.pid()?)?.saturating_sub(used);
    let share = used.as_secs_f64() / QUIET.as_secs_f64();
    say(&format!(
        "quiet: {:.1} % of a core for heartbeats, {:.1} µs CPU a second for a stream",
        share * 100.0,
        share * 1e6 / bench.nodes as f64
    ))
}
