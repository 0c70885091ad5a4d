//! Layer 2: which route of a chain is tried next, and what the caller is told when none is left. Pure, and the same on
//! the node that walks and wherever a record of it is walked again.

pub mod out;

use std::time::Duration;

use tokio::time::Instant;

use crate::class::{FailureClass, Next};
use crate::code::Code;
use crate::limits::{COOLDOWN_MAX, COOLDOWN_MIN, TIMEOUT_WALK_AGE_MAX};

/// What the walk must know of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hop {
    /// Which credential it shows.
    pub credential: Option<[u8; 32]>,
    /// Tokens, where the catalog says.
    pub context_window: Option<u64>,
}

/// How an attempt failed, as far as the walk is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Decides what happens next.
    pub class: FailureClass,
    /// What the class alone does not tell.
    pub reason: Reason,
    /// The upstream's HTTP status, or that of an error inside a 200.
    pub status: Option<u16>,
    /// It is certain that the upstream did not take the request on, so that it may be sent elsewhere whatever it asks for.
    pub is_untaken: bool,
}

/// What the class of a failure alone does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nothing more.
    Plain,
    /// The request has more tokens than the model takes.
    ContextLength,
    /// The upstream refuses what the request says.
    ContentPolicy,
    /// The upstream calls the request too large, in the dialect's shape and with another status than 413.
    TooLarge,
    /// This one request exceeds a rate limit by itself: nobody else has to wait for it, so no cooldown.
    SingleRequest,
    /// A 4xx that is not said in the dialect's error shape, a 413 (ours is the limit that counts), or something
    /// that this upstream alone cannot do: the class is `bad_request`, but the walk goes on.
    Unshaped,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 6] = [
        Reason::Plain,
        Reason::ContextLength,
        Reason::ContentPolicy,
        Reason::TooLarge,
        Reason::SingleRequest,
        Reason::Unshaped,
    ];

    /// The name in records and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Plain => "plain",
            Reason::ContextLength => "context_length",
            Reason::ContentPolicy => "content_policy",
            Reason::TooLarge => "too_large",
            Reason::SingleRequest => "single_request",
            Reason::Unshaped => "unshaped",
        }
    }

    /// The reason of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// One request's way over its chain.
#[derive(Debug)]
pub struct Walk {
    hops: Vec<Hop>,
    started: Instant,
    next: usize,
    is_over: bool,
    failures: Vec<Failure>,
    refused_credentials: Vec<[u8; 32]>,
    window_needed_above: Option<u64>,
    /// It begins work that goes on whatever becomes of the answer.
    is_submission: bool,
}

/// What a caller may do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Come back after this long.
    After(Duration),
    /// Coming back repeats what was tried already, or cannot help.
    Never,
    /// The status says it all.
    Unsaid,
}

/// How a walk ended that found no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// The stable code.
    pub code: Code,
    /// The status; of a bad request the upstream's.
    pub status: u16,
    /// Whether coming back helps.
    pub retry: Retry,
    /// The failure whose words the caller is shown: its place among those of the walk.
    pub told_by: Option<usize>,
}

impl Walk {
    /// A walk over a chain, for a request that began at `started`.
    pub fn new(hops: Vec<Hop>, started: Instant) -> Self {
        Walk {
            hops,
            started,
            next: 0,
            is_over: false,
            failures: Vec::new(),
            refused_credentials: Vec::new(),
            window_needed_above: None,
            is_submission: false,
        }
    }

    /// The same for a request that nobody may take twice: it goes on only where it is certain that it was not taken.
    pub fn submitting(self, is_submission: bool) -> Self {
        Walk { is_submission, ..self }
    }

    /// The index of the route to try next; each comes once, in order.
    pub fn next_hop(&mut self) -> Option<usize> {
        while !self.is_over && self.next < self.hops.len() {
            let index = self.next;
            self.next += 1;
            if self.may_help(&self.hops[index]) {
                return Some(index);
            }
        }
        None
    }

    fn may_help(&self, hop: &Hop) -> bool {
        let was_refused = hop.credential.is_some_and(|print| self.refused_credentials.contains(&print));
        let is_large_enough = self
            .window_needed_above
            .is_none_or(|above| hop.context_window.is_some_and(|window| window > above));
        !was_refused && is_large_enough
    }

    /// Takes in how the attempt on the route `index` failed.
    pub fn on_failure(&mut self, index: usize, failure: Failure, now: Instant) {
        let hop = self.hops.get(index).copied().unwrap_or_default();
        match failure.class.consequence().next {
            Next::Hop => {}
            Next::HopIfYoung => {
                self.is_over |= now.saturating_duration_since(self.started) >= TIMEOUT_WALK_AGE_MAX;
            }
            // Only a larger window cures a request that is too long; a page that no upstream wrote says nothing of it.
            Next::Return => match failure.reason {
                Reason::Unshaped => {}
                Reason::ContextLength if hop.context_window.is_some() => {
                    self.window_needed_above = self.window_needed_above.max(hop.context_window);
                }
                Reason::ContextLength
                | Reason::Plain
                | Reason::ContentPolicy
                | Reason::TooLarge
                | Reason::SingleRequest => self.is_over = true,
            },
            Next::Stop => self.is_over = true,
        }
        self.is_over |= self.is_submission && !failure.is_untaken;
        if failure.class == FailureClass::Credential {
            self.refused_credentials.extend(hop.credential);
        }
        self.failures.push(failure);
    }

    /// How many attempts failed so far.
    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    /// What the caller is told. `earliest_return` is when the first route that is out comes back.
    pub fn ending(&self, earliest_return: Option<Duration>) -> Ending {
        let is_alone = self.failures.len() == 1;
        let is_all_rate_limited =
            self.failures.iter().all(|failure| failure.class == FailureClass::RateLimited);
        // Neither what only the operator can mend, nor a request that exceeds a limit by itself.
        let waiting_helps = self.failures.iter().any(|failure| {
            failure.class.consequence().decides_status && failure.reason != Reason::SingleRequest
        });
        // Nobody knows whether the last one was taken: to ask for it again may have it done twice.
        let is_open = self.is_submission && self.failures.last().is_some_and(|failure| !failure.is_untaken);
        let retry = match earliest_return {
            _ if is_open => Retry::Never,
            hint if waiting_helps && (is_alone || is_all_rate_limited) => Retry::After(bounded(hint)),
            _ => Retry::Never,
        };
        // The last that is not the operator's own matter, else nothing.
        let deciding = self.failures.iter().rposition(|failure| failure.class.consequence().decides_status);
        let Some(at) = deciding else { return Ending::of(Code::NoAvailableChannel, Retry::Never) };
        let failure = self.failures[at];
        if failure.class == FailureClass::BadRequest {
            return self.bad_request(at, failure);
        }
        Ending::of(failure.class.consequence().code, retry)
    }

    fn bad_request(&self, at: usize, failure: Failure) -> Ending {
        let status = failure.status.filter(|status| (400..500).contains(status)).unwrap_or(400);
        let told_by = (failure.reason != Reason::Unshaped).then_some(at);
        let all_agree = self.failures.iter().all(|other| other.status == failure.status);
        if told_by.is_none() && !all_agree {
            return Ending::of(Code::UpstreamError, Retry::Never);
        }
        Ending { code: Code::InvalidRequest, status, retry: Retry::Unsaid, told_by }
    }
}

impl Ending {
    /// An ending with the status of its code, in our own words.
    pub fn of(code: Code, retry: Retry) -> Self {
        Ending { code, status: code.status(), retry, told_by: None }
    }
}

/// A hint that every SDK obeys: between one second and a minute.
pub fn bounded(hint: Option<Duration>) -> Duration {
    hint.unwrap_or(COOLDOWN_MIN).clamp(COOLDOWN_MIN, COOLDOWN_MAX)
}

#[cfg(test)]
mod tests;
