//! What records cost: a thousand requests a second, with their records on the way home and with a control plane that takes
//! none, so that they wait on the node's disk.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::tasks::Tasks;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan};
use harness::meter::{cpu_time, table, time};
use tokio::time::Instant;

use super::load::{self, Measured, Pattern, Target};

/// Requests a second.
const RATE: f64 = 1000.0;
/// Every record is there so long after the last request.
const HOME: Duration = Duration::from_secs(60);

/// Measures over both databases.
pub async fn run(upstream: SocketAddr, seconds: Duration, tasks: &Tasks) -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let url = postgres.create(&format!("bench_{}", std::process::id()))?;
    let mut rows = Vec::new();
    for (database, database_url) in [("SQLite", None), ("PostgreSQL", Some(url))] {
        let fleet = super::start(upstream, Plan { database_url, ..Plan::default() }).await?;
        rows.extend(over(&fleet, database, seconds, tasks).await?);
        fleet.finish()?;
    }
    let header = [
        "records",
        "answers",
        "first byte p50",
        "p99",
        "CPU of the node",
        "of the control plane",
        "all home after",
    ];
    table(&format!("Records of {RATE} requests a second"), &header, &rows)
}

async fn over(
    fleet: &Fleet,
    name: &str,
    seconds: Duration,
    tasks: &Tasks,
) -> anyhow::Result<[Vec<String>; 2]> {
    let target = Target { address: fleet.data_address(0)?, key: format!("Bearer {}", fleet.key) };
    let plane = fleet.control_plane.pid().context("no control plane")?;
    let node = fleet.nodes.first().and_then(|node| node.pid()).context("no node")?;
    let pattern = Pattern { connections: 32, rate: Some(RATE), stream: false, time: seconds };
    let warm = load::run(&target, Pattern { time: Duration::from_millis(500), ..pattern }, tasks).await?;
    let sent = all_home(fleet, 0, &warm).await?;
    let before = (cpu_time(node)?, cpu_time(plane)?);
    let coming = load::run(&target, pattern, tasks).await?;
    let ended = Instant::now();
    let sent = all_home(fleet, sent, &coming).await?;
    let (late, used) = (ended.elapsed(), (cpu_time(node)? - before.0, cpu_time(plane)? - before.1));
    let first = row(&format!("into {name}"), &coming, used, late);

    fleet.control_plane.signal("STOP").await?;
    let before = (cpu_time(node)?, cpu_time(plane)?);
    let waiting = load::run(&target, pattern, tasks).await?;
    let used = (cpu_time(node)? - before.0, cpu_time(plane)? - before.1);
    fleet.control_plane.signal("CONT").await?;
    let ended = Instant::now();
    all_home(fleet, sent, &waiting).await?;
    Ok([first, row(&format!("waiting for {name}"), &waiting, used, ended.elapsed())])
}

fn row(name: &str, measured: &Measured, (node, plane): (Duration, Duration), late: Duration) -> Vec<String> {
    let each =
        |used: Duration| format!("{:.0} µs each", used.as_secs_f64() * 1e6 / measured.whole.len() as f64);
    let (p50, p99) = measured.first();
    vec![
        name.to_owned(),
        format!("{:.0}/s", measured.rate()),
        time(p50),
        time(p99),
        each(node),
        each(plane),
        format!("{:.1} s", late.as_secs_f64()),
    ]
}

/// Waits until the records of what was measured are kept, and returns how many there are by then.
async fn all_home(fleet: &Fleet, before: u64, measured: &Measured) -> anyhow::Result<u64> {
    let wanted = before + measured.whole.len() as u64;
    eventually("every record is kept", HOME, || async {
        let now = home(fleet).await?;
        ensure!(now >= wanted, "{now} of {wanted}");
        Ok(now)
    })
    .await
}

/// How many records the control plane has kept.
async fn home(fleet: &Fleet) -> anyhow::Result<u64> {
    let (_, metrics) = fleet.http("/metrics").await?;
    let line =
        metrics.lines().find(|line| line.starts_with("sluice_records_uploaded_total{result=\"kept\"}"));
    let number = line.and_then(|line| line.rsplit(' ').next()).unwrap_or("0");
    Ok(number.parse::<f64>()? as u64)
}
