//! What the control plane is told: flags over environment over the file of `--config` over defaults,
//! checked as a whole. Every fault is reported, then the process stops. Nobody else reads settings.

mod settings;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use common::limits::{NODE_CERTIFICATE_LIFE, STREAM_AGE};
use common::listen::check_plaintext;
use common::settings::Faults;
pub use common::settings::{ConfigFault, TlsFiles};
use common::telemetry::LogFormat;

use crate::access::Role;
pub use crate::access::oidc::Trust;
use crate::access::oidc::is_safe;
use crate::folder::TOKEN_CHARS_MIN;
use crate::records::Keeping;
pub use settings::Settings;

const ADMIN_LISTEN: &str = "127.0.0.1:7443";
const FLEET_LISTEN: &str = "127.0.0.1:7444";
const HTTP_LISTEN: &str = "127.0.0.1:7480";
/// Where they are in the repository.
const RUNBOOKS_URL: &str = "deploy/runbooks";
const DATA_DIR: &str = "sluice-control-plane";

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
    pub database_url: Option<Hidden>,
    /// Where changes in it are heard of; `None`: there.
    pub database_listen_url: Option<Hidden>,
    /// The token of the first admin; `None`: that of the data folder.
    pub admin_token: Option<AdminToken>,
    /// The file of the token that all nodes share; `None`: that of the data folder.
    pub node_token_file: Option<PathBuf>,
    /// The issuer whose tokens are taken, if there is one.
    pub oidc: Option<Trust>,
    /// Whether everybody may see the status of the models.
    pub public_status: bool,
    /// Whether everybody may see their channels, too.
    pub public_channels: bool,
    /// Certificate and key of the listeners.
    pub tls: Option<TlsFiles>,
    /// The authorities of nodes, and the key of the first; `None`: of its own.
    pub authority: Option<TlsFiles>,
    /// Names of a certificate for the listeners that the authority signs; empty where `tls` is given, or none is.
    pub server_names: Vec<String>,
    /// How long certificates live that the authority signs.
    pub node_certificate_life: Duration,
    /// Keys of secrets at rest, the one that seals first.
    pub secret_key_files: Vec<PathBuf>,
    /// Age at which a node's stream is drained.
    pub stream_age: Duration,
    /// Which records of requests are kept.
    pub keeping: Keeping,
    /// Who is told of alerts and of beats; `None`: nobody.
    pub alerts_file: Option<PathBuf>,
    /// Where runbooks are: what alerts link to.
    pub runbooks_url: String,
    /// Whether a new epoch begins.
    pub new_epoch: bool,
    /// Look of log lines.
    pub log_format: LogFormat,
}

/// Where the token of the first admin is.
#[derive(Debug, Clone)]
pub enum AdminToken {
    /// In a file.
    File(PathBuf),
    /// Here.
    Text(Hidden),
}

/// A setting that is never printed: a token; where a PostgreSQL is and how to get in.
#[derive(Clone)]
pub struct Hidden(String);

impl Hidden {
    /// The setting, for the one who needs it alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Hidden {
    /// Takes it.
    pub fn new(text: String) -> Self {
        Hidden(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Config {
    /// Reads and checks the settings of `args` (the first is the program's name), of the environment
    /// and of the file that they name.
    pub fn load(args: impl IntoIterator<Item = OsString>) -> Result<Config, ConfigFault> {
        let mut settings: Settings = common::settings::load(args)?;
        settings.admin_token = std::env::var("SLUICE_ADMIN_TOKEN").ok();
        Config::check(settings)
    }

    /// Checks settings and fills in what is not given.
    pub fn check(settings: Settings) -> Result<Config, ConfigFault> {
        let mut faults = Faults::default();
        let admin_listen = faults.address("--admin-listen", settings.admin_listen, ADMIN_LISTEN);
        let fleet_listen = faults.address("--fleet-listen", settings.fleet_listen, FLEET_LISTEN);
        let http_listen = faults.address("--http-listen", settings.http_listen, HTTP_LISTEN);
        let tls = faults.tls_files(settings.tls_cert, settings.tls_key);
        let authority = faults.file_pair(("--ca-cert", settings.ca_cert), ("--ca-key", settings.ca_key));
        let names = settings.ca_server_names.unwrap_or_default().into_iter();
        let names = names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let server_names: Vec<String> = names.collect();
        if tls.is_some() && !server_names.is_empty() {
            faults.add::<()>("--ca-server-names is for listeners without --tls-cert");
        }
        if tls.is_none() && server_names.is_empty() && authority.is_some() {
            faults.add::<()>("--ca-cert needs TLS: give --tls-cert and --tls-key, or --ca-server-names");
        }
        let has_tls = tls.is_some() || !server_names.is_empty();
        let insecure = settings.insecure_plaintext.unwrap_or(false);
        for (name, at) in [("admin", admin_listen), ("fleet", fleet_listen), ("http", http_listen)] {
            if let Err(refused) = check_plaintext(name, at, has_tls, insecure) {
                faults.add::<()>(refused.to_string());
            }
        }
        let is_postgres = |url: &str| url.starts_with("postgres://") || url.starts_with("postgresql://");
        let database_url = settings.database_url.filter(|url| !url.is_empty());
        if database_url.as_deref().is_some_and(|url| !is_postgres(url)) {
            faults.add::<()>("--database-url must begin with postgres://; leave it out for SQLite");
        }
        let database_listen_url = settings.database_listen_url.filter(|url| !url.is_empty());
        if database_listen_url.as_deref().is_some_and(|url| !is_postgres(url) || database_url.is_none()) {
            faults.add::<()>(
                "--database-listen-url must begin with postgres://, and needs --database-url for the same database",
            );
        }
        let given = |path: &PathBuf| !path.as_os_str().is_empty();
        let text = settings.admin_token.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let admin_token = match (settings.admin_token_file.filter(given), text) {
            (Some(path), _) => Some(AdminToken::File(path)),
            (None, Some(text)) if text.len() < TOKEN_CHARS_MIN => {
                faults.add(format!("SLUICE_ADMIN_TOKEN has less than {TOKEN_CHARS_MIN} characters"))
            }
            (None, text) => text.map(|text| AdminToken::Text(Hidden(text))),
        };
        if database_url.is_some() && authority.is_none() && !server_names.is_empty() {
            faults.add::<()>(
                "--ca-server-names with --database-url needs --ca-cert and --ca-key: control planes that share a \
                 database need one authority",
            );
        }
        let life = (Duration::from_secs(5), Duration::from_secs(90 * 24 * 60 * 60));
        let node_certificate_life = faults.duration(
            "--node-certificate-life",
            settings.node_certificate_life,
            NODE_CERTIFICATE_LIFE,
            life,
        );
        let ages = (Duration::from_secs(1), Duration::from_secs(24 * 60 * 60));
        let stream_age = faults.duration("--stream-age", settings.stream_age, STREAM_AGE, ages);
        let keeping = Keeping::default();
        let ages = (Duration::from_secs(60 * 60), Duration::from_secs(400 * 24 * 60 * 60));
        let keeping = Keeping {
            age: faults.duration("--records-kept", settings.records_kept, keeping.age, ages),
            share: faults.share("--records-share", settings.records_share, keeping.share),
        };
        let oidc = trust(
            &mut faults,
            settings.oidc_issuer,
            settings.oidc_audience,
            settings.oidc_role_claim,
            settings.oidc_role_map,
        );
        let public_status = settings.public_status.unwrap_or(false);
        let public_channels = settings.public_channels.unwrap_or(false);
        if public_channels && !public_status {
            faults.add::<()>(
                "--public-channels shows channels on the page that --public-status opens: give both",
            );
        }
        faults.finish(Config {
            admin_token,
            node_token_file: settings.node_token_file.filter(given),
            oidc,
            public_status,
            public_channels,
            data_dir: settings.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            admin_listen,
            fleet_listen,
            http_listen,
            database_url: database_url.map(Hidden),
            database_listen_url: database_listen_url.map(Hidden),
            tls,
            authority,
            server_names,
            node_certificate_life,
            secret_key_files: settings
                .secret_key_file
                .unwrap_or_default()
                .into_iter()
                .filter(given)
                .collect(),
            stream_age,
            keeping,
            alerts_file: settings.alerts_file.filter(given),
            runbooks_url: settings
                .runbooks_url
                .filter(|url| !url.is_empty())
                .unwrap_or_else(|| RUNBOOKS_URL.to_owned()),
            new_epoch: settings.new_epoch.unwrap_or(false),
            log_format: settings.log_format.unwrap_or_default(),
        })
    }
}

/// Reads what is said of an OIDC issuer: all of it, or nothing.
fn trust(
    faults: &mut Faults,
    issuer: Option<String>,
    audience: Option<String>,
    role_claim: Option<String>,
    role_map: Option<Vec<String>>,
) -> Option<Trust> {
    let given = |text: &String| !text.is_empty();
    let (issuer, audience, role_claim) =
        (issuer.filter(given), audience.filter(given), role_claim.filter(given));
    let map = role_map.unwrap_or_default().into_iter().filter(given).collect::<Vec<_>>();
    let Some(issuer) = issuer else {
        if audience.is_some() || role_claim.is_some() || !map.is_empty() {
            return faults.add("--oidc-audience, --oidc-role-claim and --oidc-role-map need --oidc-issuer");
        }
        return None;
    };
    if !is_safe(&issuer) {
        faults.add::<()>(format!(
            "--oidc-issuer {issuer:?} is no https:// URL, nor an http:// one on loopback"
        ));
    }
    let Some(audience) = audience else { return faults.add("--oidc-issuer needs --oidc-audience") };
    let mut roles: Vec<(String, Role)> = Vec::new();
    for entry in &map {
        let read =
            entry.rsplit_once('=').and_then(|(value, role)| Some((value.to_owned(), Role::named(role)?)));
        match read {
            Some((value, role)) if !value.is_empty() => roles.push((value, role)),
            _ => {
                faults.add::<()>(format!(
                    "--oidc-role-map {entry:?} is no VALUE=ROLE with viewer, operator or admin"
                ));
            }
        }
    }
    if map.is_empty() {
        roles = Role::ALL.map(|role| (role.to_string(), role)).into();
    }
    Some(Trust { issuer, audience, role_claim: role_claim.unwrap_or_else(|| "roles".to_owned()), roles })
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
    fn the_first_admins_token_may_be_given_and_a_file_goes_first() {
        let settings = |file: Option<&str>, text: Option<&str>| Settings {
            admin_token_file: file.map(PathBuf::from),
            admin_token: text.map(ToOwned::to_owned),
            ..Settings::default()
        };
        let check = |file, text| Config::check(settings(file, text));
        assert!(check(None, None).unwrap().admin_token.is_none());
        assert!(check(Some(""), Some(" ")).unwrap().admin_token.is_none(), "set to nothing is not set");
        let long = "a-token-of-some-length";
        assert!(matches!(check(Some("f"), Some(long)).unwrap().admin_token, Some(AdminToken::File(_))));
        let config = check(None, Some(long)).unwrap();
        assert!(!format!("{config:?}").contains(long));
        assert!(matches!(config.admin_token, Some(AdminToken::Text(text)) if text.expose() == long));
        let short = check(None, Some("guess")).unwrap_err().to_string();
        assert!(short.contains("SLUICE_ADMIN_TOKEN has less than 16 characters"), "{short}");
        assert!(!short.contains("guess"));
    }

    #[test]
    fn the_token_of_all_nodes_may_be_given_as_a_file() {
        assert_eq!(check(&[]).unwrap().node_token_file, None);
        let unset = Settings { node_token_file: Some(PathBuf::new()), ..Settings::default() };
        assert_eq!(Config::check(unset).unwrap().node_token_file, None, "set to nothing is not set");
        let config = check(&["--node-token-file", "shared"]).unwrap();
        assert_eq!(config.node_token_file, Some("shared".into()));
    }

    #[test]
    fn an_issuer_is_trusted_with_all_that_belongs_to_it_or_not_at_all() {
        let of = |args: &[&str]| check(args).map(|config| config.oidc);
        assert_eq!(of(&[]).unwrap(), None);
        let https = ["--oidc-issuer", "https://issuer.example", "--oidc-audience", "sluice"];
        let trust = of(&https).unwrap().unwrap();
        assert_eq!((trust.role_claim.as_str(), trust.roles.len()), ("roles", 3));
        let mapped =
            [&https[..], &["--oidc-role-map", "a=b=admin,dev=viewer", "--oidc-role-claim", "groups"]];
        let trust = of(&mapped.concat()).unwrap().unwrap();
        assert_eq!(trust.roles, [("a=b".to_owned(), Role::Admin), ("dev".to_owned(), Role::Viewer)]);
        for (args, part) in [
            (&["--oidc-audience", "sluice"][..], "need --oidc-issuer"),
            (&["--oidc-issuer", "https://issuer.example"], "needs --oidc-audience"),
            (&["--oidc-issuer", "http://issuer.example", "--oidc-audience", "a"], "no https:// URL"),
            (&[&https[..], &["--oidc-role-map", "x=root"]].concat(), "\"x=root\" is no VALUE=ROLE"),
        ] {
            let fault = of(args).unwrap_err().to_string();
            assert!(fault.contains(part), "{part} is not in {fault}");
        }
    }

    #[test]
    fn which_records_are_kept_may_be_said() {
        assert_eq!(check(&[]).unwrap().keeping, Keeping::default());
        let keeping = check(&["--records-kept", "30d", "--records-share", "0.05"]).unwrap().keeping;
        assert_eq!(keeping, Keeping { age: Duration::from_secs(30 * 24 * 60 * 60), share: 0.05 });
        for args in [["--records-kept", "1m"], ["--records-share", "1.5"], ["--records-share", "5%"]] {
            assert!(check(&args).unwrap_err().to_string().contains(args[0]), "{args:?}");
        }
    }

    #[test]
    fn the_databases_password_is_not_printed() {
        let config = check(&["--database-url", "postgres://me:hunter2@db/sluice"]).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.database_url.unwrap().expose(), "postgres://me:hunter2@db/sluice");
    }

    #[test]
    fn changes_are_heard_of_in_the_database_that_they_are_made_in() {
        let url = ["--database-url", "postgres://pooler/sluice"];
        let listen = ["--database-listen-url", "postgres://db/sluice"];
        assert_eq!(
            check(&[url, listen].concat()).unwrap().database_listen_url.unwrap().expose(),
            "postgres://db/sluice"
        );
        for args in [&listen[..], &[&url[..], &["--database-listen-url", "mysql://x"]].concat()] {
            assert!(check(args).unwrap_err().to_string().contains("--database-listen-url"), "{args:?}");
        }
    }
}
