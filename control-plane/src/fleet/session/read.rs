//! What a node says, as our own values, within bounds: a node that says too much is heard in part.

use common::label::{self, LabelFault, Labels};
use common::pb::fleet as pb;

use crate::nodes::{Applied, Finding, Probed, Quarantined};
use crate::revision::encoded::Part;

/// Longest id, version or address that a node may give itself.
const NAME_BYTES_MAX: usize = 256;
/// Most entries of any list that a node sends, and longest text in it; the rest is left out.
pub const LIST_MAX: usize = 1000;
const TEXT_BYTES_MAX: usize = 1024;

/// What is wrong with a Hello, if anything is.
pub fn hello_fault(hello: &pb::Hello) -> Option<&'static str> {
    let is_name = |name: &str| {
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(|c| c.is_control())
    };
    if !is_name(&hello.node_id) {
        Some("node_id must have 1 to 256 printable bytes")
    } else if !is_name(&hello.boot_id) {
        Some("boot_id must have 1 to 256 printable bytes")
    } else if read_labels(&hello.labels).is_err() {
        Some("labels must be name=value of letters, digits and -_./, at most 32")
    } else if hello.rejected.iter().any(|r| r.kind == i32::from(pb::PartKind::Unspecified)) {
        Some("a rejection must say of which kind its part is")
    } else {
        None
    }
}

/// Whether a rejection is of a part that is sent from here.
pub fn is_known_kind(kind: i32) -> bool {
    use pb::PartKind::{Catalog, Keys, Secrets};
    matches!(pb::PartKind::try_from(kind), Ok(Catalog | Keys | Secrets))
}

/// The labels that a node gives itself.
pub fn read_labels(labels: &[pb::Label]) -> Result<Labels, LabelFault> {
    // A list that is far too long is not copied to be counted.
    let bounded = labels.iter().take(LIST_MAX);
    label::collect(bounded.map(|label| (label.name.clone(), label.value.clone())))
}

/// What a node runs; a part without a digest is none.
pub fn read_applied(target: Option<&pb::Target>) -> Applied {
    let Some(target) = target else { return Applied::default() };
    Applied {
        epoch: target.epoch,
        catalog: target.catalog.as_ref().and_then(Part::read),
        keys: target.keys.as_ref().and_then(Part::read),
        secrets: target.secrets.as_ref().and_then(Part::read),
    }
}

/// A content that a node put aside.
pub fn read_quarantine(quarantine: &pb::Quarantine) -> Option<Quarantined> {
    let part = Part::read(quarantine.part.as_ref()?)?;
    Some(Quarantined { part, crashes: quarantine.crashes })
}

/// What a node says of a catalog that it tried.
pub fn read_probed(result: pb::ProbeResult) -> Probed {
    Probed {
        violations: read_violations(result.violations),
        warnings: read_violations(result.warnings),
        not_tried: cut(result.not_tried),
    }
}

/// What is wrong and where.
pub fn read_violations(violations: Vec<pb::Violation>) -> Vec<Finding> {
    let kept = violations.into_iter().take(LIST_MAX);
    kept.map(|v| Finding { path: cut(v.path), message: cut(v.message) }).collect()
}

/// Text, no longer than it may be, and without zeros: not every database keeps those.
pub fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_has_no_zeros() {
        assert_eq!(cut("a\0b".into()), "a\u{fffd}b");
        let long = cut("ü".repeat(TEXT_BYTES_MAX));
        assert_eq!(long.len(), TEXT_BYTES_MAX);
        assert_eq!(cut(format!("x{long}")).len(), TEXT_BYTES_MAX - 1);
    }
}
