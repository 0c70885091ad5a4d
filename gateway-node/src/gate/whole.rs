//! The gate of whole answers: what came is judged once, when it is complete.

use super::{Decision, Step};
use crate::dialect::{Rules, Verdict};

pub(super) fn judge(rules: &Rules, whole: &[u8]) -> Step {
    match (rules.judge_whole)(whole) {
        Verdict::Error(fault) => Step::Drop(fault),
        Verdict::Hold | Verdict::Content | Verdict::End => Step::Commit(Decision::Whole),
    }
}
