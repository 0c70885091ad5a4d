//! How a node gets its certificate: with a token the first time, with its key ever after, until it is revoked.

use common::certificate::is_node_id;
use common::snapshot::Sha;
use serde_json::{Value, json};

use super::Standing;
use super::authority::{Authorities, Issued};
use crate::access::{Caller, Role};
use crate::error::Error;
use crate::metrics::EnrolmentResult;
use crate::plane::Plane;
use crate::store::rows::{Enrol, Enrolled};

/// Longest request; one with the largest key that is in use has a few kilobytes.
const CSR_BYTES_MAX: usize = 16 * 1024;

/// What was shown with a request.
#[derive(Debug, Clone)]
pub enum Shown {
    /// The token that all nodes share.
    Shared,
    /// Another one, by its digest.
    Token(Sha),
    /// Nothing.
    Nothing,
}

/// A certificate, and the authorities of the fleet.
#[derive(Debug, Clone)]
pub struct Given {
    /// The node's certificate.
    pub certificate_pem: String,
    /// The authorities.
    pub authorities_pem: String,
}

/// Enrols a node with a token.
pub async fn enrol(
    plane: &Plane,
    (shown, from): (Shown, String),
    node_id: &str,
    csr: &[u8],
) -> Result<Given, Error> {
    let done = try_enrol(plane, (shown, from), node_id, csr).await;
    plane.metrics.enrolment(if done.is_ok() { EnrolmentResult::Enrolled } else { EnrolmentResult::Refused });
    done
}

/// Gives an enrolled node another certificate for its key.
pub async fn renew(plane: &Plane, node_id: &str, csr: &[u8]) -> Result<Given, Error> {
    let done = try_renew(plane, node_id, csr).await;
    plane.metrics.enrolment(if done.is_ok() { EnrolmentResult::Renewed } else { EnrolmentResult::Refused });
    done
}

/// Takes a node's identity away: nobody speaks for it from now on.
pub async fn revoke(plane: &Plane, caller: &Caller, node_id: &str) -> Result<(), Error> {
    let identities = &plane.identity.nodes;
    identities.refresh(&plane.store).await?;
    if !identities.is_known(node_id) && !plane.nodes.is_known(node_id) {
        return Err(Error::NotFound { what: "node", name: node_id.to_owned() });
    }
    let now_ms = plane.clock.now_ms();
    let revoked = json!({"revoked_at_ms": now_ms});
    let entry = plane.entry(caller, "node.revoke", node_id).with(&json!({"revoked_at_ms": null}), &revoked);
    plane.store.revoke_identity(node_id, now_ms, &entry).await?;
    tracing::info!(node.id = node_id, "node {node_id} revoked");
    // It is kept already; should the store not answer now, the next look finds it.
    if let Err(error) = identities.refresh(&plane.store).await {
        tracing::warn!(%error, "a revocation is kept and is obeyed as soon as the store answers");
    }
    Ok(())
}

async fn try_enrol(
    plane: &Plane,
    (shown, from): (Shown, String),
    node_id: &str,
    csr: &[u8],
) -> Result<Given, Error> {
    let authority = authority(plane)?;
    let token_sha256 = match shown {
        Shown::Shared => None,
        Shown::Token(sha256) => Some(sha256),
        Shown::Nothing => return Err(Error::Unauthenticated("enrolment needs a token")),
    };
    let issued = sign(plane, authority, node_id, csr)?;
    plane.identity.nodes.refresh(&plane.store).await?;
    // An answer that was lost: the token is not used twice for one key.
    if plane.identity.nodes.standing(node_id, &issued.facts.key_sha256) == Standing::Live {
        return keep_renewed(plane, authority, node_id, issued).await;
    }
    let (name, role) = (node_id.to_owned(), Role::Viewer);
    let node = Caller { name, role, credential: String::new(), expires_at_ms: None, from };
    let entry = plane.entry(&node, "node.enrol", node_id);
    let entry = entry.with(&Value::Null, &json!({"serial": issued.facts.serial}));
    let kept = plane.store.enrol(&row(plane, node_id, &issued, token_sha256), &entry).await?;
    match kept {
        Enrolled::Kept { token_id } => {
            let (token, serial) =
                (if token_id.is_empty() { "node.token" } else { &token_id }, &issued.facts.serial);
            tracing::info!(node.id = node_id, token, serial, "node {node_id} enrolled with {token}");
            plane.identity.nodes.refresh(&plane.store).await?;
            Ok(give(authority, issued))
        }
        Enrolled::NoToken => {
            Err(Error::Unauthenticated("the token is unknown, revoked, over, or used up; make a new one"))
        }
        Enrolled::Revoked => Err(Error::Forbidden(
            "this node is revoked; it enrols again only with a token that was made afterwards",
        )),
    }
}

async fn try_renew(plane: &Plane, node_id: &str, csr: &[u8]) -> Result<Given, Error> {
    let authority = authority(plane)?;
    let issued = sign(plane, authority, node_id, csr)?;
    keep_renewed(plane, authority, node_id, issued).await
}

async fn keep_renewed(
    plane: &Plane,
    authority: &Authorities,
    node_id: &str,
    issued: Issued,
) -> Result<Given, Error> {
    if plane.store.renew_identity(&row(plane, node_id, &issued, None)).await? {
        tracing::debug!(node.id = node_id, serial = issued.facts.serial, "node {node_id} renewed");
        return Ok(give(authority, issued));
    }
    plane.identity.nodes.refresh(&plane.store).await?;
    match plane.identity.nodes.standing(node_id, &issued.facts.key_sha256) {
        Standing::Revoked => Err(Error::Forbidden("this node is revoked")),
        Standing::Unknown | Standing::Live => {
            Err(Error::NotFound { what: "enrolled key of node", name: node_id.to_owned() })
        }
    }
}

fn authority(plane: &Plane) -> Result<&Authorities, Error> {
    plane.identity.authority.as_deref().ok_or(Error::Precondition(
        "this control plane gives no certificates: it needs TLS on its fleet listener, and --ca-cert with a PostgreSQL",
    ))
}

fn sign(plane: &Plane, authority: &Authorities, node_id: &str, csr: &[u8]) -> Result<Issued, Error> {
    let fault = |field, message: &str| Error::Argument { field, message: message.to_owned() };
    if !is_node_id(node_id) {
        return Err(fault("node_id", "must be 1 to 128 letters, digits and any of -_.:"));
    }
    if csr.len() > CSR_BYTES_MAX {
        return Err(fault("csr", "is longer than 16 KiB"));
    }
    authority.sign(node_id, csr, plane.clock.now_ms()).map_err(|error| {
        tracing::debug!(%error, node.id = node_id, "a request for a certificate cannot be signed");
        fault("csr", "is no request for a certificate that is signed with its own key")
    })
}

fn row(plane: &Plane, node_id: &str, issued: &Issued, token_sha256: Option<Sha>) -> Enrol {
    Enrol {
        node_id: node_id.to_owned(),
        token_sha256,
        key_sha256: issued.facts.key_sha256,
        authority_sha256: issued.authority_sha256,
        serial: issued.facts.serial.clone(),
        issued_at_ms: plane.clock.now_ms(),
        expires_at_ms: issued.facts.expires_at_ms,
    }
}

fn give(authority: &Authorities, issued: Issued) -> Given {
    Given { certificate_pem: issued.pem, authorities_pem: authority.now().pem().to_owned() }
}

#[cfg(test)]
mod tests;
