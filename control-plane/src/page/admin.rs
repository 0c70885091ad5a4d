//! The admin pages: what `sluice` tells of chains, revisions, rollouts, nodes, requests and keys, for a browser. Whoever looks
//! has logged in with a token, on loopback too, and what is asked or ordered here goes through the services of the admin
//! protocol, each call under the role that `grpc/auth/roles.rs` has for it. Nothing is decided in these files.

mod catalog;
mod fault;
mod frame;
mod keys;
mod login;
mod models;
mod nodes;
mod origin;
mod requests;
mod rollouts;
mod serving;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, FromRequest as _, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};

use super::view::Views;
use super::{live, words};
use crate::access::Caller;
use crate::admin::Admin;
use crate::grpc::auth::admin::{Guard, peer};
use crate::grpc::auth::roles;
use crate::plane::Plane;
use fault::Fault;
use session::{Session, Sessions};

/// As for the status page, and forms that go to us.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// A form is some names, a reason and a token.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// What a form says.
type Fields = BTreeMap<String, String>;

/// What the pages read from and write to.
pub struct Desk {
    /// The services of the admin protocol.
    admin: Admin,
    guard: Guard,
    sessions: Sessions,
    views: Arc<Views>,
}

/// A request of somebody who has logged in.
#[derive(Debug, Clone)]
struct Visit {
    session: Session,
    /// The page that is looked at.
    path: String,
}

impl Visit {
    fn caller(&self) -> &Caller {
        &self.session.caller
    }
}

/// The admin pages. Who may not see them is sent to log in, whatever the listener asks otherwise.
pub fn routes(plane: &Arc<Plane>, guard: &Guard) -> Router {
    let (views, admin) = (Arc::new(Views::new(plane.clone())), Admin { plane: plane.clone() });
    let desk = Arc::new(Desk { admin, guard: guard.clone(), sessions: Sessions::default(), views });
    let pages = Router::new()
        .route("/admin", get(async || Redirect::to("/admin/models")))
        .route("/admin/events", get(events))
        .route("/admin/logout", post(login::leave))
        .route("/admin/models", get(models::list))
        .route("/admin/models/{*name}", get(models::one))
        .route("/admin/catalog", get(catalog::history))
        .route("/admin/catalog/diff", get(catalog::diff))
        .route("/admin/catalog/{revision}", get(catalog::document))
        .route("/admin/rollouts", get(rollouts::show))
        .route("/admin/rollouts/pause", post(rollouts::pause))
        .route("/admin/rollouts/resume", post(rollouts::resume))
        .route("/admin/rollouts/abort", post(rollouts::abort))
        .route("/admin/nodes", get(nodes::list))
        .route("/admin/nodes/{*id}", get(nodes::one))
        .route("/admin/keys", get(keys::list))
        .route("/admin/requests", get(requests::list))
        .route("/admin/requests/{*id}", get(requests::one::show))
        .route("/admin/{*page}", get(async || Fault::not_found()))
        .layer(from_fn_with_state(desk.clone(), enter));
    Router::new()
        .route("/admin/login", get(login::show).post(login::enter))
        .merge(pages)
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(map_response(guarded))
        .with_state(desk)
}

/// Tells an open page that there is something new, as the status page is told.
async fn events(State(desk): State<Arc<Desk>>) -> Response {
    live::events(State(desk.views.clone())).await
}

/// Lets in who has logged in. What changes something must come from a form of the same session.
async fn enter(State(desk): State<Arc<Desk>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let asked = request.uri().path_and_query().map_or(path.clone(), ToString::to_string);
    let Some(mut session) = desk.session(request.headers()) else {
        return match *request.method() {
            Method::GET | Method::HEAD => login::send(&asked),
            _ => Fault::of(StatusCode::UNAUTHORIZED, "you are no longer logged in: nothing was done")
                .into_response(),
        };
    };
    session.caller.from = peer(request.extensions());
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let (headers, uri) = (request.headers().clone(), request.uri().clone());
        let (parts, body) = request.into_parts();
        let whole = Request::from_parts(parts.clone(), body);
        let fields = match Form::<Fields>::from_request(whole, &()).await {
            Ok(Form(fields)) => fields,
            Err(rejection) => return Fault::of(rejection.status(), rejection.body_text()).into_response(),
        };
        if let Err(why) = origin::of_form(&headers, &uri) {
            return Fault::of(StatusCode::FORBIDDEN, format!("{why}: nothing was done")).into_response();
        }
        if !fields.get("form_token").is_some_and(|shown| session.wrote(shown)) {
            let said = "this form is not of your session: nothing was done; load the page again";
            return Fault::of(StatusCode::FORBIDDEN, said).into_response();
        }
        request = Request::from_parts(parts, axum::body::Body::empty());
        request.extensions_mut().insert(fields);
    }
    request.extensions_mut().insert(Visit { session, path });
    next.run(request).await
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Without any referrer a browser does not say from where a form comes either.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A time of the admin protocol.
fn moment(at_ms: i64) -> String {
    words::moment(u64::try_from(at_ms).unwrap_or(0))
}

/// To another page, after something was done.
fn see(path: &str) -> Response {
    match HeaderValue::try_from(path) {
        Ok(place) => (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response(),
        Err(_) => Redirect::to("/admin/models").into_response(),
    }
}

impl Desk {
    /// The session of a browser, while it lasts and its token does.
    fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let cookie = origin::cookie(headers)?;
        let session = self.sessions.find(cookie, self.admin.plane.clock.now_ms())?;
        if self.guard.is_over(&session.caller) {
            self.sessions.end(cookie);
            return None;
        }
        Some(session)
    }

    /// A call of the admin protocol by somebody who has logged in, if the role allows it: `CatalogService/GetCatalog`.
    fn request<T>(&self, visit: &Visit, method: &str, message: T) -> Result<tonic::Request<T>, Fault> {
        let path = roles::path(method);
        self.guard.admit_again(visit.caller(), roles::needed(&path), &path)?;
        let mut request = tonic::Request::new(message);
        request.extensions_mut().insert(visit.caller().clone());
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
