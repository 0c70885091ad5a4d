//! The gate of whole answers: what came is judged once, when it is complete.

use bytes::Bytes;

use super::{Decision, Step};
use crate::dialect::{Rules, Verdict};

pub(super) fn judge(rules: &Rules, held: &[Bytes]) -> Step {
    let verdict = match held {
        [one] => (rules.judge_whole)(one),
        many => (rules.judge_whole)(&many.concat()),
    };
    match verdict {
        Verdict::Error(fault) => Step::Drop(fault),
        Verdict::Hold | Verdict::Content | Verdict::End => Step::Commit(Decision::Whole),
    }
}
