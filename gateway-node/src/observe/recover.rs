//! What earlier boots left in the journal becomes windows in the spool, under their own boot ids.
//! May be cut at any point and done again: a segment whose window is spooled is only removed.

use std::io;
use std::path::{Path, PathBuf};

use common::id::BootId;
use common::window::Window;

use super::segment::{fold, parse_name};
use super::spool::Spool;
use crate::disk::Disk;

/// Folds every segment that is not of `current`, oldest first, and removes it.
pub(super) fn recover(disk: &Disk, journal: &Path, current: &BootId, spool: &mut Spool) -> io::Result<()> {
    for (boot, seq, path) in segments(disk, journal)? {
        if boot == *current {
            continue;
        }
        if seq > spool.last_seq(&boot) {
            take(spool, &boot, seq, &disk.read(&path)?)?;
        }
        disk.remove(&path)?;
    }
    spool.forget_ended_boots()
}

fn take(spool: &mut Spool, boot: &BootId, seq: u64, bytes: &[u8]) -> io::Result<()> {
    let folded = fold(bytes);
    if folded.torn > 0 {
        tracing::warn!(boot.id = %boot, bytes = folded.torn, "a journal ends in a half-written count");
    }
    let Some((start_ms, end_ms)) = folded.span_ms else { return Ok(()) };
    let totals = spool.totals(boot) + folded.counts.totals();
    tracing::info!(boot.id = %boot, window = seq, "recovered the open window of an earlier boot");
    let first_seq = spool.last_seq(boot) + 1;
    let window = Window { first_seq, last_seq: seq, start_ms, end_ms, counts: folded.counts };
    spool.push(boot, window, totals, true)
}

fn segments(disk: &Disk, journal: &Path) -> io::Result<Vec<(BootId, u64, PathBuf)>> {
    let mut segments = Vec::new();
    for path in disk.files(journal)? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(parse_name);
        match name {
            Some((boot, seq)) => segments.push((boot, seq, path)),
            None => tracing::warn!(file = %path.display(), "a file in the journal is no segment"),
        }
    }
    segments.sort();
    Ok(segments)
}
