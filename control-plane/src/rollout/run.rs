//! Moves the rollout that is under way: looks, asks the judge, keeps what it decides, tells the streams. Every change
//! is made over the version that was read, so that of several control planes one makes it.

#[cfg(test)]
mod tests;

use common::limits::{ROLLOUT_JUDGED, WINDOW_LENGTH};
use serde_json::{Value, json};

use super::view::{self, lost};
use super::{Decision, Evidence, Look, Pause, Rollout, State, Strategy, judge};
use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::revision::encoded::Encoded;
use crate::revision::head::Wanted;
use crate::revision::{self, Applied, Apply, Replaces};
use crate::store::rows::By;

/// Decisions that follow one another at once; the next look goes on from there.
const STEPS_MAX: usize = 8;
/// Longest reason that is kept; more than tells what is wrong.
const REASON_BYTES_MAX: usize = 1024;

/// Carries on with the rollout that is under way, until it has to wait; on the leader alone.
pub async fn step(plane: &Plane) -> Result<(), Error> {
    let Some(leader) = plane.leader.epoch() else { return Ok(()) };
    // What nodes of other control planes acknowledged, up to now: a leader that stood still knows what was before.
    if plane.wanted()?.under_way().is_some() {
        plane.look_at_nodes().await?;
    }
    for _ in 0..STEPS_MAX {
        let wanted = plane.wanted()?;
        let Some(rollout) = wanted.under_way() else { return Ok(()) };
        if !go_on(plane, &wanted, rollout, leader).await? {
            return Ok(());
        }
        plane.head.refresh(&plane.store).await?;
    }
    Ok(())
}

/// Returns whether something has changed.
async fn go_on(plane: &Plane, wanted: &Wanted, rollout: &Rollout, leader: u64) -> Result<bool, Error> {
    let (mut next, decision, lost) = look(plane, wanted, rollout).await?;
    let (revision, now_ms) = (next.revision, plane.clock.now_ms());
    match decision {
        Decision::Wait(_) if next == *rollout => return Ok(false),
        Decision::Wait(_) => {}
        Decision::Open { open, members } => {
            let (stages, named) = (next.stages.len(), members.join(", "));
            next.advance(open, members, now_ms);
            tracing::info!(
                revision,
                stage = open,
                nodes = named,
                "rollout of revision {revision}: stage {open} of {stages} opens"
            );
        }
        Decision::Pause(pause, reason) => {
            tracing::warn!(revision, reason, nodes = ?lost, "rollout of revision {revision} pauses: {reason}");
            next.turn(State::Paused(pause), reason, now_ms);
        }
        Decision::Resume => {
            tracing::info!(revision, "rollout of revision {revision} goes on");
            next.turn(State::Running, "", now_ms);
        }
        Decision::Finish => {
            tracing::info!(revision, "rollout of revision {revision} is done");
            next.turn(State::Done, next.reason.clone(), now_ms);
        }
        Decision::Undo(reason) => return undo(plane, next, cut(reason), leader).await,
    }
    plane.store.update_rollout(&next.to_row(), By::Leader(leader)).await?;
    Ok(true)
}

/// What a rollout is by now, what the judge says of it, and which of its nodes are lost.
pub async fn look(
    plane: &Plane,
    wanted: &Wanted,
    rollout: &Rollout,
) -> Result<(Rollout, Decision, Vec<String>), Error> {
    let nodes = view::nodes(plane, wanted, wanted.target.catalog.as_ref());
    let mut next = rollout.clone();
    let now_ms = plane.clock.now_ms();
    let pinned = wanted.pins.left_out_of(wanted.target.catalog.as_ref().map(|content| content.part));
    next.leave_out(|id| pinned.contains_key(id));
    next.not_after(now_ms);
    next.acknowledge(nodes.iter().filter(|node| node.has_it).map(|node| node.id.as_str()), now_ms);
    let evidence = evidence(plane, &next, now_ms).await?;
    let watched_since_ms = plane.nodes.started_at_ms();
    let decision = judge(&next, &Look { nodes: &nodes, evidence: &evidence, now_ms, watched_since_ms });
    let lost = lost(&next, &nodes);
    Ok((next, decision, lost))
}

/// What was counted since the newest acknowledgement, and shortly before the rollout began.
async fn evidence(plane: &Plane, rollout: &Rollout, now_ms: u64) -> Result<Evidence, Error> {
    let acked_at_ms = rollout.members.values().filter_map(|member| member.acked_at_ms).max();
    let Some(acked_at_ms) = acked_at_ms.filter(|_| rollout.strategy == Strategy::Staged) else {
        return Ok(Evidence::default());
    };
    let judged_ms = ROLLOUT_JUDGED.as_millis() as u64;
    let since_ms = acked_at_ms.max(now_ms.saturating_sub(judged_ms));
    let begun_at_ms = rollout.begun_at_ms;
    let until_ms = begun_at_ms.saturating_sub(WINDOW_LENGTH.as_millis() as u64);
    Ok(Evidence {
        after: plane.store.node_counts(since_ms, u64::MAX).await?,
        before: plane.store.node_counts(begun_at_ms.saturating_sub(judged_ms), until_ms).await?,
    })
}

/// Makes the document of the base the newest revision, for all nodes at once: those that run the base have this
/// content already, under a lower number.
async fn undo(plane: &Plane, mut rollout: Rollout, reason: String, leader: u64) -> Result<bool, Error> {
    let (revision, base) = (rollout.revision, rollout.base);
    tracing::error!(
        revision,
        base,
        reason,
        "rollout of revision {revision} is undone, and revision {base} comes back: {reason}"
    );
    match go_back(plane, &rollout, Replaces::Undone(reason.clone()), Caller::sluice()).await {
        Ok(_) => Ok(true),
        // Somebody was faster: what is current now has a rollout of its own.
        Err(Error::Conflict { .. } | Error::Busy) => Ok(true),
        Err(error @ (Error::Catalog(_) | Error::NotFound { .. } | Error::Argument { .. })) => {
            tracing::error!(revision, base, %error, "revision {base} cannot be made current again; apply another one");
            let said = format!(
                "{reason}; revision {base} cannot be made current again ({error}): apply another one"
            );
            rollout.turn(State::Paused(Pause::Stuck), said, plane.clock.now_ms());
            plane.store.update_rollout(&rollout.to_row(), By::Leader(leader)).await?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

async fn go_back(
    plane: &Plane,
    rollout: &Rollout,
    replaces: Replaces,
    caller: Caller,
) -> Result<Applied, Error> {
    let (revision, base) = (rollout.revision, rollout.base);
    let earlier = revision::find(plane, base).await?;
    let (what, action, reason) = match &replaces {
        Replaces::Aborted(reason) => ("aborted", "rollout.abort", reason.as_str()),
        Replaces::Undone(reason) => ("undone", "rollout.undo", reason.as_str()),
        Replaces::Superseded => ("superseded", "catalog.rollback", ""),
    };
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let message = format!("revision {base} again: the rollout of revision {revision} was {what}{why}");
    let ask = Apply {
        expected: Some(revision),
        message: &message,
        strategy: Strategy::Immediate,
        reason: &message,
        replaces,
        action,
        ..Apply::of(earlier.document, caller)
    };
    revision::apply(plane, ask).await
}

/// The rollout of a revision; 0 for none.
pub async fn find(plane: &Plane, revision: u64) -> Result<Option<Rollout>, Error> {
    let Some(row) = plane.store.rollout(revision).await? else { return Ok(None) };
    let unread = Error::Broken("the rollout is of a later version of this program");
    Rollout::from_row(&row).ok_or(unread).map(Some)
}

/// Chooses the nodes that get a new revision first, before it is kept.
pub async fn open_first(plane: &Plane, rollout: &mut Rollout, content: &Encoded) -> Result<(), Error> {
    let wanted = plane.wanted()?;
    let nodes = view::nodes(plane, &wanted, Some(content));
    let (now_ms, evidence) = (plane.clock.now_ms(), Evidence::default());
    match judge(rollout, &Look { nodes: &nodes, evidence: &evidence, now_ms, watched_since_ms: now_ms }) {
        Decision::Open { open, members } => rollout.advance(open, members, now_ms),
        Decision::Finish => rollout.turn(State::Done, "", now_ms),
        // The job goes on with it.
        Decision::Wait(_) | Decision::Pause(..) | Decision::Resume | Decision::Undo(_) => {}
    }
    Ok(())
}

/// Opens a rollout that is under way to all nodes at once.
pub async fn hasten(
    plane: &Plane,
    rollout: Option<Rollout>,
    caller: &Caller,
    reason: &str,
) -> Result<(), Error> {
    let is_staged = |rollout: &Rollout| rollout.is_under_way() && rollout.strategy == Strategy::Staged;
    let Some(mut rollout) = rollout.filter(is_staged) else { return Ok(()) };
    let revision = rollout.revision;
    tracing::warn!(revision, reason, "rollout of revision {revision} goes to all nodes at once: {reason}");
    rollout.strategy = Strategy::Immediate;
    rollout.base = revision;
    rollout.turn(State::Running, reason, plane.clock.now_ms());
    keep(plane, &rollout, caller, "rollout.hasten").await
}

/// Pauses the rollout that is under way.
pub async fn pause(plane: &Plane, caller: &Caller, reason: &str) -> Result<Rollout, Error> {
    let mut rollout = staged(plane).await?;
    let (revision, by) = (rollout.revision, &caller.name);
    let said = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    rollout.turn(State::Paused(Pause::Operator), cut(format!("paused by {by}{said}")), plane.clock.now_ms());
    keep(plane, &rollout, caller, "rollout.pause").await?;
    tracing::info!(revision, by, reason, "rollout of revision {revision} is paused");
    Ok(rollout)
}

/// Lets a paused rollout go on, without the nodes that are lost.
pub async fn resume(plane: &Plane, caller: &Caller) -> Result<Rollout, Error> {
    let rollout = staged(plane).await?;
    if rollout.state == State::Running {
        return Ok(rollout);
    }
    let (mut next, _, lost) = look(plane, &*plane.wanted()?, &rollout).await?;
    next.resume(&lost, plane.clock.now_ms());
    keep(plane, &next, caller, "rollout.resume").await?;
    let (revision, by) = (next.revision, &caller.name);
    tracing::info!(revision, by, without = ?lost, "rollout of revision {revision} goes on");
    Ok(next)
}

/// Ends the rollout that is under way: the base comes back for all nodes.
pub async fn abort(plane: &Plane, caller: Caller, reason: &str) -> Result<Rollout, Error> {
    let rollout = staged(plane).await?;
    let by = &caller.name;
    let said = if reason.is_empty() { format!("by {by}") } else { format!("by {by}: {reason}") };
    go_back(plane, &rollout, Replaces::Aborted(cut(said)), caller).await?;
    Ok(find(plane, rollout.revision).await?.unwrap_or(rollout))
}

/// The staged rollout that is under way, as the store has it.
async fn staged(plane: &Plane) -> Result<Rollout, Error> {
    plane.head.refresh(&plane.store).await?;
    let wanted = plane.wanted()?;
    let rollout = wanted.under_way().filter(|rollout| rollout.strategy == Strategy::Staged);
    rollout.cloned().ok_or(Error::NotFound { what: "rollout", name: "none is under way".to_owned() })
}

/// Keeps what an operator does to a rollout.
async fn keep(plane: &Plane, rollout: &Rollout, caller: &Caller, action: &str) -> Result<(), Error> {
    let entry = plane.entry(caller, action, rollout.revision.to_string());
    let after =
        json!({"state": rollout.state.as_str(), "strategy": rollout.strategy, "reason": rollout.reason});
    let entry = entry.with(&Value::Null, &after);
    if !plane.store.update_rollout(&rollout.to_row(), By::Operator(&entry)).await? {
        return Err(Error::Busy);
    }
    plane.tell().await;
    Ok(())
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(REASON_BYTES_MAX));
    text
}
