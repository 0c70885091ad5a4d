//! Entries of the audit log, and the digests that chain them. What is in an entry is its author's matter, how it is
//! kept that of the queries.

use common::snapshot::{Sha, digest};
use serde_json::Value;

/// Begins what is digested, so that the digest of nothing else is one of ours.
const MARK: &[u8] = b"sluice audit 1\n";
/// The digest before the first entry.
pub const BEFORE_ALL: Sha = [0; 32];
/// A value that is longer is kept as its digest.
const VALUE_BYTES_MAX: usize = 16 * 1024;

/// What was done, by whom. It is kept in the transaction of the change itself, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// When it was done.
    pub at_ms: u64,
    /// Name of who did it.
    pub actor: String,
    /// In which role.
    pub role: String,
    /// What the actor showed; never the secret itself.
    pub credential: String,
    /// From which address.
    pub origin: String,
    /// What was done, as `catalog.apply`.
    pub action: String,
    /// To what: an id, a name.
    pub object: String,
    /// What was there before, as JSON.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
    /// The catalog revision that came of it; 0 when none did.
    pub revision: u64,
}

impl Entry {
    /// The same with what was there before and what is there now; `Null` for nothing. Never a secret: the log is
    /// shown to all who may read.
    pub fn with(self, before: &Value, after: &Value) -> Self {
        Entry { before: text(before), after: text(after), ..self }
    }

    /// The same with the catalog revision that came of it.
    pub fn revision(self, revision: u64) -> Self {
        Entry { revision, ..self }
    }

    /// The digest of this entry at its place in the log.
    pub fn sha256(&self, seq: u64, previous: &Sha) -> Sha {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(MARK);
        bytes.extend_from_slice(previous);
        for number in [seq, self.at_ms, self.revision] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let texts =
            [&self.actor, &self.role, &self.credential, &self.origin, &self.action, &self.object].map(Some);
        for text in texts.into_iter().chain([self.before.as_ref(), self.after.as_ref()]) {
            // A length before each text, so that no two entries give the same bytes.
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.map_or(&[], |text| text.as_bytes()));
        }
        digest(&bytes)
    }
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its number: from 1, without gaps.
    pub seq: u64,
    /// What it says.
    pub entry: Entry,
    /// Digest over what it says and over the digest of the one before it.
    pub sha256: Sha,
}

/// The end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHead {
    /// Number of the newest entry; 0 when there is none.
    pub seq: u64,
    /// Its digest.
    pub sha256: Sha,
}

/// Which entries are asked for.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Below this number.
    pub before: u64,
    /// Not older than this.
    pub since_ms: u64,
    /// Of this actor; empty for all.
    pub actor: String,
    /// Of actions that begin so; empty for all.
    pub action: String,
    /// So many at most.
    pub limit: u32,
}

fn text(value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let text = value.to_string();
    if text.len() <= VALUE_BYTES_MAX {
        return Some(text);
    }
    let sha256 = common::snapshot::hex(&digest(text.as_bytes()));
    Some(format!("{{\"bytes\":{},\"sha256\":\"{sha256}\"}}", text.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Entry {
        Entry { at_ms: 1, actor: "ann".to_owned(), action: "key.create".to_owned(), ..Entry::default() }
            .with(&Value::Null, &json!({"name": "app"}))
    }

    #[test]
    fn every_field_and_every_border_between_fields_is_in_the_digest() {
        let whole = entry().sha256(1, &BEFORE_ALL);
        assert_eq!(whole, entry().sha256(1, &BEFORE_ALL));
        let text = |text: &str| text.to_owned();
        let others = [
            (entry().sha256(2, &BEFORE_ALL), "seq"),
            (entry().sha256(1, &[1; 32]), "previous"),
            (Entry { at_ms: 2, ..entry() }.sha256(1, &BEFORE_ALL), "at"),
            (Entry { revision: 1, ..entry() }.sha256(1, &BEFORE_ALL), "revision"),
            (Entry { actor: text("bob"), ..entry() }.sha256(1, &BEFORE_ALL), "actor"),
            (Entry { role: text("admin"), ..entry() }.sha256(1, &BEFORE_ALL), "role"),
            (Entry { credential: text("c"), ..entry() }.sha256(1, &BEFORE_ALL), "credential"),
            (Entry { origin: text("1.2.3.4"), ..entry() }.sha256(1, &BEFORE_ALL), "origin"),
            (Entry { action: text("key.revoke"), ..entry() }.sha256(1, &BEFORE_ALL), "action"),
            (Entry { object: text("k"), ..entry() }.sha256(1, &BEFORE_ALL), "object"),
            (Entry { before: Some(text("")), ..entry() }.sha256(1, &BEFORE_ALL), "nothing is not empty"),
            (Entry { after: None, ..entry() }.sha256(1, &BEFORE_ALL), "after"),
            (
                Entry { actor: text("an"), role: text("n"), ..entry() }.sha256(1, &BEFORE_ALL),
                "a letter over the border",
            ),
        ];
        for (other, what) in others {
            assert_ne!(other, whole, "{what}");
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_kept_as_its_digest() {
        let entry = entry().with(&json!("x".repeat(VALUE_BYTES_MAX)), &Value::Null);
        assert!(entry.before.unwrap().starts_with("{\"bytes\":16386,\"sha256\":\""));
        assert_eq!(entry.after, None);
    }
}
