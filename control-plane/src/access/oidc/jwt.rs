//! Tokens of an OIDC issuer, read and verified. Three algorithms are taken, each with a key of its own kind: what a
//! token says of itself never chooses how it is verified. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Clocks may differ by so much.
pub const LEEWAY_S: u64 = 60;
/// No token of a person or a program is longer.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// A public key of the issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name, if it has one.
    pub id: Option<String>,
    /// The one algorithm that it is for.
    pub algorithm: Algorithm,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Point(Vec<u8>),
}

/// A token that was read and not verified yet.
#[derive(Debug)]
pub struct Jwt {
    /// Name of the key that it claims to be signed with.
    pub key_id: Option<String>,
    /// How.
    pub algorithm: Algorithm,
    signed: Vec<u8>,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// What must hold of a token.
#[derive(Debug)]
pub struct Expected<'a> {
    /// Who made it, exactly.
    pub issuer: &'a str,
    /// For whom, exactly.
    pub audience: &'a str,
    /// The time, in seconds since 1970.
    pub now_s: u64,
}

/// Claims that are verified.
#[derive(Debug)]
pub struct Claims {
    /// Whom the token speaks of.
    pub subject: String,
    /// When it ends, in seconds since 1970.
    pub expires_s: u64,
    all: Map<String, Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Algorithm {
    fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            "EdDSA" => Some(Algorithm::EdDsa),
            _ => None,
        }
    }
}

impl Key {
    /// A key of a set; none where it is of a kind that is not taken, or not for signatures.
    pub fn read(jwk: &Value) -> Option<Key> {
        let jwk = Jwk::deserialize(jwk).ok()?;
        let bytes = |text: &Option<String>| BASE64.decode(text.as_ref()?).ok();
        let (algorithm, material) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let significant = |bytes: Vec<u8>| bytes.into_iter().skip_while(|byte| *byte == 0).collect();
                let (n, e) = (significant(bytes(&jwk.n)?), significant(bytes(&jwk.e)?));
                (Algorithm::Rs256, Material::Rsa { n, e })
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
                (Algorithm::Es256, Material::Point([&[4], &x[..], &y[..]].concat()))
            }
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, Material::Point(bytes(&jwk.x)?)),
            _ => return None,
        };
        let is_for_it = jwk.alg.as_deref().is_none_or(|alg| Algorithm::named(alg) == Some(algorithm));
        let is_for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        (is_for_it && is_for_signatures).then_some(Key { id: jwk.kid, algorithm, material })
    }

    /// Whether a token may be signed with it.
    pub fn is_named(&self, jwt: &Jwt) -> bool {
        self.algorithm == jwt.algorithm && jwt.key_id.as_ref().is_none_or(|id| self.id.as_ref() == Some(id))
    }

    fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, self.algorithm) {
            (Material::Rsa { n, e }, _) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            (Material::Point(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
            (Material::Point(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}

impl Jwt {
    /// Whether what somebody shows has the form of one.
    pub fn is_likely(shown: &[u8]) -> bool {
        shown.iter().filter(|byte| **byte == b'.').count() == 2
    }

    /// Reads a token; what is wrong with it otherwise.
    pub fn read(shown: &[u8]) -> Result<Jwt, &'static str> {
        let text = std::str::from_utf8(shown).ok().filter(|text| text.len() <= TOKEN_BYTES_MAX);
        let mut parts = text.ok_or("the token is no JSON web token")?.split('.');
        let (Some(head), Some(body), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the token is no JSON web token");
        };
        let decode = |part: &str| BASE64.decode(part).map_err(|_| "the token is not encoded as it must be");
        let header: Header =
            serde_json::from_slice(&decode(head)?).map_err(|_| "the header of the token cannot be read")?;
        if header.crit.is_some() {
            return Err("the token demands extensions that are not known");
        }
        let algorithm = Algorithm::named(&header.alg)
            .ok_or("the token is signed in a way that is not taken: RS256, ES256 and EdDSA are")?;
        let claims =
            serde_json::from_slice(&decode(body)?).map_err(|_| "the claims of the token cannot be read")?;
        let (signed, signature) = (format!("{head}.{body}").into_bytes(), decode(signature)?);
        Ok(Jwt { key_id: header.kid, algorithm, signed, signature, claims })
    }

    /// The claims, if one of the keys has signed them and they hold.
    pub fn verify<'k>(
        self,
        keys: impl IntoIterator<Item = &'k Key>,
        expected: &Expected<'_>,
    ) -> Result<Claims, &'static str> {
        let mut named = keys.into_iter().filter(|key| key.is_named(&self));
        if !named.any(|key| key.verifies(&self.signed, &self.signature)) {
            return Err("the signature of the token is wrong");
        }
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(expected.issuer) {
            return Err("the token is of another issuer");
        }
        let is_for_us = match self.claims.get("aud") {
            Some(Value::String(one)) => one == expected.audience,
            Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(expected.audience)),
            _ => false,
        };
        if !is_for_us {
            return Err("the token is for another audience");
        }
        let latest = expected.now_s.saturating_add(LEEWAY_S) as f64;
        let expires =
            self.claims.get("exp").and_then(Value::as_f64).ok_or("the token does not say when it ends")?;
        // An end that is no number of seconds after 1970 has passed.
        if !(expires > 0.0 && expires + LEEWAY_S as f64 > expected.now_s as f64) {
            return Err("the token has expired");
        }
        for name in ["nbf", "iat"] {
            match self.claims.get(name) {
                None => {}
                Some(Value::Number(at)) if at.as_f64().is_some_and(|at| at <= latest) => {}
                Some(_) => return Err("the token is not valid yet"),
            }
        }
        let subject = text("sub").ok_or("the token does not say whom it speaks of")?.to_owned();
        Ok(Claims { subject, expires_s: expires as u64, all: self.claims })
    }
}

impl Claims {
    /// By what its subject is shown: an address that the issuer does not doubt, a user name, else the subject.
    pub fn name(&self) -> &str {
        let text = |name: &str| self.all.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_doubted = self.all.get("email_verified").is_some_and(|verified| *verified == false);
        let email = text("email").filter(|_| !is_doubted);
        email.or_else(|| text("preferred_username")).unwrap_or(&self.subject)
    }

    /// The values of a claim that is a text or a list of them. A name that is no claim leads into objects by its dots:
    /// `realm_access.roles`.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let nested = || {
            let mut parts = name.split('.');
            let first = self.all.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        };
        match self.all.get(name).or_else(nested) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        }
    }
}

#[cfg(test)]
pub mod tests;
