//! A record of a request walked again: whether the same decisions follow from what was seen, or what would differ over
//! another chain. What a record holds is `proto/sluice/fleet/v1/records.proto`'s matter. Pure.
//!
//! A walk depends on its chain, on which routes were out when their turn came, and on how attempts failed. A record has
//! all three, so that its decisions follow from it alone.

pub mod words;

use std::time::Duration;

use tokio::time::Instant;

use crate::code::Code;
use crate::pb::fleet as pb;
use crate::walk::out::{Out, none_left};
use crate::walk::{Ending, Failure, Hop, Reason, Walk};
use crate::window::AttemptEnd;

/// A walk as it was, or as it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// What became of each hop, up to the last that was considered.
    pub steps: Vec<Step>,
    /// How it ended.
    pub end: End,
}

/// What became of a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The channel.
    pub channel: String,
    /// The upstream's name of the model.
    pub upstream_model: String,
    /// What became of it.
    pub fate: Fate,
}

/// What becomes of a hop when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It was out: the reason's name.
    Out(String),
    /// The walk passed it over, as it could not have helped.
    PassedOver,
    /// It was asked and failed so: the class's name.
    Failed(String),
    /// It was asked and its answer was committed.
    Answered,
    /// It was asked, and the caller went away meanwhile.
    Left,
    /// It would be asked, and nothing says how that would end.
    Unknown,
}

/// How a walk ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// In an answer.
    Answered,
    /// The caller went away.
    Left,
    /// In a refusal with this code and status.
    Refused {
        /// The stable code.
        code: String,
        /// The HTTP status.
        status: u32,
    },
    /// At a hop of which nothing is known.
    Unknown,
}

/// A record that says something that no walk does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of {channel} says \"{what}\", which is not known here: a newer node wrote it")]
pub struct Unread {
    channel: String,
    what: String,
}

/// What a record says of the walk.
pub fn recorded(record: &pb::Record) -> Course {
    let last = (0..record.chain.len()).rev().find(|index| seen(record, *index).is_some());
    let steps = record.chain.iter().enumerate().take(last.map_or(0, |last| last + 1));
    let steps = steps.map(|(index, hop)| {
        let fate = match seen(record, index) {
            Some(Seen::Out(hop)) => Fate::Out(hop.out.clone()),
            Some(Seen::Asked(attempt)) => fate_of(record, attempt),
            None => Fate::PassedOver,
        };
        step(hop, fate)
    });
    Course { steps: steps.collect(), end: recorded_end(record) }
}

fn recorded_end(record: &pb::Record) -> End {
    match record.outcome.as_str() {
        "served" | "cut" => End::Answered,
        "canceled" if record.committed_us.is_some() => End::Answered,
        "canceled" => End::Left,
        _ => End::Refused { code: record.code.clone(), status: record.status },
    }
}

/// Walks the chain of a record again; `base` stands for the moment in which the request began.
pub fn again(record: &pb::Record, base: Instant) -> Result<Course, Unread> {
    // What was refused before a channel was chosen had no walk.
    if record.chain.is_empty() {
        return Ok(recorded(record));
    }
    walked(record, &record.chain, |index| seen(record, index), base)
}

/// Walks another chain with what the record knows of its hops.
pub fn over(record: &pb::Record, chain: &[pb::RecordHop], base: Instant) -> Result<Course, Unread> {
    let known = |index: usize| {
        let hop = chain.get(index)?;
        let same = |other: &pb::RecordHop| {
            (&other.channel, &other.upstream_model) == (&hop.channel, &hop.upstream_model)
        };
        seen(record, record.chain.iter().position(same)?)
    };
    walked(record, chain, known, base)
}

/// `known` tells what is known of a hop of the chain.
fn walked<'a>(
    record: &'a pb::Record,
    chain: &[pb::RecordHop],
    known: impl Fn(usize) -> Option<Seen<'a>>,
    base: Instant,
) -> Result<Course, Unread> {
    let at = |us: u64| base + Duration::from_micros(us);
    let mut walk = Walk::new(chain.iter().map(to_hop).collect(), base).submitting(record.is_submission);
    let (mut steps, mut outs): (Vec<Step>, Vec<Out>) = (Vec::new(), Vec::new());
    let mut now = base;
    let end = loop {
        let Some(index) = walk.next_hop() else { break None };
        let hop = &chain[index];
        steps.extend(chain[steps.len()..index].iter().map(|hop| step(hop, Fate::PassedOver)));
        let Some(seen) = known(index) else {
            steps.push(step(hop, Fate::Unknown));
            break Some(End::Unknown);
        };
        let attempt = match seen {
            Seen::Out(hop) => {
                let out = Out::from_name(&hop.out, hop.out_until_us.map(at));
                outs.push(out.ok_or_else(|| unread(hop, &hop.out))?);
                steps.push(step(hop, Fate::Out(hop.out.clone())));
                continue;
            }
            Seen::Asked(attempt) => attempt,
        };
        let fate = fate_of(record, attempt);
        let is_failure = matches!(fate, Fate::Failed(_));
        let end = if fate == Fate::Left { End::Left } else { End::Answered };
        steps.push(step(hop, fate));
        if !is_failure {
            break Some(end);
        }
        now = at(attempt.ended_us);
        walk.on_failure(index, failure(hop, attempt)?, now);
    };
    let refused = || {
        let ending = if walk.failed() == 0 { none_left(&outs, now) } else { walk.ending(None) };
        refusal(record, ending)
    };
    Ok(Course { steps, end: end.unwrap_or_else(refused) })
}

/// Of a thing that its one channel does not have, the code says which kind of thing; the status decides.
fn refusal(record: &pb::Record, ending: Ending) -> End {
    let status = u32::from(ending.status);
    let is_told_otherwise = record.is_alone && ending.code == Code::InvalidRequest && status == record.status;
    let code = if is_told_otherwise { record.code.clone() } else { ending.code.as_str().to_owned() };
    End::Refused { code, status }
}

/// What a record knows of a hop whose turn came.
enum Seen<'a> {
    Out(&'a pb::RecordHop),
    Asked(&'a pb::RecordAttempt),
}

fn seen(record: &pb::Record, index: usize) -> Option<Seen<'_>> {
    let hop = record.chain.get(index)?;
    if !hop.out.is_empty() {
        return Some(Seen::Out(hop));
    }
    record.attempts.iter().find(|attempt| attempt.hop as usize == index).map(Seen::Asked)
}

fn fate_of(record: &pb::Record, attempt: &pb::RecordAttempt) -> Fate {
    match attempt.class.as_str() {
        "ok" | "cut" => Fate::Answered,
        "canceled" if record.committed_us.is_some() => Fate::Answered,
        "canceled" => Fate::Left,
        class => Fate::Failed(class.to_owned()),
    }
}

fn failure(hop: &pb::RecordHop, attempt: &pb::RecordAttempt) -> Result<Failure, Unread> {
    let Some(AttemptEnd::Failed(class)) = AttemptEnd::parse(&attempt.class) else {
        return Err(unread(hop, &attempt.class));
    };
    let reason = Reason::from_name(&attempt.reason).ok_or_else(|| unread(hop, &attempt.reason))?;
    let status = u16::try_from(attempt.status).ok().filter(|status| *status != 0);
    Ok(Failure { class, reason, status, is_untaken: attempt.is_untaken })
}

fn unread(hop: &pb::RecordHop, what: &str) -> Unread {
    Unread { channel: hop.channel.clone(), what: what.to_owned() }
}

fn to_hop(hop: &pb::RecordHop) -> Hop {
    // The walk asks of credentials only whether two are the same.
    let print = |place: u32| {
        let mut print = [0; 32];
        print[..4].copy_from_slice(&place.to_le_bytes());
        print
    };
    Hop { credential: hop.credential.map(print), context_window: hop.context_window }
}

fn step(hop: &pb::RecordHop, fate: Fate) -> Step {
    Step { channel: hop.channel.clone(), upstream_model: hop.upstream_model.clone(), fate }
}

#[cfg(test)]
mod tests;
