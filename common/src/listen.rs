//! Where a listener may stand, and how scripts find it: the plaintext rule and `listen.json`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A listener off loopback without TLS.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{name} listener on {address} would speak plaintext off loopback; give --tls-cert and --tls-key, \
     listen on 127.0.0.1, or pass --insecure-plaintext behind a proxy that terminates TLS"
)]
pub struct PlaintextRefused {
    /// The listener: `admin`, `data`, ….
    pub name: &'static str,
    /// Where it was to stand.
    pub address: SocketAddr,
}

/// Whether a listener may open. Plaintext is for loopback, unless `insecure_plaintext`.
pub fn check_plaintext(
    name: &'static str,
    address: SocketAddr,
    has_tls: bool,
    insecure_plaintext: bool,
) -> Result<(), PlaintextRefused> {
    if has_tls || insecure_plaintext || address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(PlaintextRefused { name, address })
    }
}

/// The content of `<data-dir>/listen.json`: bound addresses by listener.
pub fn listen_json(listeners: &[(&str, SocketAddr)]) -> String {
    let map: BTreeMap<&str, String> = listeners.iter().map(|(name, at)| (*name, at.to_string())).collect();
    serde_json::to_string(&map).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_is_for_loopback_alone() {
        let off = "10.0.0.1:80".parse().unwrap();
        for loopback in ["127.0.0.1:1", "[::1]:1", "127.8.9.1:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(check_plaintext("data", loopback.parse().unwrap(), false, false), Ok(()));
        }
        assert!(check_plaintext("data", off, false, false).is_err());
        assert!(check_plaintext("data", "0.0.0.0:80".parse().unwrap(), false, false).is_err());
        assert_eq!(check_plaintext("data", off, true, false), Ok(()));
        assert_eq!(check_plaintext("data", off, false, true), Ok(()));
    }

    #[test]
    fn listen_json_names_each_listener() {
        let at = "127.0.0.1:7443".parse().unwrap();
        assert_eq!(
            listen_json(&[("ops", at), ("data", at)]),
            "{\"data\":\"127.0.0.1:7443\",\"ops\":\"127.0.0.1:7443\"}\n"
        );
    }
}
