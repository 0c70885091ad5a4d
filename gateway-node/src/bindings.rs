//! Things with an id go back to the channel that made them. The binding of an id is journaled before the answer that
//! shows the id leaves, so that it outlives a killed process, and reported to the control plane, where every other
//! node finds it.
//!
//! ```text
//! answer with an id ──► journal (one append) ──► table ──► reported ──► control plane ◄── lookup of another node
//!                          └── process killed ──► read by the next boot ──┘
//! ```

mod binder;
mod entry;
mod files;
mod lookup;
mod table;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use common::clock::Clock;
use common::id::{ChannelId, Model};
use tokio::sync::Notify;

use crate::journal::file::alone;
pub(crate) use binder::Binder;
#[cfg(any(test, fuzzing))]
pub(crate) use entry::{bound, epoch, replay, reported};
pub(crate) use entry::{from_wire, to_wire};
use files::Segment;
pub(crate) use lookup::{Ask, Lookup, Told};
pub(crate) use table::{Binding, Name, Table};

/// The journal is written anew when this many of its frames say nothing any more, and as many as say something.
const DEAD_FRAMES_MIN: u64 = 4_096;

/// The bindings of one node. Clones share them.
#[derive(Debug, Clone)]
pub struct Bindings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    clock: Clock,
    table: Mutex<Table>,
    open: ArcSwap<Segment>,
    /// Numbers that were given, and frames that lie in the files before the open one.
    last_seq: AtomicU64,
    older_frames: AtomicU64,
    /// Held by whoever writes the journal anew.
    compaction: Mutex<()>,
    write_failures: AtomicU64,
    bound: Notify,
}

impl Bindings {
    /// Opens the journal under `dir`, which this process alone uses, and reads what earlier boots left.
    pub fn open(dir: &Path, clock: Clock) -> io::Result<Bindings> {
        let dir = dir.join("bindings");
        std::fs::create_dir_all(&dir)?;
        let mut table = Table::default();
        let (replayed, last_number) = files::load(&dir, &mut table, clock.now_ms())?;
        let open = Segment::create(&dir, last_number + 1)?;
        Ok(Bindings(Arc::new(Inner {
            dir,
            clock,
            table: Mutex::new(table),
            open: ArcSwap::from_pointee(open),
            last_seq: AtomicU64::new(replayed.last_seq),
            older_frames: AtomicU64::new(replayed.frames),
            compaction: Mutex::default(),
            write_failures: AtomicU64::new(0),
            bound: Notify::new(),
        })))
    }

    /// Binds an id to the channel that made it, by one append to the journal. Takes no lock that waits. Where the
    /// journal cannot be written the binding is known all the same, and reported.
    pub fn bind(&self, name: Name, channel: ChannelId, model: Model) {
        let inner = &*self.0;
        let made_at_ms = inner.clock.now_ms();
        let binding = Binding { name, channel, model, made_at_ms };
        let seq = inner.last_seq.fetch_add(1, Ordering::Relaxed) + 1;
        // Held until it is in the table too, so that a compaction that waits for it finds it there.
        let segment = inner.open.load_full();
        inner.append(&segment, &entry::bound(seq, &binding, false));
        inner.lock().insert(seq, binding, false, made_at_ms);
        drop(segment);
        inner.bound.notify_one();
    }

    /// Takes in what the control plane knows.
    pub fn learn(&self, binding: Binding) {
        let inner = &*self.0;
        let seq = inner.last_seq.fetch_add(1, Ordering::Relaxed) + 1;
        inner.lock().insert(seq, binding, true, inner.clock.now_ms());
    }

    /// Finds what this node knows.
    pub fn find(&self, name: &Name) -> Option<Binding> {
        self.0.lock().find(name, self.0.clock.now_ms()).cloned()
    }

    /// The oldest that were not reported, with their numbers.
    pub fn waiting(&self, max: usize) -> Vec<(u64, Binding)> {
        self.0.lock().waiting(max)
    }

    /// The control plane has these; they are not reported again, also not by a later boot.
    pub fn reported(&self, seqs: Vec<u64>) {
        let inner = &*self.0;
        let segment = inner.open.load_full();
        {
            let mut table = inner.lock();
            for seq in &seqs {
                table.report(*seq);
            }
        }
        inner.append(&segment, &entry::reported(seqs));
    }

    /// Takes in that the control plane counts in this epoch. One whose database went back has lost what was reported
    /// since: in a higher epoch than before everything is reported again, by a later boot if not by this one.
    pub fn begin_epoch(&self, epoch: u64) {
        let inner = &*self.0;
        let segment = inner.open.load_full();
        if !inner.lock().begin_epoch(epoch, inner.clock.now_ms()) {
            return;
        }
        inner.append(&segment, &entry::epoch(epoch));
        let waiting = self.counts().1;
        if waiting > 0 {
            tracing::info!(
                epoch,
                waiting,
                "the control plane is in epoch {epoch}: bindings are reported anew"
            );
        }
    }

    /// Resolves when something was bound since the last call.
    pub async fn bound(&self) {
        self.0.bound.notified().await;
    }

    /// Writes the journal anew where most of it says nothing any more. Blocks on files.
    pub fn compact(&self) -> io::Result<()> {
        let inner = &*self.0;
        let _alone = inner.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        let open = inner.open.load_full();
        let frames = inner.older_frames.load(Ordering::Relaxed) + open.frames();
        let known = inner.lock().counts().0 as u64;
        if frames < known.saturating_mul(2) + DEAD_FRAMES_MIN {
            return Ok(());
        }
        let number = open.number();
        let next = Segment::create(&inner.dir, number + 1)?;
        drop(open);
        let retiring = inner.open.swap(Arc::new(next));
        // What is written to it must be in the table before that is read.
        let retired = alone(retiring).map_err(|shared| {
            inner.older_frames.fetch_add(shared.frames(), Ordering::Relaxed);
            io::Error::new(io::ErrorKind::WouldBlock, "a writer holds the journal")
        })?;
        let (epoch, all) = {
            let table = inner.lock();
            (table.epoch(), table.all())
        };
        let replaced = files::replace(&inner.dir, number, epoch, &all);
        match replaced {
            Ok(()) => inner.older_frames.store(all.len() as u64, Ordering::Relaxed),
            Err(_) => drop(inner.older_frames.fetch_add(retired.frames(), Ordering::Relaxed)),
        }
        replaced
    }

    /// How many are known, and how many of them wait to be reported.
    pub fn counts(&self) -> (usize, usize) {
        self.0.lock().counts()
    }

    /// Appends that failed since the start.
    pub fn write_failures(&self) -> u64 {
        self.0.write_failures.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, segment: &Segment, frame: &[u8]) {
        if let Err(error) = segment.append(frame)
            && self.write_failures.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the journal of bindings cannot be written; they are kept in memory and reported"
            );
        }
    }
}
