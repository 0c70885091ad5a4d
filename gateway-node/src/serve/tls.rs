//! Certificate and key of the listeners.

use std::sync::Arc;

use anyhow::Context as _;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// Reads the files; HTTP/2 and HTTP/1.1 are offered.
pub(super) fn acceptor(files: &TlsFiles) -> anyhow::Result<TlsAcceptor> {
    let (cert, key) = (files.cert.display(), files.key.display());
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(|certs| certs.collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("cannot read the certificate in {cert}"))?;
    anyhow::ensure!(!chain.is_empty(), "there is no certificate in {cert}");
    let private = PrivateKeyDer::from_pem_file(&files.key)
        .with_context(|| format!("cannot read the private key in {key}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("the certificate in {cert} and the key in {key} do not go together"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
