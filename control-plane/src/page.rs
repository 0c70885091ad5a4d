//! What a browser sees, and the JSON behind it: the status page, `/api/v1/status` and `/api/v1/series`. All read what
//! `observed` says; nothing is changed from here.

pub mod admin;
pub mod api;
mod badge;
mod bars;
mod html;
mod incidents;
mod live;
mod nodes;
mod out;
mod rates;
mod sees;
mod status;
mod view;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::plane::Plane;
pub use sees::Sees;
use view::Views;

const CSS: &str = include_str!("page/sluice.css");
const SCRIPT: &str = include_str!("page/live.js");
const ICON: &str = include_str!("page/sluice.svg");

/// Our own style sheet, icon and script, which asks nobody but us, and nothing else: nothing inline, no frame, no form.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The paths of the status page and of the JSON API. Who may see them is the listener's matter: each request carries
/// what is seen as an extension, [`Sees`].
pub fn routes(plane: Arc<Plane>) -> Router {
    let json = Router::new()
        .route("/api/v1/status", get(api::status))
        .route("/api/v1/series", get(api::series))
        .with_state(plane.clone());
    Router::new()
        .route("/", get(status::show))
        .route("/api/v1/events", get(live::events))
        .route("/api/v1/incidents", get(incidents::json))
        .route("/incidents.atom", get(incidents::feed))
        .route("/badge/{*name}", get(badge::show))
        .with_state(Arc::new(Views::new(plane)))
        .merge(json)
        .layer(map_response(guarded))
}

/// What every page looks like, whoever may see what stands on it.
pub fn assets() -> Router {
    Router::new()
        .route("/assets/sluice.css", get(|| asset("text/css; charset=utf-8", CSS)))
        .route("/assets/live.js", get(|| asset("text/javascript; charset=utf-8", SCRIPT)))
        .route("/assets/sluice.svg", get(|| asset("image/svg+xml", ICON)))
        .layer(map_response(guarded))
}

async fn asset(kind: &'static str, content: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=3600")], content).into_response()
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
