//! The list of models, in the shape that the OpenAI SDKs read.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use common::code::Code;

use super::Gateway;
use super::answer::{AnswerBody, Head, json_answer};

/// `GET /v1/models`
pub fn list(
    gateway: &Gateway,
    request: &Request<Incoming>,
    head: &Head,
) -> Result<Response<AnswerBody>, Code> {
    let table = gateway.tables.load().ok_or(Code::NoConfig)?;
    gateway.keys.load().check(request.headers(), gateway.settings)?;
    let models: Vec<Value> = table.models().map(|(model, _)| shown(model.as_str())).collect();
    let list = json!({"object": "list", "data": models});
    Ok(json_answer(&head.clone().with_revision(table.revision), StatusCode::OK, &list))
}

/// `GET /v1/models/{model}`
pub fn one(
    gateway: &Gateway,
    request: &Request<Incoming>,
    head: &Head,
    name: &str,
) -> Result<Response<AnswerBody>, Code> {
    let table = gateway.tables.load().ok_or(Code::NoConfig)?;
    gateway.keys.load().check(request.headers(), gateway.settings)?;
    let (model, _) = table.models().find(|(model, _)| model.as_str() == name).ok_or(Code::ModelNotFound)?;
    Ok(json_answer(&head.clone().with_revision(table.revision), StatusCode::OK, &shown(model.as_str())))
}

fn shown(model: &str) -> Value {
    // The SDKs want a time of creation; a catalog has none.
    json!({"id": model, "object": "model", "created": 0, "owned_by": "sluice"})
}
