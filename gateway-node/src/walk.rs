//! Layer 2: which route is tried next, and what the caller is told when none is left. Pure: the
//! attempt itself (`attempt`) and who may be asked at all (`eligible`) are its owner's to carry out.

pub mod attempt;
pub mod eligible;

use std::time::Duration;

use tokio::time::Instant;

use common::class::{FailureClass, Next};
use common::code::Code;
use common::limits::{COOLDOWN_MAX, COOLDOWN_MIN, TIMEOUT_WALK_AGE_MAX};

use crate::fault::{Detail, Fault, Reason};

/// How the code is called that says that a request has more tokens than its model takes.
const CONTEXT_LENGTH_CODE: &str = "context_length_exceeded";

/// What the walk must know of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hop {
    /// Which credential it shows.
    pub credential: Option<[u8; 32]>,
    /// Tokens, where the catalog says.
    pub context_window: Option<u64>,
}

/// One request's way over its chain.
#[derive(Debug)]
pub struct Walk {
    hops: Vec<Hop>,
    started: Instant,
    next: usize,
    is_over: bool,
    faults: Vec<Fault>,
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

/// What the caller is told when no route served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// The status; of a bad request the upstream's.
    pub status: u16,
    /// What the upstream found wrong in the request; only of a bad request.
    pub detail: Option<Detail>,
    /// Whether coming back helps.
    pub retry: Retry,
}

impl Walk {
    /// A walk over a chain, for a request that began at `started`.
    pub fn new(hops: Vec<Hop>, started: Instant) -> Self {
        Walk {
            hops,
            started,
            next: 0,
            is_over: false,
            faults: Vec::new(),
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
    pub fn on_fault(&mut self, index: usize, fault: Fault, now: Instant) {
        let hop = self.hops.get(index).copied().unwrap_or_default();
        match fault.class.consequence().next {
            Next::Hop => {}
            Next::HopIfYoung => {
                self.is_over |= now.saturating_duration_since(self.started) >= TIMEOUT_WALK_AGE_MAX;
            }
            // Only a larger window cures a request that is too long; a page that no upstream wrote says nothing of it.
            Next::Return => match fault.reason {
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
        self.is_over |= self.is_submission && !fault.is_untaken;
        if fault.class == FailureClass::Credential {
            self.refused_credentials.extend(hop.credential);
        }
        self.faults.push(fault);
    }

    /// How many attempts failed so far.
    pub fn failed(&self) -> usize {
        self.faults.len()
    }

    /// What the caller is told. `earliest_return` is when the first route that is out comes back.
    pub fn refusal(self, earliest_return: Option<Duration>) -> Refusal {
        let is_alone = self.faults.len() == 1;
        let all = |class| self.faults.iter().all(|fault| fault.class == class);
        let is_all_rate_limited = all(FailureClass::RateLimited);
        // Neither what only the operator can mend, nor a request that exceeds a limit by itself.
        let waiting_helps = self
            .faults
            .iter()
            .any(|fault| fault.class.consequence().decides_status && fault.reason != Reason::SingleRequest);
        // Nobody knows whether the last one was taken: to ask for it again may have it done twice.
        let is_open = self.is_submission && self.faults.last().is_some_and(|fault| !fault.is_untaken);
        let retry = match earliest_return {
            _ if is_open => Retry::Never,
            hint if waiting_helps && (is_alone || is_all_rate_limited) => Retry::After(bounded(hint)),
            _ => Retry::Never,
        };
        let Some(deciding) = deciding(&self.faults) else {
            return Refusal::of(Code::NoAvailableChannel, Retry::Never);
        };
        if deciding.class == FailureClass::BadRequest {
            return bad_request(&self.faults, deciding);
        }
        Refusal::of(deciding.class.consequence().code, retry)
    }
}

impl Refusal {
    /// A refusal with the status of its code.
    pub fn of(code: Code, retry: Retry) -> Self {
        Refusal { code, status: code.status(), detail: None, retry }
    }
}

/// The last that is not the operator's own matter, else nothing.
fn deciding(faults: &[Fault]) -> Option<&Fault> {
    faults.iter().rev().find(|fault| fault.class.consequence().decides_status)
}

fn bad_request(faults: &[Fault], deciding: &Fault) -> Refusal {
    let status = deciding.status.filter(|status| (400..500).contains(status)).unwrap_or(400);
    if deciding.reason == Reason::Unshaped {
        let all_agree = faults.iter().all(|fault| fault.status == deciding.status);
        if !all_agree {
            return Refusal::of(Code::UpstreamError, Retry::Never);
        }
        return Refusal { code: Code::InvalidRequest, status, detail: None, retry: Retry::Unsaid };
    }
    let mut detail = deciding.detail.clone();
    if let (Reason::ContextLength, Some(detail)) = (deciding.reason, &mut detail) {
        // Servers of open models have a number there, or nothing; applications look for the name.
        detail.code.take_if(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
        detail.code.get_or_insert_with(|| CONTEXT_LENGTH_CODE.to_owned());
    }
    Refusal { code: Code::InvalidRequest, status, detail, retry: Retry::Unsaid }
}

/// A hint that every SDK obeys: between one second and a minute.
pub fn bounded(hint: Option<Duration>) -> Duration {
    hint.unwrap_or(COOLDOWN_MIN).clamp(COOLDOWN_MIN, COOLDOWN_MAX)
}

#[cfg(test)]
mod tests;
