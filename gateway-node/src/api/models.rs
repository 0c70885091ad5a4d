//! The list of models, in the shape that the SDK of the caller reads.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use common::code::Code;
use common::dialect::Dialect;

use super::Gateway;
use super::answer::{AnswerBody, Head, json_answer};
use crate::dialect::operation::{is_anthropics, is_googles};
use crate::table::{Chain, Table};

/// `GET /v1/models`
pub fn list(
    gateway: &Gateway,
    table: &Table,
    request: &Request<Incoming>,
    head: &Head,
) -> Result<Response<AnswerBody>, Code> {
    if is_googles(request.headers()) {
        return googles_list(gateway, table, request, head);
    }
    gateway.keys.load().check(request.headers(), None, gateway.settings)?;
    let names: Vec<&str> = table.models().map(|(model, _)| model.as_str()).collect();
    let list = if is_anthropics(request.headers()) { anthropics_list(&names) } else { openais_list(&names) };
    Ok(json_answer(head, StatusCode::OK, &list))
}

/// `GET /v1/models/{model}`
pub fn one(
    gateway: &Gateway,
    table: &Table,
    request: &Request<Incoming>,
    head: &Head,
    name: &str,
) -> Result<Response<AnswerBody>, Code> {
    if is_googles(request.headers()) {
        return googles_one(gateway, table, request, head, name);
    }
    gateway.keys.load().check(request.headers(), None, gateway.settings)?;
    let (model, _) = table.models().find(|(model, _)| model.as_str() == name).ok_or(Code::ModelNotFound)?;
    let shown = if is_anthropics(request.headers()) { anthropics } else { openais };
    Ok(json_answer(head, StatusCode::OK, &shown(model.as_str())))
}

fn openais_list(names: &[&str]) -> Value {
    let models: Vec<Value> = names.iter().map(|name| openais(name)).collect();
    json!({"object": "list", "data": models})
}

fn openais(model: &str) -> Value {
    // The SDKs want a time of creation; a catalog has none.
    json!({"id": model, "object": "model", "created": 0, "owned_by": "sluice"})
}

/// All of them on one page.
fn anthropics_list(names: &[&str]) -> Value {
    let models: Vec<Value> = names.iter().map(|name| anthropics(name)).collect();
    json!({"data": models, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

fn anthropics(model: &str) -> Value {
    // The epoch is what Anthropic itself gives where the time is not known.
    json!({"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z", "lifecycle": "active"})
}

/// `GET /v1beta/models`: those that answer there, all of them on one page.
pub fn googles_list(
    gateway: &Gateway,
    table: &Table,
    request: &Request<Incoming>,
    head: &Head,
) -> Result<Response<AnswerBody>, Code> {
    gateway.keys.load().check(request.headers(), request.uri().query(), gateway.settings)?;
    let served = table.models().filter(|(_, chains)| is_served_by_gemini(chains));
    let models: Vec<Value> = served.map(|(model, _)| googles(model.as_str())).collect();
    let list = json!({"models": models});
    Ok(json_answer(head, StatusCode::OK, &list))
}

/// `GET /v1beta/models/{model}`
pub fn googles_one(
    gateway: &Gateway,
    table: &Table,
    request: &Request<Incoming>,
    head: &Head,
    name: &str,
) -> Result<Response<AnswerBody>, Code> {
    gateway.keys.load().check(request.headers(), request.uri().query(), gateway.settings)?;
    let (model, _) = table
        .models()
        .find(|(model, chains)| model.as_str() == name && is_served_by_gemini(chains))
        .ok_or(Code::ModelNotFound)?;
    Ok(json_answer(head, StatusCode::OK, &googles(model.as_str())))
}

fn is_served_by_gemini(chains: &[Chain]) -> bool {
    chains.iter().any(|chain| chain.dialect == Dialect::Gemini)
}

fn googles(model: &str) -> Value {
    // Which of them a model can do is the upstream's knowledge.
    let methods =
        ["generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"];
    json!({
        "name": format!("models/{model}"),
        "baseModelId": model,
        "version": "",
        "displayName": model,
        "supportedGenerationMethods": methods,
    })
}
