//! Which node calls. Over TLS it shows its own certificate, and speaks for the node that is named in it; in plaintext on
//! loopback, behind a proxy, and where there is no authority it shows the token that all nodes share, and is taken at
//! its word. A revoked node is heard either way by nobody.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use common::certificate::Facts;
use common::hpke::Recipient;
use common::snapshot::digest;
use http::HeaderMap;
use tonic::Status;

use super::{Token, bearer, is_health};
use crate::fleet::Origin;
use crate::identity::Standing;
use crate::identity::enrolment::Shown;
use crate::listener::Proof;
use crate::plane::Plane;

/// For whom a call of the fleet speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// For this node alone.
    Node(Arc<str>),
    /// For whichever it names.
    Any,
}

impl Speaker {
    /// Who speaks in a request.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        let found = request.extensions().get().cloned();
        found.ok_or_else(|| Status::unauthenticated("nobody said which node calls"))
    }

    /// What a stream may say of itself.
    pub fn origin(&self, plane: &Plane, proof: &Proof) -> Origin {
        match self {
            Speaker::Any => Origin::default(),
            Speaker::Node(id) => Origin {
                node_id: Some(id.clone()),
                labels: plane.identity.nodes.labels(id),
                recipient: proof.certificate.as_ref().and_then(|own| Recipient::of_point(&own.public_key)),
            },
        }
    }

    /// Whether it may speak for this node.
    pub fn check(&self, node_id: &str, plane: &Plane) -> Result<(), Status> {
        match self {
            Speaker::Node(own) if **own != *node_id => {
                Err(Status::permission_denied("the certificate is another node's"))
            }
            _ if plane.identity.nodes.is_revoked(node_id) => {
                Err(Status::permission_denied("this node is revoked"))
            }
            Speaker::Node(_) | Speaker::Any => Ok(()),
        }
    }
}

/// What the fleet listener lets in.
#[derive(Clone)]
pub struct Gate {
    /// The token that all nodes share.
    pub token: Token,
    /// What the services share.
    pub plane: Arc<Plane>,
}

/// Lets in who may speak for a node, and says for which.
pub async fn require(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if is_health(path) {
        return next.run(request).await;
    }
    if path.starts_with("/sluice.fleet.v1.FleetEnrolment/") {
        let shown = gate.shown(request.headers());
        request.extensions_mut().insert(shown);
        return next.run(request).await;
    }
    let proof: Proof = request.extensions().get().cloned().unwrap_or_default();
    match gate.speaker(&proof, request.headers()).await {
        Ok(speaker) => {
            request.extensions_mut().insert(speaker);
            next.run(request).await
        }
        Err(refused) => refused.into_http(),
    }
}

impl Gate {
    async fn speaker(&self, proof: &Proof, headers: &HeaderMap) -> Result<Speaker, Status> {
        if let Some(certificate) = &proof.certificate {
            return self.certified(certificate).await;
        }
        if proof.is_tls && self.plane.identity.authority.is_some() {
            return Err(Status::unauthenticated(
                "a client certificate is missing: nodes enrol with their token and show that",
            ));
        }
        if !self.is_shared(headers) {
            return Err(Status::unauthenticated("the token is missing or wrong"));
        }
        Ok(Speaker::Any)
    }

    async fn certified(&self, certificate: &Facts) -> Result<Speaker, Status> {
        let Some(node_id) = &certificate.node_id else {
            return Err(Status::unauthenticated("the certificate names no node"));
        };
        let identities = &self.plane.identity.nodes;
        let mut standing = identities.standing(node_id, &certificate.key_sha256);
        if standing != Standing::Live {
            // It may have enrolled a moment ago, at another control plane.
            if let Err(error) = identities.refresh(&self.plane.store).await {
                tracing::debug!(%error, "who is enrolled cannot be looked up");
                return Err(Status::unavailable("who is enrolled cannot be looked up at the moment"));
            }
            standing = identities.standing(node_id, &certificate.key_sha256);
        }
        match standing {
            Standing::Live => Ok(Speaker::Node(node_id.as_str().into())),
            Standing::Revoked => Err(Status::permission_denied("this node is revoked")),
            Standing::Unknown => {
                Err(Status::unauthenticated("the certificate is not the one of its node any more"))
            }
        }
    }

    fn shown(&self, headers: &HeaderMap) -> Shown {
        match bearer(headers) {
            Some(token) if self.token.is(token) => Shown::Shared,
            Some(token) => Shown::Token(digest(token)),
            None => Shown::Nothing,
        }
    }

    fn is_shared(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|token| self.token.is(token))
    }
}
