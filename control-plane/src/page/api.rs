//! `/api/v1/status`: the JSON of `sluice status -o json`, over HTTP; and `/api/v1/series`: the same over time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use super::sees::{PublicSeries, PublicStatus, Sees};
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

/// The query string of a series.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskSeries {
    /// A duration with a unit; 24 hours without it.
    window: Option<String>,
    /// The length of each step; without it an hour, and a day for more than a week.
    step: Option<String>,
    /// A model's name.
    model: Option<String>,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

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
pub async fn status(
    State(plane): State<Arc<Plane>>,
    Extension(sees): Extension<Sees>,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Response {
    let ask = match ask {
        Ok(Query(ask)) => ask,
        Err(rejection) => return invalid(rejection.body_text()),
    };
    let window = match duration("window", ask.window.as_deref(), WINDOW_DEFAULT) {
        Ok(window) => window,
        Err(message) => return invalid(message),
    };
    let model = ask.model.as_deref().filter(|model| !model.is_empty());
    match look::status(&plane, window, model).await {
        Ok(status) if sees.is_operator() => Json(status).into_response(),
        Ok(status) => Json(PublicStatus::of(status, sees)).into_response(),
        Err(error) => refused(&error),
    }
}

/// Answers with what was observed over time.
pub async fn series(
    State(plane): State<Arc<Plane>>,
    Extension(sees): Extension<Sees>,
    ask: Result<Query<AskSeries>, QueryRejection>,
) -> Response {
    let ask = match ask {
        Ok(Query(ask)) => ask,
        Err(rejection) => return invalid(rejection.body_text()),
    };
    let asked = duration("window", ask.window.as_deref(), 24 * HOUR).and_then(|window| {
        let default = if window > 7 * 24 * HOUR { 24 * HOUR } else { HOUR };
        Ok((window, duration("step", ask.step.as_deref(), default)?))
    });
    let (window, step) = match asked {
        Ok(asked) => asked,
        Err(message) => return invalid(message),
    };
    let model = ask.model.as_deref().filter(|model| !model.is_empty());
    match look::series(&plane, window, step, model).await {
        Ok(series) if sees.is_operator() => Json(series).into_response(),
        Ok(series) => Json(PublicSeries::of(series, sees)).into_response(),
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

/// The answer to who cannot be answered.
pub fn refused(error: &Error) -> Response {
    let (status, code, message) = said(error);
    (status, Json(Refused { error: Reason { code, message } })).into_response()
}

fn invalid(message: String) -> Response {
    let reason = Reason { code: "invalid_request", message };
    (StatusCode::BAD_REQUEST, Json(Refused { error: reason })).into_response()
}

fn duration(field: &str, text: Option<&str>, default: Duration) -> Result<Duration, String> {
    let Some(text) = text else { return Ok(default) };
    match humantime::parse_duration(text) {
        Ok(duration) if duration.as_secs() > 0 => Ok(duration),
        Ok(_) => Err(format!("{field}: must be a second at least")),
        Err(fault) => Err(format!("{field}: {fault}; write it with a unit: 5m, 1h, 24h")),
    }
}
