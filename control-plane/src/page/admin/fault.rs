//! What somebody sees in place of a page.

use axum::http::StatusCode;
use axum::response::{Html as Page, IntoResponse, Response};
use tonic::{Code, Status};

use super::super::api;
use super::super::html::Html;
use super::frame;
use crate::error::Error;
use crate::grpc::auth::admin::Refused;

/// Why there is no page.
#[derive(Debug)]
pub struct Fault {
    status: StatusCode,
    said: String,
}

impl Fault {
    /// With this status, in these words.
    pub fn of(status: StatusCode, said: impl Into<String>) -> Self {
        Fault { status, said: said.into() }
    }

    /// There is no such page.
    pub fn not_found() -> Self {
        Fault::of(StatusCode::NOT_FOUND, "there is no such page")
    }

    /// What was asked for cannot be.
    pub fn invalid(said: impl Into<String>) -> Self {
        Fault::of(StatusCode::BAD_REQUEST, said)
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let code = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::Aborted | Code::AlreadyExists | Code::FailedPrecondition => StatusCode::CONFLICT,
            Code::Unavailable | Code::ResourceExhausted => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Fault::of(code, status.message())
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::Unknown(_) => StatusCode::UNAUTHORIZED,
            Refused::Forbidden { .. } | Refused::NoRole { .. } => StatusCode::FORBIDDEN,
            Refused::Away => StatusCode::SERVICE_UNAVAILABLE,
        };
        Fault::of(status, refused.said())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let (status, _, said) = api::said(&error);
        Fault::of(status, said)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Fault { status, said } = self;
        let html = Html::document(
            |html| frame::head(html, "Not done"),
            |html| {
                html.node("main", &[], |html| {
                    html.leaf("h1", &[], "Sluice");
                    html.leaf("p", &[("role", "alert")], &format!("{said}."));
                    html.node("p", &[("class", "quiet")], |html| {
                        html.text(&format!("HTTP {}. ", status.as_u16()));
                        html.leaf("a", &[("href", "/admin")], "Admin pages");
                    });
                });
            },
        );
        (status, Page(html)).into_response()
    }
}
