//! The metrics of one channel, resolved once and kept with it, so that an attempt looks nothing up.

use std::sync::Arc;
use std::time::Duration;

use common::class::FailureClass;
use common::window::AttemptEnd;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::{AttemptLabels, ChannelLabels, DecisionLabels, Metrics};

/// Decisions of the gate that are counted without a look-up.
const DECISIONS: [&str; 6] = ["content", "end", "whole", "timeout", "bounds", "drop"];

/// The counters of one channel. Clones share them.
#[derive(Debug, Clone)]
pub struct ChannelMetrics(Arc<ChannelInner>);

#[derive(Debug)]
struct ChannelInner {
    id: String,
    ok: Counter,
    failed: [(FailureClass, Counter); FailureClass::ALL.len()],
    decisions: [(&'static str, Counter); DECISIONS.len()],
    headers: Histogram,
    metrics: Metrics,
}

impl Metrics {
    /// The counters of a channel, resolved once and kept with it.
    pub fn channel(&self, id: &str) -> ChannelMetrics {
        let labels = ChannelLabels { channel: id.to_owned() };
        let attempt =
            |class| self.0.attempts.get_or_create_owned(&AttemptLabels { channel: id.to_owned(), class });
        let decision = |decision| {
            let labels = DecisionLabels { channel: id.to_owned(), decision };
            (decision, self.0.decisions.get_or_create_owned(&labels))
        };
        ChannelMetrics(Arc::new(ChannelInner {
            id: id.to_owned(),
            ok: attempt(AttemptEnd::Ok.as_str()),
            failed: FailureClass::ALL.map(|class| (class, attempt(class.as_str()))),
            decisions: DECISIONS.map(decision),
            headers: self.0.headers.get_or_create_owned(&labels),
            metrics: self.clone(),
        }))
    }
}

impl ChannelMetrics {
    /// Counts an attempt at its end.
    pub fn attempt(&self, end: AttemptEnd) {
        match end {
            AttemptEnd::Ok => self.0.ok.inc(),
            AttemptEnd::Failed(class) => {
                let counter = self.0.failed.iter().find(|(c, _)| *c == class);
                counter.map_or(0, |(_, counter)| counter.inc())
            }
        };
    }

    /// Counts what ended the holding back of an answer.
    pub fn gate_decision(&self, decision: &'static str) {
        if let Some((_, counter)) = self.0.decisions.iter().find(|(name, _)| *name == decision) {
            counter.inc();
        } else {
            let labels = DecisionLabels { channel: self.0.id.clone(), decision };
            self.0.metrics.0.decisions.get_or_create(&labels).inc();
        }
    }

    /// Takes the time from the start of an attempt to its response headers.
    pub fn headers_seconds(&self, time: Duration) {
        self.0.headers.observe(time.as_secs_f64());
    }

    /// Takes the time for which an answer was held.
    pub fn gate_held(&self, time: Duration) {
        self.0.metrics.0.held.observe(time.as_secs_f64());
    }
}
