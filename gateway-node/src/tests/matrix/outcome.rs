//! What is to be known of one cell: what the caller got, what the upstreams were asked, what was recorded, and what
//! became of the channels. The oracle foretells one, playing observes one.

use std::collections::BTreeMap;
use std::time::Duration;

/// Stands for our id of the request.
pub const ID: &str = "REQUEST-ID";

/// Everything that one cell shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// 0 where the caller left before.
    pub status: u16,
    /// All but the length and the date.
    pub headers: BTreeMap<String, String>,
    pub body: String,
    pub ending: Ending,
    /// From the request to the response headers.
    pub after: Duration,
    /// From the request to the end of the body.
    pub took: Duration,
    /// Requests that each channel got.
    pub calls: Vec<usize>,
    /// What each channel's attempts were counted as.
    pub attempts: BTreeMap<String, u64>,
    /// What the request was counted as.
    pub requests: BTreeMap<String, u64>,
    /// What became of each channel.
    pub marks: Vec<Mark>,
    /// What must never be: secrets in the wrong place, a request that was not the caller's, …
    pub wrongs: Vec<String>,
}

/// How the caller's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// As HTTP has it.
    #[default]
    Clean,
    /// The connection ended before the body did.
    Aborted,
    /// The caller left, and the upstream request was given up within a second.
    Left,
}

/// What became of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Nothing,
    /// So many failures in the breaker's window.
    Failures(usize),
    /// The route cools down.
    Cooldown(Duration),
    /// Suspended for so long.
    Credential(Duration),
    Channel(Duration),
    Route(Duration),
}

impl Outcome {
    /// What differs, part by part.
    pub fn differs(&self, observed: &Outcome) -> Vec<String> {
        let mut faults = Vec::new();
        let mut part = |name: &str, expected: String, seen: String| {
            if expected != seen {
                faults.push(format!("{name}: expected {}, saw {}", short(&expected), short(&seen)));
            }
        };
        part("status", self.status.to_string(), observed.status.to_string());
        part("headers", format!("{:?}", self.headers), format!("{:?}", observed.headers));
        part("body", self.body.clone(), observed.body.clone());
        part("ending", format!("{:?}", self.ending), format!("{:?}", observed.ending));
        part("after", format!("{:?}", self.after), format!("{:?}", observed.after));
        part("took", format!("{:?}", self.took), format!("{:?}", observed.took));
        part("calls", format!("{:?}", self.calls), format!("{:?}", observed.calls));
        part("attempts", format!("{:?}", self.attempts), format!("{:?}", observed.attempts));
        part("requests", format!("{:?}", self.requests), format!("{:?}", observed.requests));
        part("channels", format!("{:?}", self.marks), format!("{:?}", observed.marks));
        part("wrongs", format!("{:?}", self.wrongs), format!("{:?}", observed.wrongs));
        faults
    }
}

fn short(text: &str) -> String {
    let kept: String = text.chars().take(600).collect();
    if kept.len() == text.len() { kept } else { format!("{kept}… ({} bytes)", text.len()) }
}
