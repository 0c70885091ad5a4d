//! The life of a request, stage by stage: who calls, what it asks for, who may serve it, the walk
//! over the hops, and the answer. Each line hands a value to the next; only the walk loops.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, request};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::Instant;
use tracing::debug;

use common::code::Code;
use common::id::KeyId;
use common::walk::out::none_left;
use common::walk::{Hop, Walk};
use common::window::RequestOutcome;

use super::answer::{self, AnswerBody, Head, refused};
use super::bound::{self, Chosen};
use super::{Gateway, Open, ingress};
use crate::bindings::Binder;
use crate::dialect::gemini;
use crate::dialect::multipart;
use crate::dialect::openai_audio;
use crate::dialect::openai_responses::{self, Create};
use crate::dialect::operation::{Input, Operation};
use crate::dialect::scan::{self, ScanFault, Scanned};
use crate::dialect::splice::Form;
use crate::gate::Until;
use crate::relay::{Parts, Relay};
use crate::table::{Route, Table};
use crate::upstream::classify;
use crate::walk::attempt::{Answer, Outgoing, attempt};
use crate::walk::trace::Asks;
use crate::walk::{Refusal, eligible};

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
    open.trace().uses(&table);
    let refuse = |open: &mut Open, code: Code, message: &str| {
        open.refuse(RequestOutcome::Refused(code), code.status(), code);
        refused(&head, code, message)
    };
    let (parts, body) = request.into_parts();
    let query = parts.uri.query();
    let keys_query = query.filter(|_| operation.takes_key_in_query());
    let checked = gateway.keys.load().check(&parts.headers, keys_query, gateway.settings);
    let key = match checked {
        Ok(key) => key,
        Err(code) => {
            ingress::forget(&parts.headers, body).await;
            return refuse(&mut open, code, code.text());
        }
    };
    let body = match ingress::read(&parts.headers, body, &gateway.bodies).await {
        Ok(read) => read,
        Err(Code::RequestTooLarge) => return refuse(&mut open, Code::RequestTooLarge, &ingress::too_large()),
        Err(code) => return refuse(&mut open, code, code.text()),
    };
    let Ask { scanned, previous, is_kept } = match read_ask(operation, named.as_deref(), &parts, &body) {
        Ok(ask) => ask,
        Err(fault) => return refuse(&mut open, Code::InvalidRequest, &fault.to_string()),
    };
    open.trace().asks(Asks {
        operation,
        key: &key,
        model: &scanned.model,
        is_stream: scanned.stream,
        bytes: body.len(),
    });
    let query = match operation.upward_query(query) {
        Ok(query) => query,
        Err(message) => return refuse(&mut open, Code::InvalidRequest, message),
    };
    let until = match asked_gate(&parts.headers) {
        Ok(until) => until,
        Err(message) => return refuse(&mut open, Code::InvalidRequest, message),
    };
    let chosen = match &named {
        Some(id) if operation.is_of_thing() => bound::of_thing(&gateway, &table, operation, id, &key).await,
        _ => {
            let asked = (scanned.model.as_str(), operation.dialect);
            bound::of_model(&gateway, &table, asked, previous, &key).await
        }
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(refusal) => {
            open.refuse(RequestOutcome::Refused(refusal.code), refusal.status, refusal.code);
            return answer::exhausted(&head, &refusal);
        }
    };
    let is_taken_apart =
        |name: &str| scanned.model_form == Form::Bare && multipart::divides(&parts.headers, name);
    if chosen.routes.iter().any(|route| is_taken_apart(&route.upstream_model)) {
        let message =
            "the boundary of the form is how an upstream's name of the model begins: choose another one";
        let code = Code::InvalidRequest;
        open.refuse(RequestOutcome::Refused(code), code.status(), code);
        return refused(&head, Code::InvalidRequest, message);
    }
    open.names(chosen.model.clone());
    open.trace().chain(chosen.model.as_str(), chosen.routes, chosen.is_alone);
    let outgoing = Outgoing {
        headers: &parts.headers,
        body: &body,
        ask: &scanned,
        until,
        operation,
        named: named.as_deref(),
        query: query.as_deref(),
    };
    let owner = is_kept.then_some(key);
    walk(&Walking { gateway: &gateway, chosen, outgoing, owner, started }, head, open).await
}

/// What a request wants.
struct Ask {
    scanned: Scanned,
    /// The response that it goes on from.
    previous: Option<String>,
    /// The channel keeps what it makes.
    is_kept: bool,
}

/// What the request wants, from where its operation says it.
fn read_ask(
    operation: &Operation,
    named: Option<&str>,
    parts: &request::Parts,
    body: &[u8],
) -> Result<Ask, ScanFault> {
    let without_model = |stream| Scanned {
        model: String::new(),
        model_spans: Vec::new(),
        model_form: Form::String,
        stream,
        stream_options: Vec::new(),
        wants_text: false,
    };
    let scanned = match operation.input {
        Input::Json => scan::scan(body)?,
        Input::JsonOr(model) => scan::scan_or(body, Some(model))?,
        Input::Responses => {
            let Create { scanned, previous, is_stored } = openai_responses::scan(body)?;
            return Ok(Ask { scanned, previous, is_kept: is_stored });
        }
        Input::Speech => openai_audio::scan_speech(body)?,
        Input::Form => multipart::scan(&parts.headers, body)?,
        Input::FormOr(model) => multipart::scan_or(&parts.headers, body, Some(model))?,
        Input::Path { streams } => {
            let model = named.unwrap_or_default();
            let model_spans = gemini::body::scan(body, model)?;
            Scanned { model: model.to_owned(), model_spans, ..without_model(streams) }
        }
        Input::Named(_) => without_model(operation.streams(parts.uri.query())),
    };
    Ok(Ask { scanned, previous: None, is_kept: operation.makes_thing() })
}

/// A request on its way over its routes.
struct Walking<'a> {
    gateway: &'a Gateway,
    chosen: Chosen<'a>,
    outgoing: Outgoing<'a>,
    /// Whose it will be what the answer makes, if it makes something.
    owner: Option<KeyId>,
    started: Instant,
}

impl Walking<'_> {
    /// Binds what an answer of this route makes.
    fn binder(&self, route: &Route) -> Option<Binder> {
        let (channel, model) = (route.channel.id.clone(), self.chosen.model.clone());
        let dialect = self.outgoing.operation.dialect;
        let key = self.owner.clone()?;
        Some(Binder::new(&self.gateway.bindings, dialect, key, channel, model))
    }
}

/// Tries the routes in order until one answers, and says so to the caller.
async fn walk(walking: &Walking<'_>, mut head: Head, mut open: Open) -> Response<AnswerBody> {
    let Walking { gateway, chosen: Chosen { routes, is_alone, .. }, outgoing, started, .. } = walking;
    let operation = outgoing.operation;
    let hops = routes.iter().map(|route| Hop {
        credential: route.channel.credential.fingerprint(),
        context_window: route.context_window,
    });
    let mut walk = Walk::new(hops.collect(), *started).submitting(operation.is_submission());
    let ability = operation.ability;
    let (mut outs, mut faults) = (Vec::new(), Vec::new());
    while let Some(index) = walk.next_hop() {
        let route = &routes[index];
        let now = Instant::now();
        let seen = match eligible::admit(route, ability, now) {
            Ok(pass) => open.begin_attempt(pass, index, now),
            Err(out) => {
                open.trace().out(index, out);
                debug!(request.id = %head.request_id, channel.id = %route.channel.id, ?out, "route is out");
                outs.push(out);
                continue;
            }
        };
        head.tried(route);
        match attempt(route, outgoing, &gateway.clock, &gateway.gates, now, seen).await {
            Ok(answer) => return commit(walking, route, answer, &head, open),
            Err(fault) => {
                let now = Instant::now();
                let fault = if *is_alone { classify::alone(fault, operation.is_of_thing()) } else { fault };
                debug!(request.id = %head.request_id, channel.id = %route.channel.id, class = %fault.class,
                    reason = fault.reason.as_str(), "hop failed");
                open.fail_attempt(&fault, now);
                walk.on_failure(index, fault.failure(), now);
                faults.push(fault);
            }
        }
    }
    let now = Instant::now();
    let refusal = if walk.failed() == 0 {
        // Not asked again: a route that came back this very moment would leave no reason at all.
        Refusal::from(none_left(&outs, now))
    } else {
        Refusal::told(walk.ending(eligible::earliest_return(routes, ability, now)), &faults)
    };
    let is_callers_fault = refusal.code == Code::InvalidRequest;
    let refusal = if operation.is_of_thing() && refusal.status == 404 {
        let unknown = bound::no_such_thing(operation.dialect);
        Refusal { detail: refusal.detail.or(unknown.detail.clone()), ..unknown }
    } else {
        refusal
    };
    let outcome = if is_callers_fault { RequestOutcome::BadRequest } else { RequestOutcome::Exhausted };
    open.refuse(outcome, refusal.status, refusal.code);
    answer::exhausted(&head, &refusal)
}

/// From here on the request can no longer change channel.
fn commit(
    walking: &Walking<'_>,
    route: &Route,
    answer: Answer,
    head: &Head,
    mut open: Open,
) -> Response<AnswerBody> {
    let Answer { status, headers, committed, rest, share } = answer;
    open.commit(status.as_u16(), Instant::now());
    open.trace().passed(committed.held.iter().map(Bytes::len).sum());
    // Before a byte that shows the id leaves: who has it finds the channel again, also when this process dies now.
    let binder = walking.binder(route).and_then(|binder| binder.begin(&committed));
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
        rules: walking.outgoing.operation.rules,
        request_id: head.request_id.clone(),
        binder,
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
