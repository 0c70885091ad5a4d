//! What stands in an X.509 certificate, as far as anybody here asks, and how a node's id is written into one. Pure.

use rustls_pki_types::pem::{Error as PemError, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::snapshot::{Sha, digest};

/// A node's id stands behind this in the one URI of its certificate.
const NODE_URI: &str = "sluice://node/";
/// Longest id of a node that gets a certificate.
const NODE_ID_BYTES_MAX: usize = 128;

/// What is asked of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its serial number, in hex.
    pub serial: String,
    /// From when on it is valid.
    pub begins_at_ms: u64,
    /// Until when.
    pub expires_at_ms: u64,
    /// Of the public key, which stays the same over renewals.
    pub key_sha256: Sha,
    /// That key, as the certificate holds it: of an elliptic curve, the point.
    pub public_key: Vec<u8>,
    /// The node that it speaks for, if it is a node's.
    pub node_id: Option<String>,
    /// Whether it may sign others.
    pub is_authority: bool,
}

/// Reads a certificate; `None` if it is none.
pub fn read(der: &[u8]) -> Option<Facts> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    let names = certificate.subject_alternative_name().ok().flatten();
    let uris = names.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::URI(uri) => uri.strip_prefix(NODE_URI),
        _ => None,
    });
    let ids: Vec<&str> = uris.collect();
    let node_id = match ids[..] {
        [id] if is_node_id(id) => Some(id.to_owned()),
        _ => None,
    };
    Some(Facts {
        serial: certificate.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
        begins_at_ms: ms(certificate.validity().not_before.timestamp()),
        expires_at_ms: ms(certificate.validity().not_after.timestamp()),
        key_sha256: digest(certificate.public_key().raw),
        public_key: certificate.public_key().subject_public_key.data.to_vec(),
        node_id,
        is_authority: certificate.is_ca(),
    })
}

/// The URI by which a certificate names a node.
pub fn node_uri(id: &str) -> String {
    format!("{NODE_URI}{id}")
}

/// Whether this may be the id of a node: what needs no escape in a URI.
pub fn is_node_id(id: &str) -> bool {
    let is_sane = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id.len() <= NODE_ID_BYTES_MAX && id.chars().all(is_sane)
}

/// Every certificate of a PEM text, in order; at least one.
pub fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if chain.is_empty() { Err(PemError::NoItemsFound) } else { Ok(chain) }
}

/// The first private key of a PEM text.
pub fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(uris: &[&str]) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::default();
        let uris = uris.iter().map(|uri| rcgen::SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names = uris.collect();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_node_is_named_by_the_one_uri_of_its_certificate() {
        let id = |uris: &[&str]| read(&made(uris)).unwrap().node_id;
        assert_eq!(id(&[&node_uri("eu-1.a:b_c")]), Some("eu-1.a:b_c".into()));
        assert_eq!(id(&["https://node/a"]), None);
        assert_eq!(id(&[&node_uri("a"), &node_uri("b")]), None, "whose would it be");
        assert_eq!(id(&[&node_uri("a/b")]), None);
        assert_eq!(id(&[&node_uri("")]), None);
        assert_eq!(id(&[]), None);
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        let mut der = made(&[]);
        assert_eq!(read(&der).unwrap().expires_at_ms, 1_893_456_000_000);
        assert!(!read(&der).unwrap().is_authority);
        der.truncate(der.len() / 2);
        assert_eq!(read(&der), None);
        assert_eq!(read(b""), None);
        assert!(chain(b"nothing").is_err() && key(b"nothing").is_err());
    }
}
