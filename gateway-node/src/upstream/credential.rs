//! A channel's credential, from what `sources` found to a header or a parameter that is never printed.

use http::header::{self, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

use common::secret::Secret;

use super::sources::Found;
use crate::dialect::percent;
use crate::fault::{Fault, REDACTED};

/// Shorter ones are words, and no secrets.
const SECRET_BYTES_MIN: usize = 8;
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
    /// What there is to show of what was found.
    pub fn of(found: &Found, place: &Place) -> Self {
        let credential = found.secret.as_ref().and_then(|secret| Credential::of(secret, place));
        credential.map_or(Showing::Missing, Showing::Credential)
    }

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
    secret: Secret,
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
    /// A credential, ready to be shown there. `None` behind a prefix that no header can carry.
    pub fn of(secret: &Secret, place: &Place) -> Option<Credential> {
        let text = secret.expose();
        let sensitive = |prefix: &str| {
            let mut value = HeaderValue::from_str(&format!("{prefix}{text}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let plain = sensitive("")?;
        let mut digest = Sha256::new_with_prefix(text);
        let shown = match place {
            Place::ByDialect | Place::Nowhere => Shown::ByDialect { bearer: sensitive("Bearer ")?, plain },
            Place::Header { name, prefix } => {
                // Shown otherwise it is another credential: one way may be refused and the next one taken.
                digest.update(format!("\nheader {name}\n{prefix}"));
                Shown::Header(name.clone(), sensitive(prefix)?)
            }
            Place::Query { name } => {
                digest.update(format!("\nquery {name}"));
                let pair = [name, text].map(percent::encoded_whole).join("=");
                Shown::Parameter(pair.into())
            }
        };
        Some(Credential { secret: secret.clone(), shown, fingerprint: digest.finalize().into() })
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
        let secret = self.secret.expose();
        if secret.len() < SECRET_BYTES_MIN {
            return;
        }
        let encoded = percent::encoded_whole(secret);
        for secret in [secret, &encoded] {
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

    fn credential(secret: &str, place: &Place) -> Credential {
        Credential::of(&Secret::parse(secret).unwrap(), place).unwrap()
    }

    fn places() -> [Place; 3] {
        [Place::ByDialect, header("x-key", "Token "), Place::Query { name: "key".to_owned() }]
    }

    #[test]
    fn br_116_a_credential_is_never_printed() {
        for place in places() {
            let credential = credential("sk-secret-value", &place);
            let showing = Showing::Credential(credential.clone());
            let shown = format!("{credential:?} {showing:?} {:?}", showing.header(Auth::XApiKey));
            assert!(!shown.contains("secret-value"), "{shown}");
        }
    }

    #[test]
    fn each_dialect_has_its_own_header_and_what_is_missing_shows_nothing() {
        let credential = credential("sk-1", &Place::ByDialect);
        let shown = |auth| {
            credential.header(auth).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        };
        assert_eq!(shown(Auth::Bearer).unwrap(), "authorization: Bearer sk-1");
        assert_eq!(shown(Auth::XGoogApiKey).unwrap(), "x-goog-api-key: sk-1");
        let found = Found { secret: None, fault: Some("is empty".to_owned()) };
        let missing = Showing::of(&found, &Place::ByDialect);
        assert!(matches!(missing, Showing::Missing));
        assert!(missing.header(Auth::Bearer).is_none() && missing.parameter().is_none());
    }

    #[test]
    fn a_place_of_the_channels_own_holds_for_every_dialect() {
        let showing = |place| Showing::Credential(credential("a/b c", &place));
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
            .map(|place| credential("sk-1", &place).fingerprint)
            .collect();
        assert_eq!(prints.len(), 5);
    }

    #[test]
    fn br_116_a_credential_that_an_upstream_repeats_is_taken_out_of_its_words() {
        let said = |secret: &str, message: &str| {
            let showing = Showing::Credential(credential(secret, &Place::ByDialect));
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
