//! Sealed windows on disk until the control plane has counted them. One file a window, named
//! `<boot>-<first_seq>.<state>`: its sha256, then a `ReportRequest` without the node's id. States
//! change by rename, contents by a renamed copy, so that a crash leaves the one or the other.
//!
//! The last claimed window of a boot stays as a mark until its journal is taken in: the number and the
//! totals of the segment that was open are continued from it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use common::id::BootId;
use common::limits::WINDOW_BUCKET;
use common::pb::fleet as pb;
use common::snapshot::digest;
use common::window::{Totals, Window};
use prost::Message as _;

use crate::disk::Disk;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unsent,
    Sent,
    Claimed,
}

impl State {
    fn extension(self) -> &'static str {
        match self {
            State::Unsent => "unsent",
            State::Sent => "sent",
            State::Claimed => "claimed",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    last_seq: u64,
    start_ms: u64,
    totals: Totals,
    state: State,
}

/// The folder of windows, with an index in memory.
#[derive(Debug)]
pub(super) struct Spool {
    disk: Disk,
    dir: PathBuf,
    current: BootId,
    /// Journals of earlier boots may still have to follow the windows that are here.
    awaits_journals: bool,
    /// By boot and first number.
    entries: BTreeMap<(BootId, u64), Entry>,
}

impl Spool {
    /// Opens the folder. Files that cannot be read back are put aside and logged.
    pub(super) fn open(disk: &Disk, dir: &Path, current: BootId) -> io::Result<Self> {
        disk.make_folder(dir)?;
        let (disk, dir) = (disk.clone(), dir.to_path_buf());
        let mut spool = Spool { disk, dir, current, awaits_journals: true, entries: BTreeMap::new() };
        for path in spool.disk.files(&spool.dir)? {
            spool.load(&path)?;
        }
        Ok(spool)
    }

    fn load(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".tmp") {
            let is_removed = self.disk.remove(path).is_ok();
            tracing::debug!(file = name, is_removed, "a half-written window");
            return Ok(());
        }
        let Some((boot, first_seq, state)) = parse_name(name) else { return Ok(()) };
        match decode(&self.disk.read(path)?) {
            Some((window, totals)) if window.first_seq == first_seq => {
                let Window { last_seq, start_ms, .. } = window;
                self.entries.insert((boot, first_seq), Entry { last_seq, start_ms, totals, state });
                Ok(())
            }
            _ => {
                tracing::error!(file = name, "a spooled window is corrupt; it is put aside");
                self.disk.rename(path, &path.with_extension("corrupt"))
            }
        }
    }

    /// Adds a window that follows the last one of its boot; merges the two if `merge` and the last one
    /// was never sent. Durable when this returns.
    pub(super) fn push(
        &mut self,
        boot: &BootId,
        window: Window,
        totals: Totals,
        merge: bool,
    ) -> io::Result<()> {
        let mut window = window;
        let last = self.of(boot).next_back().map(|((_, first_seq), entry)| (*first_seq, *entry));
        if let Some((first_seq, Entry { state: State::Unsent, .. })) = last
            && merge
            && let Some((mut merged, _)) =
                decode(&self.disk.read(&self.path(boot, first_seq, State::Unsent))?)
        {
            window = match merged.try_merge(window, WINDOW_BUCKET.as_millis() as u64) {
                Ok(()) => merged,
                Err(apart) => apart,
            };
        }
        let (first_seq, last_seq, start_ms) = (window.first_seq, window.last_seq, window.start_ms);
        self.write(boot, first_seq, &encode(boot, window, totals))?;
        let entry = Entry { last_seq, start_ms, totals, state: State::Unsent };
        self.entries.insert((boot.clone(), first_seq), entry);
        Ok(())
    }

    /// The number of the last window of a boot, counted or not; 0 before the first.
    pub(super) fn last_seq(&self, boot: &BootId) -> u64 {
        self.of(boot).next_back().map_or(0, |(_, entry)| entry.last_seq)
    }

    /// Running totals of a boot through its last window.
    pub(super) fn totals(&self, boot: &BootId) -> Totals {
        self.of(boot).next_back().map_or_else(Totals::default, |(_, entry)| entry.totals)
    }

    /// Boots with windows that wait, in the order of their ids, which is that of their times.
    pub(super) fn boots(&self) -> Vec<BootId> {
        let mut boots: Vec<_> = self.unclaimed().map(|((boot, _), _)| boot.clone()).collect();
        boots.dedup();
        boots
    }

    /// How many windows wait.
    pub(super) fn waiting(&self) -> usize {
        self.unclaimed().count()
    }

    /// The beginning of the oldest window that waits.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.unclaimed().map(|(_, entry)| entry.start_ms).min()
    }

    /// The oldest window of a boot that waits, durably marked as sent.
    pub(super) fn next(&mut self, boot: &BootId) -> io::Result<Option<pb::ReportRequest>> {
        let oldest = self.of(boot).find(|(_, entry)| entry.state != State::Claimed);
        let Some(((_, first_seq), entry)) = oldest.map(|(key, entry)| (key.clone(), *entry)) else {
            return Ok(None);
        };
        if entry.state == State::Unsent {
            self.mark(boot, first_seq, State::Sent)?;
        }
        let bytes = self.disk.read(&self.path(boot, first_seq, State::Sent))?;
        let (window, totals) = decode(&bytes).ok_or_else(corrupt)?;
        Ok(Some(pb::ReportRequest {
            node_id: String::new(),
            boot_id: boot.to_string(),
            window: Some(window.into()),
            totals: Some(totals.into()),
            acknowledged_through: first_seq - 1,
        }))
    }

    /// Forgets the windows of a boot up to number `through`.
    pub(super) fn claimed(&mut self, boot: &BootId, through: u64) -> io::Result<()> {
        let claimed: Vec<_> = self
            .of(boot)
            .filter(|(_, entry)| entry.last_seq <= through)
            .map(|((_, first_seq), entry)| (*first_seq, entry.state))
            .collect();
        let Some(((last, state), older)) = claimed.split_last() else { return Ok(()) };
        if *state != State::Claimed {
            self.mark(boot, *last, State::Claimed)?;
        }
        if *boot != self.current && !self.awaits_journals {
            self.remove(boot, *last, State::Claimed)?;
        }
        older.iter().try_for_each(|(first_seq, state)| self.remove(boot, *first_seq, *state))
    }

    /// Removes the marks of boots that are over; their journals must have been taken in before.
    pub(super) fn forget_ended_boots(&mut self) -> io::Result<()> {
        self.awaits_journals = false;
        let marks: Vec<_> = self
            .entries
            .iter()
            .filter(|((boot, _), entry)| *boot != self.current && entry.state == State::Claimed)
            .map(|(key, _)| key.clone())
            .collect();
        marks.iter().try_for_each(|(boot, first_seq)| self.remove(boot, *first_seq, State::Claimed))
    }

    fn of(&self, boot: &BootId) -> impl DoubleEndedIterator<Item = (&(BootId, u64), &Entry)> {
        self.entries.range((boot.clone(), 0)..=(boot.clone(), u64::MAX))
    }

    fn unclaimed(&self) -> impl Iterator<Item = (&(BootId, u64), &Entry)> {
        self.entries.iter().filter(|(_, entry)| entry.state != State::Claimed)
    }

    fn path(&self, boot: &BootId, first_seq: u64, state: State) -> PathBuf {
        self.dir.join(format!("{boot}-{first_seq}.{}", state.extension()))
    }

    fn mark(&mut self, boot: &BootId, first_seq: u64, state: State) -> io::Result<()> {
        let Some(entry) = self.entries.get_mut(&(boot.clone(), first_seq)) else { return Ok(()) };
        let before = entry.state;
        let (from, to) = (self.path(boot, first_seq, before), self.path(boot, first_seq, state));
        self.disk.rename(&from, &to)?;
        if let Some(entry) = self.entries.get_mut(&(boot.clone(), first_seq)) {
            entry.state = state;
        }
        self.disk.sync(&self.dir)
    }

    fn remove(&mut self, boot: &BootId, first_seq: u64, state: State) -> io::Result<()> {
        self.disk.remove(&self.path(boot, first_seq, state))?;
        self.entries.remove(&(boot.clone(), first_seq));
        Ok(())
    }

    fn write(&self, boot: &BootId, first_seq: u64, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(boot, first_seq, State::Unsent);
        self.disk.write(&path, &path.with_extension("tmp"), bytes)
    }
}

fn corrupt() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a spooled window is corrupt")
}

fn encode(boot: &BootId, window: Window, totals: Totals) -> Vec<u8> {
    let message = pb::ReportRequest {
        node_id: String::new(),
        boot_id: boot.to_string(),
        window: Some(window.into()),
        totals: Some(totals.into()),
        acknowledged_through: 0,
    };
    let encoded = message.encode_to_vec();
    [&digest(&encoded)[..], &encoded].concat()
}

fn decode(bytes: &[u8]) -> Option<(Window, Totals)> {
    let (sum, encoded) = bytes.split_at_checked(32)?;
    let message = pb::ReportRequest::decode((digest(encoded) == *sum).then_some(encoded)?).ok()?;
    Some((message.window?.into(), message.totals?.into()))
}

fn parse_name(name: &str) -> Option<(BootId, u64, State)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let (boot, first_seq) = stem.rsplit_once('-')?;
    let state =
        [State::Unsent, State::Sent, State::Claimed].into_iter().find(|s| s.extension() == extension)?;
    Some((boot.into(), first_seq.parse().ok()?, state))
}
