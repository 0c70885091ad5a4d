//! The callers' API: what all requests share, and which path is whose. `accept` brings the
//! connections, `handle` strings the stages of a request together, `answer` writes what goes back.

pub mod accept;
mod answer;
pub mod auth;
mod bound;
mod handle;
mod ingress;
mod models;
mod open;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use tokio::time::Instant;

use common::clock::Clock;
use common::code::Code;
use common::limits::{GATE_HELD_BYTES_TOTAL_MAX, READINESS_WATCHED, REQUEST_BYTES_TOTAL_MAX};
use common::window::RequestOutcome;

use crate::bindings::{Bindings, Lookup};
use crate::budget::Budget;
use crate::dialect::operation::{self, Asked};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::records::Records;
use crate::table::{Table, Tables};
use crate::upstream::Connections;
use crate::upstream::sources::Sources;
use crate::walk::trace::Trace;
use answer::{AnswerBody, Head, refused};
use auth::Keys;
pub use open::Open;

/// What may be set about the callers' API.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Serve callers without a key as long as no key exists.
    pub allow_anonymous: bool,
}

/// The shared state of a node's data plane.
pub struct Gateway {
    /// The routing table in force.
    pub tables: Tables,
    /// Who may call.
    pub keys: ArcSwap<Keys>,
    /// Where endings are counted.
    pub observer: Observer,
    /// Where the record of each request goes.
    pub records: Records,
    /// Which channel made what.
    pub bindings: Bindings,
    /// Metric families.
    pub metrics: Metrics,
    /// Connections to upstreams.
    pub connections: Connections,
    /// Where credentials come from.
    pub sources: Sources,
    lookup: Lookup,
    settings: Settings,
    clock: Clock,
    /// What request bodies hold.
    pub bodies: Budget,
    /// What gates hold.
    pub gates: Budget,
    in_flight: AtomicU64,
    is_draining: AtomicBool,
    /// When somebody last asked for the readiness.
    readiness_asked: Mutex<Option<Instant>>,
}

impl Gateway {
    /// A data plane without a table. `lookup` finds what other nodes have bound.
    pub fn new(
        settings: Settings,
        (observer, records): (Observer, Records),
        (bindings, lookup): (Bindings, Lookup),
        metrics: Metrics,
        connections: Connections,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Gateway {
            tables: Tables::new(),
            keys: ArcSwap::from_pointee(Keys::none()),
            observer,
            records,
            bindings,
            metrics,
            connections,
            sources: Sources::default(),
            lookup,
            settings,
            clock,
            bodies: Budget::new(REQUEST_BYTES_TOTAL_MAX),
            gates: Budget::new(GATE_HELD_BYTES_TOTAL_MAX),
            in_flight: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            readiness_asked: Mutex::default(),
        })
    }

    /// Looks at no other files for credentials than those that this table names.
    pub fn watch_credentials_of(&self, table: Option<&Table>) {
        let channels = table.into_iter().flat_map(Table::channels);
        self.sources.retain(channels.map(|channel| channel.credential_from.as_str()));
    }

    /// Wall time as this node has it.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Requests that have not ended.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// From now on the node is not ready, and answers ask callers to connect elsewhere. Returns whether somebody goes by
    /// its readiness.
    pub fn drain(&self, now: Instant) -> bool {
        self.is_draining.store(true, Ordering::Release);
        let asked = *self.readiness_asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| now.duration_since(asked) < READINESS_WATCHED)
    }

    /// Somebody asks whether the node is ready.
    pub fn ask_readiness(&self, now: Instant) {
        *self.readiness_asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Whether [`Gateway::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }
}

/// Answers a request. Never fails: what cannot be served is refused in the caller's dialect.
pub(crate) async fn serve(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<AnswerBody> {
    let (table, now_ms) = (gateway.tables.load(), gateway.clock.now_ms());
    let head = Head::of(
        request.headers(),
        operation::shape(request.uri().path(), request.headers()),
        table.as_ref().map(|table| table.revision),
        now_ms,
    );
    let trace = Trace::begin(&head.request_id, head.client_request_id(), Instant::now(), now_ms);
    let mut open = Open::begin(gateway.clone(), head.request_id.clone(), trace);
    let Some(table) = table else { return refuse(&head, open, request, Code::NoConfig, None).await };
    let served = match operation::find(request.method(), request.uri().path()) {
        Asked::Operation(operation, named) => {
            let named = named.map(Cow::into_owned);
            return handle::ask(gateway, table, operation, named, request, head, open).await;
        }
        Asked::Models => models::list(&gateway, &table, &request, &head),
        Asked::Model(name) => models::one(&gateway, &table, &request, &head, &name),
        Asked::GoogleModels => models::googles_list(&gateway, &table, &request, &head),
        Asked::GoogleModel(name) => models::googles_one(&gateway, &table, &request, &head, &name),
        Asked::OtherMethod(takes) => {
            let mut answer = refuse(&head, open, request, Code::MethodNotAllowed, None).await;
            answer
                .headers_mut()
                .extend(HeaderValue::from_str(&takes).ok().map(|takes| (header::ALLOW, takes)));
            return answer;
        }
        Asked::Nothing => Err(Code::NotFound),
        Asked::NotServed(what) => return refuse(&head, open, request, Code::NotFound, Some(what)).await,
    };
    match served {
        // A list of models went nowhere; it is no request of a model.
        Ok(answer) => {
            open.forget();
            answer
        }
        Err(code) => refuse(&head, open, request, code, None).await,
    }
}

/// Refuses what went nowhere. Its body is read and forgotten, so that the caller gets to read why.
async fn refuse(
    head: &Head,
    mut open: Open,
    request: Request<Incoming>,
    code: Code,
    message: Option<&str>,
) -> Response<AnswerBody> {
    open.refuse(RequestOutcome::Refused(code), code.status(), code);
    let (parts, body) = request.into_parts();
    ingress::forget(&parts.headers, body).await;
    refused(head, code, message.unwrap_or(code.text()))
}
