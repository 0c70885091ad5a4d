//! What streams cost a node in memory: nothing of them is kept, however long they are and however slowly read.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::tasks::Tasks;
use harness::catalog::Document;
use harness::fleet::{Fleet, Plan};
use harness::flood::{self, Flood, Pace};

const STREAMS: usize = 200;
const STREAM_BYTES: usize = 5_000_000;
/// Of a node built for tests, whose frames on the stack and in tasks are larger than those of a release.
const PER_STREAM_MAX: u64 = 128 * 1024;
/// Sockets of four ends and the node, and still no more than a part of the stream.
const AHEAD_MAX: u64 = STREAM_BYTES as u64 / 4;

#[tokio::test(flavor = "multi_thread")]
async fn br_128_two_hundred_streams_of_five_megabytes_to_slow_callers_take_a_constant_memory()
-> anyhow::Result<()> {
    let tasks = Tasks::new();
    let flood = Flood::start(&tasks, STREAM_BYTES, 1000).await?;
    let fleet = Fleet::start_as(Plan { nodes: 1, ..Plan::default() }).await?;
    let document = Document::new().channel("flood", &format!("http://{}/v1", flood.address), "");
    let revision = fleet.apply(&document.model("m", &["flood"])).await?;
    fleet.in_sync(revision).await?;
    let pid = fleet.nodes.first().and_then(|node| node.pid()).context("no node")?;
    let node = (pid, fleet.data_address(0)?);
    let pace = Pace { bytes: 64 * 1024, pause: Duration::from_millis(1) };
    let memory = flood::measure(&flood, node, &fleet.key, "m", STREAMS, pace).await?;
    let per_stream = memory.per_stream(memory.peak, STREAMS);
    ensure!(per_stream < PER_STREAM_MAX, "{per_stream} bytes for each stream: {memory:?}");
    ensure!(memory.ahead < AHEAD_MAX, "the upstream writes although nobody reads: {memory:?}");
    tasks.stop(Duration::from_secs(2)).await;
    fleet.finish()
}
