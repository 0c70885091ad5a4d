//! What a node says, as our own values, within bounds: a node that says too much is heard in part.

use common::label::{self, LabelFault, Labels};
use common::pb::fleet as pb;

use crate::nodes::{Applied, Finding, Pause, Probed, Quarantined};
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

/// What is out on a node, in order.
pub fn read_pauses(pauses: Vec<pb::Pause>) -> Vec<Pause> {
    let read = pauses.into_iter().take(LIST_MAX).map(|pause| Pause {
        channel: cut(pause.channel),
        model: cut(pause.model),
        what: cut(pause.what),
        class: cut(pause.class),
        since_ms: pause.since_ms,
        until_ms: pause.until_ms,
    });
    let mut pauses: Vec<Pause> = read.collect();
    pauses.sort();
    pauses
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
    fn what_is_out_on_a_node_is_read_in_order_and_in_part_where_it_is_too_much() {
        let pause =
            |channel: &str| pb::Pause { channel: channel.to_owned(), until_ms: 9, ..Default::default() };
        let read = read_pauses(vec![pause("b"), pause("a\0")]);
        let read: Vec<_> = read.iter().map(|pause| (pause.channel.as_str(), pause.until_ms)).collect();
        assert_eq!(read, [("a\u{fffd}", 9), ("b", 9)]);
        assert_eq!(read_pauses(vec![pause("c"); LIST_MAX + 1]).len(), LIST_MAX);
    }

    #[test]
    fn text_is_cut_between_characters_and_has_no_zeros() {
        assert_eq!(cut("a\0b".into()), "a\u{fffd}b");
        let long = cut("ü".repeat(TEXT_BYTES_MAX));
        assert_eq!(long.len(), TEXT_BYTES_MAX);
        assert_eq!(cut(format!("x{long}")).len(), TEXT_BYTES_MAX - 1);
    }
}
