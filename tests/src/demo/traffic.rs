//! A little steady traffic through the nodes, streamed and whole, and what came of it as an
//! application sees it. Nothing is retried.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::tasks::Tasks;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::stack::Stack;
use crate::caller::{Answer, Caller, Outcome};

/// Each node gets a request this often from simulated applications, …
const EVERY: Duration = Duration::from_millis(300);
/// … and this often where an upstream takes money for it.
const EVERY_REAL: Duration = Duration::from_secs(20);
/// More than this are not sent at once: hanging upstreams would pile them up.
const IN_FLIGHT_MAX: usize = 64;
/// What is under way at the end gets this long.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// What "now" means in the view.
pub(super) const RECENT: Duration = Duration::from_secs(5);

/// Requests by what they came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) served: u64,
    pub(super) exhausted: u64,
    pub(super) cut: u64,
    /// Refused, a bad request, or broken off without a word.
    pub(super) other: u64,
}

impl Counts {
    fn add(&mut self, outcome: Option<Outcome>) {
        let count = match outcome {
            Some(Outcome::Served) => &mut self.served,
            Some(Outcome::Exhausted) => &mut self.exhausted,
            Some(Outcome::Cut) => &mut self.cut,
            Some(Outcome::Broken | Outcome::BadRequest | Outcome::Refused) | None => &mut self.other,
        };
        *count += 1;
    }

    /// Served out of all that the channels had to do with.
    pub(super) fn rate(self) -> Option<f64> {
        let all = self.served + self.exhausted + self.cut;
        (all > 0).then(|| self.served as f64 / all as f64)
    }
}

/// What the demo saw itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Since the start, by model.
    pub(super) models: BTreeMap<String, Counts>,
    /// Answers served since the start for which more than one channel was tried.
    pub(super) moved: u64,
    /// Answers served in the last [`RECENT`], by model and channel.
    pub(super) recent: BTreeMap<(String, String), u64>,
    /// All requests that ended in the last [`RECENT`].
    pub(super) recent_all: Counts,
    pub(super) in_flight: usize,
}

/// A request that came to an end.
struct Ended {
    at: Instant,
    model: String,
    channel: String,
    outcome: Option<Outcome>,
}

#[derive(Default)]
struct Shared {
    models: Mutex<BTreeMap<String, Counts>>,
    recent: Mutex<VecDeque<Ended>>,
    moved: AtomicUsize,
    in_flight: AtomicUsize,
    is_paused: AtomicBool,
}

/// Traffic that runs until it is stopped.
#[derive(Clone)]
pub(super) struct Traffic {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

impl Traffic {
    /// Starts to call every node in turn with every model.
    pub(super) fn start(stack: &Stack, tasks: &Tasks) -> anyhow::Result<Traffic> {
        let traffic = Traffic { shared: Arc::default(), stop: tasks.token().child_token() };
        let every = if stack.providers.is_empty() { EVERY_REAL } else { EVERY };
        let count = stack.nodes.len() as u32;
        for (at, node) in (0..).zip(&stack.nodes) {
            let caller = Caller::new(node.addresses.data, &stack.key)?;
            let (traffic, models, tasks) = (traffic.clone(), stack.models.clone(), tasks.clone());
            let first = Instant::now() + every * at / count;
            let within = tasks.clone();
            tasks.spawn("traffic", |_| async move {
                traffic.call(&caller, &models, &within, first, every).await;
            });
        }
        Ok(traffic)
    }

    async fn call(&self, caller: &Caller, models: &[String], tasks: &Tasks, first: Instant, every: Duration) {
        let mut tick = interval_at(first, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Two requests of each model in turn: one whole, one streamed.
        let mut turns = (0..2 * models.len()).cycle();
        while self.stop.run_until_cancelled(tick.tick()).await.is_some() {
            let is_full = self.shared.in_flight.load(Ordering::Relaxed) >= IN_FLIGHT_MAX;
            if is_full || self.is_paused() {
                continue;
            }
            let turn = turns.next().unwrap_or_default();
            let Some(model) = models.get(turn / 2).cloned() else { continue };
            let (caller, traffic) = (caller.clone(), self.clone());
            self.shared.in_flight.fetch_add(1, Ordering::Relaxed);
            tasks.spawn("request", |drop_it| async move {
                let request = caller.post(body(&model, turn % 2 == 1));
                let answer = drop_it.run_until_cancelled(request).await;
                traffic.shared.in_flight.fetch_sub(1, Ordering::Relaxed);
                if let Some(answer) = answer {
                    traffic.note(model, answer.ok().as_ref());
                }
            });
        }
    }

    fn note(&self, model: String, answer: Option<&Answer>) {
        let outcome = answer.map(Answer::outcome);
        locked(&self.shared.models).entry(model.clone()).or_default().add(outcome);
        let channel = answer.map(|answer| answer.header("x-sluice-channel").to_owned()).unwrap_or_default();
        if outcome == Some(Outcome::Served)
            && answer.is_some_and(|answer| !matches!(answer.header("x-sluice-attempts"), "" | "1"))
        {
            self.shared.moved.fetch_add(1, Ordering::Relaxed);
        }
        let ended = Ended { at: Instant::now(), model, channel, outcome };
        locked(&self.shared.recent).push_back(ended);
    }

    /// What was seen until `now`.
    pub(super) fn seen(&self, now: Instant) -> Seen {
        let mut recent = locked(&self.shared.recent);
        while recent.front().is_some_and(|ended| now.saturating_duration_since(ended.at) > RECENT) {
            recent.pop_front();
        }
        let mut seen = Seen {
            models: locked(&self.shared.models).clone(),
            moved: self.shared.moved.load(Ordering::Relaxed) as u64,
            in_flight: self.shared.in_flight.load(Ordering::Relaxed),
            ..Seen::default()
        };
        for Ended { model, channel, outcome, .. } in recent.iter() {
            seen.recent_all.add(*outcome);
            if *outcome == Some(Outcome::Served) {
                *seen.recent.entry((model.clone(), channel.clone())).or_default() += 1;
            }
        }
        seen
    }

    /// Pauses, or goes on.
    pub(super) fn toggle(&self) {
        self.shared.is_paused.fetch_xor(true, Ordering::Relaxed);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.shared.is_paused.load(Ordering::Relaxed)
    }

    /// Sends no more, and waits a moment for what is under way; the rest ends with the tasks.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let deadline = Instant::now() + LAST_ANSWERS;
        while self.shared.in_flight.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that a real upstream answers too, in few words.
fn body(model: &str, stream: bool) -> String {
    serde_json::json!({
        "model": model,
        "messages": [{"role": "user", "content": "Say hello in one word."}],
        "stream": stream,
    })
    .to_string()
}
