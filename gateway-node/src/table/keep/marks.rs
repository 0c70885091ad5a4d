//! What is remembered between runs beside the parts: which catalog was activated a moment ago, how
//! often the process died under it, and what was put aside for that. One small JSON file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use common::snapshot::{Sha, hex};
use serde::{Deserialize, Serialize};

use super::{Quarantined, file};
use crate::disk::Disk;

#[derive(Debug)]
pub(crate) struct Marks {
    disk: Disk,
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    binary: String,
    /// There from just before an activation until a minute later or an intended end.
    fresh: Option<Mark>,
    /// By digest.
    crashes: BTreeMap<String, u32>,
    quarantined: Vec<Aside>,
    refused: Vec<Refused>,
}

/// A content that this binary refused for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Of which kind, by its name.
    pub kind: String,
    /// Its version.
    pub version: u64,
    /// Its digest.
    pub sha256: String,
    /// Where and why.
    pub violations: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    version: u64,
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Aside {
    version: u64,
    sha256: String,
    crashes: u32,
}

impl Marks {
    /// Reads the file; one that is absent or unreadable suspects nothing. Another binary forgives.
    pub(super) fn load(disk: &Disk, path: &Path, binary: &str) -> Self {
        Marks { disk: disk.clone(), ..Marks::of(path, &disk.read(path).unwrap_or_default(), binary) }
    }

    /// What a file with these bytes says.
    pub(crate) fn of(path: &Path, bytes: &[u8], binary: &str) -> Self {
        let mut content = serde_json::from_slice::<Content>(bytes).unwrap_or_default();
        if content.binary != binary {
            content = Content { binary: binary.to_owned(), ..Content::default() };
        }
        Marks { disk: Disk::Machine, path: path.to_path_buf(), content }
    }

    pub(super) fn save(&self) -> io::Result<()> {
        file::write_bytes(&self.disk, &self.path, &self.to_bytes()?)
    }

    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.content)
    }

    /// The catalog that was activated a moment ago.
    pub(super) fn fresh(&self) -> Option<Sha> {
        self.content.fresh.as_ref().and_then(|mark| parse_hex(&mark.sha256))
    }

    /// Counts a run that ended while its catalog was fresh: version, digest and how often by now.
    pub(crate) fn take_crash(&mut self) -> Option<(u64, Sha, u32)> {
        let mark = self.content.fresh.take()?;
        let crashes = self.content.crashes.entry(mark.sha256.clone()).or_default();
        *crashes += 1;
        Some((mark.version, parse_hex(&mark.sha256)?, *crashes))
    }

    pub(crate) fn activate(&mut self, version: u64, sha256: Sha) {
        self.content.fresh = Some(Mark { version, sha256: hex(&sha256) });
    }

    /// Clears the suspicion; returns whether there was any.
    pub(crate) fn settle(&mut self) -> bool {
        let Some(mark) = self.content.fresh.take() else { return false };
        self.content.crashes.remove(&mark.sha256);
        true
    }

    /// As [`Marks::settle`], but past crashes still count: the catalog proved nothing.
    pub(crate) fn end(&mut self) -> bool {
        self.content.fresh.take().is_some()
    }

    pub(super) fn quarantine(&mut self, suspect: Quarantined) {
        let sha256 = hex(&suspect.sha256);
        self.content.crashes.remove(&sha256);
        self.content.quarantined.retain(|q| q.sha256 != sha256);
        self.content.quarantined.push(Aside { version: suspect.version, sha256, crashes: suspect.crashes });
    }

    /// Forgets past crashes and what was put aside; the catalog that is fresh stays suspected. Returns whether there was
    /// anything.
    pub(crate) fn forgive(&mut self) -> bool {
        let Content { crashes, quarantined, .. } = &mut self.content;
        let had_any = !(crashes.is_empty() && quarantined.is_empty());
        crashes.clear();
        quarantined.clear();
        had_any
    }

    pub(super) fn refused(&self) -> &[Refused] {
        &self.content.refused
    }

    pub(super) fn remember(&mut self, refused: Vec<Refused>) {
        self.content.refused = refused;
    }

    pub(crate) fn quarantined(&self) -> Vec<Quarantined> {
        let aside = self.content.quarantined.iter();
        aside
            .filter_map(|q| {
                Some(Quarantined { version: q.version, sha256: parse_hex(&q.sha256)?, crashes: q.crashes })
            })
            .collect()
    }
}

/// The digest that `hex` wrote.
pub fn parse_hex(text: &str) -> Option<Sha> {
    let mut sha256 = Sha::default();
    if !text.is_ascii() || text.len() != 2 * sha256.len() {
        return None;
    }
    for (index, byte) in sha256.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(sha256)
}
