//! Credentials of channels that the control plane keeps: set, listed, deleted, sealed anew. A value comes in, is sealed at
//! once, and is opened only to be sealed for a node; nothing here shows one or tells of it.

pub mod held;
pub mod keyring;
#[cfg(test)]
mod tests;
mod uses;

use std::collections::BTreeSet;

use common::catalog::{Fault, SecretUse};
use common::limits::{SECRETS_BYTES_MAX, SECRETS_MAX};
use common::secret::{Secret, is_secret_name};
use serde_json::{Value, json};

use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::SealedSecret;
pub use uses::Use;

/// How often somebody looks again after another one was faster.
const TRIES_MAX: usize = 10;

/// So many nodes are named in a warning.
const NODES_TOLD_MAX: usize = 5;

/// What is known of a secret besides its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What is kept.
    pub kept: SealedSecret,
    /// Who names it, in revisions that are served.
    pub used_by: Vec<Use>,
}

/// Keeps a value under a name, in place of the one before.
pub async fn set(plane: &Plane, caller: &Caller, name: &str, value: &Secret) -> Result<Known, Error> {
    if !is_secret_name(name) {
        let message = "a secret's name has 1 to 64 letters, digits, dots, dashes or underscores, and begins with a \
                       letter or digit";
        return Err(Error::Argument { field: "name", message: message.to_owned() });
    }
    // Versions go on from what nodes were given, also in a database that was put back under this process.
    plane.head.refresh(&plane.store).await?;
    for _ in 0..TRIES_MAX {
        let (seen, others) = plane.store.secrets().await?;
        let before = others.iter().find(|kept| kept.name == name);
        let next = seen + 1;
        let (key_id, sealed) = plane.keyring.seal(name, next, value).ok_or_else(no_key)?;
        has_room(&others, name, sealed.len())?;
        let (now_ms, who) = (plane.clock.now_ms(), &caller.name);
        let kept = SealedSecret {
            name: name.to_owned(),
            version: next,
            key_id,
            sealed,
            created_at_ms: before.map_or(now_ms, |before| before.created_at_ms),
            created_by: before.map_or(who, |before| &before.created_by).clone(),
            changed_at_ms: now_ms,
            changed_by: who.clone(),
        };
        let entry = plane.entry(caller, "secret.set", name).with(&told(before), &told(Some(&kept)));
        if plane.store.set_secrets(seen, next, std::slice::from_ref(&kept), &entry).await? {
            tracing::info!(secret = name, version = next, "secret {name} set");
            plane.tell().await;
            return Ok(Known { used_by: uses::all(plane).await?.remove(name).unwrap_or_default(), kept });
        }
    }
    Err(Error::Busy)
}

/// Every secret, by name.
pub async fn list(plane: &Plane) -> Result<Vec<Known>, Error> {
    let (_, secrets) = plane.store.secrets().await?;
    let mut uses = uses::all(plane).await?;
    let known = |kept: SealedSecret| Known { used_by: uses.remove(&kept.name).unwrap_or_default(), kept };
    Ok(secrets.into_iter().map(known).collect())
}

/// The names that documents may use.
pub async fn names(plane: &Plane) -> Result<BTreeSet<String>, Error> {
    Ok(plane.store.secrets().await?.1.into_iter().map(|kept| kept.name).collect())
}

/// Warns of secrets that some nodes are not given although a document names them.
pub fn withheld(plane: &Plane, named: &[SecretUse]) -> Result<Vec<Fault>, Error> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut why = Vec::new();
    if let Some(fault) = plane.wanted()?.target.secrets.fault() {
        why.push(format!("no node is given it from here: {fault}"));
    }
    let nodes = plane.nodes.uncertified();
    if !nodes.is_empty() {
        let shown = nodes.iter().take(NODES_TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match nodes.len().saturating_sub(NODES_TOLD_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        why.push(format!(
            "{shown}{more} will not get it and suspend the channel: they lack a certificate of their own (mutual TLS)"
        ));
    }
    let warnings = named.iter().flat_map(|SecretUse { name, line, path }| {
        why.iter().map(move |why| Fault {
            line: *line,
            path: path.clone(),
            message: format!("secret:{name}: {why}"),
        })
    });
    Ok(warnings.collect())
}

/// What becomes of a secret that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InUse {
    /// It stays.
    Keep,
    /// It goes all the same; its channels are suspended.
    Delete,
}

/// Removes a secret. Returns it as it was.
pub async fn delete(plane: &Plane, caller: &Caller, name: &str, in_use: InUse) -> Result<Known, Error> {
    plane.head.refresh(&plane.store).await?;
    for _ in 0..TRIES_MAX {
        let (seen, secrets) = plane.store.secrets().await?;
        let kept = secrets.into_iter().find(|kept| kept.name == name);
        let kept = kept.ok_or_else(|| Error::NotFound { what: "secret", name: name.to_owned() })?;
        let used_by = uses::all(plane).await?.remove(name).unwrap_or_default();
        if !used_by.is_empty() && in_use == InUse::Keep {
            let by = used_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::InUse { what: "secret", name: name.to_owned(), by });
        }
        let entry = plane.entry(caller, "secret.delete", name).with(&told(Some(&kept)), &Value::Null);
        if plane.store.delete_secret(seen, seen + 1, name, &entry).await? {
            tracing::info!(secret = name, "secret {name} deleted");
            plane.tell().await;
            return Ok(Known { kept, used_by });
        }
    }
    Err(Error::Busy)
}

/// Seals whatever another key has sealed with the first one. Returns how many there were, and the key's name.
pub async fn rekey(plane: &Plane, caller: &Caller) -> Result<(usize, String), Error> {
    let key_id = plane.keyring.sealing_id().ok_or_else(no_key)?.to_owned();
    plane.head.refresh(&plane.store).await?;
    for _ in 0..TRIES_MAX {
        let (seen, secrets) = plane.store.secrets().await?;
        let next = seen + 1;
        let others = secrets.into_iter().filter(|kept| kept.key_id != key_id);
        let resealed: Vec<SealedSecret> = others
            .map(|kept| {
                let value = plane.keyring.open(&kept).map_err(Error::Secret)?;
                let (key_id, sealed) = plane.keyring.seal(&kept.name, next, &value).ok_or_else(no_key)?;
                Ok(SealedSecret { version: next, key_id, sealed, ..kept })
            })
            .collect::<Result<_, Error>>()?;
        if resealed.is_empty() {
            return Ok((0, key_id));
        }
        let entry = plane.entry(caller, "secret.rekey", &key_id);
        let entry = entry.with(&Value::Null, &json!({"resealed": resealed.len()}));
        if plane.store.set_secrets(seen, next, &resealed, &entry).await? {
            let count = resealed.len();
            tracing::info!(key_id, count, "{count} secrets are sealed with key {key_id} now");
            plane.tell().await;
            return Ok((count, key_id));
        }
    }
    Err(Error::Busy)
}

/// What the audit log says of a value: everything but the value.
fn told(kept: Option<&SealedSecret>) -> Value {
    kept.map_or(Value::Null, |kept| json!({"version": kept.version, "key_id": kept.key_id}))
}

fn no_key() -> Error {
    Error::Precondition("this control plane has no key to seal secrets with: start it with --secret-key-file")
}

/// All of them travel to each node at once.
fn has_room(others: &[SealedSecret], name: &str, bytes: usize) -> Result<(), Error> {
    let others = others.iter().filter(|kept| kept.name != name);
    let (count, all) = others.fold((1, bytes), |(count, all), kept| (count + 1, all + kept.sealed.len()));
    if count <= SECRETS_MAX && all <= SECRETS_BYTES_MAX {
        return Ok(());
    }
    let message = format!("at most {SECRETS_MAX} secrets of {SECRETS_BYTES_MAX} bytes together are kept");
    Err(Error::Argument { field: "value", message })
}
