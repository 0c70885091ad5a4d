//! One try of one request on one route: send, wait for headers (layer 4), hold the answer back until
//! it is decisive (layer 3). Ends in an answer that may be committed, or in a fault. Dropping it
//! closes the upstream request.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::{debug, warn};

use common::class::FailureClass;
use common::clock::Clock;
use common::limits::{ERROR_BODY_BYTES_MAX, ERROR_BODY_TIMEOUT, STALE_CONNECTION_MAX};
use common::walk::Reason;

use crate::budget::{Budget, Share};
use crate::dialect::operation::Operation;
use crate::dialect::scan::Scanned;
use crate::dialect::splice::Edit;
use crate::dialect::{ask_usage, splice};
use crate::fault::{Detail, Fault};
use crate::gate::{Committed, Decision, Gate, Step, Until};
use crate::table::Route;
use crate::upstream::{BodyFault, RequestBody, SendFault, UpstreamBody, classify, encoding, headers};
use crate::walk::trace::Seen;

/// What every attempt of a request sends, but for what belongs to the route.
pub struct Outgoing<'a> {
    /// The caller's headers.
    pub headers: &'a HeaderMap,
    /// The caller's body, shared by every hop.
    pub body: &'a Bytes,
    /// What was found in it, and where.
    pub ask: &'a Scanned,
    /// What the gate waits for, where the caller says so.
    pub until: Option<Until>,
    /// What is asked for, and how the answer is judged.
    pub operation: &'static Operation,
    /// What the path names by its id.
    pub named: Option<&'a str>,
    /// The caller's own query, as far as it goes up.
    pub query: Option<&'a str>,
}

/// A decisive answer. Nothing of it has reached the caller yet.
pub struct Answer {
    /// The upstream's status.
    pub status: StatusCode,
    /// The upstream's headers.
    pub headers: HeaderMap,
    /// What the gate held, and what follows the rest.
    pub committed: Committed,
    /// The rest of the body; `None` when all of it was held.
    pub rest: Option<UpstreamBody>,
    /// What is held takes this of the gates' budget.
    pub share: Share,
}

/// Tries a route. `started` is when the attempt began: layer 4 counts from there. What was seen on the way stands in
/// `seen`, also where it ends in a fault or is dropped.
pub async fn attempt(
    route: &Route,
    outgoing: &Outgoing<'_>,
    clock: &Clock,
    gates: &Budget,
    started: Instant,
    seen: &mut Seen,
) -> Result<Answer, Fault> {
    let answered = ask(route, outgoing, clock, gates, started, seen).await;
    answered.map_err(|fault| blamed(route, outgoing, route.channel.judge(fault)))
}

/// A fault about the question that this route adds is the catalog's and not the caller's.
fn blamed(route: &Route, outgoing: &Outgoing<'_>, fault: Fault) -> Fault {
    if !asks_for_usage(route, outgoing) || !ask_usage::is_refused(outgoing.body, &fault) {
        return fault;
    }
    let id = &route.channel.id;
    warn!(channel.id = %id, "channel {id} refuses to be asked for the usage of streams: include_usage cannot be on there");
    Fault { class: FailureClass::Misconfigured, reason: Reason::Plain, ..fault }
}

async fn ask(
    route: &Route,
    outgoing: &Outgoing<'_>,
    clock: &Clock,
    gates: &Budget,
    started: Instant,
    seen: &mut Seen,
) -> Result<Answer, Fault> {
    let rules = outgoing.operation.rules;
    // The table's part of an address is known to be one: only a caller's query can make it too long.
    let uri = route.uri(outgoing.operation, outgoing.named, outgoing.query).map_err(|_| {
        let detail = Detail::new("the query of the request is too long", None, None, None);
        Fault::of(FailureClass::BadRequest)
            .with_status(StatusCode::URI_TOO_LONG.as_u16())
            .with_detail(Some(detail))
    })?;
    let asking = asking_for_usage(route, outgoing);
    let leaves_out = asking.is_some();
    let deadline = started + route.headers_timeout;
    let upstream =
        timeout_at(deadline, send(route, uri, outgoing, asking.unwrap_or_default(), &mut seen.was_stale))
            .await
            .map_err(|_| Fault::of(FailureClass::Timeout))?
            .map_err(|fault| {
                debug!(channel.id = %route.channel.id, "no answer: {fault}");
                Fault::of(FailureClass::Connect).with_untaken(fault.is_untaken)
            })?;
    let headers_at = Instant::now();
    route.channel.metrics.headers_seconds(headers_at - started);
    let (mut parts, body) = upstream.into_parts();
    seen.headers(parts.status.as_u16(), &parts.headers, headers_at);
    let body = decoded(body, &mut parts.headers);
    if !parts.status.is_success() {
        let body = error_body(body, gates.share()).await;
        return Err(classify::classify(parts.status, &parts.headers, &body, clock.now_ms(), rules));
    }
    let Some(body) = body else {
        debug!(channel.id = %route.channel.id, "answer in an encoding that is not known");
        return Err(Fault::of(FailureClass::Malformed).with_status(parts.status.as_u16()));
    };
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let until = outgoing.until.unwrap_or(route.gate_until);
    let (rules, may_stream) = outgoing.operation.reading(outgoing.ask, content_type);
    let gate = Gate::new(rules, may_stream, content_type, until);
    let gate = if outgoing.operation.takes_arrays() { gate.taking_arrays() } else { gate };
    let gate = if leaves_out { gate.leaving_out(ask_usage::is_answer) } else { gate };
    let gate = if outgoing.operation.is_of_thing() { gate.taking_nothing() } else { gate };
    let deadlines = Deadlines { gate: headers_at + route.gate_timeout, idle: route.idle_timeout };
    let held = hold(gate, body, gates.share(), deadlines, &mut seen.first_byte_at).await;
    let decided_at = Instant::now();
    seen.decided = Some((decided_at, held.as_ref().ok().map(|held| held.decision)));
    route.channel.metrics.gate_held(decided_at - headers_at);
    match held {
        Ok(Held { decision, committed, rest, share }) => {
            route.channel.metrics.gate_decision(decision.as_str());
            Ok(Answer { status: parts.status, headers: parts.headers, committed, rest, share })
        }
        Err(fault) => {
            route.channel.metrics.gate_decision("drop");
            Err(fault)
        }
    }
}

/// What the route changes in the body to learn what a stream used; `None` where the answer says so anyway, or nobody
/// wants to know.
fn asking_for_usage(route: &Route, outgoing: &Outgoing<'_>) -> Option<Vec<Edit>> {
    if !asks_for_usage(route, outgoing) {
        return None;
    }
    ask_usage::edits(outgoing.body, &outgoing.ask.stream_options)
}

fn asks_for_usage(route: &Route, outgoing: &Outgoing<'_>) -> bool {
    route.channel.include_usage && outgoing.ask.stream && outgoing.operation.must_be_asked_for_usage()
}

async fn send(
    route: &Route,
    uri: Uri,
    outgoing: &Outgoing<'_>,
    asking: Vec<Edit>,
    was_stale: &mut bool,
) -> Result<Response<Incoming>, SendFault> {
    let body = spliced(route, outgoing, asking);
    let rules = outgoing.operation.rules;
    let credential = route.channel.credential.header(rules.auth);
    let request = || {
        let mut request = Request::new(body.clone());
        *request.method_mut() = outgoing.operation.method();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() =
            headers::upward(outgoing.headers, rules.headers, &route.channel.headers, credential.clone());
        request
    };
    // A stale connection would leave it open whether the request was taken: this one is sent once, over a fresh one.
    if outgoing.operation.is_submission() {
        return route.client.send_afresh(request()).await;
    }
    let sent_at = Instant::now();
    match route.client.send(request()).await {
        Err(fault) if fault.was_stale && sent_at.elapsed() <= STALE_CONNECTION_MAX => {
            debug!(channel.id = %route.channel.id, "stale connection; once more over a fresh one");
            *was_stale = true;
            route.client.send_afresh(request()).await
        }
        sent => sent,
    }
}

/// The caller's body with what this route wants otherwise. Nothing of it is copied.
fn spliced(route: &Route, outgoing: &Outgoing<'_>, asking: Vec<Edit>) -> RequestBody {
    let Scanned { model, model_spans, model_form, .. } = outgoing.ask;
    let mut edits = splice::renaming(outgoing.body, model_spans, *model_form, &route.upstream_model, model);
    edits.extend(asking);
    splice::apply(outgoing.body, edits).into()
}

/// The body without the encodings that nobody asked for, which its headers then no longer name; `None` when one of
/// them is not known.
fn decoded(body: Incoming, headers: &mut HeaderMap) -> Option<UpstreamBody> {
    if !headers.contains_key(header::CONTENT_ENCODING) {
        return Some(UpstreamBody::Plain(body));
    }
    let codings = encoding::named(headers).ok()?;
    let decoded = UpstreamBody::new(body, &codings).ok()?;
    if !codings.is_empty() {
        encoding::strip(headers);
    }
    Some(decoded)
}

/// Reads what an upstream says of its refusal, within limits; what came until then is enough. Nothing of a body that
/// cannot be read.
async fn error_body(body: Option<UpstreamBody>, mut share: Share) -> Bytes {
    let Some(mut body) = body else { return Bytes::new() };
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                let room = ERROR_BODY_BYTES_MAX - read.len();
                read.extend_from_slice(&data[..data.len().min(room)]);
                if !share.grow(data.len().min(room)) || read.len() == ERROR_BODY_BYTES_MAX {
                    break;
                }
            }
        }
    };
    // Either way what was read is all there is to judge by.
    let _is_whole = timeout(ERROR_BODY_TIMEOUT, reading).await.is_ok();
    read.freeze()
}

/// What the wait for the next bytes ended with.
enum Waited {
    Bytes(Bytes),
    End,
    ReadError(BodyFault),
    GateTimeout,
    Stalled,
}

struct Held {
    decision: Decision,
    committed: Committed,
    rest: Option<UpstreamBody>,
    share: Share,
}

/// How long an undecided answer is waited for.
struct Deadlines {
    gate: Instant,
    idle: Duration,
}

async fn hold(
    mut gate: Gate,
    mut body: UpstreamBody,
    mut share: Share,
    deadlines: Deadlines,
    first_byte_at: &mut Option<Instant>,
) -> Result<Held, Fault> {
    let mut last_sign = Instant::now();
    loop {
        let has_timer = gate.has_timer();
        let deadline = if has_timer { deadlines.gate } else { last_sign + deadlines.idle };
        let step = match next_bytes(&mut body, deadline, has_timer).await {
            Waited::Bytes(bytes) => {
                if first_byte_at.is_none() {
                    *first_byte_at = Some(Instant::now());
                }
                let before = gate.signs();
                let has_room = share.grow(bytes.len());
                let step = match gate.on_bytes(bytes) {
                    Step::Read if !has_room => gate.on_full(),
                    step => step,
                };
                if gate.signs() > before {
                    last_sign = Instant::now();
                }
                step
            }
            Waited::End => gate.on_end(),
            // What cannot be read cannot be judged.
            Waited::ReadError(BodyFault::Encoding(_)) => return Err(Fault::of(FailureClass::Malformed)),
            // A stall is a body that broke off without saying so.
            Waited::ReadError(BodyFault::BrokenOff) | Waited::Stalled => gate.on_read_error(),
            Waited::GateTimeout => gate.on_timeout(),
        };
        match step {
            Step::Read => {}
            Step::Drop(fault) => return Err(*fault),
            Step::Commit(decision) => {
                let committed = gate.commit();
                let rest = (!committed.whole).then_some(body);
                return Ok(Held { decision, committed, rest, share });
            }
        }
    }
}

async fn next_bytes(body: &mut UpstreamBody, deadline: Instant, is_gate_timer: bool) -> Waited {
    let mut timer = pin!(sleep_until(deadline));
    std::future::poll_fn(|cx| {
        // Bytes that are there go before the timer: what they say is worth more.
        loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(Waited::End),
                Poll::Ready(Some(Err(fault))) => return Poll::Ready(Waited::ReadError(fault)),
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are no part of an answer that is judged.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Waited::Bytes(data));
                    }
                }
                Poll::Pending => break,
            }
        }
        let late = if is_gate_timer { Waited::GateTimeout } else { Waited::Stalled };
        timer.as_mut().poll(cx).map(|()| late)
    })
    .await
}
