//! The success really observed over time: the same two rates as in a status, for each step of a span. A step in which
//! nothing was observed has no rate. Pure.
//!
//! [`Series`] is also the JSON of `/api/v1/series`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{Attempts, Fleet, Requests, in_order, millis};
use crate::store::rows::Counted;

/// Points of each model and of each channel, from the same steps; the last step is the one that is under way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Now.
    pub at_ms: u64,
    /// The beginning of the first step.
    pub from_ms: u64,
    /// The length of each.
    pub step_seconds: u64,
    /// What callers saw, by model.
    pub models: Vec<ModelSeries>,
    /// What channels did, over all the models shown.
    pub channels: Vec<ChannelSeries>,
}

/// A model over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSeries {
    /// The model; empty for requests that were refused before their model was known.
    pub model: String,
    /// One for each step.
    pub points: Vec<RequestPoint>,
    /// In the order of the chain; then channels that are not in it any more.
    pub channels: Vec<ChannelSeries>,
}

/// A channel over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelSeries {
    /// The channel.
    pub channel: String,
    /// One for each step.
    pub points: Vec<AttemptPoint>,
}

/// What callers saw in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestPoint {
    /// Its beginning.
    pub at_ms: u64,
    /// Absent when nothing was observed.
    pub success_rate: Option<f64>,
    /// The counts behind it.
    #[serde(flatten)]
    pub requests: Requests,
}

/// What a channel did in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptPoint {
    /// Its beginning.
    pub at_ms: u64,
    /// Absent when nothing was observed.
    pub success_rate: Option<f64>,
    /// The counts behind it.
    #[serde(flatten)]
    pub attempts: Attempts,
}

/// Steps of a span that ends now. They begin at multiples of their length since 1970: hours at the full hour, days at
/// midnight UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The beginning of the first.
    pub from_ms: u64,
    /// The length of each.
    pub step_ms: u64,
    /// How many there are; the last is under way.
    pub count: usize,
}

impl Steps {
    /// The steps that make up `window`.
    pub fn of(at_ms: u64, window: Duration, step: Duration) -> Self {
        let step_ms = millis(step).max(1);
        let count = millis(window).div_ceil(step_ms).max(1);
        let last_ms = at_ms / step_ms * step_ms;
        let from_ms = last_ms.saturating_sub((count - 1) * step_ms);
        let count = usize::try_from((last_ms - from_ms) / step_ms + 1).unwrap_or(usize::MAX);
        Steps { from_ms, step_ms, count }
    }

    fn index(&self, at_ms: u64) -> Option<usize> {
        let index = usize::try_from(at_ms.checked_sub(self.from_ms)? / self.step_ms).ok()?;
        (index < self.count).then_some(index)
    }

    fn begins(&self) -> impl Iterator<Item = u64> {
        let Steps { from_ms, step_ms, count } = *self;
        (0..count as u64).map(move |step| from_ms + step * step_ms)
    }
}

impl Series {
    /// Sorts what was counted into its steps. Models and channels of the catalog are there also when nothing was observed
    /// of them. With `only`, of that model alone.
    pub fn of(counted: &Counted, fleet: &Fleet, at_ms: u64, steps: Steps, only: Option<&str>) -> Self {
        let is_shown = |model: &str| only.is_none_or(|only| only == model);
        let mut requests: BTreeMap<&str, Vec<Requests>> = BTreeMap::new();
        let mut attempts: BTreeMap<&str, BTreeMap<&str, Vec<Attempts>>> = BTreeMap::new();
        let nothing = || vec![Requests::default(); steps.count];
        for model in fleet.models.keys().filter(|model| is_shown(model)) {
            requests.entry(model).or_insert_with(nothing);
        }
        for row in counted.requests.iter().filter(|row| is_shown(&row.model)) {
            let seen = requests.entry(&row.model).or_insert_with(nothing);
            if let Some(step) = steps.index(row.at_ms).and_then(|index| seen.get_mut(index)) {
                step.add(&row.outcome, row.count);
            }
        }
        for row in counted.attempts.iter().filter(|row| is_shown(&row.model)) {
            requests.entry(&row.model).or_insert_with(nothing);
            let of_model = attempts.entry(&row.model).or_default();
            let seen = of_model.entry(&row.channel).or_insert_with(|| vec![Attempts::default(); steps.count]);
            if let Some(step) = steps.index(row.at_ms).and_then(|index| seen.get_mut(index)) {
                step.add(&row.class, row.count);
            }
        }

        let mut channels: BTreeMap<&str, Vec<Attempts>> = BTreeMap::new();
        let mut models = Vec::new();
        for (model, requests) in requests {
            let mut seen = attempts.remove(model).unwrap_or_default();
            let chain = fleet.models.get(model);
            let mut of_model = Vec::new();
            for channel in in_order(chain, seen.keys().copied()) {
                let counts = seen.remove(channel).unwrap_or_else(|| vec![Attempts::default(); steps.count]);
                let all = channels.entry(channel).or_insert_with(|| vec![Attempts::default(); steps.count]);
                all.iter_mut().zip(&counts).for_each(|(all, counts)| all.merge(counts));
                of_model.push(channel_series(channel, counts, steps));
            }
            let point = |(at_ms, requests): (u64, Requests)| RequestPoint {
                at_ms,
                success_rate: requests.success_rate(),
                requests,
            };
            let points = steps.begins().zip(requests).map(point).collect();
            models.push(ModelSeries { model: model.to_owned(), points, channels: of_model });
        }
        Series {
            at_ms,
            from_ms: steps.from_ms,
            step_seconds: steps.step_ms / 1000,
            models,
            channels: channels
                .into_iter()
                .map(|(channel, all)| channel_series(channel, all, steps))
                .collect(),
        }
    }
}

fn channel_series(channel: &str, attempts: Vec<Attempts>, steps: Steps) -> ChannelSeries {
    let point = |(at_ms, attempts): (u64, Attempts)| AttemptPoint {
        at_ms,
        success_rate: attempts.success_rate(),
        attempts,
    };
    ChannelSeries { channel: channel.to_owned(), points: steps.begins().zip(attempts).map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rows::{AttemptRow, RequestRow};

    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 30 * HOUR + HOUR / 2;

    #[test]
    fn steps_begin_at_the_full_hour_and_the_last_is_under_way() {
        let hour = Duration::from_secs(3600);
        let of = |window| Steps::of(NOW, window, hour);
        assert_eq!(of(24 * hour), Steps { from_ms: 7 * HOUR, step_ms: HOUR, count: 24 });
        assert_eq!(of(hour / 2), Steps { from_ms: 30 * HOUR, step_ms: HOUR, count: 1 });
        assert_eq!(of(100 * hour), Steps { from_ms: 0, step_ms: HOUR, count: 31 }, "nothing was before 1970");
    }

    #[test]
    fn each_count_lies_in_its_step_and_a_step_without_counts_has_no_rate() {
        let request = |hour: u64, outcome: &str, count| RequestRow {
            at_ms: hour * HOUR,
            model: "m".into(),
            outcome: outcome.into(),
            count,
        };
        let attempt = |hour: u64, channel: &str, class: &str, count| AttemptRow {
            at_ms: hour * HOUR,
            model: "m".into(),
            channel: channel.into(),
            class: class.into(),
            count,
        };
        let counted = Counted {
            requests: vec![
                request(27, "served", 9),
                request(28, "served", 3),
                request(28, "exhausted", 1),
                request(30, "canceled", 2),
            ],
            attempts: vec![attempt(28, "a", "timeout", 1), attempt(28, "gone", "ok", 3)],
            ..Counted::default()
        };
        let models = BTreeMap::from([("m".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
        let fleet = Fleet { models, ..Fleet::default() };
        let steps = Steps::of(NOW, Duration::from_secs(3 * 3600), Duration::from_secs(3600));
        let series = Series::of(&counted, &fleet, NOW, steps, None);
        let rates: Vec<_> = series.models[0].points.iter().map(|point| point.success_rate).collect();
        assert_eq!(rates, [Some(0.75), None, None], "what is before the first step is in none");
        assert_eq!(series.models[0].points[2].requests.canceled, 2);
        let names: Vec<_> =
            series.models[0].channels.iter().map(|channel| channel.channel.as_str()).collect();
        assert_eq!(names, ["a", "b", "gone"]);
        let rates = |channel: &ChannelSeries| -> Vec<_> {
            channel.points.iter().map(|point| point.success_rate).collect()
        };
        assert_eq!(rates(&series.channels[0]), [Some(0.0), None, None]);
        assert_eq!(rates(&series.channels[1]), [None, None, None]);
        let only = Series::of(&counted, &fleet, NOW, steps, Some("other"));
        assert_eq!((only.models, only.channels), (vec![], vec![]));
    }
}
