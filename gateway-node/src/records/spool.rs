//! The files of records: one that is appended to, and sealed ones that wait. All together are bounded; the oldest goes
//! first.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use common::limits::RECORDS_SPOOL_BYTES_MAX;

use super::{MAGIC, Sealed};
use crate::journal::{self, file};

/// A file is sealed at this size: what is sent home at once.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Spool {
    dir: PathBuf,
    open: Option<Open>,
    next_seq: u64,
    /// Bytes of the sealed files by number.
    sealed: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Open {
    seq: u64,
    file: File,
    bytes: u64,
}

impl Spool {
    /// Opens the folder. Files of earlier runs are sealed.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut sealed = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".records"));
            if let Some(seq) = number.and_then(|number| number.parse().ok()) {
                sealed.insert(seq, entry.metadata()?.len());
            }
        }
        let next_seq = sealed.last_key_value().map_or(1, |(seq, _)| seq + 1);
        Ok(Spool { dir: dir.to_path_buf(), open: None, next_seq, sealed })
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.sealed.values().sum::<u64>() + self.open.as_ref().map_or(0, |open| open.bytes)
    }

    /// Appends frames. Returns how many older records had to go for them.
    pub(super) fn append(&mut self, frames: &[u8]) -> io::Result<u64> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let seq = self.next_seq;
                let file = file::create(&self.path(seq))?;
                self.next_seq += 1;
                self.open.insert(Open { seq, file, bytes: 0 })
            }
        };
        let appended = file::append(&open.file, frames);
        // What a full disk left half-written is stepped over when it is read.
        open.bytes += frames.len() as u64;
        if appended.is_err() || open.bytes >= FILE_BYTES_MAX {
            self.seal();
        }
        appended?;
        self.bound()
    }

    /// The oldest file.
    pub(super) fn next(&mut self) -> io::Result<Option<Sealed>> {
        if self.sealed.is_empty() {
            self.seal();
        }
        let Some(seq) = self.sealed.keys().next().copied() else { return Ok(None) };
        Ok(Some(Sealed { seq, records: self.read(seq)? }))
    }

    /// Removes a sealed file.
    pub(super) fn done(&mut self, seq: u64) -> io::Result<()> {
        self.sealed.remove(&seq);
        match std::fs::remove_file(self.path(seq)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn seal(&mut self) {
        if let Some(Open { seq, bytes, .. }) = self.open.take() {
            self.sealed.insert(seq, bytes);
        }
    }

    fn bound(&mut self) -> io::Result<u64> {
        let mut lost = 0;
        while self.bytes() > RECORDS_SPOOL_BYTES_MAX
            && let Some(oldest) = self.sealed.keys().next().copied()
        {
            lost += self.read(oldest)?.len() as u64;
            self.done(oldest)?;
        }
        Ok(lost)
    }

    fn read(&self, seq: u64) -> io::Result<Vec<common::pb::fleet::Record>> {
        let mut records = Vec::new();
        let torn = journal::read(MAGIC, &std::fs::read(self.path(seq))?, |record| records.push(record));
        if torn > 0 {
            tracing::warn!(file = seq, torn, "bytes of no whole record are left out");
        }
        Ok(records)
    }

    fn path(&self, seq: u64) -> PathBuf {
        self.dir.join(format!("{seq:020}.records"))
    }
}
