//! Who calls: the bearer of the listener's token, and nobody else. Health is open, so that whoever
//! watches the process needs no token; to everyone else even the names of methods are unknown.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use common::snapshot::{Sha, digest};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;
use tonic::Status;

/// A token that opens a listener. Only its digest is in memory.
#[derive(Clone)]
pub struct Token {
    name: &'static str,
    sha256: Sha,
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Name of the token.
    pub name: &'static str,
}

impl Caller {
    /// Who sent a request.
    pub fn of<T>(request: &tonic::Request<T>) -> Self {
        request.extensions().get().copied().unwrap_or(Caller { name: "unknown" })
    }
}

impl Token {
    /// A token by its name and its text.
    pub fn new(name: &'static str, text: &str) -> Self {
        Token { name, sha256: digest(text.as_bytes()) }
    }

    /// Whether a request carries it, as `authorization: Bearer …`. Takes the same time for each wrong one.
    pub fn opens(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION) else { return false };
        let Some((scheme, shown)) = value.as_bytes().split_at_checked(7) else { return false };
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
        is_bearer & bool::from(digest(shown.trim_ascii()).ct_eq(&self.sha256))
    }
}

/// Lets in who carries the token, and names the caller.
pub async fn require(State(token): State<Token>, mut request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/grpc.health.v1.Health/") {
        return next.run(request).await;
    }
    if !token.opens(request.headers()) {
        return Status::unauthenticated("the token is missing or wrong").into_http();
    }
    request.extensions_mut().insert(Caller { name: token.name });
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_opens() {
        let token = Token::new("admin", "s3cret");
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
            assert_eq!(token.opens(&headers(value)), opens, "{value}");
        }
        assert!(!token.opens(&HeaderMap::new()));
    }
}
