//! What the store hands out and takes in: plain values, the same for both databases.

mod counts;
mod identity;
mod records;

use bytes::Bytes;
use common::snapshot::Sha;

use super::entry::Entry;
pub use counts::{AttemptRow, Claim, Claimed, Counted, FirstByteRow, RequestRow};
pub use identity::{Enrol, Enrolled, EnrolmentToken, NodeIdentity};
pub use records::{FailureCount, Filter, FoundRecord, KeptRecord, RequestSummary, UsageFilter, Used, UsedBy};

/// A catalog revision without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// From 1, without gaps.
    pub number: u64,
    /// Digest of the document.
    pub sha256: Sha,
    /// Name of the token that applied it.
    pub author: String,
    /// What the author said about it.
    pub message: String,
    /// When it was made.
    pub created_at_ms: u64,
}

/// A catalog revision with the operator's document and the snapshot for the nodes.
#[derive(Debug, Clone)]
pub struct FullRevision {
    /// Number, author and so on.
    pub revision: Revision,
    /// The document as it was applied.
    pub document: Bytes,
    /// Digest of the encoded snapshot.
    pub snapshot_sha256: Sha,
    /// The encoded snapshot, compressed.
    pub snapshot_zstd: Bytes,
    /// What its author called the change, so that it is made once however often it is asked for.
    pub idempotency_key: Option<String>,
}

/// A client key without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key's id.
    pub id: String,
    /// What the operator called it.
    pub name: String,
    /// Digest of the key as callers show it.
    pub sha256: Sha,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it was revoked; `None` while it is valid.
    pub revoked_at_ms: Option<u64>,
}

/// A token of an operator, without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// The token's id.
    pub id: String,
    /// Who or what it is for.
    pub name: String,
    /// Name of a role, perhaps one that this version does not know.
    pub role: String,
    /// Digest of the token as callers show it.
    pub sha256: Sha,
    /// When it was made.
    pub created_at_ms: u64,
    /// Name of who made it.
    pub created_by: String,
    /// When it ends; `None` for never.
    pub expires_at_ms: Option<u64>,
    /// When it was revoked, if it was.
    pub revoked_at_ms: Option<u64>,
    /// When it was last used, to the minute; `None` before the first use.
    pub last_used_at_ms: Option<u64>,
}

/// Which contents are wanted now: small enough to be asked for every two seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// The database's epoch.
    pub epoch: u64,
    /// The newest revision; 0 when there is none.
    pub revision: u64,
    /// The version of the key list.
    pub keys: u64,
    /// The version of that revision's rollout; 0 when it has none.
    pub rollout: u64,
    /// The version of the list of secrets.
    pub secrets: u64,
    /// The version of the list of pinned nodes.
    pub pins: u64,
}

/// A credential of channels, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SealedSecret {
    /// What channels call it.
    pub name: String,
    /// Of the list when this value was set.
    pub version: u64,
    /// Names the key that sealed it.
    pub key_id: String,
    /// What only that key opens.
    pub sealed: Vec<u8>,
    /// When a value was first set.
    pub created_at_ms: u64,
    /// Name of who did it.
    pub created_by: String,
    /// When this value was set.
    pub changed_at_ms: u64,
    /// Name of who did it.
    pub changed_by: String,
}

/// A node that is kept on a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The node's id.
    pub node_id: String,
    /// The revision.
    pub revision: u64,
    /// Name of who pinned it.
    pub author: String,
    /// Why; empty for nothing to say.
    pub reason: String,
    /// When.
    pub pinned_at_ms: u64,
}

/// Who changes a rollout.
#[derive(Debug, Clone, Copy)]
pub enum By<'a> {
    /// An operator, and what is logged of it.
    Operator(&'a Entry),
    /// The leader of this epoch.
    Leader(u64),
}

/// How a revision reaches, or reached, the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// The revision.
    pub revision: u64,
    /// The newest revision that the whole fleet may run.
    pub base: u64,
    /// Grows with each change; over which one a change is made.
    pub version: u64,
    /// Whether it may still change.
    pub is_under_way: bool,
    /// JSON that only `rollout` reads.
    pub body: String,
}

/// A node as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The node's id.
    pub id: String,
    /// Its process.
    pub boot_id: String,
    /// Its program's version.
    pub version: String,
    /// Where callers reach it.
    pub data_address: String,
    /// Where operators reach it.
    pub ops_address: String,
    /// Epoch of what it runs; 0 when it runs nothing.
    pub applied_epoch: u64,
    /// Revision that it runs; 0 when it runs none.
    pub applied_revision: u64,
    /// JSON that only `nodes` reads.
    pub findings: String,
    /// Whether it left on purpose.
    pub drained: bool,
    /// When it was last heard of.
    pub last_seen_at_ms: u64,
    /// The control plane at which its stream is open, by its process; empty for none, `None` where nobody has said it.
    pub control_plane: Option<String>,
    /// Since when it is.
    pub streaming_since_ms: u64,
    /// JSON that only `nodes` reads: two processes that speak as it.
    pub cloned: Option<String>,
    /// The version of the list with which this was written; not written itself.
    pub list_version: u64,
}

/// One of the control planes that share a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replica {
    /// The process.
    pub id: String,
    /// For people.
    pub name: String,
    /// Of its program.
    pub version: String,
    /// When it was started, by its own clock.
    pub started_at_ms: u64,
    /// For how long nothing was heard of it, by the database's clock; not written itself.
    pub silent_ms: u64,
}

/// Which channel made what a key calls by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// In which dialect.
    pub dialect: String,
    /// As the upstream gave it.
    pub id: String,
    /// The client key; empty for callers without one.
    pub key_id: String,
    /// The channel.
    pub channel: String,
    /// Under which model calls for it are counted.
    pub model: String,
    /// When it was made.
    pub made_at_ms: u64,
}

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Which one it is.
    pub kind: &'static str,
    /// The version of its program.
    pub version: String,
    /// How it is set up, in a few words with commas between them.
    pub setup: String,
    /// What its clock says.
    pub now_ms: u64,
    /// The version of the tables.
    pub schema: u64,
    /// Who does the periodic work.
    pub lease: Lease,
}

/// The lease of the control plane that does the periodic work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The process; empty when there was none yet.
    pub holder: String,
    /// Grows whenever the lease is taken anew.
    pub epoch: u64,
    /// When it ends, by the database's clock.
    pub until_ms: u64,
}
