//! TLS of a listener whose certificate may be replaced while it runs: connections that are open stay, new ones get the
//! new one, and a pair that cannot be used leaves the one before it in place. Both services share it, files included.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::certificate;
use crate::clock::Clock;
use crate::limits::CERTIFICATE_LOOK;
use crate::settings::TlsFiles;
use crate::snapshot::{Sha, digest};

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
    /// What is in the file is no certificate.
    #[error("the certificate in {} cannot be read", .0.display())]
    Certificate(PathBuf),
    /// It is over.
    #[error("the certificate in {} has expired", .0.display())]
    Expired(PathBuf),
    /// Certificate and key do not belong together.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The authorities of clients cannot be used.
    #[error("the authorities of client certificates cannot be used")]
    Clients(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<TlsFault> for std::io::Error {
    fn from(fault: TlsFault) -> Self {
        std::io::Error::other(fault)
    }
}

/// A certificate with its key.
#[derive(Debug, Clone)]
pub struct Pair {
    certified: Arc<CertifiedKey>,
    /// When it ends.
    pub expires_at_ms: u64,
}

impl Pair {
    /// Reads the files of a listener.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsFault> {
        let (cert, key) = (contents(&files.cert)?, contents(&files.key)?);
        Pair::of(files, &cert, &key)
    }

    /// A pair in PEM, which `files` names in faults.
    pub fn of(files: &TlsFiles, cert: &[u8], key: &[u8]) -> Result<Self, TlsFault> {
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsFault::File { path, source }
        };
        let chain = certificate::chain(cert).map_err(fault(&files.cert))?;
        let key = certificate::key(key).map_err(fault(&files.key))?;
        let first = chain.first().and_then(|first| certificate::read(first));
        let facts = first.ok_or_else(|| TlsFault::Certificate(files.cert.clone()))?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(TlsFault::Pair)?;
        Ok(Pair { certified: Arc::new(certified), expires_at_ms: facts.expires_at_ms })
    }
}

/// What a listener speaks over TLS, by ALPN.
pub const HTTP: &[&[u8]] = &[b"h2", b"http/1.1"];
/// HTTP/2 alone.
pub const HTTP_2: &[&[u8]] = &[b"h2"];

/// A listener's TLS as it is now. Clones share it.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    listener: &'static str,
    protocols: &'static [&'static [u8]],
    config: ArcSwap<ServerConfig>,
    expires_at_ms: AtomicU64,
    parts: Mutex<Parts>,
}

#[derive(Debug, Clone)]
struct Parts {
    pair: Pair,
    /// Authorities of client certificates; without any none is asked for.
    clients: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// The TLS of a listener, with a certificate to begin with.
    pub fn new(
        listener: &'static str,
        protocols: &'static [&'static [u8]],
        pair: Pair,
    ) -> Result<Self, TlsFault> {
        let expires_at_ms = AtomicU64::new(pair.expires_at_ms);
        let parts = Parts { pair, clients: Vec::new() };
        let config = ArcSwap::from_pointee(config(&parts, protocols)?);
        Ok(Tls(Arc::new(Inner { listener, protocols, config, expires_at_ms, parts: Mutex::new(parts) })))
    }

    /// What the next connection is accepted with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }

    /// The listener.
    pub fn listener(&self) -> &'static str {
        self.0.listener
    }

    /// When the certificate in use ends.
    pub fn expires_at_ms(&self) -> u64 {
        self.0.expires_at_ms.load(Ordering::Relaxed)
    }

    /// Uses another certificate from now on.
    pub fn install(&self, pair: Pair) -> Result<(), TlsFault> {
        let expires_at_ms = pair.expires_at_ms;
        self.change(|parts| parts.pair = pair)?;
        self.0.expires_at_ms.store(expires_at_ms, Ordering::Relaxed);
        Ok(())
    }

    /// Asks clients for a certificate of one of these authorities from now on; they need not have one.
    pub fn trust_clients(&self, authorities: Vec<CertificateDer<'static>>) -> Result<(), TlsFault> {
        self.change(|parts| parts.clients = authorities)
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) -> Result<(), TlsFault> {
        let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = parts.clone();
        change(&mut changed);
        // Under the lock, so that of two changes none is lost.
        self.0.config.store(Arc::new(config(&changed, self.0.protocols)?));
        *parts = changed;
        Ok(())
    }
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

fn config(parts: &Parts, protocols: &[&[u8]]) -> Result<ServerConfig, TlsFault> {
    let builder = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsFault::Pair)?;
    let resolver = Arc::new(SingleCertAndKey::from(parts.pair.certified.clone()));
    let mut config = if parts.clients.is_empty() {
        builder.with_no_client_auth().with_cert_resolver(resolver)
    } else {
        let mut roots = RootCertStore::empty();
        for authority in &parts.clients {
            roots.add(authority.clone()).map_err(|fault| TlsFault::Clients(fault.into()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider()))
            .allow_unauthenticated()
            .build()
            .map_err(|fault| TlsFault::Clients(fault.into()))?;
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
        // A session that is resumed is taken at its word: its certificate may have expired since.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The files of a certificate, and what was last seen in them.
#[derive(Debug)]
pub struct Watch {
    files: TlsFiles,
    /// What is in use, and what was refused last: told once.
    used: Sha,
    refused: Option<Sha>,
    /// Seen once and not usable: half of a replacement perhaps.
    doubted: Option<Sha>,
}

/// What a look at the files found.
#[derive(Debug)]
pub enum Look {
    /// Nothing new.
    Same,
    /// Another pair, which can be used.
    Replaced(Pair),
    /// Another pair, which cannot, seen twice in a row; told once.
    Faulty(TlsFault),
}

impl Watch {
    /// Reads the files for the first time.
    pub fn open(files: TlsFiles) -> Result<(Self, Pair), TlsFault> {
        let (cert, key) = (contents(&files.cert)?, contents(&files.key)?);
        let pair = Pair::of(&files, &cert, &key)?;
        let used = seen(&cert, &key);
        Ok((Watch { files, used, refused: None, doubted: None }, pair))
    }

    /// Looks at the files. Their content decides, not their time: a link that was moved is seen as well.
    pub fn look(&mut self, now_ms: u64) -> Look {
        let read = contents(&self.files.cert).and_then(|cert| Ok((cert, contents(&self.files.key)?)));
        let (found, pair) = match read {
            Ok((cert, key)) => {
                let found = seen(&cert, &key);
                if found == self.used {
                    (self.refused, self.doubted) = (None, None);
                    return Look::Same;
                }
                (found, Pair::of(&self.files, &cert, &key))
            }
            Err(fault) => (digest(fault.to_string().as_bytes()), Err(fault)),
        };
        let is_over = |pair: &Pair| pair.expires_at_ms <= now_ms;
        let fault = match pair {
            Ok(pair) if is_over(&pair) => TlsFault::Expired(self.files.cert.clone()),
            Ok(pair) => {
                (self.used, self.refused, self.doubted) = (found, None, None);
                return Look::Replaced(pair);
            }
            Err(fault) => fault,
        };
        if self.refused == Some(found) {
            return Look::Same;
        }
        // Two files cannot be replaced in one step.
        if self.doubted != Some(found) {
            self.doubted = Some(found);
            return Look::Same;
        }
        self.refused = Some(found);
        Look::Faulty(fault)
    }
}

/// Looks at the files until `stop`. What can be used goes to all listeners; each is told of then, and once now.
pub async fn follow(
    mut watch: Watch,
    listeners: Vec<Tls>,
    clock: Clock,
    stop: CancellationToken,
    tell: impl Fn(&Tls),
) {
    listeners.iter().for_each(&tell);
    while stop.run_until_cancelled(sleep(CERTIFICATE_LOOK)).await.is_some() {
        // Two small files: not worth a thread.
        let fault = match watch.look(clock.now_ms()) {
            Look::Same => continue,
            Look::Replaced(pair) => match listeners.iter().try_for_each(|tls| tls.install(pair.clone())) {
                Ok(()) => {
                    let expires_at_ms = pair.expires_at_ms;
                    tracing::info!(expires_at_ms, "the certificate of the listeners was replaced");
                    listeners.iter().for_each(&tell);
                    continue;
                }
                Err(fault) => fault,
            },
            Look::Faulty(fault) => fault,
        };
        tracing::warn!(
            error = &fault as &dyn std::error::Error,
            "the new certificate of the listeners cannot be used; the one before it stays"
        );
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let read = std::fs::read(path);
    read.map_err(|error| TlsFault::File {
        path: path.to_owned(),
        source: rustls_pki_types::pem::Error::Io(error),
    })
}

fn seen(cert: &[u8], key: &[u8]) -> Sha {
    digest(&[digest(cert), digest(key)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dir {
        dir: tempfile::TempDir,
        files: TlsFiles,
    }

    impl Dir {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let files = TlsFiles { cert: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
            Dir { dir, files }
        }

        fn make(&self, year: i32) -> rcgen::KeyPair {
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let key = rcgen::KeyPair::generate().unwrap();
            std::fs::write(&self.files.cert, params.self_signed(&key).unwrap().pem()).unwrap();
            key
        }

        fn pair(&self, year: i32) {
            let key = self.make(year);
            std::fs::write(&self.files.key, key.serialize_pem()).unwrap();
        }
    }

    const NOW_MS: u64 = 1_796_046_279_000;

    #[test]
    fn another_pair_is_seen_and_used() {
        let dir = Dir::new();
        dir.pair(2040);
        let (mut watch, pair) = Watch::open(dir.files.clone()).unwrap();
        let tls = Tls::new("data", HTTP, pair).unwrap();
        let before = tls.config();
        assert!(matches!(watch.look(NOW_MS), Look::Same));
        dir.pair(2041);
        let Look::Replaced(pair) = watch.look(NOW_MS) else { panic!("a new pair") };
        tls.install(pair).unwrap();
        assert_eq!(tls.expires_at_ms(), 2_240_611_200_000);
        assert!(!Arc::ptr_eq(&before, &tls.config()));
        assert_eq!(tls.config().alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(matches!(watch.look(NOW_MS), Look::Same));
    }

    #[test]
    fn a_pair_that_cannot_be_used_is_told_once_and_never_replaces_one_that_can() {
        let dir = Dir::new();
        dir.pair(2040);
        let (mut watch, _) = Watch::open(dir.files.clone()).unwrap();
        let key = dir.make(2041);
        assert!(matches!(watch.look(NOW_MS), Look::Same), "the key may be on its way");
        assert!(matches!(watch.look(NOW_MS), Look::Faulty(TlsFault::Pair(_))));
        assert!(matches!(watch.look(NOW_MS), Look::Same));
        std::fs::write(&dir.files.key, key.serialize_pem()).unwrap();
        assert!(matches!(watch.look(NOW_MS), Look::Replaced(_)));
        dir.pair(2020);
        watch.look(NOW_MS);
        assert!(matches!(watch.look(NOW_MS), Look::Faulty(TlsFault::Expired(_))));
        std::fs::remove_file(&dir.files.cert).unwrap();
        watch.look(NOW_MS);
        let Look::Faulty(fault) = watch.look(NOW_MS) else { panic!("a file that is gone") };
        assert!(fault.to_string().contains("cert.pem"));
        drop(dir.dir);
    }

    #[test]
    fn clients_are_asked_for_a_certificate_only_where_there_is_an_authority() {
        let dir = Dir::new();
        dir.pair(2040);
        let tls = Tls::new("fleet", HTTP_2, Pair::read(&dir.files).unwrap()).unwrap();
        let cert = certificate::chain(&std::fs::read(&dir.files.cert).unwrap()).unwrap();
        tls.trust_clients(cert).unwrap();
        assert_eq!(tls.config().send_tls13_tickets, 0);
        assert!(tls.trust_clients(vec![CertificateDer::from(vec![0])]).is_err());
        assert_eq!(tls.config().send_tls13_tickets, 0, "what was, stays");
    }
}
