//! What operators and their machines look at: `/healthz`, `/readyz`, `/metrics`, `/debug/chains`.
//! Stays open to the end of a shutdown, so that it can be watched.

mod chains;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::tls::Tls;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Gateway;
use crate::metrics;

/// For the TLS handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// After a failed accept (no file descriptors left) this long passes before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The operators' pages of one node.
#[derive(Clone)]
pub(crate) struct Ops {
    node_id: String,
    boot_id: String,
    gateway: Arc<Gateway>,
}

impl Ops {
    /// The pages of the node that `gateway` belongs to.
    pub(crate) fn new(node_id: String, boot_id: String, gateway: Arc<Gateway>) -> Self {
        Ops { node_id, boot_id, gateway }
    }

    /// Answers until `stop`; connections end with it.
    pub(crate) async fn run(self, listener: TcpListener, tls: Option<Tls>, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((tcp, _)) => {
                    let connection = self.clone().connection(tcp, tls.clone());
                    let until = stop.clone();
                    tracker.spawn(async move {
                        until.run_until_cancelled(connection).await;
                    });
                }
                Err(error) => {
                    tracing::warn!("a connection to ops could not be accepted: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        tracker.close();
        tracker.wait().await;
    }

    async fn connection(self, tcp: TcpStream, tls: Option<Tls>) {
        match tls {
            None => self.answer_on(tcp).await,
            Some(tls) => match timeout(HEAD_TIMEOUT, TlsAcceptor::from(tls.config()).accept(tcp)).await {
                Ok(Ok(stream)) => self.answer_on(stream).await,
                Ok(Err(_)) | Err(_) => tracing::debug!("a TLS handshake with ops failed"),
            },
        }
    }

    async fn answer_on(self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        builder.http2().timer(TokioTimer::new());
        let service = service_fn(move |request: Request<Incoming>| {
            let response = self.answer(request.method(), request.uri().path());
            async move { Ok::<_, Infallible>(response) }
        });
        if let Err(error) = builder.serve_connection(TokioIo::new(io), service).await {
            tracing::debug!(error = &*error, "a connection to ops ended");
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let is_known = matches!(path, "/healthz" | "/readyz" | "/metrics" | "/debug/chains");
        if is_known && method != Method::GET && method != Method::HEAD {
            let mut refused =
                json_page(StatusCode::METHOD_NOT_ALLOWED, &json!({"status": "method_not_allowed"}));
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match path {
            "/healthz" => json_page(StatusCode::OK, &json!({"status": "ok"})),
            "/readyz" => {
                self.gateway.ask_readiness(Instant::now());
                let (code, status) = self.readiness();
                json_page(code, &json!({ "status": status }))
            }
            "/metrics" => page(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics()),
            "/debug/chains" => {
                let table = self.gateway.tables.load();
                let chains = chains::describe(table.as_deref(), Instant::now());
                json_page(
                    StatusCode::OK,
                    &json!({
                        "node_id": self.node_id,
                        "boot_id": self.boot_id,
                        "epoch": table.as_ref().map(|table| table.epoch),
                        "revision": table.as_ref().map(|table| table.revision),
                        "in_flight": self.gateway.in_flight(),
                        "models": chains,
                    }),
                )
            }
            _ => json_page(StatusCode::NOT_FOUND, &json!({"status": "not_found"})),
        }
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        if self.gateway.is_draining() {
            (StatusCode::SERVICE_UNAVAILABLE, "draining")
        } else if self.gateway.tables.load().is_none() {
            (StatusCode::SERVICE_UNAVAILABLE, "no_config")
        } else {
            (StatusCode::OK, "ready")
        }
    }

    /// Breakers close by time alone, so their state is read when it is asked for.
    fn metrics(&self) -> String {
        let Gateway { metrics, observer, bindings, .. } = &*self.gateway;
        if let Some(table) = self.gateway.tables.load() {
            let now = Instant::now();
            for channel in table.channels() {
                let is_suspended = chains::is_suspended(channel, now);
                let is_open = channel.open_until(now).is_some();
                let has_fault = channel.credential_fault.is_some();
                metrics.channel_state(channel.id.as_str(), is_open, is_suspended, has_fault);
            }
        }
        metrics.spooled(observer.spooled());
        metrics.memory(self.gateway.bodies.held(), self.gateway.gates.held());
        metrics.bindings(bindings.counts(), bindings.write_failures());
        metrics.journal_failures(observer.write_failures());
        metrics.render()
    }
}

fn json_page(status: StatusCode, value: &serde_json::Value) -> Response<Full<Bytes>> {
    page(status, "application/json", format!("{value}\n"))
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
