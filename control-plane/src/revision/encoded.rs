//! Contents on their way to nodes: encoded and compressed once, shared by all streams.

use std::fmt;

use bytes::Bytes;
use common::pb::fleet as pb;
use common::snapshot::{Sha, digest, pack};
use prost::Message;

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
}

impl Encoded {
    /// Encodes and compresses a content.
    pub fn of(version: u64, content: &impl Message) -> std::io::Result<Self> {
        let bytes = content.encode_to_vec();
        Ok(Encoded { part: Part { version, sha256: digest(&bytes) }, packed: pack(&bytes)?.into() })
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
}

impl From<&Target> for pb::Target {
    fn from(target: &Target) -> Self {
        pb::Target {
            epoch: target.epoch,
            catalog: target.catalog.as_ref().map(|encoded| encoded.part.into()),
            keys: Some(target.keys.part.into()),
            live: None,
            secrets: None,
        }
    }
}
