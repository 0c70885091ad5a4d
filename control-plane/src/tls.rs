//! The certificate of the listeners.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;
use crate::listener::Protocol;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// The file is not there or holds no certificate or key.
    #[error("cannot read {} as PEM", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// Certificate and key do not belong together.
    #[error("certificate and key cannot be used")]
    Pair(#[source] rustls::Error),
}

/// Reads certificate and key for a listener.
pub fn acceptor(files: &TlsFiles, protocol: Protocol) -> Result<TlsAcceptor, TlsFault> {
    let fault = |path: &Path, source| TlsFault::File { path: path.to_owned(), source };
    let certificates: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.cert).and_then(Iterator::collect);
    let certificates = certificates.map_err(|source| fault(&files.cert, source))?;
    if certificates.is_empty() {
        return Err(fault(&files.cert, rustls_pki_types::pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| fault(&files.key, source))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsFault::Pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(TlsFault::Pair)?;
    config.alpn_protocols = match protocol {
        Protocol::Grpc => vec![b"h2".to_vec()],
        Protocol::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl From<TlsFault> for io::Error {
    fn from(fault: TlsFault) -> Self {
        io::Error::other(fault)
    }
}
