//! The checks themselves. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Certificate, Check, Listening};
use crate::nodes::{NodeView, State};
use crate::secrets::held::Held;
use crate::store::rows::{Database, Lease, Replica};
use crate::store::{SCHEMA, StoreError};

/// Clocks that differ by more make times in logs and pages hard to compare, …
const SKEW_SEEN: Duration = Duration::from_secs(1);
/// … by more than this, certificates and leases end at the wrong time.
const SKEW_MAX: Duration = Duration::from_secs(30);
/// Each change waits for the database a few times.
const ANSWER_SLOW: Duration = Duration::from_millis(100);
/// A job that has not succeeded for so many of its periods stands still.
const PERIODS_MAX: u32 = 5;
/// Enough to order another certificate.
const CERTIFICATE_SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// One that renews itself at half of its life is late when only this part is left.
const OWN_CERTIFICATE_LATE: u32 = 4;
/// So many names are told.
const NAMES_MAX: usize = 5;

pub(super) fn away(error: &StoreError) -> Check {
    if matches!(error, StoreError::Statements) {
        let advice =
            "pool_mode of pgbouncer must be transaction or session, also for this database and this user";
        return Check::fault("database", error.to_string(), advice);
    }
    let advice = "nodes serve from memory and reports wait meanwhile; see that the database runs and can be reached \
                  from here";
    Check::fault("database", error.to_string(), advice)
}

pub(super) fn database(database: &Database, took: Duration) -> Check {
    let Database { kind, version, setup, .. } = database;
    let said = format!("{kind} {version} ({setup}) answers within {} ms", took.as_millis().max(1));
    let has = |word: &str| setup.split(", ").any(|part| part == word);
    if has("read only") || has("in recovery") {
        let advice = "it takes no writes: let --database-url name the primary";
        return Check::fault("database", said, advice);
    }
    if has("fsync off") || has("synchronous_commit off") {
        let advice = "what is acknowledged may be lost when the power goes: turn it on";
        return Check::warning("database", said, advice);
    }
    if took > ANSWER_SLOW {
        let advice = "it is slow or far away: every change waits for it several times";
        return Check::warning("database", said, advice);
    }
    Check::ok("database", said)
}

pub(super) fn schema(found: u64) -> Check {
    match found {
        found if found > SCHEMA => Check::warning(
            "schema",
            format!("the database has version {found}, this program knows {SCHEMA}"),
            "a newer control plane uses it too: upgrade this one",
        ),
        found => Check::ok("schema", format!("version {found}")),
    }
}

/// Whether the secrets can be opened with the keys that were given.
pub(super) fn secrets(held: &Held, sealing_id: Option<&str>) -> Check {
    let count = match held.len() {
        1 => "1 secret".to_owned(),
        count => format!("{count} secrets"),
    };
    if let Some(fault) = held.fault() {
        let advice = "nodes keep the secrets that they have and get none from here: give the key file that sealed \
                      it by --secret-key-file, or set the secret anew";
        return Check::fault("secrets", fault.to_string(), advice);
    }
    let Some(key_id) = sealing_id else {
        return Check::ok("secrets", format!("{count}, and no key to seal any with"));
    };
    match held.sealed_otherwise(key_id) {
        0 => Check::ok("secrets", format!("{count}, sealed with key {key_id}")),
        others => Check::warning(
            "secrets",
            format!("{others} of {count} are sealed with another key than {key_id}"),
            "`sluice secret rekey` seals them anew; then the other key file is of no use any more",
        ),
    }
}

/// Compares a clock that was read within a span of time with ours, read at its beginning.
pub(super) fn clock(name: &'static str, theirs_ms: u64, ours_ms: u64, within: Duration) -> Check {
    let span_ms = within.as_millis() as u64;
    let apart = match theirs_ms {
        theirs if theirs < ours_ms => ours_ms - theirs,
        theirs => theirs.saturating_sub(ours_ms + span_ms),
    };
    let apart = Duration::from_millis(apart);
    let direction = if theirs_ms < ours_ms { "behind" } else { "ahead of" };
    let said = format!("{} {direction} the one here", humantime::format_duration(apart));
    let advice = "let both machines follow the same time (NTP)";
    match apart {
        apart if apart > SKEW_MAX => Check::fault(name, said, advice),
        apart if apart > SKEW_SEEN => Check::warning(name, said, advice),
        _ => Check::ok(name, "the same time as here"),
    }
}

pub(super) fn leader(lease: &Lease, replicas: &[Replica], now_ms: u64) -> Check {
    match lease {
        lease if lease.until_ms <= now_ms => {
            let advice = "one of the control planes takes over within seconds; if none does, none can write to the database";
            Check::warning("leader", "no control plane does the periodic work at the moment", advice)
        }
        lease => {
            let holder = replicas.iter().find(|replica| replica.id == lease.holder);
            let name = holder.map_or(&lease.holder, |holder| &holder.name);
            Check::ok("leader", format!("{name} leads, in epoch {}", lease.epoch))
        }
    }
}

/// Whether what other control planes change is heard of at once, or seen when this one looks by itself.
pub(super) fn changes(are_heard: bool) -> Check {
    if are_heard {
        return Check::ok("changes", "those of other control planes are heard of at once");
    }
    let advice = "where a pooler stands between that hands out connections by transaction (pgbouncer), let \
                  --database-listen-url name the database itself; with one control plane nothing is missing";
    Check::warning("changes", "those of other control planes are seen within 2 s, not at once", advice)
}

/// The control planes that live, this one among them.
pub(super) fn replicas(replicas: &[Replica], own: &str) -> Check {
    let names: Vec<&str> = replicas.iter().map(|replica| replica.name.as_str()).collect();
    let said = format!("{} over this database ({})", replicas.len(), names.join(", "));
    let ours = replicas.iter().find(|replica| replica.id == own);
    let version = |replica: &Replica| minor(&replica.version);
    if replicas.iter().any(|replica| ours.is_some_and(|ours| version(ours) != version(replica))) {
        let versions: Vec<&str> = replicas.iter().map(|replica| replica.version.as_str()).collect();
        let advice = "that is for the time of an upgrade: end it soon";
        return Check::warning(
            "control planes",
            format!("{said}, of versions {}", versions.join(", ")),
            advice,
        );
    }
    Check::ok("control planes", said)
}

/// Jobs with their periods and the time since they last succeeded; `None` for one that never did.
pub(super) fn jobs(ages: impl IntoIterator<Item = (&'static str, Duration, Option<Duration>)>) -> Check {
    let (mut standing, mut count) = (Vec::new(), 0);
    for (name, period, age) in ages {
        count += 1;
        if age.is_none_or(|age| age > period * PERIODS_MAX) {
            standing.push(name);
        }
    }
    if standing.is_empty() {
        return Check::ok("jobs", format!("all {count} run"));
    }
    let said = format!("did not succeed for a while: {}", standing.join(", "));
    Check::fault("jobs", said, "the log says why; sluice_job_failures_total counts how often")
}

pub(super) fn nodes(nodes: &[NodeView]) -> Vec<Check> {
    let mut by_state: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        by_state.entry(node.state.as_str()).or_default().push(&node.id);
    }
    let wrong: Vec<String> = by_state
        .iter()
        .filter(|(state, _)| ![State::InSync.as_str(), State::Drained.as_str()].contains(state))
        .map(|(state, ids)| format!("{} {state} ({})", ids.len(), names(ids)))
        .collect();
    let fleet = if wrong.is_empty() {
        Check::ok("nodes", format!("{} known, none in trouble", nodes.len()))
    } else {
        let advice = "`sluice nodes list` says what each of them runs and why it refused what it should run";
        Check::warning("nodes", wrong.join(", "), advice)
    };
    let ours = minor(env!("CARGO_PKG_VERSION"));
    let strange: Vec<&str> = nodes
        .iter()
        .filter(|node| node.connected && !is_supported(minor(&node.facts.version), ours))
        .map(|node| node.id.as_str())
        .collect();
    let versions = if strange.is_empty() {
        Check::ok(
            "versions",
            format!("every node works with this control plane ({})", env!("CARGO_PKG_VERSION")),
        )
    } else {
        let said = format!("too far from {}: {}", env!("CARGO_PKG_VERSION"), names(&strange));
        Check::warning("versions", said, "nodes may be two minor versions older, or one newer: upgrade them")
    };
    vec![fleet, versions]
}

fn names(ids: &[&str]) -> String {
    let more = ids.len().saturating_sub(NAMES_MAX);
    let told = ids.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { told } else { format!("{told} and {more} more") }
}

/// Major and minor of a version.
fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Nodes from two minor versions before this control plane to one after it.
fn is_supported(node: Option<(u64, u64)>, ours: Option<(u64, u64)>) -> bool {
    let (Some((major, node)), Some((our_major, ours))) = (node, ours) else { return false };
    major == our_major && node + 2 >= ours && node <= ours + 1
}

pub(super) fn listener(listener: &Listening) -> Check {
    let Listening { name, address, shows } = listener;
    match (*shows != Certificate::None, address.ip().to_canonical().is_loopback()) {
        (true, _) => Check::ok("listener", format!("{name}: TLS at {address}")),
        (false, true) => {
            Check::ok("listener", format!("{name}: in clear at {address}, for this machine alone"))
        }
        (false, false) => Check::warning(
            "listener",
            format!("{name}: in clear at {address}"),
            "it is for a proxy in front that terminates TLS: see that nobody else reaches it",
        ),
    }
}

pub(super) fn certificate(listener: &Listening, expires_at_ms: u64, now_ms: u64) -> Check {
    let Listening { name, shows, .. } = listener;
    let left = Duration::from_millis(expires_at_ms.saturating_sub(now_ms));
    let (soon, renewal, advice) = match shows {
        Certificate::Own { life } => (
            *life / OWN_CERTIFICATE_LATE,
            ", and renews itself",
            "it should have renewed itself: the log says why not",
        ),
        _ => (CERTIFICATE_SOON, "", "put another one in its files: it is taken without a restart"),
    };
    let holds = rough(left);
    match left {
        Duration::ZERO => Check::fault("certificate", format!("{name}: it has expired"), advice),
        left if left < soon => {
            Check::warning("certificate", format!("{name}: it expires in {holds}"), advice)
        }
        _ => Check::ok("certificate", format!("{name}: it holds for {holds}{renewal}")),
    }
}

/// In whole days, or hours, or minutes: the largest of which there are two.
fn rough(time: Duration) -> String {
    match time.as_secs() / 60 {
        minutes if minutes < 2 * 60 => format!("{minutes} minutes"),
        minutes if minutes < 2 * 24 * 60 => format!("{} hours", minutes / 60),
        minutes => format!("{} days", minutes / 24 / 60),
    }
}
