//! Upstreams over HTTP/2: how many streams they allow, what they refuse, and connections that they end in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Response;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::support::*;
use crate::upstream::client::{Dial, Io};

/// What an upstream saw, and how it is.
#[derive(Default)]
struct Upstream {
    answered: AtomicUsize,
    refused: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    /// Of every so many requests on a connection it refuses one.
    refuses_every: Option<usize>,
    /// After so many requests on a connection it says that the connection ends.
    ends_after: Option<usize>,
}

impl Upstream {
    async fn serve(self: Arc<Self>, io: tokio::io::DuplexStream) {
        self.connections.fetch_add(1, Ordering::AcqRel);
        let mut connection =
            h2::server::Builder::new().max_concurrent_streams(100).handshake::<_, Bytes>(io).await.unwrap();
        let mut answering = JoinSet::new();
        for n in 1.. {
            let Some(Ok((request, mut reply))) = connection.accept().await else { return };
            if self.refuses_every.is_some_and(|every| n % every == 0) {
                self.refused.fetch_add(1, Ordering::AcqRel);
                reply.send_reset(h2::Reason::REFUSED_STREAM);
                continue;
            }
            if self.ends_after == Some(n) {
                connection.graceful_shutdown();
            }
            let this = self.clone();
            answering.spawn(async move {
                let open = this.open.fetch_add(1, Ordering::AcqRel) + 1;
                this.most_open.fetch_max(open, Ordering::AcqRel);
                let mut body = request.into_body();
                while let Some(Ok(data)) = body.data().await {
                    let _ = body.flow_control().release_capacity(data.len());
                }
                sleep(ms(10)).await;
                this.open.fetch_sub(1, Ordering::AcqRel);
                this.answered.fetch_add(1, Ordering::AcqRel);
                let answer = Response::builder().header("content-type", "application/json").body(()).unwrap();
                let mut send = reply.send_response(answer, false).unwrap();
                send.send_data(whole_body("a").into(), true).unwrap();
            });
        }
    }
}

fn node(upstream: &Arc<Upstream>) -> (Arc<Node>, Arc<Mutex<JoinSet<()>>>) {
    let tasks = Arc::new(Mutex::new(JoinSet::new()));
    let (upstream, spawner) = (upstream.clone(), tasks.clone());
    let dial: Dial = Arc::new(move |_| {
        let (near, far) = tokio::io::duplex(64 * 1024);
        spawner.lock().unwrap().spawn(upstream.clone().serve(far));
        let io: Box<dyn Io> = Box::new(Pipe { io: near, is_http_2: true });
        Box::pin(std::future::ready(Ok(io)))
    });
    (Arc::new(Node::over(dial).with("openai-chat", 1)), tasks)
}

/// As many requests, all at once; each must be served.
async fn at_once(node: &Arc<Node>, requests: usize) {
    let mut calls = JoinSet::new();
    for _ in 0..requests {
        let node = node.clone();
        calls.spawn(async move { node.call(false).await.text().await.0 });
    }
    while let Some(text) = calls.join_next().await {
        assert_eq!(text.unwrap(), whole_body("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn br_126_five_hundred_requests_at_once_to_an_upstream_of_a_hundred_streams_are_all_served() {
    let upstream = Arc::new(Upstream::default());
    let (node, _tasks) = node(&upstream);
    at_once(&node, 1).await;
    at_once(&node, 500).await;
    assert_eq!(upstream.answered.load(Ordering::Acquire), 501, "each once");
    assert!((90..=100).contains(&upstream.most_open.load(Ordering::Acquire)), "and together as allowed");
    assert_eq!(upstream.connections.load(Ordering::Acquire), 1);
    assert_eq!(node.counted().0, [("a ok".into(), 501)].into());
}

#[tokio::test(start_paused = true)]
async fn br_126_streams_that_are_refused_are_sent_once_more_and_nothing_is_lost_or_counted() {
    let upstream = Arc::new(Upstream { refuses_every: Some(5), ..Upstream::default() });
    let (node, _tasks) = node(&upstream);
    at_once(&node, 1).await;
    at_once(&node, 100).await;
    assert!(upstream.refused.load(Ordering::Acquire) >= 20);
    assert_eq!(node.counted().0, [("a ok".into(), 101)].into());
}

#[tokio::test(start_paused = true)]
async fn br_126_connections_that_an_upstream_ends_in_order_lose_no_request() {
    let upstream = Arc::new(Upstream { ends_after: Some(10), ..Upstream::default() });
    let (node, _tasks) = node(&upstream);
    for _ in 0..5 {
        at_once(&node, 1).await;
        at_once(&node, 30).await;
    }
    assert_eq!(upstream.answered.load(Ordering::Acquire), 155, "each once");
    assert!(upstream.connections.load(Ordering::Acquire) > 3, "connections did end");
    assert_eq!(node.counted().0, [("a ok".into(), 155)].into());
}
