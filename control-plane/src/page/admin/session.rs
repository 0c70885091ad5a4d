//! Sessions of browsers: who has logged in, and until when. The cookie is random and kept as its digest; the token that was
//! shown is not kept, only who it said was there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::snapshot::{Sha, digest};
use subtle::ConstantTimeEq as _;

use crate::access::Caller;

/// How long somebody stays logged in, unless the token ends before: a day's work.
pub const LENGTH_MS: u64 = 10 * 60 * 60 * 1000;
/// So many at once; who logs in then takes the place of the session that would end first.
const SESSIONS_MAX: usize = 1000;

/// Who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Who, as the token said.
    pub caller: Caller,
    /// What each form of the session carries, so that no other page can write one.
    pub form_token: String,
    /// When it ends.
    pub until_ms: u64,
}

impl Session {
    /// Whether a form carries what the forms of this session carry. Takes the same time for each wrong one.
    pub fn wrote(&self, shown: &str) -> bool {
        digest(shown.as_bytes()).ct_eq(&digest(self.form_token.as_bytes())).into()
    }
}

/// All sessions of this process.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<Sha, Session>>);

impl Sessions {
    /// Begins a session under this cookie.
    pub fn begin(&self, cookie: &str, form_token: String, caller: Caller, now_ms: u64) {
        let token_ends = caller.expires_at_ms.unwrap_or(u64::MAX);
        let until_ms = now_ms.saturating_add(LENGTH_MS).min(token_ends);
        let mut sessions = self.lock();
        sessions.retain(|_, session| now_ms < session.until_ms);
        if sessions.len() >= SESSIONS_MAX {
            let first = sessions.iter().min_by_key(|(_, session)| session.until_ms).map(|(key, _)| *key);
            first.and_then(|key| sessions.remove(&key));
        }
        sessions.insert(digest(cookie.as_bytes()), Session { caller, form_token, until_ms });
    }

    /// The session of a cookie, while it lasts.
    pub fn find(&self, cookie: &str, now_ms: u64) -> Option<Session> {
        self.lock().get(&digest(cookie.as_bytes())).filter(|session| now_ms < session.until_ms).cloned()
    }

    /// Ends a session.
    pub fn end(&self, cookie: &str) {
        self.lock().remove(&digest(cookie.as_bytes()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Sha, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann(expires_at_ms: Option<u64>) -> Caller {
        Caller { name: "ann".to_owned(), expires_at_ms, ..Caller::bootstrap() }
    }

    #[test]
    fn a_session_ends_by_itself_with_its_token_and_when_somebody_ends_it() {
        let sessions = Sessions::default();
        sessions.begin("a", "fa".to_owned(), ann(None), 1000);
        sessions.begin("b", "fb".to_owned(), ann(Some(5000)), 1000);
        for (cookie, now_ms, lasts) in [
            ("a", 1000, true),
            ("a", 1000 + LENGTH_MS - 1, true),
            ("a", 1000 + LENGTH_MS, false),
            ("b", 4999, true),
            ("b", 5000, false),
            ("c", 1000, false),
            ("", 1000, false),
        ] {
            assert_eq!(sessions.find(cookie, now_ms).is_some(), lasts, "{cookie} at {now_ms}");
        }
        sessions.end("a");
        assert_eq!(sessions.find("a", 1000), None);
        let b = sessions.find("b", 1000).unwrap();
        assert!(b.wrote("fb") && !b.wrote("fa") && !b.wrote(""));
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_makes_room() {
        let sessions = Sessions::default();
        for number in 0..=SESSIONS_MAX as u64 {
            sessions.begin(&number.to_string(), String::new(), ann(None), number);
        }
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        assert_eq!(sessions.find("0", 2000), None, "it would have ended first");
        assert!(sessions.find("1", 2000).is_some());
    }
}
