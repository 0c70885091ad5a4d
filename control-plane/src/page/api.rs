//! `/api/v1/status`: the JSON of `sluice status -o json`, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::observed::look::{self, WINDOW_DEFAULT};
use crate::plane::Plane;

/// The query string.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// A duration with a unit: `5m`, `1h`.
    window: Option<String>,
    /// A model's name.
    model: Option<String>,
}

#[derive(Serialize)]
struct Refused {
    error: Reason,
}

#[derive(Serialize)]
struct Reason {
    code: &'static str,
    message: String,
}

/// Answers with what was observed.
pub async fn status(State(plane): State<Arc<Plane>>, ask: Result<Query<Ask>, QueryRejection>) -> Response {
    let ask = match ask {
        Ok(Query(ask)) => ask,
        Err(rejection) => return invalid(rejection.body_text()),
    };
    let window = match window(ask.window.as_deref()) {
        Ok(window) => window,
        Err(message) => return invalid(message),
    };
    let model = ask.model.as_deref().filter(|model| !model.is_empty());
    match look::status(&plane, window, model).await {
        Ok(status) => Json(status).into_response(),
        Err(error) => refused(&error),
    }
}

/// The status and the words for who asked over HTTP.
pub fn said(error: &Error) -> (StatusCode, &'static str, String) {
    match error {
        Error::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found", error.to_string()),
        Error::Catalog(_)
        | Error::Argument { .. }
        | Error::Backup(_)
        | Error::Conflict { .. }
        | Error::KeyTaken { .. } => (StatusCode::BAD_REQUEST, "invalid_request", error.to_string()),
        Error::Denied(_) => (StatusCode::FORBIDDEN, "forbidden", error.to_string()),
        Error::Store(_) | Error::NotReady | Error::Busy => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string())
        }
        Error::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, "unauthenticated", error.to_string()),
        Error::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden", error.to_string()),
        Error::Precondition(_) | Error::Unfit(_) | Error::InUse { .. } | Error::Secret(_) => {
            (StatusCode::CONFLICT, "failed_precondition", error.to_string())
        }
        Error::Broken(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error", error.to_string()),
    }
}

fn refused(error: &Error) -> Response {
    let (status, code, message) = said(error);
    (status, Json(Refused { error: Reason { code, message } })).into_response()
}

fn invalid(message: String) -> Response {
    let reason = Reason { code: "invalid_request", message };
    (StatusCode::BAD_REQUEST, Json(Refused { error: reason })).into_response()
}

fn window(text: Option<&str>) -> Result<Duration, String> {
    let Some(text) = text else { return Ok(WINDOW_DEFAULT) };
    match humantime::parse_duration(text) {
        Ok(window) if window.as_secs() > 0 => Ok(window),
        Ok(_) => Err("window: must be a second at least".to_owned()),
        Err(fault) => Err(format!("window: {fault}; write it with a unit: 5m, 1h, 24h")),
    }
}
