//! Callers that an OIDC issuer vouches for: its keys are fetched and kept, a token is verified with them, and one of its
//! claims says the role. While the issuer is away, keys that are known go on counting; the start never waits for it.

pub mod jwt;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Caller, Role};
use jwt::{Expected, Jwt, Key, LEEWAY_S};

/// A key that is not known may be new: the issuer is asked, but no more often.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Keys that the issuer has withdrawn are forgotten after this.
const KEYS_AGE: Duration = Duration::from_secs(10 * 60);
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What the operator says of the issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Its URL, exactly as tokens name it.
    pub issuer: String,
    /// For whom tokens must be made.
    pub audience: String,
    /// The claim that says the role.
    pub role_claim: String,
    /// Which of its values means which role.
    pub roles: Vec<(String, Role)>,
}

/// Why a token was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It does not hold.
    Wrong(&'static str),
    /// It holds and gives its subject no role.
    NoRole {
        /// By which the subject is shown.
        name: String,
    },
    /// Its key is not known, and the issuer cannot be asked.
    Away,
}

/// What became of a fetch of the issuer's keys.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the issuer cannot be reached")]
    Http(#[from] reqwest::Error),
    #[error("the issuer's answer is not what it must be")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Odd(&'static str),
}

/// An issuer that is trusted, with its keys as far as they are known.
#[derive(Debug)]
pub struct Oidc {
    trust: Trust,
    client: reqwest::Client,
    keys: RwLock<Arc<Vec<Key>>>,
    asking: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    last: Option<Instant>,
    succeeded: Option<Instant>,
    is_away: bool,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl Oidc {
    /// Trusts an issuer; it is not asked before a token comes.
    pub fn new(trust: Trust) -> Result<Self, reqwest::Error> {
        // Fails only when a provider is there already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(ANSWERS_WITHIN).build()?;
        Ok(Oidc { trust, client, keys: RwLock::default(), asking: Mutex::default() })
    }

    /// Whose token is shown.
    pub async fn identify(&self, shown: &[u8], now_ms: u64) -> Result<Caller, Refused> {
        let jwt = Jwt::read(shown).map_err(Refused::Wrong)?;
        let keys = self.keys_for(&jwt, Instant::now()).await?;
        let Trust { issuer, audience, .. } = &self.trust;
        let expected = Expected { issuer, audience, now_s: now_ms / 1000 };
        let claims = jwt.verify(&*keys, &expected).map_err(Refused::Wrong)?;
        let name: String = claims.name().chars().filter(|c| !c.is_control()).take(200).collect();
        let values = claims.values(&self.trust.role_claim);
        let given = self.trust.roles.iter().filter(|(value, _)| values.contains(&value.as_str()));
        let Some(role) = given.map(|(_, role)| *role).max() else { return Err(Refused::NoRole { name }) };
        let subject: String = claims.subject.chars().filter(|c| !c.is_control()).take(200).collect();
        let expires_at_ms = Some(claims.expires_s.saturating_add(LEEWAY_S).saturating_mul(1000));
        let credential = format!("oidc:{subject}");
        Ok(Caller { name, role, credential, expires_at_ms, from: String::new() })
    }

    /// The keys, with the one that a token names among them if there is one. One caller asks the issuer for all.
    async fn keys_for(&self, jwt: &Jwt, now: Instant) -> Result<Arc<Vec<Key>>, Refused> {
        let is_in = |keys: &[Key]| keys.iter().any(|key| key.is_named(jwt));
        let mut asked = self.asking.lock().await;
        let is_old = asked.succeeded.is_none_or(|at| now.duration_since(at) >= KEYS_AGE);
        let may_ask = asked.last.is_none_or(|at| now.duration_since(at) >= ASK_AGAIN);
        if (is_old || !is_in(&self.known())) && may_ask {
            asked.last = Some(now);
            match self.fetch().await {
                Ok(keys) => {
                    *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                    (asked.succeeded, asked.is_away) = (Some(now), false);
                }
                Err(error) => {
                    asked.is_away = true;
                    let issuer = &self.trust.issuer;
                    let cause =
                        std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    tracing::warn!(issuer, %error, cause, "the keys of {issuer} were not read; known ones count on");
                }
            }
        }
        let keys = self.known();
        if !is_in(&keys) && asked.is_away { Err(Refused::Away) } else { Ok(keys) }
    }

    fn known(&self) -> Arc<Vec<Key>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self) -> Result<Vec<Key>, Fault> {
        let issuer = &self.trust.issuer;
        let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let found: Discovery = self.get(&at).await?;
        if found.issuer != *issuer {
            return Err(Fault::Odd("the issuer calls itself by another name than --oidc-issuer"));
        }
        if !is_safe(&found.jwks_uri) {
            return Err(Fault::Odd("the issuer's keys are at an address that is neither https nor loopback"));
        }
        let set: Set = self.get(&found.jwks_uri).await?;
        Ok(set.keys.iter().filter_map(Key::read).collect())
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, Fault> {
        let mut answer = self.client.get(url).send().await?.error_for_status()?;
        if !answer.status().is_success() {
            return Err(Fault::Odd("the issuer sends elsewhere"));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(Fault::Odd("the issuer's answer is too long"));
            }
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// Whether what comes from there is what was sent: over TLS, or from this host.
pub fn is_safe(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|at| at.to_canonical().is_loopback());
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => is_loopback,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
