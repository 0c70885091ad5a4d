//! The periodic work: look, decide, keep, have it told. Whoever leads does it; everything that is decided by stands in
//! the store, so that the next leader goes on with it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::deliver::deliveries;
use super::find::{Seen, find};
use super::{Alert, Beat, Finding, Kind, Step, step as decide};
use crate::error::Error;
use crate::plane::Plane;
use crate::rollout::Rollout;

/// A node that counted otherwise is told of for so long after it last did.
const MISMATCH_TOLD: Duration = Duration::from_secs(60 * 60);

/// Since when the store has been read without a failure. Silence before that says nothing of others: nobody can have
/// been heard of.
#[derive(Debug, Default)]
pub struct Reading(Mutex<Option<Instant>>);

impl Reading {
    /// The store was read, or not. Returns for how long it has been.
    fn note(&self, is_read: bool, now: Instant) -> Duration {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_read {
            *since = None;
            return Duration::ZERO;
        }
        now.saturating_duration_since(*since.get_or_insert(now))
    }
}

/// Looks once, if this control plane leads.
pub async fn step(plane: &Plane) -> Result<(), Error> {
    let Some(leader) = plane.leader.epoch() else {
        plane.alerting.reading.note(false, Instant::now());
        plane.metrics.alerts_active(&[]);
        return Ok(());
    };
    let done = look(plane, leader).await;
    if done.is_err() {
        plane.alerting.reading.note(false, Instant::now());
    }
    done
}

async fn look(plane: &Plane, leader: u64) -> Result<(), Error> {
    let now_ms = plane.clock.now_ms();
    let books = plane.store.alert_books(now_ms).await?;
    let found = found(plane, now_ms).await?;
    let timing = &plane.alerting.receivers.timing;
    let step = decide(&books, &found, timing, now_ms, || uuid::Uuid::now_v7().to_string());
    if step != Step::default() {
        let deliveries = deliveries(&plane.alerting, &step);
        plane.store.keep_alerts(leader, &step, &deliveries).await?;
        for alert in &step.changed {
            let is_new = !books.alerts.iter().any(|before| before.id == alert.id);
            let was_active = books.alerts.iter().any(|before| before.id == alert.id && before.is_active());
            log(alert, is_new, was_active);
        }
        if !deliveries.is_empty() {
            plane.alerting.news.send_modify(|news| *news += 1);
        }
    }
    plane.metrics.alerts_active(&counted(&books.alerts, &step));
    Ok(())
}

fn log(alert: &Alert, is_new: bool, was_active: bool) {
    let Alert { kind, object, summary, .. } = alert;
    if is_new {
        tracing::warn!(alert = %kind, object, "alert {kind}: {summary}");
    } else if was_active && !alert.is_active() {
        tracing::info!(alert = %kind, object, "over: alert {kind}: {summary}");
    }
}

/// How many alerts of each kind are so after a step.
fn counted(before: &[Alert], step: &Step) -> Vec<Kind> {
    let unchanged = before.iter().filter(|alert| !step.changed.iter().any(|changed| changed.id == alert.id));
    let all = unchanged.chain(&step.changed);
    all.filter(|alert| alert.is_active()).map(|alert| alert.kind).collect()
}

async fn found(plane: &Plane, now_ms: u64) -> Result<Vec<Finding>, Error> {
    let wanted = plane.wanted()?;
    let mut nodes = plane.nodes.list(Some(&wanted));
    nodes.retain(|node| !plane.identity.nodes.is_revoked(&node.id));
    let rollout = wanted.rollout.as_deref();
    let before = match rollout.map(|rollout| rollout.revision) {
        Some(revision) if revision > 1 => plane.store.rollout(revision - 1).await?,
        Some(_) | None => None,
    };
    let before = before.and_then(|row| Rollout::from_row(&row));
    let since_ms = now_ms.saturating_sub(MISMATCH_TOLD.as_millis() as u64);
    let mismatches = plane.store.mismatches(since_ms).await?;
    let beats = plane.store.beats().await?;
    let reading_ms = plane.alerting.reading.note(true, Instant::now()).as_millis() as u64;
    let beats: Vec<Beat> = beats.into_iter().map(|beat| heard(beat, reading_ms)).collect();
    let seen =
        Seen { nodes: &nodes, rollout, before: before.as_ref(), beats: &beats, mismatches: &mismatches };
    Ok(find(&seen, plane.alerting.receivers.timing.missed_after, now_ms))
}

/// A beat, of whose silence only that counts in which it could have been heard.
fn heard(beat: Beat, reading_ms: u64) -> Beat {
    let written_ago_ms = beat.written_ago_ms.min(reading_ms);
    let age_ms = beat.age_ms.min(reading_ms.saturating_sub(written_ago_ms));
    Beat { written_ago_ms, age_ms, ..beat }
}
