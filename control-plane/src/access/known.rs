//! The tokens that are known, in memory, so that no call waits for the database. What other control planes change is
//! seen within two seconds; while the database is away, what is known goes on counting.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use common::snapshot::{Sha, digest};
use tokio::time::Instant;

use super::{Caller, Role};
use crate::error::Error;
use crate::store::Store;
use crate::store::rows::AdminToken;

/// A token that nobody knows may be as new as this: the store is asked, but no more often.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// A use is noted at most this often.
const USE_NOTED_EVERY_MS: u64 = 60 * 1000;

/// What is known of a token that somebody shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is this caller's.
    Valid(Caller),
    /// Nobody has it.
    Unknown,
    /// It was this one's, and is over since then.
    Expired(String),
    /// It was this one's, and somebody revoked it.
    Revoked(String),
}

/// The tokens of the newest version that was read.
#[derive(Debug, Default)]
pub struct Known {
    tokens: RwLock<Arc<Tokens>>,
    asked: Mutex<Option<Instant>>,
    uses: Mutex<BTreeMap<String, Use>>,
}

#[derive(Debug, Default)]
struct Tokens {
    /// 0 before the first reading.
    version: u64,
    by_digest: HashMap<Sha, AdminToken>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    at_ms: u64,
    noted_at_ms: u64,
}

impl Known {
    /// Reads the tokens, if their version is another one than what is known.
    pub async fn refresh(&self, store: &Store) -> Result<(), Error> {
        let version = store.access_version().await?;
        if version == self.tokens().version {
            return Ok(());
        }
        let list = store.admin_tokens().await?;
        let by_digest = list.into_iter().map(|token| (token.sha256, token)).collect();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Tokens { version, by_digest });
        Ok(())
    }

    /// Whose token is shown. One that is not known is looked for in the store, within bounds.
    pub async fn find(&self, store: &Store, shown: &[u8], now_ms: u64) -> Result<Found, Error> {
        let sha256 = digest(shown);
        let found = self.look(&sha256, now_ms);
        if found != Found::Unknown || !self.may_ask(Instant::now()) {
            return Ok(found);
        }
        self.refresh(store).await?;
        Ok(self.look(&sha256, now_ms))
    }

    /// Whether somebody has revoked the token of this id.
    pub fn is_revoked(&self, id: &str) -> bool {
        let tokens = self.tokens();
        tokens.by_digest.values().any(|token| token.id == id && token.revoked_at_ms.is_some())
    }

    /// The uses that were not noted yet, each at most once a minute.
    pub fn take_uses(&self, now_ms: u64) -> Vec<(String, u64)> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let due = uses.iter_mut().filter(|(_, one)| {
            one.at_ms > one.noted_at_ms && now_ms.saturating_sub(one.noted_at_ms) >= USE_NOTED_EVERY_MS
        });
        due.map(|(id, one)| {
            one.noted_at_ms = one.at_ms;
            (id.clone(), one.at_ms)
        })
        .collect()
    }

    fn tokens(&self) -> Arc<Tokens> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self, sha256: &Sha, now_ms: u64) -> Found {
        let tokens = self.tokens();
        let Some(token) = tokens.by_digest.get(sha256) else { return Found::Unknown };
        if token.revoked_at_ms.is_some() {
            return Found::Revoked(token.name.clone());
        }
        // A role of a later version of this program is none that this one can grant.
        let Some(role) = Role::named(&token.role) else { return Found::Unknown };
        if !is_valid(token, now_ms) {
            return Found::Expired(token.name.clone());
        }
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.entry(token.id.clone()).or_default().at_ms = now_ms;
        let (name, credential) = (token.name.clone(), token.id.clone());
        let expires_at_ms = token.expires_at_ms;
        Found::Valid(Caller { name, role, credential, expires_at_ms, from: String::new() })
    }

    fn may_ask(&self, now: Instant) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_some_and(|at| now.duration_since(at) < ASK_AGAIN) {
            return false;
        }
        *asked = Some(now);
        true
    }
}

fn is_valid(token: &AdminToken, now_ms: u64) -> bool {
    token.revoked_at_ms.is_none() && token.expires_at_ms.is_none_or(|at| now_ms < at)
}
