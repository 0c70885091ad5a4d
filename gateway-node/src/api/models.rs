//! The list of models, in the shape that the OpenAI SDKs read.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use common::code::Code;

use super::Gateway;
use super::answer::{AnswerBody, Head, json_answer};
use crate::table::Table;

/// `GET /v1/models`
pub fn list(
    gateway: &Gateway,
    table: &Table,
    request: &Request<Incoming>,
    head: &Head,
) -> Result<Response<AnswerBody>, Code> {
    gateway.keys.load().check(request.headers(), gateway.settings)?;
    let models: Vec<Value> = table.models().map(|(model, _)| shown(model.as_str())).collect();
    let list = json!({"object": "list", "data": models});
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
    gateway.keys.load().check(request.headers(), gateway.settings)?;
    let name = decoded(name);
    let found = table.models().find(|(model, _)| model.as_str().as_bytes() == name);
    let (model, _) = found.ok_or(Code::ModelNotFound)?;
    Ok(json_answer(head, StatusCode::OK, &shown(model.as_str())))
}

/// The SDKs percent-encode a name in a path, slashes and all.
fn decoded(name: &str) -> Vec<u8> {
    let mut bytes = name.bytes();
    let mut decoded = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let mut digit = || ahead.next().and_then(|byte| char::from(byte).to_digit(16));
        let encoded = if byte == b'%' { digit().zip(digit()) } else { None };
        match encoded.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            None => decoded.push(byte),
            Some(encoded) => {
                decoded.push(encoded);
                bytes = ahead;
            }
        }
    }
    decoded
}

fn shown(model: &str) -> Value {
    // The SDKs want a time of creation; a catalog has none.
    json!({"id": model, "object": "model", "created": 0, "owned_by": "sluice"})
}
