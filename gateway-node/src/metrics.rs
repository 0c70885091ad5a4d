//! Every metric family of the node. A registry per instance, nothing global; labels come from closed
//! sets only: models and channels of the catalog, classes, outcomes, decisions, jobs.

mod channel;
mod labels;

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use common::window::RequestOutcome;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::dialect::usage::{Spent, Usage};

pub use channel::ChannelMetrics;
use labels::{
    AttemptLabels, ChannelLabels, DecisionLabels, JobLabels, ListenerLabels, PlaceLabels, RequestLabels,
    ResultLabels, RouteLabels, UsageLabels,
};

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds, from a fast upstream to the headers timeout.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0];

type Seconds = Gauge<f64, AtomicU64>;

/// The metrics of one node. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    in_flight: Gauge,
    attempts: Family<AttemptLabels, Counter>,
    decisions: Family<DecisionLabels, Counter>,
    held: Histogram,
    headers: Family<ChannelLabels, Histogram>,
    tokens: Family<UsageLabels, Counter>,
    units: Family<UsageLabels, Counter<f64, AtomicU64>>,
    unreported: Family<RouteLabels, Counter>,
    open: Family<ChannelLabels, Gauge>,
    suspended: Family<ChannelLabels, Gauge>,
    credential_faults: Family<ChannelLabels, Gauge>,
    credential_changes: Counter,
    channels: Mutex<HashSet<String>>,
    revision: Gauge,
    epoch: Gauge,
    connected: Gauge,
    certificates: Family<ListenerLabels, Gauge>,
    updates: Family<ResultLabels, Counter>,
    spooled: Gauge,
    memory: Family<PlaceLabels, Gauge>,
    journal_failures: Counter,
    bindings: Gauge,
    unreported_bindings: Gauge,
    binding_failures: Counter,
    lookups: Family<ResultLabels, Counter>,
    records_waiting: Gauge,
    records_lost: Counter,
    beats: Family<JobLabels, Seconds>,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Metrics {
    /// All families, at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("sluice");
        let inner = Inner {
            requests: Family::default(),
            in_flight: Gauge::default(),
            attempts: Family::default(),
            decisions: Family::default(),
            held: seconds(),
            headers: Family::new_with_constructor(seconds),
            tokens: Family::default(),
            units: Family::default(),
            unreported: Family::default(),
            open: Family::default(),
            suspended: Family::default(),
            credential_faults: Family::default(),
            credential_changes: Counter::default(),
            channels: Mutex::default(),
            revision: Gauge::default(),
            epoch: Gauge::default(),
            connected: Gauge::default(),
            certificates: Family::default(),
            updates: Family::default(),
            spooled: Gauge::default(),
            memory: Family::default(),
            journal_failures: Counter::default(),
            bindings: Gauge::default(),
            unreported_bindings: Gauge::default(),
            binding_failures: Counter::default(),
            lookups: Family::default(),
            records_waiting: Gauge::default(),
            records_lost: Counter::default(),
            beats: Family::default(),
            registry: Registry::default(),
        };
        let r = &mut registry;
        r.register("requests", "Requests by how they ended", inner.requests.clone());
        r.register("requests_in_flight", "Requests being served now", inner.in_flight.clone());
        r.register("attempts", "Attempts on a channel by how they ended", inner.attempts.clone());
        r.register("gate_decisions", "What ended the holding back of an answer", inner.decisions.clone());
        r.register_with_unit("gate_held", "How long answers were held", Unit::Seconds, inner.held.clone());
        r.register_with_unit("headers", "Time to the response headers", Unit::Seconds, inner.headers.clone());
        r.register("tokens", "Tokens that upstreams reported of committed answers", inner.tokens.clone());
        r.register("units", "The same, where something else is counted", inner.units.clone());
        r.register(
            "usage_unreported",
            "Committed answers whose upstream did not say what they used",
            inner.unreported.clone(),
        );
        r.register("breaker_open", "1 while the breaker keeps the channel out", inner.open.clone());
        r.register("channel_suspended", "1 while the channel is suspended", inner.suspended.clone());
        r.register(
            "credential_fault",
            "1 while the channel's credential cannot be had, though the last one that could may be shown on",
            inner.credential_faults.clone(),
        );
        r.register(
            "credential_changes",
            "Credentials that were taken from a file or a secret without a new revision",
            inner.credential_changes.clone(),
        );
        r.register("revision", "Catalog revision that is served, 0 without any", inner.revision.clone());
        r.register("epoch", "Epoch of the control plane that is obeyed", inner.epoch.clone());
        r.register("connected", "1 while the control plane's stream is open", inner.connected.clone());
        r.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate in use ends",
            inner.certificates.clone(),
        );
        r.register("config_updates", "Updates that were taken or refused", inner.updates.clone());
        r.register("spooled_windows", "Sealed windows that wait to be counted", inner.spooled.clone());
        r.register_with_unit("memory", "What is held of bodies now", Unit::Bytes, inner.memory.clone());
        r.register(
            "journal_write_failures",
            "Appends to the journal that failed; their counts were kept in memory",
            inner.journal_failures.clone(),
        );
        r.register("bindings_known", "Things with an id whose channel is known here", inner.bindings.clone());
        r.register(
            "bindings_unreported",
            "Those of them that the control plane may not know",
            inner.unreported_bindings.clone(),
        );
        r.register(
            "binding_write_failures",
            "Appends to the journal of bindings that failed; they were kept in memory",
            inner.binding_failures.clone(),
        );
        r.register("binding_lookups", "Ids that the control plane was asked for", inner.lookups.clone());
        r.register_with_unit(
            "records_spooled",
            "Records of requests that wait for the control plane",
            Unit::Bytes,
            inner.records_waiting.clone(),
        );
        r.register(
            "records_lost",
            "Records of requests for which there was no room, or that nobody would take",
            inner.records_lost.clone(),
        );
        r.register_with_unit(
            "job_last_success_timestamp",
            "When a periodic job last succeeded",
            Unit::Seconds,
            inner.beats.clone(),
        );
        r.register("build", "The running version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Metrics(Arc::new(Inner { registry, ..inner }))
    }

    /// Counts a request. A model that is not in the catalog is passed as `""`: callers choose its name.
    pub fn request(&self, model: &str, outcome: RequestOutcome) {
        let labels = RequestLabels { model: model.to_owned(), outcome: outcome.as_str() };
        self.0.requests.get_or_create(&labels).inc();
    }

    /// Counts what an answer of a channel used.
    pub fn spent(&self, model: &str, channel: &str, spent: &Spent) {
        let usage = match spent {
            Spent::Nothing => return,
            Spent::Unreported => {
                let labels = RouteLabels { model: model.to_owned(), channel: channel.to_owned() };
                self.0.unreported.get_or_create(&labels).inc();
                return;
            }
            Spent::Reported(usage) => usage,
        };
        let Usage { input, cached_input, cache_write, output, reasoning, searches, audio_ms } = *usage;
        let labels = |kind| UsageLabels { model: model.to_owned(), channel: channel.to_owned(), kind };
        for (kind, count) in [
            ("input", input),
            ("cached_input", cached_input),
            ("cache_write", cache_write),
            ("output", output),
            ("reasoning", reasoning),
        ] {
            if count > 0 {
                self.0.tokens.get_or_create(&labels(kind)).inc_by(count);
            }
        }
        for (kind, count) in [("search", searches as f64), ("audio_second", audio_ms as f64 / 1000.0)] {
            if count > 0.0 {
                self.0.units.get_or_create(&labels(kind)).inc_by(count);
            }
        }
    }

    /// A request begins.
    pub fn in_flight_inc(&self) {
        self.0.in_flight.inc();
    }

    /// A request has ended.
    pub fn in_flight_dec(&self) {
        self.0.in_flight.dec();
    }

    /// Shows the state of a channel; those not named by [`Metrics::retain_channels`] are forgotten.
    pub fn channel_state(&self, id: &str, is_open: bool, is_suspended: bool, has_credential_fault: bool) {
        let labels = ChannelLabels { channel: id.to_owned() };
        self.0.open.get_or_create(&labels).set(is_open.into());
        self.0.suspended.get_or_create(&labels).set(is_suspended.into());
        self.0.credential_faults.get_or_create(&labels).set(has_credential_fault.into());
    }

    /// Counts credentials that changed under the table in force.
    pub fn credentials_changed(&self, count: usize) {
        self.0.credential_changes.inc_by(count as u64);
    }

    /// Shows how many bytes of request bodies, and of answers that gates hold, are in memory.
    pub fn memory(&self, requests: usize, gates: usize) {
        for (place, bytes) in [("requests", requests), ("gates", gates)] {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.0.memory.get_or_create(&PlaceLabels { place }).set(bytes);
        }
    }

    /// Drops the state of channels that the served table has no more. Their counters stay.
    pub fn retain_channels(&self, ids: impl IntoIterator<Item = String>) {
        let now: HashSet<String> = ids.into_iter().collect();
        let mut known = self.0.channels.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in known.difference(&now) {
            let labels = ChannelLabels { channel: gone.clone() };
            self.0.open.remove(&labels);
            self.0.suspended.remove(&labels);
            self.0.credential_faults.remove(&labels);
        }
        *known = now;
    }

    /// Shows what is served.
    pub fn serving(&self, epoch: u64, revision: u64) {
        self.0.epoch.set(epoch.cast_signed());
        self.0.revision.set(revision.cast_signed());
    }

    /// Shows whether the control plane's stream is open.
    pub fn connected(&self, is_connected: bool) {
        self.0.connected.set(is_connected.into());
    }

    /// Shows until when a listener's certificate is valid.
    pub fn certificate(&self, listener: &'static str, expires_at_ms: u64) {
        let seconds = i64::try_from(expires_at_ms / 1000).unwrap_or(i64::MAX);
        self.0.certificates.get_or_create(&ListenerLabels { listener }).set(seconds);
    }

    /// Counts an update that was taken or refused.
    pub fn update(&self, is_applied: bool) {
        let result = if is_applied { "applied" } else { "rejected" };
        self.0.updates.get_or_create(&ResultLabels { result }).inc();
    }

    /// Shows how many windows wait.
    pub fn spooled(&self, windows: usize) {
        self.0.spooled.set(i64::try_from(windows).unwrap_or(i64::MAX));
    }

    /// Brings the count of failed appends up to `total`.
    pub fn journal_failures(&self, total: u64) {
        let counted = self.0.journal_failures.get();
        self.0.journal_failures.inc_by(total.saturating_sub(counted));
    }

    /// Shows how many bindings are known, how many of them wait to be reported, and how many appends failed.
    pub fn bindings(&self, (known, waiting): (usize, usize), failures: u64) {
        let shown = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.0.bindings.set(shown(known));
        self.0.unreported_bindings.set(shown(waiting));
        let counted = self.0.binding_failures.get();
        self.0.binding_failures.inc_by(failures.saturating_sub(counted));
    }

    /// Shows how many bytes of records wait, and how many records were lost.
    pub fn records(&self, waiting_bytes: u64, lost: u64) {
        self.0.records_waiting.set(i64::try_from(waiting_bytes).unwrap_or(i64::MAX));
        let counted = self.0.records_lost.get();
        self.0.records_lost.inc_by(lost.saturating_sub(counted));
    }

    /// Counts what the control plane said of an id.
    pub fn lookup(&self, result: &'static str) {
        self.0.lookups.get_or_create(&ResultLabels { result }).inc();
    }

    /// A periodic job has succeeded.
    pub fn beat(&self, job: &'static str, now_ms: u64) {
        self.0.beats.get_or_create(&JobLabels { job }).set(now_ms as f64 / 1000.0);
    }

    /// Everything in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.0.registry).is_err() {
            tracing::error!("metrics cannot be rendered");
        }
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use common::class::FailureClass;
    use common::window::AttemptEnd;

    use super::*;

    #[test]
    fn the_families_have_the_names_that_dashboards_use() {
        let metrics = Metrics::new();
        let channel = metrics.channel("a");
        channel.attempt(AttemptEnd::Failed(FailureClass::Overloaded));
        channel.gate_decision("content");
        channel.headers_seconds(Duration::from_millis(20));
        channel.gate_held(Duration::from_millis(20));
        metrics.channel_state("a", true, false, true);
        metrics.request("m", RequestOutcome::Served);
        let usage = Usage { input: 7, cached_input: 3, searches: 1, audio_ms: 1500, ..Usage::default() };
        metrics.spent("m", "a", &Spent::Reported(usage));
        metrics.spent("m", "a", &Spent::Unreported);
        metrics.spent("m", "b", &Spent::Nothing);
        metrics.serving(1, 42);
        metrics.beat("seal", 1500);
        metrics.memory(7, 8);
        let text = metrics.render();
        for line in [
            r#"sluice_requests_total{model="m",outcome="served"} 1"#,
            r#"sluice_attempts_total{channel="a",class="overloaded"} 1"#,
            r#"sluice_attempts_total{channel="a",class="ok"} 0"#,
            r#"sluice_gate_decisions_total{channel="a",decision="content"} 1"#,
            r#"sluice_headers_seconds_count{channel="a"} 1"#,
            "sluice_gate_held_seconds_count 1",
            r#"sluice_tokens_total{model="m",channel="a",kind="input"} 7"#,
            r#"sluice_tokens_total{model="m",channel="a",kind="cached_input"} 3"#,
            r#"sluice_units_total{model="m",channel="a",kind="search"} 1.0"#,
            r#"sluice_units_total{model="m",channel="a",kind="audio_second"} 1.5"#,
            r#"sluice_usage_unreported_total{model="m",channel="a"} 1"#,
            r#"sluice_breaker_open{channel="a"} 1"#,
            r#"sluice_credential_fault{channel="a"} 1"#,
            "sluice_credential_changes_total 0",
            "sluice_revision 42",
            r#"sluice_memory_bytes{place="gates"} 8"#,
            r#"sluice_job_last_success_timestamp_seconds{job="seal"} 1.5"#,
            "sluice_build_info{version=",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn the_state_of_a_channel_that_is_gone_is_not_shown() {
        let metrics = Metrics::new();
        metrics.retain_channels(["a".to_owned(), "b".to_owned()]);
        metrics.channel_state("a", true, false, true);
        metrics.channel_state("b", true, false, false);
        metrics.retain_channels(["b".to_owned()]);
        let text = metrics.render();
        assert!(!text.contains(r#"sluice_breaker_open{channel="a"}"#), "{text}");
        assert!(text.contains(r#"sluice_breaker_open{channel="b"} 1"#), "{text}");
    }

    #[test]
    fn two_nodes_in_one_process_count_apart() {
        let (one, other) = (Metrics::new(), Metrics::new());
        one.in_flight_inc();
        assert!(one.render().contains("sluice_requests_in_flight 1"));
        assert!(other.render().contains("sluice_requests_in_flight 0"));
    }
}
