//! The last known good on disk: per part a `current`, a `previous` (but of secrets) and, while an update is taken, a
//! `candidate`, each with the encoded bytes as they came. Files are written beside, synced and
//! renamed, so that a crash leaves the one or the other.
//!
//! ```text
//! update ──► candidate ──(swap)──► current ──► previous          corrupt, refused ──► put aside
//! start: current, else previous, else none
//! ```
//!
//! A catalog under which the process dies twice within a minute of its activation is put aside too
//! (quarantine), as long as there is a previous one to fall back to. What bytes mean is left to the
//! caller.

mod file;
mod marks;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use common::limits::{QUARANTINE_CRASHES, QUARANTINE_WITHIN};
use common::snapshot::{Sha, digest};

#[cfg(any(test, fuzzing))]
pub(crate) use file::{decode, encode};
pub(crate) use marks::Marks;

/// What is kept: one set of files each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A `Snapshot`.
    Catalog,
    /// A `KeySet`.
    Keys,
    /// A `SealedSecrets`, as only this node's key opens it.
    Secrets,
}

impl Kind {
    /// All, in the order in which they are loaded: a catalog names secrets.
    pub const ALL: [Kind; 3] = [Kind::Secrets, Kind::Catalog, Kind::Keys];

    /// The name in files and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Catalog => "catalog",
            Kind::Keys => "keys",
            Kind::Secrets => "secrets",
        }
    }
}

/// A part as it was received: encoded, unknown fields and all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The epoch in which the version counts.
    pub epoch: u64,
    /// The catalog's revision, the keys' version.
    pub version: u64,
    /// Digest of `encoded`.
    pub sha256: Sha,
    /// The message.
    pub encoded: Vec<u8>,
}

impl Kept {
    /// A part with the digest of its bytes.
    pub fn new(epoch: u64, version: u64, encoded: Vec<u8>) -> Self {
        Kept { epoch, version, sha256: digest(&encoded), encoded }
    }
}

/// A catalog that was put aside because the process died under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its revision.
    pub version: u64,
    /// Its digest.
    pub sha256: Sha,
    /// How often.
    pub crashes: u32,
}

/// The folder of kept parts. Every call blocks on files.
#[derive(Debug)]
pub struct Keep {
    dir: PathBuf,
    marks: Marks,
}

impl Keep {
    /// Opens the folder and judges how the last run ended: within a minute of activating a catalog and
    /// without [`Keep::end`] counts against that catalog. Another `binary` than before starts anew.
    pub fn open(dir: &Path, binary: &str) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let marks = Marks::load(&dir.join("marks.json"), binary);
        let mut keep = Keep { dir: dir.to_path_buf(), marks };
        for kind in Kind::ALL {
            keep.discard(kind)?;
        }
        if let Some((version, sha256, crashes)) = keep.marks.take_crash() {
            tracing::warn!(
                revision = version,
                crashes,
                "the process died within {} s of activating revision {version}",
                QUARANTINE_WITHIN.as_secs()
            );
            if crashes >= QUARANTINE_CRASHES {
                keep.quarantine(Quarantined { version, sha256, crashes })?;
            }
            if let Err(error) = keep.marks.save() {
                tracing::warn!(error = &error as &dyn std::error::Error, "the marks cannot be written");
            }
        }
        Ok(keep)
    }

    /// The part to start from. A file that is corrupt is put aside and the one before takes its place.
    pub fn load(&self, kind: Kind) -> io::Result<Option<Kept>> {
        loop {
            match file::read(&self.path(kind, "current")) {
                Ok(kept) => return Ok(Some(kept)),
                Err(file::Fault::Absent) if !self.path(kind, "previous").exists() => return Ok(None),
                Err(file::Fault::Absent) => {}
                Err(file::Fault::Io(error)) => return Err(error),
                Err(file::Fault::Corrupt) => {
                    tracing::error!("the kept {} is corrupt; it is put aside", kind.as_str());
                    std::fs::rename(self.path(kind, "current"), self.path(kind, "corrupt"))?;
                }
            }
            self.fall_back(kind)?;
        }
    }

    /// Puts aside the part that [`Keep::load`] returned, because it cannot be used; the one before
    /// takes its place.
    pub fn refuse(&self, kind: Kind) -> io::Result<()> {
        std::fs::rename(self.path(kind, "current"), self.path(kind, "refused"))?;
        self.fall_back(kind)
    }

    /// Keeps a part that is about to be activated. Durable when this returns.
    pub fn candidate(&self, kind: Kind, kept: &Kept) -> io::Result<()> {
        file::write(&self.path(kind, "candidate"), kept)
    }

    /// Makes the candidate the part to start from. At no moment is there none.
    pub fn promote(&self, kind: Kind) -> io::Result<()> {
        let (current, previous) = (self.path(kind, "current"), self.path(kind, "previous"));
        // A credential that was replaced is worth nothing at an upstream, and something to a thief.
        if current.exists() && kind != Kind::Secrets {
            let half = self.path(kind, "previous.tmp");
            remove_if_there(&half)?;
            std::fs::hard_link(&current, &half)?;
            std::fs::rename(&half, &previous)?;
        }
        std::fs::rename(self.path(kind, "candidate"), current)?;
        file::sync(&self.dir)
    }

    /// Removes the candidate of an update that was not taken.
    pub fn discard(&self, kind: Kind) -> io::Result<()> {
        remove_if_there(&self.path(kind, "candidate"))?;
        remove_if_there(&self.path(kind, "previous.tmp"))
    }

    /// Marks a catalog as activated, before it is: should the process die soon, it is suspected.
    pub fn activate(&mut self, version: u64, sha256: Sha) -> io::Result<()> {
        self.marks.activate(version, sha256);
        self.marks.save()
    }

    /// The activated catalog has outlived the time in which it is suspected.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.marks.settle() { self.marks.save() } else { Ok(()) }
    }

    /// Marks the end of this run as intended.
    pub fn end(&mut self) -> io::Result<()> {
        if self.marks.end() { self.marks.save() } else { Ok(()) }
    }

    /// Forgets what was put aside and why: it may be tried again.
    pub fn forgive(&mut self) -> io::Result<()> {
        if self.marks.forgive() { self.marks.save() } else { Ok(()) }
    }

    /// Catalogs that were put aside by this binary.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.marks.quarantined()
    }

    /// Whether a catalog was put aside by this binary.
    pub fn is_quarantined(&self, sha256: &Sha) -> bool {
        self.quarantined().iter().any(|q| q.sha256 == *sha256)
    }

    /// Puts the current catalog aside if it is the suspect and there is one to fall back to: a node
    /// that had a config never ends without one.
    fn quarantine(&mut self, suspect: Quarantined) -> io::Result<()> {
        let is_current =
            file::read(&self.path(Kind::Catalog, "current")).is_ok_and(|kept| kept.sha256 == suspect.sha256);
        if is_current {
            if file::read(&self.path(Kind::Catalog, "previous")).is_err() {
                tracing::error!(
                    revision = suspect.version,
                    "there is no revision to fall back to; trying on"
                );
                return Ok(());
            }
            std::fs::rename(self.path(Kind::Catalog, "current"), self.path(Kind::Catalog, "quarantined"))?;
            self.fall_back(Kind::Catalog)?;
        }
        tracing::error!(revision = suspect.version, "revision {} is quarantined", suspect.version);
        self.marks.quarantine(suspect);
        Ok(())
    }

    fn fall_back(&self, kind: Kind) -> io::Result<()> {
        match std::fs::rename(self.path(kind, "previous"), self.path(kind, "current")) {
            Ok(()) => tracing::warn!("falling back to the previous {}", kind.as_str()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        file::sync(&self.dir)
    }

    fn path(&self, kind: Kind, role: &str) -> PathBuf {
        self.dir.join(format!("{}.{role}", kind.as_str()))
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
