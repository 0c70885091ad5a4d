//! Who calls. Each listener has its own answer: `auth::admin` for operators, `auth::fleet` for nodes. Health is open
//! on both, so that whoever watches the process needs no token; to everyone else even the names of methods are unknown.

pub mod admin;
pub mod fleet;
pub mod roles;
mod until;

use common::snapshot::{Sha, digest};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;

/// A token that opens something. Only its digest is in memory.
#[derive(Clone)]
pub struct Token {
    sha256: Sha,
}

impl Token {
    /// A token by its text.
    pub fn new(text: &str) -> Self {
        Token { sha256: digest(text.as_bytes()) }
    }

    /// Whether it is the one that is shown. Takes the same time for each wrong one.
    pub fn is(&self, shown: &[u8]) -> bool {
        digest(shown).ct_eq(&self.sha256).into()
    }
}

/// What a request shows: the text behind `authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, shown) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(shown.trim_ascii()).filter(|shown| !shown.is_empty())
}

fn is_health(path: &str) -> bool {
    path.starts_with("/grpc.health.v1.Health/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_opens() {
        let token = Token::new("s3cret");
        let headers = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        for (value, opens) in [
            ("Bearer s3cret", true),
            ("bearer s3cret", true),
            ("Bearer s3cre", false),
            ("Bearer s3cret2", false),
            ("Bearer", false),
            ("Bearer ", false),
            ("Basic s3cret", false),
            ("s3cret", false),
            ("", false),
        ] {
            assert_eq!(bearer(&headers(value)).is_some_and(|shown| token.is(shown)), opens, "{value}");
        }
        assert!(bearer(&HeaderMap::new()).is_none());
    }
}
