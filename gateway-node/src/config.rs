//! What the node is told: flags over environment over the file of `--config` over defaults, checked
//! as a whole. Every fault is reported, then the process stops. Nobody else reads settings.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use common::id::NodeId;
use common::label::{self, Labels};
use common::limits::{DRAIN_DELAY, SHUTDOWN_GRACE, WINDOW_LENGTH};
use common::listen::check_plaintext;
pub use common::settings::{ConfigFault, TlsFiles};
use common::settings::{Faults, Layered};
use common::telemetry::LogFormat;
use http::Uri;
use serde::{Deserialize, Serialize};

const DATA_LISTEN: &str = "127.0.0.1:8080";
const OPS_LISTEN: &str = "127.0.0.1:9090";
const CONTROL_PLANE: &str = "http://127.0.0.1:7444";
const DATA_DIR: &str = "sluice-node";

/// A gateway node of a Sluice fleet: serves applications, learns what to serve from the control plane.
#[derive(Debug, Clone, Default, clap::Parser, Serialize, Deserialize)]
#[command(name = "gateway-node", version)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Name of this node in the fleet [default: a UUID kept in the data folder]
    #[arg(long, env = "SLUICE_NODE_ID")]
    pub node_id: Option<String>,
    /// Fleet addresses of the control plane, tried in turn [default: http://127.0.0.1:7444]
    #[arg(long, env = "SLUICE_CONTROL_PLANE", value_name = "URL", value_delimiter = ',')]
    pub control_plane: Option<Vec<String>>,
    /// PEM file with the authorities to trust for an https control plane [default: the public ones]
    #[arg(long, env = "SLUICE_CONTROL_PLANE_CA", value_name = "FILE")]
    pub control_plane_ca: Option<PathBuf>,
    /// File with a token: of `sluice tokens create`, or the one that the control plane wrote for all nodes
    /// (node.token in its data folder). Over TLS a node enrols with it, and needs it no more
    #[arg(long, env = "SLUICE_NODE_TOKEN_FILE", value_name = "FILE")]
    pub node_token_file: Option<PathBuf>,
    /// Folder for the last known good config and for counts that were not yet reported [default: sluice-node]
    #[arg(long, env = "SLUICE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where applications call [default: 127.0.0.1:8080]; port 0 picks a free one
    #[arg(long, env = "SLUICE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where /healthz, /readyz, /metrics and /debug/chains are [default: 127.0.0.1:9090]
    #[arg(long, env = "SLUICE_OPS_LISTEN", value_name = "ADDRESS")]
    pub ops_listen: Option<String>,
    /// PEM file with the certificate chain of both listeners; ops stays plaintext on loopback
    #[arg(long, env = "SLUICE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the key of that certificate
    #[arg(long, env = "SLUICE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Plaintext off loopback, listeners and control plane alike: for a proxy in front that terminates TLS
    #[arg(long, env = "SLUICE_INSECURE_PLAINTEXT", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub insecure_plaintext: Option<bool>,
    /// Serve callers without a key while no key exists; only for a data listener on loopback
    #[arg(long, env = "SLUICE_ALLOW_ANONYMOUS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub allow_anonymous: Option<bool>,
    /// Labels by which operators choose this node, several with commas
    #[arg(long = "label", env = "SLUICE_LABELS", value_name = "NAME=VALUE", value_delimiter = ',')]
    pub labels: Option<Vec<String>>,
    /// How long new requests are served on at shutdown while /readyz says no already, for balancers that ask it to
    /// notice, 0s to 5m [default: 5s]
    #[arg(long, env = "SLUICE_DRAIN_DELAY", value_name = "DURATION")]
    pub drain_delay: Option<String>,
    /// How long requests in flight may take at shutdown, 0s to 1h [default: 30s]
    #[arg(long, env = "SLUICE_SHUTDOWN_GRACE", value_name = "DURATION")]
    pub shutdown_grace: Option<String>,
    /// How often counters are sealed and reported, 100ms to 5m [default: 10s]
    #[arg(long, env = "SLUICE_WINDOW", value_name = "DURATION")]
    pub window: Option<String>,
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
    /// Name of this node; `None`: a UUID kept in the data folder.
    pub node_id: Option<NodeId>,
    /// By which operators choose this node.
    pub labels: Labels,
    /// Fleet addresses of the control plane, at least one.
    pub control_planes: Vec<Uri>,
    /// The authorities to trust for them; `None`: the public ones.
    pub control_plane_ca: Option<PathBuf>,
    /// The token's file; read at each connect without a certificate, so that it may change or come later.
    pub token_file: Option<PathBuf>,
    /// Everything that outlives the process.
    pub data_dir: PathBuf,
    /// Where applications call.
    pub listen: SocketAddr,
    /// Where operators look.
    pub ops_listen: SocketAddr,
    /// Certificate and key of the listeners.
    pub tls: Option<TlsFiles>,
    /// Whether callers without a key are served while no key exists.
    pub allow_anonymous: bool,
    /// How long a node that is asked for its readiness serves on after it said no.
    pub drain_delay: Duration,
    /// How long requests in flight may take at shutdown.
    pub shutdown_grace: Duration,
    /// How often counters are sealed.
    pub window: Duration,
    /// Look of log lines.
    pub log_format: LogFormat,
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
        let insecure = settings.insecure_plaintext.unwrap_or(false);
        let listen = faults.address("--listen", settings.listen, DATA_LISTEN);
        let ops_listen = faults.address("--ops-listen", settings.ops_listen, OPS_LISTEN);
        let tls = faults.tls_files(settings.tls_cert, settings.tls_key);
        for (name, address) in [("data", listen), ("ops", ops_listen)] {
            if let Err(refused) = check_plaintext(name, address, tls.is_some(), insecure) {
                faults.add::<()>(refused.to_string());
            }
        }
        let allow_anonymous = settings.allow_anonymous.unwrap_or(false);
        if allow_anonymous && !listen.ip().to_canonical().is_loopback() {
            faults.add::<()>(format!("--allow-anonymous is for loopback, and --listen is {listen}"));
        }
        let control_planes = settings.control_plane.unwrap_or_else(|| vec![CONTROL_PLANE.to_owned()]);
        let control_planes = read_control_planes(&mut faults, &control_planes, insecure);
        // Over TLS a node that has enrolled shows its certificate.
        let is_plain =
            control_planes.is_empty() || control_planes.iter().any(|uri| uri.scheme_str() == Some("http"));
        if settings.node_token_file.is_none() && is_plain {
            faults.add::<()>(
                "--node-token-file is missing: the control plane writes it as node.token into its data folder",
            );
        }
        let node_id = settings.node_id.as_deref().and_then(|id| read_node_id(&mut faults, id));
        let config = Config {
            node_id,
            labels: read_labels(&mut faults, settings.labels.unwrap_or_default()),
            control_planes,
            control_plane_ca: settings.control_plane_ca,
            token_file: settings.node_token_file,
            data_dir: settings.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            listen,
            ops_listen,
            tls,
            allow_anonymous,
            drain_delay: faults.duration(
                "--drain-delay",
                settings.drain_delay,
                DRAIN_DELAY,
                (Duration::ZERO, Duration::from_secs(300)),
            ),
            shutdown_grace: faults.duration(
                "--shutdown-grace",
                settings.shutdown_grace,
                SHUTDOWN_GRACE,
                (Duration::ZERO, Duration::from_secs(3600)),
            ),
            window: faults.duration(
                "--window",
                settings.window,
                WINDOW_LENGTH,
                (Duration::from_millis(100), Duration::from_secs(300)),
            ),
            log_format: settings.log_format.unwrap_or_default(),
        };
        faults.finish(config)
    }
}

fn read_node_id(faults: &mut Faults, id: &str) -> Option<NodeId> {
    let is_sane = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if id.is_empty() || id.len() > 128 || !id.chars().all(is_sane) {
        return faults.add(format!("--node-id {id:?} is not 1 to 128 letters, digits and any of -_.:"));
    }
    Some(id.into())
}

fn read_labels(faults: &mut Faults, given: Vec<String>) -> Labels {
    let given = given.iter().filter(|text| !text.trim().is_empty());
    let labels = given.filter_map(|text| match label::parse(text) {
        Ok(label) => Some(label),
        Err(fault) => faults.add(format!("--label: {fault}")),
    });
    let labels: Vec<_> = labels.collect();
    match label::collect(labels) {
        Ok(labels) => labels,
        Err(fault) => faults.add(format!("--label: {fault}")).unwrap_or_default(),
    }
}

/// The token goes along with each call: in clear to loopback alone.
fn read_control_planes(faults: &mut Faults, given: &[String], insecure_plaintext: bool) -> Vec<Uri> {
    let mut uris = Vec::new();
    for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let uri = Uri::from_str(text).ok().filter(|uri| uri.host().is_some());
        match (uri.as_ref().and_then(Uri::scheme_str), &uri) {
            (Some("https"), Some(uri)) => uris.push(uri.clone()),
            (Some("http"), Some(uri)) if insecure_plaintext || is_loopback(uri) => uris.push(uri.clone()),
            (Some("http"), Some(_)) => {
                faults.add::<()>(format!(
                    "--control-plane {text} would show the node's token in plaintext off loopback; \
                     use https, or pass --insecure-plaintext behind a proxy that terminates TLS"
                ));
            }
            _ => {
                faults.add::<()>(format!("--control-plane {text:?} is no http or https URL"));
            }
        }
    }
    if given.iter().all(|text| text.trim().is_empty()) {
        faults.add::<()>("--control-plane names no address");
    }
    uris
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}
