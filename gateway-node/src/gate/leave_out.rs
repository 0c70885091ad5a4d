//! The one edit of a stream: leaves out the frames that are there only because the upstream was asked for its usage.
//! An event that has no end yet is kept back, up to a bound, until it can be told whether it is one of them; nobody
//! misses it, since readers of events wait for its end too. All other bytes pass as they came, however the reads cut
//! them, and none is copied but of an event in very many pieces.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use common::limits::USAGE_FRAME_BYTES_MAX;

use crate::dialect::sse::Event;

/// An event that comes in more pieces than this is put together: a piece costs more than the few bytes in it.
const KEPT_PIECES_MAX: usize = 64;

/// What is left out of one stream. Places count from the start of the chunk that is looked at.
#[derive(Debug)]
pub struct LeaveOut {
    is_one: fn(&Event<'_>) -> bool,
    /// Ascending.
    cuts: VecDeque<Range<isize>>,
    /// The CR at the end of the last cut ended its chunk, and the LF that may follow belongs to it.
    skips_lf: bool,
    /// From here on the bytes are those of an event that has no end yet.
    open_from: isize,
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
}

impl LeaveOut {
    /// Leaves out the events that `is_one` says.
    pub fn new(is_one: fn(&Event<'_>) -> bool) -> Self {
        LeaveOut {
            is_one,
            cuts: VecDeque::new(),
            skips_lf: false,
            open_from: isize::MAX,
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// A chunk begins, `before` bytes behind the place that the others count from.
    pub fn begin(&mut self, chunk: &[u8], before: usize) {
        if std::mem::take(&mut self.skips_lf) && chunk.starts_with(b"\n") {
            self.cuts.push_back(signed(before)..signed(before) + 1);
        }
    }

    /// Takes an event of the chunk. It ends at `end`, counted like all places.
    pub fn on_event(&mut self, event: &Event<'_>, end: usize, chunk: &[u8]) {
        // Larger ones were let through before they could be looked at.
        if event.size > USAGE_FRAME_BYTES_MAX || !(self.is_one)(event) {
            return;
        }
        self.cuts.push_back(signed(end) - signed(event.size)..signed(end));
        self.skips_lf = event.end == chunk.len() && chunk.ends_with(b"\r");
    }

    /// The chunk that ends at `end` is over, and its last `open` bytes, or those of earlier ones too, are those of an
    /// event that has no end yet.
    pub fn finish(&mut self, end: usize, open: usize) {
        let open = if open > USAGE_FRAME_BYTES_MAX { 0 } else { open };
        self.open_from = signed(end) - signed(open);
    }

    /// Hands on what may pass of the chunks that were looked at since the last time.
    pub fn pass(&mut self, chunks: impl IntoIterator<Item = Bytes>, out: &mut VecDeque<Bytes>) {
        let mut at = -signed(self.kept_bytes);
        if at < self.open_from {
            self.kept_bytes = 0;
            for _ in 0..self.kept.len() {
                let chunk = self.kept.pop_front().unwrap_or_default();
                at = self.place(chunk, at, out);
            }
        } else {
            // What is kept is the start of what is kept now.
            at = 0;
        }
        for chunk in chunks {
            at = self.place(chunk, at, out);
        }
        if self.kept.len() > KEPT_PIECES_MAX {
            let together = self.kept.drain(..).collect::<Vec<_>>().concat();
            self.kept.push_back(together.into());
        }
        self.cuts.clear();
        self.open_from = isize::MAX;
    }

    /// Hands on what is kept, unless it is itself to be left out.
    pub fn release(&mut self, out: &mut VecDeque<Bytes>) {
        self.pass([], out);
    }

    /// Hands on, keeps or forgets what a chunk has that begins at `at`; returns where the next one begins.
    fn place(&mut self, mut chunk: Bytes, mut at: isize, out: &mut VecDeque<Bytes>) -> isize {
        while !chunk.is_empty() {
            while self.cuts.front().is_some_and(|cut| cut.end <= at) {
                self.cuts.pop_front();
            }
            let (until, is_cut) = match self.cuts.front() {
                Some(cut) if cut.start <= at => (cut.end, true),
                Some(cut) => (cut.start, false),
                None if at < self.open_from => (self.open_from, false),
                None => (isize::MAX, false),
            };
            let len = usize::try_from(until.saturating_sub(at)).unwrap_or_default().min(chunk.len());
            let piece = chunk.split_to(len);
            if !is_cut && at >= self.open_from {
                self.kept_bytes += piece.len();
                self.kept.push_back(piece);
            } else if !is_cut {
                out.push_back(piece);
            }
            at += signed(len);
        }
        at
    }
}

fn signed(at: usize) -> isize {
    isize::try_from(at).unwrap_or(isize::MAX)
}
