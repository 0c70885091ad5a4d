//! A record as people read it: what became of each hop, how it ended, and where the time of each attempt went. Pure.

use crate::money::Amount;
use crate::pb::{admin, fleet};

/// A time as people read it: to the millisecond.
pub fn seconds(us: u64) -> String {
    format!("{}.{:03} s", us / 1_000_000, us / 1000 % 1000)
}

/// Why a hop was not asked, or what came of it.
pub fn became(hop: &fleet::RecordHop, attempt: Option<&fleet::RecordAttempt>) -> String {
    if !hop.out.is_empty() {
        let until = hop.out_until_us.map(|at| format!(" for {} more", seconds(at)));
        return format!("not asked: {}{}", hop.out, until.unwrap_or_default());
    }
    let Some(attempt) = attempt else { return "not asked".to_owned() };
    let mut said = attempt.class.clone();
    if !attempt.reason.is_empty() && attempt.reason != "plain" {
        said += &format!(" ({})", attempt.reason);
    }
    if attempt.status != 0 {
        said += &format!(", status {}", attempt.status);
    }
    if !attempt.gate.is_empty() {
        said += &format!(", gate: {}", attempt.gate);
    }
    if attempt.was_stale {
        said += ", over a second connection";
    }
    said
}

/// What was asked for, and by whom.
pub fn asked(record: &fleet::Record) -> String {
    let known = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let what = if record.is_stream { "a stream of " } else { "" };
    format!(
        "asked {} for {what}{}, with {}; revision {}",
        known(&record.operation),
        known(&record.model),
        if record.key_id.is_empty() { "no key".to_owned() } else { format!("key {}", record.key_id) },
        record.revision
    )
}

/// What the caller got, and when.
pub fn answered(record: &fleet::Record) -> String {
    let status = if record.status == 0 { String::new() } else { format!(", status {}", record.status) };
    let code = if record.code.is_empty() { String::new() } else { format!(" {}", record.code) };
    let committed = record.committed_us.map(|at| format!("; the answer began after {}", seconds(at)));
    let ended = seconds(record.ended_us);
    format!("{}{status}{code} after {ended}{}", record.outcome, committed.unwrap_or_default())
}

/// What was used, where the upstream said it, and what that comes to.
pub fn used(answer: &admin::GetRequestResponse, record: &fleet::Record) -> Option<String> {
    let usage = record.usage.as_ref()?;
    let sum = |what: &str, pico: Option<u64>| {
        pico.map(|pico| format!("; {what} {} USD", Amount::from_pico(pico))).unwrap_or_default()
    };
    let (cost, price) =
        (sum("it cost us", answer.cost_pico_usd), sum("the caller pays", answer.price_pico_usd));
    Some(format!("used {} tokens of input and {} of output{cost}{price}", usage.input, usage.output))
}

/// What becomes of a hop of a replay.
pub fn fate(step: &admin::CourseStep) -> String {
    match step.fate() {
        admin::CourseFate::Out => format!("not asked: {}", step.why),
        admin::CourseFate::PassedOver => "passed over: it could not have helped".to_owned(),
        admin::CourseFate::Failed => step.why.clone(),
        admin::CourseFate::Answered => "answered".to_owned(),
        admin::CourseFate::Left => "the caller went away".to_owned(),
        admin::CourseFate::Unknown => "asked; how it would answer is not known".to_owned(),
        admin::CourseFate::Unspecified => "unknown".to_owned(),
    }
}

/// How a replay ends.
pub fn end(course: &admin::Course) -> String {
    match course.end() {
        admin::CourseEnd::Answered => "the caller got its answer".to_owned(),
        admin::CourseEnd::Left => "the caller went away".to_owned(),
        admin::CourseEnd::Refused => format!("the caller got {} {}", course.status, course.code),
        admin::CourseEnd::Unknown => "what the caller would get is not known".to_owned(),
        admin::CourseEnd::Unspecified => "unknown".to_owned(),
    }
}

/// What an attempt spends its time with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It waits for headers.
    Waits,
    /// Its answer is held.
    Held,
    /// Its answer is passed on.
    PassedOn,
}

/// When the phases of an attempt begin; in microseconds, none after the request's end. What it did not come to begins
/// with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// When it waits.
    pub began_us: u64,
    /// When its answer is held.
    pub headers_us: u64,
    /// When its answer is passed on.
    pub decided_us: u64,
    /// When it is over.
    pub ended_us: u64,
    /// What it came to.
    pub last: Phase,
}

impl Phases {
    /// Those of an attempt of a request that took so long.
    pub fn of(attempt: &fleet::RecordAttempt, total_us: u64) -> Self {
        let within = |us: u64| us.min(total_us);
        let ended_us = within(attempt.ended_us);
        let decided = attempt.decisive_us.filter(|_| attempt.gate != "drop");
        Phases {
            began_us: within(attempt.began_us),
            headers_us: attempt.headers_us.map_or(ended_us, within),
            decided_us: decided.map_or(ended_us, within),
            ended_us,
            last: match (attempt.headers_us, decided) {
                (None, _) => Phase::Waits,
                (Some(_), None) => Phase::Held,
                (Some(_), Some(_)) => Phase::PassedOn,
            },
        }
    }
}
