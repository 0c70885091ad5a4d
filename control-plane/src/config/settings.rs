//! Every flag, variable and key of a settings file, as it was given.

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use common::settings::Layered;
use common::telemetry::LogFormat;
use serde::{Deserialize, Serialize};

/// The control plane of a Sluice fleet: keeps the catalog, pushes it to the gateway nodes, adds up what
/// they observe.
#[derive(Clone, Default, clap::Parser, Serialize, Deserialize)]
#[command(name = "control-plane", version)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Folder for the tokens, listen.json and, without --database-url, the database [default: sluice-control-plane]
    #[arg(long, env = "SLUICE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where operators call: gRPC [default: 127.0.0.1:7443]; port 0 picks a free one
    #[arg(long, env = "SLUICE_ADMIN_LISTEN", value_name = "ADDRESS")]
    pub admin_listen: Option<String>,
    /// Where nodes call: gRPC [default: 127.0.0.1:7444]
    #[arg(long, env = "SLUICE_FLEET_LISTEN", value_name = "ADDRESS")]
    pub fleet_listen: Option<String>,
    /// Where the status page, /api, /healthz, /readyz and /metrics are [default: 127.0.0.1:7480]
    #[arg(long, env = "SLUICE_HTTP_LISTEN", value_name = "ADDRESS")]
    pub http_listen: Option<String>,
    /// postgres://… for several control planes [default: SQLite in the data folder]
    #[arg(long, env = "SLUICE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// The same database without a pooler between that hands out connections by transaction (pgbouncer): a second way to it,
    /// by which changes of other control planes are heard of at once [default: --database-url]
    #[arg(long, env = "SLUICE_DATABASE_LISTEN_URL", value_name = "URL", hide_env_values = true)]
    pub database_listen_url: Option<String>,
    /// File with the token of the first admin [default: admin.token in the data folder, made at the first start];
    /// the token itself may stand in SLUICE_ADMIN_TOKEN
    #[arg(long, env = "SLUICE_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// The token itself. Only by the environment: a flag would show in the list of processes.
    #[arg(skip)]
    #[serde(skip)]
    pub admin_token: Option<String>,
    /// File with the token that all nodes share [default: node.token in the data folder, made at the first start];
    /// several control planes are given the same
    #[arg(long, env = "SLUICE_NODE_TOKEN_FILE", value_name = "FILE")]
    pub node_token_file: Option<PathBuf>,
    /// URL of an OIDC issuer whose tokens are taken beside our own: https, or http on loopback
    #[arg(long, env = "SLUICE_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,
    /// The audience that its tokens must be made for
    #[arg(long, env = "SLUICE_OIDC_AUDIENCE", value_name = "AUDIENCE")]
    pub oidc_audience: Option<String>,
    /// The claim of its tokens that says the role: a text or a list [default: roles]
    #[arg(long, env = "SLUICE_OIDC_ROLE_CLAIM", value_name = "CLAIM")]
    pub oidc_role_claim: Option<String>,
    /// Which value of that claim means which role; several with commas [default: the names of the roles]
    #[arg(long, env = "SLUICE_OIDC_ROLE_MAP", value_name = "VALUE=ROLE", value_delimiter = ',')]
    pub oidc_role_map: Option<Vec<String>>,
    /// Off loopback, show the models on the status page and in the JSON behind it to everybody
    #[arg(long, env = "SLUICE_PUBLIC_STATUS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub public_status: Option<bool>,
    /// With --public-status, show everybody the names of channels and what they did, too
    #[arg(long, env = "SLUICE_PUBLIC_CHANNELS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub public_channels: Option<bool>,
    /// PEM file with the certificate chain of the three listeners
    #[arg(long, env = "SLUICE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the key of that certificate
    #[arg(long, env = "SLUICE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// PEM file with the certificate authorities of the nodes, the one that signs first [default: one of its own,
    /// ca.pem in the data folder; none with --database-url]
    #[arg(long, env = "SLUICE_CA_CERT", value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// PEM file with the key of the first of them
    #[arg(long, env = "SLUICE_CA_KEY", value_name = "FILE")]
    pub ca_key: Option<PathBuf>,
    /// Host names and addresses for a certificate that the control plane's own authority signs, instead of --tls-cert
    #[arg(long, env = "SLUICE_CA_SERVER_NAMES", value_name = "NAME", value_delimiter = ',')]
    pub ca_server_names: Option<Vec<String>>,
    /// How long a node's certificate lives, 5s to 90d; it is renewed at half of that [default: 7d]
    #[arg(long, env = "SLUICE_NODE_CERTIFICATE_LIFE", value_name = "DURATION")]
    pub node_certificate_life: Option<String>,
    /// File with 32 random bytes that secrets of channels are sealed with at rest; of several the first seals and all open
    #[arg(long, env = "SLUICE_SECRET_KEY_FILE", value_name = "FILE", value_delimiter = ',')]
    pub secret_key_file: Option<Vec<PathBuf>>,
    /// Age at which a node's stream is drained, so that nodes spread over control planes, 1s to 24h, give or take a
    /// fifth [default: 30m]
    #[arg(long, env = "SLUICE_STREAM_AGE", value_name = "DURATION")]
    pub stream_age: Option<String>,
    /// How long records of requests are kept, 1h to 400d [default: 7d]
    #[arg(long, env = "SLUICE_RECORDS_KEPT", value_name = "DURATION")]
    pub records_kept: Option<String>,
    /// Which share is kept, 0 to 1, of the records of requests that their first channel served at once; every other one is
    /// kept [default: 1]
    #[arg(long, env = "SLUICE_RECORDS_SHARE", value_name = "SHARE")]
    pub records_share: Option<String>,
    /// TOML file that says who is told of alerts and which URLs periodic jobs ping
    #[arg(long, env = "SLUICE_ALERTS_FILE", value_name = "FILE")]
    pub alerts_file: Option<PathBuf>,
    /// Where the runbooks are that alerts link to [default: deploy/runbooks]
    #[arg(long, env = "SLUICE_RUNBOOKS_URL", value_name = "URL")]
    pub runbooks_url: Option<String>,
    /// Plaintext off loopback: for a proxy in front that terminates TLS
    #[arg(long, env = "SLUICE_INSECURE_PLAINTEXT", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub insecure_plaintext: Option<bool>,
    /// For the first start after a backup was restored: begins a new epoch, so that nodes take what the
    /// backup holds although they run something newer
    #[arg(long, env = "SLUICE_NEW_EPOCH", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub new_epoch: Option<bool>,
    /// Look of log lines [default: text]
    #[arg(long, env = "SLUICE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// TOML file with these settings, named as the flags
    #[arg(long, env = "SLUICE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
}

impl Layered for Settings {
    fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}
