//! The authorities that sign certificates of nodes. The first of them signs; the others are trusted as long as some
//! certificate needs them. They are the control plane's own, in one file of the data folder, or given by two files that
//! are looked at all the time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use common::certificate::{self, Facts};
use common::limits::{AUTHORITY_LIFE, CERTIFICATE_SKEW};
use common::settings::TlsFiles;
use common::snapshot::{Sha, digest};
use common::tls::Pair;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
    SerialNumber,
};
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::folder::{self, Folder, FolderFault};

/// In the data folder: keys and certificates of our own authorities, each key before its certificate, the first signs.
const OWN_FILE: &str = "ca.pem";
/// Beside it: the certificates alone, for nodes and operators that are to trust them.
const PUBLIC_FILE: &str = "ca.crt";

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityFault {
    /// The file cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderFault),
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What it holds is no authority.
    #[error("{} holds no certificate authority with its key: {why}", path.display())]
    Faulty {
        /// The file.
        path: PathBuf,
        /// In words.
        why: String,
    },
    /// None could be made.
    #[error("a certificate could not be made")]
    Make(#[from] rcgen::Error),
}

/// A certificate that was just made.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub pem: String,
    /// What stands in it.
    pub facts: Facts,
    /// Of the public key of the authority that signed.
    pub authority_sha256: Sha,
}

/// Where authorities come from.
#[derive(Debug)]
enum Source {
    /// The data folder.
    Own(PathBuf),
    /// The operator's files: authorities, the one that signs first, and the key of that one.
    Given(TlsFiles),
}

/// The authorities as they are now.
#[derive(Debug)]
pub struct Authorities {
    source: Source,
    life: Duration,
    now: ArcSwap<Bundle>,
    /// Held while they are changed.
    changing: Mutex<()>,
    /// Of given files that were refused, so that this is told once.
    refused: Mutex<Option<Sha>>,
}

/// Some authorities, the one that signs first.
#[derive(Debug)]
pub struct Bundle {
    authorities: Vec<Authority>,
    signing_key: KeyPair,
    pem: String,
    sha256: Sha,
}

/// One authority.
#[derive(Debug, Clone)]
pub struct Authority {
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
    /// The same in PEM.
    pub pem: String,
    /// What stands in it.
    pub facts: Facts,
    /// Its key, where we have it.
    key_pem: Option<String>,
}

impl Authority {
    /// Its public key's digest in hex.
    pub fn id(&self) -> String {
        self.facts.key_sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Bundle {
    /// Every authority that is trusted, the one that signs first.
    pub fn authorities(&self) -> &[Authority] {
        &self.authorities
    }

    /// Their certificates.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The one that signs.
    pub fn id(&self) -> String {
        self.authorities.first().map(Authority::id).unwrap_or_default()
    }

    /// Digest of [`Bundle::pem`].
    pub fn sha256(&self) -> Sha {
        self.sha256
    }

    fn new(authorities: Vec<Authority>, signing_key: &str) -> Result<Self, String> {
        let first = authorities.first().ok_or("it is empty")?;
        let signing_key = KeyPair::from_pem(signing_key).map_err(|fault| fault.to_string())?;
        if digest(&signing_key.subject_public_key_info()) != first.facts.key_sha256 {
            return Err("the key is not the one of the first certificate".to_owned());
        }
        if let Some(wrong) = authorities.iter().find(|authority| !authority.facts.is_authority) {
            return Err(format!("the certificate {} is not one of an authority", wrong.facts.serial));
        }
        let pem: String = authorities.iter().map(|authority| authority.pem.as_str()).collect();
        let sha256 = digest(pem.as_bytes());
        Ok(Bundle { authorities, signing_key, pem, sha256 })
    }

    /// Reads certificates, among which their keys may stand; and the key that signs.
    fn read(certificates: &str, key: &str) -> Result<Self, String> {
        let keys = keys_of(certificates);
        let authorities = blocks(certificates, "CERTIFICATE").map(|pem| {
            let read = certificate::chain(pem.as_bytes()).map_err(|fault| fault.to_string())?;
            let certificate = read.into_iter().next().ok_or("a certificate in it is empty")?;
            let facts = certificate::read(&certificate).ok_or("a certificate in it cannot be read")?;
            let key_pem = keys.iter().find(|(sha256, _)| *sha256 == facts.key_sha256);
            let key_pem = key_pem.map(|(_, pem)| pem.clone());
            Ok(Authority { certificate, pem: format!("{pem}\n"), facts, key_pem })
        });
        let authorities = authorities.collect::<Result<Vec<_>, String>>()?;
        Bundle::new(authorities, key)
    }

    fn own_file(&self) -> String {
        let entries = self.authorities.iter();
        entries.map(|authority| authority.key_pem.clone().unwrap_or_default() + &authority.pem).collect()
    }
}

impl Authorities {
    /// Our own; the first is made at the first start.
    pub fn own(folder: &Folder, life: Duration, now_ms: u64) -> Result<Self, AuthorityFault> {
        let path = folder.path().join(OWN_FILE);
        let bundle = match std::fs::read_to_string(&path) {
            Ok(text) => read_own(&text).map_err(|why| AuthorityFault::Faulty { path: path.clone(), why })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = begin(now_ms)?;
                folder.write(OWN_FILE, &made.own_file())?;
                tracing::info!(path = %path.display(), "certificate authority made: {}", path.display());
                made
            }
            Err(source) => return Err(AuthorityFault::Unreadable { path, source }),
        };
        folder::write(folder.path(), PUBLIC_FILE, bundle.pem(), 0o644)?;
        Ok(Authorities::new(Source::Own(folder.path().to_owned()), life, bundle))
    }

    /// Those that the operator gives.
    pub fn given(files: TlsFiles, life: Duration) -> Result<Self, AuthorityFault> {
        let bundle = read_given(&files)?;
        Ok(Authorities::new(Source::Given(files), life, bundle))
    }

    fn new(source: Source, life: Duration, bundle: Bundle) -> Self {
        let now = ArcSwap::from_pointee(bundle);
        Authorities { source, life, now, changing: Mutex::default(), refused: Mutex::default() }
    }

    /// How long a certificate lives that they sign.
    pub fn life(&self) -> Duration {
        self.life
    }

    /// Those of now.
    pub fn now(&self) -> Arc<Bundle> {
        self.now.load_full()
    }

    /// Signs a certificate for a node and the key of its request, whose signature proves that the node has it. What
    /// else the request asks for is left aside.
    pub fn sign(&self, node_id: &str, csr: &[u8], now_ms: u64) -> Result<Issued, rcgen::Error> {
        let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(csr))?;
        let mut params = named("sluice node", now_ms, self.life)?;
        params.subject_alt_names = vec![SanType::URI(certificate::node_uri(node_id).try_into()?)];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let bundle = self.now();
        let signing = bundle.authorities.first().ok_or(rcgen::Error::CouldNotParseCertificate)?;
        let issuer = Issuer::from_ca_cert_der(&signing.certificate, &bundle.signing_key)?;
        let made = params.signed_by(&request.public_key, &issuer)?;
        let facts = certificate::read(made.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Issued { pem: made.pem(), facts, authority_sha256: signing.facts.key_sha256 })
    }

    /// A new authority of our own, which signs from now on; the others stay trusted. `None` where they are given.
    pub fn rotate(&self, now_ms: u64) -> Result<Option<Arc<Bundle>>, AuthorityFault> {
        self.change(|bundle| {
            let newest = make(now_ms)?;
            Ok(Some([vec![newest], bundle.authorities.clone()].concat()))
        })
    }

    /// Lets go of authorities of our own that are not needed: all but the one that signs and those that `is_needed`
    /// says. Returns whether there were any.
    pub fn retire(&self, is_needed: impl Fn(&Sha) -> bool) -> Result<bool, AuthorityFault> {
        let changed = self.change(|bundle| {
            let signing = bundle.authorities.first().map(|first| first.facts.key_sha256);
            let is_kept = |authority: &&Authority| {
                let key = authority.facts.key_sha256;
                Some(key) == signing || is_needed(&key)
            };
            let kept: Vec<_> = bundle.authorities.iter().filter(is_kept).cloned().collect();
            Ok((kept.len() < bundle.authorities.len()).then_some(kept))
        })?;
        Ok(changed.is_some())
    }

    fn change(
        &self,
        change: impl FnOnce(&Bundle) -> Result<Option<Vec<Authority>>, AuthorityFault>,
    ) -> Result<Option<Arc<Bundle>>, AuthorityFault> {
        let Source::Own(folder) = &self.source else { return Ok(None) };
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(authorities) = change(&self.now())? else { return Ok(None) };
        let key = authorities.first().and_then(|first| first.key_pem.clone()).unwrap_or_default();
        let path = folder.join(OWN_FILE);
        let bundle = Bundle::new(authorities, &key).map_err(|why| AuthorityFault::Faulty { path, why })?;
        // Written before anything is signed with it.
        folder::write(folder, OWN_FILE, &bundle.own_file(), 0o600)?;
        folder::write(folder, PUBLIC_FILE, bundle.pem(), 0o644)?;
        let bundle = Arc::new(bundle);
        self.now.store(bundle.clone());
        Ok(Some(bundle))
    }

    /// Looks at given files; returns whether they hold other authorities now. Faulty ones are told once, and change
    /// nothing.
    pub fn look(&self) -> Result<bool, AuthorityFault> {
        let Source::Given(files) = &self.source else { return Ok(false) };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match read_given(files) {
            Ok(bundle) if bundle.sha256 == self.now().sha256 => {
                *refused = None;
                Ok(false)
            }
            Ok(bundle) => {
                self.now.store(Arc::new(bundle));
                *refused = None;
                Ok(true)
            }
            Err(fault) => {
                let told = digest(fault.to_string().as_bytes());
                if refused.replace(told) == Some(told) { Ok(false) } else { Err(fault) }
            }
        }
    }

    /// A certificate for listeners of ours under these names, by the oldest authority that is trusted: whoever trusts
    /// any trusts that one. `None` without the key of that one.
    pub fn server_pair(&self, names: &[String], now_ms: u64) -> Result<Option<Pair>, AuthorityFault> {
        let bundle = self.now();
        let Some((oldest, key)) = bundle.oldest()? else { return Ok(None) };
        let mut params = named("sluice control plane", now_ms, self.life)?;
        let named = CertificateParams::new(names.to_vec())?;
        params.subject_alt_names = named.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let own = KeyPair::generate()?;
        let made = params.signed_by(&own, &Issuer::from_ca_cert_der(&oldest.certificate, key)?)?;
        let files = TlsFiles { cert: PUBLIC_FILE.into(), key: OWN_FILE.into() };
        let chain = made.pem() + &oldest.pem;
        let pair = Pair::of(&files, chain.as_bytes(), own.serialize_pem().as_bytes());
        let faulty = |why: common::tls::TlsFault| AuthorityFault::Faulty {
            path: OWN_FILE.into(),
            why: why.to_string(),
        };
        pair.map(Some).map_err(faulty)
    }
}

impl Bundle {
    fn oldest(&self) -> Result<Option<(&Authority, KeyPair)>, AuthorityFault> {
        let Some(oldest) = self.authorities.last() else { return Ok(None) };
        let key = match (&oldest.key_pem, self.authorities.len()) {
            (Some(pem), _) => KeyPair::from_pem(pem)?,
            (None, 1) => KeyPair::from_pem(&self.signing_key.serialize_pem())?,
            (None, _) => return Ok(None),
        };
        Ok(Some((oldest, key)))
    }
}

fn begin(now_ms: u64) -> Result<Bundle, AuthorityFault> {
    let first = make(now_ms)?;
    let key = first.key_pem.clone().unwrap_or_default();
    Bundle::new(vec![first], &key).map_err(|why| AuthorityFault::Faulty { path: OWN_FILE.into(), why })
}

fn make(now_ms: u64) -> Result<Authority, AuthorityFault> {
    let key = KeyPair::generate()?;
    let mut params = named("sluice authority", now_ms, AUTHORITY_LIFE)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Two authorities are told apart by their names where a client looks for the one that signed.
    let name = format!("sluice authority {}", Uuid::now_v7().simple());
    params.distinguished_name.push(DnType::CommonName, name);
    let made = params.self_signed(&key)?;
    let (certificate, pem) = (made.der().clone(), made.pem());
    let facts = certificate::read(&certificate).ok_or(rcgen::Error::CouldNotParseCertificate)?;
    Ok(Authority { certificate, pem, facts, key_pem: Some(key.serialize_pem()) })
}

/// A certificate of this name that is valid from a little before now on: clocks differ.
fn named(name: &str, now_ms: u64, life: Duration) -> Result<CertificateParams, rcgen::Error> {
    let at = |ms: u64| {
        OffsetDateTime::from_unix_timestamp(i64::try_from(ms / 1000).unwrap_or(i64::MAX))
            .map_err(|_| rcgen::Error::Time)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = at(now_ms.saturating_sub(CERTIFICATE_SKEW.as_millis() as u64))?;
    params.not_after = at(now_ms.saturating_add(life.as_millis() as u64))?;
    params.serial_number = Some(SerialNumber::from_slice(Uuid::new_v4().as_bytes()));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// The blocks of one kind in a PEM text.
fn blocks<'a>(text: &'a str, kind: &str) -> impl Iterator<Item = &'a str> {
    let (begin, end) = (format!("-----BEGIN {kind}-----"), format!("-----END {kind}-----"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.find(&begin)?;
        let to = from + rest.get(from..)?.find(&end)? + end.len();
        let block = rest.get(from..to)?;
        rest = rest.get(to..)?;
        Some(block)
    })
}

/// The keys in a PEM text, each with the digest of its public half.
fn keys_of(text: &str) -> Vec<(Sha, String)> {
    let keys = blocks(text, "PRIVATE KEY").filter_map(|pem| KeyPair::from_pem(pem).ok());
    keys.map(|key| (digest(&key.subject_public_key_info()), key.serialize_pem())).collect()
}

fn read_own(text: &str) -> Result<Bundle, String> {
    let (_, key) = keys_of(text).into_iter().next().ok_or("there is no key in it")?;
    Bundle::read(text, &key)
}

fn read_given(files: &TlsFiles) -> Result<Bundle, AuthorityFault> {
    let (certificates, key) = (text(&files.cert)?, text(&files.key)?);
    let faulty = |why| AuthorityFault::Faulty { path: files.cert.clone(), why };
    Bundle::read(&certificates, &key).map_err(faulty)
}

fn text(path: &Path) -> Result<String, AuthorityFault> {
    std::fs::read_to_string(path)
        .map_err(|source| AuthorityFault::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
