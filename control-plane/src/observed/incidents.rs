//! Incidents, derived from what was counted: when callers of a model saw failures, and what they saw. Nobody declares one
//! and nobody can take one back. Pure.
//!
//! A moment (five minutes; an hour where counts are kept by the hour) is bad when less than 99 % of its requests were
//! served. Bad moments with less than a quarter of an hour between them are one incident, if three requests failed in it.

use std::collections::BTreeMap;

use serde::Serialize;

use common::window::AttemptEnd;

use super::Requests;
use crate::store::rows::Counted;

/// Below this a moment is bad.
pub const BAD_BELOW: f64 = 0.99;
/// So much time without a bad moment ends an incident.
pub const QUIET_MS: u64 = 15 * 60 * 1000;
/// Fewer failures are no incident, however few requests there were.
pub const FAILED_MIN: u64 = 3;
/// So many causes are named.
const CAUSES_MAX: usize = 3;

/// What callers of a model went through.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Incident {
    /// The model.
    pub model: String,
    /// The beginning of its first bad moment.
    pub began_ms: u64,
    /// The end of its last one; absent while it goes on.
    pub ended_ms: Option<u64>,
    /// The length of its longest moment: so precise are its beginning and end.
    pub precision_seconds: u64,
    /// What callers saw from its beginning to its end.
    pub success_rate: Option<f64>,
    /// The counts behind it.
    #[serde(flatten)]
    pub requests: Requests,
    /// What failed most on which channel meanwhile, the most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

/// Attempts that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The channel.
    pub channel: String,
    /// The class of the failure.
    pub class: String,
    /// How many there were.
    pub count: u64,
}

/// Counts in steps of this length, from one time to before another.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// What was counted.
    pub counted: &'a Counted,
    /// Only what was counted from here on …
    pub from_ms: u64,
    /// … to before here counts.
    pub until_ms: u64,
    /// The length of the steps.
    pub step_ms: u64,
}

/// What was seen of a model in a step.
#[derive(Debug, Clone, Default)]
struct Moment<'a> {
    length_ms: u64,
    requests: Requests,
    failures: BTreeMap<(&'a str, &'a str), u64>,
}

/// Of each model its moments by their beginning.
#[derive(Debug, Default)]
struct Moments<'a>(BTreeMap<&'a str, BTreeMap<u64, Moment<'a>>>);

impl<'a> Moments<'a> {
    fn add(&mut self, part: &Part<'a>) {
        // Without a model there is nobody whose incident it is.
        let is_in =
            |at_ms: u64, model: &str| (part.from_ms..part.until_ms).contains(&at_ms) && !model.is_empty();
        for row in part.counted.requests.iter().filter(|row| is_in(row.at_ms, &row.model)) {
            self.moment(&row.model, row.at_ms, part.step_ms).requests.add(&row.outcome, row.count);
        }
        for row in part.counted.attempts.iter().filter(|row| is_in(row.at_ms, &row.model)) {
            if is_failure(&row.class) {
                let failures = &mut self.moment(&row.model, row.at_ms, part.step_ms).failures;
                *failures.entry((&row.channel, &row.class)).or_default() += row.count;
            }
        }
    }

    fn moment(&mut self, model: &'a str, at_ms: u64, step_ms: u64) -> &mut Moment<'a> {
        let moment = self.0.entry(model).or_default().entry(at_ms / step_ms * step_ms).or_default();
        moment.length_ms = step_ms;
        moment
    }
}

/// The incidents of all models, the newest first. The parts do not overlap.
pub fn incidents(parts: &[Part<'_>], now_ms: u64) -> Vec<Incident> {
    let mut moments = Moments::default();
    parts.iter().for_each(|part| moments.add(part));
    let models = moments.0.iter();
    let mut all: Vec<_> = models.flat_map(|(model, moments)| of_model(model, moments, now_ms)).collect();
    all.sort_by(|a, b| b.began_ms.cmp(&a.began_ms).then_with(|| a.model.cmp(&b.model)));
    all
}

fn is_failure(class: &str) -> bool {
    match AttemptEnd::parse(class) {
        Some(AttemptEnd::Ok) => false,
        Some(AttemptEnd::Failed(class)) => class.consequence().is_failure,
        None => true,
    }
}

fn of_model(model: &str, moments: &BTreeMap<u64, Moment<'_>>, now_ms: u64) -> Vec<Incident> {
    let is_bad = |moment: &Moment<'_>| moment.requests.success_rate().is_some_and(|rate| rate < BAD_BELOW);
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (at_ms, moment) in moments.iter().filter(|(_, moment)| is_bad(moment)) {
        let until_ms = at_ms + moment.length_ms;
        match spans.last_mut() {
            Some((_, end_ms)) if *at_ms < *end_ms + QUIET_MS => *end_ms = until_ms,
            _ => spans.push((*at_ms, until_ms)),
        }
    }
    let spans = spans.into_iter().map(|span| incident(model, moments, span, now_ms));
    spans.filter(|incident| incident.requests.failed() >= FAILED_MIN).collect()
}

fn incident(
    model: &str,
    moments: &BTreeMap<u64, Moment<'_>>,
    (began_ms, end_ms): (u64, u64),
    now_ms: u64,
) -> Incident {
    let mut requests = Requests::default();
    let mut failures: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut precision_ms = 0;
    for (_, moment) in moments.range(began_ms..end_ms) {
        requests.merge(&moment.requests);
        precision_ms = precision_ms.max(moment.length_ms);
        for (cause, count) in &moment.failures {
            *failures.entry(*cause).or_default() += count;
        }
    }
    let mut causes: Vec<Cause> = failures
        .into_iter()
        .map(|((channel, class), count)| Cause {
            channel: channel.to_owned(),
            class: class.to_owned(),
            count,
        })
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes.truncate(CAUSES_MAX);
    Incident {
        model: model.to_owned(),
        began_ms,
        ended_ms: (end_ms + QUIET_MS <= now_ms).then_some(end_ms),
        precision_seconds: precision_ms / 1000,
        success_rate: requests.success_rate(),
        requests,
        causes,
    }
}

#[cfg(test)]
mod tests;
