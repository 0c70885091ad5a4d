//! Whether one process speaks for a node, or two: a process that was replaced by another one and comes back was never
//! gone, so that its identity was cloned. A restart never brings an old boot back. Pure.

use std::collections::VecDeque;

use common::limits::CLONE_WITHIN;
use serde::{Deserialize, Serialize};

/// So many boots are remembered.
const BOOTS_MAX: usize = 16;

/// The boots of a node that were seen of late.
#[derive(Debug, Clone, Default)]
pub struct Boots {
    /// With the time at which each last opened a stream; the newest last.
    seen: VecDeque<(String, u64)>,
    cloned: Option<Cloned>,
}

/// Two processes with one identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloned {
    /// The two boots that took turns.
    pub boots: [String; 2],
    /// When they last did.
    pub at_ms: u64,
}

impl Boots {
    /// A stream of this boot opens. Returns what was found out now and was not known before.
    pub fn connected(&mut self, boot: &str, now_ms: u64) -> Option<Cloned> {
        let is_recent = |at_ms: u64| now_ms.saturating_sub(at_ms) <= CLONE_WITHIN.as_millis() as u64;
        let before = self.seen.back().map(|(boot, _)| boot.clone());
        let known = self.seen.iter().position(|(seen, _)| seen == boot);
        let returns = known.and_then(|at| self.seen.remove(at)).is_some_and(|(_, at_ms)| is_recent(at_ms));
        self.seen.push_back((boot.to_owned(), now_ms));
        if self.seen.len() > BOOTS_MAX {
            self.seen.pop_front();
        }
        let other = before.filter(|before| before != boot && returns)?;
        let found = Cloned { boots: [other, boot.to_owned()], at_ms: now_ms };
        self.found(found.clone(), now_ms).then_some(found)
    }

    /// It was found out otherwise. Returns whether it was not known before.
    pub fn found(&mut self, found: Cloned, now_ms: u64) -> bool {
        let was_known = self.cloned(now_ms).is_some();
        if self.cloned.as_ref().is_none_or(|known| known.at_ms <= found.at_ms) {
            self.cloned = Some(found);
        }
        !was_known && self.cloned(now_ms).is_some()
    }

    /// What is found of late.
    pub fn cloned(&self, now_ms: u64) -> Option<&Cloned> {
        let is_recent = |at_ms: u64| now_ms.saturating_sub(at_ms) <= CLONE_WITHIN.as_millis() as u64;
        self.cloned.as_ref().filter(|cloned| is_recent(cloned.at_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN_MS: u64 = CLONE_WITHIN.as_millis() as u64;

    #[test]
    fn a_boot_that_returns_after_another_one_was_never_gone() {
        let mut boots = Boots::default();
        assert_eq!(boots.connected("a", 1), None);
        assert_eq!(boots.connected("a", 2), None, "its stream was cut");
        assert_eq!(boots.connected("b", 3), None, "it was started again");
        assert_eq!(boots.cloned(3), None);
        let found = boots.connected("a", 4).unwrap();
        assert_eq!(found, Cloned { boots: ["b".into(), "a".into()], at_ms: 4 });
        assert_eq!(boots.connected("b", 5), None, "told once");
        assert_eq!(boots.cloned(5).unwrap().boots, ["a", "b"]);
        assert!(boots.cloned(5 + WITHIN_MS).is_some());
        assert_eq!(boots.cloned(6 + WITHIN_MS), None, "one of them is gone since");
        for (n, boot) in (0..).zip(["b", "a"]) {
            assert_eq!(boots.connected(boot, 10 * WITHIN_MS + n), None);
        }
        assert!(boots.connected("b", 10 * WITHIN_MS + 2).is_some(), "and is told again when it comes back");
    }

    #[test]
    fn any_number_of_restarts_is_none() {
        let mut boots = Boots::default();
        for n in 0..1000 {
            assert_eq!(boots.connected(&format!("boot-{n}"), n), None);
            assert_eq!(boots.connected(&format!("boot-{n}"), n), None);
        }
        assert!(boots.seen.len() <= BOOTS_MAX);
    }

    #[test]
    fn what_was_long_ago_counts_no_more() {
        let mut boots = Boots::default();
        boots.connected("a", 1);
        boots.connected("b", 2);
        assert_eq!(boots.connected("a", 2 + WITHIN_MS), None);
    }
}
