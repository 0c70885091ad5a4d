//! The twenty-six errors inside a 200 of the wire formats (section 3), byte for byte, each in the dialects that have
//! it.

use common::class::FailureClass as F;

use super::super::super::support::Act;
use super::super::forms::{FORMS, Form, Stream, Style, answers};
use super::super::says::Words;
use super::{Ends, Failed, Fault, Phase, Play, Tail, fault};

const E_01: &str = "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"param\":null,\"code\":\"server_error\"}}\n\n";
const E_02: &str =
    "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"param\":null,\"code\":429}}\n\n";
const E_03: &str =
    "data: {\"error\":{\"message\":\"b\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n";
const E_04: &str = "data: {\"error\":{\"object\":\"error\",\"message\":\"too long\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n";
const E_05: &str = "data: {\"error\":\"boom\"}\n\n";
const E_06: &str = "event: error\ndata: {\"message\":\"boom\",\"type\":\"server_error\",\"code\":500}\n\n";
const E_07: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"error\":{\"code\":502,\"message\":\"down\",\"metadata\":{\"error_type\":\"provider_unavailable\"}},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n";
const E_08: &str =
    "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n";
const E_09: &str = "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"x_groq\":{\"id\":\"q\",\"error\":\"over capacity\"}}\n\n";
const E_10: &str = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n";
const E_11: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"r1\",\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}}}\n\n";
const E_12: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
const E_13: &str = "event: error\ndata: {\"code\":500,\"message\":\"b\",\"type\":\"server_error\"}\n\n";
const E_14: &str = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"b\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
const E_15: &str = "{\"error\":{\"message\":\"b\",\"code\":502}}";
const E_17: &str = "<html><body>Sign in to the network</body></html>";
const E_24: &str = "data: {\"id\":\n\n";
const E_25: &str = "[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]";
const E_26: &str = "data: {\"error\":{\"code\":11200,\"message\":\"AppIdNoAuthError\"}}\n\n";
const GENERATE: &str = "/v1beta/models/MODEL:generateContent";
const DONE: &str = "data: [DONE]\n\n";

/// An error in the frames of a style, behind what comes before it.
fn framed(id: &str, what: &str, style: Style, pieces: &'static [&'static str], failed: Failed) -> Fault {
    fault(Phase::Held, id, what, move |form, who| {
        let stream = form.stream().filter(|stream| stream.style == style)?;
        // Images have events of their own.
        if style == Style::Named && form.dialect != "openai-responses" {
            return None;
        }
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| piece.replace("PREAMBLE", stream.preamble).replace("WHO", who))
            .collect();
        Some(Play::failing(form.says(&pieces), failed.clone()))
    })
}

/// One body under a 200, whatever was asked for.
fn body(
    id: &str,
    what: &str,
    media: &'static str,
    body: &'static str,
    class: F,
    is_for: fn(&Form) -> bool,
) -> Fault {
    fault(Phase::Held, id, what, move |form, _| {
        is_for(form).then(|| Play::failing(answers(200, media, "", body), Failed::of(class)))
    })
}

fn streams(
    id: &str,
    what: &str,
    phase: Phase,
    play: impl Fn(&Form, &Stream, &str) -> Option<Play> + Send + Sync + 'static,
) -> Fault {
    fault(phase, id, what, move |form, who| play(form, form.stream()?, who))
}

pub fn faults() -> Vec<Fault> {
    let of = Failed::of;
    let too_long =
        Words { message: "too long", kind: Some("BadRequestError"), number: Some(400), ..Words::PLAIN };
    let refused = Failed { words: too_long, ..of(F::BadRequest) };
    let is_stream = |form: &Form| form.stream().is_some();
    let any = |_: &Form| true;
    let sse = "text/event-stream";
    vec![
        framed("E-01", "a server error in the first frame", Style::Chunks, &[E_01], of(F::UpstreamError)),
        framed("E-02", "a 429 behind the role", Style::Chunks, &["PREAMBLE", E_02], of(F::RateLimited)),
        framed(
            "E-03",
            "vLLM's error and `[DONE]`",
            Style::Chunks,
            &["PREAMBLE", E_03, DONE],
            of(F::UpstreamError),
        ),
        framed("E-04", "a 400 of old vLLM or SGLang", Style::Chunks, &[E_04, DONE], refused),
        framed("E-05", "an error that is a text", Style::Chunks, &[E_05], of(F::UpstreamError)),
        framed("E-06", "a flat `event: error`", Style::Chunks, &[E_06], of(F::UpstreamError)),
        framed(
            "E-07",
            "OpenRouter's error beside choices",
            Style::Chunks,
            &[": OPENROUTER PROCESSING\n\n", "PREAMBLE", E_07],
            of(F::UpstreamError),
        ),
        framed(
            "E-08",
            "`finish_reason: \"error\"` and nothing else",
            Style::Chunks,
            &["PREAMBLE", E_08, DONE],
            of(F::UpstreamError),
        ),
        framed("E-09", "`x_groq.error`", Style::Chunks, &[E_09], of(F::Overloaded)),
        framed(
            "E-10",
            "a quota error behind `response.created`",
            Style::Named,
            &["PREAMBLE", E_10],
            of(F::Balance),
        ),
        framed(
            "E-11",
            "`response.failed` with a rate limit",
            Style::Named,
            &["PREAMBLE", E_11],
            of(F::RateLimited),
        ),
        framed(
            "E-12",
            "`overloaded_error` behind `message_start`",
            Style::Messages,
            &["PREAMBLE", E_12],
            of(F::Overloaded),
        ),
        framed("E-13", "llama.cpp's flat error", Style::Messages, &["PREAMBLE", E_13], of(F::UpstreamError)),
        body("E-14", "Gemini's pretty-printed error without `data:`", sse, E_14, F::Overloaded, is_stream),
        body(
            "E-15",
            "a JSON error in place of a stream",
            "application/json",
            E_15,
            F::UpstreamError,
            is_stream,
        ),
        streams("E-16", "a good whole answer in place of a stream", Phase::None, |form, _, who| {
            let is_whole = |other: &&Form| {
                let is_same = other.path == form.path || other.path == GENERATE;
                other.dialect == form.dialect
                    && is_same
                    && other.media() == "application/json"
                    && !other.is_array()
            };
            let whole = FORMS.iter().find(is_whole)?.good(who);
            let script = answers(200, "application/json", "", &whole);
            Some(Play::new(script, Ends::served(whole, "application/json")))
        }),
        body("E-17", "an HTML page under a 200", "text/html", E_17, F::Malformed, any),
        body("E-18", "a 200 and not a byte", sse, "", F::Empty, |form| !form.may_be_empty()),
        streams("E-19", "only comments, then a clean end", Phase::Held, |form, stream, _| {
            let pieces = if stream.style == Style::Array { ["[", "]\r\n"] } else { [": wait\n\n"; 2] };
            Some(Play::failing(form.says(&pieces.map(str::to_owned)), Failed::of(F::Empty)))
        }),
        streams("E-19-preamble", "only preamble, then a clean end", Phase::Held, |form, stream, who| {
            let pieces = [stream.preamble.replace("WHO", who)];
            Some(Play::failing(form.says(&pieces), Failed::of(F::Empty)))
        }),
        streams("E-19-done", "only preamble and `[DONE]`", Phase::Held, |form, stream, who| {
            let is_sse =
                matches!(stream.style, Style::Chunks | Style::Typed | Style::Named | Style::Messages);
            let pieces = [stream.preamble.replace("WHO", who), DONE.to_owned()];
            is_sse.then(|| Play::failing(form.says(&pieces), Failed::of(F::Empty)))
        }),
        streams("E-20", "cut behind the preamble", Phase::Held, |form, stream, who| {
            let script = [form.begins(&[stream.preamble.replace("WHO", who)]), vec![Act::Close]].concat();
            Some(Play::failing(script, Failed::of(F::UpstreamError)))
        }),
        streams("E-21", "cut behind content", Phase::Committed, |form, stream, who| {
            Some(broken(form, stream, who, vec![Act::Close]))
        }),
        streams(
            "E-22",
            "a clean end behind content, without a reason to stop",
            Phase::Committed,
            |form, stream, who| Some(broken(form, stream, who, vec![super::super::super::support::end()])),
        ),
        streams("E-23", "a reason to stop, and no `[DONE]`", Phase::None, |form, stream, who| {
            if stream.needs_last {
                return None;
            }
            let said =
                [stream.preamble, stream.content, stream.finish].map(|piece| piece.replace("WHO", who));
            Some(Play::new(form.says(&said), Ends::served(said.concat(), form.media())))
        }),
        streams("E-24", "broken JSON in the first frame", Phase::Held, |form, stream, _| {
            let broken = if stream.style == Style::Array { "[{\"id\":}\r\n]" } else { E_24 };
            Some(Play::failing(form.says(&[broken.to_owned()]), Failed::of(F::Malformed)))
        }),
        body("E-25", "an error in an array of one", "application/json", E_25, F::RateLimited, any),
        streams("E-26", "a vendor's number for a code", Phase::Held, |form, stream, _| {
            let array = "[{\"error\":{\"code\":11200,\"message\":\"AppIdNoAuthError\"}}]";
            let frame = if stream.style == Style::Array { array } else { E_26 };
            Some(Play::failing(form.says(&[frame.to_owned()]), Failed::of(F::UpstreamError)))
        }),
    ]
}

/// A stream that has begun, and then does this.
pub(super) fn broken(form: &Form, stream: &Stream, who: &str, then: Vec<Act>) -> Play {
    let said = [stream.preamble, stream.content].map(|piece| piece.replace("WHO", who));
    let tail = if stream.style == Style::Array { Tail::Abort } else { Tail::Frame };
    let (after, took) = Default::default();
    let script = [form.begins(&said), then].concat();
    Play::new(script, Ends::Broken { bytes: said.concat(), after, took, tail })
}
