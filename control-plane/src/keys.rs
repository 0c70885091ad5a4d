//! The keys that applications call with: made, listed, revoked. The key itself is shown once and kept
//! nowhere; its digest goes to every node.

use common::snapshot::digest;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::Key;

/// Longest name of a key or a token.
const NAME_CHARS_MAX: usize = 100;

/// A key that was just made, with the only copy of its secret.
pub struct Created {
    /// What is kept.
    pub key: Key,
    /// What the caller shows.
    pub secret: String,
}

/// Makes a key.
pub async fn create(plane: &Plane, caller: &Caller, name: &str) -> Result<Created, Error> {
    let name = valid_name("key", name)?;
    let secret = format!("sk-{}", random_text());
    let key = Key {
        id: format!("key-{}", Uuid::now_v7().simple()),
        name: name.to_owned(),
        sha256: digest(secret.as_bytes()),
        created_at_ms: plane.clock.now_ms(),
        revoked_at_ms: None,
    };
    plane.head.refresh(&plane.store).await?;
    let entry = plane.entry(caller, "key.create", &key.id).with(&Value::Null, &json!({"name": key.name}));
    plane.store.insert_key(&key, &entry).await?;
    tracing::info!(key.id = key.id, "client key {} made", key.id);
    plane.tell().await;
    Ok(Created { key, secret })
}

/// Every key that ever was, oldest first.
pub async fn list(plane: &Plane) -> Result<Vec<Key>, Error> {
    Ok(plane.store.keys().await?.1)
}

/// Revokes a key; one that was revoked before stays as it is.
pub async fn revoke(plane: &Plane, caller: &Caller, id: &str) -> Result<Key, Error> {
    let none = || Error::NotFound { what: "key", name: id.to_owned() };
    // No id has a zero in it, and not every database takes one as text.
    if id.contains('\0') {
        return Err(none());
    }
    plane.head.refresh(&plane.store).await?;
    let now_ms = plane.clock.now_ms();
    let revoked = json!({"revoked_at_ms": now_ms});
    let entry = plane.entry(caller, "key.revoke", id).with(&json!({"revoked_at_ms": null}), &revoked);
    let revoked = plane.store.revoke_key(id, now_ms, &entry).await?;
    let key = revoked.ok_or_else(none)?;
    tracing::info!(key.id = key.id, "client key {} revoked", key.id);
    plane.tell().await;
    Ok(key)
}

/// A name that people can read, without the blanks around it. `what` is what needs one.
pub fn valid_name<'a>(what: &str, name: &'a str) -> Result<&'a str, Error> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        let message = format!("a {what} needs a name of 1 to {NAME_CHARS_MAX} printable characters");
        return Err(Error::Argument { field: "name", message });
    }
    Ok(name)
}

/// 256 random bits (and a few that are fixed) in letters and digits.
pub fn random_text() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    // A random UUID carries 122 bits of the system's randomness.
    let random = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
    let mut text = String::with_capacity(56);
    let digest = digest(&random.map(Uuid::into_bytes).concat());
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in digest {
        (bits, held) = ((bits << 8) | u32::from(byte), held + 8);
        while held >= 5 {
            held -= 5;
            text.push(char::from(ALPHABET[(bits >> held) as usize & 31]));
        }
    }
    if held > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - held)) as usize & 31]));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_text_has_256_bits_and_does_not_repeat() {
        let texts: HashSet<String> = (0..1000).map(|_| random_text()).collect();
        assert_eq!(texts.len(), 1000);
        assert!(texts.iter().all(|t| t.len() == 52 && t.bytes().all(|b| b.is_ascii_alphanumeric())));
    }
}
