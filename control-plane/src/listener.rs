//! One listener: accepts connections, with TLS or without, and ends all of them in bounded time,
//! whatever their peers do (FR-017). What is answered is the door's matter.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use common::certificate::{self, Facts};
use common::tls::Tls;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// A connection without any request, and an HTTP/1 request without all its headers, ends after this.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
const FAREWELL: Duration = Duration::from_secs(1);
/// A peer that went silently away is noticed after these two together.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Accepting fails for a moment when file descriptors run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
const STREAMS_PER_CONNECTION: u32 = 1000;
const WINDOW_BYTES: u32 = 1024 * 1024;

/// What a listener answers: one thing before it is opened, another one after.
#[derive(Clone)]
pub struct Door {
    closed: Router,
    open: Arc<OnceLock<Router>>,
}

impl Door {
    /// A door that is closed.
    pub fn closed(closed: Router) -> Self {
        Door { closed, open: Arc::default() }
    }

    /// Opens it for all requests that come from now on. A second opening changes nothing.
    pub fn open(&self, routes: Router) {
        let _ = self.open.set(routes);
    }

    fn routes(&self) -> Router {
        self.open.get().unwrap_or(&self.closed).clone()
    }
}

/// Who is at the other end of a connection: an extension of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What a connection proves of its peer: another extension.
#[derive(Debug, Clone, Default)]
pub struct Proof {
    /// Whether it is encrypted up to here.
    pub is_tls: bool,
    /// The certificate that the client proved to have.
    pub certificate: Option<Arc<Facts>>,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 alone.
    Grpc,
    /// HTTP/1.1 or HTTP/2.
    Http,
}

/// A listener that stands already.
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// TLS, if it speaks that.
    pub tls: Option<Tls>,
    /// What is spoken.
    pub protocol: Protocol,
    /// What is answered.
    pub door: Door,
}

impl Listener {
    /// Accepts until `stop`; then lets requests end for `grace`, and drops what is left.
    pub async fn run(self, stop: CancellationToken, grace: Duration) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let (tls, door) = (self.tls.clone(), self.door.clone());
                        connections.spawn(serve((stream, Peer(peer)), tls, self.protocol, door, stop.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                }
            }
        }
        drop(self.socket);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if timeout(grace, all_ended).await.is_err() {
            tracing::info!(connections = connections.len(), "connections that did not end are dropped");
        }
    }
}

async fn serve(
    (stream, peer): (TcpStream, Peer),
    tls: Option<Tls>,
    protocol: Protocol,
    door: Door,
    stop: CancellationToken,
) {
    // Small frames go out at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    match tls {
        None => answer(stream, (peer, Proof::default()), protocol, door, stop).await,
        Some(tls) => {
            let accepting = TlsAcceptor::from(tls.config()).accept(stream);
            match timeout(HANDSHAKE_WITHIN, accepting).await {
                Ok(Ok(stream)) => {
                    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                    let certificate = shown.and_then(|der| certificate::read(der)).map(Arc::new);
                    let proof = Proof { is_tls: true, certificate };
                    answer(stream, (peer, proof), protocol, door, stop).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        }
    }
}

async fn answer<S>(
    stream: S,
    (peer, proof): (Peer, Proof),
    protocol: Protocol,
    door: Door,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWERED_WITHIN)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let builder = match protocol {
        Protocol::Grpc => builder.http2_only(),
        Protocol::Http => builder,
    };
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = asked.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(proof.clone());
        is_asked.store(true, Ordering::Relaxed);
        let routes = door.routes();
        async move {
            Ok::<Response, Infallible>(routes.oneshot(request).await.unwrap_or_else(|never| match never {}))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Neither protocol bounds the time before its first bytes, and pings begin after them.
    let unasked = async {
        tokio::time::sleep(HEADERS_WITHIN).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = unasked => {
            connection.as_mut().graceful_shutdown();
            match timeout(FAREWELL, connection.as_mut()).await {
                Ok(ended) => ended,
                // It came just now.
                Err(_) if asked.load(Ordering::Relaxed) => connection.await,
                // Halfway through the protocol's first bytes.
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection ended badly");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    /// How long a connection is kept by whose peer `says` something and then nothing more.
    async fn kept(protocol: Protocol, says: &[u8]) -> Duration {
        let (mut peer, stream): (DuplexStream, _) = duplex(4096);
        let slow = async || tokio::time::sleep(2 * HEADERS_WITHIN).await;
        let door = Door::closed(Router::new().route("/slow", get(slow)));
        let began = Instant::now();
        let from = (Peer(([127, 0, 0, 1], 1).into()), Proof::default());
        let serving = answer(stream, from, protocol, door, CancellationToken::new());
        peer.write_all(says).await.unwrap();
        let hearing = async { while peer.read_buf(&mut Vec::new()).await.is_ok_and(|n| n > 0) {} };
        let both = async { tokio::join!(serving, hearing) };
        assert!(timeout(10 * HEADERS_WITHIN, both).await.is_ok(), "{protocol:?} after {says:?}");
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_not_kept() {
        for protocol in [Protocol::Grpc, Protocol::Http] {
            for says in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM"] {
                assert!(kept(protocol, says).await <= HEADERS_WITHIN + FAREWELL);
            }
        }
        let half = kept(Protocol::Http, b"GET /slow HTTP/1.1\r\nhost").await;
        assert!(half <= HEADERS_WITHIN + FAREWELL);
        let slow = b"GET /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        assert_eq!(kept(Protocol::Http, slow).await, 2 * HEADERS_WITHIN, "a request is not cut");
    }
}
