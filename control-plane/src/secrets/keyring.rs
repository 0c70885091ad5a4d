//! The keys that secrets are sealed with at rest: read from files, named by a digest, never printed. The first seals, all
//! open, so that a key can be replaced while others still hold the old one.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Generate as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use common::secret::Secret;
use common::snapshot::{digest, hex};
use zeroize::Zeroizing;

use crate::store::rows::SealedSecret;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Begins what is authenticated with a value, so that nothing else under the same key is taken for one.
const MARK: &[u8] = b"sluice secret 1\n";
/// Begins what a key's name is the digest of.
const NAME_MARK: &[u8] = b"sluice secret key\n";
/// Nobody but the owner and its group may read a key, and nobody but the owner may replace it.
const FORBIDDEN_MODE: u32 = 0o027;

/// Why a key file is not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileFault {
    /// It cannot be read.
    #[error("the secret key file {} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others may read it, or its group may write it.
    #[error("others than its owner and group may read the secret key file {}, or its group may write it; chmod 600 {}", .0.display(), .0.display())]
    Open(PathBuf),
    /// It is no key.
    #[error("the secret key file {} holds no key: it wants 32 random bytes, as they are, in hex or in base64, as `openssl rand -out FILE 32` makes them", .0.display())]
    NoKey(PathBuf),
}

/// Why a secret cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// There is no key at all.
    #[error(
        "the secret {name:?} is sealed with key {key_id}, and this control plane has no --secret-key-file"
    )]
    NoKey {
        /// The secret.
        name: String,
        /// The key that it wants.
        key_id: String,
    },
    /// The key is another one.
    #[error("the secret {name:?} is sealed with key {key_id}, and --secret-key-file gives {known}")]
    OtherKey {
        /// The secret.
        name: String,
        /// The key that it wants.
        key_id: String,
        /// The keys that there are.
        known: String,
    },
    /// The key is the right one, and what is kept is not what it sealed.
    #[error(
        "what is kept of the secret {0:?} was altered or belongs to another name or version: set it anew"
    )]
    Altered(String),
}

/// One key.
struct Key {
    id: String,
    cipher: XChaCha20Poly1305,
}

/// The keys of this control plane; perhaps none.
#[derive(Default)]
pub struct Keyring(Vec<Key>);

impl Keyring {
    /// Reads the key files; the first one seals.
    pub fn load(files: &[PathBuf]) -> Result<Self, KeyFileFault> {
        files.iter().map(|path| Ok(Key::of(&*read(path)?))).collect::<Result<_, _>>().map(Keyring)
    }

    /// Names the key that seals, if there is one.
    pub fn sealing_id(&self) -> Option<&str> {
        self.0.first().map(|key| key.id.as_str())
    }

    /// Seals a value under a name and a version. `None` without a key, or without randomness.
    pub fn seal(&self, name: &str, version: u64, value: &Secret) -> Option<(String, Vec<u8>)> {
        let key = self.0.first()?;
        let nonce = XNonce::try_generate().ok()?;
        let payload = Payload { msg: value.expose().as_bytes(), aad: &associated(name, version) };
        let ciphertext = key.cipher.encrypt(&nonce, payload).ok()?;
        Some((key.id.clone(), [&nonce[..], &ciphertext].concat()))
    }

    /// Opens a value.
    pub fn open(&self, kept: &SealedSecret) -> Result<Secret, OpenFault> {
        let (name, key_id) = (kept.name.clone(), kept.key_id.clone());
        if self.0.is_empty() {
            return Err(OpenFault::NoKey { name, key_id });
        }
        let Some(key) = self.0.iter().find(|key| key.id == kept.key_id) else {
            let known = self.0.iter().map(|key| key.id.as_str()).collect::<Vec<_>>().join(", ");
            return Err(OpenFault::OtherKey { name, key_id, known });
        };
        let altered = || OpenFault::Altered(name.clone());
        let (nonce, ciphertext) = kept.sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(altered)?;
        let payload = Payload { msg: ciphertext, aad: &associated(&kept.name, kept.version) };
        let plain = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| altered())?;
        Secret::parse_bytes(&Zeroizing::new(plain)).map_err(|_| altered())
    }
}

impl Key {
    fn of(key: &[u8; KEY_BYTES]) -> Self {
        let named = Zeroizing::new([NAME_MARK, key].concat());
        Key { id: hex(&digest(&named)[..8]), cipher: XChaCha20Poly1305::new(key.into()) }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

/// What is authenticated with a value: rows cannot change places, and an earlier value cannot come back under a later
/// version.
fn associated(name: &str, version: u64) -> Vec<u8> {
    [MARK, &version.to_be_bytes(), name.as_bytes()].concat()
}

fn read(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, KeyFileFault> {
    let fault = |source| KeyFileFault::Io { path: path.to_owned(), source };
    let mode = std::fs::metadata(path).map_err(fault)?.permissions().mode();
    if mode & FORBIDDEN_MODE != 0 {
        return Err(KeyFileFault::Open(path.to_owned()));
    }
    let bytes = Zeroizing::new(std::fs::read(path).map_err(fault)?);
    parse(&bytes).ok_or_else(|| KeyFileFault::NoKey(path.to_owned()))
}

fn parse(bytes: &[u8]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if let Ok(key) = bytes.try_into() {
        return Some(Zeroizing::new(key));
    }
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let decoded = Zeroizing::new(match text.len() {
        64 => unhex(text)?,
        _ => STANDARD.decode(text).ok()?,
    });
    decoded.as_slice().try_into().ok().map(Zeroizing::new)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests;
