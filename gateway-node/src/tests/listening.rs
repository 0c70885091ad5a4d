//! A node behind its real listener, called over sockets.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::api::accept;

use super::support::*;

pub type Sender = SendRequest<Full<bytes::Bytes>>;

/// A node behind a real listener.
pub struct Listening {
    pub node: Node,
    pub address: std::net::SocketAddr,
    pub stop: CancellationToken,
    pub served: JoinSet<()>,
}

/// Waits for the node; the clock of tests over HTTP/2 is real, since a paused one does not wait for sockets.
pub async fn until_idle(node: &Node) {
    let idle = async {
        while node.gateway.in_flight() > 0 {
            sleep(ms(1)).await;
        }
    };
    timeout(s(5), idle).await.expect("requests in flight end");
}

pub async fn listening(channels: usize) -> Listening {
    listening_with(channels, s(30)).await
}

pub async fn listening_with(channels: usize, grace: Duration) -> Listening {
    listening_to(Node::new(channels), grace).await
}

pub async fn listening_to(node: Node, grace: Duration) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let served = JoinSet::from_iter([accept::run(listener, None, node.gateway.clone(), stop.clone(), grace)]);
    Listening { node, address, stop, served }
}

impl Listening {
    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// An HTTP/2 connection; it is lost when the set is dropped.
    pub async fn http2(&self) -> (Sender, JoinSet<()>) {
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new());
        let (sender, connection) =
            builder.handshake::<_, Full<bytes::Bytes>>(TokioIo::new(self.tcp().await)).await.unwrap();
        let driver = JoinSet::from_iter([async move {
            let _ended = connection.await;
        }]);
        (sender, driver)
    }

    /// Writes bytes over a connection of its own and reads until the node closes it.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut tcp = self.tcp().await;
        let (mut read, mut write) = tcp.split();
        let mut answer = Vec::new();
        // Reads only when all is written, as many clients do; a write that fails is no reason not to read.
        let _written = write.write_all(bytes).await;
        let _closed = read.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

pub fn over_http2(stream: bool) -> Request<Full<bytes::Bytes>> {
    let (mut parts, body) = chat(stream).into_parts();
    parts.uri = "http://node/v1/chat/completions".parse().unwrap();
    parts.headers.remove("host");
    Request::from_parts(parts, body)
}

pub fn raw_chat(more_headers: &str, body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: n\r\nauthorization: Bearer {KEY}\r\n{more_headers}\r\n{body}"
    )
}
