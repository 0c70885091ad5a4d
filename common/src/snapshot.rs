//! The bytes that go to nodes: encoding, digest, compression, limits. The digest is over the
//! encoded, uncompressed bytes; those are kept and passed on as they came, unknown fields and all.

use prost::Message;
use sha2::{Digest as _, Sha256};

use crate::limits::SNAPSHOT_BYTES_MAX;

/// A digest of encoded bytes.
pub type Sha = [u8; 32];

/// Why bytes are no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFault {
    /// Not zstd, or larger than the limit once unpacked.
    #[error("snapshot cannot be unpacked within {SNAPSHOT_BYTES_MAX} bytes")]
    Unpack(#[source] std::io::Error),
    /// The digest is another one.
    #[error("snapshot does not match its digest")]
    Digest,
    /// Not the message that it should be.
    #[error("snapshot cannot be decoded")]
    Decode(#[from] prost::DecodeError),
}

/// sha256 of some bytes.
pub fn digest(bytes: &[u8]) -> Sha {
    Sha256::digest(bytes).into()
}

/// A digest as people read it.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compresses encoded bytes, once for all who get them.
pub fn pack(encoded: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(encoded, 3)
}

/// Unpacks and checks the digest.
pub fn unpack(packed: &[u8], sha256: &[u8]) -> Result<Vec<u8>, SnapshotFault> {
    let encoded = zstd::bulk::decompress(packed, SNAPSHOT_BYTES_MAX).map_err(SnapshotFault::Unpack)?;
    if digest(&encoded) != sha256 {
        return Err(SnapshotFault::Digest);
    }
    Ok(encoded)
}

/// Decodes a `Snapshot` or `KeySet`.
pub fn decode<M: Message + Default>(encoded: &[u8]) -> Result<M, SnapshotFault> {
    Ok(M::decode(encoded)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::fleet::KeySet;

    #[test]
    fn what_was_packed_comes_back_and_is_the_same() {
        let keys = KeySet { version: 3, keys_exist: true, keys: vec![] };
        let encoded = keys.encode_to_vec();
        let packed = pack(&encoded).unwrap();
        let unpacked = unpack(&packed, &digest(&encoded)).unwrap();
        assert_eq!(decode::<KeySet>(&unpacked).unwrap(), keys);
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let packed = pack(b"abc").unwrap();
        assert!(matches!(unpack(&packed, &digest(b"abd")), Err(SnapshotFault::Digest)));
        assert!(matches!(unpack(b"abc", &digest(b"abc")), Err(SnapshotFault::Unpack(_))));
    }
}
