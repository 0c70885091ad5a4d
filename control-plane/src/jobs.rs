//! What runs by the clock. Each job takes no input, does the same when it runs twice, and says when it
//! last succeeded.

mod roll_up;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use common::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::alerts;
use crate::beats;
use crate::error::Error;
use crate::identity::rotation;
use crate::leader::RENEW_EVERY;
use crate::plane::Plane;
use crate::revision::head::Wanted;
use crate::rollout;
use crate::store::{News, StoreError};
use roll_up::roll_up;

/// Changes of other control planes are seen this soon.
const HEAD_EVERY: Duration = Duration::from_secs(2);
/// A connection on which changes are announced is opened again after this, …
const HEAR_AGAIN: Duration = Duration::from_secs(5);
/// … and one on which nothing was heard after this: somebody has to change how the database is reached.
const HEAR_AGAIN_DEAF: Duration = Duration::from_secs(60);
/// Where nothing was announced for so long the connection may be dead, which only a new one shows.
const SILENT_AFTER: Duration = Duration::from_secs(60);
/// What other control planes change of the tokens is seen this soon.
const ACCESS_EVERY: Duration = Duration::from_secs(2);
/// What is known of nodes is written this often.
const NODES_EVERY: Duration = Duration::from_secs(1);
/// A rollout is judged this often, and besides when a node or what is wanted changes, …
const ROLLOUT_EVERY: Duration = Duration::from_secs(1);
/// … of which many at once are one.
const SETTLE: Duration = Duration::from_millis(100);
/// Control planes say that they live, and look for others, this often.
const REPLICAS_EVERY: Duration = Duration::from_secs(2);
/// Enrolments and revocations by other control planes are seen this soon: a stream of a revoked node ends within 5 s.
const IDENTITIES_EVERY: Duration = Duration::from_secs(2);
const ROLLUP_EVERY: Duration = Duration::from_secs(5 * 60);
/// How jobs do is written this often, …
const BEATS_EVERY: Duration = Duration::from_secs(5);
/// … and what is wrong is looked for this often.
const ALERTS_EVERY: Duration = Duration::from_secs(5);
/// What is to be told is told at once; what was not taken is looked at again this often.
const DELIVERIES_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
enum Job {
    Head,
    Leader,
    Access,
    Replicas,
    Nodes,
    Rollout,
    Identities,
    Rollup,
    Beats,
    Alerts,
    Deliveries,
}

const JOBS: [Job; 11] = [
    Job::Head,
    Job::Leader,
    Job::Access,
    Job::Replicas,
    Job::Nodes,
    Job::Identities,
    Job::Rollout,
    Job::Rollup,
    Job::Beats,
    Job::Alerts,
    Job::Deliveries,
];

/// Every job and how often it runs.
pub fn names() -> impl Iterator<Item = (&'static str, Duration)> {
    JOBS.into_iter().map(|job| (job.name(), job.period()))
}

/// What lets a job run early.
enum Wakes {
    Rollout { nodes: watch::Receiver<u64>, wanted: watch::Receiver<Option<Arc<Wanted>>> },
    News(watch::Receiver<u64>),
}

impl Wakes {
    /// Returns at the next change.
    async fn next(wakes: &mut Option<Wakes>) {
        match wakes {
            Some(Wakes::Rollout { nodes, wanted }) => {
                tokio::select! {
                    _ = nodes.changed() => {}
                    _ = wanted.changed() => {}
                }
                sleep(SETTLE).await;
            }
            Some(Wakes::News(news)) => {
                // Its sender lives as long as the plane.
                let _ = news.changed().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Starts all jobs.
pub fn start(plane: &Arc<Plane>, tasks: &Tasks) {
    let hearing = plane.clone();
    tasks.spawn("hear of changes", |stop| async move {
        let _ = stop.run_until_cancelled(Box::pin(hear(&hearing))).await;
    });
    for job in JOBS {
        let plane = plane.clone();
        tasks.spawn(job.name(), |stop| async move {
            let mut ticks = interval(job.period());
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut wakes = job.wakes(&plane);
            let mut is_failing = false;
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = ticks.tick() => {}
                    () = Wakes::next(&mut wakes) => {}
                }
                is_failing = job.step(&plane, is_failing).await;
            }
        });
    }
}

/// Looks as soon as another control plane has changed something. Only a speed-up: while nothing can be heard, the job
/// that looks by the clock is enough.
async fn hear(plane: &Plane) {
    let mut is_told = false;
    loop {
        let pause = match plane.store.listen().await {
            Ok(None) => return,
            Ok(Some(mut news)) => {
                plane.metrics.set_changes_heard(true);
                is_told = false;
                match look_at_changes(plane, &mut news).await {
                    Ended::Silent => continue,
                    Ended::Lost => HEAR_AGAIN,
                }
            }
            Err(StoreError::Deaf) => {
                if !is_told {
                    tracing::warn!(
                        "changes of other control planes are seen within {} s, not at once: nothing is heard of what \
                         is announced in the database; behind a pooler give --database-listen-url",
                        HEAD_EVERY.as_secs()
                    );
                }
                is_told = true;
                HEAR_AGAIN_DEAF
            }
            Err(error) => {
                tracing::debug!(%error, "changes of other control planes cannot be heard of");
                HEAR_AGAIN
            }
        };
        plane.metrics.set_changes_heard(false);
        sleep(pause).await;
    }
}

/// How hearing of changes ends.
enum Ended {
    Lost,
    Silent,
}

/// Looks at what each change did, until the connection is lost, or was silent for so long that it may be dead.
async fn look_at_changes(plane: &Plane, news: &mut News) -> Ended {
    loop {
        match timeout(SILENT_AFTER, news.heard()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ended::Lost,
            Err(_elapsed) => return Ended::Silent,
        }
        if let Err(error) = plane.head.refresh(&plane.store).await {
            tracing::debug!(%error, "a change that was announced cannot be read yet");
        }
        // It may be that the leader has left.
        if plane.leader.epoch().is_none()
            && let Err(error) = plane.leader.claim(&plane.store).await
        {
            tracing::debug!(%error, "whether anybody leads cannot be asked yet");
        }
    }
}

impl Job {
    fn name(self) -> &'static str {
        match self {
            Job::Head => "head",
            Job::Leader => "leader",
            Job::Access => "access",
            Job::Replicas => "replicas",
            Job::Nodes => "nodes",
            Job::Rollout => "rollout",
            Job::Identities => "identities",
            Job::Rollup => "rollup",
            Job::Beats => "beats",
            Job::Alerts => "alerts",
            Job::Deliveries => "deliveries",
        }
    }

    fn period(self) -> Duration {
        match self {
            Job::Head => HEAD_EVERY,
            Job::Leader => RENEW_EVERY,
            Job::Access => ACCESS_EVERY,
            Job::Replicas => REPLICAS_EVERY,
            Job::Nodes => NODES_EVERY,
            Job::Rollout => ROLLOUT_EVERY,
            Job::Identities => IDENTITIES_EVERY,
            Job::Rollup => ROLLUP_EVERY,
            Job::Beats => BEATS_EVERY,
            Job::Alerts => ALERTS_EVERY,
            Job::Deliveries => DELIVERIES_EVERY,
        }
    }

    fn wakes(self, plane: &Plane) -> Option<Wakes> {
        match self {
            Job::Rollout => {
                Some(Wakes::Rollout { nodes: plane.nodes.subscribe(), wanted: plane.head.subscribe() })
            }
            Job::Deliveries => Some(Wakes::News(plane.alerting.news.subscribe())),
            Job::Head
            | Job::Leader
            | Job::Access
            | Job::Replicas
            | Job::Nodes
            | Job::Identities
            | Job::Rollup
            | Job::Beats
            | Job::Alerts => None,
        }
    }

    /// Runs once. Returns whether it failed; the first of several failures is logged.
    async fn step(self, plane: &Arc<Plane>, was_failing: bool) -> bool {
        let name = self.name();
        plane.beats.began(name);
        let done = match self {
            Job::Head => plane.head.refresh(&plane.store).await,
            Job::Leader => plane.leader.claim(&plane.store).await,
            Job::Access => look_at_access(plane).await,
            Job::Replicas => look_for_others(plane).await,
            Job::Nodes => share_nodes(plane).await,
            Job::Rollout => rollout::run::step(plane).await,
            Job::Identities => look_at_identities(plane).await,
            Job::Rollup => roll_up(plane).await,
            Job::Beats => beats::step(plane, names()).await,
            Job::Alerts => alerts::run::step(plane).await,
            Job::Deliveries => alerts::deliver::step(plane).await,
        };
        match done {
            Ok(()) => {
                plane.beats.succeeded(name);
                plane.metrics.job_succeeded(name, plane.clock.now_ms());
                if was_failing {
                    tracing::info!(job = name, "job {name} succeeds again");
                }
                false
            }
            Err(error) => {
                plane.beats.failed(name);
                plane.metrics.job_failed(name);
                if !was_failing {
                    let cause = error.source().map(ToString::to_string).unwrap_or_default();
                    tracing::warn!(job = name, %error, cause, "job {name} failed and is tried again");
                }
                true
            }
        }
    }
}

async fn look_at_access(plane: &Plane) -> Result<(), Error> {
    plane.access.refresh(&plane.store).await?;
    let uses = plane.access.take_uses(plane.clock.now_ms());
    if !uses.is_empty() {
        plane.store.admin_tokens_used(&uses).await?;
    }
    Ok(())
}

/// Says that this control plane lives, and sees which others do.
async fn look_for_others(plane: &Plane) -> Result<(), Error> {
    plane.nodes.see(plane.store.beat(&plane.own).await?);
    Ok(())
}

/// Writes down what is known of nodes here, and reads what other control planes wrote.
async fn share_nodes(plane: &Plane) -> Result<(), Error> {
    keep_nodes(plane).await?;
    plane.look_at_nodes().await
}

/// Gives back what others can go on with at once: the lease of the leader, and the nodes.
pub async fn leave(plane: &Plane) -> Result<(), Error> {
    plane.leader.resign(&plane.store).await?;
    plane.store.leave(&plane.own.id).await?;
    plane.store.leave_beats(&plane.own.id).await?;
    Ok(plane.store.announce().await?)
}

/// Writes down what is known of nodes.
pub async fn keep_nodes(plane: &Plane) -> Result<(), Error> {
    plane.nodes.look_at_all(plane.head.now().as_deref());
    let cloned = plane.nodes.take_clones();
    if !cloned.is_empty() {
        plane.store.note_cloned(&cloned).await?;
    }
    let nodes = plane.nodes.take_dirty();
    if nodes.is_empty() {
        return Ok(());
    }
    let kept = plane.store.upsert_nodes(&plane.own.id, &nodes).await;
    if kept.is_err() {
        plane.nodes.give_back(&nodes);
    }
    Ok(kept?)
}

async fn look_at_identities(plane: &Plane) -> Result<(), Error> {
    plane.identity.nodes.refresh(&plane.store).await?;
    rotation::step(plane).await
}
