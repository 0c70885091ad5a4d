//! Connections of callers: HTTP/1.1 and HTTP/2 (in clear by prior knowledge), TLS where configured,
//! and the end of them in order: no new ones, those that are busy finish, the rest is closed.

mod opening;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::{Gateway, serve};
use opening::Opening;

/// A caller has this long for its TLS handshake and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// HTTP/2 requests at a time on one connection.
const STREAMS_MAX: u32 = 1_000;
/// After a failed accept (no file descriptors left) this long passes before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves callers until `stop` is cancelled, then lets requests in flight finish for `grace` and
/// closes what is left. Returns when no connection is open.
pub async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    grace: Duration,
) {
    let connections = Connections {
        gateway,
        builder: builder(),
        graceful: GracefulShutdown::new(),
        tracker: TaskTracker::new(),
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
    builder: Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    tracker: TaskTracker,
    abort: CancellationToken,
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(HEAD_TIMEOUT);
    builder
}

impl Connections {
    fn serve_tcp(&self, tcp: TcpStream, tls: Option<TlsAcceptor>) {
        if let Err(error) = tcp.set_nodelay(true) {
            debug!(error = &error as &dyn std::error::Error, "TCP_NODELAY could not be set");
        }
        match tls {
            None => self.serve_io(tcp),
            Some(tls) => {
                let this = self.part();
                self.tracker.spawn(async move {
                    match timeout(HEAD_TIMEOUT, tls.accept(tcp)).await {
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
            builder: self.builder.clone(),
            watcher: self.graceful.watcher(),
            abort: self.abort.clone(),
        }
    }

    async fn finish(self, grace: Duration) {
        self.tracker.close();
        let has_finished = timeout(grace, self.graceful.shutdown()).await.is_ok();
        if !has_finished {
            warn!(in_flight = self.gateway.in_flight(), "requests in flight are cut after the grace period");
        }
        self.abort.cancel();
        self.tracker.wait().await;
    }
}

struct Serving {
    gateway: Arc<Gateway>,
    builder: Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
    abort: CancellationToken,
}

impl Serving {
    async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, io: I) {
        let gateway = self.gateway;
        let service = service_fn(move |request| {
            let gateway = gateway.clone();
            async move { Ok::<_, Infallible>(serve(gateway, request).await) }
        });
        let connection =
            self.builder.serve_connection(TokioIo::new(Opening::within(HEAD_TIMEOUT, io)), service);
        let watched = self.watcher.watch(connection.into_owned());
        tokio::select! {
            ended = watched => {
                if let Err(error) = ended {
                    debug!(error = &*error, "a caller's connection ended");
                }
            }
            () = self.abort.cancelled() => {}
        }
    }
}
