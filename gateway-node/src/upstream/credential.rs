//! A channel's credential: from `env:NAME` or `file:PATH` to a header or a parameter that is never printed.

use http::header::{self, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

use crate::dialect::percent;
use crate::fault::{Fault, REDACTED};

/// Shorter ones are words, and no secrets.
const SECRET_BYTES_MIN: usize = 8;
/// Far above any token, and small enough for every address.
const SECRET_BYTES_MAX: usize = 16 * 1024;

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
    /// Nothing in it, or too much, or characters that no header may have.
    #[error(
        "the credential of {0} is empty, longer than 16 KiB, or has characters that a header cannot carry"
    )]
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

    /// The header that shows it, if one does; `auth` is the dialect's own way.
    pub fn header(&self, auth: Auth) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Showing::Credential(credential) => credential.header(auth),
            Showing::Nothing | Showing::Missing => None,
        }
    }

    /// The part of the query that shows it, encoded, if one does. For the wire alone.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Showing::Credential(Credential { shown: Shown::Parameter(parameter), .. }) => Some(parameter),
            Showing::Credential(_) | Showing::Nothing | Showing::Missing => None,
        }
    }

    /// The fault without the credential in the upstream's words: some repeat what they refuse.
    pub fn hidden_in(&self, mut fault: Fault) -> Fault {
        if let (Showing::Credential(credential), Some(detail)) = (self, &mut fault.detail) {
            let texts = [&mut detail.kind, &mut detail.code, &mut detail.param].into_iter().flatten();
            for text in texts.chain([&mut detail.message]) {
                credential.hide_in(text);
            }
        }
        fault
    }
}

/// Where a channel shows its credential.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// Where the dialect has it.
    #[default]
    ByDialect,
    /// In this header, behind a prefix.
    Header {
        /// Its name.
        name: HeaderName,
        /// Before the credential.
        prefix: String,
    },
    /// In this parameter of the query.
    Query {
        /// Its name.
        name: String,
    },
    /// Nowhere.
    Nowhere,
}

/// Where the upstreams of a dialect look for a credential.
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
    secret: Box<str>,
    shown: Shown,
    fingerprint: [u8; 32],
}

#[derive(Clone)]
enum Shown {
    ByDialect {
        bearer: HeaderValue,
        plain: HeaderValue,
    },
    Header(HeaderName, HeaderValue),
    /// `name=value`, encoded.
    Parameter(Box<str>),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(…)")
    }
}

impl Credential {
    /// Resolves a reference of the catalog; an empty one means that the upstream wants none.
    pub fn resolve(reference: &str, place: &Place) -> Result<Showing, CredentialFault> {
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
        Credential::of(secret.trim(), place)
            .map(Showing::Credential)
            .ok_or_else(|| CredentialFault::Unusable(reference.to_owned()))
    }

    fn of(secret: &str, place: &Place) -> Option<Credential> {
        if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
            return None;
        }
        let sensitive = |prefix: &str| {
            let mut value = HeaderValue::from_str(&format!("{prefix}{secret}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let plain = sensitive("")?;
        let mut digest = Sha256::new_with_prefix(secret);
        let shown = match place {
            Place::ByDialect | Place::Nowhere => Shown::ByDialect { bearer: sensitive("Bearer ")?, plain },
            Place::Header { name, prefix } => {
                // Shown otherwise it is another credential: one way may be refused and the next one taken.
                digest.update(format!("\nheader {name}\n{prefix}"));
                Shown::Header(name.clone(), sensitive(prefix)?)
            }
            Place::Query { name } => {
                digest.update(format!("\nquery {name}"));
                let pair = [name, secret].map(percent::encoded_whole).join("=");
                Shown::Parameter(pair.into())
            }
        };
        Some(Credential { secret: secret.into(), shown, fingerprint: digest.finalize().into() })
    }

    fn header(&self, auth: Auth) -> Option<(HeaderName, HeaderValue)> {
        let (bearer, plain) = match &self.shown {
            Shown::ByDialect { bearer, plain } => (bearer, plain),
            Shown::Header(name, value) => return Some((name.clone(), value.clone())),
            Shown::Parameter(_) => return None,
        };
        let named = |name| Some((HeaderName::from_static(name), plain.clone()));
        match auth {
            Auth::Bearer => Some((header::AUTHORIZATION, bearer.clone())),
            Auth::XApiKey => named("x-api-key"),
            Auth::XGoogApiKey => named("x-goog-api-key"),
        }
    }

    fn hide_in(&self, text: &mut String) {
        // What is no secret by its looks (`none`, `EMPTY`) is an ordinary word in a message.
        if self.secret.len() < SECRET_BYTES_MIN {
            return;
        }
        let encoded = percent::encoded_whole(&self.secret);
        for secret in [&*self.secret, &encoded] {
            if text.contains(secret) {
                *text = text.replace(secret, REDACTED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use common::class::FailureClass;

    use super::*;
    use crate::fault::Detail;

    fn header(name: &'static str, prefix: &str) -> Place {
        Place::Header { name: HeaderName::from_static(name), prefix: prefix.to_owned() }
    }

    fn places() -> [Place; 3] {
        [Place::ByDialect, header("x-key", "Token "), Place::Query { name: "key".to_owned() }]
    }

    #[test]
    fn br_116_a_credential_is_never_printed() {
        for place in places() {
            let credential = Credential::of("sk-secret-value", &place).unwrap();
            let showing = Showing::Credential(credential.clone());
            let shown = format!("{credential:?} {showing:?} {:?}", showing.header(Auth::XApiKey));
            assert!(!shown.contains("secret-value"), "{shown}");
        }
    }

    #[test]
    fn a_credential_that_cannot_be_had_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let reference = format!("file:{}", path.display());
        let resolve = |reference: &str| Credential::resolve(reference, &Place::ByDialect);
        assert!(resolve(&reference).unwrap_err().to_string().contains("cannot be read"));
        for unusable in ["\n", "a\nb", &"x".repeat(20_000)] {
            std::fs::write(&path, unusable).unwrap();
            assert!(resolve(&reference).unwrap_err().to_string().contains("empty"));
        }
        std::fs::write(&path, "sk-1\n").unwrap();
        let credential = resolve(&reference).unwrap();
        let shown = |auth| {
            credential.header(auth).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        };
        assert_eq!(shown(Auth::Bearer).unwrap(), "authorization: Bearer sk-1");
        assert_eq!(shown(Auth::XGoogApiKey).unwrap(), "x-goog-api-key: sk-1");
        assert_eq!(credential.parameter(), None);
        let missing = resolve("env:SLUICE_TEST_NO_SUCH").unwrap_err().to_string();
        assert!(missing.contains("SLUICE_TEST_NO_SUCH"), "{missing}");
        assert!(resolve("").unwrap().header(Auth::Bearer).is_none());
    }

    #[test]
    fn a_place_of_the_channels_own_holds_for_every_dialect() {
        let showing = |place| Showing::Credential(Credential::of("a/b c", &place).unwrap());
        let (name, value) = showing(header("x-key", "Token ")).header(Auth::Bearer).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-key", "Token a/b c"));
        let in_query = showing(Place::Query { name: "my key".to_owned() });
        assert_eq!(in_query.parameter(), Some("my%20key=a%2Fb%20c"));
        assert!(in_query.header(Auth::Bearer).is_none());
    }

    #[test]
    fn the_same_secret_shown_otherwise_is_another_credential() {
        let prints: std::collections::BTreeSet<_> = places()
            .into_iter()
            .chain([header("x-key", ""), header("x-other", "")])
            .map(|place| Credential::of("sk-1", &place).unwrap().fingerprint)
            .collect();
        assert_eq!(prints.len(), 5);
    }

    #[test]
    fn br_116_a_credential_that_an_upstream_repeats_is_taken_out_of_its_words() {
        let said = |secret: &str, message: &str| {
            let showing = Showing::Credential(Credential::of(secret, &Place::ByDialect).unwrap());
            let detail = Detail::new(message, None, Some(message), None);
            let fault = Fault::of(FailureClass::BadRequest).with_detail(Some(detail));
            let detail = showing.hidden_in(fault).detail.unwrap();
            assert_eq!(Some(&detail.message), detail.code.as_ref());
            detail.message
        };
        assert_eq!(
            said("correct horse", "bad ?k=correct%20horse or correct horse"),
            "bad ?k=[redacted] or [redacted]"
        );
        assert_eq!(said("EMPTY", "the input is EMPTY"), "the input is EMPTY");
    }
}
