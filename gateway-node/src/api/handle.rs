//! The life of a request, stage by stage: who calls, what it asks for, who may serve it, the walk
//! over the hops, and the answer. Each line hands a value to the next; only the walk loops.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::Instant;
use tracing::debug;

use common::code::Code;
use common::window::RequestOutcome;

use super::answer::{self, AnswerBody, Head, refused};
use super::{Gateway, Open, ingress};
use crate::dialect::operation::{Input, Operation};
use crate::dialect::scan::{self, ScanFault, Scanned};
use crate::dialect::splice::Form;
use crate::dialect::{gemini, multipart, openai_audio, openai_responses};
use crate::gate::Until;
use crate::relay::{Parts, Relay};
use crate::table::{Lookup, Route, Table};
use crate::walk::attempt::{Answer, Outgoing, attempt};
use crate::walk::{Hop, Walk, eligible};

/// Serves a request for an operation.
pub async fn ask(
    gateway: Arc<Gateway>,
    table: Arc<Table>,
    operation: &'static Operation,
    named: Option<String>,
    request: Request<Incoming>,
    head: Head,
    mut open: Open,
) -> Response<AnswerBody> {
    let started = Instant::now();
    let mut refuse = |head: &Head, code: Code, message: &str| {
        open.refuse(RequestOutcome::Refused(code));
        refused(head, code, message)
    };
    let (parts, body) = request.into_parts();
    let query = parts.uri.query();
    let keys_query = query.filter(|_| operation.takes_key_in_query());
    let checked = gateway.keys.load().check(&parts.headers, keys_query, gateway.settings);
    if let Err(code) = checked {
        ingress::forget(&parts.headers, body).await;
        return refuse(&head, code, code.text());
    }
    let body = match ingress::read(&parts.headers, body, &gateway.bodies).await {
        Ok(read) => read,
        Err(Code::RequestTooLarge) => return refuse(&head, Code::RequestTooLarge, &ingress::too_large()),
        Err(code) => return refuse(&head, code, code.text()),
    };
    let ask = match read_ask(operation, named, &parts.headers, &body) {
        Ok(ask) => ask,
        Err(fault) => return refuse(&head, Code::InvalidRequest, &fault.to_string()),
    };
    let query = match operation.upward_query(query) {
        Ok(query) => query,
        Err(message) => return refuse(&head, Code::InvalidRequest, message),
    };
    let until = match asked_gate(&parts.headers) {
        Ok(until) => until,
        Err(message) => return refuse(&head, Code::InvalidRequest, message),
    };
    let Lookup::Chain(model, routes) = table.chain(&ask.model, operation.dialect) else {
        return refuse(&head, Code::ModelNotFound, Code::ModelNotFound.text());
    };
    let is_taken_apart =
        |name: &str| ask.model_form == Form::Bare && multipart::divides(&parts.headers, name);
    if routes.iter().any(|route| is_taken_apart(&route.upstream_model)) {
        let message =
            "the boundary of the form is how an upstream's name of the model begins: choose another one";
        return refuse(&head, Code::InvalidRequest, message);
    }
    open.names(model.clone());
    let outgoing = Outgoing {
        headers: &parts.headers,
        body: &body,
        ask: &ask,
        until,
        operation,
        query: query.as_deref(),
    };
    walk(&gateway, routes, &outgoing, head, open, started).await
}

/// What the request wants, from where its operation says it.
fn read_ask(
    operation: &Operation,
    named: Option<String>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Scanned, ScanFault> {
    match operation.input {
        Input::Json => scan::scan(body),
        Input::JsonOr(model) => scan::scan_or(body, Some(model)),
        Input::Responses => openai_responses::scan(body),
        Input::Speech => openai_audio::scan_speech(body),
        Input::Form => multipart::scan(headers, body),
        Input::Path { streams } => {
            let model = named.unwrap_or_default();
            let model_spans = gemini::body::scan(body, &model)?;
            Ok(Scanned {
                model,
                model_spans,
                model_form: Form::String,
                stream: streams,
                stream_options: Vec::new(),
                wants_text: false,
            })
        }
    }
}

/// Tries the routes in order until one answers, and says so to the caller.
async fn walk(
    gateway: &Gateway,
    routes: &[Route],
    outgoing: &Outgoing<'_>,
    mut head: Head,
    mut open: Open,
    started: Instant,
) -> Response<AnswerBody> {
    let hops = routes.iter().map(|route| Hop {
        credential: route.channel.credential.fingerprint(),
        context_window: route.context_window,
    });
    let mut walk = Walk::new(hops.collect(), started);
    let ability = outgoing.operation.ability;
    let mut outs = Vec::new();
    while let Some(index) = walk.next_hop() {
        let route = &routes[index];
        let now = Instant::now();
        match eligible::admit(route, ability, now) {
            Ok(pass) => open.begin_attempt(pass),
            Err(out) => {
                debug!(request.id = %head.request_id, channel.id = %route.channel.id, ?out, "route is out");
                outs.push(out);
                continue;
            }
        }
        head.tried(route);
        match attempt(route, outgoing, &gateway.clock, &gateway.gates, now).await {
            Ok(answer) => return commit(route, outgoing, answer, &head, open),
            Err(fault) => {
                let now = Instant::now();
                debug!(request.id = %head.request_id, channel.id = %route.channel.id, class = %fault.class,
                    reason = fault.reason.as_str(), "hop failed");
                open.fail_attempt(&fault, now);
                walk.on_fault(index, fault, now);
            }
        }
    }
    let now = Instant::now();
    let refusal = if walk.failed() == 0 {
        // Not asked again: a route that came back this very moment would leave no reason at all.
        eligible::none_left(&outs, now)
    } else {
        walk.refusal(eligible::earliest_return(routes, ability, now))
    };
    let is_callers_fault = refusal.code == Code::InvalidRequest;
    open.refuse(if is_callers_fault { RequestOutcome::BadRequest } else { RequestOutcome::Exhausted });
    answer::exhausted(&head, &refusal)
}

/// From here on the request can no longer change channel.
fn commit(
    route: &Route,
    outgoing: &Outgoing<'_>,
    answer: Answer,
    head: &Head,
    mut open: Open,
) -> Response<AnswerBody> {
    let Answer { status, headers, committed, rest, share } = answer;
    open.commit();
    if committed.whole {
        // The whole answer is here: it is counted before its first byte leaves.
        open.spend(committed.tap.spent());
        open.serve();
        let body = share.hold(in_one(committed.held));
        return answer::committed(head, status, &headers, None, AnswerBody::Whole(Full::new(body)));
    }
    let length = if committed.tap.is_stream() { None } else { announced_length(&headers) };
    let relay = Relay::new(Parts {
        committed,
        rest,
        share,
        idle: route.idle_timeout,
        open,
        rules: outgoing.operation.rules,
        request_id: head.request_id.clone(),
        length,
    });
    answer::committed(head, status, &headers, length, AnswerBody::Relayed(Box::new(relay)))
}

fn in_one(mut held: Vec<Bytes>) -> Bytes {
    if held.len() == 1 { held.swap_remove(0) } else { held.concat().into() }
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What the caller wants the gate to wait for.
fn asked_gate(headers: &HeaderMap) -> Result<Option<Until>, &'static str> {
    match headers.get("x-sluice-gate").map(|value| value.as_bytes()) {
        None => Ok(None),
        Some(b"content") => Ok(Some(Until::Content)),
        Some(b"complete") => Ok(Some(Until::Complete)),
        Some(_) => Err("the header x-sluice-gate takes \"content\" or \"complete\""),
    }
}
