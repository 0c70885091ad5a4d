//! The change from one authority to the next: the new one signs, nodes learn of it by the digest in heartbeats and
//! renew, and the old one goes when no live certificate needs it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::authority::{Authority, AuthorityFault};
use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::store::StoreError;

/// An authority and what needs it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The authority.
    pub authority: Authority,
    /// Certificates of nodes that it signed, neither expired nor revoked.
    pub live: u64,
}

impl Shown {
    /// Its public key's digest in hex.
    pub fn id(&self) -> String {
        self.authority.id()
    }
}

/// Every authority that is trusted, the one that signs first.
pub async fn list(plane: &Plane) -> Result<Vec<Shown>, Error> {
    let Some(authorities) = &plane.identity.authority else { return Ok(Vec::new()) };
    let live = live(plane).await?;
    let bundle = authorities.now();
    let shown = bundle.authorities().iter().cloned().map(|authority| {
        let live = live.get(&authority.facts.key_sha256[..]).copied().unwrap_or(0);
        Shown { authority, live }
    });
    Ok(shown.collect())
}

/// Makes a new authority that signs from now on.
pub async fn rotate(plane: &Plane, caller: &Caller) -> Result<(), Error> {
    let none = Error::Precondition("this control plane has no authority");
    let Some(authorities) = &plane.identity.authority else { return Err(none) };
    // Before the change, which is one of files: what is done and not told would be worse than the other way.
    let before = authorities.now().id();
    let entry = plane.entry(caller, "authority.rotate", "ca").with(&json!({"signs": before}), &Value::Null);
    plane.store.note(&entry).await?;
    let rotated = authorities.rotate(plane.clock.now_ms()).map_err(broken)?;
    let given = Error::Precondition(
        "the authority is given by --ca-cert and --ca-key: put the new one in front of the old one in that file",
    );
    rotated.ok_or(given)?;
    tracing::info!("a new certificate authority signs from now on; nodes renew");
    plane.identity.tell_authority();
    Ok(())
}

/// Lets go of authorities that no live certificate needs, and takes up what the operator's files hold.
pub async fn step(plane: &Plane) -> Result<(), Error> {
    let Some(authorities) = &plane.identity.authority else { return Ok(()) };
    match authorities.look() {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!("other certificate authorities were given; nodes renew");
            plane.identity.tell_authority();
        }
        Err(fault) => tracing::warn!(
            error = &fault as &dyn std::error::Error,
            "the new certificate authority cannot be used; the one before it stays"
        ),
    }
    if authorities.now().authorities().len() > 1 {
        let live = live(plane).await?;
        if authorities.retire(|key| live.contains_key(&key[..])).map_err(broken)? {
            tracing::info!("no certificate needs the old authority any more: it is not trusted from now on");
            plane.identity.tell_authority();
        }
    }
    Ok(())
}

async fn live(plane: &Plane) -> Result<HashMap<Vec<u8>, u64>, StoreError> {
    let now_ms = plane.clock.now_ms();
    let mut live = HashMap::new();
    for identity in plane.store.identities().await? {
        if identity.revoked_at_ms.is_none() && identity.expires_at_ms > now_ms {
            *live.entry(identity.authority_sha256).or_default() += 1;
        }
    }
    Ok(live)
}

fn broken(fault: AuthorityFault) -> Error {
    tracing::error!(error = &fault as &dyn std::error::Error, "the certificate authority cannot be changed");
    Error::Precondition("the certificate authority cannot be written; see the control plane's log")
}
