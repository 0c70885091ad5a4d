//! A channel's credential: from `env:NAME` or `file:PATH` to a header value that is never printed.

use http::header::{self, HeaderName, HeaderValue};
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

    /// The header that shows it, if there is one.
    pub fn header(&self, auth: Auth) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Showing::Credential(credential) => Some(credential.header(auth)),
            Showing::Nothing | Showing::Missing => None,
        }
    }
}

/// Where an upstream looks for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`, as Anthropic has it.
    XApiKey,
    /// `x-goog-api-key: …`, as Google has it.
    XGoogApiKey,
}

/// A resolved credential.
#[derive(Clone)]
pub struct Credential {
    bearer: HeaderValue,
    plain: HeaderValue,
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
        Credential::of(secret.trim())
            .map(Showing::Credential)
            .ok_or_else(|| CredentialFault::Unusable(reference.to_owned()))
    }

    fn of(secret: &str) -> Option<Credential> {
        if secret.is_empty() {
            return None;
        }
        let sensitive = |text: &str| {
            let mut value = HeaderValue::from_str(text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        Some(Credential {
            bearer: sensitive(&format!("Bearer {secret}"))?,
            plain: sensitive(secret)?,
            fingerprint: Sha256::digest(secret).into(),
        })
    }

    fn header(&self, auth: Auth) -> (HeaderName, HeaderValue) {
        let named = |name| (HeaderName::from_static(name), self.plain.clone());
        match auth {
            Auth::Bearer => (header::AUTHORIZATION, self.bearer.clone()),
            Auth::XApiKey => named("x-api-key"),
            Auth::XGoogApiKey => named("x-goog-api-key"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br_116_a_credential_is_never_printed() {
        let credential = Credential::of("sk-secret-value").unwrap();
        let shown =
            format!("{credential:?} {:?}", Showing::Credential(credential.clone()).header(Auth::XApiKey));
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
        let shown = |auth| {
            credential.header(auth).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        };
        assert_eq!(shown(Auth::Bearer).unwrap(), "authorization: Bearer sk-1");
        assert_eq!(shown(Auth::XGoogApiKey).unwrap(), "x-goog-api-key: sk-1");
        let missing = Credential::resolve("env:SLUICE_TEST_NO_SUCH").unwrap_err().to_string();
        assert!(missing.contains("SLUICE_TEST_NO_SUCH"), "{missing}");
        assert!(Credential::resolve("").unwrap().header(Auth::Bearer).is_none());
    }
}
