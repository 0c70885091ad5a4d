//! A request that is open, and the attempt in it. Each ends exactly once, in the counters and at the
//! channel, also when it is dropped: then its caller has gone away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;
use tracing::debug;

use common::class::FailureClass;
use common::code::Code;
use common::first_byte::FirstByte;
use common::id::Model;
use common::window::{AttemptEnd, RequestOutcome};

use super::Gateway;
use crate::dialect::usage::Spent;
use crate::fault::Fault;
use crate::walk::eligible::Pass;
use crate::walk::trace::{Seen, Trace};

/// An open request.
pub struct Open {
    gateway: Arc<Gateway>,
    request_id: Arc<str>,
    model: Option<Model>,
    pass: Option<Pass>,
    spent: Spent,
    /// Apart, since a stream that flows needs nothing of it.
    trace: Box<Trace>,
    is_over: bool,
}

/// How a request ended, and what there is to account for.
#[derive(Debug, Clone, Copy)]
struct End {
    outcome: RequestOutcome,
    spent: Spent,
    first_byte: FirstByte,
}

impl Open {
    /// Opens a request.
    pub fn begin(gateway: Arc<Gateway>, request_id: Arc<str>, trace: Trace) -> Self {
        gateway.in_flight.fetch_add(1, Ordering::AcqRel);
        gateway.metrics.in_flight_inc();
        Open {
            gateway,
            request_id,
            model: None,
            pass: None,
            spent: Spent::Nothing,
            trace: Box::new(trace),
            is_over: false,
        }
    }

    /// Says which model it asks for. Only a name that the catalog has becomes a label.
    pub fn names(&mut self, model: Model) {
        self.model = Some(model);
    }

    /// Where what is decided is written down.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// An attempt on a hop of the chain begins. What it sees is written into what this returns.
    pub fn begin_attempt(&mut self, pass: Pass, hop: usize, now: Instant) -> &mut Seen {
        self.pass = Some(pass);
        self.trace.attempt(hop, now)
    }

    /// The attempt failed before commit; the request goes on.
    pub fn fail_attempt(&mut self, fault: &Fault, now: Instant) {
        if let Some(pass) = self.pass.take() {
            self.trace.failed(fault.failure(), now);
            self.count(Some((&pass, AttemptEnd::Failed(fault.class))), None);
            pass.fail(fault, now);
        }
    }

    /// The answer was committed, with this status.
    pub fn commit(&mut self, status: u16, now: Instant) {
        self.trace.committed(now);
        self.trace.told(status, "");
        if let Some(pass) = &mut self.pass {
            pass.prove();
        }
    }

    /// Says what the committed answer has used so far; the last word before the end counts.
    pub fn spend(&mut self, spent: Spent) {
        self.spent = spent;
    }

    /// The caller has the whole answer with the next bytes that are sent.
    pub fn serve(&mut self) {
        self.end(RequestOutcome::Served, AttemptEnd::Ok);
    }

    /// The answer broke off after commit.
    pub fn cut(&mut self, now: Instant) {
        if let Some(pass) = self.end(RequestOutcome::Cut, AttemptEnd::Failed(FailureClass::Cut)) {
            pass.fail(&Fault::of(FailureClass::Cut), now);
        }
    }

    /// The request ends without an answer of an upstream; the caller is told this.
    pub fn refuse(&mut self, outcome: RequestOutcome, status: u16, code: Code) {
        self.trace.told(status, code.as_str());
        self.end(outcome, AttemptEnd::Failed(FailureClass::Canceled));
    }

    /// It was no request of a model, and nothing is counted.
    pub fn forget(&mut self) {
        self.is_over = true;
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Both endings in one append.
    fn end(&mut self, outcome: RequestOutcome, attempt: AttemptEnd) -> Option<Pass> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let pass = self.pass.take();
        let end = End { outcome, spent: self.spent, first_byte: self.trace.first_byte() };
        self.count(pass.as_ref().map(|pass| (pass, attempt)), Some(end));
        let Gateway { observer, records, .. } = &*self.gateway;
        records.keep(self.trace.end(observer.boot(), outcome, attempt, &self.spent, Instant::now()));
        pass
    }

    fn count(&self, attempt: Option<(&Pass, AttemptEnd)>, request: Option<End>) {
        let model = self.model.as_ref().map_or("", Model::as_str);
        let Gateway { observer, metrics, .. } = &*self.gateway;
        let channel = attempt.map_or("", |(pass, _)| pass.channel().id.as_str());
        let first_byte = request.map(|end| end.first_byte).unwrap_or_default();
        let attempted = attempt.map(|(_, end)| (channel, end));
        observer.record(model, attempted, request.map(|end| end.outcome), first_byte);
        if let Some((pass, end)) = attempt {
            pass.channel().metrics.attempt(end);
            debug!(request.id = %self.request_id, model, channel.id = %channel, class = end.as_str(),
                "attempt ended");
        }
        if let Some(End { outcome, spent, .. }) = request {
            metrics.request(model, outcome);
            metrics.spent(model, channel, &spent);
            debug!(request.id = %self.request_id, model, outcome = outcome.as_str(), ?spent, "request ended");
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end(RequestOutcome::Canceled, AttemptEnd::Failed(FailureClass::Canceled));
        self.gateway.metrics.in_flight_dec();
        self.gateway.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
