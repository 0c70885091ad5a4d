//! Tokens of operators: made, listed, revoked. The token itself is shown once and kept nowhere. The one that the
//! control plane was started with is none of them: it cannot be revoked, so that nobody locks everybody out.

use std::time::Duration;

use common::snapshot::digest;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Caller, Role};
use crate::error::Error;
use crate::keys::{random_text, valid_name};
use crate::plane::Plane;
use crate::store::rows::AdminToken;

/// How long a token lives of which nobody says it.
pub const TTL_DEFAULT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// And at most, unless it never ends.
const TTL_MAX: Duration = Duration::from_secs(3660 * 24 * 60 * 60);
/// Those who act without a token of the list.
const NAMES_TAKEN: [&str; 2] = ["admin", "sluice"];

/// A token that is to be made.
#[derive(Debug)]
pub struct New<'a> {
    /// Who or what it is for.
    pub name: &'a str,
    /// What it may do.
    pub role: Role,
    /// How long it lives; `None` for ever.
    pub ttl: Option<Duration>,
}

/// A token that was just made, with the only copy of its text.
pub struct Created {
    /// What is kept.
    pub token: AdminToken,
    /// What the caller shows.
    pub secret: String,
}

/// Makes a token.
pub async fn create(plane: &Plane, caller: &Caller, new: New<'_>) -> Result<Created, Error> {
    let name = valid_name("token", new.name)?;
    if NAMES_TAKEN.contains(&name.to_lowercase().as_str()) {
        let message = format!("\"{name}\" is taken; give another one");
        return Err(Error::Argument { field: "name", message });
    }
    if new.role > caller.role {
        let message =
            format!("{} has the role {} and cannot give the role {}", caller.name, caller.role, new.role);
        return Err(Error::Denied(message));
    }
    if let Some(ttl) = new.ttl
        && !(Duration::from_secs(1)..=TTL_MAX).contains(&ttl)
    {
        let message = format!("must be within 1s and {} days", TTL_MAX.as_secs() / (24 * 60 * 60));
        return Err(Error::Argument { field: "ttl_seconds", message });
    }
    let secret = format!("sla-{}", random_text());
    let now_ms = plane.clock.now_ms();
    let token = AdminToken {
        id: format!("tok-{}", Uuid::now_v7().simple()),
        name: name.to_owned(),
        role: new.role.to_string(),
        sha256: digest(secret.as_bytes()),
        created_at_ms: now_ms,
        created_by: caller.name.clone(),
        expires_at_ms: new.ttl.map(|ttl| now_ms.saturating_add(ttl.as_millis() as u64)),
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    let after = json!({"name": token.name, "role": token.role, "expires_at_ms": token.expires_at_ms});
    let entry = plane.entry(caller, "access.create", &token.id).with(&Value::Null, &after);
    plane.store.insert_admin_token(&token, &entry).await?;
    tracing::info!(token.id = token.id, role = token.role, "token {} made for {}", token.id, token.name);
    told(plane).await;
    Ok(Created { token, secret })
}

/// Every token that ever was, oldest first.
pub async fn list(plane: &Plane) -> Result<Vec<AdminToken>, Error> {
    Ok(plane.store.admin_tokens().await?)
}

/// Revokes a token; one that was revoked before stays as it is.
pub async fn revoke(plane: &Plane, caller: &Caller, id: &str) -> Result<AdminToken, Error> {
    let none = || Error::NotFound { what: "token", name: id.to_owned() };
    if id.contains('\0') {
        return Err(none());
    }
    let now_ms = plane.clock.now_ms();
    let after = json!({"revoked_at_ms": now_ms});
    let entry = plane.entry(caller, "access.revoke", id).with(&json!({"revoked_at_ms": null}), &after);
    let token = plane.store.revoke_admin_token(id, now_ms, &entry).await?.ok_or_else(none)?;
    tracing::info!(token.id = token.id, "token {} revoked", token.id);
    told(plane).await;
    Ok(token)
}

/// The change is made, whether or not it can be read again now.
async fn told(plane: &Plane) {
    if let Err(error) = plane.access.refresh(&plane.store).await {
        tracing::warn!(%error, "a change of the tokens is kept and counts as soon as the store answers");
    }
}

#[cfg(test)]
mod tests;
