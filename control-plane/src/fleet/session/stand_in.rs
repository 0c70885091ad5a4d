//! What a node gets that refused the head and has nothing else to serve: the newest older content that
//! some node of the fleet runs, so that one bad revision keeps no fresh node from serving (FR-007).
//!
//! ```text
//! nothing ──ask(below)──▶ asked ──found──▶ stands in ──refused──▶ ask below that one
//!                           └──nothing there──▶ waits for another head
//! ```

use crate::revision::encoded::{Encoded, Part};

/// The content that stands in for the head, and how far it was looked for.
#[derive(Debug, Default)]
pub(super) struct StandIn {
    asked_below: Option<u64>,
    found: Option<Encoded>,
}

/// Where a node stands that has nothing to serve.
#[derive(Debug, PartialEq)]
pub(super) enum Stand<'a> {
    /// Send this.
    Ready(&'a Encoded),
    /// Look for a content below this version.
    Look(u64),
    /// Nothing is known, or it is being looked for.
    Nothing,
}

impl StandIn {
    /// What to do for a node that is not given `head`. `is_out` says of other contents whether it is either.
    pub(super) fn stand(&mut self, head: Part, is_out: impl Fn(&Encoded) -> bool) -> Stand<'_> {
        let below = match &self.found {
            Some(found) if found.part.version < head.version && !is_out(found) => {
                return self.found.as_ref().map_or(Stand::Nothing, Stand::Ready);
            }
            Some(found) if found.part.version < head.version => found.part.version,
            _ => head.version,
        };
        // Below the first revision there is none.
        if below <= 1 || self.asked_below == Some(below) {
            return Stand::Nothing;
        }
        self.asked_below = Some(below);
        Stand::Look(below)
    }

    /// Takes what was looked for; `None` when no node runs such a content.
    pub(super) fn take(&mut self, found: Option<Encoded>) {
        if found.is_some() {
            self.found = found;
        }
    }
}
