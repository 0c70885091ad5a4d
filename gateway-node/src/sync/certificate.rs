//! The node's own certificate: its key, what the control plane signed for it, and the authorities of the fleet, in one
//! file of the data folder that only its owner reads, written whole or not at all. What is on the disk counts: it is
//! there before it is used.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use common::certificate::{self, Facts};
use common::hpke::OpeningKey;
use common::limits::CERTIFICATE_SKEW;
use common::pb::fleet as pb;
use common::snapshot::{Sha, digest};
use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use tokio::sync::Notify;
use zeroize::Zeroizing;

/// Key, certificate and authorities.
const FILE: &str = "identity.pem";
/// A key that waits for its certificate.
const PENDING_FILE: &str = "identity.key";

/// What a node shows of itself.
pub(crate) struct Held {
    /// Its private key.
    pub key_pem: String,
    /// Its certificate.
    pub certificate_pem: String,
    /// The fleet's authorities.
    pub authorities_pem: String,
    /// What stands in the certificate.
    pub facts: Facts,
}

/// Keeps the node's certificate.
#[derive(Debug)]
pub(crate) struct Certificates {
    dir: PathBuf,
    node_id: String,
    held: ArcSwapOption<Held>,
    /// Digest of the authorities that the control plane spoke of last.
    heard: ArcSwapOption<Vec<u8>>,
    /// It speaks of other authorities than the node has, or a new certificate came.
    woken: Notify,
}

/// Why there is no key or certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateFault {
    #[error("the node's key and certificate cannot be kept in {}", path.display())]
    Disk {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a key or a request for a certificate cannot be made")]
    Make(#[from] rcgen::Error),
    #[error("the control plane gave a certificate that is not for this node and its key")]
    Foreign,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({:?}, …)", self.facts.serial)
    }
}

impl Held {
    /// When it should be renewed: at half of its life.
    pub fn renew_at_ms(&self) -> u64 {
        let begins = self.facts.begins_at_ms + CERTIFICATE_SKEW.as_millis() as u64;
        begins + self.facts.expires_at_ms.saturating_sub(begins) / 2
    }

    /// Digest of the authorities, as heartbeats carry it.
    pub fn authorities_sha256(&self) -> Sha {
        digest(self.authorities_pem.as_bytes())
    }

    /// A request for another certificate of the same key.
    pub fn csr(&self) -> Result<Vec<u8>, CertificateFault> {
        csr(&KeyPair::from_pem(&self.key_pem)?)
    }

    fn read(node_id: &str, text: &str) -> Option<Self> {
        let key_pem = block(text, "PRIVATE KEY")?.to_owned() + "\n";
        let certificate_pem = block(text, "CERTIFICATE")?.to_owned() + "\n";
        let (_, authorities) = text.split_once(certificate_pem.as_str())?;
        Held::of(node_id, key_pem, certificate_pem, authorities.to_owned()).ok()
    }

    fn of(
        node_id: &str,
        key_pem: String,
        certificate_pem: String,
        authorities_pem: String,
    ) -> Result<Self, CertificateFault> {
        let chain = certificate::chain(certificate_pem.as_bytes()).map_err(|_| CertificateFault::Foreign)?;
        let facts = chain.first().and_then(|first| certificate::read(first));
        let facts = facts.ok_or(CertificateFault::Foreign)?;
        let key = KeyPair::from_pem(&key_pem)?;
        let is_key = facts.key_sha256 == digest(&key.subject_public_key_info());
        if facts.node_id.as_deref() != Some(node_id) || !is_key {
            return Err(CertificateFault::Foreign);
        }
        Ok(Held { key_pem, certificate_pem, authorities_pem, facts })
    }
}

impl Certificates {
    /// What the folder holds for this node, if anything.
    pub(crate) fn open(dir: &Path, node_id: &str) -> Result<Self, CertificateFault> {
        let path = dir.join(FILE);
        let held = match std::fs::read_to_string(&path) {
            Ok(text) => {
                let held = Held::read(node_id, &text);
                if held.is_none() {
                    tracing::warn!(
                        "{} holds no certificate of node {node_id}; it enrols anew",
                        path.display()
                    );
                }
                held
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(CertificateFault::Disk { path, source }),
        };
        Ok(Certificates {
            dir: dir.to_owned(),
            node_id: node_id.to_owned(),
            held: ArcSwapOption::from(held.map(Arc::new)),
            heard: ArcSwapOption::empty(),
            woken: Notify::new(),
        })
    }

    /// The certificate in use.
    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        self.held.load_full()
    }

    /// What opens what is sealed for the certificate in use, and the digest of its public key.
    pub(crate) fn opening_key(&self) -> Option<(OpeningKey, Sha)> {
        let held = self.held()?;
        let key = KeyPair::from_pem(&held.key_pem).ok()?;
        // The copy is wiped; the PEM stays for as long as the certificate is held.
        let der = Zeroizing::new(key.serialize_der());
        Some((OpeningKey::of_pkcs8(&der)?, held.facts.key_sha256))
    }

    /// For whom.
    pub(crate) fn node_id(&self) -> &str {
        &self.node_id
    }

    /// The key of an enrolment: the one that waits already, so that an answer that was lost is asked for again with the
    /// same, or a new one.
    pub(crate) fn pending_key(&self) -> Result<KeyPair, CertificateFault> {
        let path = self.dir.join(PENDING_FILE);
        if let Ok(pem) = std::fs::read_to_string(&path)
            && let Ok(key) = KeyPair::from_pem(&pem)
        {
            return Ok(key);
        }
        let key = KeyPair::generate()?;
        write(&self.dir, PENDING_FILE, &key.serialize_pem())
            .map_err(|source| CertificateFault::Disk { path, source })?;
        Ok(key)
    }

    /// Keeps what was given for this key, and uses it from now on.
    pub(crate) fn keep(
        &self,
        key: &KeyPair,
        given: pb::NodeCertificate,
    ) -> Result<Arc<Held>, CertificateFault> {
        let pb::NodeCertificate { certificate_pem, authorities_pem } = given;
        let held = Held::of(&self.node_id, key.serialize_pem(), certificate_pem, authorities_pem)?;
        let text = [held.key_pem.as_str(), &held.certificate_pem, &held.authorities_pem].concat();
        let path = self.dir.join(FILE);
        write(&self.dir, FILE, &text).map_err(|source| CertificateFault::Disk { path, source })?;
        // The key is in the other file now; left behind it would only be used for the next enrolment.
        let _ = std::fs::remove_file(self.dir.join(PENDING_FILE));
        let held = Arc::new(held);
        self.held.store(Some(held.clone()));
        self.woken.notify_one();
        Ok(held)
    }

    /// The control plane has authorities of this digest. Another one than the node's is worth a renewal.
    pub(crate) fn hear(&self, authorities_sha256: &[u8]) {
        if !authorities_sha256.is_empty() {
            self.heard.store(Some(Arc::new(authorities_sha256.to_vec())));
        }
        if self.has_others() {
            self.woken.notify_one();
        }
    }

    /// Whether the control plane has other authorities than the node.
    pub(crate) fn has_others(&self) -> bool {
        let (Some(heard), Some(held)) = (self.heard.load_full(), self.held()) else { return false };
        held.authorities_sha256() != **heard
    }

    /// Waits until there may be something to do.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

/// How long a certificate lasts until its renewal; at least a little, so that a faulty clock makes no loop.
pub(crate) fn until(at_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms).max(200))
}

/// A request for a certificate. Only its key and its signature count.
pub(crate) fn csr(key: &KeyPair) -> Result<Vec<u8>, CertificateFault> {
    Ok(CertificateParams::default().serialize_request(key)?.der().to_vec())
}

/// The first block of a kind in a PEM text.
fn block<'a>(text: &'a str, kind: &str) -> Option<&'a str> {
    let end = format!("-----END {kind}-----");
    let from = text.find(&format!("-----BEGIN {kind}-----"))?;
    let to = from + text.get(from..)?.find(&end)? + end.len();
    text.get(from..to)
}

/// Readers see the whole file or none, and only its owner is one.
fn write(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let half = dir.join(format!("{name}.tmp"));
    let mut file =
        std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&half)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(half, dir.join(name))?;
    std::fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rcgen::SanType;

    use super::*;

    fn given(key: &KeyPair, node_id: &str) -> pb::NodeCertificate {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(certificate::node_uri(node_id).try_into().unwrap())];
        let certificate_pem = params.self_signed(key).unwrap().pem();
        let authority = CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap();
        pb::NodeCertificate { certificate_pem, authorities_pem: authority.pem() }
    }

    #[test]
    fn a_certificate_is_kept_with_its_key_over_restarts_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Certificates::open(dir.path(), "n1").unwrap();
        assert!(certificates.held().is_none());
        let key = certificates.pending_key().unwrap();
        assert_eq!(certificates.pending_key().unwrap().serialize_pem(), key.serialize_pem());
        let given = given(&key, "n1");
        let held = certificates.keep(&key, given.clone()).unwrap();
        let read = Certificates::open(dir.path(), "n1").unwrap().held().unwrap();
        assert_eq!((&read.key_pem, &read.facts), (&held.key_pem, &held.facts));
        assert_eq!(read.authorities_pem, given.authorities_pem);
        assert_eq!(read.authorities_sha256(), digest(given.authorities_pem.as_bytes()));
        let mode = std::fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!dir.path().join(PENDING_FILE).exists());
    }

    #[test]
    fn what_is_another_nodes_or_another_keys_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Certificates::open(dir.path(), "n1").unwrap();
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert!(matches!(certificates.keep(&key, given(&key, "n2")), Err(CertificateFault::Foreign)));
        assert!(matches!(certificates.keep(&key, given(&other, "n1")), Err(CertificateFault::Foreign)));
        assert!(certificates.held().is_none());
        certificates.keep(&key, given(&key, "n1")).unwrap();
        assert!(Certificates::open(dir.path(), "n2").unwrap().held().is_none(), "it was renamed");
        std::fs::write(dir.path().join(FILE), "half a file").unwrap();
        assert!(Certificates::open(dir.path(), "n1").unwrap().held().is_none());
    }

    #[test]
    fn it_is_renewed_at_half_of_its_life() {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Certificates::open(dir.path(), "n1").unwrap();
        let key = KeyPair::generate().unwrap();
        let held = certificates.keep(&key, given(&key, "n1")).unwrap();
        let skew = CERTIFICATE_SKEW.as_millis() as u64;
        let Facts { begins_at_ms, expires_at_ms, .. } = held.facts;
        assert_eq!(held.renew_at_ms() * 2, begins_at_ms + skew + expires_at_ms);
        assert_eq!(until(5000, 1000), Duration::from_secs(4));
        assert_eq!(until(1000, 5000), Duration::from_millis(200));
    }
}
