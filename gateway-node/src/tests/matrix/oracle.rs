//! What the design says must happen, written from its text and tables and not from the code: the class table, the
//! walk over the hops, who decides the status, the hints, and the shapes of errors. Knows of the code only the names.

mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use common::class::FailureClass as F;
use common::code::Code;

use super::super::support::s;
use super::faults::{Ends, Failed, Play, Quirk, Tail};
use super::forms::{Form, Style, Way};
use super::outcome::{Ending, ID, Mark, Outcome};
use super::says::{Speech, Words};
pub use table::{Effect, Next, TABLE, of};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What a request shows that meets these channels, in this order.
pub fn expected(form: &Form, plays: &[Play]) -> Outcome {
    let mut ages = vec![Duration::ZERO; plays.len()];
    let mut seen = walk(form, plays, &mut ages);
    for (mark, age) in seen.marks.iter_mut().zip(ages) {
        // By the end of a long request the breaker's window of 300 s has passed over its beginning.
        if matches!(mark, Mark::Failures(_)) && seen.took - age >= s(300) {
            *mark = Mark::Nothing;
        }
    }
    seen
}

/// `ages` are how old the request was when a channel failed it.
fn walk(form: &Form, plays: &[Play], ages: &mut [Duration]) -> Outcome {
    let mut seen = Outcome {
        calls: vec![0; plays.len()],
        marks: vec![Mark::Nothing; plays.len()],
        ..Outcome::default()
    };
    let mut failed: Vec<Failed> = Vec::new();
    let mut age = Duration::ZERO;
    let is_asked = |(_, play): &(usize, &Play)| play.is_maker || !form.way.is_bound();
    // Who goes before is met by the request that warms the pool, too.
    let is_warm = plays.iter().any(|play| play.is_warm);
    for (index, play) in plays.iter().enumerate().filter(is_asked) {
        let who = NAMES[index];
        seen.calls[index] = play.calls;
        seen.headers = common_headers(form, index, failed.len() + 1);
        match &play.ends {
            Ends::Served { bytes, media, after, took } => {
                count(&mut seen, who, "ok", "served");
                answered(&mut seen, media, bytes.clone(), age + *after, age + *took);
                return seen;
            }
            Ends::Broken { bytes, after, took, tail } => {
                count(&mut seen, who, "cut", "cut");
                seen.marks[index] = Mark::Failures(1);
                ages[index] = age + *took;
                let bytes = bytes.clone() + &closing(form, *tail);
                answered(&mut seen, form.media(), bytes, age + *after, age + *took);
                seen.ending = if *tail == Tail::Abort { Ending::Aborted } else { Ending::Clean };
                return seen;
            }
            Ends::Left { has_answer } => {
                count(&mut seen, who, "canceled", "canceled");
                seen.ending = Ending::Left;
                if *has_answer {
                    let said = form.pieces(who)[..2].concat();
                    answered(&mut seen, form.media(), said, Duration::ZERO, Duration::ZERO);
                } else {
                    seen.headers.clear();
                }
                return seen;
            }
            Ends::Failed(fault) => {
                let fault = of_thing(form, fault);
                age += fault.takes;
                ages[index] = age;
                *seen.attempts.entry(format!("{who} {}", fault.class.as_str())).or_default() += 1;
                seen.marks[index] = mark(&fault, is_warm && !play.is_warm);
                let goes_on = match of(fault.class).next {
                    Next::Hop => true,
                    Next::HopIfYoung => age < s(300),
                    Next::Return => fault.quirk == Quirk::Unshaped,
                    Next::Stop => false,
                };
                // What may have been begun is not begun again.
                let goes_on = goes_on && (form.way != Way::Submission || fault.is_untaken);
                failed.push(fault);
                if !goes_on {
                    break;
                }
            }
        }
    }
    let routes = if form.way.is_bound() { 1 } else { plays.len() };
    refused(form, &mut seen, &failed, routes, age);
    seen
}

/// What the one channel that could know says of a thing is the answer, and harms no channel: that it is not there, is
/// gone, or is not in a state for what was asked. Where nobody else can be asked its words end a request in any shape.
pub fn of_thing(form: &Form, fault: &Failed) -> Failed {
    if form.way.is_bound() && fault.quirk == Quirk::Unshaped && !fault.words.message.is_empty() {
        return Failed { quirk: Quirk::None, ..fault.clone() };
    }
    let is_answer = form.way == Way::ById && matches!(fault.refused, Some(404 | 405 | 409 | 410));
    match fault.refused.filter(|_| is_answer) {
        Some(status) => Failed { class: F::BadRequest, quirk: Quirk::OfThing, status, ..fault.clone() },
        None => fault.clone(),
    }
}

fn common_headers(form: &Form, index: usize, attempt: usize) -> BTreeMap<String, String> {
    let who = NAMES[index];
    let mut headers: BTreeMap<_, _> = [
        ("x-request-id", ID.to_owned()),
        ("request-id", ID.to_owned()),
        ("x-sluice-revision", "2".to_owned()),
        ("x-sluice-attempts", attempt.to_string()),
        ("x-sluice-channel", who.to_owned()),
        ("x-sluice-upstream-model", format!("m-at-{who}")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    // A thing is asked for by its id and by no model.
    if form.way == Way::ById {
        headers.remove("x-sluice-upstream-model");
    }
    headers
}

fn count(seen: &mut Outcome, who: &str, attempt: &str, request: &str) {
    seen.attempts.insert(format!("{who} {attempt}"), 1);
    seen.requests.insert(request.to_owned(), 1);
}

fn answered(seen: &mut Outcome, media: &str, body: String, after: Duration, took: Duration) {
    (seen.status, seen.body, seen.after, seen.took) = (200, body, after, took);
    if !media.is_empty() {
        seen.headers.insert("content-type".into(), media.into());
    }
}

fn mark(fault: &Failed, is_met_twice: bool) -> Mark {
    let minute = s(60);
    match of(fault.class).effect {
        Effect::Nothing => Mark::Nothing,
        Effect::Counted => Mark::Failures(if is_met_twice { 2 } else { 1 }),
        Effect::Cooldown => cooldown(fault).map_or(Mark::Nothing, Mark::Cooldown),
        Effect::Credential => Mark::Credential(minute),
        Effect::Channel => Mark::Channel(minute),
        Effect::Route => Mark::Route(minute),
    }
}

/// What the upstream asks for, in 1..60 s, else 15 s; none where waiting changes nothing.
fn cooldown(fault: &Failed) -> Option<Duration> {
    let is_throttled = fault.class == F::RateLimited && fault.quirk != Quirk::SingleRequest;
    is_throttled.then(|| fault.hint.unwrap_or(s(15)).clamp(s(1), s(60)))
}

/// Whether it is the operator's matter, and gives way to any other.
fn is_operators(fault: &Failed) -> bool {
    matches!(fault.class, F::Credential | F::Balance | F::Misconfigured)
}

fn refused(form: &Form, seen: &mut Outcome, failed: &[Failed], routes: usize, age: Duration) {
    let deciding = failed.iter().rev().find(|fault| !is_operators(fault)).or(failed.last());
    let deciding = deciding.expect("something failed");
    let row = of(deciding.class);
    let is_bad_request = deciding.class == F::BadRequest;
    let agree = failed.iter().all(|fault| fault.class == F::BadRequest && fault.status == deciding.status);
    let unknown = Words { message: no_such_thing(form), param: Some("id"), ..Words::PLAIN };
    // A page of some proxy counts only where all say the same.
    let (status, code, words) = match deciding.quirk {
        Quirk::Unshaped if agree => (deciding.status, row.code, None),
        Quirk::Unshaped => (502, "upstream_error", None),
        Quirk::OfThing if deciding.status == 404 && deciding.words.message.is_empty() => {
            (404, "not_found", Some(&unknown))
        }
        Quirk::OfThing if deciding.status == 404 => (404, "not_found", Some(&deciding.words)),
        Quirk::OfThing => (deciding.status, row.code, Some(&deciding.words)),
        _ if is_bad_request => (deciding.status, row.code, Some(&deciding.words)),
        Quirk::None | Quirk::SingleRequest => (row.status, row.code, None),
    };
    let is_the_callers = matches!(code, "invalid_request" | "not_found");
    seen.requests.insert(if is_the_callers { "bad_request" } else { "exhausted" }.to_owned(), 1);
    // Nobody knows whether the last one has begun it: to ask again may have it done twice.
    let is_open = form.way == Way::Submission && failed.last().is_some_and(|fault| !fault.is_untaken);
    let hint = (!is_the_callers).then(|| hint(failed, routes).filter(|_| !is_open));
    match hint {
        None => {}
        Some(None) => {
            seen.headers.insert("x-should-retry".into(), "false".into());
        }
        Some(Some(wait)) => {
            seen.headers.insert("retry-after".into(), wait.as_millis().div_ceil(1000).to_string());
            seen.headers.insert("retry-after-ms".into(), wait.as_millis().to_string());
        }
    }
    seen.headers.insert("content-type".into(), "application/json".into());
    (seen.status, seen.after, seen.took) = (status, age, age);
    seen.body = error(form.speech, status, code, words);
}

/// What callers are told of an id that nobody knows.
fn no_such_thing(form: &Form) -> &'static str {
    match form.dialect {
        "openai-videos" => "there is no video with this id, or it was not made with this key",
        _ => "there is no response with this id, or it was not made with this key",
    }
}

/// When to come back; `None` where that repeats what was tried, or cannot help.
fn hint(failed: &[Failed], routes: usize) -> Option<Duration> {
    let are_throttled = failed.iter().all(|fault| fault.class == F::RateLimited);
    let waiting_helps =
        !failed.iter().all(|fault| is_operators(fault) || fault.quirk == Quirk::SingleRequest);
    if !waiting_helps || (failed.len() > 1 && !are_throttled) {
        return None;
    }
    let returns: Vec<_> = failed.iter().filter_map(cooldown).collect();
    let earliest = returns.iter().min().filter(|_| returns.len() == routes);
    Some(earliest.copied().unwrap_or(s(1)))
}

/// An error of ours in the caller's dialect; `words` are the upstream's about a bad request.
fn error(speech: Speech, status: u16, code: &str, words: Option<&Words>) -> String {
    let known =
        Code::ALL.iter().find(|known| known.as_str() == code && known.status() == of_code(code, status));
    let known = known.expect("the code is known");
    let message = words.map_or(known.text(), |words| words.message);
    match speech {
        Speech::OpenAi => {
            let kind = words.and_then(|words| words.kind).unwrap_or(known.kind());
            let number = words.and_then(|words| words.number).map(|number| number.to_string());
            let own = words.and_then(|words| words.code).or(number.as_deref()).unwrap_or(code);
            let param = words.and_then(|words| words.param);
            let param = param.map_or("null".into(), |param| format!("\"{param}\""));
            format!(
                r#"{{"error":{{"message":"{message}","type":"{kind}","code":"{own}","param":{param},"request_id":"{ID}"}}}}"#
            )
        }
        Speech::Anthropic => {
            let kind = match (status, code) {
                (413, _) => "request_too_large",
                (429, _) => "rate_limit_error",
                (504, _) => "timeout_error",
                (400..500, _) => "invalid_request_error",
                (_, "upstream_overloaded") => "overloaded_error",
                _ => "api_error",
            };
            let own = words.and_then(|words| words.code.or(words.shown)).unwrap_or(code);
            format!(
                r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}","code":"{own}"}},"request_id":"{ID}"}}"#
            )
        }
        Speech::Google => {
            let named = match status {
                429 => "RESOURCE_EXHAUSTED",
                504 => "DEADLINE_EXCEEDED",
                502 | 503 => "UNAVAILABLE",
                _ => "INVALID_ARGUMENT",
            };
            let own = words.and_then(|words| words.kind).unwrap_or(named);
            let reason = words.and_then(|words| words.shown).unwrap_or(code);
            format!(
                r#"{{"error":{{"code":{status},"message":"{message}","status":"{own}","details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"sluice","metadata":{{"request_id":"{ID}"}}}}]}}}}"#
            )
        }
    }
}

/// A bad request has the upstream's status, any other code its own.
fn of_code(code: &str, status: u16) -> u16 {
    if code == "invalid_request" { 400 } else { status }
}

/// What ends an answer that broke off.
fn closing(form: &Form, tail: Tail) -> String {
    let Some(stream) = form.stream().filter(|_| matches!(tail, Tail::Frame | Tail::FrameBehindHalf)) else {
        return String::new();
    };
    let code = "upstream_stream_error";
    let message = Code::UpstreamStreamError.text();
    let member = format!(
        r#"{{"message":"{message}","type":"{code}","code":"{code}","param":null,"request_id":"{ID}"}}"#
    );
    let frame = match stream.style {
        Style::Chunks | Style::Typed => format!("data: {{\"error\":{member}}}\n\n"),
        Style::Named => format!(
            "event: error\ndata: {{\"type\":\"error\",\"sequence_number\":2147483647,\"code\":\"{code}\",\"message\":\"{message}\",\"param\":null,\"error\":{member}}}\n\n"
        ),
        Style::Messages => format!("event: error\ndata: {}\n\n", error(form.speech, 502, code, None)),
        Style::Google | Style::Array => format!("data: {}\r\n\r\n", error(form.speech, 502, code, None)),
    };
    let closed = if tail == Tail::FrameBehindHalf { "\n\n" } else { "" };
    [closed, &frame].concat()
}
