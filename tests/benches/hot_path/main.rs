//! What a node costs: one real `gateway-node` pinned to core 0; upstream, load generator and control
//! plane on core 1. Every pattern is measured against the upstream called directly and through the
//! node, in turn, so that both see the same machine.
//!
//! By hand, on a quiet machine with two cores or more:
//!
//! ```text
//! cargo build --release --workspace --bins && cargo run --release --bin bench-hot-path
//! ```
//! `-- --seconds 10 --streams 4000` after it sets the length of a measurement and the open streams. `-- --records` measures
//! what records of a thousand requests a second cost callers, and their way into SQLite and PostgreSQL.

mod load;
mod records;
mod upstream;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use common::tasks::Tasks;
use harness::catalog::Document;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::meter::{self, cpu_time, say, table, time};
use harness::system::{self, allow_files, resident};
use http_body_util::BodyExt as _;
use load::{Caller, Measured, Pattern, Target};

const NODE_CORE: usize = 0;
const REST_CORE: usize = 1;

/// Benchmark of a node's hot path.
#[derive(clap::Parser)]
struct Args {
    /// Length of each measurement.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Streams to hold open for the memory figure.
    #[arg(long, default_value_t = 2000)]
    streams: usize,
    /// Only this pattern, by its number.
    #[arg(long)]
    only: Option<usize>,
    /// Only what records of requests cost.
    #[arg(long)]
    records: bool,
}

struct Case {
    name: &'static str,
    connections: usize,
    rate: Option<f64>,
    stream: bool,
}

const CASES: [Case; 5] = [
    Case { name: "whole, 1 caller", connections: 1, rate: None, stream: false },
    Case { name: "whole, 300/s", connections: 16, rate: Some(300.0), stream: false },
    Case { name: "whole, 64 callers", connections: 64, rate: None, stream: false },
    Case { name: "stream, 50/s", connections: 16, rate: Some(50.0), stream: true },
    Case { name: "stream, 64 callers", connections: 64, rate: None, stream: true },
];

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(std::thread::available_parallelism()?.get() >= 2, "two cores are needed");
    // One thread: it has one core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    say(&meter::load_average()?)?;
    let tasks = Tasks::new();
    let files = allow_files(2 * args.streams as u64 + 500)?;
    let me = std::process::id();
    pin(me, REST_CORE)?;
    let upstream = upstream::start(&tasks).await?;
    let seconds = Duration::from_secs(args.seconds.clamp(1, 60));
    if args.records {
        records::run(upstream, seconds, &tasks).await?;
        tasks.stop(Duration::from_secs(2)).await;
        return Ok(());
    }
    let fleet = start(upstream, Plan::default()).await?;
    let node = fleet.nodes.first().and_then(|node| node.pid()).context("no node")?;
    let direct = Target { address: upstream, key: "Bearer none".to_owned() };
    let through = Target { address: fleet.data_address(0)?, key: format!("Bearer {}", fleet.key) };
    say(&format!("node: process {node} on core {NODE_CORE}; everything else on core {REST_CORE}"))?;

    let mut speed = Vec::new();
    let mut latency = Vec::new();
    for (_, case) in (1..).zip(&CASES).filter(|(at, _)| args.only.is_none_or(|only| only == *at)) {
        let pattern =
            Pattern { connections: case.connections, rate: case.rate, stream: case.stream, time: seconds };
        let warm = Pattern { time: Duration::from_millis(500), ..pattern };
        load::run(&through, warm, &tasks).await?;
        let before = load::run(&direct, pattern, &tasks).await?;
        let used = cpu_time(node)?;
        let measured = load::run(&through, pattern, &tasks).await?;
        let used = cpu_time(node)?.saturating_sub(used);
        speed.push(speed_row(case, &before, &measured, used));
        latency.extend(latency_rows(case, &before, &measured));
    }
    table("Requests", &["pattern", "direct", "through", "node core busy", "CPU of the node"], &speed)?;
    table("Latency", &["pattern", "direct p50", "p99", "through p50", "p99", "added p50", "p99"], &latency)?;
    if args.only.is_none() {
        let streams = args.streams.min((files as usize).saturating_sub(500) / 2);
        memory(node, &through, streams, &tasks).await?;
    }
    tasks.stop(Duration::from_secs(2)).await;
    fleet.finish()
}

/// A control plane beside this process, and a node on a core of its own.
async fn start(upstream: SocketAddr, plan: Plan) -> anyhow::Result<Fleet> {
    let me = std::process::id();
    let mut fleet = Fleet::start_as(plan).await?;
    // The node inherits the core, so that its runtime has one worker.
    pin(me, NODE_CORE)?;
    fleet.add_node().await?;
    pin(me, REST_CORE)?;
    let document = Document::new()
        .channel("upstream", &format!("http://{upstream}/v1"), "")
        .model("bench", &["upstream"]);
    let revision = fleet.apply(&document.model("idle", &["upstream"])).await?;
    fleet.in_sync(revision).await?;
    Ok(fleet)
}

fn speed_row(case: &Case, direct: &Measured, through: &Measured, used: Duration) -> Vec<String> {
    let answers = through.whole.len().max(1) as f64;
    vec![
        case.name.to_owned(),
        format!("{:.0}/s", direct.rate()),
        format!("{:.0}/s", through.rate()),
        format!("{:.0} %", 100.0 * used.as_secs_f64() / through.time.as_secs_f64()),
        format!("{:.1} µs each", used.as_secs_f64() * 1e6 / answers),
    ]
}

fn latency_rows(case: &Case, direct: &Measured, through: &Measured) -> Vec<Vec<String>> {
    let row = |name: String, direct: (Duration, Duration), through: (Duration, Duration)| {
        vec![
            name,
            time(direct.0),
            time(direct.1),
            time(through.0),
            time(through.1),
            added(through.0, direct.0),
            added(through.1, direct.1),
        ]
    };
    let mut rows = Vec::new();
    if case.stream {
        rows.push(row(format!("{}, first byte", case.name), direct.first(), through.first()));
    }
    rows.push(row(format!("{}, to the end", case.name), direct.whole(), through.whole()));
    rows
}

/// Memory of a node per stream that is open and idle.
async fn memory(node: u32, target: &Target, streams: usize, tasks: &Tasks) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let (before, files) = (resident(node)?, open_files(node)?);
    let mut open = Vec::with_capacity(streams);
    for part in 1..=4 {
        while open.len() < streams * part / 4 {
            let mut caller = Caller::connect(target, tasks).await?;
            let mut answer = caller.ask(load::body("idle", true)).await?;
            // The first piece has come: the stream is committed.
            answer.frame().await.context("no first piece")??;
            open.push((caller, answer));
        }
        let now = resident(node)?;
        let more = now.saturating_sub(before);
        rows.push(vec![
            open.len().to_string(),
            format!("{:.1} MB", now as f64 / 1e6),
            format!("{:.1} kB", more as f64 / 1e3 / open.len().max(1) as f64),
            (open_files(node)?.saturating_sub(files)).to_string(),
        ]);
    }
    let title = format!("Memory of the node; {:.1} MB before the streams", before as f64 / 1e6);
    table(&title, &["open idle streams", "resident", "per stream", "more open files"], &rows)?;
    drop(open);
    eventually("the node lets go of streams that nobody reads", SOON, || async {
        let left = open_files(node)?;
        ensure!(left < files + 50, "{left} open files, {files} before");
        Ok(())
    })
    .await
}

/// Open files of a process.
fn open_files(pid: u32) -> anyhow::Result<usize> {
    Ok(Path::new(&format!("/proc/{pid}/fd")).read_dir()?.count())
}

/// Puts a process, all its threads and what it starts from now on, on one core.
fn pin(pid: u32, core: usize) -> anyhow::Result<()> {
    system::run("taskset", &["-a", "-c", "-p", &core.to_string(), &pid.to_string()])
}

/// How much longer `through` took, with its sign.
fn added(through: Duration, direct: Duration) -> String {
    match through.checked_sub(direct) {
        Some(more) => format!("+{}", time(more)),
        None => format!("-{}", time(direct - through)),
    }
}
