//! The success really observed: counters → two rates. *Attempts* of a channel: ok / (ok + failed).
//! *Requests* of a model: served / (served + exhausted + cut). What counts neither way, and what we
//! refused ourselves, is kept apart. No data is not 100 %. Pure.
//!
//! [`Status`] is also the JSON of `/api/v1/status` and of `sluice status -o json`.

#[cfg(test)]
pub(crate) mod fixture;
pub mod incidents;
pub(crate) mod look;
pub mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use common::first_byte::{Histogram, Percentiles};
use common::window::{AttemptEnd, RequestOutcome};

use crate::store::rows::Counted;

/// Requests of a model by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Requests {
    /// The caller has a whole answer.
    pub served: u64,
    /// All hops failed, or no channel was available.
    pub exhausted: u64,
    /// The answer broke off after commit.
    pub cut: u64,
    /// The request itself was at fault.
    pub bad_request: u64,
    /// The caller went away.
    pub canceled: u64,
    /// We refused it before any channel was asked for.
    pub refused: u64,
}

/// Attempts on a channel by their end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Attempts {
    /// Good to the end.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
    /// Counts neither way.
    pub neutral: u64,
    /// All that was not ok, by failure class.
    pub classes: BTreeMap<String, u64>,
}

/// What was observed in a span of wall time that ends now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Now.
    pub at_ms: u64,
    /// How far back the numbers go.
    pub window_seconds: u64,
    /// The current revision of the catalog; 0 when there is none.
    pub revision: u64,
    /// Where the rollout stands that is under way.
    pub rollout: Option<String>,
    /// End of the newest window that any node reported, whatever it holds.
    pub data_until_ms: Option<u64>,
    /// Nodes that are connected.
    pub nodes_connected: u64,
    /// Nodes that are or were there.
    pub nodes_known: u64,
    /// Requests, by model.
    pub models: Vec<ModelStatus>,
    /// Attempts of all the models shown, by channel.
    pub channels: Vec<ChannelStatus>,
}

/// Requests of a model, and the attempts that were made for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelStatus {
    /// The model; empty for requests that were refused before their model was known.
    pub model: String,
    /// Absent when nothing was observed.
    pub success_rate: Option<f64>,
    /// The counts behind it.
    #[serde(flatten)]
    pub requests: Requests,
    /// How long callers waited for the first byte; absent when none is known, or the span is longer than these are kept.
    pub first_byte: Option<Percentiles>,
    /// In the order of the chain; then channels that are not in it any more.
    pub channels: Vec<ChannelStatus>,
}

/// Attempts on a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelStatus {
    /// The channel.
    pub channel: String,
    /// Absent when nothing was observed.
    pub success_rate: Option<f64>,
    /// The counts behind it.
    #[serde(flatten)]
    pub attempts: Attempts,
    /// How long the first byte of its answers took, likewise.
    pub first_byte: Option<Percentiles>,
    /// Nodes on which its breaker is open now.
    pub open_on: Vec<String>,
}

/// What the numbers are shown with: the catalog and the nodes as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fleet {
    /// The current revision; 0 when there is none.
    pub revision: u64,
    /// Where the rollout stands that is under way.
    pub rollout: Option<String>,
    /// The channels of each model of the catalog, in the order of its chains.
    pub models: BTreeMap<String, Vec<String>>,
    /// The nodes on which each channel's breaker is open.
    pub open_on: BTreeMap<String, Vec<String>>,
    /// Nodes that are connected.
    pub nodes_connected: u64,
    /// Nodes that are or were there.
    pub nodes_known: u64,
}

impl Requests {
    /// What callers saw: served / (served + exhausted + cut).
    pub fn success_rate(&self) -> Option<f64> {
        rate(self.served, self.failed())
    }

    /// Requests that failed for the caller.
    pub fn failed(&self) -> u64 {
        self.exhausted + self.cut
    }

    fn add(&mut self, outcome: &str, count: u64) {
        let sum = match RequestOutcome::parse(outcome) {
            Some(RequestOutcome::Served) => &mut self.served,
            Some(RequestOutcome::Exhausted) => &mut self.exhausted,
            Some(RequestOutcome::Cut) => &mut self.cut,
            Some(RequestOutcome::BadRequest) => &mut self.bad_request,
            Some(RequestOutcome::Canceled) => &mut self.canceled,
            // The other outcomes are codes of refusals, also those that a newer node has.
            Some(RequestOutcome::Refused(_)) | None => &mut self.refused,
        };
        *sum += count;
    }

    fn merge(&mut self, other: &Requests) {
        self.served += other.served;
        self.exhausted += other.exhausted;
        self.cut += other.cut;
        self.bad_request += other.bad_request;
        self.canceled += other.canceled;
        self.refused += other.refused;
    }
}

impl Attempts {
    /// What the channel did: ok / (ok + failed).
    pub fn success_rate(&self) -> Option<f64> {
        rate(self.ok, self.failed)
    }

    fn add(&mut self, class: &str, count: u64) {
        let sum = match AttemptEnd::parse(class) {
            Some(AttemptEnd::Ok) => {
                self.ok += count;
                return;
            }
            Some(AttemptEnd::Failed(known)) if !known.consequence().is_failure => &mut self.neutral,
            // A class that only a newer node knows is a failure until this side knows better.
            Some(AttemptEnd::Failed(_)) | None => &mut self.failed,
        };
        *sum += count;
        *self.classes.entry(class.to_owned()).or_default() += count;
    }

    fn merge(&mut self, other: &Attempts) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.neutral += other.neutral;
        for (class, count) in &other.classes {
            *self.classes.entry(class.clone()).or_default() += count;
        }
    }
}

impl Status {
    /// Adds up what was counted in the last `window`. Models and channels of the catalog are there
    /// also when nothing was observed of them. With `only`, of that model alone.
    pub fn of(counted: &Counted, fleet: &Fleet, at_ms: u64, window: Duration, only: Option<&str>) -> Self {
        let is_shown = |model: &str| only.is_none_or(|only| only == model);
        let mut requests: BTreeMap<&str, Requests> = BTreeMap::new();
        let mut attempts: BTreeMap<&str, BTreeMap<&str, Attempts>> = BTreeMap::new();
        for model in fleet.models.keys().filter(|model| is_shown(model)) {
            requests.entry(model).or_default();
        }
        for row in counted.requests.iter().filter(|row| is_shown(&row.model)) {
            requests.entry(&row.model).or_default().add(&row.outcome, row.count);
        }
        for row in counted.attempts.iter().filter(|row| is_shown(&row.model)) {
            requests.entry(&row.model).or_default();
            attempts
                .entry(&row.model)
                .or_default()
                .entry(&row.channel)
                .or_default()
                .add(&row.class, row.count);
        }

        let times = Times::of(counted, is_shown);
        let mut channels: BTreeMap<String, Attempts> = BTreeMap::new();
        let mut models = Vec::new();
        for (model, requests) in requests {
            let seen = attempts.remove(model).unwrap_or_default();
            let mut of_model = Vec::new();
            for channel in in_order(fleet.models.get(model), seen.keys().copied()) {
                let counts = seen.get(channel).cloned().unwrap_or_default();
                channels.entry(channel.to_owned()).or_default().merge(&counts);
                let first_byte = times.of_model.get(&(model, channel)).and_then(Percentiles::of);
                of_model.push(fleet.channel(channel, counts, first_byte));
            }
            let success_rate = requests.success_rate();
            let first_byte = times.of_model.get(&(model, "")).and_then(Percentiles::of);
            let model = model.to_owned();
            models.push(ModelStatus { model, success_rate, requests, first_byte, channels: of_model });
        }
        Status {
            at_ms,
            window_seconds: window.as_secs(),
            revision: fleet.revision,
            data_until_ms: (counted.until_ms > 0).then_some(counted.until_ms),
            nodes_connected: fleet.nodes_connected,
            nodes_known: fleet.nodes_known,
            rollout: fleet.rollout.clone(),
            models,
            channels: channels
                .into_iter()
                .map(|(channel, counts)| {
                    let first_byte = times.of_channel.get(channel.as_str()).and_then(Percentiles::of);
                    fleet.channel(&channel, counts, first_byte)
                })
                .collect(),
        }
    }

    /// How old the newest data is; `None` when there never was any.
    pub fn data_age(&self) -> Option<Duration> {
        self.data_until_ms.map(|until| Duration::from_millis(self.at_ms.saturating_sub(until)))
    }

    /// Whether another status says the same, but for the time at which it was made.
    pub fn says_the_same_as(&self, other: &Status) -> bool {
        let timeless = |status: &Status| Status { at_ms: 0, ..status.clone() };
        timeless(self) == timeless(other)
    }
}

impl Fleet {
    fn channel(&self, channel: &str, attempts: Attempts, first_byte: Option<Percentiles>) -> ChannelStatus {
        ChannelStatus {
            channel: channel.to_owned(),
            success_rate: attempts.success_rate(),
            attempts,
            first_byte,
            open_on: self.open_on.get(channel).cloned().unwrap_or_default(),
        }
    }
}

/// Times to the first byte, put together.
struct Times<'a> {
    /// By model and channel; what callers saw is under the empty one.
    of_model: BTreeMap<(&'a str, &'a str), Histogram>,
    /// By channel.
    of_channel: BTreeMap<&'a str, Histogram>,
}

impl<'a> Times<'a> {
    fn of(counted: &'a Counted, is_shown: impl Fn(&str) -> bool) -> Self {
        let (mut of_model, mut of_channel) = (BTreeMap::new(), BTreeMap::new());
        for row in counted.first_bytes.iter().filter(|row| is_shown(&row.model)) {
            let of_model: &mut Histogram = of_model.entry((&*row.model, &*row.channel)).or_default();
            let of_channel: &mut Histogram = of_channel.entry(&*row.channel).or_default();
            for histogram in [of_model, of_channel] {
                *histogram.entry(row.bound_ms).or_default() += row.count;
            }
        }
        Times { of_model, of_channel }
    }
}

/// From which bucket on a span of `window` that ends at `now_ms` has to be read: never less than was
/// asked for, and at most one bucket more. `bucket` is the length of the buckets that far back.
pub fn since_ms(now_ms: u64, window: Duration, bucket: Duration) -> u64 {
    let bucket_ms = millis(bucket).max(1);
    now_ms.saturating_sub(millis(window)) / bucket_ms * bucket_ms
}

/// A share in percent, cut to two decimals: it says 100 only where nothing failed, 0 only where
/// nothing went well. `None` when nothing was observed.
pub fn percent(good: u64, bad: u64) -> Option<String> {
    let all = u128::from(good) + u128::from(bad);
    let hundredths = (u128::from(good) * 10_000).checked_div(all)?;
    Some(match (good, bad) {
        (_, 0) => "100 %".to_owned(),
        (0, _) => "0 %".to_owned(),
        _ if hundredths == 0 => "<0.01 %".to_owned(),
        _ => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
    })
}

fn rate(good: u64, bad: u64) -> Option<f64> {
    let all = good.saturating_add(bad);
    (all > 0).then(|| good as f64 / all as f64)
}

/// The channels of the chain in its order, then the others that were seen, by name.
fn in_order<'a>(chain: Option<&'a Vec<String>>, seen: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut order: Vec<&str> = chain.into_iter().flatten().map(String::as_str).collect();
    let known: BTreeSet<&str> = order.iter().copied().collect();
    order.extend(seen.filter(|channel| !known.contains(channel)));
    order
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
