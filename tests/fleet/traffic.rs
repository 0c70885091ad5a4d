//! Steady traffic of several callers, until it is told to stop: what each of them saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::caller::{Answer, Caller, Tally};
use tokio::task::JoinSet;

/// Callers at work.
pub struct Traffic {
    workers: JoinSet<Seen>,
    stop: Arc<AtomicBool>,
}

/// What a caller, or all of them, saw.
#[derive(Default)]
pub struct Seen {
    pub tally: Tally,
    pub answers: Vec<Answer>,
    pub errors: Vec<String>,
    /// Answers of a revision below that of the answer before it, to the same caller.
    pub went_back: Vec<String>,
}

impl Traffic {
    /// Starts this many callers of `model`; every other one streams.
    pub fn start(caller: &Caller, model: &str, workers: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = JoinSet::new();
        for worker in 0..workers {
            set.spawn(work(caller.clone(), model.to_owned(), worker % 2 == 0, stop.clone()));
        }
        Traffic { workers: set, stop }
    }

    /// Lets every caller finish its request and returns what they saw.
    pub async fn stop(mut self) -> anyhow::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        while let Some(seen) = self.workers.join_next().await {
            let seen = seen?;
            all.tally.merge(&seen.tally);
            all.answers.extend(seen.answers);
            all.errors.extend(seen.errors);
            all.went_back.extend(seen.went_back);
        }
        Ok(all)
    }
}

async fn work(caller: Caller, model: String, stream: bool, stop: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
    let mut newest = 0;
    while !stop.load(Ordering::Relaxed) {
        let answer = caller.chat(&model, stream).await;
        seen.tally.add(&model, &answer);
        match answer {
            Ok(answer) => {
                let revision: u64 = answer.header("x-sluice-revision").parse().unwrap_or_default();
                if revision < newest {
                    seen.went_back.push(format!("{newest} → {revision}"));
                }
                newest = newest.max(revision);
                seen.answers.push(answer);
            }
            Err(error) => {
                seen.errors.push(format!("{error:#}"));
                // A node that is away answers nothing at once; the loop would only burn time.
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    }
    seen
}
