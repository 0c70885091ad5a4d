//! One kept part as bytes: magic, checksum of the rest, epoch, version, digest of the message, the
//! message. A file is whole or it is refused.

use std::io;
use std::path::Path;

use common::snapshot::digest;

use super::Kept;
use crate::disk::Disk;

const MAGIC: &[u8; 8] = b"SLUICE1\n";

/// Why a file gave no part.
#[derive(Debug)]
pub(super) enum Fault {
    Absent,
    Corrupt,
    Io(io::Error),
}

/// Reads and checks a file.
pub(super) fn read(disk: &Disk, path: &Path) -> Result<Kept, Fault> {
    match disk.read(path) {
        Ok(bytes) => decode(&bytes).ok_or(Fault::Corrupt),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Fault::Absent),
        Err(error) => Err(Fault::Io(error)),
    }
}

/// Writes a file durably: beside it, synced, renamed.
pub(super) fn write(disk: &Disk, path: &Path, kept: &Kept) -> io::Result<()> {
    write_bytes(disk, path, &encode(kept))
}

/// As [`write()`], for any bytes.
pub(super) fn write_bytes(disk: &Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    disk.write(path, &path.with_added_extension("tmp"), bytes)
}

pub(crate) fn encode(kept: &Kept) -> Vec<u8> {
    let body =
        [&kept.epoch.to_le_bytes()[..], &kept.version.to_le_bytes(), &kept.sha256, &kept.encoded].concat();
    [&MAGIC[..], &digest(&body), &body].concat()
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Kept> {
    let (sum, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
    if digest(body) != *sum {
        return None;
    }
    let (epoch, rest) = body.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (sha256, encoded) = rest.split_first_chunk::<32>()?;
    let kept = Kept {
        epoch: u64::from_le_bytes(*epoch),
        version: u64::from_le_bytes(*version),
        sha256: *sha256,
        encoded: encoded.to_vec(),
    };
    (digest(&kept.encoded) == kept.sha256).then_some(kept)
}
