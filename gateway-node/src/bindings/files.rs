//! The journal of bindings on disk: numbered files, of which the last is appended to. Now and then all that is
//! known is written anew into one file, which takes the place of those before it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{self, Replayed};
use super::table::Table;
use crate::journal::file;

/// A file that is appended to.
#[derive(Debug)]
pub(super) struct Segment {
    number: u64,
    file: File,
    frames: AtomicU64,
}

impl Segment {
    /// Begins a file of the folder.
    pub(super) fn create(dir: &Path, number: u64) -> io::Result<Self> {
        let file = file::create(&path(dir, number))?;
        Ok(Segment { number, file, frames: AtomicU64::new(0) })
    }

    /// A file that cannot be written to.
    #[cfg(test)]
    pub(super) fn broken(dir: &Path, number: u64) -> Self {
        let file = File::open(dir).unwrap();
        Segment { number, file, frames: AtomicU64::new(0) }
    }

    /// Appends a frame.
    pub(super) fn append(&self, frame: &[u8]) -> io::Result<()> {
        self.frames.fetch_add(1, Ordering::Relaxed);
        file::append(&self.file, frame)
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }
}

/// Reads every file of the folder, oldest first. Returns the highest number of a file besides.
pub(super) fn load(dir: &Path, table: &mut Table, now_ms: u64) -> io::Result<(Replayed, u64)> {
    let mut all = Replayed::default();
    let numbers = numbers(dir)?;
    for number in &numbers {
        let replayed = entry::replay(&std::fs::read(path(dir, *number))?, table, now_ms);
        if replayed.torn > 0 {
            tracing::warn!(bytes = replayed.torn, "a journal of bindings ends in a half-written one");
        }
        all.last_seq = all.last_seq.max(replayed.last_seq);
        all.frames += replayed.frames;
        all.torn += replayed.torn;
    }
    Ok((all, numbers.last().copied().unwrap_or(0)))
}

/// Puts all that is known in the place of the files up to `number`. May be cut at any point.
pub(super) fn replace(
    dir: &Path,
    number: u64,
    epoch: u64,
    known: &[(u64, super::Binding, bool)],
) -> io::Result<()> {
    let unfinished = dir.join("compacted.tmp");
    let frames = known.iter().map(|(seq, binding, is_reported)| entry::bound(*seq, binding, *is_reported));
    let mut file = io::BufWriter::new(File::create(&unfinished)?);
    // In front: it says of which epoch the reports behind it are.
    file.write_all(&entry::epoch(epoch))?;
    for frame in frames {
        file.write_all(&frame)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(&unfinished, path(dir, number))?;
    for older in numbers(dir)?.into_iter().filter(|older| *older < number) {
        std::fs::remove_file(path(dir, older))?;
    }
    Ok(())
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number}.journal"))
}

fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".journal"));
        numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
