//! The subscriber of both programs: level by `RUST_LOG`, text or JSON to standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How log lines look.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line, for machines.
    Json,
}

/// Installs the subscriber for this process. A second call changes nothing.
pub fn install(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter);
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal);
    let installed = match format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => {
            let json = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
            registry.with(json).try_init()
        }
    };
    if installed.is_err() {
        tracing::debug!("a subscriber is installed already");
    }
}
