//! Operators that an OIDC issuer vouches for, by `sluice` itself: whose token is taken as what, what is told of one that is
//! not, and an issuer that changes its keys or goes away.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use common::clock::Clock;
use common::tasks::Tasks;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::operator::Operator;
use harness::sluice::Said;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// A key of an issuer, with its name.
struct Signer(&'static str, Ed25519KeyPair);

impl Signer {
    fn new(name: &'static str) -> anyhow::Result<Self> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).ok().context("no randomness")?;
        Ok(Signer(name, Ed25519KeyPair::from_pkcs8(made.as_ref()).ok().context("no key")?))
    }

    fn jwk(&self) -> Value {
        let public = BASE64.encode(self.1.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": self.0, "x": public})
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "EdDSA", "kid": self.0, "typ": "JWT"});
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = BASE64.encode(self.1.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// An issuer on loopback.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    tasks: Tasks,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> anyhow::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", socket.local_addr()?);
        let (keys, tasks) = (Arc::new(Mutex::new(keys)), Tasks::new());
        let (served, named) = (keys.clone(), url.clone());
        tasks.spawn("issuer", |stop| async move {
            let serving = async {
                while let Ok((mut connection, _)) = socket.accept().await {
                    let mut head = BufReader::new(&mut connection).lines();
                    let first = head.next_line().await.ok().flatten().unwrap_or_default();
                    while head.next_line().await.is_ok_and(|line| line.is_some_and(|line| !line.is_empty())) {
                    }
                    let body = if first.contains("/.well-known/openid-configuration ") {
                        json!({"issuer": named, "jwks_uri": format!("{named}/keys")})
                    } else {
                        json!({"keys": *served.lock().unwrap_or_else(PoisonError::into_inner)})
                    };
                    let (body, close) = (body.to_string(), "connection: close");
                    let answer =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{close}\r\n\r\n{body}", body.len());
                    let _ = connection.write_all(answer.as_bytes()).await;
                }
            };
            let _ = stop.run_until_cancelled(serving).await;
        });
        Ok(Issuer { url, keys, tasks })
    }

    fn set(&self, keys: Vec<Value>) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Claims that are taken, of somebody with these roles.
    fn claims(&self, roles: &Value) -> Value {
        let now_s = Clock::system().now_ms() / 1000;
        json!({
            "iss": self.url, "aud": "sluice", "sub": "u-1", "email": "jo@example.org",
            "iat": now_s, "exp": now_s + 600, "roles": roles,
        })
    }
}

async fn sluice(fleet: &Fleet, token: &str, args: &[&str]) -> anyhow::Result<Said> {
    let file = fleet.dir().join("oidc.token");
    std::fs::write(&file, token)?;
    Operator::of(&fleet.control_plane, file).sluice(args).await
}

#[tokio::test]
async fn an_issuers_tokens_are_taken_for_the_role_that_they_give_and_others_say_what_is_wrong()
-> anyhow::Result<()> {
    let (old, new) = (Signer::new("old")?, Signer::new("new")?);
    let issuer = Issuer::start(vec![old.jwk()]).await?;
    let flags = [
        "--oidc-issuer",
        &issuer.url,
        "--oidc-audience",
        "sluice",
        "--oidc-role-map",
        "sre=operator,dev=viewer",
    ];
    let control_plane_args = flags.map(str::to_owned).to_vec();
    let fleet = Fleet::start_as(Plan { control_plane_args, ..Plan::default() }).await?;

    let sre = old.sign(&issuer.claims(&json!(["other", "sre"])));
    let who = sluice(&fleet, &sre, &["access", "whoami", "-o", "json"]).await?.with_code(0)?.json()?;
    let said = ["name", "role", "credential"].map(|member| who[member].as_str().unwrap_or(""));
    assert_eq!(said, ["jo@example.org", "operator", "oidc:u-1"], "{who}");
    sluice(&fleet, &sre, &["keys", "create", "--name", "theirs"]).await?.with_code(0)?;
    let audit = fleet.sluice(&["audit", "list"]).await?.with_code(0)?;
    assert!(audit.out.contains("jo@example.org"), "{}", audit.out);

    let dev = old.sign(&issuer.claims(&json!("dev")));
    sluice(&fleet, &dev, &["nodes", "list"]).await?.with_code(0)?;
    let refused = sluice(&fleet, &dev, &["keys", "create", "--name", "k"]).await?.with_code(2)?;
    assert!(
        refused.err.contains("needs the role operator; jo@example.org has the role viewer"),
        "{refused:?}"
    );

    let mut wrong = Vec::new();
    for (member, value, said) in [
        ("aud", json!("another"), "for another audience"),
        ("iss", json!("http://127.0.0.1:1"), "another issuer"),
        ("exp", json!(1_000_000_000), "expired"),
        ("roles", json!(["admin"]), "gives no role here"),
        ("roles", Value::Null, "gives no role here"),
    ] {
        let mut claims = issuer.claims(&json!("sre"));
        claims[member] = value;
        wrong.push((old.sign(&claims), said));
    }
    // Of somebody else's key under a name that is known.
    wrong.push((Signer::new("old")?.sign(&issuer.claims(&json!("sre"))), "signature"));
    for (token, said) in &wrong {
        let refused = sluice(&fleet, token, &["nodes", "list"]).await?.with_code(2)?;
        assert!(refused.err.contains(said) && refused.err.contains("help: "), "{said}: {refused:?}");
        assert!(!refused.err.contains(token.as_str()), "{refused:?}");
    }

    // The issuer signs by a new key, and withdraws the old one.
    issuer.set(vec![new.jwk()]);
    let renewed = new.sign(&issuer.claims(&json!("sre")));
    eventually("the new key is asked for", SOON, || async {
        let said = sluice(&fleet, &renewed, &["nodes", "list"]).await?;
        ensure!(said.code == 0, "{said:?}");
        Ok(())
    })
    .await?;
    sluice(&fleet, &sre, &["nodes", "list"]).await?.with_code(2)?;

    // While it is away, what is known counts on.
    ensure!(issuer.tasks.stop(SOON).await, "the issuer did not end");
    sluice(&fleet, &renewed, &["nodes", "list"]).await?.with_code(0)?;
    fleet.finish()
}
