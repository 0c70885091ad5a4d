//! The policy keys of one table → a [`Layer`].

use crate::catalog::keys::{BREAKER, GATE, Keys, TIMEOUTS};
use crate::catalog::site::{Report, Site, Table};
use crate::policy::{Layer, Until};

/// The most failures that a breaker may wait for: it keeps the time of each.
const FAILURES_MAX: u64 = 1000;

/// Reads the policy keys of a table. Keys that may not stand there are faults already and are left
/// out by `keys`.
pub(super) fn layer(table: &Table<'_>, keys: &Keys, report: &mut Report) -> Layer {
    let mut layer = Layer::default();
    let is_here = |key: &str| keys.standing(key) == crate::catalog::keys::Standing::Now;
    if let Some(site) = table.site("breaker").filter(|_| is_here("breaker")) {
        breaker(&site, &mut layer, report);
    }
    if let Some(site) = table.site("gate") {
        gate(&site, &mut layer, report);
    }
    if let Some(site) = table.site("timeouts") {
        timeouts(&site, &mut layer, report);
    }
    layer
}

fn breaker(site: &Site<'_>, layer: &mut Layer, report: &mut Report) {
    let Some(table) = site.table(&BREAKER, report) else { return };
    let failures = table.site("failures").and_then(|site| site.count(FAILURES_MAX, report));
    layer.breaker_failures = failures.and_then(|count| u32::try_from(count).ok());
    layer.breaker_window = table.site("window").and_then(|site| site.duration(report));
    layer.breaker_cooldown = table.site("cooldown").and_then(|site| site.duration(report));
}

fn gate(site: &Site<'_>, layer: &mut Layer, report: &mut Report) {
    let Some(table) = site.table(&GATE, report) else { return };
    layer.gate_timeout = table.site("timeout").and_then(|site| site.duration(report));
    layer.gate_until = table.site("until").and_then(|site| {
        let text = site.text(report)?;
        let until = Until::ALL.into_iter().find(|until| until.as_str() == text);
        if until.is_none() {
            let message = format!("must be \"content\" or \"complete\", not {text:?}");
            report.unknown(&site.place, message, text, Until::ALL.map(Until::as_str));
        }
        until
    });
}

fn timeouts(site: &Site<'_>, layer: &mut Layer, report: &mut Report) {
    let Some(table) = site.table(&TIMEOUTS, report) else { return };
    layer.timeouts_connect = table.site("connect").and_then(|site| site.duration(report));
    layer.timeouts_headers = table.site("headers").and_then(|site| site.duration(report));
    layer.timeouts_idle = table.site("idle").and_then(|site| site.duration(report));
}
