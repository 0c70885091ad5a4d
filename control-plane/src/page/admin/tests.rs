//! The admin pages through the router of the http listener, as a browser asks for them.

mod acts;
mod pages;

use axum::body::{Body, to_bytes};
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, Request};
use common::pb::fleet;
use tower::ServiceExt as _;

use super::*;
use crate::access::Role;
use crate::access::tokens::{self, Created, New};
use crate::grpc::auth::Token;
use crate::http::{self, Open, Ready};
use crate::observed::fixture::{Fixture, NOW_MS};
use crate::page::Sees;
use crate::revision::{self, Apply};

pub const HOSTILE: &str = "<script>alert(1)</script>";

/// What came back.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn location(&self) -> &str {
        self.headers.get(LOCATION).map_or("", |place| place.to_str().unwrap())
    }
}

/// A browser before a control plane.
pub struct Browser {
    pub fixture: Fixture,
    routes: Router,
    cookie: Option<String>,
    pub form_token: String,
}

impl Browser {
    pub async fn before(fixture: Fixture, open: Open) -> Self {
        let guard = Guard::new(fixture.plane.clone(), Token::new("s3cret"), None);
        let routes = http::routes(&fixture.plane, Ready::default(), &guard, open);
        Browser { fixture, routes, cookie: None, form_token: String::new() }
    }

    /// Somebody who has logged in with the token of the data folder.
    pub async fn admin(fixture: Fixture) -> Self {
        let mut browser = Browser::before(fixture, Open::Everything).await;
        browser.log_in("s3cret").await;
        browser
    }

    /// Somebody who has logged in with a token of this role.
    pub async fn with_role(fixture: Fixture, role: Role) -> Self {
        let created = token(&fixture, role).await;
        let mut browser = Browser::before(fixture, Open::Everything).await;
        browser.log_in(&created.secret).await;
        browser
    }

    pub async fn log_in(&mut self, token: &str) {
        let answer = self.post_from("http://plane", "/admin/login", &[("token", token)]).await;
        assert_eq!((answer.status, answer.location()), (303, "/admin/models"), "{}", answer.body);
        let set = answer.headers[SET_COOKIE].to_str().unwrap();
        assert!(set.contains("HttpOnly; SameSite=Strict") && !set.contains(token), "{set}");
        self.cookie = set.split(';').next().map(str::to_owned);
        let page = self.get("/admin/models").await;
        let (_, rest) = page.body.split_once("name=\"form_token\" value=\"").unwrap();
        self.form_token = rest.split('"').next().unwrap().to_owned();
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path), Body::empty()).await
    }

    /// A form of ours.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let own = [("form_token", self.form_token.as_str())];
        self.post_from("http://plane", path, &[&own, fields].concat()).await
    }

    /// A form of whoever.
    pub async fn post_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", frame::encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let form = "application/x-www-form-urlencoded";
        let request = Request::post(path).header("content-type", form).header(ORIGIN, origin);
        self.send(request, Body::from(body)).await
    }

    async fn send(&self, mut request: axum::http::request::Builder, body: Body) -> Answer {
        request = request.header(HOST, "plane");
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        let answer = self.routes.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        Answer { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }
}

pub async fn token(fixture: &Fixture, role: Role) -> Created {
    let new = New { name: "ann", role, ttl: None };
    tokens::create(&fixture.plane, &Caller::bootstrap(), new).await.unwrap()
}

/// Two revisions, of which the second makes a channel dearer.
pub async fn two_revisions(message: &str) -> Fixture {
    let fixture = Fixture::with_catalog().await;
    let dearer = crate::observed::fixture::CATALOG.replace("output = \"8.00\"", "output = \"9.00\"");
    let ask = Apply { message, ..Apply::of(dearer, Caller::bootstrap()) };
    revision::apply(&fixture.plane, ask).await.unwrap();
    keep_record(&fixture, message).await;
    fixture
}

/// A request that failed over, as a node brings it.
pub async fn keep_record(fixture: &Fixture, name: &str) {
    let hop = |channel: &str| fleet::RecordHop {
        channel: channel.to_owned(),
        upstream_model: "up".to_owned(),
        ..Default::default()
    };
    let failed = fleet::RecordAttempt {
        headers_us: Some(2_000_000),
        ended_us: 2_000_000,
        class: "overloaded".to_owned(),
        reason: "plain".to_owned(),
        status: 503,
        ..Default::default()
    };
    let served = fleet::RecordAttempt {
        hop: 1,
        began_us: 2_000_000,
        headers_us: Some(3_000_000),
        decisive_us: Some(3_100_000),
        ended_us: 4_000_000,
        class: "ok".to_owned(),
        status: 200,
        gate: "content".to_owned(),
        upstream_request_id: format!("up-{name}"),
        ..Default::default()
    };
    let record = fleet::Record {
        request_id: ID.to_owned(),
        client_request_id: name.to_owned(),
        began_at_ms: NOW_MS - 60_000,
        revision: 1,
        model: "gpt-4o".to_owned(),
        dialect: "openai-chat".to_owned(),
        operation: "/v1/chat/completions".to_owned(),
        key_id: "key-1".to_owned(),
        chain: vec![hop("reseller"), hop("direct")],
        attempts: vec![failed, served],
        outcome: "served".to_owned(),
        status: 200,
        committed_us: Some(3_100_000),
        ended_us: 4_000_000,
        ..Default::default()
    };
    let upload = fleet::UploadRecordsRequest { node_id: "node-a".to_owned(), records: vec![record] };
    let rows = crate::records::rows(upload, &fixture.plane.keeping, &Default::default(), NOW_MS).unwrap();
    fixture.plane.store.keep_records(&rows).await.unwrap();
}

/// Of that request.
pub const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Every page, with something on it.
const ALL: [&str; 10] = [
    "/admin/models",
    "/admin/models/gpt-4o",
    "/admin/catalog",
    "/admin/catalog/1",
    "/admin/catalog/diff?from=1&to=2",
    "/admin/rollouts",
    "/admin/nodes",
    "/admin/keys",
    "/admin/requests",
    "/admin/requests/01890a5d-ac96-774b-bcce-b302099a8057",
];

#[tokio::test]
async fn who_has_not_logged_in_sees_no_page_whatever_else_the_listener_opens() {
    for open in [Open::Everything, Open::Status(Sees::Models), Open::Probes] {
        let browser = Browser::before(two_revisions("").await, open).await;
        for path in ALL.into_iter().chain(["/admin", "/admin/events", "/admin/nothing"]) {
            let answer = browser.get(path).await;
            let place = format!("/admin/login?next={}", frame::encoded(path));
            assert_eq!((answer.status, answer.location()), (303, place.as_str()), "{path} with {open:?}");
            assert_eq!(answer.body, "", "{path} with {open:?}");
        }
        for path in ["/admin/login", "/assets/sluice.css"] {
            assert_eq!(browser.get(path).await.status, 200, "{path} with {open:?}");
        }
    }
}

#[tokio::test]
async fn a_token_opens_the_pages_until_it_is_revoked_or_somebody_logs_out() {
    let fixture = two_revisions("").await;
    let viewer = token(&fixture, Role::Viewer).await;
    let mut browser = Browser::before(fixture, Open::Probes).await;
    for wrong in ["", "wrong", "s3cre"] {
        let answer = browser.post_from("http://plane", "/admin/login", &[("token", wrong)]).await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(answer.body.contains("Not logged in") && !answer.headers.contains_key(SET_COOKIE));
    }
    browser.log_in(&viewer.secret).await;
    for path in ALL {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.contains("ann (viewer)"), "{path}");
        assert!(!answer.body.contains(&viewer.secret), "{path}");
    }
    assert_eq!(browser.get("/admin/nothing").await.status, 404);
    assert_eq!(browser.get("/admin/login").await.location(), "/admin/models", "it is open already");

    let out = browser.post("/admin/logout", &[]).await;
    assert_eq!((out.status, out.location()), (303, "/admin/login"));
    assert_eq!(browser.get("/admin/models").await.status, 303, "the old cookie opens nothing");

    browser.log_in(&viewer.secret).await;
    tokens::revoke(&browser.fixture.plane, &Caller::bootstrap(), &viewer.token.id).await.unwrap();
    assert_eq!(browser.get("/admin/models").await.status, 303, "the token was revoked");
}

#[tokio::test]
async fn a_form_of_another_site_or_without_the_sessions_token_does_nothing() {
    let fixture = two_revisions("").await;
    let browser = Browser::admin(fixture).await;
    let own = browser.form_token.as_str();
    for (origin, fields) in [
        ("http://evil.example", &[("form_token", own)][..]),
        ("null", &[("form_token", own)]),
        ("http://plane", &[]),
        ("http://plane", &[("form_token", "")]),
        ("http://plane", &[("form_token", "guessed")]),
    ] {
        let answer = browser.post_from(origin, "/admin/logout", fields).await;
        assert_eq!(answer.status, 403, "{origin} {fields:?}");
        assert!(answer.body.contains("nothing was done"), "{}", answer.body);
        assert_eq!(browser.get("/admin/models").await.status, 200, "still logged in");
    }
    let json = Request::post("/admin/logout").header("content-type", "application/json");
    let answer = browser.send(json.header(ORIGIN, "http://plane"), Body::from("{}")).await;
    assert_eq!(answer.status, 415);
    let login = browser.post_from("http://evil.example", "/admin/login", &[("token", "s3cret")]).await;
    assert_eq!((login.status, login.headers.contains_key(SET_COOKIE)), (403, false));
    let long = "x".repeat(FORM_BYTES_MAX);
    assert_eq!(browser.post("/admin/logout", &[("long", &long)]).await.status, 413);
}

#[tokio::test]
async fn nothing_from_outside_becomes_markup_and_nothing_inline_is_allowed() {
    let fixture = two_revisions(HOSTILE).await;
    let document = crate::observed::fixture::CATALOG.replace("\"gpt-4o\"", "\"<script>m\"");
    let _node = fixture.connect(HOSTILE, &["reseller"]);
    revision::apply(&fixture.plane, Apply::of(document, Caller::bootstrap())).await.unwrap();
    let browser = Browser::admin(fixture).await;
    let hostile = [
        "/admin/requests?model=%3Cscript%3E",
        "/admin/requests/%3Cscript%3E",
        "/admin/models/%3Cscript%3Em",
        "/admin/models/%3Cscript%3E",
        "/admin/catalog/3",
    ];
    let mut planted = 0;
    for path in ALL.into_iter().chain(hostile) {
        let answer = browser.get(path).await;
        let html = answer.body;
        planted += html.matches("&lt;script&gt;").count();
        let scripts = html.matches("<script").count();
        assert_eq!(scripts, html.matches("<script src=\"/assets/live.js\" defer=\"\">").count(), "{path}");
        assert!(!html.contains("style=") && !html.contains("javascript:"), "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("form-action 'self'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["referrer-policy"], "same-origin");
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
    assert!(planted >= 10, "{planted} of what was planted are shown");
}
