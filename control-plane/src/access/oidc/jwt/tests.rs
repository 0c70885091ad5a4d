//! A table of tokens that are not taken, and of those that are, signed with keys of each kind.

use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::*;

/// For nothing else than these tests.
const RSA: &str = include_str!("rsa.base64");
pub const ISSUER: &str = "https://issuer.example";
pub const NOW_S: u64 = 1_796_046_279;

pub enum Signer {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
    Ed(Ed25519KeyPair),
}

impl Signer {
    pub fn rsa() -> Self {
        Signer::Rsa(Box::new(RsaKeyPair::from_pkcs8(&STANDARD.decode(RSA.trim()).unwrap()).unwrap()))
    }

    pub fn ec() -> Self {
        let (how, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(how, &random).unwrap();
        Signer::Ec(Box::new(EcdsaKeyPair::from_pkcs8(how, made.as_ref(), &random).unwrap()))
    }

    pub fn ed() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Signer::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Signer::Rsa(_) => "RS256",
            Signer::Ec(_) => "ES256",
            Signer::Ed(_) => "EdDSA",
        }
    }

    pub fn jwk(&self, id: &str) -> Value {
        match self {
            Signer::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": BASE64.encode(public.n), "e": BASE64.encode(public.e)})
            }
            Signer::Ec(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "kid": id, "alg": "ES256", "x": x, "y": y})
            }
            Signer::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": BASE64.encode(pair.public_key().as_ref())})
            }
        }
    }

    pub fn sign(&self, id: &str, claims: &Value) -> String {
        self.sign_under(&json!({"alg": self.algorithm(), "kid": id, "typ": "JWT"}), claims)
    }

    fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let random = SystemRandom::new();
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = match self {
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            Signer::Ec(pair) => pair.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            Signer::Ed(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

pub fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "sluice", "sub": "u-1", "exp": NOW_S + 300, "iat": NOW_S, "roles": ["sre"]})
}

fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    changed[name] = value;
    changed
}

fn without(name: &str) -> Value {
    let mut changed = claims();
    changed.as_object_mut().unwrap().remove(name);
    changed
}

fn verify(text: &str, keys: &[Value]) -> Result<Claims, &'static str> {
    let keys: Vec<Key> = keys.iter().filter_map(Key::read).collect();
    let expected = Expected { issuer: ISSUER, audience: "sluice", now_s: NOW_S };
    Jwt::read(text.as_bytes())?.verify(&keys, &expected)
}

#[test]
fn each_of_the_three_algorithms_is_taken_with_its_own_kind_of_key_alone() {
    let signers = [Signer::rsa(), Signer::ec(), Signer::ed()];
    let set: Vec<Value> = signers.iter().map(|one| one.jwk("same")).collect();
    for (n, signer) in signers.iter().enumerate() {
        let text = signer.sign("same", &claims());
        assert_eq!(verify(&text, &set).unwrap().subject, "u-1");
        let others: Vec<Value> =
            set.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, jwk)| jwk.clone()).collect();
        assert_eq!(verify(&text, &others).unwrap_err(), "the signature of the token is wrong");
        assert!(verify(&signer.sign("other", &claims()), &set).is_err(), "a key of another name");
        let nameless = signer.sign_under(&json!({"alg": signer.algorithm()}), &claims());
        assert!(verify(&nameless, &set).is_ok(), "without a name every key of the kind is tried");
    }
}

#[test]
fn whatever_does_not_hold_of_a_token_refuses_it() {
    let signer = Signer::ec();
    let set = [signer.jwk("k")];
    for (claims, why) in [
        (with("exp", json!(NOW_S - LEEWAY_S)), "expired"),
        (with("exp", json!(-1)), "expired"),
        (with("exp", json!("tomorrow")), "does not say when it ends"),
        (without("exp"), "does not say when it ends"),
        (with("aud", json!("other")), "another audience"),
        (with("aud", json!(["other", "sluice2"])), "another audience"),
        (without("aud"), "another audience"),
        (with("iss", json!("https://issuer.example/")), "another issuer"),
        (without("iss"), "another issuer"),
        (with("nbf", json!(NOW_S + LEEWAY_S + 1)), "not valid yet"),
        (with("nbf", json!("now")), "not valid yet"),
        (with("iat", json!(NOW_S + LEEWAY_S + 1)), "not valid yet"),
        (without("sub"), "whom it speaks of"),
    ] {
        let refused = verify(&signer.sign("k", &claims), &set).unwrap_err();
        assert!(refused.contains(why), "{claims}: {refused}");
    }
    for claims in [
        with("exp", json!(NOW_S - LEEWAY_S + 1)),
        with("nbf", json!(NOW_S + LEEWAY_S)),
        with("aud", json!(["other", "sluice"])),
        without("iat"),
    ] {
        assert!(verify(&signer.sign("k", &claims), &set).is_ok(), "{claims}");
    }
}

#[test]
fn a_token_does_not_choose_how_it_is_verified() {
    let signer = Signer::rsa();
    let set = [signer.jwk("k")];
    let part = |value: &Value| BASE64.encode(value.to_string());
    let none = format!("{}.{}.", part(&json!({"alg": "none", "kid": "k"})), part(&claims()));
    assert!(verify(&none, &set).unwrap_err().contains("not taken"));
    // The classic: an HMAC under the public key, which everybody has.
    let signed = format!("{}.{}", part(&json!({"alg": "HS256", "kid": "k"})), part(&claims()));
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, set[0]["n"].as_str().unwrap().as_bytes());
    let forged = format!("{signed}.{}", BASE64.encode(ring::hmac::sign(&secret, signed.as_bytes())));
    assert!(verify(&forged, &set).unwrap_err().contains("not taken"));
    let crit = signer.sign_under(&json!({"alg": "RS256", "kid": "k", "crit": ["b64"]}), &claims());
    assert!(verify(&crit, &set).unwrap_err().contains("extensions"));

    let good = signer.sign("k", &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let other = part(&with("roles", json!(["admin"])));
    let tampered = format!("{}.{other}.{}", parts[0], parts[2]);
    assert_eq!(verify(&tampered, &set).unwrap_err(), "the signature of the token is wrong");
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    assert_eq!(verify(&unsigned, &set).unwrap_err(), "the signature of the token is wrong");
    for text in ["", "a.b", "a.b.c.d", "..", "é.a.b", &format!("{good}="), &"x".repeat(20_000)] {
        assert!(verify(text, &set).is_err(), "{text:.40}");
    }
}

#[test]
fn a_key_for_something_else_is_no_key() {
    let jwk = Signer::ec().jwk("k");
    let with = |name: &str, value: &str| {
        let mut changed = jwk.clone();
        changed[name] = json!(value);
        Key::read(&changed)
    };
    assert!(Key::read(&jwk).is_some());
    for (name, value) in [("use", "enc"), ("alg", "ES384"), ("crv", "P-384"), ("kty", "oct"), ("x", "?")] {
        assert_eq!(with(name, value), None, "{name} {value}");
    }
}

#[test]
fn a_subject_is_shown_by_what_people_know_and_roles_may_lie_deep() {
    let signer = Signer::ed();
    let claims = |more: Value| {
        let mut all = claims();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        verify(&signer.sign("k", &all), &[signer.jwk("k")]).unwrap()
    };
    assert_eq!(claims(json!({})).name(), "u-1");
    assert_eq!(claims(json!({"preferred_username": "ann"})).name(), "ann");
    let both = json!({"preferred_username": "ann", "email": "ann@example.com"});
    assert_eq!(claims(both).name(), "ann@example.com");
    let doubted = json!({"preferred_username": "ann", "email": "root@example.com", "email_verified": false});
    assert_eq!(claims(doubted).name(), "ann");
    let deep = claims(json!({"realm_access": {"roles": ["a", 7, "b"]}, "group": "g", "https://x.y/r": "z"}));
    assert_eq!(deep.values("realm_access.roles"), ["a", "b"]);
    assert_eq!((deep.values("group"), deep.values("https://x.y/r")), (vec!["g"], vec!["z"]));
    assert!(deep.values("none").is_empty() && deep.values("realm_access").is_empty());
}
