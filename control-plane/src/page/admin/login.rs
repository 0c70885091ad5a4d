//! Who logs in shows a token of the admin protocol once, in a form, and gets a cookie for it. The token is in no address and
//! is kept nowhere.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Query, Request, State};
use axum::extract::{FromRequest as _, rejection::QueryRejection};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html as Page, IntoResponse as _, Response};
use serde::Deserialize;

use super::super::html::Html;
use super::fault::Fault;
use super::origin::{self, Way};
use super::session::LENGTH_MS;
use super::{Desk, Fields, Visit, frame, see};
use crate::access::Role;
use crate::grpc::auth::admin::{Refused, peer};
use crate::keys::random_text;

/// The first page.
const FIRST: &str = "/admin/models";

/// The query string.
#[derive(Debug, Default, Deserialize)]
pub struct Ask {
    #[serde(default)]
    next: String,
}

/// Sends somebody who has not logged in to do so, and back then.
pub fn send(asked: &str) -> Response {
    see(&format!("/admin/login?next={}", frame::encoded(asked)))
}

/// The form.
pub async fn show(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Response {
    let next = ask.map(|Query(ask)| ask.next).unwrap_or_default();
    if desk.session(&headers).is_some() {
        return see(own(&next));
    }
    Page(render(&next, None)).into_response()
}

/// Takes the form.
pub async fn enter(State(desk): State<Arc<Desk>>, request: Request) -> Result<Response, Fault> {
    let way = origin::of_form(request.headers(), request.uri())
        .map_err(|why| Fault::of(StatusCode::FORBIDDEN, format!("{why}: you are not logged in")))?;
    let from = peer(request.extensions());
    let Form(mut fields) = Form::<Fields>::from_request(request, &())
        .await
        .map_err(|rejection| Fault::of(rejection.status(), rejection.body_text()))?;
    let token = fields.remove("token").map(|token| token.trim().as_bytes().to_vec());
    let next = fields.remove("next").unwrap_or_default();
    let admitted =
        desk.guard.admit(token.filter(|token| !token.is_empty()), from, Role::Viewer, "/admin/login");
    let caller = match admitted.await {
        Ok(caller) => caller,
        Err(refused @ Refused::Unknown(_)) => {
            let page = Page(render(&next, Some(&refused.said())));
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
        Err(refused) => return Err(refused.into()),
    };
    tracing::info!(caller = caller.name, role = %caller.role, from = caller.from, "{} logged in", caller.name);
    let cookie = random_text();
    desk.sessions.begin(&cookie, random_text(), caller, desk.admin.plane.clock.now_ms());
    Ok(with_cookie(see(own(&next)), &cookie, way, LENGTH_MS / 1000))
}

/// Ends a session.
pub async fn leave(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
) -> Response {
    if let Some(cookie) = origin::cookie(&headers) {
        desk.sessions.end(cookie);
    }
    tracing::info!(caller = visit.caller().name, "{} logged out", visit.caller().name);
    let out = with_cookie(see("/admin/login"), "", Way::Tls, 0);
    with_cookie(out, "", Way::Clear, 0)
}

fn with_cookie(mut response: Response, cookie: &str, way: Way, seconds: u64) -> Response {
    if let Ok(value) = HeaderValue::try_from(origin::set_cookie(cookie, way, seconds)) {
        response.headers_mut().append(SET_COOKIE, value);
    }
    response
}

/// Where somebody wanted to go, if it is one of our own pages.
fn own(next: &str) -> &str {
    let is_own = next == "/admin" || next.starts_with("/admin/") || next.starts_with("/admin?");
    if is_own && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') { next } else { FIRST }
}

fn render(next: &str, refused: Option<&str>) -> String {
    Html::document(
        |html| frame::head(html, "Log in"),
        |html| {
            html.node("main", &[], |html| {
                html.leaf("h1", &[], "Sluice");
                if let Some(why) = refused {
                    html.leaf("p", &[("role", "alert"), ("class", "bad")], &format!("Not logged in: {why}."));
                }
                html.node("form", &[("method", "post"), ("action", "/admin/login"), ("class", "login")], |html| {
                    html.void("input", &[("type", "hidden"), ("name", "next"), ("value", own(next))]);
                    // Password managers keep a token under a name.
                    let name = [("type", "text"), ("name", "name"), ("value", "sluice"), ("hidden", "")];
                    html.void("input", &[&name[..], &[("autocomplete", "username")]].concat());
                    html.leaf("label", &[("for", "token")], "Token");
                    html.void(
                        "input",
                        &[
                            ("type", "password"),
                            ("id", "token"),
                            ("name", "token"),
                            ("autocomplete", "current-password"),
                            ("required", ""),
                            ("aria-describedby", "which"),
                        ],
                    );
                    html.leaf("button", &[("type", "submit")], "Log in");
                });
                let which = "The token that sluice shows, too: admin.token in the data folder of the control plane, or one that \
                             sluice access create made. Its role decides what you see and may do.";
                html.leaf("p", &[("class", "quiet"), ("id", "which")], which);
                html.node("p", &[], |html| html.leaf("a", &[("href", "/")], "Status"));
            });
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere_after_logging_in() {
        for next in ["/admin", "/admin/models/a%2Fb", "/admin?x", "/admin/requests?model=m&status=503"] {
            assert_eq!(own(next), next);
        }
        for next in
            ["", "/", "//evil.example", "https://evil.example", "/adminx", "/admin/\\evil", "/admin/\r\nx: y"]
        {
            assert_eq!(own(next), FIRST, "{next}");
        }
    }
}
