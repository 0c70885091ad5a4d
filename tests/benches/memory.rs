//! What streams cost a node in memory: thousands at once, each of some megabytes, to callers that read slowly.
//!
//! By hand:
//!
//! ```text
//! cargo build --release --workspace --bins && cargo run --release --bin bench-memory
//! ```
//! `-- --streams 2000 --megabytes 5` after it sets how many and how long.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use common::tasks::Tasks;
use harness::catalog::Document;
use harness::fleet::{Fleet, Plan};
use harness::flood::{self, Flood, Pace};
use harness::meter::{say, table};
use harness::system::allow_files;
use tokio::time::Instant;

/// Benchmark of a node's memory.
#[derive(clap::Parser)]
struct Args {
    /// Streams at a time.
    #[arg(long, default_value_t = 2000)]
    streams: usize,
    /// Length of each.
    #[arg(long, default_value_t = 5)]
    megabytes: usize,
    /// Bytes of an event.
    #[arg(long, default_value_t = 1000)]
    event: usize,
    /// Bytes that a caller reads at a time, fifty times a second at most.
    #[arg(long, default_value_t = 4096)]
    read: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(&args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let wanted = 2 * args.streams as u64 + 500;
    ensure!(allow_files(wanted)? >= wanted, "{wanted} open files are needed");
    let tasks = Tasks::new();
    let flood = Flood::start(&tasks, args.megabytes * 1_000_000, args.event).await?;
    let fleet = Fleet::start_as(Plan { nodes: 1, ..Plan::default() }).await?;
    let document = Document::new().channel("flood", &format!("http://{}/v1", flood.address), "");
    let revision = fleet.apply(&document.model("m", &["flood"])).await?;
    fleet.in_sync(revision).await?;
    let pid = fleet.nodes.first().and_then(|node| node.pid()).context("no node")?;
    let pace = Pace { bytes: args.read, pause: Duration::from_millis(20) };
    let node = (pid, fleet.data_address(0)?);
    let mut rows = Vec::new();
    // The second time shows whether what the first one took is used again.
    for round in 1..=2 {
        let since = Instant::now();
        let memory = flood::measure(&flood, node, &fleet.key, "m", args.streams, pace).await?;
        let stream = |bytes| format!("{:.1} KiB", memory.per_stream(bytes, args.streams) as f64 / 1024.0);
        rows.push(vec![
            round.to_string(),
            format!("{:.1} MB", memory.idle as f64 / 1e6),
            stream(memory.open),
            stream(memory.peak),
            format!("{:.0} KiB", memory.ahead as f64 / 1024.0),
            format!("{:.0} s", since.elapsed().as_secs_f64()),
        ]);
    }
    let title = format!("{} streams of {} MB, all at once, to slow callers", args.streams, args.megabytes);
    let head = ["round", "before", "open, each", "flowing, each", "written ahead, each", "took"];
    table(&title, &head, &rows)?;
    say("memory is the resident set of the node's process")?;
    tasks.stop(Duration::from_secs(2)).await;
    fleet.finish()
}
