//! Counters of windows, on their way in and out.

use common::window::Totals;

/// A window as a node reported it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who observed.
    pub node_id: String,
    /// In which run of its process.
    pub boot_id: String,
    /// Number of the first ten seconds in it.
    pub first_seq: u64,
    /// Number of the last.
    pub last_seq: u64,
    /// Its beginning, on the same clock as its end.
    pub from_ms: u64,
    /// Its end, never later than the time of its coming.
    pub until_ms: u64,
    /// What was counted.
    pub counts: common::window::Counts,
    /// Running totals up to and with this window, if the node sent them.
    pub totals: Option<Totals>,
    /// The last window that the node knows to be counted.
    pub acknowledged_through: u64,
}

/// What became of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Counted, now and once.
    Counted {
        /// The sums of this boot's counted windows, where the node's totals differ from them.
        mismatch: Option<Totals>,
        /// Whether windows between the last counted one and this one are missing here although the
        /// node was told that they are counted: the database is older than the node's memory.
        rebased: bool,
    },
    /// It was counted before; nothing was added.
    Duplicate {
        /// The last window of this boot that is counted.
        through: u64,
    },
    /// It does not follow the last counted one; nothing was added.
    OutOfOrder {
        /// The last window of this boot that is counted.
        through: u64,
    },
}

/// Attempts of one kind inside one bucket of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// Beginning of the bucket.
    pub at_ms: u64,
    /// Public name of the model.
    pub model: String,
    /// The channel.
    pub channel: String,
    /// `ok` or the name of a failure class, perhaps one that this version does not know.
    pub class: String,
    /// How many.
    pub count: u64,
}

/// Requests of one kind inside one bucket of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow {
    /// Beginning of the bucket.
    pub at_ms: u64,
    /// Public name of the model.
    pub model: String,
    /// `served`, `exhausted`, …, or the code of a refusal.
    pub outcome: String,
    /// How many.
    pub count: u64,
}

/// What was counted since some time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    /// Attempts, ordered by time, model, channel, class.
    pub attempts: Vec<AttemptRow>,
    /// Requests, ordered by time, model, outcome.
    pub requests: Vec<RequestRow>,
    /// Times to the first byte, where they are asked for as well.
    pub first_bytes: Vec<FirstByteRow>,
    /// End of the newest window ever counted, of any node; 0 when there is none. It tells the age of the data.
    pub until_ms: u64,
}

/// Times to the first byte that fell into one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstByteRow {
    /// The model.
    pub model: String,
    /// The channel of the attempts; empty for what callers saw.
    pub channel: String,
    /// No time in it was longer.
    pub bound_ms: u32,
    /// How many there were.
    pub count: u64,
}
