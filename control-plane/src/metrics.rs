//! Every metric of the control plane. A registry per instance; nothing global.

mod labels;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::Arc;

use crate::alerts::Kind;
use crate::revision::head::Wanted;
pub use labels::{Ack, EnrolmentResult, StreamEnd, WindowResult};
use labels::{JobLabel, KindLabel, ListenerLabel, ReasonLabel, ResultLabel, StateLabel};

/// Of a gauge that may be missing.
type NoLabels = [(&'static str, &'static str); 0];

/// The metrics of one control plane. Clones share the same numbers.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    revision: Gauge,
    leader: Gauge,
    /// Of no use where there can be no other control plane, and shown only after it was set.
    changes_heard: Family<NoLabels, Gauge>,
    rollout_state: Family<StateLabel, Gauge>,
    rollout_stage: Gauge,
    nodes_connected: Gauge,
    streams: Gauge,
    control_planes: Gauge,
    nodes_known: Gauge,
    streams_refused: Counter,
    stream_ends: Family<ReasonLabel, Counter>,
    acks: Family<ResultLabel, Counter>,
    windows: Family<ResultLabel, Counter>,
    audit_mismatch: Counter,
    window_gaps: Counter,
    bindings: Counter,
    records: Family<ResultLabel, Counter>,
    binding_lookups: Family<ResultLabel, Counter>,
    calls_refused: Family<ReasonLabel, Counter>,
    job_success: Family<JobLabel, Gauge>,
    job_failures: Family<JobLabel, Counter>,
    certificates: Family<ListenerLabel, Gauge>,
    enrolments: Family<ResultLabel, Counter>,
    nodes_cloned: Gauge,
    alerts_active: Family<KindLabel, Gauge>,
    alert_deliveries: Family<ResultLabel, Counter>,
    pings: Family<ResultLabel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let mut metrics = Metrics {
            registry: Arc::default(),
            revision: Gauge::default(),
            leader: Gauge::default(),
            changes_heard: Family::default(),
            rollout_state: Family::default(),
            rollout_stage: Gauge::default(),
            nodes_connected: Gauge::default(),
            streams: Gauge::default(),
            control_planes: Gauge::default(),
            nodes_known: Gauge::default(),
            streams_refused: Counter::default(),
            stream_ends: Family::default(),
            acks: Family::default(),
            windows: Family::default(),
            audit_mismatch: Counter::default(),
            window_gaps: Counter::default(),
            bindings: Counter::default(),
            records: Family::default(),
            binding_lookups: Family::default(),
            calls_refused: Family::default(),
            job_success: Family::default(),
            job_failures: Family::default(),
            certificates: Family::default(),
            enrolments: Family::default(),
            nodes_cloned: Gauge::default(),
            alerts_active: Family::default(),
            alert_deliveries: Family::default(),
            pings: Family::default(),
        };
        let m = &metrics;
        registry.register("sluice_revision", "Current catalog revision", m.revision.clone());
        registry.register(
            "sluice_leader",
            "1 while this process does the periodic work of all",
            m.leader.clone(),
        );
        registry.register(
            "sluice_changes_heard",
            "1 while changes of other control planes are heard of at once",
            m.changes_heard.clone(),
        );
        registry.register(
            "sluice_rollout_state",
            "1 for the state of the current revision's rollout",
            m.rollout_state.clone(),
        );
        registry.register(
            "sluice_rollout_stage",
            "Stages that are open of the rollout under way; 0 when none is",
            m.rollout_stage.clone(),
        );
        registry.register(
            "sluice_nodes_connected",
            "Nodes with an open stream, at whichever control plane",
            m.nodes_connected.clone(),
        );
        registry.register("sluice_streams", "Streams of nodes that are open here", m.streams.clone());
        registry.register(
            "sluice_control_planes",
            "Control planes that live, over the same database",
            m.control_planes.clone(),
        );
        registry.register("sluice_nodes_known", "Nodes ever seen", m.nodes_known.clone());
        registry.register(
            "sluice_streams_refused",
            "Streams refused by admission",
            m.streams_refused.clone(),
        );
        registry.register("sluice_stream_ends", "Ends of node streams", m.stream_ends.clone());
        registry.register("sluice_acks", "Acknowledgements of updates", m.acks.clone());
        registry.register("sluice_windows", "Windows reported by nodes", m.windows.clone());
        registry.register(
            "sluice_counter_audit_mismatch",
            "Reports whose running totals differ from the sum of the counted windows",
            m.audit_mismatch.clone(),
        );
        registry.register(
            "sluice_window_gaps",
            "Windows accepted after others that nodes know to be counted and this database does not have",
            m.window_gaps.clone(),
        );
        registry.register(
            "sluice_bindings_reported",
            "Bindings that nodes reported, each as often as it came",
            m.bindings.clone(),
        );
        registry.register(
            "sluice_records_uploaded",
            "Records of requests that nodes brought, each as often as it came, by what became of them",
            m.records.clone(),
        );
        registry.register(
            "sluice_binding_lookups",
            "Bindings that nodes asked for",
            m.binding_lookups.clone(),
        );
        registry.register(
            "sluice_calls_refused",
            "Calls of operators that were not let in",
            m.calls_refused.clone(),
        );
        registry.register(
            "sluice_job_last_success_timestamp_seconds",
            "When a periodic job last succeeded",
            m.job_success.clone(),
        );
        registry.register("sluice_job_failures", "Failed runs of periodic jobs", m.job_failures.clone());
        registry.register(
            "sluice_certificate_expiry_timestamp_seconds",
            "When the certificate in use ends",
            m.certificates.clone(),
        );
        registry.register("sluice_enrolments", "Certificates that nodes asked for", m.enrolments.clone());
        registry.register(
            "sluice_nodes_cloned",
            "Nodes whose identity more than one process used of late",
            m.nodes_cloned.clone(),
        );
        registry.register(
            "sluice_alerts_active",
            "Alerts that are so, where the control plane leads",
            m.alerts_active.clone(),
        );
        registry.register(
            "sluice_alert_deliveries",
            "Tries to tell receivers of alerts, by what became of them",
            m.alert_deliveries.clone(),
        );
        registry.register("sluice_pings", "Pings of periodic jobs, by what became of them", m.pings.clone());
        metrics.registry = Arc::new(registry);
        metrics
    }

    /// Shows whether this process leads.
    pub fn leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Shows whether changes of other control planes are heard of at once.
    pub fn set_changes_heard(&self, are: bool) {
        self.changes_heard.get_or_create(&[]).set(are.into());
    }

    /// Whether they are; none where there can be no others, or it is not known yet.
    pub fn are_changes_heard(&self) -> Option<bool> {
        Some(self.changes_heard.get(&[])?.get() == 1)
    }

    /// A node's stream ended.
    pub fn stream_ended(&self, end: StreamEnd) {
        self.stream_ends.get_or_create(&ReasonLabel { reason: end.as_str() }).inc();
    }

    /// A stream was not admitted.
    pub fn stream_refused(&self) {
        self.streams_refused.inc();
    }

    /// A node answered an update.
    pub fn acknowledged(&self, result: Ack) {
        self.acks.get_or_create(&ResultLabel { result: result.as_str() }).inc();
    }

    /// A node reported a window.
    pub fn window(&self, result: WindowResult) {
        self.windows.get_or_create(&ResultLabel { result: result.as_str() }).inc();
    }

    /// A node's running totals differ from the sum of its counted windows.
    pub fn audit_mismatch(&self) {
        self.audit_mismatch.inc();
    }

    /// A window was accepted after a gap.
    pub fn window_gap(&self) {
        self.window_gaps.inc();
    }

    /// Bindings were kept.
    pub fn bindings_kept(&self, count: usize) {
        self.bindings.inc_by(count as u64);
    }

    /// Records of requests came: so many were kept, and so many were not of the share that is.
    pub fn records(&self, kept: usize, left_out: usize) {
        for (result, count) in [("kept", kept), ("left_out", left_out)] {
            self.records.get_or_create(&ResultLabel { result }).inc_by(count as u64);
        }
    }

    /// A node asked for a binding.
    pub fn binding_lookup(&self, result: &'static str) {
        self.binding_lookups.get_or_create(&ResultLabel { result }).inc();
    }

    /// Somebody called the admin or the http listener and was not let in.
    pub fn call_refused(&self, reason: &'static str) {
        self.calls_refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// A periodic job succeeded.
    pub fn job_succeeded(&self, job: &'static str, now_ms: u64) {
        let seconds = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        self.job_success.get_or_create(&JobLabel { job }).set(seconds);
    }

    /// When a periodic job last succeeded, to the second.
    pub fn job_last_success_ms(&self, job: &'static str) -> Option<u64> {
        let seconds = self.job_success.get(&JobLabel { job })?.get();
        Some(seconds.unsigned_abs() * 1000)
    }

    /// When the certificate of a listener ends, to the second; none where it has none.
    pub fn certificate_expires_at_ms(&self, listener: &'static str) -> Option<u64> {
        let seconds = self.certificates.get(&ListenerLabel { listener })?.get();
        Some(seconds.unsigned_abs() * 1000)
    }

    /// A periodic job failed.
    pub fn job_failed(&self, job: &'static str) {
        self.job_failures.get_or_create(&JobLabel { job }).inc();
    }

    /// A node asked for a certificate.
    pub fn enrolment(&self, result: EnrolmentResult) {
        let result = match result {
            EnrolmentResult::Enrolled => "enrolled",
            EnrolmentResult::Renewed => "renewed",
            EnrolmentResult::Refused => "refused",
        };
        self.enrolments.get_or_create(&ResultLabel { result }).inc();
    }

    /// So many streams are open here, and so many control planes live.
    pub fn replicas(&self, streams: usize, control_planes: usize) {
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        self.control_planes.set(i64::try_from(control_planes).unwrap_or(i64::MAX));
    }

    /// So many nodes were cloned.
    pub fn nodes_cloned(&self, count: usize) {
        self.nodes_cloned.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Alerts that are so, each by its kind.
    pub fn alerts_active(&self, active: &[Kind]) {
        for kind in Kind::ALL {
            let count = active.iter().filter(|one| **one == kind).count();
            let gauge = self.alerts_active.get_or_create(&KindLabel { kind: kind.as_str() });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A receiver was told of an alert, or not.
    pub fn alert_delivery(&self, result: &'static str) {
        self.alert_deliveries.get_or_create(&ResultLabel { result }).inc();
    }

    /// A job's ping was answered, or not, or not sent at all.
    pub fn ping(&self, result: &'static str) {
        self.pings.get_or_create(&ResultLabel { result }).inc();
    }

    /// A listener uses a certificate that ends then.
    pub fn certificate(&self, listener: &'static str, expires_at_ms: u64) {
        let seconds = i64::try_from(expires_at_ms / 1000).unwrap_or(i64::MAX);
        self.certificates.get_or_create(&ListenerLabel { listener }).set(seconds);
    }

    /// Everything in the OpenMetrics format, with gauges as they are now.
    pub fn render(&self, wanted: Option<&Wanted>, (connected, known): (usize, usize)) -> String {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.revision.set(number(wanted.map_or(0, Wanted::revision)));
        let state = wanted.and_then(|wanted| wanted.rollout.as_ref()).map(|rollout| rollout.state.as_str());
        for name in ["running", "paused", "done"] {
            let gauge = self.rollout_state.get_or_create(&StateLabel { state: name });
            gauge.set(i64::from(state == Some(name)));
        }
        let open = wanted.and_then(Wanted::under_way).map_or(0, |rollout| rollout.open);
        self.rollout_stage.set(number(open as u64));
        self.nodes_connected.set(number(connected as u64));
        self.nodes_known.set(number(known as u64));
        let mut rendered = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut rendered, &self.registry);
        rendered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_carry_their_designed_names() {
        let metrics = Metrics::new();
        metrics.audit_mismatch();
        metrics.window(WindowResult::Counted);
        metrics.stream_ended(StreamEnd::Left);
        let text = metrics.render(None, (1, 2));
        for line in [
            "sluice_counter_audit_mismatch_total 1",
            "sluice_revision 0",
            "sluice_rollout_state{state=\"paused\"} 0",
            "sluice_rollout_stage 0",
            "sluice_stream_ends_total{reason=\"left\"} 1",
            "sluice_windows_total{result=\"counted\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
