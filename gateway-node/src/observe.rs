//! What this node observed, until the control plane has counted it. The journal is the source of
//! truth: each ending is one append to the open segment, so that it outlives a killed process; every
//! ten seconds the segment is folded into a window, the window spooled durably, the segment removed.
//! What earlier boots left behind is folded at the next start, under their own boot ids.
//!
//! ```text
//! record ──► segment (open) ──seal──► window in the spool: unsent ──► sent ──► claimed, forgotten
//!                 └── process killed ──► folded by the next boot ──┘
//! ```

mod recover;
mod segment;
mod spool;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use common::clock::Clock;
use common::first_byte::FirstByte;
use common::id::BootId;
use common::pb::fleet as pb;
use common::window::{AttemptEnd, RequestOutcome, Totals, Window};
use tokio::sync::Notify;

use crate::disk::Disk;
use crate::journal::file::alone;
use segment::Segment;
use spool::Spool;

/// Counts how attempts and requests end. Clones share the journal.
#[derive(Debug, Clone)]
pub struct Observer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Disk,
    journal: PathBuf,
    boot: BootId,
    clock: Clock,
    open: ArcSwap<Segment>,
    sealer: Mutex<Sealer>,
    is_away: AtomicBool,
    write_failures: AtomicU64,
    spooled: AtomicUsize,
    oldest_ms: AtomicU64,
    sealed: Notify,
}

/// What only sealing and reporting touch; never on the path of a request.
#[derive(Debug)]
struct Sealer {
    spool: Spool,
    /// What earlier boots left behind is in the spool.
    is_recovered: bool,
    /// Swapped out, not yet in the spool. The next segment is not swapped before this one is.
    retiring: Option<Arc<Segment>>,
    totals: Totals,
}

impl Observer {
    /// Opens the journal and the spool under `dir`, which this process alone uses, and turns journals
    /// of earlier boots into sealed windows of theirs. A full disk does not keep a node from serving:
    /// what cannot be spooled now is tried again at each seal.
    pub fn open(dir: &Path, boot: BootId, clock: Clock) -> io::Result<Observer> {
        Observer::on(Disk::Machine, dir, boot, clock)
    }

    /// The same on a given disk.
    pub fn on(disk: Disk, dir: &Path, boot: BootId, clock: Clock) -> io::Result<Observer> {
        let journal = dir.join("journal");
        disk.make_folder(&journal)?;
        let mut spool = Spool::open(&disk, &dir.join("spool"), boot.clone())?;
        let recovered = recover::recover(&disk, &journal, &boot, &mut spool);
        if let Err(error) = &recovered {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "counts of earlier runs cannot be spooled; they stay in the journal and are tried again"
            );
        }
        let first = Segment::create(&disk, &journal, &boot, 1, clock.now_ms())?;
        let inner = Inner {
            disk,
            journal,
            boot,
            clock,
            open: ArcSwap::from_pointee(first),
            sealer: Mutex::new(Sealer {
                spool,
                is_recovered: recovered.is_ok(),
                retiring: None,
                totals: Totals::default(),
            }),
            is_away: AtomicBool::new(true),
            write_failures: AtomicU64::new(0),
            spooled: AtomicUsize::new(0),
            oldest_ms: AtomicU64::new(0),
            sealed: Notify::new(),
        };
        inner.show(&inner.lock().spool);
        Ok(Observer(Arc::new(inner)))
    }

    /// Counts the end of an attempt (with its channel), of a request, or of both at once, and how long the first byte
    /// took, by one append to the journal. Takes no lock that waits. When the journal cannot be written the count
    /// is kept in memory until the segment is sealed.
    pub fn record(
        &self,
        model: &str,
        attempt: Option<(&str, AttemptEnd)>,
        request: Option<RequestOutcome>,
        first_byte: FirstByte,
    ) {
        let segment = self.0.open.load_full();
        if let Err(error) = segment.record(self.0.clock.now_ms(), model, attempt, request, first_byte)
            && self.0.write_failures.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the journal cannot be written; counts are kept in memory until they can be spooled"
            );
        }
    }

    /// Seals the open segment: its counts become a window in the spool. An empty segment stays open.
    /// On a fault nothing is lost and the next call tries again. Blocks on files.
    pub fn seal(&self) -> io::Result<()> {
        let inner = &*self.0;
        let mut sealer = inner.lock();
        let now_ms = inner.clock.now_ms();
        if !sealer.is_recovered {
            recover::recover(&inner.disk, &inner.journal, &inner.boot, &mut sealer.spool)?;
            sealer.is_recovered = true;
            inner.show(&sealer.spool);
            inner.sealed.notify_one();
        }
        if sealer.retiring.is_none() {
            let open = inner.open.load_full();
            if open.is_empty() {
                open.begin_at(now_ms);
                return Ok(());
            }
            let next = Segment::create(&inner.disk, &inner.journal, &inner.boot, open.seq() + 1, now_ms)?;
            drop(open);
            sealer.retiring = Some(inner.open.swap(Arc::new(next)));
        }
        let Some(retiring) = sealer.retiring.take() else { return Ok(()) };
        let segment = match alone(retiring) {
            Ok(segment) => segment,
            Err(shared) => {
                sealer.retiring = Some(shared);
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "a writer holds the segment"));
            }
        };
        match inner.spool(&mut sealer, &segment, now_ms) {
            Ok(()) => segment.remove(),
            Err(error) => {
                sealer.retiring = Some(Arc::new(segment));
                return Err(error);
            }
        }
        inner.show(&sealer.spool);
        self.0.sealed.notify_one();
        Ok(())
    }

    /// The run of this process.
    pub fn boot(&self) -> &BootId {
        &self.0.boot
    }

    /// Boots that have windows in the spool, oldest first.
    pub fn boots(&self) -> Vec<BootId> {
        self.0.lock().spool.boots()
    }

    /// The oldest window of a boot that was not claimed, ready to be sent but for the node's id. It is
    /// marked as sent before this returns and will never be merged. Blocks on files.
    pub fn next(&self, boot: &BootId) -> io::Result<Option<pb::ReportRequest>> {
        self.0.lock().spool.next(boot)
    }

    /// Forgets the windows of a boot that the control plane has counted. Blocks on files.
    pub fn claimed(&self, boot: &BootId, through: u64) -> io::Result<()> {
        let mut sealer = self.0.lock();
        let forgotten = sealer.spool.claimed(boot, through);
        self.0.show(&sealer.spool);
        forgotten
    }

    /// Tells whether the control plane can be reached: while it cannot, unsent windows are merged.
    pub fn set_away(&self, is_away: bool) {
        self.0.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Resolves when a window was sealed since the last call.
    pub async fn sealed(&self) {
        self.0.sealed.notified().await;
    }

    /// Windows that wait to be counted.
    pub fn spooled(&self) -> usize {
        self.0.spooled.load(Ordering::Relaxed)
    }

    /// Age of the oldest window that was not acknowledged; zero when there is none.
    pub fn oldest_window_age(&self) -> Duration {
        match self.0.oldest_ms.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            start_ms => Duration::from_millis(self.0.clock.now_ms().saturating_sub(start_ms)),
        }
    }

    /// Appends that failed since the start.
    pub fn write_failures(&self) -> u64 {
        self.0.write_failures.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Sealer> {
        self.sealer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spool(&self, sealer: &mut Sealer, segment: &Segment, now_ms: u64) -> io::Result<()> {
        let folded = segment.fold()?;
        let totals = sealer.totals + segment.totals();
        if folded.counts.totals() != segment.totals() {
            tracing::error!(
                window = segment.seq(),
                "the journal holds other counts than were made: {:?} instead of {:?}",
                folded.counts.totals(),
                segment.totals()
            );
        }
        let window = Window {
            first_seq: sealer.spool.last_seq(&self.boot) + 1,
            last_seq: segment.seq(),
            start_ms: segment.start_ms(),
            end_ms: now_ms.max(segment.start_ms()),
            counts: folded.counts,
        };
        sealer.spool.push(&self.boot, window, totals, self.is_away.load(Ordering::Relaxed))?;
        sealer.totals = totals;
        Ok(())
    }

    fn show(&self, spool: &Spool) {
        self.spooled.store(spool.waiting(), Ordering::Relaxed);
        self.oldest_ms.store(spool.oldest_ms().unwrap_or(0), Ordering::Relaxed);
    }
}
