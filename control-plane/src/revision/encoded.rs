//! Contents on their way to nodes: encoded and compressed once, shared by all streams.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use common::feature::Needs;
use common::pb::fleet as pb;
use common::snapshot::{Sha, digest, pack, unpack};
use prost::Message;

use crate::secrets::held::Held;

/// Names a content: its version and the digest of its encoded bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// The revision of the catalog, the version of the key list.
    pub version: u64,
    /// Digest of the encoded bytes.
    pub sha256: Sha,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.version)?;
        self.sha256[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Part> for pb::Part {
    fn from(part: Part) -> Self {
        pb::Part { version: part.version, sha256: part.sha256.to_vec() }
    }
}

impl Part {
    /// Reads a part that a node names; `None` when its digest is none.
    pub fn read(part: &pb::Part) -> Option<Self> {
        Some(Part { version: part.version, sha256: part.sha256.as_slice().try_into().ok()? })
    }
}

/// A content, ready to be sent. Clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What it is.
    pub part: Part,
    /// Its encoded bytes, compressed.
    pub packed: Bytes,
    /// What a node must know to serve it.
    pub needs: Arc<Needs>,
}

impl Encoded {
    /// Encodes and compresses a content.
    pub fn of(version: u64, content: &impl Message) -> std::io::Result<Self> {
        let bytes = content.encode_to_vec();
        let part = Part { version, sha256: digest(&bytes) };
        Ok(Encoded { part, packed: pack(&bytes)?.into(), needs: Arc::default() })
    }

    /// Encodes and compresses a snapshot.
    pub fn of_snapshot(snapshot: &pb::Snapshot) -> std::io::Result<Self> {
        let features = snapshot.features.iter().cloned().collect();
        let needs = Arc::new(Needs { schema: snapshot.schema, features });
        Ok(Encoded { needs, ..Encoded::of(snapshot.revision, snapshot)? })
    }

    /// A snapshot as it was kept. Unpacking megabytes takes a moment, in which this thread serves others.
    pub async fn kept(part: Part, packed: Bytes) -> Self {
        let bytes = packed.clone();
        let read = tokio::task::spawn_blocking(move || Needs::of(&unpack(&bytes, &part.sha256).ok()?).ok());
        // What cannot be read is for the nodes to refuse.
        let needs = Arc::new(read.await.ok().flatten().unwrap_or_default());
        Encoded { part, packed, needs }
    }
}

/// What nodes should run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The database's epoch.
    pub epoch: u64,
    /// The current revision; none before the first.
    pub catalog: Option<Encoded>,
    /// The list of client keys.
    pub keys: Encoded,
    /// Credentials of channels, sealed.
    pub secrets: Held,
}
