//! What was refused for good, as it is kept on disk and as it is said to the control plane.

use common::pb::fleet as pb;
use common::snapshot::hex;

use crate::table::keep::{Refused, parse_hex};

/// So many violations of a refusal are kept: the first tell enough.
const VIOLATIONS_MAX: usize = 16;

/// A refusal as it is kept.
pub(super) fn remember(rejection: &pb::Rejection) -> Refused {
    let part = rejection.part.clone().unwrap_or_default();
    let violations = rejection.violations.iter().take(VIOLATIONS_MAX);
    Refused {
        kind: rejection.kind().as_str_name().to_owned(),
        version: part.version,
        sha256: hex(&part.sha256),
        violations: violations.map(|v| (v.path.clone(), v.message.clone())).collect(),
    }
}

/// The other way; `None` for what this program does not write.
pub(super) fn recall(refused: &Refused) -> Option<pb::Rejection> {
    let kind = pb::PartKind::from_str_name(&refused.kind)?;
    let part = pb::Part { version: refused.version, sha256: parse_hex(&refused.sha256)?.to_vec() };
    let violation =
        |(path, message): &(String, String)| pb::Violation { path: path.clone(), message: message.clone() };
    let violations = refused.violations.iter().map(violation).collect();
    Some(pb::Rejection { part: Some(part), kind: kind.into(), violations })
}
