//! What the http listener answers of itself: whether the process lives, whether it is ready, its
//! metrics. The page and `/api` are `page`'s matter. Off loopback it asks who calls, as the admin listener does, except
//! for what load balancers ask and, if the operator wants it so, the status. The admin pages ask for themselves, on loopback too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{AppendHeaders, IntoResponse as _, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};

use crate::access::Role;
use crate::callers;
use crate::grpc::auth::admin::{Guard, Refused, peer, shown};
use crate::page::{self, Sees};
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

/// What of the http listener is open to everybody; for the rest the guard asks who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// All of it: the listener stands on loopback.
    Everything,
    /// The probes, and of the status page and the JSON behind it what everybody sees; operators see all.
    Status(Sees),
    /// What load balancers ask.
    Probes,
}

/// The routes of the http listener.
pub fn routes(plane: &Arc<Plane>, ready: Ready, guard: &Guard, open: Open) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics)).with_state(plane.clone());
    // Where who calls is asked for, a browser shows it from then on.
    let operator = Router::new().route("/operator", get(async || Redirect::to("/")));
    let status = page::routes(plane.clone());
    let asking = from_fn_with_state(guard.clone(), require);
    // Applications and those who log in show who they are themselves, on every listener.
    let own = page::assets().merge(page::admin::routes(plane, guard)).merge(callers::routes(plane.clone()));
    probes(ready).merge(own).merge(match open {
        Open::Everything => metrics.merge(operator).merge(status.layer(Extension(Sees::All))),
        Open::Status(sees) => {
            let telling = from_fn_with_state((guard.clone(), sees), tell);
            metrics.merge(operator).layer(asking).merge(status.layer(telling))
        }
        Open::Probes => metrics.merge(operator).merge(status.layer(Extension(Sees::All))).layer(asking),
    })
}

/// What the http listener answers while nothing was read from the store.
pub fn not_ready(ready: Ready) -> Router {
    probes(ready).fallback(async || (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"))
}

fn probes(ready: Ready) -> Router {
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(async move || ready.answer()))
}

async fn metrics(State(plane): State<Arc<Plane>>) -> Response {
    plane.metrics.leader(plane.leader.epoch().is_some());
    plane.metrics.nodes_cloned(plane.nodes.cloned());
    plane.metrics.replicas(plane.nodes.streams(), plane.nodes.control_planes().len());
    let text = plane.metrics.render(plane.head.now().as_deref(), plane.nodes.count());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// Lets in who may read.
async fn require(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match check(&guard, Shown::of(&request)).await {
        Ok(()) => next.run(request).await,
        Err(refused) => *refused,
    }
}

/// Lets everybody in, to see as much as they may.
async fn tell(State((guard, everybody)): State<(Guard, Sees)>, mut request: Request, next: Next) -> Response {
    let sees = if request.headers().contains_key(AUTHORIZATION) {
        if let Err(refused) = check(&guard, Shown::of(&request)).await {
            return *refused;
        }
        Sees::All
    } else {
        everybody
    };
    request.extensions_mut().insert(sees);
    next.run(request).await
}

/// What is shown by whom for what: what a request says of who calls.
struct Shown {
    token: Option<Vec<u8>>,
    from: String,
    path: String,
}

impl Shown {
    /// A browser shows the token as the password of whatever user.
    fn of(request: &Request) -> Self {
        let headers = request.headers();
        Shown {
            token: shown(headers).or_else(|| password(headers)),
            from: peer(request.extensions()),
            path: request.uri().path().to_owned(),
        }
    }
}

/// Whether who calls may read.
async fn check(guard: &Guard, Shown { token, from, path }: Shown) -> Result<(), Box<Response>> {
    let refused = match guard.admit(token, from, Role::Viewer, &path).await {
        Ok(_) => return Ok(()),
        Err(refused) => refused,
    };
    let said = format!("{}\n", refused.said());
    Err(Box::new(match refused {
        Refused::Forbidden { .. } | Refused::NoRole { .. } => (StatusCode::FORBIDDEN, said).into_response(),
        Refused::Away => (StatusCode::SERVICE_UNAVAILABLE, said).into_response(),
        Refused::Unknown(_) => {
            let ways = ["Bearer realm=\"sluice\"", "Basic realm=\"sluice\""];
            let challenge = AppendHeaders(ways.map(|way| (WWW_AUTHENTICATE, way)));
            (StatusCode::UNAUTHORIZED, challenge, said).into_response()
        }
    }))
}

fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, shown) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(6)?;
    let decoded =
        BASE64.decode(shown.trim_ascii()).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic "))?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec()).filter(|password| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};

    use super::*;
    use crate::access::Caller;
    use crate::access::tokens::{self, New};
    use crate::grpc::auth::Token;
    use crate::observed::fixture::Fixture;

    #[test]
    fn a_browser_shows_the_token_as_a_password() {
        let headers = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        let basic = |text: &str| headers(&format!("Basic {}", BASE64.encode(text)));
        for (headers, expected) in [
            (basic("ann:s3cret"), Some("s3cret")),
            (basic(":s3:cret"), Some("s3:cret")),
            (basic("ann:"), None),
            (basic("ann"), None),
            (headers("Basic ???"), None),
            (headers("Bearer YTpi"), None),
            (headers("Basic"), None),
        ] {
            assert_eq!(password(&headers), expected.map(|text| text.as_bytes().to_vec()), "{headers:?}");
        }
    }

    #[tokio::test]
    async fn what_is_open_is_open_and_the_rest_asks_who_calls() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let viewer = New { name: "grafana", role: Role::Viewer, ttl: None };
        let viewer = tokens::create(plane, &Caller::bootstrap(), viewer).await.unwrap().secret;
        let guard = Guard::new(plane.clone(), Token::new("s3cret"), None);
        let get = async |open: Open, path: &str, authorization: Option<String>| {
            let mut request = Request::get(path);
            if let Some(value) = authorization {
                request = request.header(AUTHORIZATION, value);
            }
            let routes = routes(plane, Ready::default(), &guard, open);
            let request = request.body(Body::empty()).unwrap();
            let answer = tower::ServiceExt::oneshot(routes, request).await.unwrap();
            let ways = answer.headers().get_all(WWW_AUTHENTICATE).iter().count();
            let status = answer.status().as_u16();
            let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
            (status, ways, String::from_utf8_lossy(&body).into_owned())
        };
        let all = ["/healthz", "/", "/api/v1/status", "/assets/sluice.css", "/metrics", "/operator"];
        for (open, statuses) in [
            (Open::Everything, [200, 200, 200, 200, 200, 303]),
            (Open::Status(Sees::Models), [200, 200, 200, 200, 401, 401]),
            (Open::Probes, [200, 401, 401, 200, 401, 401]),
        ] {
            for (path, status) in all.into_iter().zip(statuses) {
                assert_eq!(get(open, path, None).await.0, status, "{path} with {open:?}");
            }
        }
        let wrong = get(Open::Probes, "/metrics", Some("Bearer wrong".to_owned())).await;
        assert_eq!(wrong, (401, 2, "the token is wrong\n".to_owned()));
        for (everybody, sees) in [(Sees::Models, [false, false]), (Sees::Channels, [true, false])] {
            let open = Open::Status(everybody);
            let shown = Some(format!("Bearer {viewer}"));
            let has = |(_, _, body): &(u16, usize, String)| {
                ["reseller", "No node was ever connected"].map(|what| body.contains(what))
            };
            assert_eq!(has(&get(open, "/", None).await), sees, "{everybody:?}");
            assert_eq!(has(&get(open, "/", shown).await), [true, true], "an operator sees all");
            let wrong = get(open, "/", Some("Bearer wrong".to_owned())).await;
            assert_eq!((wrong.0, has(&wrong)), (401, [false, false]));
        }
        for shown in [
            "Bearer s3cret".to_owned(),
            format!("Bearer {viewer}"),
            format!("Basic {}", BASE64.encode(format!("me:{viewer}"))),
        ] {
            assert_eq!(get(Open::Probes, "/metrics", Some(shown)).await.0, 200);
        }
    }
}
