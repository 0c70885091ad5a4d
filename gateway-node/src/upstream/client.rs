//! The upstream client: one pool for each way to connect, any transport beneath it, and what a
//! request that got no headers means. Layer 4, the headers timeout, is the caller's deadline around
//! [`Client::send`]; the client itself has no total timeout, which would cut healthy streams.

mod conn;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Pooled, Error as SendError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tower::Service;

use super::body::RequestBody;
pub use conn::Io;
use conn::{Conn, Usage};

/// Idle connections are kept this long; upstreams close theirs after one to several minutes.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// A busy HTTP/2 connection on which nothing comes for this long is asked whether its other end is still there.
const HTTP_2_PING_AFTER: Duration = Duration::from_secs(15);
/// Without an answer within this it is given up: else every request on it would wait for the headers timeout.
const HTTP_2_PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest head of an answer, and most that is read at a time: what a slow caller has not taken yet waits at the
/// upstream and not here.
const HTTP_1_READ_MAX: usize = 16 * 1024;
/// The same of a stream over HTTP/2: as much is under way or waits for a slow caller.
const HTTP_2_STREAM_WINDOW: u32 = 64 * 1024;
/// Large enough that callers who are slow, however many, never stop the streams of others on their connection.
const HTTP_2_CONNECTION_WINDOW: u32 = 1 << 30;

type Dialing = Pin<Box<dyn Future<Output = Result<Box<dyn Io>, BoxError>> + Send>>;
type BoxError = Box<dyn StdError + Send + Sync>;

/// Opens a transport to an authority: TCP and TLS, or whatever a test puts in its place.
pub type Dial = Arc<dyn Fn(Uri) -> Dialing + Send + Sync>;

/// A request that got no response headers.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct SendFault {
    /// What gave way.
    pub kind: TransportFault,
    /// The connection was reused and not a byte of an answer had come: the pool was stale, not the upstream. Or the
    /// upstream says over HTTP/2 that it did nothing with this request. Either way it may be sent once more.
    pub was_stale: bool,
    /// It is certain that the upstream did not begin to work on it: there was no connection, nothing was sent, or it
    /// said so.
    pub is_untaken: bool,
}

/// What gave way before the response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportFault {
    /// The name does not resolve.
    #[error("the upstream's name does not resolve")]
    Dns,
    /// Nobody listens there.
    #[error("the upstream refused the connection")]
    Refused,
    /// No connection within `timeouts.connect`.
    #[error("the upstream could not be reached in time")]
    ConnectTimeout,
    /// The TLS handshake failed.
    #[error("the TLS handshake with the upstream failed")]
    Tls,
    /// Any other failure to connect.
    #[error("the upstream could not be reached")]
    Unreachable,
    /// HTTP/2: the stream was refused or not processed.
    #[error("the upstream refused the HTTP/2 stream")]
    StreamRefused,
    /// The connection ended before the response headers.
    #[error("the upstream closed the connection before it answered")]
    Closed,
}

/// Sends requests over pooled connections. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    pooled: Pooled<Connector, RequestBody>,
    fresh: Pooled<Connector, RequestBody>,
}

impl Client {
    /// A client whose connections are opened by `dial` within `connect_timeout`.
    pub fn new(dial: Dial, connect_timeout: Duration) -> Self {
        let connector = Connector { dial, timeout: connect_timeout };
        let build = |idle_per_host: usize| {
            Pooled::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE)
                .pool_max_idle_per_host(idle_per_host)
                .retry_canceled_requests(false)
                .http1_max_buf_size(HTTP_1_READ_MAX)
                .http2_initial_stream_window_size(HTTP_2_STREAM_WINDOW)
                .http2_initial_connection_window_size(HTTP_2_CONNECTION_WINDOW)
                .http2_keep_alive_interval(HTTP_2_PING_AFTER)
                .http2_keep_alive_timeout(HTTP_2_PING_TIMEOUT)
                .build(connector.clone())
        };
        Client { pooled: build(usize::MAX), fresh: build(0) }
    }

    /// Sends a request and resolves at the response headers. Dropping the future gives the request up.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, SendFault> {
        Client::send_over(&self.pooled, request).await
    }

    /// As [`Client::send`], over a connection of its own.
    pub async fn send_afresh(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, SendFault> {
        Client::send_over(&self.fresh, request).await
    }

    async fn send_over(
        pool: &Pooled<Connector, RequestBody>,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFault> {
        let answer = pool.request(request).await.map_err(|error| judge(&error))?;
        if let Some(usage) = answer.extensions().get::<Arc<Usage>>() {
            usage.has_served.store(true, Ordering::Release);
        }
        Ok(answer)
    }
}

fn judge(error: &SendError) -> SendFault {
    let mut extensions = http::Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    let usage = extensions.get::<Arc<Usage>>();
    let has_served = usage.is_some_and(|usage| usage.has_served.load(Ordering::Acquire));
    let is_answering = usage.is_some_and(|usage| usage.is_answering.load(Ordering::Acquire));
    let kind = transport_fault(error);
    // What was never sent cannot have been answered; the last bytes in were the answer before.
    let is_silent = !is_answering || was_never_sent(error);
    let was_stale = match kind {
        TransportFault::StreamRefused => true,
        TransportFault::Closed => has_served && is_silent,
        TransportFault::Dns
        | TransportFault::Refused
        | TransportFault::ConnectTimeout
        | TransportFault::Tls
        | TransportFault::Unreachable => false,
    };
    let is_untaken = error.is_connect() || was_never_sent(error) || was_refused(error);
    SendFault { kind, was_stale, is_untaken }
}

/// The upstream said itself, by HTTP/2, that it did not process the request.
fn was_refused(error: &SendError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(h2) = error.downcast_ref::<h2::Error>() {
            let is_unprocessed = h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM);
            return h2.is_remote() && is_unprocessed;
        }
        cause = error.source();
    }
    false
}

fn was_never_sent(error: &SendError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn transport_fault(error: &SendError) -> TransportFault {
    let mut kind = if error.is_connect() { TransportFault::Unreachable } else { TransportFault::Closed };
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<TransportFault>() {
            return *fault;
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>()
            && ((h2.is_go_away() && h2.is_remote()) || h2.reason() == Some(h2::Reason::REFUSED_STREAM))
        {
            return TransportFault::StreamRefused;
        }
        if error.is::<rustls::Error>() {
            return TransportFault::Tls;
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            // An io error hides what it wraps from `source`.
            if io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                return TransportFault::Tls;
            }
            if io.kind() == io::ErrorKind::ConnectionRefused {
                return TransportFault::Refused;
            }
        }
        // hyper-util's connector keeps its error type to itself; its text is fixed.
        if kind == TransportFault::Unreachable && error.to_string() == "dns error" {
            kind = TransportFault::Dns;
        }
        cause = error.source();
    }
    kind
}

#[derive(Clone)]
struct Connector {
    dial: Dial,
    timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Conn>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Conn>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (dialing, timeout) = ((self.dial)(uri), self.timeout);
        Box::pin(async move {
            let io = tokio::time::timeout(timeout, dialing)
                .await
                .map_err(|_| BoxError::from(TransportFault::ConnectTimeout))??;
            Ok(TokioIo::new(Conn::new(io)))
        })
    }
}

/// How the connections of a route are made; equal ways share one client and its pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Way {
    /// A PEM file with the only certificate authorities to trust, in place of the public ones.
    pub tls_ca_file: Option<PathBuf>,
    /// DNS, TCP and TLS together.
    pub connect_timeout: Duration,
}

/// A certificate authority that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificate authority in {}", path.display())]
pub struct CaFault {
    path: PathBuf,
    #[source]
    source: BoxError,
}

/// All clients of a node. A client lives as long as some table uses it, so that a hot swap keeps connections.
#[derive(Clone)]
pub struct Connections {
    clients: Arc<Mutex<HashMap<Way, Weak<Client>>>>,
    transport: Arc<Transport>,
}

/// Makes the dial of a way to connect.
type Transport = dyn Fn(&Way) -> Result<Dial, CaFault> + Send + Sync;

impl Connections {
    /// Clients that connect over TCP and TLS.
    pub fn new() -> Self {
        Connections::over(|way| network_dial(way.tls_ca_file.as_ref()))
    }

    /// Clients that connect as `transport` says.
    pub fn over(transport: impl Fn(&Way) -> Result<Dial, CaFault> + Send + Sync + 'static) -> Self {
        Connections { clients: Arc::default(), transport: Arc::new(transport) }
    }

    /// The client for a way to connect, the present one if there is one. Reads the CA file of a new one.
    pub fn client(&self, way: &Way) -> Result<Arc<Client>, CaFault> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(way).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let dial = (self.transport)(way)?;
        let client = Arc::new(Client::new(dial, way.connect_timeout));
        clients.retain(|_, client| client.strong_count() > 0);
        clients.insert(way.clone(), Arc::downgrade(&client));
        Ok(client)
    }
}

fn network_dial(ca_file: Option<&PathBuf>) -> Result<Dial, CaFault> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    let builder = HttpsConnectorBuilder::new();
    let builder = match ca_file {
        None => builder.with_webpki_roots(),
        Some(path) => {
            builder.with_tls_config(trusting(path).map_err(|source| CaFault { path: path.clone(), source })?)
        }
    };
    let https = builder.https_or_http().enable_http1().enable_http2().wrap_connector(tcp);
    Ok(Arc::new(move |uri| {
        let mut https: HttpsConnector<HttpConnector> = https.clone();
        Box::pin(async move {
            std::future::poll_fn(|cx| https.poll_ready(cx)).await?;
            // Apart, since a connection without TLS would else be as large as the state of TLS.
            let io: Box<dyn Io> = match https.call(uri).await? {
                MaybeHttpsStream::Http(tcp) => Box::new(tcp.into_inner()),
                tls @ MaybeHttpsStream::Https(_) => Box::new(TokioIo::new(tls)),
            };
            Ok(io)
        })
    }))
}

fn trusting(ca_file: &PathBuf) -> Result<rustls::ClientConfig, BoxError> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file)? {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests;
