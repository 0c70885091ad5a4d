//! The journal of bindings: whatever bytes stand in a file, every whole entry is found, and what they say together is
//! known; read twice, or written anew, it says the same.

use std::collections::BTreeMap;
use std::ops::Range;

use common::dialect::Dialect;

use super::head;
use crate::bindings::{Binding, Name, Table, bound, epoch, replay, reported};

const NOW: u64 = 1_796_046_279_000;
/// The least that a frame has: its head.
const FRAME_BYTES_MIN: usize = 16;

/// What a frame says.
#[derive(Debug, Clone)]
enum Says {
    Bound { seq: u64, id: u8, is_reported: bool },
    Reported(u64),
    Epoch(u64),
}

/// Two bytes say where the damage is, one how many bytes it replaces; the entries stand up to the first line end, and
/// what replaces them behind it.
pub(super) fn run(input: &[u8]) {
    any_bytes(input);
    let Some(([low, high, length], rest)) = head(input) else { return };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (program, damage) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let (said, frames) = written(program);
    let whole = frames.concat();
    let at = usize::from(u16::from_le_bytes([low, high])) % (whole.len() + 1);
    let replaced = at..(at + usize::from(length)).min(whole.len());
    let file = [&whole[..at], damage, &whole[replaced.end..]].concat();

    let mut start = 0;
    let places = frames.iter().map(|frame| {
        start += frame.len();
        start - frame.len()..start
    });
    let intact: Vec<_> = said
        .iter()
        .zip(places)
        .filter(|(_, place)| !is_hit(place, &replaced))
        .map(|(says, _)| says)
        .collect();
    let mut table = Table::default();
    let read = replay(&file, &mut table, NOW);
    let frames_read = usize::try_from(read.frames).unwrap();
    assert!(intact.len() <= frames_read, "{} of {} whole entries are found", read.frames, intact.len());
    let around: usize = said.iter().zip(&frames).map(|(_, frame)| frame.len()).sum();
    assert!(frames_read > intact.len() || around >= file.len() - read.torn);
    if frames_read == intact.len() {
        assert_eq!(table.all(), known(&intact));
    }
    check_anew(&table);
    // A report of an epoch that is over would count again.
    let has_epochs = said.iter().any(|says| matches!(says, Says::Epoch(_)));
    if frames_read == said.len() && !has_epochs {
        let before = table.all();
        replay(&file, &mut table, NOW);
        assert_eq!(table.all(), before, "read twice");
    }
}

/// Nothing of a file may stop a node.
fn any_bytes(bytes: &[u8]) {
    let read = replay(bytes, &mut Table::default(), NOW);
    assert!(read.torn + FRAME_BYTES_MIN * usize::try_from(read.frames).unwrap() <= bytes.len());
}

/// Whether a frame is not as it was.
fn is_hit(frame: &Range<usize>, replaced: &Range<usize>) -> bool {
    if replaced.is_empty() {
        frame.start < replaced.start && replaced.start < frame.end
    } else {
        frame.start < replaced.end && replaced.start < frame.end
    }
}

/// The entries of a program, and their frames.
fn written(program: &[u8]) -> (Vec<Says>, Vec<Vec<u8>>) {
    let (mut said, mut frames): (Vec<Says>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    for (seq, byte) in (1..).zip(program.iter().take(64)) {
        let says = match byte >> 6 {
            0 | 1 => Says::Bound { seq, id: byte & 7, is_reported: byte & 8 != 0 },
            2 if byte & 32 != 0 => Says::Epoch(u64::from(byte & 3)),
            // Nothing is reported before it is bound.
            2 => Says::Reported(u64::from(byte & 63) % seq),
            // As where a file and the one that replaces it are both there.
            _ => match said.get(usize::from(byte & 63) % said.len().max(1)) {
                Some(before) => before.clone(),
                None => continue,
            },
        };
        frames.push(match &says {
            Says::Bound { seq, id, is_reported } => bound(*seq, &binding(*id, *seq), *is_reported),
            Says::Reported(seq) => reported(vec![*seq]),
            Says::Epoch(number) => epoch(*number),
        });
        said.push(says);
    }
    (said, frames)
}

fn binding(id: u8, seq: u64) -> Binding {
    let name = Name { dialect: Dialect::OpenaiVideos, id: format!("v{id}").into(), key: "k".into() };
    Binding { name, channel: format!("c{seq}").into(), model: "m".into(), made_at_ms: NOW }
}

/// What is known after these entries: of each id the latest, and that it was reported if any said so afterwards, in the
/// same epoch.
fn known(said: &[&Says]) -> Vec<(u64, Binding, bool)> {
    let mut known: BTreeMap<u8, (u64, bool)> = BTreeMap::new();
    let mut epoch = 0;
    for says in said {
        match says {
            Says::Bound { seq, id, is_reported } => {
                let entry = known.entry(*id).or_insert((*seq, *is_reported));
                if entry.0 < *seq {
                    *entry = (*seq, *is_reported);
                }
                entry.1 |= entry.0 == *seq && *is_reported;
            }
            Says::Reported(seq) => known.values_mut().for_each(|entry| entry.1 |= entry.0 == *seq),
            Says::Epoch(higher) if *higher > epoch => {
                epoch = *higher;
                known.values_mut().for_each(|entry| entry.1 = false);
            }
            Says::Epoch(_) => {}
        }
    }
    let mut known: Vec<_> =
        known.into_iter().map(|(id, (seq, is_reported))| (seq, binding(id, seq), is_reported)).collect();
    known.sort_by_key(|(seq, ..)| *seq);
    known
}

/// All that is known can be written anew.
fn check_anew(table: &Table) {
    let all = table.all();
    let anew: Vec<u8> =
        all.iter().flat_map(|(seq, binding, is_reported)| bound(*seq, binding, *is_reported)).collect();
    let mut again = Table::default();
    replay(&anew, &mut again, NOW);
    assert_eq!(again.all(), all, "written anew");
}
