//! What the http listener answers of itself: whether the process lives, whether it is ready, its
//! metrics. The page and `/api` are `page`'s matter. Off loopback it asks for the admin token, except
//! for what load balancers ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};

use crate::access::Role;
use crate::grpc::auth::admin::{Guard, Refused};
use crate::page;
use crate::plane::Plane;

/// Whether the process should get new work.
#[derive(Debug, Clone, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    /// Sets it.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    fn answer(&self) -> Response {
        if self.0.load(Ordering::Acquire) {
            "ready\n".into_response()
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
        }
    }
}

/// The routes of the http listener. `guard`: asks for a token, if there is one.
pub fn routes(plane: &Arc<Plane>, ready: Ready, guard: Option<Guard>) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics)).with_state(plane.clone());
    let mut guarded = metrics.merge(page::routes(plane.clone()));
    if let Some(guard) = guard {
        guarded = guarded.layer(from_fn_with_state(guard, require));
    }
    probes(ready).merge(guarded)
}

/// What the http listener answers while nothing was read from the store.
pub fn not_ready(ready: Ready) -> Router {
    probes(ready).fallback(async || (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"))
}

fn probes(ready: Ready) -> Router {
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(async move || ready.answer()))
}

async fn metrics(State(plane): State<Arc<Plane>>) -> Response {
    let text = plane.metrics.render(plane.head.now().as_deref(), plane.nodes.count());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// Lets in who may read.
async fn require(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.admit(&request, Role::Viewer, request.uri().path()) {
        Ok(_) => next.run(request).await,
        Err(refused @ Refused::Forbidden { .. }) => {
            (StatusCode::FORBIDDEN, format!("{}\n", refused.said())).into_response()
        }
        Err(refused @ Refused::Unknown(_)) => {
            let challenge = [(WWW_AUTHENTICATE, "Bearer realm=\"sluice\"")];
            (StatusCode::UNAUTHORIZED, challenge, format!("{}\n", refused.said())).into_response()
        }
    }
}
