//! Opens connections to the control plane: TLS with the node's certificate, or loopback with the token on each call,
//! keep-alives, and what the end of a call means.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use common::clock::Clock;
use common::limits::CONNECT_TIMEOUT;
use http::Uri;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::certificate::{Certificates, Held};
use super::enrol::{NoCertificate, enrol, renew};
use super::session::End;

/// Pings on a connection that is otherwise silent.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// A peer that finds 30 s too often is pinged half as often each time it says so, down to this.
const PING_SLOWDOWN_MAX: u32 = 4;

/// An open connection and what its calls show.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// The connection.
    pub channel: Channel,
    /// The epoch of the control plane behind it, once it said so.
    pub epoch: u64,
    /// What each call shows; `None`: the connection has the node's certificate.
    token: Option<MetadataValue<Ascii>>,
}

impl Link {
    /// The same connection, to a control plane of which it is known in which epoch it is.
    pub(super) fn in_epoch(&self, epoch: u64) -> Link {
        Link { epoch, ..self.clone() }
    }

    /// A call that shows what it must.
    pub(super) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }
}

/// How connections are opened.
#[derive(Debug)]
pub(crate) struct Links {
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    certificates: Arc<Certificates>,
    clock: Clock,
    /// The certificate was not taken, and its renewal is tried before it is shown again.
    is_doubted: AtomicBool,
    /// One enrolment at a time: a token may be good for one.
    enrolling: Mutex<()>,
    /// The interval of pings is doubled this often.
    slowdown: AtomicU32,
}

impl Links {
    /// Connections over TLS show the node's certificate, which comes by the token in `token_file`; others, and where no
    /// certificates are given, that token itself, read anew for each. They trust the authorities in `ca_file`, or the
    /// public ones, and those of the fleet.
    pub(crate) fn new(
        token_file: Option<PathBuf>,
        ca_file: Option<PathBuf>,
        certificates: Arc<Certificates>,
        clock: Clock,
    ) -> Self {
        Links {
            token_file,
            ca_file,
            certificates,
            clock,
            is_doubted: AtomicBool::new(false),
            enrolling: Mutex::new(()),
            slowdown: AtomicU32::new(0),
        }
    }

    /// The node's certificate.
    pub(super) fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Connects; or says why not.
    pub(super) async fn open(&self, address: &Uri) -> Result<Link, End> {
        let held =
            if address.scheme_str() == Some("https") { self.certificate(address).await? } else { None };
        if let Some(held) = held {
            let channel = self.connect(address, Some(&held)).await.map_err(failed)?;
            return Ok(Link { channel, epoch: 0, token: None });
        }
        let token = Some(self.token().await.map_err(failed)?);
        let channel = self.anonymous(address).await.map_err(failed)?;
        Ok(Link { channel, epoch: 0, token })
    }

    /// The call of a link failed so. Returns whether another try may help at once: the certificate of the link was
    /// perhaps not taken, and will be renewed before it is shown again.
    pub(super) fn doubt(&self, link: &Link, status: &Status) -> bool {
        // An authority that is not trusted any more ends the connection, whatever that looks like here.
        let is_answer = matches!(
            status.code(),
            Code::ResourceExhausted | Code::InvalidArgument | Code::DeadlineExceeded | Code::Aborted
        );
        let is_doubtful = link.token.is_none() && !is_answer;
        is_doubtful && !self.is_doubted.swap(true, Ordering::Relaxed)
    }

    /// A connection that shows nothing.
    pub(super) async fn anonymous(&self, address: &Uri) -> Result<Channel, String> {
        self.connect(address, None).await
    }

    async fn connect(&self, address: &Uri, held: Option<&Held>) -> Result<Channel, String> {
        let endpoint = self.endpoint(address, held).await?;
        // The endpoint's own limit leaves out TLS, which a dead peer behind a living load balancer never begins.
        match timeout(CONNECT_TIMEOUT, endpoint.connect()).await {
            Ok(connected) => connected.map_err(|error| describe(&error)),
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }

    /// The certificate to show, which is renewed or enrolled for if need be; `None` where none is given.
    async fn certificate(&self, address: &Uri) -> Result<Option<Arc<Held>>, End> {
        let _enrolling = self.enrolling.lock().await;
        if let Some(held) = self.certificates.held() {
            let is_over = held.facts.expires_at_ms <= self.clock.now_ms();
            if !is_over && !self.is_doubted.swap(false, Ordering::Relaxed) {
                return Ok(Some(held));
            }
            let channel = self.anonymous(address).await.map_err(failed)?;
            match renew(channel, &self.certificates, &held).await {
                Ok(held) => return Ok(Some(held)),
                Err(NoCertificate::NotGiven) => return Ok(None),
                Err(NoCertificate::Failed(why)) => return Err(failed(why)),
                Err(NoCertificate::Refused(why) | NoCertificate::Unknown(why)) => {
                    // As long as it is, the next call begins here again.
                    self.is_doubted.store(true, Ordering::Relaxed);
                    if self.token_file.is_none() {
                        tracing::error!("the node's certificate is not renewed: {why}; it needs a new token");
                        return Err(End::Refused);
                    }
                    tracing::warn!(
                        "the node's certificate is not renewed: {why}; it enrols anew by its token"
                    );
                }
            }
        }
        let token = self.token().await.map_err(failed)?;
        let channel = self.anonymous(address).await.map_err(failed)?;
        match enrol(channel, &self.certificates, token).await {
            Ok(held) => {
                self.is_doubted.store(false, Ordering::Relaxed);
                Ok(Some(held))
            }
            Err(NoCertificate::NotGiven) => Ok(None),
            Err(NoCertificate::Refused(why)) => {
                tracing::error!("the node cannot enrol: {why}");
                Err(End::Refused)
            }
            Err(NoCertificate::Failed(why) | NoCertificate::Unknown(why)) => Err(failed(why)),
        }
    }

    async fn token(&self) -> Result<MetadataValue<Ascii>, String> {
        let Some(file) = &self.token_file else {
            return Err("this node has no certificate, and no --node-token-file to enrol with".to_owned());
        };
        let path = file.display();
        let text = tokio::fs::read_to_string(file)
            .await
            .map_err(|error| format!("the node's token in {path} cannot be read: {error}"))?;
        let bearer = format!("Bearer {}", text.trim());
        let mut token: MetadataValue<Ascii> =
            bearer.parse().map_err(|_| format!("what is in {path} is no token"))?;
        token.set_sensitive(true);
        Ok(token)
    }

    async fn endpoint(&self, address: &Uri, held: Option<&Held>) -> Result<Endpoint, String> {
        let slowdown = self.slowdown.load(Ordering::Relaxed);
        let endpoint = Endpoint::from(address.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_EVERY * 2u32.pow(slowdown))
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true);
        if address.scheme_str() != Some("https") {
            return Ok(endpoint);
        }
        let tls = match &self.ca_file {
            Some(path) => {
                let pem = tokio::fs::read(path)
                    .await
                    .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
            }
            None => ClientTlsConfig::new().trust_anchors(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        };
        let tls = match self.certificates.held().filter(|held| !held.authorities_pem.is_empty()) {
            Some(known) => tls.ca_certificate(Certificate::from_pem(&known.authorities_pem)),
            None => tls,
        };
        let tls = match held {
            Some(held) => tls.identity(Identity::from_pem(&held.certificate_pem, &held.key_pem)),
            None => tls,
        };
        endpoint.tls_config(tls).map_err(|error| describe(&error))
    }

    /// What the end of a call means for the stream.
    pub(super) fn end_of(&self, status: &Status) -> End {
        if is_too_many_pings(status) {
            let slower = |n: u32| Some((n + 1).min(PING_SLOWDOWN_MAX));
            if self.slowdown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, slower).is_ok() {
                tracing::debug!("the control plane wants fewer pings");
            }
        }
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => End::Refused,
            code => {
                let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
                if let (Code::ResourceExhausted, Some(place)) = (code, retry_after) {
                    return End::Busy(place);
                }
                End::Failed { why: format!("{code:?}: {}", describe(status)), retry_after }
            }
        }
    }
}

fn failed(why: String) -> End {
    End::Failed { why, retry_after: None }
}

fn is_too_many_pings(status: &Status) -> bool {
    sources(status).any(|error| {
        error.downcast_ref::<h2::Error>().and_then(h2::Error::reason) == Some(h2::Reason::ENHANCE_YOUR_CALM)
    })
}

/// An error and its causes in one line; tonic says only "transport error" itself.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    for error in sources(error) {
        let text = error
            .downcast_ref::<Status>()
            .map_or_else(|| error.to_string(), |status| status.message().to_owned());
        if !text.is_empty() && parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

fn sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    // No chain of causes is deeper.
    std::iter::successors(Some(error), |error| error.source()).take(16)
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    fn links_with(token_file: PathBuf) -> Links {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Arc::new(Certificates::open(dir.path(), "n1").unwrap());
        Links::new(Some(token_file), None, certificates, Clock::system())
    }

    fn links() -> Links {
        links_with("no-such-file".into())
    }

    #[test]
    fn fr_027_only_a_refused_token_means_a_slow_retry() {
        for code in [Code::Unauthenticated, Code::PermissionDenied] {
            assert_eq!(links().end_of(&Status::new(code, "who are you")), End::Refused);
        }
        let End::Failed { why, retry_after } = links().end_of(&Status::unavailable("not ready")) else {
            panic!("a failure like any other");
        };
        assert_eq!((why.as_str(), retry_after), ("Unavailable: not ready", None));
    }

    #[test]
    fn fr_025_the_time_to_come_back_is_read() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(7)));
        let busy = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        assert_eq!(links().end_of(&busy), End::Busy(Duration::from_secs(7)));
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(7)));
        let away = Status::with_error_details(Code::Unavailable, "away", details);
        let End::Failed { retry_after, .. } = links().end_of(&away) else { panic!("a failure") };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn fr_019_each_complaint_about_pings_doubles_their_interval_down_to_a_bound() {
        let links = links();
        let complaint = || Status::from_error(Box::new(h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM)));
        for expected in [1, 2, 3, 4, 4] {
            links.end_of(&complaint());
            assert_eq!(links.slowdown.load(Ordering::Relaxed), expected);
        }
        links.end_of(&Status::unavailable("x"));
        assert_eq!(links.slowdown.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn fr_047_a_peer_that_takes_connections_and_says_nothing_is_given_up_in_time() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: Uri = format!("https://{}", silent.local_addr().unwrap()).parse().unwrap();
        let tried = timeout(CONNECT_TIMEOUT * 2, links().anonymous(&address)).await;
        let why = tried.expect("bounded").unwrap_err();
        assert!(why.contains("no connection within 10 s"), "{why}");
    }

    #[tokio::test]
    async fn a_missing_token_says_which_file_and_the_token_is_never_shown() {
        let end = links().open(&Uri::from_static("http://127.0.0.1:9")).await.unwrap_err();
        let End::Failed { why, .. } = end else { panic!("{end:?}") };
        assert!(why.contains("no-such-file"), "{why}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "secret-token\n").unwrap();
        let token = links_with(file).token().await.unwrap();
        assert_eq!(token, "Bearer secret-token");
        assert!(!format!("{token:?}").contains("secret-token"));
    }
}
