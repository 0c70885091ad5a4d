//! Windows come home: each counts exactly once. This file checks what a node sends; the store claims
//! and adds in one transaction (FR-039). A boot's windows are told apart by its boot id and by nothing
//! else (FR-041).

use common::pb::fleet as pb;
use common::window::Window;

use crate::error::Error;
use crate::metrics::WindowResult;
use crate::plane::Plane;
use crate::store::COUNTERS_KEPT;
use crate::store::rows::{Claim, Claimed};

/// Most rows of one window.
const ROWS_MAX: usize = 100_000;
/// Longest id or name.
const NAME_BYTES_MAX: usize = 512;
/// Largest single number: sums of many stay far from the end of a `bigint`.
const COUNT_MAX: u64 = 1 << 48;

/// Counts a window, unless it was counted before. Returns the last window of the boot that is counted.
pub async fn report(plane: &Plane, request: pb::ReportRequest) -> Result<u64, Error> {
    let claim =
        check(request, plane.clock.now_ms()).inspect_err(|_| plane.metrics.window(WindowResult::Invalid))?;
    match plane.store.claim(&claim).await? {
        Claimed::Counted { mismatch, rebased } => {
            plane.metrics.window(WindowResult::Counted);
            if let Some(counted) = mismatch {
                plane.metrics.audit_mismatch();
                // The window is counted, whatever becomes of the alert.
                if let Err(error) = plane.store.note_mismatch(&claim.node_id, plane.clock.now_ms()).await {
                    tracing::warn!(%error, node.id = claim.node_id, "the leader is not told of a mismatch");
                }
                tracing::error!(
                    node.id = claim.node_id, boot = claim.boot_id, seq = claim.last_seq,
                    reported = ?claim.totals, ?counted,
                    "running totals of node {} differ from its counted windows", claim.node_id
                );
            }
            if rebased {
                plane.metrics.window_gap();
                tracing::warn!(
                    node.id = claim.node_id,
                    boot = claim.boot_id,
                    seq = claim.first_seq,
                    "windows of node {} before this one were counted in a database that is not this one",
                    claim.node_id
                );
            }
            plane.counted.send_modify(|windows| *windows += 1);
            Ok(claim.last_seq)
        }
        Claimed::Duplicate { through } => {
            plane.metrics.window(WindowResult::Duplicate);
            Ok(through)
        }
        Claimed::OutOfOrder { through } => {
            plane.metrics.window(WindowResult::OutOfOrder);
            tracing::warn!(
                node.id = claim.node_id,
                boot = claim.boot_id,
                seq = claim.first_seq,
                through,
                "a window of node {} does not follow the last one that is counted",
                claim.node_id
            );
            Ok(through)
        }
    }
}

/// When a window ended. A clock that runs ahead does not date its counters into the future, and one that
/// was never set does not date them so far back that they would be forgotten at once.
fn until_ms(end_ms: u64, now_ms: u64) -> u64 {
    let forgotten_ms = now_ms.saturating_sub(COUNTERS_KEPT.as_millis() as u64);
    if end_ms <= forgotten_ms { now_ms } else { end_ms.min(now_ms) }
}

fn check(request: pb::ReportRequest, now_ms: u64) -> Result<Claim, Error> {
    let fault = |field, message: &str| Err(Error::Argument { field, message: message.to_owned() });
    let is_name = |name: &str| name.len() <= NAME_BYTES_MAX && !name.contains('\0');
    for (field, id) in [("node_id", &request.node_id), ("boot_id", &request.boot_id)] {
        if id.is_empty() || !is_name(id) {
            return fault(field, "must have 1 to 512 bytes");
        }
    }
    let Some(window) = request.window else { return fault("window", "is missing") };
    if window.first_seq == 0 || window.last_seq < window.first_seq || window.last_seq >= COUNT_MAX {
        return fault("window.last_seq", "windows are numbered from 1, first to last");
    }
    if request.acknowledged_through >= window.first_seq {
        return fault("acknowledged_through", "a window that is counted is not sent again");
    }
    if window.end_ms < window.start_ms {
        return fault("window.end_ms", "a window does not end before it begins");
    }
    if window.attempts.len() + window.requests.len() + window.first_bytes.len() > ROWS_MAX {
        return fault("window", "has more than 100000 rows");
    }
    let attempts = window.attempts.iter();
    if !attempts.clone().all(|a| is_name(&a.model) && is_name(&a.channel) && is_name(&a.class)) {
        return fault("window.attempts", "a name has more than 512 bytes or a zero in it");
    }
    if !window.requests.iter().all(|r| is_name(&r.model) && is_name(&r.outcome)) {
        return fault("window.requests", "a name has more than 512 bytes or a zero in it");
    }
    if !window.first_bytes.iter().all(|f| is_name(&f.model) && is_name(&f.channel)) {
        return fault("window.first_bytes", "a name has more than 512 bytes or a zero in it");
    }
    let counts = attempts.map(|a| a.count).chain(window.requests.iter().map(|r| r.count));
    let counts = counts.chain(window.first_bytes.iter().map(|f| f.count));
    if counts.fold(0u64, u64::saturating_add) >= COUNT_MAX {
        return fault("window", "counts more than is possible");
    }
    let totals = request.totals.map(common::window::Totals::from);
    if totals.is_some_and(|t| {
        [t.attempts, t.attempts_ok, t.requests, t.requests_served].iter().any(|n| *n >= COUNT_MAX)
    }) {
        return fault("totals", "count more than is possible");
    }
    let length_ms = window.end_ms - window.start_ms;
    let until_ms = until_ms(window.end_ms, now_ms);
    let window = Window::from(window);
    Ok(Claim {
        node_id: request.node_id,
        boot_id: request.boot_id,
        first_seq: window.first_seq,
        last_seq: window.last_seq,
        from_ms: until_ms.saturating_sub(length_ms),
        until_ms,
        counts: window.counts,
        totals,
        acknowledged_through: request.acknowledged_through,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn request(window: pb::Window) -> pb::ReportRequest {
        pb::ReportRequest {
            node_id: "n".into(),
            boot_id: "b".into(),
            window: Some(window),
            totals: None,
            acknowledged_through: 0,
        }
    }

    fn window() -> pb::Window {
        pb::Window { first_seq: 1, last_seq: 1, start_ms: 10, end_ms: 20, ..Default::default() }
    }

    fn attempts(count: u64) -> Vec<pb::AttemptCount> {
        vec![pb::AttemptCount { model: "m".into(), channel: "c".into(), class: "ok".into(), count }]
    }

    #[test]
    fn what_cannot_be_a_window_is_refused_with_its_field() {
        let long = "x".repeat(513);
        let cases = [
            ("window.last_seq", request(pb::Window { first_seq: 0, ..window() })),
            ("window.last_seq", request(pb::Window { first_seq: 2, ..window() })),
            ("window.last_seq", request(pb::Window { last_seq: u64::MAX, ..window() })),
            ("window.end_ms", request(pb::Window { start_ms: 21, ..window() })),
            ("acknowledged_through", pb::ReportRequest { acknowledged_through: 1, ..request(window()) }),
            (
                "acknowledged_through",
                pb::ReportRequest { acknowledged_through: u64::MAX, ..request(window()) },
            ),
            ("window", request(pb::Window { attempts: attempts(u64::MAX), ..window() })),
            (
                "window",
                request(pb::Window { attempts: [attempts(1 << 47), attempts(1 << 47)].concat(), ..window() }),
            ),
            ("window", pb::ReportRequest { window: None, ..request(window()) }),
            ("node_id", pb::ReportRequest { node_id: String::new(), ..request(window()) }),
            ("boot_id", pb::ReportRequest { boot_id: long.clone(), ..request(window()) }),
            (
                "window.requests",
                request(pb::Window {
                    requests: vec![pb::RequestCount { model: long, outcome: "served".into(), count: 1 }],
                    ..window()
                }),
            ),
        ];
        for (field, request) in cases {
            match check(request.clone(), NOW) {
                Err(Error::Argument { field: found, .. }) => assert_eq!(found, field),
                other => panic!("{request:?} gave {other:?}"),
            }
        }
    }

    #[test]
    fn names_of_a_newer_node_are_kept_and_rows_of_the_same_kind_added() {
        let mut row = attempts(2);
        row[0].class = "of_tomorrow".into();
        let claim =
            check(request(pb::Window { attempts: [row.clone(), row].concat(), ..window() }), NOW).unwrap();
        let key = ("m".to_owned(), "c".to_owned(), "of_tomorrow".to_owned());
        assert_eq!(claim.counts.attempts.get(&key), Some(&4));
    }

    #[test]
    fn a_window_of_a_clock_that_cannot_be_right_ends_now() {
        let (kept, now) = (COUNTERS_KEPT.as_millis() as u64, 1_796_046_279_000);
        for (end_ms, until_ms) in [
            (0, now),
            (now - kept, now),
            (now - kept + 1, now - kept + 1),
            (now - 5, now - 5),
            (now * 2, now),
        ] {
            let window = pb::Window { start_ms: 0, end_ms, ..window() };
            assert_eq!(check(request(window), now).unwrap().until_ms, until_ms, "{end_ms}");
        }
    }
}
