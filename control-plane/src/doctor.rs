//! What is wrong and what to do about it. Each check is a pure function of what was found; [`examine`] finds it.

mod checks;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::jobs;
use crate::plane::Plane;
use crate::store::rows::Database;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works and wants a person all the same.
    Warning,
    /// It does not work, or will not for long.
    Fault,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A word for it.
    pub name: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found.
    pub message: String,
    /// What to do about it; empty where nothing is to be done.
    pub advice: &'static str,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Check { name, verdict: Verdict::Ok, message: message.into(), advice: "" }
    }

    fn warning(name: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Check { name, verdict: Verdict::Warning, message: message.into(), advice }
    }

    fn fault(name: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Check { name, verdict: Verdict::Fault, message: message.into(), advice }
    }
}

/// A listener of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub address: SocketAddr,
    /// Whose certificate it shows.
    pub shows: Certificate,
}

/// Where a listener's certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// There is none: it speaks in clear.
    None,
    /// From files, which the operator replaces.
    Given,
    /// From the fleet's own authority, which renews it at half of its life.
    Own {
        /// How long each holds.
        life: Duration,
    },
}

/// Looks at everything. A database that is away is a finding, not an error.
pub async fn examine(plane: &Plane, caller_ms: Option<u64>) -> Result<Vec<Check>, Error> {
    let now_ms = plane.clock.now_ms();
    let asked = Instant::now();
    let database = plane.store.examine().await;
    let took = asked.elapsed();
    let mut found = Vec::new();
    match &database {
        Ok(database) => {
            found.extend(of_database(plane, database, now_ms, took));
            found.extend(plane.metrics.are_changes_heard().map(checks::changes));
        }
        Err(error) => found.push(checks::away(error)),
    }
    if let Some(caller_ms) = caller_ms {
        found.push(checks::clock("clock of the caller", caller_ms, now_ms, Duration::ZERO));
    }
    let ages = jobs::names().map(|(name, period)| {
        let last_ms = plane.metrics.job_last_success_ms(name);
        (name, period, last_ms.map(|at_ms| Duration::from_millis(now_ms.saturating_sub(at_ms))))
    });
    found.push(checks::jobs(ages));
    let wanted = plane.head.now();
    found.push(checks::replicas(&plane.nodes.control_planes(), &plane.own.id));
    found.extend(checks::nodes(&plane.nodes.list(wanted.as_deref())));
    found.extend(wanted.map(|wanted| checks::secrets(&wanted.target.secrets, plane.keyring.sealing_id())));
    for listener in &plane.listeners {
        found.push(checks::listener(listener));
        if let Some(expires_at_ms) = plane.metrics.certificate_expires_at_ms(listener.name) {
            found.push(checks::certificate(listener, expires_at_ms, now_ms));
        }
    }
    Ok(found)
}

fn of_database(plane: &Plane, database: &Database, now_ms: u64, took: Duration) -> [Check; 4] {
    [
        checks::database(database, took),
        checks::schema(database.schema),
        checks::clock("clock of the database", database.now_ms, now_ms, took),
        checks::leader(&database.lease, &plane.nodes.control_planes(), database.now_ms),
    ]
}
