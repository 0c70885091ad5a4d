//! The callers' API: what all requests share, and which path is whose. `accept` brings the
//! connections, `handle` strings the stages of a request together, `answer` writes what goes back.

pub mod accept;
mod answer;
pub mod auth;
mod handle;
mod ingress;
mod models;
mod open;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use http::{Request, Response};
use hyper::body::Incoming;

use common::clock::Clock;
use common::code::Code;
use common::window::RequestOutcome;

use crate::dialect::operation::{self, Asked};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::table::Tables;
use crate::upstream::Connections;
use answer::{AnswerBody, Head, refused};
use auth::Keys;
use ingress::BodyBudget;
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
    /// Metric families.
    pub metrics: Metrics,
    /// Connections to upstreams.
    pub connections: Connections,
    settings: Settings,
    clock: Clock,
    bodies: BodyBudget,
    in_flight: AtomicU64,
    is_draining: AtomicBool,
}

impl Gateway {
    /// A data plane without a table.
    pub fn new(
        settings: Settings,
        observer: Observer,
        metrics: Metrics,
        connections: Connections,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Gateway {
            tables: Tables::new(),
            keys: ArcSwap::from_pointee(Keys::none()),
            observer,
            metrics,
            connections,
            settings,
            clock,
            bodies: BodyBudget::default(),
            in_flight: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        })
    }

    /// Requests that have not ended.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// From now on answers ask callers to connect elsewhere.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// Whether [`Gateway::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }
}

/// Answers a request. Never fails: what cannot be served is refused in the caller's dialect.
pub(crate) async fn serve(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<AnswerBody> {
    let head = Head::of(request.headers(), operation::shape(request.uri().path(), request.headers()));
    let mut open = Open::begin(gateway.clone(), head.request_id.clone());
    let served = match operation::find(request.method(), request.uri().path()) {
        Asked::Operation(operation, named) => {
            let named = named.map(Cow::into_owned);
            return handle::ask(gateway, operation, named, request, head, open).await;
        }
        Asked::Models => models::list(&gateway, &request, &head),
        Asked::Model(name) => models::one(&gateway, &request, &head, &name),
        Asked::GoogleModels => models::googles_list(&gateway, &request, &head),
        Asked::GoogleModel(name) => models::googles_one(&gateway, &request, &head, &name),
        Asked::Nothing(code) => Err(code),
        Asked::NotServed(what) => {
            open.refuse(RequestOutcome::Refused(Code::NotFound));
            return refused(&head, Code::NotFound, what);
        }
    };
    match served {
        // A list of models went nowhere; it is no request of a model.
        Ok(answer) => {
            open.forget();
            answer
        }
        Err(code) => {
            open.refuse(RequestOutcome::Refused(code));
            refused(&head, code, code.text())
        }
    }
}
