//! Both programs end in bounded time, whoever holds a connection open, and finish what they can.

use std::time::Duration;

use harness::catalog::chain_of;
use harness::fleet::{Fleet, Plan};
use harness::provider::{Provider, Script};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// What FR-017 allows.
const BOUND: Duration = Duration::from_secs(15);

async fn fleet_with_grace(provider: &Provider, grace: &str) -> anyhow::Result<Fleet> {
    let node_args = vec!["--shutdown-grace".to_owned(), grace.to_owned()];
    let fleet = Fleet::start_as(Plan { nodes: 1, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&chain_of("m", &[provider])).await?;
    fleet.in_sync(revision).await?;
    Ok(fleet)
}

#[tokio::test]
async fn fr_017_a_node_ends_within_15_s_with_open_streams_and_silent_clients() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = fleet_with_grace(&provider, "2s").await?;
    provider.set(Script::Stall).await;
    let caller = fleet.caller(0)?;
    let stalled = tokio::task::JoinSet::from_iter([async move { caller.chat("m", true).await }]);
    let _silent = TcpStream::connect(fleet.data_address(0)?).await?;
    let _silent_too = TcpStream::connect(fleet.nodes[0].address("ops")?).await?;
    let mut half = TcpStream::connect(fleet.data_address(0)?).await?;
    half.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-le").await?;
    harness::eventually::eventually("the stream is under way", BOUND, || async {
        anyhow::ensure!(provider.call_count() == 1);
        Ok(())
    })
    .await?;
    let since = Instant::now();
    let status = fleet.nodes[0].terminate(BOUND).await?;
    assert!(status.success(), "{status}");
    assert!(since.elapsed() >= Duration::from_secs(1), "the stream got no grace");
    drop(stalled);
    fleet.finish()
}

#[tokio::test]
async fn a_request_on_its_way_is_finished_and_a_new_one_finds_nobody() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = fleet_with_grace(&provider, "10s").await?;
    provider.set(Script::Slow { deltas: 20, every: Duration::from_millis(75) }).await;
    let (one, two) = (fleet.caller(0)?, fleet.caller(0)?);
    let late = fleet.caller(0)?;
    let requests = async { tokio::join!(one.chat("m", true), two.chat("m", false)) };
    let end = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        fleet.nodes[0].signal("TERM").await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        anyhow::Ok(late.chat("m", false).await)
    };
    let ((one, two), late) = tokio::join!(requests, end);
    let (one, two) = (one?, two?);
    assert_eq!((one.status, one.broke.clone()), (200, None));
    assert_eq!((two.status, two.broke.clone()), (200, None));
    assert!(one.text().ends_with("data: [DONE]\n\n"), "{}", one.text());
    match late? {
        Err(_) => {}
        Ok(answer) => assert_eq!((answer.status, answer.code().as_str()), (503, "shutting_down")),
    }
    assert!(fleet.nodes[0].ended(BOUND).await?.success());
    fleet.finish()
}

#[tokio::test]
async fn a_leaving_node_serves_on_until_who_asks_for_its_readiness_has_noticed() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let node_args = vec!["--drain-delay".to_owned(), "3s".to_owned()];
    let mut fleet = Fleet::start_as(Plan { nodes: 1, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.in_sync(revision).await?;
    assert_eq!(fleet.ops(0, "/readyz").await?.0, 200);
    let since = Instant::now();
    fleet.nodes[0].signal("TERM").await?;
    harness::eventually::eventually("it says that it leaves", BOUND, || async {
        let (status, text) = fleet.ops(0, "/readyz").await?;
        anyhow::ensure!(status == 503 && text.contains("draining"), "{status} {text}");
        Ok(())
    })
    .await?;
    // A caller that has not heard of it yet, over a connection of its own.
    let late = fleet.caller(0)?.chat("m", true).await?;
    assert_eq!((late.status, late.broke.clone(), late.header("connection")), (200, None, "close"));
    assert!(fleet.nodes[0].ended(BOUND).await?.success());
    assert!(since.elapsed() >= Duration::from_secs(3), "it left after {:?}", since.elapsed());

    // Nobody asks this one, and nobody is waited for.
    fleet.nodes[0].start_again().await?;
    let since = Instant::now();
    assert!(fleet.nodes[0].terminate(BOUND).await?.success());
    assert!(since.elapsed() < Duration::from_secs(3), "it left after {:?}", since.elapsed());
    fleet.finish()
}

#[tokio::test]
async fn fr_017_a_control_plane_ends_within_15_s_with_nodes_watchers_and_silent_clients() -> anyhow::Result<()>
{
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(2, &chain_of("m", &[&provider])).await?;
    let mut nodes = common::pb::admin::node_service_client::NodeServiceClient::new(fleet.admin()?);
    let _watch = nodes.watch_nodes(common::pb::admin::WatchNodesRequest::default()).await?;
    let mut silent = vec![];
    for listener in ["admin", "fleet", "http"] {
        silent.push(TcpStream::connect(fleet.control_plane.address(listener)?).await?);
    }
    let status = fleet.control_plane.terminate(BOUND).await?;
    assert!(status.success(), "{status}");
    assert_eq!(fleet.caller(0)?.chat("m", true).await?.status, 200);
    fleet.finish()
}
