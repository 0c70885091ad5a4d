//! What operators ask for: the list, a silence, its end.

use std::time::Duration;

use serde_json::{Value, json};

use super::message::runbook;
use super::{Alert, Delivery, Kind, Silence, Told};
use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;

/// What could not be delivered is shown for so long.
const UNDELIVERED_SHOWN: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest silence, …
const SILENCE_MIN: Duration = Duration::from_secs(60);
/// … and the longest: what is silenced for good is not looked at.
const SILENCE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// An object or a reason.
const WORDS_MAX: usize = 500;

/// Everything that there is to see of alerts.
#[derive(Debug)]
pub struct Listed {
    /// Newest first.
    pub alerts: Vec<Shown>,
    /// Those that last.
    pub silences: Vec<Silence>,
    /// What a receiver did not take at its last try.
    pub undelivered: Vec<Delivery>,
}

/// An alert and what is to be said of it now.
#[derive(Debug)]
pub struct Shown {
    /// The alert.
    pub alert: Alert,
    /// Whether receivers were told of it.
    pub is_told: bool,
    /// Whether a silence is for it now.
    pub is_silenced: bool,
    /// Where it is written what to do.
    pub runbook: String,
}

/// Alerts that are so, and those that were over since `since_ms`; 0 for none of them.
pub async fn list(plane: &Plane, since_ms: u64) -> Result<Listed, Error> {
    let now_ms = plane.clock.now_ms();
    let since_ms = if since_ms == 0 { u64::MAX } else { since_ms };
    let alerts = plane.store.alerts(since_ms).await?;
    let books = plane.store.alert_books(now_ms).await?;
    let day_ago = now_ms.saturating_sub(UNDELIVERED_SHOWN.as_millis() as u64);
    let undelivered = plane.store.undelivered(day_ago).await?;
    let shown = |alert: Alert| Shown {
        is_told: alert.told != Told::Nothing,
        is_silenced: alert.is_active() && books.is_silenced(&alert, now_ms),
        runbook: runbook(&plane.alerting.runbooks, alert.kind.as_str()),
        alert,
    };
    let alerts = alerts.into_iter().map(shown).collect();
    Ok(Listed { alerts, silences: books.silences, undelivered })
}

/// What is to be silenced.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The name of a kind; empty for every kind.
    pub kind: &'a str,
    /// Empty for every object.
    pub object: &'a str,
    /// For how long.
    pub length: Duration,
    /// Why.
    pub reason: &'a str,
}

/// Tells nobody of some alerts for a while.
pub async fn silence(plane: &Plane, caller: &Caller, ask: Ask<'_>) -> Result<Silence, Error> {
    let kind = match ask.kind {
        "" => None,
        name => Some(Kind::named(name).ok_or_else(|| no_such(name))?),
    };
    for (field, text) in [("object", ask.object), ("reason", ask.reason)] {
        if text.len() > WORDS_MAX || text.chars().any(char::is_control) {
            let message = format!("at most {WORDS_MAX} bytes of printable characters");
            return Err(Error::Argument { field, message });
        }
    }
    if ask.length < SILENCE_MIN || ask.length > SILENCE_MAX {
        let message = "from a minute to 30 days".to_owned();
        return Err(Error::Argument { field: "for_seconds", message });
    }
    let now_ms = plane.clock.now_ms();
    let new = Silence {
        id: format!("s{}", &uuid::Uuid::new_v4().simple().to_string()[..10]),
        kind,
        object: ask.object.to_owned(),
        reason: ask.reason.to_owned(),
        created_by: caller.name.clone(),
        created_at_ms: now_ms,
        until_ms: now_ms + ask.length.as_millis() as u64,
    };
    let entry = plane.entry(caller, "alert.silence", &new.id).with(&Value::Null, &told(&new));
    plane.store.silence_alerts(&new, &entry).await?;
    Ok(new)
}

/// Ends a silence.
pub async fn unsilence(plane: &Plane, caller: &Caller, id: &str) -> Result<Silence, Error> {
    let none = || Error::NotFound { what: "silence", name: id.to_owned() };
    // No id has a zero in it, and not every database takes one as text.
    if id.contains('\0') {
        return Err(none());
    }
    let now_ms = plane.clock.now_ms();
    let entry = plane.entry(caller, "alert.unsilence", id).with(&Value::Null, &json!({"until_ms": now_ms}));
    let ended = plane.store.unsilence_alerts(id, now_ms, &entry).await?;
    ended.ok_or_else(none)
}

fn told(silence: &Silence) -> Value {
    let Silence { kind, object, reason, until_ms, .. } = silence;
    json!({"kind": kind.map(Kind::as_str), "object": object, "reason": reason, "until_ms": until_ms})
}

fn no_such(name: &str) -> Error {
    let kinds = Kind::ALL.map(Kind::as_str).join(", ");
    Error::Argument { field: "kind", message: format!("no such kind {name:?}; there are {kinds}") }
}
