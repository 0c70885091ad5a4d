//! Connections of callers: HTTP/1.1 and HTTP/2 (in clear by prior knowledge), TLS where configured, how much of each a
//! caller may hold and for how long, and the end of them in order: no new ones, those that are busy finish, the rest is
//! closed.

mod conn;
mod transport;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::{Gateway, serve};
use conn::{Conn, Paced};
use transport::{Protocol, Transport};

use common::limits::{CALLER_HEAD_TIMEOUT, CALLER_IDLE, HEAD_BYTES_MAX, HEADERS_MAX};
use common::tls::Tls;

/// HTTP/2 requests at a time on one connection.
const STREAMS_MAX: u32 = 1_000;
/// Bytes of an answer that wait for their caller; what follows waits at the upstream.
const SEND_BYTES_MAX: usize = 16 * 1024;
/// Bytes that wait in the system, above those that are under way. Left to itself it takes megabytes of every answer
/// that is read slowly.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES_MAX: u32 = 64 * 1024;
/// After a failed accept (no file descriptors left) this long passes before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves callers until `stop` is cancelled, then lets requests in flight finish for `grace` and
/// closes what is left. Returns when no connection is open.
pub async fn run(
    listener: TcpListener,
    tls: Option<Tls>,
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    grace: Duration,
) {
    let connections = Connections {
        gateway,
        builders: Arc::new(Builders::new()),
        tracker: TaskTracker::new(),
        drain: CancellationToken::new(),
        abort: CancellationToken::new(),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((tcp, _)) => connections.serve_tcp(tcp, tls.clone()),
            Err(error) => {
                warn!(error = &error as &dyn std::error::Error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.finish(grace).await;
}

struct Connections {
    gateway: Arc<Gateway>,
    builders: Arc<Builders>,
    tracker: TaskTracker,
    drain: CancellationToken,
    abort: CancellationToken,
}

/// How a connection is served whose protocol is known.
struct Builders {
    http_1: Builder<TokioExecutor>,
    http_2: Builder<TokioExecutor>,
}

impl Builders {
    fn new() -> Self {
        let mut http_1 = Builder::new(TokioExecutor::new()).http1_only();
        http_1
            .http1()
            .timer(TokioTimer::new())
            // How long a head may take is the transport's matter, and how long there may be none the connection's.
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        let mut http_2 = Builder::new(TokioExecutor::new()).http2_only();
        http_2
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
            .max_send_buf_size(SEND_BYTES_MAX)
            .keep_alive_interval(CALLER_HEAD_TIMEOUT);
        Builders { http_1, http_2 }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unsent(tcp: &TcpStream) -> std::io::Result<()> {
    socket2::SockRef::from(tcp).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// Other systems have no such limit, or none that is reached from here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_unsent(_: &TcpStream) -> std::io::Result<()> {
    Ok(())
}

impl Connections {
    fn serve_tcp(&self, tcp: TcpStream, tls: Option<Tls>) {
        if let Err(error) = tcp.set_nodelay(true).and(limit_unsent(&tcp)) {
            debug!(
                error = &error as &dyn std::error::Error,
                "an option of a caller's socket could not be set"
            );
        }
        match tls {
            None => self.serve_io(tcp),
            Some(tls) => {
                let this = self.part();
                self.tracker.spawn(async move {
                    // What is written and not yet sent counts as the caller's backlog, encrypted or not.
                    let accepting = TlsAcceptor::from(tls.config())
                        .accept_with(tcp, |tls| tls.set_buffer_limit(Some(SEND_BYTES_MAX)));
                    match timeout(CALLER_HEAD_TIMEOUT, accepting).await {
                        Ok(Ok(stream)) => this.serve(stream).await,
                        Ok(Err(error)) => {
                            debug!(error = &error as &dyn std::error::Error, "TLS handshake failed")
                        }
                        Err(_) => debug!("TLS handshake timed out"),
                    }
                });
            }
        }
    }

    fn serve_io<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, io: I) {
        let this = self.part();
        self.tracker.spawn(async move { this.serve(io).await });
    }

    fn part(&self) -> Serving {
        Serving {
            gateway: self.gateway.clone(),
            builders: self.builders.clone(),
            drain: self.drain.clone(),
            abort: self.abort.clone(),
        }
    }

    async fn finish(self, grace: Duration) {
        self.tracker.close();
        self.drain.cancel();
        let has_finished = timeout(grace, self.tracker.wait()).await.is_ok();
        if !has_finished {
            warn!(in_flight = self.gateway.in_flight(), "requests in flight are cut after the grace period");
        }
        self.abort.cancel();
        self.tracker.wait().await;
    }
}

struct Serving {
    gateway: Arc<Gateway>,
    builders: Arc<Builders>,
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Serving {
    async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, io: I) {
        let conn = Arc::new(Conn::default());
        let service = service_fn(|request: Request<Incoming>| {
            let is_alone = request.version() < Version::HTTP_2;
            let used = conn.begin_request();
            let gateway = self.gateway.clone();
            // Boxed, so that what a request needs until its answer begins is not kept until its end.
            let served = Box::pin(serve(gateway.clone(), request));
            async move {
                let mut answer = served.await.map(|body| Paced::new(body, used, is_alone));
                // HTTP/2 says the same by GOAWAY, once no new connection is taken any more.
                if is_alone && gateway.is_draining() {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let mut transport = Transport::new(io, conn.clone(), CALLER_HEAD_TIMEOUT);
        let protocol = tokio::select! {
            // Who has asked already is answered, also while the node leaves.
            biased;
            protocol = transport.protocol() => protocol,
            () = self.drain.cancelled() => return,
            () = self.abort.cancelled() => return,
        };
        let builder = match protocol {
            Ok(Protocol::Http1) => &self.builders.http_1,
            Ok(Protocol::Http2) => &self.builders.http_2,
            Err(error) => {
                debug!(error = &error as &dyn std::error::Error, "a caller's connection asked for nothing");
                return;
            }
        };
        let mut connection = pin!(builder.serve_connection(TokioIo::new(transport), service));
        let mut is_ending = false;
        let ended = loop {
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = conn.until_idle(CALLER_IDLE), if !is_ending => {}
                () = self.drain.cancelled(), if !is_ending => {}
                () = self.abort.cancelled() => return,
            }
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        };
        if let Err(error) = ended {
            debug!(error = &*error, "a caller's connection ended");
        }
    }
}
