//! Settings that must hold together: every fault is collected, and told at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use super::SettingsFault;

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// The settings could not be read.
    #[error(transparent)]
    Settings(#[from] SettingsFault),
    /// They do not hold together: every fault, one a line.
    #[error("faulty settings:\n  {}", .0.join("\n  "))]
    Faulty(Vec<String>),
}

/// PEM files of a listener.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Takes a fault; there is no value then.
    pub fn add<T>(&mut self, fault: impl Into<String>) -> Option<T> {
        self.0.push(fault.into());
        None
    }

    /// Reads `IP:PORT`. Of a faulty one some loopback address, to look for further faults with.
    pub fn address(&mut self, flag: &str, given: Option<String>, default: &str) -> SocketAddr {
        let text = given.as_deref().unwrap_or(default);
        let fault = || format!("{flag} {text:?} is no address and port, such as {default}");
        let parsed = SocketAddr::from_str(text).ok().or_else(|| self.add(fault()));
        parsed.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Reads a duration with its unit that lies within bounds.
    pub fn duration(
        &mut self,
        flag: &str,
        given: Option<String>,
        default: Duration,
        (min, max): (Duration, Duration),
    ) -> Duration {
        let Some(text) = given else { return default };
        let fault = match humantime::parse_duration(&text) {
            Ok(duration) if (min..=max).contains(&duration) => return duration,
            Ok(_) => {
                let (min, max) = (humantime::format_duration(min), humantime::format_duration(max));
                format!("{flag} {text:?} is not within {min} and {max}")
            }
            Err(_) => format!("{flag} {text:?} is no duration with a unit, such as 30s"),
        };
        self.add::<()>(fault);
        default
    }

    /// Reads a share of the whole, 0 to 1.
    pub fn share(&mut self, flag: &str, given: Option<String>, default: f64) -> f64 {
        let Some(text) = given else { return default };
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        share.or_else(|| self.add(format!("{flag} {text:?} is no number from 0 to 1"))).unwrap_or(default)
    }

    /// A certificate and its key are given together or not at all.
    pub fn tls_files(&mut self, cert: Option<PathBuf>, key: Option<PathBuf>) -> Option<TlsFiles> {
        self.file_pair(("--tls-cert", cert), ("--tls-key", key))
    }

    /// Two files that are given together or not at all: a certificate and its key.
    pub fn file_pair(
        &mut self,
        (cert_flag, cert): (&str, Option<PathBuf>),
        (key_flag, key): (&str, Option<PathBuf>),
    ) -> Option<TlsFiles> {
        match (cert, key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => self.add(format!("{cert_flag} needs {key_flag}")),
            (None, Some(_)) => self.add(format!("{key_flag} needs {cert_flag}")),
        }
    }

    /// The config, unless there were faults.
    pub fn finish<T>(self, config: T) -> Result<T, ConfigFault> {
        if self.0.is_empty() { Ok(config) } else { Err(ConfigFault::Faulty(self.0)) }
    }
}
