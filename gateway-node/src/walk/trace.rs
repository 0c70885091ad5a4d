//! What goes into the record of a request, step by step as it is decided. Pure: times come with the steps. Nothing of
//! what is asked or answered is kept.

use std::time::Duration;

use common::first_byte::FirstByte;
use common::id::{BootId, KeyId};
use common::pb::fleet as pb;
use common::walk::Failure;
use common::walk::out::Out;
use common::window::{AttemptEnd, RequestOutcome};
use http::{HeaderMap, HeaderName};
use tokio::time::Instant;

use crate::dialect::operation::Operation;
use crate::dialect::usage::{Spent, Usage};
use crate::gate::Decision;
use crate::table::{Route, Table};

/// How upstreams call their own id of a request; the first that is there counts.
const UPSTREAM_REQUEST_IDS: [HeaderName; 5] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-amzn-requestid"),
    HeaderName::from_static("apim-request-id"),
    HeaderName::from_static("cf-ray"),
];
/// Longest name of a model that is kept where the catalog has none of that name.
const MODEL_BYTES_MAX: usize = 256;
/// Longest id of an upstream that is kept.
const UPSTREAM_REQUEST_ID_MAX: usize = 128;

/// The record of one request as it grows.
#[derive(Debug)]
pub struct Trace {
    record: pb::Record,
    began: Instant,
    /// The attempt under way, and what it has seen.
    open: Option<pb::RecordAttempt>,
    seen: Seen,
}

/// What an attempt sees of its upstream on the way to its end.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The response headers came.
    pub headers_at: Option<Instant>,
    /// The first bytes of the body came.
    pub first_byte_at: Option<Instant>,
    /// The gate decided, and how; `None` where it dropped the answer.
    pub decided: Option<(Instant, Option<Decision>)>,
    /// Of the answer.
    pub status: u16,
    /// The upstream's own id of the request.
    pub request_id: String,
    /// It was sent once more over a fresh connection.
    pub was_stale: bool,
}

impl Seen {
    /// Keeps what the headers of an answer say.
    pub fn headers(&mut self, status: u16, headers: &HeaderMap, now: Instant) {
        self.headers_at = Some(now);
        self.status = status;
        let ids = UPSTREAM_REQUEST_IDS.into_iter().filter_map(|name| headers.get(name)?.to_str().ok());
        let mut sane = ids.filter(|id| (1..=UPSTREAM_REQUEST_ID_MAX).contains(&id.len()));
        self.request_id = sane.next().unwrap_or_default().to_owned();
    }
}

/// What a request asks for, once that is known.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// The path that was called.
    pub operation: &'static Operation,
    /// Who calls.
    pub key: &'a KeyId,
    /// As the caller names it; empty where it names none.
    pub model: &'a str,
    /// It wants a stream.
    pub is_stream: bool,
    /// Bytes of its body.
    pub bytes: usize,
}

impl Trace {
    /// A request that began at `began`, which is `began_at_ms` of the clock.
    pub fn begin(request_id: &str, client_request_id: &str, began: Instant, began_at_ms: u64) -> Self {
        let record = pb::Record {
            request_id: request_id.to_owned(),
            client_request_id: client_request_id.to_owned(),
            began_at_ms,
            ..pb::Record::default()
        };
        Trace { record, began, open: None, seen: Seen::default() }
    }

    /// Which table it uses to its end.
    pub fn uses(&mut self, table: &Table) {
        (self.record.epoch, self.record.revision) = (table.epoch, table.revision);
    }

    /// What it asks for.
    pub fn asks(&mut self, asks: Asks<'_>) {
        let Asks { operation, key, model, is_stream, bytes } = asks;
        self.record.dialect = operation.dialect.as_str().to_owned();
        self.record.operation = operation.name();
        self.record.is_submission = operation.is_submission();
        self.record.key_id = key.to_string();
        // Whatever a caller sends for one.
        self.record.model = model[..model.floor_char_boundary(MODEL_BYTES_MAX)].to_owned();
        self.record.is_stream = is_stream;
        self.record.request_bytes = bytes as u64;
    }

    /// The chain that is walked. Of a thing with an id the one route that has it.
    pub fn chain(&mut self, model: &str, routes: &[Route], is_alone: bool) {
        self.record.model = model.to_owned();
        self.record.is_alone = is_alone;
        let prints: Vec<_> = routes.iter().map(|route| route.channel.credential.fingerprint()).collect();
        let hops = routes.iter().zip(&prints).map(|(route, print)| pb::RecordHop {
            channel: route.channel.id.to_string(),
            upstream_model: route.upstream_model.clone(),
            credential: print.and_then(|print| place(&prints, print)),
            context_window: route.context_window,
            out: String::new(),
            out_until_us: None,
        });
        self.record.chain = hops.collect();
    }

    /// A hop's turn came, and it was out.
    pub fn out(&mut self, hop: usize, out: Out) {
        let until = out.returns_at().map(|at| self.since(at));
        if let Some(hop) = self.record.chain.get_mut(hop) {
            hop.out = out.as_str().to_owned();
            hop.out_until_us = until;
        }
    }

    /// A hop is asked. What the attempt sees is written into what this returns.
    pub fn attempt(&mut self, hop: usize, now: Instant) -> &mut Seen {
        let (hop, began_us) = (hop as u32, self.since(now));
        self.open = Some(pb::RecordAttempt { hop, began_us, ..pb::RecordAttempt::default() });
        &mut self.seen
    }

    /// The attempt under way failed before commit.
    pub fn failed(&mut self, failure: Failure, now: Instant) {
        self.close(AttemptEnd::Failed(failure.class), Some(failure), now);
    }

    /// The answer of the attempt under way may leave.
    pub fn committed(&mut self, now: Instant) {
        self.record.committed_us = Some(self.since(now));
    }

    /// How long the first bytes took, once the answer of the attempt under way may leave.
    pub fn first_byte(&self) -> FirstByte {
        let Some(committed_us) = self.record.committed_us else { return FirstByte::default() };
        let began_us = self.open.as_ref().map(|attempt| attempt.began_us);
        let first_us = self.seen.first_byte_at.map(|at| self.since(at));
        let of_attempt = first_us.zip(began_us).map(|(first, began)| first.saturating_sub(began));
        FirstByte {
            of_request: Some(Duration::from_micros(committed_us)),
            of_attempt: of_attempt.map(Duration::from_micros),
        }
    }

    /// What the caller is told.
    pub fn told(&mut self, status: u16, code: &str) {
        self.record.status = status.into();
        self.record.code = code.to_owned();
    }

    /// Bytes of the answer were handed on.
    pub fn passed(&mut self, bytes: usize) {
        self.record.answer_bytes += bytes as u64;
    }

    /// The end of the request, and of the attempt under way if there is one. Nothing is left behind.
    pub fn end(
        &mut self,
        boot: &BootId,
        outcome: RequestOutcome,
        attempt: AttemptEnd,
        spent: &Spent,
        now: Instant,
    ) -> pb::Record {
        self.close(attempt, None, now);
        let mut record = std::mem::take(&mut self.record);
        record.boot_id = boot.to_string();
        record.outcome = outcome.as_str().to_owned();
        record.ended_us = self.since(now);
        if let Spent::Reported(usage) = spent {
            record.usage = Some(used(usage));
        }
        record
    }

    fn close(&mut self, end: AttemptEnd, failure: Option<Failure>, now: Instant) {
        let Some(mut attempt) = self.open.take() else { return };
        let seen = std::mem::take(&mut self.seen);
        let decided = seen.decided;
        attempt.headers_us = seen.headers_at.map(|at| self.since(at));
        attempt.first_byte_us = seen.first_byte_at.map(|at| self.since(at));
        attempt.decisive_us = decided.map(|(at, _)| self.since(at));
        attempt.gate =
            decided.map_or("", |(_, decision)| decision.map_or("drop", Decision::as_str)).to_owned();
        attempt.status = seen.status.into();
        attempt.upstream_request_id = seen.request_id;
        attempt.was_stale = seen.was_stale;
        attempt.ended_us = self.since(now);
        attempt.class = end.as_str().to_owned();
        if let Some(Failure { reason, status, is_untaken, .. }) = failure {
            attempt.reason = reason.as_str().to_owned();
            // Of an error inside a 200 its own.
            attempt.status = status.map_or(attempt.status, u32::from);
            attempt.is_untaken = is_untaken;
        }
        self.record.attempts.push(attempt);
    }

    fn since(&self, at: Instant) -> u64 {
        micros(at.saturating_duration_since(self.began))
    }
}

fn place(prints: &[Option<[u8; 32]>], print: [u8; 32]) -> Option<u32> {
    prints.iter().position(|other| *other == Some(print)).map(|place| place as u32)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn used(usage: &Usage) -> pb::RecordUsage {
    let Usage { input, cached_input, cache_write, output, reasoning, searches, audio_ms } = *usage;
    pb::RecordUsage { input, cached_input, cache_write, output, reasoning, searches, audio_ms }
}
