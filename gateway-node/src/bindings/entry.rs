//! A binding on the wire and in the journal. Pure.

use common::pb::fleet as pb;

use super::table::{Binding, Table};
use crate::journal::{self, Magic};

const MAGIC: &Magic = b"\xa5SB1";

/// One line of the journal: a binding, or that some were reported.
#[derive(Clone, PartialEq, prost::Message)]
struct Entry {
    /// The number of the binding.
    #[prost(uint64, tag = "1")]
    seq: u64,
    #[prost(message, optional, tag = "2")]
    binding: Option<pb::Binding>,
    /// The control plane had it when this was written.
    #[prost(bool, tag = "3")]
    is_reported: bool,
    /// Numbers of bindings that it has now.
    #[prost(uint64, repeated, tag = "4")]
    reported: Vec<u64>,
    /// What was reported before this was written, was to a control plane that lost it, if it is of an earlier epoch.
    #[prost(uint64, tag = "5")]
    epoch: u64,
}

/// A binding as it is journaled.
pub fn bound(seq: u64, binding: &Binding, is_reported: bool) -> Vec<u8> {
    let binding = Some(to_wire(binding));
    journal::encode(MAGIC, &Entry { seq, binding, is_reported, ..Entry::default() })
}

/// That the control plane has these.
pub fn reported(seqs: Vec<u64>) -> Vec<u8> {
    journal::encode(MAGIC, &Entry { reported: seqs, ..Entry::default() })
}

/// That reports count in this epoch from here on.
pub fn epoch(epoch: u64) -> Vec<u8> {
    journal::encode(MAGIC, &Entry { epoch, ..Entry::default() })
}

/// What a journal's bytes held.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The highest number that was used.
    pub last_seq: u64,
    /// Whole frames.
    pub frames: u64,
    /// Bytes that belong to none.
    pub torn: usize,
}

/// Takes a journal's bytes into a table.
pub fn replay(bytes: &[u8], table: &mut Table, now_ms: u64) -> Replayed {
    let mut replayed = Replayed::default();
    replayed.torn = journal::read(MAGIC, bytes, |entry: Entry| {
        replayed.frames += 1;
        replayed.last_seq = replayed.last_seq.max(entry.seq);
        table.begin_epoch(entry.epoch, now_ms);
        // One of a dialect that this version does not have is another version's.
        if let Some(binding) = entry.binding.and_then(from_wire) {
            table.insert(entry.seq, binding, entry.is_reported, now_ms);
        }
        for seq in entry.reported {
            table.report(seq);
        }
    });
    replayed
}

/// A binding as it is reported.
pub fn to_wire(binding: &Binding) -> pb::Binding {
    pb::Binding {
        dialect: binding.name.dialect.as_str().to_owned(),
        id: binding.name.id.to_string(),
        key_id: binding.name.key.to_string(),
        channel: binding.channel.to_string(),
        model: binding.model.to_string(),
        made_at_ms: binding.made_at_ms,
    }
}

/// The other way; `None` where this version does not know the dialect.
pub fn from_wire(binding: pb::Binding) -> Option<Binding> {
    let dialect = binding.dialect.parse().ok()?;
    let name = super::Name { dialect, id: binding.id.into(), key: binding.key_id.into() };
    let (channel, model) = (binding.channel.into(), binding.model.into());
    Some(Binding { name, channel, model, made_at_ms: binding.made_at_ms })
}

#[cfg(test)]
mod tests {
    use common::dialect::Dialect;

    use super::super::Name;
    use super::*;

    const NOW: u64 = 1_796_046_279_000;

    fn binding(id: &str) -> Binding {
        let name = Name { dialect: Dialect::OpenaiVideos, id: id.into(), key: "key-1".into() };
        Binding { name, channel: "a".into(), model: "sora".into(), made_at_ms: NOW }
    }

    #[test]
    fn what_was_journaled_is_read_back_and_a_torn_end_costs_only_itself() {
        let frames = [bound(7, &binding("x"), false), bound(8, &binding("y"), false), reported(vec![7])];
        let last = bound(9, &binding("z"), false);
        for cut in 0..last.len() {
            let bytes = [&frames.concat(), &last[..cut]].concat();
            let mut table = Table::default();
            let replayed = replay(&bytes, &mut table, NOW);
            assert_eq!(replayed, Replayed { last_seq: 8, frames: 3, torn: cut }, "cut at {cut}");
            assert_eq!(table.all(), [(7, binding("x"), true), (8, binding("y"), false)]);
        }
    }

    #[test]
    fn a_compacted_journal_and_the_one_before_it_may_both_be_there() {
        let before = [bound(1, &binding("x"), false), bound(2, &binding("y"), false)].concat();
        let after = [bound(1, &binding("x"), true), bound(2, &binding("y"), false)].concat();
        for bytes in [[before.clone(), after.clone()].concat(), [after, before].concat()] {
            let mut table = Table::default();
            replay(&bytes, &mut table, NOW);
            assert_eq!(table.all(), [(1, binding("x"), true), (2, binding("y"), false)]);
        }
    }

    #[test]
    fn a_dialect_of_tomorrow_is_stepped_over() {
        let mut wire = to_wire(&binding("x"));
        assert_eq!(from_wire(wire.clone()), Some(binding("x")));
        wire.dialect = "openai-dreams".into();
        assert_eq!(from_wire(wire), None);
    }
}
