//! What the control plane is told: flags over environment over the file of `--config` over defaults,
//! checked as a whole. Every fault is reported, then the process stops. Nobody else reads settings.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use common::listen::check_plaintext;
pub use common::settings::{ConfigFault, TlsFiles};
use common::settings::{Faults, Layered};
use common::telemetry::LogFormat;
use serde::{Deserialize, Serialize};

const ADMIN_LISTEN: &str = "127.0.0.1:7443";
const FLEET_LISTEN: &str = "127.0.0.1:7444";
const HTTP_LISTEN: &str = "127.0.0.1:7480";
const DATA_DIR: &str = "sluice-control-plane";

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
    /// PEM file with the certificate chain of the three listeners
    #[arg(long, env = "SLUICE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the key of that certificate
    #[arg(long, env = "SLUICE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
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

/// Settings that hold together.
#[derive(Debug, Clone)]
pub struct Config {
    /// Everything that outlives the process.
    pub data_dir: PathBuf,
    /// Where operators call.
    pub admin_listen: SocketAddr,
    /// Where nodes call.
    pub fleet_listen: SocketAddr,
    /// Where the page is.
    pub http_listen: SocketAddr,
    /// A PostgreSQL; `None`: SQLite in the data folder.
    pub database_url: Option<DatabaseUrl>,
    /// Certificate and key of the listeners.
    pub tls: Option<TlsFiles>,
    /// Whether a new epoch begins.
    pub new_epoch: bool,
    /// Look of log lines.
    pub log_format: LogFormat,
}

/// Where a PostgreSQL is, and how to get in. Never printed.
#[derive(Clone)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL, for the database's driver alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://…")
    }
}

impl Config {
    /// Reads and checks the settings of `args` (the first is the program's name), of the environment
    /// and of the file that they name.
    pub fn load(args: impl IntoIterator<Item = OsString>) -> Result<Config, ConfigFault> {
        Config::check(common::settings::load(args)?)
    }

    /// Checks settings and fills in what is not given.
    pub fn check(settings: Settings) -> Result<Config, ConfigFault> {
        let mut faults = Faults::default();
        let admin_listen = faults.address("--admin-listen", settings.admin_listen, ADMIN_LISTEN);
        let fleet_listen = faults.address("--fleet-listen", settings.fleet_listen, FLEET_LISTEN);
        let http_listen = faults.address("--http-listen", settings.http_listen, HTTP_LISTEN);
        let tls = faults.tls_files(settings.tls_cert, settings.tls_key);
        let insecure = settings.insecure_plaintext.unwrap_or(false);
        for (name, at) in [("admin", admin_listen), ("fleet", fleet_listen), ("http", http_listen)] {
            if let Err(refused) = check_plaintext(name, at, tls.is_some(), insecure) {
                faults.add::<()>(refused.to_string());
            }
        }
        let is_postgres = |url: &str| url.starts_with("postgres://") || url.starts_with("postgresql://");
        let database_url = settings.database_url.filter(|url| !url.is_empty());
        if database_url.as_deref().is_some_and(|url| !is_postgres(url)) {
            faults.add::<()>("--database-url must begin with postgres://; leave it out for SQLite");
        }
        faults.finish(Config {
            data_dir: settings.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            admin_listen,
            fleet_listen,
            http_listen,
            database_url: database_url.map(DatabaseUrl),
            tls,
            new_epoch: settings.new_epoch.unwrap_or(false),
            log_format: settings.log_format.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str]) -> Result<Config, ConfigFault> {
        let settings = <Settings as clap::Parser>::parse_from([&["control-plane"], args].concat());
        Config::check(settings)
    }

    #[test]
    fn without_settings_everything_stands_on_loopback() {
        let config = check(&[]).unwrap();
        let ports = [config.admin_listen, config.fleet_listen, config.http_listen].map(|a| a.port());
        assert_eq!(ports, [7443, 7444, 7480]);
        assert!(config.admin_listen.ip().is_loopback() && config.database_url.is_none());
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let fault = check(&[
            "--admin-listen",
            "localhost",
            "--fleet-listen",
            "0.0.0.0:7444",
            "--tls-cert",
            "c.pem",
            "--database-url",
            "mysql://x",
        ]);
        let text = fault.unwrap_err().to_string();
        for part in [
            "--admin-listen \"localhost\"",
            "fleet listener on 0.0.0.0:7444",
            "--tls-cert needs",
            "--database-url",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_proxy_in_front_may_be_spoken_to_in_plaintext() {
        assert!(check(&["--admin-listen", "0.0.0.0:1"]).is_err());
        assert!(check(&["--admin-listen", "0.0.0.0:1", "--insecure-plaintext"]).is_ok());
        assert!(check(&["--admin-listen", "0.0.0.0:1", "--tls-cert", "c", "--tls-key", "k"]).is_ok());
    }

    #[test]
    fn the_databases_password_is_not_printed() {
        let config = check(&["--database-url", "postgres://me:hunter2@db/sluice"]).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.database_url.unwrap().expose(), "postgres://me:hunter2@db/sluice");
    }
}
