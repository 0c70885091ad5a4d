//! What a node keeps on disk: a part is taken as it was written or not at all, and marks that say anything at all
//! leave the node able to start.

use super::head;
use crate::table::keep::{Kept, Marks, decode, encode};

/// One byte says what is tried, three where and how a file is damaged.
pub(super) fn run(input: &[u8]) {
    let Some(([how, low, high, change], rest)) = head(input) else { return };
    match how % 4 {
        0 => check_marks(rest),
        1 => {
            if let Some(kept) = decode(rest) {
                assert_eq!(encode(&kept), rest);
            }
        }
        damaged => {
            let number = |at: usize| {
                rest.get(at..at + 8).map_or(7, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
            };
            let kept = Kept::new(number(0), number(8), rest.to_vec());
            let mut file = encode(&kept);
            assert_eq!(decode(&file), Some(kept));
            let at = usize::from(u16::from_le_bytes([low, high])) % file.len();
            if damaged == 2 {
                file[at] ^= change.max(1);
            } else {
                file.truncate(at);
            }
            assert_eq!(decode(&file), None, "at {at}");
        }
    }
}

/// What the file of marks says is counted on from there, and what was put aside stays so.
fn check_marks(file: &[u8]) {
    let mut marks = Marks::of("marks.json".as_ref(), file, "binary");
    let before = marks.quarantined();
    let crash = marks.take_crash();
    assert!(crash.is_none_or(|(.., crashes)| crashes > 0));
    assert!(marks.take_crash().is_none(), "a crash is counted once");
    assert_eq!(marks.quarantined(), before);
    marks.activate(7, [7; 32]);
    assert!(marks.settle() && !marks.end());
    let again = Marks::of("marks.json".as_ref(), &marks.to_bytes().unwrap(), "binary");
    assert_eq!(again.quarantined(), before);
}
