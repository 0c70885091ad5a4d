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

/// A request as it comes into the store.
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
    /// Whether it is kept; one that is not is counted all the same.
    pub is_kept: bool,
    /// What its answer cost us, in pico-USD, where that is known.
    pub cost: Option<u64>,
    /// What its caller pays, in pico-USD, where that is known.
    pub price: Option<u64>,
    /// What is counted of it.
    pub used: Used,
    /// To whom it is counted: day, key and model.
    pub used_by: (u32, String, String),
}

/// A record in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRecord {
    /// The node that wrote it.
    pub node: String,
    /// The encoded record.
    pub record: Vec<u8>,
    /// What its answer cost us, in pico-USD, where that is known.
    pub cost: Option<u64>,
    /// What its caller pays, in pico-USD, where that is known.
    pub price: Option<u64>,
}

/// What a request used, or several of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Requests.
    pub requests: u64,
    /// Those of them that were served.
    pub served: u64,
    /// Tokens that went in.
    pub input: u64,
    /// Those of them that the upstream had cached.
    pub cached_input: u64,
    /// Tokens that came out.
    pub output: u64,
    /// Searches.
    pub searches: u64,
    /// Milliseconds of audio.
    pub audio_ms: u64,
    /// What the answers cost us, in pico-USD, as far as it is known.
    pub cost: u64,
    /// What callers pay, in pico-USD, as far as it is known.
    pub price: u64,
    /// Answers of which it is not known what they cost us or what callers pay.
    pub unpriced: u64,
}

/// Whose use, when, of what; `None` where all are put together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UsedBy {
    /// Days since 1970, UTC.
    pub day: Option<u32>,
    /// Id of a client key; empty for callers without one.
    pub key: Option<String>,
    /// A model of the catalog; empty for what names none.
    pub model: Option<String>,
}

/// Which use is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// From this day on; days since 1970, UTC.
    pub first_day: u32,
    /// To the end of this day.
    pub last_day: u32,
    /// Of this key; `None` for all.
    pub key: Option<String>,
    /// Of this model; `None` for all.
    pub model: Option<String>,
    /// Days are told apart.
    pub by_day: bool,
    /// Keys are told apart.
    pub by_key: bool,
    /// Models are told apart.
    pub by_model: bool,
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

impl Used {
    /// Adds what others used.
    pub fn add(&mut self, other: &Used) {
        let sums = [
            (&mut self.requests, other.requests),
            (&mut self.served, other.served),
            (&mut self.input, other.input),
            (&mut self.cached_input, other.cached_input),
            (&mut self.output, other.output),
            (&mut self.searches, other.searches),
            (&mut self.audio_ms, other.audio_ms),
            (&mut self.cost, other.cost),
            (&mut self.price, other.price),
            (&mut self.unpriced, other.unpriced),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }
}
