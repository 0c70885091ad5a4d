//! Calls to the control plane: a connection, the clients over it, and how long each call may take. Where
//! and as whom is `call::reach`'s matter, what an error means `call::refusal`'s.

mod reach;
mod refusal;

use std::future::Future;
use std::time::Duration;

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel as Conn, Endpoint};
use tonic::{Response, Status, Streaming};

use common::limits::{CATALOG_BYTES_MAX, HEARTBEAT};
use common::pb::admin::access_service_client::AccessServiceClient;
use common::pb::admin::alert_service_client::AlertServiceClient;
use common::pb::admin::audit_service_client::AuditServiceClient;
use common::pb::admin::authority_service_client::AuthorityServiceClient;
use common::pb::admin::backup_service_client::BackupServiceClient;
use common::pb::admin::catalog_service_client::CatalogServiceClient;
use common::pb::admin::chain_service_client::ChainServiceClient;
use common::pb::admin::doctor_service_client::DoctorServiceClient;
use common::pb::admin::key_service_client::KeyServiceClient;
use common::pb::admin::node_service_client::NodeServiceClient;
use common::pb::admin::request_service_client::RequestServiceClient;
use common::pb::admin::rollout_service_client::RolloutServiceClient;
use common::pb::admin::secret_service_client::SecretServiceClient;
use common::pb::admin::status_service_client::StatusServiceClient;
use common::pb::admin::token_service_client::TokenServiceClient;

use crate::args::ConnectArgs;
use crate::fault::Fault;
use reach::Bearer;
use refusal::Peer;

/// The faults of a catalog come home in one header, and there may be hundreds of them.
const ERROR_HEADERS_BYTES_MAX: u32 = 1024 * 1024;

/// A thousand entries with long values.
const AUDIT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a request is sent through: the connection, with the token on each request.
pub type Authorized = InterceptedService<Conn, Bearer>;

/// An open connection to a control plane.
pub struct Connection {
    service: Authorized,
    timeout: Duration,
    peer: Peer,
}

impl Connection {
    /// Reads the token and connects.
    pub async fn open(args: &ConnectArgs) -> Result<Self, Fault> {
        let uri = reach::server(&args.server)?;
        reach::check_plaintext(&uri, args.insecure_plaintext)?;
        let (token, token_from) = reach::token(args)?;
        let bearer = Bearer::new(&token, &token_from)?;
        let mut endpoint = Endpoint::from(uri.clone())
            .connect_timeout(args.timeout)
            .http2_keep_alive_interval(HEARTBEAT)
            .keep_alive_timeout(HEARTBEAT)
            .http2_max_header_list_size(ERROR_HEADERS_BYTES_MAX)
            .tcp_nodelay(true);
        if uri.scheme_str() == Some("https") {
            let tls = reach::tls(args.ca_file.as_deref())?;
            endpoint = endpoint.tls_config(tls).map_err(|cause| refusal::no_tls(&cause))?;
        }
        let conn = match tokio::time::timeout(args.timeout, endpoint.connect()).await {
            Ok(Ok(conn)) => conn,
            Ok(Err(cause)) => return Err(refusal::unreachable(&args.server, &cause)),
            Err(_elapsed) => return Err(refusal::silent(&args.server, args.timeout)),
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

    /// Backups.
    pub fn backups(&self) -> BackupServiceClient<Authorized> {
        BackupServiceClient::new(self.service.clone())
    }

    /// Chains.
    pub fn chains(&self) -> ChainServiceClient<Authorized> {
        ChainServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Nodes.
    pub fn nodes(&self) -> NodeServiceClient<Authorized> {
        NodeServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// What is wrong.
    pub fn doctor(&self) -> DoctorServiceClient<Authorized> {
        DoctorServiceClient::new(self.service.clone())
    }

    /// Rollouts.
    pub fn rollouts(&self) -> RolloutServiceClient<Authorized> {
        RolloutServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Credentials of channels.
    pub fn secrets(&self) -> SecretServiceClient<Authorized> {
        SecretServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Client keys.
    pub fn keys(&self) -> KeyServiceClient<Authorized> {
        KeyServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Tokens of operators.
    pub fn access(&self) -> AccessServiceClient<Authorized> {
        AccessServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// The audit log.
    pub fn audit(&self) -> AuditServiceClient<Authorized> {
        AuditServiceClient::new(self.service.clone()).max_decoding_message_size(AUDIT_BYTES_MAX)
    }

    /// Tokens for enrolment.
    pub fn tokens(&self) -> TokenServiceClient<Authorized> {
        TokenServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Certificate authorities.
    pub fn authorities(&self) -> AuthorityServiceClient<Authorized> {
        AuthorityServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Alerts.
    pub fn alerts(&self) -> AlertServiceClient<Authorized> {
        AlertServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
    }

    /// Records of requests.
    pub fn requests(&self) -> RequestServiceClient<Authorized> {
        RequestServiceClient::new(self.service.clone()).max_decoding_message_size(CATALOG_BYTES_MAX)
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

    /// The next message of a watch, without a limit: nothing new is no fault. `None` after Ctrl-C,
    /// which is how a watch ends.
    pub async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, Fault> {
        tokio::select! {
            message = stream.message() => self.news(message).map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    }

    /// The next message of a transfer, which comes as soon as any answer. `None` at its end.
    pub async fn part<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, Fault> {
        let message = tokio::time::timeout(self.timeout, stream.message()).await;
        message.unwrap_or_else(|_elapsed| Err(self.late())).map_err(|status| self.fault(&status))
    }

    /// What an error of the wire means.
    pub fn fault(&self, status: &Status) -> Fault {
        refusal::fault(status, &self.peer)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Exit;

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
