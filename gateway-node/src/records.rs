//! Records of requests on their way to disk. Whoever ends a request hands its record over without waiting; a task of its
//! own writes what has come by one append, and what lies there goes home by `sync`. A full disk or a control plane that
//! is away costs records at last, never a request: those that are lost are counted.
//!
//! ```text
//! keep ──► queue ──► open file ──seal──► sealed file ──► taken by the control plane, removed
//! ```
//!
//! `kill -9` loses what is in the queue: a few milliseconds.

mod spool;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::pb::fleet as pb;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::journal;
use spool::Spool;

/// Records that may wait for the disk.
const QUEUE_MAX: usize = 8192;
/// Most that are written by one append.
const BATCH_MAX: usize = 1024;
/// Magic of the files.
const MAGIC: &journal::Magic = b"\xa5SR1";

/// Takes records, and gives them out for the way home. Clones share them.
#[derive(Debug, Clone)]
pub struct Records(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: mpsc::Sender<pb::Record>,
    spool: Mutex<Spool>,
    lost: AtomicU64,
    written: Notify,
}

/// What comes out of the queue; its owner runs [`Writer::run`].
#[derive(Debug)]
pub struct Writer {
    records: Records,
    queue: mpsc::Receiver<pb::Record>,
}

/// A sealed file.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    /// Names it to [`Records::done`].
    pub seq: u64,
    /// What it holds, oldest first.
    pub records: Vec<pb::Record>,
}

impl Records {
    /// Opens the files under `dir`, which this process alone uses. What earlier runs left there goes home first.
    pub fn open(dir: &Path) -> io::Result<(Records, Writer)> {
        let spool = Spool::open(&dir.join("records"))?;
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let inner =
            Inner { queue, spool: Mutex::new(spool), lost: AtomicU64::new(0), written: Notify::new() };
        let records = Records(Arc::new(inner));
        Ok((records.clone(), Writer { records, queue: receiver }))
    }

    /// Takes a record. Never waits: where there is no room it is lost, and counted.
    pub fn keep(&self, record: pb::Record) {
        if self.0.queue.try_send(record).is_err() {
            self.lose(1, "they come faster than the disk takes them");
        }
    }

    /// Records that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Bytes that wait on disk.
    pub fn waiting_bytes(&self) -> u64 {
        self.lock().bytes()
    }

    /// Resolves when records were written since the last call.
    pub async fn written(&self) {
        self.0.written.notified().await;
    }

    /// The oldest file that waits; what is being written to is sealed for it. Blocks on files.
    pub fn next(&self) -> io::Result<Option<Sealed>> {
        self.lock().next()
    }

    /// Forgets a file whose records are taken. Blocks on files.
    pub fn done(&self, seq: u64) -> io::Result<()> {
        self.lock().done(seq)
    }

    fn write(&self, batch: &[pb::Record]) {
        let frames: Vec<u8> = batch.iter().flat_map(|record| journal::encode(MAGIC, record)).collect();
        match self.lock().append(&frames) {
            Ok(0) => {}
            Ok(dropped) => self.lose(dropped, "the control plane has not taken the oldest for long"),
            Err(error) => self.lose(batch.len() as u64, &error.to_string()),
        }
        self.0.written.notify_one();
    }

    /// Counts records that nobody will have, `why`.
    pub fn lose(&self, count: u64, why: &str) {
        if self.0.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            tracing::error!("records of requests are lost: {why}; sluice_records_lost_total counts them");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Spool> {
        self.0.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// What has come and was not written.
    #[cfg(test)]
    pub(crate) fn take(&mut self) -> Vec<pb::Record> {
        std::iter::from_fn(|| self.queue.try_recv().ok()).collect()
    }

    /// Writes what comes until `stop`, and then what has come by then.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let came = tokio::select! {
                biased;
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => count,
                () = stop.cancelled() => 0,
            };
            if came == 0 {
                return;
            }
            let records = self.records.clone();
            let written = tokio::task::spawn_blocking(move || {
                records.write(&batch);
                batch.clear();
                batch
            });
            match written.await {
                Ok(emptied) => batch = emptied,
                Err(_) => {
                    tracing::error!("writing records broke down");
                    batch = Vec::with_capacity(BATCH_MAX);
                }
            }
        }
    }
}
