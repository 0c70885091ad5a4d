//! What follows from what is found: which alerts are raised and which are over, and what receivers are told when.
//! Alerts of one kind go into one notice; a kind has its notices at a distance; what goes on is told again, seldom; that
//! something is over is told to those who know that it was so. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Alert, Finding, Group, Kind, Silence, Timing, Told};

/// What is kept of alerts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Books {
    /// Alerts of which something is still to be said: those that are so, and those whose end was not told.
    pub alerts: Vec<Alert>,
    /// When receivers were last told of each kind.
    pub groups: BTreeMap<Kind, Group>,
    /// Silences that have not ended.
    pub silences: Vec<Silence>,
}

/// What receivers are told at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The same, however often it is sent.
    pub id: String,
    /// What it is about.
    pub kind: Kind,
    /// When it was made.
    pub at_ms: u64,
    /// What is so.
    pub active: Vec<Alert>,
    /// What is over since the notice before.
    pub over: Vec<Alert>,
}

/// What one look led to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Alerts that are new or changed.
    pub changed: Vec<Alert>,
    /// Kinds of which receivers are told now.
    pub groups: BTreeMap<Kind, Group>,
    /// What they are told.
    pub notices: Vec<Notice>,
}

impl Books {
    /// Whether an operator does not want to be told of it now.
    pub fn is_silenced(&self, alert: &Alert, now_ms: u64) -> bool {
        self.silences.iter().any(|silence| silence.covers(alert, now_ms))
    }

    /// The same books after a step.
    #[cfg(test)]
    pub fn after(mut self, step: &Step) -> Self {
        for changed in &step.changed {
            self.alerts.retain(|alert| alert.id != changed.id);
            if changed.is_active() || changed.told != Told::Over {
                self.alerts.push(changed.clone());
            }
        }
        self.groups.extend(step.groups.clone());
        self
    }
}

/// Takes in what is found now.
pub fn step(
    books: &Books,
    found: &[Finding],
    timing: &Timing,
    now_ms: u64,
    mut new_id: impl FnMut() -> String,
) -> Step {
    let mut alerts: Vec<Alert> = books.alerts.clone();
    for alert in alerts.iter_mut().filter(|alert| alert.is_active()) {
        let found = found.iter().find(|finding| is_same(alert, finding));
        look(alert, found, timing, now_ms);
    }
    for finding in found {
        if !alerts.iter().any(|alert| alert.is_active() && is_same(alert, finding)) {
            alerts.push(Alert {
                id: new_id(),
                kind: finding.kind,
                object: finding.object.clone(),
                summary: finding.summary.clone(),
                raised_at_ms: now_ms,
                gone_since_ms: 0,
                resolved_at_ms: 0,
                told: Told::Nothing,
            });
        }
    }
    let mut step = Step::default();
    for kind in Kind::ALL {
        let group = books.groups.get(&kind).copied().unwrap_or_default();
        let mut of_kind: Vec<&mut Alert> = alerts.iter_mut().filter(|alert| alert.kind == kind).collect();
        if let Some(notice) = tell(&mut of_kind, books, group, timing, now_ms) {
            step.groups.insert(kind, Group { number: group.number + 1, told_at_ms: now_ms });
            step.notices.push(notice);
        }
    }
    let was = |alert: &Alert| books.alerts.iter().any(|before| before == alert);
    step.changed = alerts.into_iter().filter(|alert| !was(alert)).collect();
    step
}

fn is_same(alert: &Alert, finding: &Finding) -> bool {
    alert.kind == finding.kind && alert.object == finding.object
}

/// What becomes of an alert that is so.
fn look(alert: &mut Alert, found: Option<&Finding>, timing: &Timing, now_ms: u64) {
    match found {
        Some(finding) => {
            alert.gone_since_ms = 0;
            alert.summary.clone_from(&finding.summary);
        }
        None if alert.gone_since_ms == 0 => alert.gone_since_ms = now_ms.max(1),
        None => {
            if is_over(alert.gone_since_ms, timing.resolve_after, now_ms) {
                alert.resolved_at_ms = now_ms.max(1);
            }
        }
    }
}

/// Makes the notice of a kind, if it is time for one, and notes in the alerts that they are told.
fn tell(
    alerts: &mut [&mut Alert],
    books: &Books,
    group: Group,
    timing: &Timing,
    now_ms: u64,
) -> Option<Notice> {
    let kind = alerts.first()?.kind;
    let is_silenced = |alert: &Alert| books.is_silenced(alert, now_ms);
    for alert in alerts.iter_mut().filter(|alert| alert.told == Told::Nothing && !alert.is_active()) {
        if is_silenced(alert) {
            alert.told = Told::Over;
        }
    }
    let news = alerts.iter().filter_map(|alert| match (alert.told, alert.is_active()) {
        (Told::Nothing, true) if !is_silenced(alert) => Some(alert.raised_at_ms),
        (Told::Nothing, false) => Some(alert.raised_at_ms),
        (Told::Raised, false) => Some(alert.resolved_at_ms),
        (Told::Nothing | Told::Raised, true) | (Told::Over, _) => None,
    });
    let goes_on = |alert: &Alert| alert.told == Told::Raised && alert.is_active() && !is_silenced(alert);
    let is_due = match news.min() {
        Some(first) => {
            is_over(first, timing.wait, now_ms)
                && (group.number == 0 || is_over(group.told_at_ms, timing.interval, now_ms))
        }
        None => alerts.iter().any(|alert| goes_on(alert)) && is_over(group.told_at_ms, timing.repeat, now_ms),
    };
    if !is_due {
        return None;
    }
    let (mut active, mut over) = (Vec::new(), Vec::new());
    for alert in alerts.iter_mut() {
        if !alert.is_active() && alert.told != Told::Over {
            alert.told = Told::Over;
            over.push((**alert).clone());
        } else if alert.is_active() && !is_silenced(alert) {
            alert.told = Told::Raised;
            active.push((**alert).clone());
        }
    }
    // Not the number alone: receivers may be told by several fleets.
    let id = format!("{kind}-{}-{now_ms}", group.number + 1);
    Some(Notice { id, kind, at_ms: now_ms, active, over })
}

fn is_over(since_ms: u64, time: Duration, now_ms: u64) -> bool {
    now_ms.saturating_sub(since_ms) >= u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
