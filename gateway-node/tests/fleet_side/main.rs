//! The node's side of the fleet, against a control plane that does what each test says: real sockets,
//! real files, one process where possible.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod node;
mod plane;
mod tls;

use std::time::Duration;

use common::pb::fleet as pb;
use node::{Node, Process, eventually};
use pb::sync_request::Message as Up;
use pb::sync_response::Message as Down;
use plane::{Plane, snapshot, update};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

fn faulty(revision: u64) -> pb::Snapshot {
    let mut snapshot = snapshot(revision);
    snapshot.channels[0].base_url = "no address".into();
    snapshot
}

fn revision(target: Option<pb::Target>) -> Option<u64> {
    target.and_then(|target| target.catalog).map(|part| part.version)
}

#[tokio::test]
async fn the_first_config_makes_a_node_ready() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, hello) = plane.welcomed().await;
    assert_eq!(node.ops("/healthz").await.0, 200);
    let (status, body) = node.ops("/readyz").await;
    assert_eq!((status, body.contains("no_config")), (503, true), "{body}");
    assert_eq!(node.call("m").await, 503, "no config is no 404 and no 401");
    assert_eq!(hello.data_address, node.addresses.data.to_string());
    assert_eq!((hello.schema, hello.applied.unwrap()), (1, pb::Target::default()));

    let ack = stream.update(update(1, &snapshot(1))).await;
    assert_eq!((ack.result(), ack.update_id, revision(ack.applied)), (pb::AckResult::Applied, 1, Some(1)));
    assert_eq!(node.ops("/readyz").await.0, 200);
    let chains = node.ops("/debug/chains").await.1;
    assert!(chains.contains(r#""state":"available""#), "{chains}");
    let metrics = node.ops("/metrics").await.1;
    assert!(metrics.contains("sluice_revision 1\n") && metrics.contains("sluice_connected 1\n"), "{metrics}");
    node.stop().await;
}

#[tokio::test]
async fn a_hot_update_is_served_and_a_rejected_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    stream.update(update(1, &snapshot(2))).await;
    assert_eq!(node.revision().await, Some(2));

    let ack = stream.update(update(1, &faulty(3))).await;
    assert_eq!((ack.result(), revision(ack.applied)), (pb::AckResult::Rejected, Some(2)));
    assert_eq!(ack.rejected[0].violations[0].path, "channels[0].base_url");
    assert_eq!((node.revision().await, node.ops("/readyz").await.0), (Some(2), 200));

    // What was refused stands in the next Hello, so that it is not sent again.
    stream.drain().await;
    let (mut stream, hello) = plane.welcomed().await;
    assert_eq!((hello.rejected, revision(hello.applied)), (ack.rejected, Some(2)));
    assert_eq!(stream.update(update(1, &snapshot(4))).await.result(), pb::AckResult::Applied);
    node.stop().await;
}

#[tokio::test]
async fn fr_011_an_older_revision_of_a_stale_replica_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (fresh, stale) = (Plane::start().await, Plane::start().await);
    let node = Node::start(dir.path(), &fresh.url()).await;
    let (mut stream, _) = fresh.welcomed().await;
    stream.update(update(7, &snapshot(5))).await;
    node.stop().await;

    let node = Node::start(dir.path(), &stale.url()).await;
    let (mut stream, _) = stale.welcomed().await;
    let ack = stream.update(update(7, &snapshot(4))).await;
    assert_eq!((ack.result(), revision(ack.applied)), (pb::AckResult::Rejected, Some(5)));
    let ack = stream.update(update(8, &snapshot(1))).await;
    assert_eq!((ack.result(), revision(ack.applied)), (pb::AckResult::Applied, Some(1)), "another epoch");
    node.stop().await;
}

#[tokio::test]
async fn fr_021_a_node_that_is_pushed_faster_than_it_takes_ends_on_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, _) = plane.welcomed().await;
    for revision in 1..=10 {
        stream.say(Down::Update(update(1, &snapshot(revision)))).await;
    }
    while revision(stream.ack().await.applied) != Some(10) {}
    assert_eq!(node.revision().await, Some(10));
    node.stop().await;
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_anew_whatever_ended_it() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, hello) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    let boot = hello.boot_id;

    drop(stream);
    let (stream, hello) = plane.welcomed().await;
    assert_eq!((&hello.boot_id, revision(hello.applied)), (&boot, Some(1)), "a clean end");
    // Not a word belongs there.
    stream.say(Down::Welcome(pb::Welcome::default())).await;
    let (stream, _) = plane.welcomed().await;
    stream.drain().await;
    let (mut stream, _) = plane.welcomed().await;
    assert_eq!(revision(stream.heartbeat().await.applied), Some(1));
    assert_eq!(node.ops("/readyz").await.0, 200);
    node.stop().await;
}

#[tokio::test]
async fn fr_015_a_server_that_ends_connections_by_age_panics_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let age = Duration::from_millis(150);
    let plane = Plane::start_with(|server| server.max_connection_age(age)).await;
    let node = Node::start(dir.path(), &plane.url()).await;
    for _ in 0..3 {
        plane.welcomed().await;
    }
    assert_eq!(node.ops("/healthz").await.0, 200);
    node.stop().await;
}

#[tokio::test]
async fn fr_047_any_one_address_is_enough_and_the_last_known_good_is_served_before_dialling() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let dead = "http://127.0.0.1:9";
    let planes = format!("{dead},{},{dead}", plane.url());
    let node = Node::start(dir.path(), &planes).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    node.stop().await;
    plane.kill().await;

    let begun = Instant::now();
    let node = Node::start(dir.path(), dead).await;
    assert_eq!(node.ops("/readyz").await.0, 200);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(node.revision().await, Some(1));
    node.stop().await;
}

#[tokio::test]
async fn fr_027_a_control_plane_that_is_not_ready_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let (url, address) = (plane.url(), plane.address);
    plane.kill().await;
    let node = Node::start(dir.path(), &url).await;
    // The same address, later.
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    drop(listener.accept().await.unwrap());
    drop(listener.accept().await.unwrap());
    assert_eq!(node.ops("/healthz").await.0, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_stops_says_so_and_reports_its_last_counts() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let mut node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    for _ in 0..5 {
        assert_eq!(node.call("m").await, 503);
    }
    node.begin_shutdown();
    let rest = stream.rest().await;
    assert!(matches!(rest.last(), Some(Up::Drain(_))), "{rest:?}");
    drop(stream);
    node.ended().await;
    let totals = plane.counts().totals();
    assert_eq!((totals.attempts, totals.requests), (5, 5));
    assert!(!dir.path().join("node/listen.json").exists());
}

#[tokio::test]
async fn fr_017_a_shutdown_is_bounded_with_a_silent_control_plane_and_idle_callers() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let mut node = Node::start(dir.path(), &plane.url()).await;
    // Held open and never read or written again.
    let _held = plane.welcomed().await;
    let _idle = TcpStream::connect(node.addresses.data).await.unwrap();
    let _ops = TcpStream::connect(node.addresses.ops).await.unwrap();
    let begun = Instant::now();
    node.begin_shutdown();
    node.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_shutdown_is_shown_and_lets_a_request_in_flight_finish_and_no_other_begin() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let mut node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    let body = r#"{"model":"m","messages":[]}"#;
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut caller = TcpStream::connect(node.addresses.data).await.unwrap();
    caller.write_all(head.as_bytes()).await.unwrap();
    eventually("a request in flight", || async {
        node.ops("/metrics").await.1.contains("sluice_requests_in_flight 1\n")
    })
    .await;

    node.begin_shutdown();
    eventually("a draining node", || async { node.ops("/readyz").await.1.contains("draining") }).await;
    assert_eq!(node.ops("/readyz").await.0, 503);
    eventually("a closed listener", || async { TcpStream::connect(node.addresses.data).await.is_err() })
        .await;
    caller.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    caller.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("upstream_unavailable"), "{answer}");
    drop(stream);
    node.ended().await;
    assert_eq!(plane.counts().totals().requests, 1);
}

#[tokio::test]
async fn counts_wait_while_the_control_plane_cannot_count_and_come_home_once() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;
    plane.counted.lock().unwrap().is_away = true;
    for _ in 0..20 {
        node.call("m").await;
    }
    eventually("a refused report", || async { plane.counted.lock().unwrap().refused > 0 }).await;
    for _ in 0..20 {
        node.call("m").await;
    }
    plane.counted.lock().unwrap().is_away = false;
    eventually("all counts", || async { plane.counts().totals().requests == 40 }).await;
    node.stop().await;
    assert_eq!(plane.counts().totals().attempts, 40);
}

#[tokio::test]
async fn two_nodes_do_not_share_a_data_folder() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let node = Node::start(dir.path(), &plane.url()).await;
    let settings = [vec!["node".to_owned()], node::args(dir.path(), &plane.url())].concat();
    let config = gateway_node::Config::check(clap::Parser::parse_from(settings)).unwrap();
    let error = gateway_node::serve(config, std::future::pending()).await.unwrap_err();
    assert!(format!("{error:#}").contains("another process uses it"), "{error:#}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_loses_no_count_of_what_callers_saw_and_counts_none_twice() {
    const CALLERS: u64 = 4;
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start().await;
    let mut seen = 0;
    let mut in_flight = 0;
    for round in 0..4 {
        let process = Process::start(dir.path(), &plane.url()).await;
        let (mut stream, _) = plane.welcomed().await;
        if round == 0 {
            stream.update(update(1, &snapshot(1))).await;
        }
        let address = process.data.clone();
        let calling = async {
            let callers = (0..CALLERS).map(|_| async {
                let mut seen = 0;
                while node::call(&address, "m").await.is_ok() {
                    seen += 1;
                }
                seen
            });
            let mut all = 0;
            for caller in futures(callers.collect()).await {
                all += caller;
            }
            all
        };
        // Another moment of sealing and reporting each time.
        let killing = async {
            tokio::time::sleep(Duration::from_millis(310 + 40 * round)).await;
            process.kill().await;
        };
        let (all, ()) = tokio::join!(calling, killing);
        seen += all;
        in_flight += CALLERS;
    }
    let node = Node::start(dir.path(), &plane.url()).await;
    let (_stream, hello) = plane.welcomed().await;
    assert_eq!(revision(hello.applied), Some(1));
    eventually("every count", || async {
        node.ops("/metrics").await.1.contains("sluice_spooled_windows 0\n")
            && plane.counts().totals().requests >= seen
    })
    .await;
    node.stop().await;
    let counted = plane.counts().totals().requests;
    assert!((seen..=seen + in_flight).contains(&counted), "seen {seen}, counted {counted}");
}

/// Drives futures of one kind together.
async fn futures<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut futures {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if futures.iter().all(|(_, output)| output.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
