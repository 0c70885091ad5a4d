//! Who nodes are: tokens, enrolments, certificates.

use common::snapshot::Sha;

/// A token by which nodes enrol, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolmentToken {
    /// Its id.
    pub id: String,
    /// What nodes that enrol with it are labelled: a JSON object.
    pub labels: String,
    /// How many nodes may enrol with it.
    pub uses_max: u64,
    /// How many have.
    pub uses: u64,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it ends.
    pub expires_at_ms: u64,
    /// When it was revoked, if it was.
    pub revoked_at_ms: Option<u64>,
}

/// A certificate that a node is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrol {
    /// The node.
    pub node_id: String,
    /// Of the token that it shows; `None`: the one that all nodes share, or none where it renews.
    pub token_sha256: Option<Sha>,
    /// Of its public key.
    pub key_sha256: Sha,
    /// Of the public key of the authority that signed.
    pub authority_sha256: Sha,
    /// Of the certificate, in hex.
    pub serial: String,
    /// Now.
    pub issued_at_ms: u64,
    /// When the certificate ends.
    pub expires_at_ms: u64,
}

/// What became of an enrolment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enrolled {
    /// The node is enrolled.
    Kept {
        /// With this token; empty: the one that all nodes share.
        token_id: String,
    },
    /// There is no such token, or it is over, revoked or used up.
    NoToken,
    /// The node is revoked, and the token is no newer than that.
    Revoked,
}

/// A node's identity as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The node.
    pub node_id: String,
    /// Of its public key; empty when it was revoked before it ever had one.
    pub key_sha256: Vec<u8>,
    /// Of the public key of the authority that signed its newest certificate.
    pub authority_sha256: Vec<u8>,
    /// Of its newest certificate, in hex.
    pub serial: String,
    /// The token with which it enrolled; empty: the one that all nodes share.
    pub token_id: String,
    /// What that token labels it: a JSON object.
    pub labels: String,
    /// When it enrolled.
    pub enrolled_at_ms: u64,
    /// When its newest certificate was made.
    pub issued_at_ms: u64,
    /// When that ends.
    pub expires_at_ms: u64,
    /// When it was revoked, if it is.
    pub revoked_at_ms: Option<u64>,
}
