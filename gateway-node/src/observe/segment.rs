//! One file of the journal of counts: as they were made, one frame and one append each.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use common::first_byte::{FirstByte, bucket_ms};
use common::id::BootId;
use common::pb::fleet as pb;
use common::window::{AttemptEnd, Counts, RequestOutcome, Totals, Window};

use crate::disk::{Appended, Disk};
use crate::journal::{self, Magic};

const MAGIC: &Magic = b"\xa5SJ1";

/// A segment that is written to. Its totals are counted apart from its file, to check it.
#[derive(Debug)]
pub(super) struct Segment {
    seq: u64,
    disk: Disk,
    path: PathBuf,
    file: Appended,
    start_ms: AtomicU64,
    attempts: AtomicU64,
    attempts_ok: AtomicU64,
    requests: AtomicU64,
    requests_served: AtomicU64,
    /// Counts that could not be written.
    unwritten: Mutex<Counts>,
}

/// What a segment's file held.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Folded {
    pub counts: Counts,
    /// Wall time of the first and the last count; `None` when there is none.
    pub span_ms: Option<(u64, u64)>,
    /// Bytes that belong to no whole frame.
    pub torn: usize,
}

impl Segment {
    /// Creates the file of a boot's segment number `seq`.
    pub(super) fn create(
        disk: &Disk,
        journal: &Path,
        boot: &BootId,
        seq: u64,
        now_ms: u64,
    ) -> io::Result<Self> {
        let path = journal.join(file_name(boot, seq));
        let file = disk.create(&path)?;
        Ok(Segment {
            seq,
            disk: disk.clone(),
            path,
            file,
            start_ms: AtomicU64::new(now_ms),
            attempts: AtomicU64::new(0),
            attempts_ok: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            requests_served: AtomicU64::new(0),
            unwritten: Mutex::default(),
        })
    }

    /// A segment whose file is another one than its path says, so that writing can be made to fail.
    #[cfg(test)]
    pub(super) fn with_file(
        journal: &Path,
        boot: &BootId,
        seq: u64,
        file: impl Into<std::os::fd::OwnedFd>,
    ) -> Self {
        let mut segment = Segment::create(&Disk::Machine, journal, boot, seq, 0).unwrap();
        segment.file = Appended::Machine(std::fs::File::from(file.into()));
        segment
    }

    /// Appends to the file. The count is kept in memory when that fails.
    pub(super) fn record(
        &self,
        now_ms: u64,
        model: &str,
        attempt: Option<(&str, AttemptEnd)>,
        request: Option<RequestOutcome>,
        first_byte: FirstByte,
    ) -> io::Result<()> {
        let entry = entry(now_ms, model, attempt, request, first_byte);
        let frame = journal::encode(MAGIC, &entry);
        let written = self.file.append(&frame);
        if written.is_err() {
            self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).merge(Window::from(entry).counts);
        }
        if let Some((_, end)) = attempt {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            self.attempts_ok.fetch_add((end == AttemptEnd::Ok).into(), Ordering::Relaxed);
        }
        if let Some(outcome) = request {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.requests_served.fetch_add((outcome == RequestOutcome::Served).into(), Ordering::Relaxed);
        }
        written
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn start_ms(&self) -> u64 {
        self.start_ms.load(Ordering::Relaxed)
    }

    /// Moves the beginning of a segment that holds nothing yet.
    pub(super) fn begin_at(&self, now_ms: u64) {
        self.start_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.totals() == Totals::default()
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            attempts: self.attempts.load(Ordering::Relaxed),
            attempts_ok: self.attempts_ok.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            requests_served: self.requests_served.load(Ordering::Relaxed),
        }
    }

    /// Reads the file back and adds what could not be written. Nobody may write any more.
    pub(super) fn fold(&self) -> io::Result<Folded> {
        let mut folded = fold(&self.disk.read(&self.path)?);
        folded.counts.merge(self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Ok(folded)
    }

    /// Removes the file; the window is in the spool, and says so should this fail.
    pub(super) fn remove(self) {
        if let Err(error) = self.disk.remove(&self.path) {
            tracing::warn!(error = &error as &dyn std::error::Error, "a sealed segment cannot be removed");
        }
    }
}

/// The name of a segment's file.
pub(super) fn file_name(boot: &BootId, seq: u64) -> String {
    format!("{boot}-{seq}")
}

/// Reads what [`file_name`] writes.
pub(super) fn parse_name(name: &str) -> Option<(BootId, u64)> {
    let (boot, seq) = name.rsplit_once('-')?;
    Some((boot.into(), seq.parse().ok()?))
}

fn entry(
    now_ms: u64,
    model: &str,
    attempt: Option<(&str, AttemptEnd)>,
    request: Option<RequestOutcome>,
    first_byte: FirstByte,
) -> pb::Window {
    let attempts = attempt.map(|(channel, end)| pb::AttemptCount {
        model: model.to_owned(),
        channel: channel.to_owned(),
        class: end.as_str().to_owned(),
        count: 1,
    });
    let requests = request.map(|outcome| pb::RequestCount {
        model: model.to_owned(),
        outcome: outcome.as_str().to_owned(),
        count: 1,
    });
    let of_request = first_byte.of_request.map(|time| ("", time));
    let of_attempt = attempt.zip(first_byte.of_attempt).map(|((channel, _), time)| (channel, time));
    let first_bytes = of_request.into_iter().chain(of_attempt).map(|(channel, time)| pb::FirstByteCount {
        model: model.to_owned(),
        channel: channel.to_owned(),
        bound_ms: bucket_ms(time),
        count: 1,
    });
    pb::Window {
        first_seq: 0,
        last_seq: 0,
        start_ms: now_ms,
        end_ms: now_ms,
        attempts: attempts.into_iter().collect(),
        requests: requests.into_iter().collect(),
        first_bytes: first_bytes.collect(),
    }
}

/// Adds up every whole frame of a segment's bytes.
pub(super) fn fold(bytes: &[u8]) -> Folded {
    let mut folded = Folded::default();
    folded.torn = journal::read(MAGIC, bytes, |entry: pb::Window| {
        let span = folded.span_ms.get_or_insert((entry.start_ms, entry.end_ms));
        *span = (span.0.min(entry.start_ms), span.1.max(entry.end_ms));
        folded.counts.merge(Window::from(entry).counts);
    });
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_whole_frames_are_added_up() {
        let frame = |now_ms, model: &str| {
            let entry = entry(
                now_ms,
                model,
                Some(("a", AttemptEnd::Ok)),
                Some(RequestOutcome::Served),
                FirstByte::default(),
            );
            journal::encode(MAGIC, &entry)
        };
        let bytes = [&frame(5, "before"), &frame(6, "torn")[..20], &frame(4, "after")].concat();
        let folded = fold(&bytes);
        let models: Vec<_> = folded.counts.requests.keys().map(|(model, _)| model.as_str()).collect();
        assert_eq!(models, ["after", "before"]);
        assert_eq!((folded.torn, folded.span_ms, folded.counts.totals().attempts), (20, Some((4, 5)), 2));
    }

    #[test]
    fn a_name_is_read_back() {
        let boot = BootId::from("0198-ab");
        assert_eq!(parse_name(&file_name(&boot, 17)), Some((boot, 17)));
        assert_eq!(parse_name("x.tmp"), None);
    }
}
