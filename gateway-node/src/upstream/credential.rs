//! A channel's credential: from `env:NAME` or `file:PATH` to a header value that is never printed.

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

/// Why a credential could not be had on this node.
#[derive(Debug, thiserror::Error)]
pub enum CredentialFault {
    /// The environment of this process has no such variable.
    #[error("the environment variable {0} is not set on this node")]
    NoVariable(String),
    /// The file cannot be read.
    #[error("the file {path} cannot be read on this node")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Nothing in it, or characters that no header may have.
    #[error("the credential of {0} is empty or has characters that a header cannot carry")]
    Unusable(String),
    /// Neither `env:` nor `file:`.
    #[error("this version resolves env:NAME and file:PATH only")]
    UnknownKind,
}

/// What a channel has to show.
#[derive(Debug, Clone)]
pub enum Showing {
    /// The upstream wants no credential.
    Nothing,
    /// This one.
    Credential(Credential),
    /// One that this node could not get: nothing may be sent.
    Missing,
}

impl Showing {
    /// Tells credentials apart without showing them.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        match self {
            Showing::Credential(credential) => Some(credential.fingerprint),
            Showing::Nothing | Showing::Missing => None,
        }
    }

    /// The value of `authorization`, if there is one.
    pub fn header(&self) -> Option<HeaderValue> {
        match self {
            Showing::Credential(credential) => Some(credential.header.clone()),
            Showing::Nothing | Showing::Missing => None,
        }
    }
}

/// A resolved credential.
#[derive(Clone)]
pub struct Credential {
    header: HeaderValue,
    fingerprint: [u8; 32],
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(…)")
    }
}

impl Credential {
    /// Resolves a reference of the catalog; an empty one means that the upstream wants none.
    pub fn resolve(reference: &str) -> Result<Showing, CredentialFault> {
        if reference.is_empty() {
            return Ok(Showing::Nothing);
        }
        let secret = match reference.split_once(':') {
            Some(("env", name)) => {
                std::env::var(name).map_err(|_| CredentialFault::NoVariable(name.to_owned()))?
            }
            Some(("file", path)) => std::fs::read_to_string(path)
                .map_err(|source| CredentialFault::Unreadable { path: path.to_owned(), source })?,
            _ => return Err(CredentialFault::UnknownKind),
        };
        Credential::bearer(secret.trim())
            .map(Showing::Credential)
            .ok_or_else(|| CredentialFault::Unusable(reference.to_owned()))
    }

    fn bearer(secret: &str) -> Option<Credential> {
        if secret.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
        header.set_sensitive(true);
        Some(Credential { header, fingerprint: Sha256::digest(secret).into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br_116_a_credential_is_never_printed() {
        let credential = Credential::bearer("sk-secret-value").unwrap();
        let shown = format!("{credential:?} {:?}", Showing::Credential(credential.clone()).header());
        assert!(!shown.contains("secret-value"), "{shown}");
    }

    #[test]
    fn a_credential_that_cannot_be_had_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let reference = format!("file:{}", path.display());
        assert!(Credential::resolve(&reference).unwrap_err().to_string().contains("cannot be read"));
        std::fs::write(&path, "\n").unwrap();
        assert!(Credential::resolve(&reference).unwrap_err().to_string().contains("empty"));
        std::fs::write(&path, "sk-1\n").unwrap();
        let credential = Credential::resolve(&reference).unwrap();
        assert_eq!(credential.header().unwrap(), "Bearer sk-1");
        let missing = Credential::resolve("env:SLUICE_TEST_NO_SUCH").unwrap_err().to_string();
        assert!(missing.contains("SLUICE_TEST_NO_SUCH"), "{missing}");
        assert!(Credential::resolve("").unwrap().header().is_none());
    }
}
