//! How the periodic jobs of this process do: since when each has not succeeded, which is written for whoever leads to
//! look at, and pings of URLs (Healthchecks: `URL/start`, `URL`, `URL/fail`) for a watch that is none of ours. A ping is
//! put into a bounded queue and sent by a task of its own, so that no job waits for one.

mod pace;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::tasks::Tasks;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::alerts::Beat;
use crate::alerts::receivers::Receivers;
use crate::error::Error;
use crate::plane::Plane;
use pace::{Pace, Ping};

/// Pings that wait to be sent.
const QUEUE: usize = 64;
/// Who does not answer by then is not waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The jobs of this process.
pub struct Beats {
    started: Instant,
    /// Of each job: when it last succeeded.
    last: Mutex<BTreeMap<&'static str, Instant>>,
    /// Of each job that pings.
    paces: Mutex<BTreeMap<&'static str, Pace>>,
    pings: Option<mpsc::Sender<(&'static str, Ping)>>,
}

/// Sends what is to be pinged.
pub struct Pinging(Option<(mpsc::Receiver<(&'static str, Ping)>, reqwest::Client)>);

impl Default for Beats {
    fn default() -> Self {
        Beats { started: Instant::now(), last: Mutex::default(), paces: Mutex::default(), pings: None }
    }
}

impl Beats {
    /// No job has run yet. Without URLs nobody is pinged.
    pub fn new(receivers: &Receivers) -> Result<(Self, Pinging), reqwest::Error> {
        if receivers.pings.is_empty() {
            return Ok((Beats::default(), Pinging(None)));
        }
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(ANSWERS_WITHIN).build()?;
        let (tx, rx) = mpsc::channel(QUEUE);
        Ok((Beats { pings: Some(tx), ..Beats::default() }, Pinging(Some((rx, client)))))
    }

    /// A job begins.
    pub fn began(&self, job: &'static str) {
        self.ping(job, Pace::began);
    }

    /// It succeeded.
    pub fn succeeded(&self, job: &'static str) {
        lock(&self.last).insert(job, Instant::now());
        self.ping(job, Pace::succeeded);
    }

    /// It failed.
    pub fn failed(&self, job: &'static str) {
        self.ping(job, Pace::failed);
    }

    /// For how long a job has not succeeded; since the start, where it never has.
    pub fn age(&self, job: &str) -> Duration {
        let last = lock(&self.last).get(job).copied();
        last.unwrap_or(self.started).elapsed()
    }

    fn ping(&self, job: &'static str, event: impl FnOnce(&mut Pace, Instant) -> Option<Ping>) {
        let Some(pings) = &self.pings else { return };
        let ping = event(lock(&self.paces).entry(job).or_default(), Instant::now());
        if let Some(ping) = ping {
            // One that finds no room is left out: the next is a minute away.
            let _ = pings.try_send((job, ping));
        }
    }
}

impl Pinging {
    /// Sends, from now on.
    pub fn start(self, plane: &Arc<Plane>, tasks: &Tasks) {
        let Some((mut rx, client)) = self.0 else { return };
        let plane = plane.clone();
        tasks.spawn("ping", |stop| async move {
            let sending = async {
                while let Some((job, ping)) = rx.recv().await {
                    send(&plane, &client, job, ping).await;
                }
            };
            let _ = stop.run_until_cancelled(sending).await;
        });
    }
}

/// Pings once. The URL is a secret: it is told neither by the log nor by the error.
async fn send(plane: &Plane, client: &reqwest::Client, job: &'static str, ping: Ping) {
    let Some(url) = plane.alerting.receivers.ping(job) else { return };
    let url = format!("{}{}", url.expose().trim_end_matches('/').replace("{job}", job), ping.path());
    let answer = timeout(ANSWERS_WITHIN, client.get(url).send()).await;
    let is_taken = matches!(&answer, Ok(Ok(answer)) if answer.status().is_success());
    plane.metrics.ping(if is_taken { "taken" } else { "failed" });
    if !is_taken {
        tracing::debug!(job, "a ping of job {job} was not taken");
    }
}

/// Writes how the jobs of this process do.
pub async fn step(plane: &Plane, jobs: impl Iterator<Item = (&'static str, Duration)>) -> Result<(), Error> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let beats: Vec<Beat> = jobs
        .map(|(job, period)| Beat {
            control_plane: plane.own.id.clone(),
            name: plane.own.name.clone(),
            job: job.to_owned(),
            written_ago_ms: 0,
            age_ms: ms(plane.beats.age(job)),
            period_ms: ms(period),
        })
        .collect();
    Ok(plane.store.write_beats(&beats).await?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
