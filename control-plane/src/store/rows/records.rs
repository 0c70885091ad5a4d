//! Records of requests, and which of them are wanted.

/// A request as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestSummary {
    /// UUIDv7.
    pub request_id: String,
    /// The node that served it.
    pub node: String,
    /// When it began.
    pub began_at_ms: u64,
    /// As it was asked for; empty where that was not known.
    pub model: String,
    /// The wire format.
    pub dialect: String,
    /// Id of the caller's key; empty without one.
    pub key: String,
    /// The last channel that was asked; empty where none was.
    pub channel: String,
    /// How it ended.
    pub outcome: String,
    /// HTTP status; 0 where the caller went away before.
    pub status: u32,
    /// How many attempts it took.
    pub attempts: u32,
    /// From its beginning to its end.
    pub duration_us: u64,
}

/// A request as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptRecord {
    /// What is listed.
    pub summary: RequestSummary,
    /// The caller's own id of it; empty without one.
    pub client_request_id: String,
    /// Channel and class of each attempt, in order.
    pub attempts: Vec<(String, String)>,
    /// The encoded record.
    pub record: Vec<u8>,
}

/// Which requests are wanted. Empty texts and zeros do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Began at or after.
    pub since_ms: u64,
    /// Began before.
    pub until_ms: u64,
    /// As it was asked for.
    pub model: String,
    /// The node that served it.
    pub node: String,
    /// Id of the caller's key.
    pub key: String,
    /// How it ended.
    pub outcome: String,
    /// HTTP status.
    pub status: u32,
    /// At least so many attempts.
    pub attempts_min: u32,
    /// Took at least so long.
    pub slower_than_us: u64,
    /// Asked on the way.
    pub channel: String,
    /// Of an attempt, on that channel where one is given.
    pub class: String,
}

/// How often a channel failed in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCount {
    /// The channel.
    pub channel: String,
    /// The class.
    pub class: String,
    /// Attempts that failed so.
    pub attempts: u64,
    /// Those of requests that were served all the same.
    pub cured: u64,
}
