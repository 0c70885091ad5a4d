//! The tokens by which nodes enrol: made, listed, revoked. The token itself is shown once and kept nowhere.

use common::label::Labels;
use common::limits::{ENROLMENT_TOKEN_LIFE, ENROLMENT_TOKEN_LIFE_MAX, ENROLMENT_TOKEN_USES_MAX};
use common::snapshot::digest;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::Caller;
use crate::error::Error;
use crate::keys::random_text;
use crate::plane::Plane;
use crate::store::rows::EnrolmentToken;

/// A token that was just made, with the only copy of its secret.
pub struct Created {
    /// What is kept.
    pub token: EnrolmentToken,
    /// What a node shows.
    pub secret: String,
}

/// Makes a token for `uses` nodes, which works for so many seconds; zero of either means the default.
pub async fn create(
    plane: &Plane,
    caller: &Caller,
    (ttl_seconds, uses): (u64, u64),
    labels: Labels,
) -> Result<Created, Error> {
    let fault = |field, message: String| Err(Error::Argument { field, message });
    let ttl_seconds = if ttl_seconds == 0 { ENROLMENT_TOKEN_LIFE.as_secs() } else { ttl_seconds };
    if ttl_seconds > ENROLMENT_TOKEN_LIFE_MAX.as_secs() {
        return fault("ttl_seconds", "a token lives a year at most".to_owned());
    }
    let uses = uses.max(1);
    if uses > ENROLMENT_TOKEN_USES_MAX {
        return fault("uses", format!("a token enrols {ENROLMENT_TOKEN_USES_MAX} nodes at most"));
    }
    let labels = match common::label::collect(labels) {
        Ok(labels) => json!(labels),
        Err(wrong) => return fault("labels", wrong.to_string()),
    };
    let secret = format!("enrol-{}", random_text());
    let now_ms = plane.clock.now_ms();
    let token = EnrolmentToken {
        id: format!("token-{}", Uuid::now_v7().simple()),
        labels: labels.to_string(),
        uses_max: uses,
        uses: 0,
        created_at_ms: now_ms,
        expires_at_ms: now_ms + ttl_seconds * 1000,
        revoked_at_ms: None,
    };
    let after = json!({"uses": uses, "expires_at_ms": token.expires_at_ms, "labels": labels});
    let entry = plane.entry(caller, "token.create", &token.id).with(&Value::Null, &after);
    plane.store.insert_token(&token, &digest(secret.as_bytes()), &entry).await?;
    tracing::info!(token.id = token.id, "enrolment token {} made", token.id);
    Ok(Created { token, secret })
}

/// Every token that is not long over, oldest first.
pub async fn list(plane: &Plane) -> Result<Vec<EnrolmentToken>, Error> {
    Ok(plane.store.tokens().await?)
}

/// Revokes a token; one that was revoked before stays as it is.
pub async fn revoke(plane: &Plane, caller: &Caller, id: &str) -> Result<EnrolmentToken, Error> {
    let none = || Error::NotFound { what: "token", name: id.to_owned() };
    // No id has a zero in it, and not every database takes one as text.
    if id.contains('\0') {
        return Err(none());
    }
    let now_ms = plane.clock.now_ms();
    let revoked = json!({"revoked_at_ms": now_ms});
    let entry = plane.entry(caller, "token.revoke", id).with(&json!({"revoked_at_ms": null}), &revoked);
    let token = plane.store.revoke_token(id, now_ms, &entry).await?.ok_or_else(none)?;
    tracing::info!(token.id = token.id, "enrolment token {} revoked", token.id);
    Ok(token)
}
