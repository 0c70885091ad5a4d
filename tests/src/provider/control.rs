//! The control interface of a provider that runs as a process of its own: what it was asked, what it does, what it
//! shall do.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use super::{Provider, Script};

/// The control interface of a provider that runs as a process of its own, for scripts and the
/// demo: `GET /calls`, `GET /script`, `PUT /script` with a script's name (`?model=` for one model).
pub async fn control(
    provider: Arc<Provider>,
    request: Request<Incoming>,
) -> Result<Response<http_body_util::Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let model = head.uri.query().and_then(|query| query.strip_prefix("model=")).map(str::to_owned);
    let (status, text) = match (head.method.as_str(), head.uri.path()) {
        ("GET", "/calls") => (StatusCode::OK, calls_json(&provider)),
        ("GET", "/script") => {
            (StatusCode::OK, provider.script(model.as_deref().unwrap_or_default()).to_string())
        }
        ("PUT", "/script") => {
            let name = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
            match String::from_utf8_lossy(&name).trim().parse::<Script>() {
                Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}\n")),
                Ok(script) => {
                    let shown = format!("{script}\n");
                    match model {
                        Some(model) => provider.set_for(&model, script),
                        None => provider.set(script).await,
                    }
                    (StatusCode::OK, shown)
                }
            }
        }
        _ => (StatusCode::NOT_FOUND, "GET /calls, GET /script, PUT /script\n".to_owned()),
    };
    let mut response = Response::new(http_body_util::Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

fn calls_json(provider: &Provider) -> String {
    let calls: Vec<_> = provider
        .calls()
        .into_iter()
        .map(|call| {
            serde_json::json!({
                "number": call.number,
                "path": call.path,
                "model": call.model,
                "stream": call.stream,
                "script": call.script.to_string(),
                "body": String::from_utf8_lossy(&call.body),
                "sent": String::from_utf8_lossy(&call.sent),
                "ended": call.ended.map(|ended| format!("{ended:?}").to_lowercase()),
            })
        })
        .collect();
    serde_json::Value::from(calls).to_string() + "\n"
}
