//! What this node knows of ids: which channel made them, with which key, under which model. Bounded in number and
//! age, the oldest out first; what the control plane has not got yet is never forgotten. Pure.

use std::collections::{BTreeMap, HashMap};

use common::dialect::Dialect;
use common::id::{ChannelId, KeyId, Model};
use common::limits::{BINDING_AGE_MAX, BINDINGS_MAX};

/// What is looked for: an id means something for the key that made it alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The dialect in which it was made.
    pub dialect: Dialect,
    /// As the upstream gave it.
    pub id: std::sync::Arc<str>,
    /// Whose it is; an empty one is that of all callers without a key.
    pub key: KeyId,
}

/// An id and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The id.
    pub name: Name,
    /// The only channel that knows it.
    pub channel: ChannelId,
    /// The model under which calls for it are counted.
    pub model: Model,
    /// When it was made.
    pub made_at_ms: u64,
}

impl Binding {
    fn is_too_old(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.made_at_ms) >= BINDING_AGE_MAX.as_millis() as u64
    }
}

/// All bindings that this node knows, numbered in the order in which they were made or learned.
#[derive(Debug, Default)]
pub struct Table {
    by_name: HashMap<Name, (u64, Binding)>,
    /// Those that the control plane has, in order.
    reported: BTreeMap<u64, Name>,
    /// Those that it may not have.
    waiting: BTreeMap<u64, Name>,
    /// The highest epoch of a control plane that was reported to.
    epoch: u64,
}

impl Table {
    /// Takes a binding in under a number that no other has. A later number of the same name replaces it.
    pub fn insert(&mut self, seq: u64, binding: Binding, is_reported: bool, now_ms: u64) {
        match self.by_name.get(&binding.name) {
            Some((known, _)) if *known > seq => return,
            Some((known, _)) if *known == seq => {
                if is_reported {
                    self.report(seq);
                }
                return;
            }
            Some((known, _)) => {
                let known = *known;
                self.reported.remove(&known);
                self.waiting.remove(&known);
            }
            None => {}
        }
        let order = if is_reported { &mut self.reported } else { &mut self.waiting };
        order.insert(seq, binding.name.clone());
        self.by_name.insert(binding.name.clone(), (seq, binding));
        self.forget(now_ms);
    }

    /// The control plane has it now.
    pub fn report(&mut self, seq: u64) {
        if let Some(name) = self.waiting.remove(&seq) {
            self.reported.insert(seq, name);
        }
    }

    /// Reports count in this epoch from now on: in a higher one than before the control plane has nothing of what it
    /// had, so that all but the too old wait again. Says whether it is higher.
    pub fn begin_epoch(&mut self, epoch: u64, now_ms: u64) -> bool {
        if epoch <= self.epoch {
            return false;
        }
        self.epoch = epoch;
        self.forget(now_ms);
        self.waiting.append(&mut self.reported);
        true
    }

    /// The epoch in which reports count.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Finds a binding.
    pub fn find(&self, name: &Name, now_ms: u64) -> Option<&Binding> {
        let (_, binding) = self.by_name.get(name)?;
        (!binding.is_too_old(now_ms)).then_some(binding)
    }

    /// The oldest of those that the control plane may not have, with their numbers.
    pub fn waiting(&self, max: usize) -> Vec<(u64, Binding)> {
        let numbered = self.waiting.iter().take(max);
        numbered.filter_map(|(seq, name)| Some((*seq, self.by_name.get(name)?.1.clone()))).collect()
    }

    /// All of them, oldest first, with their numbers and whether the control plane has them.
    pub fn all(&self) -> Vec<(u64, Binding, bool)> {
        let mut all: Vec<_> = self
            .by_name
            .values()
            .map(|(seq, binding)| (*seq, binding.clone(), self.reported.contains_key(seq)))
            .collect();
        all.sort_by_key(|(seq, ..)| *seq);
        all
    }

    /// How many are known, and how many of them wait to be reported.
    pub fn counts(&self) -> (usize, usize) {
        (self.by_name.len(), self.waiting.len())
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some(first) = self.reported.first_entry() {
            let is_too_old =
                self.by_name.get(first.get()).is_none_or(|(_, binding)| binding.is_too_old(now_ms));
            if !is_too_old && self.by_name.len() <= BINDINGS_MAX {
                return;
            }
            let name = first.remove();
            self.by_name.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_796_046_279_000;

    fn binding(id: &str, channel: &str) -> Binding {
        let name = Name { dialect: Dialect::OpenaiResponses, id: id.into(), key: "k".into() };
        Binding { name, channel: channel.into(), model: "m".into(), made_at_ms: NOW }
    }

    fn channel(table: &Table, id: &str) -> Option<String> {
        table.find(&binding(id, "").name, NOW).map(|found| found.channel.to_string())
    }

    #[test]
    fn an_id_is_found_by_the_key_and_the_dialect_that_made_it_alone() {
        let mut table = Table::default();
        table.insert(1, binding("r", "a"), false, NOW);
        let name = binding("r", "").name;
        assert!(table.find(&name, NOW).is_some());
        for other in [
            Name { key: "other".into(), ..name.clone() },
            Name { key: "".into(), ..name.clone() },
            Name { dialect: Dialect::OpenaiVideos, ..name.clone() },
            Name { id: "R".into(), ..name },
        ] {
            assert_eq!(table.find(&other, NOW), None, "{other:?}");
        }
    }

    #[test]
    fn the_later_binding_of_a_name_counts_in_whatever_order_they_come() {
        for order in [[1, 2], [2, 1]] {
            let mut table = Table::default();
            for seq in order {
                table.insert(seq, binding("r", if seq == 1 { "a" } else { "b" }), false, NOW);
            }
            assert_eq!(channel(&table, "r").as_deref(), Some("b"), "{order:?}");
            assert_eq!(table.counts(), (1, 1));
            assert_eq!(table.waiting(9).iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2]);
        }
    }

    #[test]
    fn what_is_as_old_as_the_limit_is_gone_unless_it_was_never_reported() {
        let mut table = Table::default();
        table.insert(1, binding("told", "a"), true, NOW);
        table.insert(2, binding("untold", "a"), false, NOW);
        let later = NOW + BINDING_AGE_MAX.as_millis() as u64;
        assert!(table.find(&binding("told", "").name, later - 1).is_some());
        assert_eq!(table.find(&binding("told", "").name, later), None);
        table.insert(3, Binding { made_at_ms: later, ..binding("new", "a") }, false, later);
        assert_eq!(table.counts(), (2, 2), "what was never reported waits on");
        assert_eq!(table.waiting(9).len(), 2);
    }

    #[test]
    fn in_a_higher_epoch_all_but_the_too_old_wait_again_and_in_no_other() {
        let mut table = Table::default();
        assert!(table.begin_epoch(2, NOW));
        let old = NOW - BINDING_AGE_MAX.as_millis() as u64;
        table.insert(1, Binding { made_at_ms: old, ..binding("old", "a") }, true, NOW - 1);
        table.insert(2, binding("told", "a"), true, NOW - 1);
        table.insert(3, binding("untold", "a"), false, NOW - 1);
        for epoch in [2, 1, 0] {
            assert!(!table.begin_epoch(epoch, NOW));
            assert_eq!(table.counts(), (3, 1), "epoch {epoch}");
        }
        assert!(table.begin_epoch(3, NOW));
        assert_eq!(table.counts(), (2, 2));
        assert_eq!(table.waiting(9).iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2, 3]);
        table.report(2);
        assert_eq!((table.counts(), table.epoch()), ((2, 1), 3));
    }

    #[test]
    fn of_too_many_the_oldest_go_first_and_those_that_were_not_reported_stay() {
        let mut table = Table::default();
        table.insert(0, binding("untold", "a"), false, NOW);
        for seq in 1..=BINDINGS_MAX as u64 + 2 {
            table.insert(seq, binding(&format!("r{seq}"), "a"), true, NOW);
        }
        assert_eq!(table.counts(), (BINDINGS_MAX, 1));
        let is_known = |id: &str| channel(&table, id).is_some();
        assert_eq!(
            [is_known("untold"), is_known("r1"), is_known("r3"), is_known("r4")],
            [true, false, false, true]
        );
    }

    proptest! {
        #[test]
        fn a_table_read_back_from_all_of_it_is_the_same(
            steps in prop::collection::vec((0u8..8, any::<bool>(), any::<bool>()), 0..60)
        ) {
            let mut table = Table::default();
            for (seq, (id, is_reported, reports)) in (1..).zip(&steps) {
                table.insert(seq, binding(&id.to_string(), &seq.to_string()), *is_reported, NOW);
                if *reports {
                    table.report(seq / 2);
                }
            }
            let mut again = Table::default();
            for (seq, binding, is_reported) in table.all().into_iter().rev() {
                again.insert(seq, binding, is_reported, NOW);
            }
            prop_assert_eq!(again.all(), table.all());
            prop_assert_eq!(again.counts(), table.counts());
            let (known, waiting) = table.counts();
            prop_assert_eq!(known, table.reported.len() + waiting);
        }
    }
}
