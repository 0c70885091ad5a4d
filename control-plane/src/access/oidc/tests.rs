//! An issuer on loopback, whose keys come, change and stay away.

use std::sync::Mutex as StdMutex;

use axum::Router;
use axum::routing::get;
use common::tasks::Tasks;
use serde_json::json;

use super::jwt::tests::{NOW_S, Signer, claims};
use super::*;

struct Issuer {
    url: String,
    keys: Arc<StdMutex<Vec<Value>>>,
    asked: Arc<StdMutex<u32>>,
    tasks: Tasks,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let (keys, asked) = (Arc::new(StdMutex::new(keys)), Arc::new(StdMutex::new(0)));
        let found = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
        let (served, counted) = (keys.clone(), asked.clone());
        let routes =
            Router::new().route("/.well-known/openid-configuration", get(async move || found)).route(
                "/keys",
                get(async move || {
                    *counted.lock().unwrap() += 1;
                    json!({"keys": *served.lock().unwrap()}).to_string()
                }),
            );
        let tasks = Tasks::new();
        tasks.spawn("issuer", |stop| async move {
            let serving = axum::serve(socket, routes);
            let _ = stop.run_until_cancelled(serving.into_future()).await;
        });
        Issuer { url, keys, asked, tasks }
    }

    fn trusted(&self) -> Oidc {
        Oidc::new(Trust {
            issuer: self.url.clone(),
            audience: "sluice".to_owned(),
            role_claim: "roles".to_owned(),
            roles: vec![("sre".to_owned(), Role::Operator), ("dev".to_owned(), Role::Viewer)],
        })
        .unwrap()
    }

    fn claims(&self, roles: Value) -> Value {
        let mut claims = claims();
        claims["iss"] = json!(self.url);
        claims["roles"] = roles;
        claims
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }
}

#[tokio::test]
async fn a_subject_has_the_highest_role_that_its_claim_gives() {
    let signer = Signer::ec();
    let issuer = Issuer::start(vec![signer.jwk("a")]).await;
    let oidc = issuer.trusted();
    let identify =
        async |claims: Value| oidc.identify(signer.sign("a", &claims).as_bytes(), NOW_S * 1000).await;
    let caller = identify(issuer.claims(json!(["other", "dev", "sre"]))).await.unwrap();
    assert_eq!(
        (caller.name.as_str(), caller.role, caller.credential.as_str()),
        ("u-1", Role::Operator, "oidc:u-1")
    );
    assert_eq!(caller.expires_at_ms, Some((NOW_S + 300 + LEEWAY_S) * 1000));
    assert_eq!(identify(issuer.claims(json!("dev"))).await.unwrap().role, Role::Viewer);
    let none = identify(issuer.claims(json!(["admin", "Sre"]))).await;
    assert_eq!(none, Err(Refused::NoRole { name: "u-1".to_owned() }));
    let other = identify(claims()).await;
    assert_eq!(other, Err(Refused::Wrong("the token is of another issuer")));
    assert_eq!(issuer.asked(), 1, "keys are kept");
}

#[tokio::test]
async fn a_new_key_is_asked_for_and_an_unknown_one_does_not_ask_again_and_again() {
    let (old, new) = (Signer::ec(), Signer::ed());
    let issuer = Issuer::start(vec![old.jwk("a")]).await;
    let oidc = issuer.trusted();
    let jwt = |signer: &Signer, id: &str| {
        Jwt::read(signer.sign(id, &issuer.claims(json!("sre"))).as_bytes()).unwrap()
    };
    let t0 = Instant::now();
    assert_eq!(oidc.keys_for(&jwt(&old, "a"), t0).await.unwrap().len(), 1);
    *issuer.keys.lock().unwrap() = vec![old.jwk("a"), new.jwk("b")];
    for _ in 0..5 {
        oidc.keys_for(&jwt(&new, "b"), t0 + ASK_AGAIN / 2).await.unwrap();
    }
    assert_eq!(issuer.asked(), 1, "too soon");
    assert_eq!(oidc.keys_for(&jwt(&new, "b"), t0 + ASK_AGAIN).await.unwrap().len(), 2);
    let token = new.sign("b", &issuer.claims(json!("sre")));
    assert!(oidc.identify(token.as_bytes(), NOW_S * 1000).await.is_ok());
    *issuer.keys.lock().unwrap() = vec![new.jwk("b")];
    let keys = oidc.keys_for(&jwt(&old, "a"), t0 + ASK_AGAIN + KEYS_AGE).await.unwrap();
    assert_eq!(keys.len(), 1, "a key that was withdrawn is forgotten");
}

#[tokio::test]
async fn while_the_issuer_is_away_known_keys_count_and_others_are_not_called_wrong() {
    let signer = Signer::rsa();
    let issuer = Issuer::start(vec![signer.jwk("a")]).await;
    let (oidc, never) = (issuer.trusted(), issuer.trusted());
    let token = signer.sign("a", &issuer.claims(json!("sre")));
    assert!(oidc.identify(token.as_bytes(), NOW_S * 1000).await.is_ok());
    assert!(issuer.tasks.stop(Duration::from_secs(10)).await);
    let jwt = Jwt::read(token.as_bytes()).unwrap();
    assert_eq!(oidc.keys_for(&jwt, Instant::now() + KEYS_AGE).await.unwrap().len(), 1);
    assert!(oidc.identify(token.as_bytes(), NOW_S * 1000).await.is_ok());
    assert_eq!(never.identify(token.as_bytes(), NOW_S * 1000).await, Err(Refused::Away));
}

#[tokio::test]
async fn the_guard_takes_a_token_of_the_issuer_like_one_of_its_own() {
    use crate::grpc::auth::Token;
    use crate::grpc::auth::admin::{Guard, Refused};
    use crate::observed::fixture::{Fixture, NOW_MS};
    assert_eq!(NOW_MS / 1000, NOW_S);
    let signer = Signer::ed();
    let issuer = Issuer::start(vec![signer.jwk("a")]).await;
    let fixture = Fixture::unread().await;
    let guard = Guard::new(fixture.plane.clone(), Token::new("s3cret"), Some(issuer.trusted()));
    let admit = async |roles: Value, needed: Role| {
        let shown = signer.sign("a", &issuer.claims(roles)).into_bytes();
        guard.admit(Some(shown), "192.0.2.7:1".to_owned(), needed, "a test").await
    };
    let caller = admit(json!("sre"), Role::Operator).await.unwrap();
    assert_eq!((caller.credential.as_str(), caller.from.as_str()), ("oidc:u-1", "192.0.2.7:1"));
    assert!(matches!(admit(json!("dev"), Role::Operator).await, Err(Refused::Forbidden { .. })));
    assert_eq!(admit(json!([]), Role::Viewer).await, Err(Refused::NoRole { name: "u-1".to_owned() }));
    let own = guard.admit(Some(b"s3cret".to_vec()), String::new(), Role::Admin, "a test").await;
    assert_eq!(own.unwrap().credential, "admin.token");
}

#[test]
fn keys_come_over_tls_or_from_this_host() {
    for url in ["https://issuer.example", "http://127.0.0.1:1", "http://[::1]:1/x", "http://localhost"] {
        assert!(is_safe(url), "{url}");
    }
    for url in
        ["http://issuer.example", "http://localhost.example", "ftp://127.0.0.1", "issuer", "https://", ""]
    {
        assert!(!is_safe(url), "{url}");
    }
}
