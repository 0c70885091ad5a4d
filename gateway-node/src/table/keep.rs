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

use crate::disk::Disk;

#[cfg(any(test, fuzzing))]
pub(crate) use file::{decode, encode};
pub(crate) use marks::Marks;
pub use marks::{Refused, parse_hex};

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
    disk: Disk,
    dir: PathBuf,
    marks: Marks,
}

impl Keep {
    /// Opens the folder and judges how the last run ended: within a minute of activating a catalog and
    /// without [`Keep::end`] counts against that catalog. Another `binary` than before starts anew.
    pub fn open(dir: &Path, binary: &str) -> io::Result<Self> {
        Keep::on(Disk::Machine, dir, binary)
    }

    /// The same on a given disk.
    pub fn on(disk: Disk, dir: &Path, binary: &str) -> io::Result<Self> {
        disk.make_folder(dir)?;
        let marks = Marks::load(&disk, &dir.join("marks.json"), binary);
        let mut keep = Keep { disk, dir: dir.to_path_buf(), marks };
        for kind in Kind::ALL {
            keep.discard(kind)?;
        }
        // A catalog that was marked and is not current was never activated.
        let was_active = keep.marks.fresh() == keep.digest_of(Kind::Catalog, "current");
        if was_active && let Some((version, sha256, crashes)) = keep.marks.take_crash() {
            tracing::warn!(
                revision = version,
                crashes,
                "the process died within {} s of activating revision {version}",
                QUARANTINE_WITHIN.as_secs()
            );
            if crashes >= QUARANTINE_CRASHES {
                keep.suspect(Quarantined { version, sha256, crashes });
            }
            if let Err(error) = keep.marks.save() {
                tracing::warn!(error = &error as &dyn std::error::Error, "the marks cannot be written");
            }
        }
        keep.put_aside()?;
        Ok(keep)
    }

    /// The part to start from. A file that is corrupt is put aside and the one before takes its place.
    pub fn load(&self, kind: Kind) -> io::Result<Option<Kept>> {
        loop {
            match file::read(&self.disk, &self.path(kind, "current")) {
                Ok(kept) => return Ok(Some(kept)),
                Err(file::Fault::Absent) if !self.disk.has(&self.path(kind, "previous")) => return Ok(None),
                Err(file::Fault::Absent) => {}
                Err(file::Fault::Io(error)) => return Err(error),
                Err(file::Fault::Corrupt) => {
                    tracing::error!("the kept {} is corrupt; it is put aside", kind.as_str());
                    self.disk.rename(&self.path(kind, "current"), &self.path(kind, "corrupt"))?;
                }
            }
            self.fall_back(kind)?;
        }
    }

    /// Puts aside the part that [`Keep::load`] returned, because it cannot be used; the one before
    /// takes its place.
    pub fn refuse(&self, kind: Kind) -> io::Result<()> {
        self.disk.rename(&self.path(kind, "current"), &self.path(kind, "refused"))?;
        self.fall_back(kind)
    }

    /// Keeps a part that is about to be activated. Durable when this returns.
    pub fn candidate(&self, kind: Kind, kept: &Kept) -> io::Result<()> {
        file::write(&self.disk, &self.path(kind, "candidate"), kept)
    }

    /// Makes the candidate the part to start from. At no moment is there none.
    pub fn promote(&self, kind: Kind) -> io::Result<()> {
        let (current, previous) = (self.path(kind, "current"), self.path(kind, "previous"));
        // What was promoted before and comes again does not take the place of the one before it. And a credential that was
        // replaced is worth nothing at an upstream, and something to a thief.
        let is_again = self.digest_of(kind, "current") == self.digest_of(kind, "candidate");
        if self.disk.has(&current) && !is_again && kind != Kind::Secrets {
            let half = self.path(kind, "previous.tmp");
            self.remove_if_there(&half)?;
            self.disk.link(&current, &half)?;
            self.disk.rename(&half, &previous)?;
        }
        self.disk.rename(&self.path(kind, "candidate"), &current)?;
        self.disk.sync(&self.dir)
    }

    /// Removes the candidate of an update that was not taken.
    pub fn discard(&self, kind: Kind) -> io::Result<()> {
        self.remove_if_there(&self.path(kind, "candidate"))?;
        self.remove_if_there(&self.path(kind, "previous.tmp"))
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

    /// What this binary refused for good.
    pub fn refused(&self) -> Vec<Refused> {
        self.marks.refused().to_vec()
    }

    /// Remembers what is refused for good, also over a restart.
    pub fn remember(&mut self, refused: Vec<Refused>) -> io::Result<()> {
        self.marks.remember(refused);
        self.marks.save()
    }

    /// Catalogs that were put aside by this binary.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.marks.quarantined()
    }

    /// Whether a catalog was put aside by this binary.
    pub fn is_quarantined(&self, sha256: &Sha) -> bool {
        self.quarantined().iter().any(|q| q.sha256 == *sha256)
    }

    /// Quarantines a catalog if there is one to fall back to: a node that had a config never ends without one.
    fn suspect(&mut self, suspect: Quarantined) {
        let previous = self.digest_of(Kind::Catalog, "previous");
        if previous.is_none_or(|previous| previous == suspect.sha256) {
            tracing::error!(revision = suspect.version, "there is no revision to fall back to; trying on");
            return;
        }
        tracing::error!(revision = suspect.version, "revision {} is quarantined", suspect.version);
        self.marks.quarantine(suspect);
    }

    /// The one before takes the place of a current catalog that is quarantined. The quarantine is written before, so that
    /// a process that dies between the two goes on here.
    fn put_aside(&mut self) -> io::Result<()> {
        let is_out = |sha256: Option<Sha>| sha256.is_some_and(|sha256| self.is_quarantined(&sha256));
        let (current, previous) =
            (self.digest_of(Kind::Catalog, "current"), self.digest_of(Kind::Catalog, "previous"));
        if !is_out(current) || previous.is_none() || is_out(previous) {
            return Ok(());
        }
        let (current, aside) = (self.path(Kind::Catalog, "current"), self.path(Kind::Catalog, "quarantined"));
        self.disk.rename(&current, &aside)?;
        self.fall_back(Kind::Catalog)
    }

    fn digest_of(&self, kind: Kind, role: &str) -> Option<Sha> {
        file::read(&self.disk, &self.path(kind, role)).ok().map(|kept| kept.sha256)
    }

    fn fall_back(&self, kind: Kind) -> io::Result<()> {
        match self.disk.rename(&self.path(kind, "previous"), &self.path(kind, "current")) {
            Ok(()) => tracing::warn!("falling back to the previous {}", kind.as_str()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.disk.sync(&self.dir)
    }

    fn path(&self, kind: Kind, role: &str) -> PathBuf {
        self.dir.join(format!("{}.{role}", kind.as_str()))
    }

    fn remove_if_there(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
