//! Calls to the control plane: where it is, with which token, for how long; and what an error of the
//! wire means to an operator. The token goes over TLS or loopback, unless told otherwise.

use std::error::Error as _;
use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel as Conn, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{FieldViolation, StatusExt as _};

use common::limits::{CATALOG_BYTES_MAX, HEARTBEAT};
use common::pb::admin::catalog_service_client::CatalogServiceClient;
use common::pb::admin::chain_service_client::ChainServiceClient;
use common::pb::admin::key_service_client::KeyServiceClient;
use common::pb::admin::node_service_client::NodeServiceClient;
use common::pb::admin::status_service_client::StatusServiceClient;

use crate::args::ConnectArgs;
use crate::fault::{Exit, Fault};

const WHERE_TOKENS_ARE: &str = "the control plane writes the token to <data-dir>/admin.token at its first start; \
     name that file by --token-file or SLUICE_TOKEN_FILE, or put the token itself into SLUICE_TOKEN";

/// What a request is sent through: the connection, with the token on each request.
pub type Authorized = InterceptedService<Conn, Bearer>;

/// An open connection to a control plane.
pub struct Connection {
    service: Authorized,
    timeout: Duration,
    peer: Peer,
}

/// Who is spoken to and as whom, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    server: String,
    token_from: String,
}

/// Puts the token on each request.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

impl Connection {
    /// Reads the token and connects.
    pub async fn open(args: &ConnectArgs) -> Result<Self, Fault> {
        let uri = server(&args.server)?;
        check_plaintext(&uri, args.insecure_plaintext)?;
        let (token, token_from) = token(args)?;
        let bearer = bearer(&token, &token_from)?;
        let mut endpoint = Endpoint::from(uri.clone())
            .connect_timeout(args.timeout)
            .http2_keep_alive_interval(HEARTBEAT)
            .keep_alive_timeout(HEARTBEAT)
            .tcp_nodelay(true);
        if uri.scheme_str() == Some("https") {
            endpoint = endpoint
                .tls_config(tls(args.ca_file.as_deref())?)
                .map_err(|cause| Fault::error(format!("cannot set up TLS: {}", root_cause(&cause))))?;
        }
        let connecting = tokio::time::timeout(args.timeout, endpoint.connect()).await;
        let conn = match connecting {
            Ok(Ok(conn)) => conn,
            Ok(Err(cause)) => return Err(unreachable(&args.server, &cause)),
            Err(_elapsed) => return Err(silent(&args.server, args.timeout)),
        };
        let peer = Peer { server: args.server.clone(), token_from };
        Ok(Connection { service: InterceptedService::new(conn, bearer), timeout: args.timeout, peer })
    }

    /// Catalog and revisions. Documents may be as large as the control plane takes them.
    pub fn catalog(&self) -> CatalogServiceClient<Authorized> {
        let bytes_max = CATALOG_BYTES_MAX + 64 * 1024;
        CatalogServiceClient::new(self.service.clone())
            .max_decoding_message_size(bytes_max)
            .max_encoding_message_size(bytes_max)
    }

    /// Chains.
    pub fn chains(&self) -> ChainServiceClient<Authorized> {
        ChainServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Nodes.
    pub fn nodes(&self) -> NodeServiceClient<Authorized> {
        NodeServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Client keys.
    pub fn keys(&self) -> KeyServiceClient<Authorized> {
        KeyServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// What was observed.
    pub fn status(&self) -> StatusServiceClient<Authorized> {
        StatusServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Waits for an answer, as long as one call may take. Of a stream this is its beginning.
    pub async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_elapsed) => Err(self.late()),
        }
    }

    /// The first message of a watch comes as soon as any answer; the next ones when there is news.
    pub async fn first<T>(&self, stream: &mut Streaming<T>) -> Result<T, Fault> {
        match tokio::time::timeout(self.timeout, stream.message()).await {
            Ok(message) => self.news(message),
            Err(_elapsed) => Err(self.fault(&self.late())),
        }
    }

    /// The next message of a watch, without a limit: nothing new is no fault.
    pub async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<T, Fault> {
        self.news(stream.message().await)
    }

    /// What an error of the wire means.
    pub fn fault(&self, status: &Status) -> Fault {
        fault(status, &self.peer)
    }

    fn news<T>(&self, message: Result<Option<T>, Status>) -> Result<T, Fault> {
        let ended = || {
            Fault::error(format!("the control plane at {} ended the watch", self.peer.server))
                .help("it is probably restarting; start the watch again")
        };
        message.map_err(|status| self.fault(&status))?.ok_or_else(ended)
    }

    fn late(&self) -> Status {
        Status::deadline_exceeded(format!("no answer within {}", humantime::format_duration(self.timeout)))
    }
}

/// Every field of the request that the control plane found fault with.
pub fn violations(status: &Status) -> Vec<FieldViolation> {
    status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default()
}

/// The table of what an error means: exit code, words, advice.
fn fault(status: &Status, peer: &Peer) -> Fault {
    let Peer { server, token_from } = peer;
    let said = status.message();
    match status.code() {
        Code::NotFound => Fault::error(said).exit(Exit::Different),
        Code::Unauthenticated => {
            Fault::error(format!("the control plane at {server} does not know the token from {token_from}"))
                .help(WHERE_TOKENS_ARE)
        }
        Code::PermissionDenied => Fault::error(format!("the token from {token_from} may not do this: {said}")),
        Code::DeadlineExceeded => Fault::error(format!("the control plane at {server} did not answer in time: {said}"))
            .exit(Exit::Timeout)
            .help("allow more time by --timeout, or look at the control plane's log and /readyz"),
        Code::Unavailable => Fault::error(format!("the control plane at {server} cannot answer now: {}", cause(status)))
            .help("look at its log and /readyz; nothing was changed unless it said so, and the call may be repeated"),
        Code::Unimplemented => Fault::error(format!("the control plane at {server} does not know this call: {said}"))
            .help(format!(
                "is this its admin address? if so, it is another version than this sluice ({})",
                env!("CARGO_PKG_VERSION")
            )),
        Code::Cancelled
        | Code::Unknown
        | Code::Internal
        | Code::DataLoss
        | Code::Ok => Fault::error(format!("the call to the control plane at {server} failed: {}", cause(status)))
            .help("is this the address of its admin listener? its log says more"),
        Code::InvalidArgument => {
            let line = |v: FieldViolation| format!("{}: {}", v.field, v.description);
            Fault::error(said).lines(violations(status).into_iter().map(line).collect())
        }
        Code::Aborted
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => Fault::error(said),
    }
}

fn server(given: &str) -> Result<Uri, Fault> {
    let advice = "give a URL such as http://127.0.0.1:7443 by --server or SLUICE_SERVER";
    let refused =
        |why: &str| Fault::error(format!("\"{given}\" is no address of a control plane: {why}")).help(advice);
    let uri: Uri = given.parse().map_err(|cause| refused(&format!("{cause}")))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(refused(&format!("{other}:// is neither http:// nor https://"))),
        None => return Err(refused("http:// or https:// is missing")),
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(refused("it has a path"));
    }
    Ok(uri)
}

fn check_plaintext(uri: &Uri, insecure_plaintext: bool) -> Result<(), Fault> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    if uri.scheme_str() == Some("https") || is_loopback || insecure_plaintext {
        return Ok(());
    }
    Err(Fault::error(format!("the admin token would go in clear to {host}"))
        .help("use https:// (and --ca-file for a private authority), or pass --insecure-plaintext on a trusted network"))
}

/// The token and where it is from. A named file goes before the environment's token.
fn token(args: &ConnectArgs) -> Result<(String, String), Fault> {
    let (text, from) = match (&args.token_file, &args.token) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|cause| {
                Fault::error(format!("cannot read the token file {}: {cause}", path.display()))
                    .help(WHERE_TOKENS_ARE)
            })?;
            (text, path.display().to_string())
        }
        (None, Some(token)) => (token.clone(), "SLUICE_TOKEN".to_owned()),
        (None, None) => return Err(Fault::error("no admin token").help(WHERE_TOKENS_ARE)),
    };
    match text.trim() {
        "" => Err(Fault::error(format!("the token from {from} is empty")).help(WHERE_TOKENS_ARE)),
        token => Ok((token.to_owned(), from)),
    }
}

fn bearer(token: &str, from: &str) -> Result<Bearer, Fault> {
    let mut value = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| {
        Fault::error(format!("what is in {from} is no token: it holds line breaks or control characters"))
            .help(WHERE_TOKENS_ARE)
    })?;
    value.set_sensitive(true);
    Ok(Bearer(value))
}

fn tls(ca_file: Option<&Path>) -> Result<ClientTlsConfig, Fault> {
    let Some(path) = ca_file else {
        return Ok(ClientTlsConfig::new().trust_anchors(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()));
    };
    let pem = std::fs::read(path).map_err(|cause| {
        Fault::error(format!("cannot read the authority's file {}: {cause}", path.display()))
    })?;
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
}

fn unreachable(server: &str, error: &tonic::transport::Error) -> Fault {
    let mut kind = None;
    let mut source = error.source();
    while let Some(link) = source {
        kind = link.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        source = link.source();
    }
    let cause = root_cause(error);
    if kind == Some(ErrorKind::TimedOut) {
        return Fault::error(format!("the control plane at {server} cannot be reached in time"))
            .exit(Exit::Timeout)
            .help(
                "check the address (--server or SLUICE_SERVER) and the network, or allow more by --timeout",
            );
    }
    let help = match kind {
        Some(ErrorKind::ConnectionRefused) => {
            "nothing listens there: is the control plane running? its log and <data-dir>/listen.json name its admin \
             address; pass that by --server or SLUICE_SERVER"
        }
        _ if cause.contains("certificate") => {
            "for a private certificate authority pass its PEM file by --ca-file or SLUICE_CA_FILE, and use a host name \
             that the certificate carries"
        }
        _ => {
            "check the address (--server or SLUICE_SERVER): is it the admin listener, with http or https as it serves?"
        }
    };
    Fault::error(format!("cannot connect to the control plane at {server}: {cause}")).help(help)
}

fn silent(server: &str, timeout: Duration) -> Fault {
    let timeout = humantime::format_duration(timeout);
    Fault::error(format!("no connection to the control plane at {server} within {timeout}"))
        .exit(Exit::Timeout)
        .help("check the address (--server or SLUICE_SERVER) and the network, or allow more by --timeout")
}

fn cause(status: &Status) -> String {
    match status.source() {
        Some(source) => root_cause(source),
        None if status.message().is_empty() => status.code().description().to_owned(),
        None => status.message().to_owned(),
    }
}

fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_types::ErrorDetails;

    fn args(server: &str) -> ConnectArgs {
        ConnectArgs {
            server: server.to_owned(),
            token_file: None,
            token: Some("t".to_owned()),
            ca_file: None,
            timeout: Duration::from_secs(5),
            insecure_plaintext: false,
        }
    }

    async fn refusal(args: ConnectArgs) -> Fault {
        match Connection::open(&args).await {
            Ok(_) => panic!("connected"),
            Err(fault) => fault,
        }
    }

    #[test]
    fn each_code_ends_with_its_exit_code() {
        let peer = Peer { server: "http://h".to_owned(), token_from: "f".to_owned() };
        let table = [
            (Code::NotFound, 1),
            (Code::InvalidArgument, 2),
            (Code::Aborted, 2),
            (Code::Unauthenticated, 2),
            (Code::Unavailable, 2),
            (Code::Internal, 2),
            (Code::ResourceExhausted, 2),
            (Code::DeadlineExceeded, 4),
        ];
        for (code, exit) in table {
            assert_eq!(fault(&Status::new(code, "x"), &peer).exit.code(), exit, "{code:?}");
        }
    }

    #[test]
    fn a_refused_token_names_its_source_and_where_the_right_one_is() {
        let peer = Peer { server: "http://h:1".to_owned(), token_from: "/etc/token".to_owned() };
        let fault = fault(&Status::unauthenticated("no"), &peer);
        assert_eq!(fault.message, "the control plane at http://h:1 does not know the token from /etc/token");
        assert!(fault.help.unwrap().contains("<data-dir>/admin.token"));
    }

    #[test]
    fn violations_of_a_request_are_lines() {
        let peer = Peer { server: "http://h:1".to_owned(), token_from: "f".to_owned() };
        let details = ErrorDetails::with_bad_request_violation("name", "is empty");
        let status = Status::with_error_details(Code::InvalidArgument, "no", details);
        let fault = fault(&status, &peer);
        assert_eq!(fault.lines, ["name: is empty"]);
    }

    #[test]
    fn an_address_that_is_none_is_refused_with_an_example() {
        let cases = [
            ("127.0.0.1:7443", "missing"),
            ("localhost", "missing"),
            ("ftp://h:1", "neither"),
            ("http://h:1/admin", "path"),
            ("http://", ""),
        ];
        for (given, why) in cases {
            let fault = server(given).unwrap_err();
            assert!(fault.message.contains(why), "{given}: {}", fault.message);
            assert!(fault.help.unwrap().contains("http://127.0.0.1:7443"));
        }
    }

    #[test]
    fn a_token_goes_in_clear_to_this_host_alone() {
        let check = |uri: &str, insecure| check_plaintext(&uri.parse().unwrap(), insecure).is_ok();
        for uri in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://cp.example:1"] {
            assert!(check(uri, false), "{uri}");
        }
        for uri in ["http://cp.example:1", "http://10.0.0.1:1", "http://localhost.example:1"] {
            assert!(!check(uri, false), "{uri}");
            assert!(check(uri, true), "{uri}");
        }
    }

    #[tokio::test]
    async fn a_missing_or_empty_token_says_where_it_is_to_be_found() {
        let none = refusal(ConnectArgs { token: None, ..args("http://127.0.0.1:1") }).await;
        assert_eq!(none.message, "no admin token");
        let empty =
            refusal(ConnectArgs { token: Some(" \n".to_owned()), ..args("http://127.0.0.1:1") }).await;
        assert_eq!(empty.message, "the token from SLUICE_TOKEN is empty");
        let unread = ConnectArgs { token_file: Some("/no/such/token".into()), ..args("http://127.0.0.1:1") };
        let unread = refusal(unread).await;
        assert!(
            unread.message.starts_with("cannot read the token file /no/such/token: "),
            "{}",
            unread.message
        );
        for fault in [none, empty, unread] {
            assert!(fault.help.unwrap().contains("admin.token"));
            assert_eq!(fault.exit, Exit::Error);
        }
    }

    #[tokio::test]
    async fn a_refused_connection_names_the_address_and_asks_whether_it_runs() {
        // Bound and closed again: nobody listens there now.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let fault = refusal(args(&format!("http://127.0.0.1:{port}"))).await;
        assert!(fault.message.contains(&format!("http://127.0.0.1:{port}")), "{}", fault.message);
        assert!(fault.message.contains("refused"), "{}", fault.message);
        assert!(fault.help.unwrap().contains("is the control plane running?"));
        assert_eq!(fault.exit, Exit::Error);
    }
}
