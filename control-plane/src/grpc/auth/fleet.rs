//! Which nodes may call the fleet listener: those that carry its token.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tonic::Status;

use super::{Token, bearer, is_health};

/// Lets in who carries the token.
pub async fn require(State(token): State<Token>, request: Request, next: Next) -> Response {
    let is_known = bearer(request.headers()).is_some_and(|shown| token.is(shown));
    if is_known || is_health(request.uri().path()) {
        return next.run(request).await;
    }
    Status::unauthenticated("the token is missing or wrong").into_http()
}
