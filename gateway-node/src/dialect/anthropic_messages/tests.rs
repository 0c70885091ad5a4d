use common::walk::Reason;
use std::borrow::Cow;

use super::*;

fn event<'a>(name: &'a str, data: &'a str) -> Event<'a> {
    let name = (!name.is_empty()).then_some(name.as_bytes());
    Event { name, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

/// An event whose `event:` line says what its JSON does.
fn named(data: &str) -> Event<'_> {
    let kind = data.split_once("{\"type\":\"").and_then(|(_, rest)| rest.split_once('"'));
    event(kind.map_or("", |(kind, _)| kind), data)
}

#[derive(Debug, PartialEq)]
enum Short {
    Hold,
    Content,
    End,
    Error(F),
}

fn short(verdict: Verdict) -> Short {
    match verdict {
        Verdict::Hold => Short::Hold,
        Verdict::Content => Short::Content,
        Verdict::End => Short::End,
        Verdict::Error(fault) => Short::Error(fault.class),
    }
}

fn block(block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#)
}

fn delta(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

fn stop(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":{reason},"stop_sequence":null}},"usage":{{"output_tokens":5}}}}"#
    )
}

const START: &str = r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}"#;

#[test]
fn each_event_has_the_verdict_of_the_wire_formats() {
    use Short::{Content, End, Error, Hold};
    let rows = [
        (START.to_owned(), Hold),
        (START.replace(r#""content":[]"#, r#""content":[{"type":"text","text":"x"}]"#), Content),
        (r#"{"type":"ping"}"#.into(), Hold),
        (r#"{"type": "ping"      }"#.into(), Hold),
        (block(r#"{"type":"text","text":""}"#), Hold),
        (block(r#"{"type":"text","text":"","citations":[]}"#), Hold),
        (block(r#"{"type":"text","text":"x"}"#), Content),
        (block(r#"{"type":"thinking","thinking":"","signature":""}"#), Hold),
        (block(r#"{"type":"thinking","thinking":"x"}"#), Content),
        (block(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#), Content),
        (block(r#"{"type":"server_tool_use","id":"t","name":"web_search","input":{}}"#), Content),
        (block(r#"{"type":"redacted_thinking","data":"x"}"#), Content),
        (block(r#"{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}"#), Content),
        (block(r#"{"type":"brand_new"}"#), Content),
        (delta(r#"{"type":"text_delta","text":"Hi"}"#), Content),
        (delta(r#"{"type":"text_delta","text":" "}"#), Content),
        (delta(r#"{"type":"text_delta","text":""}"#), Hold),
        (delta(r#"{"type":"thinking_delta","thinking":"x"}"#), Content),
        (delta(r#"{"type":"thinking_delta","thinking":""}"#), Hold),
        (delta(r#"{"type":"thinking_delta","thinking":"","estimated_tokens":7}"#), Hold),
        (delta(r#"{"type":"input_json_delta","partial_json":"{"}"#), Content),
        (delta(r#"{"type":"input_json_delta","partial_json":""}"#), Hold),
        (delta(r#"{"type":"signature_delta","signature":"x"}"#), Content),
        (delta(r#"{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}"#), Content),
        (delta(r#"{"type":"brand_new_delta"}"#), Content),
        (r#"{"type":"content_block_stop","index":0}"#.into(), Hold),
        (stop("null"), Hold),
        (stop(r#""end_turn""#), End),
        (stop(r#""max_tokens""#), End),
        (stop(r#""stop_sequence""#), End),
        (stop(r#""tool_use""#), End),
        (stop(r#""pause_turn""#), End),
        (stop(r#""refusal""#), End),
        (stop(r#""model_context_window_exceeded""#), End),
        (stop(r#""something_new""#), End),
        (stop(r#""error""#), Error(F::UpstreamError)),
        (stop(r#""network_error""#), Error(F::UpstreamError)),
        (r#"{"type":"message_stop"}"#.into(), Error(F::Empty)),
        (r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}"#.into(), Error(F::Empty)),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#.into(), Error(F::Overloaded)),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}     }"#.into(), Error(F::Overloaded)),
        (r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#.into(), Error(F::Overloaded)),
        (r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#.into(), Error(F::UpstreamError)),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#.into(), Error(F::RateLimited)),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow","details":{"error_code":"enforced_spend_limit_reached"}}}"#.into(), Error(F::Balance)),
        (r#"{"type":"error","error":{"type":"timeout_error","message":"slow"}}"#.into(), Error(F::Timeout)),
        (r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#.into(), Error(F::Credential)),
        (r#"{"type":"error","error":{"type":"billing_error","message":"b"}}"#.into(), Error(F::Balance)),
        (r#"{"type":"error","error":{"type":"permission_error","message":"b"}}"#.into(), Error(F::Misconfigured)),
        (r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#.into(), Error(F::Misconfigured)),
        (r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#.into(), Error(F::BadRequest)),
        (r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#.into(), Error(F::Balance)),
        (r#"{"type":"error","error":"boom"}"#.into(), Error(F::UpstreamError)),
        (r#"{"type":"error","code":429,"message":"b"}"#.into(), Error(F::RateLimited)),
        // What stands beside an error does not make it good; an empty one says nothing.
        (delta(r#"{"type":"text_delta","text":"Hi"}"#).replacen('{', r#"{"error":{"message":"b"},"#, 1), Error(F::UpstreamError)),
        (delta(r#"{"type":"text_delta","text":"Hi"}"#).replacen('{', r#"{"error":null,"#, 1), Content),
        // Of other dialects
        (r#"{"error":{"message":"b","type":"server_error","code":503}}"#.into(), Error(F::Overloaded)),
        ("[DONE]".into(), Error(F::Empty)),
        // Whatever else there may be
        (r#"{"type":"brand_new_event","x":1}"#.into(), Content),
        (r#"{"x":1}"#.into(), Content),
        ("[1]".into(), Content),
        (r#"[{"error":{"code":429}}]"#.into(), Error(F::RateLimited)),
        ("".into(), Hold),
        ("null".into(), Hold),
        (r#"{"type":"#.into(), Error(F::Malformed)),
        ("<html>".into(), Error(F::Malformed)),
    ];
    for (data, verdict) in rows {
        assert_eq!(short(judge(&named(&data))), verdict, "{data}");
        let verdict_without_name = short(judge(&event("", &data)));
        assert_eq!(verdict_without_name, verdict, "the JSON's type counts: {data}");
    }
}

#[test]
fn an_event_named_error_is_an_error_in_any_shape() {
    for (data, class) in [
        (r#"{"code":500,"message":"b","type":"server_error"}"#, F::UpstreamError),
        (r#"{"code":503,"message":"Loading model","type":"unavailable_error"}"#, F::Overloaded),
        (r#"{"type":"overloaded_error","message":"b"}"#, F::Overloaded),
        (r#"{"what":"ever"}"#, F::UpstreamError),
        (r#""text""#, F::UpstreamError),
        ("too many requests", F::RateLimited),
        ("{\"broken", F::UpstreamError),
        ("", F::UpstreamError),
    ] {
        let event = event("error", data);
        assert_eq!(short(judge(&event)), Short::Error(class), "{data}");
        assert_eq!(observe(&event), After::Raises, "the SDKs raise at the name: {data}");
    }
}

#[test]
fn what_an_event_means_after_commit() {
    use After::{Done, FailedQuietly, Ordinary, Raises};
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"b"}}"#;
    for (name, data, after) in [
        ("content_block_delta", delta(r#"{"type":"text_delta","text":"x"}"#), Ordinary),
        (
            "content_block_delta",
            delta(r#"{"type":"text_delta","text":"say \"message_stop\" and \"error\""}"#),
            Ordinary,
        ),
        ("content_block_delta", delta(r#"{"type":"text_delta","text":"an error"}"#), Ordinary),
        ("content_block_delta", delta(r#"{"type":"text_delta","text":"message_stop"}"#), Ordinary),
        (
            "content_block_start",
            block(r#"{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error"}}"#),
            Ordinary,
        ),
        ("message_delta", stop(r#""end_turn""#), Ordinary),
        ("message_delta", stop(r#""error""#), FailedQuietly),
        ("message_stop", r#"{"type":"message_stop"}"#.into(), Done),
        ("message_stop", r#"{ "type" : "message_stop" }"#.into(), Done),
        ("message_stop", "{}".into(), Done),
        ("", r#"{"type":"message_stop"}"#.into(), Done),
        ("error", error.into(), Raises),
        // The SDKs pass both over without a word.
        ("", error.into(), FailedQuietly),
        ("message", error.into(), FailedQuietly),
        ("", r#"{"error":{"message":"b"}}"#.into(), FailedQuietly),
        ("", r#"{"type":"error","message":"b"}"#.into(), FailedQuietly),
        (
            "content_block_delta",
            delta(r#"{"type":"text_delta","text":"x"}"#).replacen('{', r#"{"error":null,"#, 1),
            Ordinary,
        ),
        ("ping", r#"{"type":"ping"}"#.into(), Ordinary),
        ("", "[DONE]".into(), Ordinary),
        ("", r#"{"error":"#.into(), Ordinary),
    ] {
        assert_eq!(observe(&event(name, &data)), after, "{name} {data}");
    }
}

#[test]
fn whole_answers_are_judged_by_what_is_in_them() {
    use Short::{Content, Error};
    let answer = |content: &str, reason: &str| {
        format!(
            r#"{{"id":"m1","type":"message","role":"assistant","model":"m","content":{content},"stop_reason":{reason},"stop_sequence":null,"usage":{{"input_tokens":3,"output_tokens":1}}}}"#
        )
    };
    let hi = answer(r#"[{"type":"text","text":"Hi"}]"#, r#""end_turn""#);
    for (body, verdict) in [
        (hi.clone(), Content),
        (answer(r#"[{"type":"tool_use","id":"t","name":"f","input":{}}]"#, r#""tool_use""#), Content),
        (answer("[]", r#""end_turn""#), Content),
        (answer("[]", r#""refusal""#), Content),
        (answer("[]", r#""max_tokens""#), Content),
        (answer("[]", "null"), Error(F::Empty)),
        (answer("[]", r#""error""#), Error(F::UpstreamError)),
        (answer(r#"[{"type":"text","text":"half"}]"#, r#""network_error""#), Error(F::UpstreamError)),
        (format!("\n\n {hi}\n"), Content),
        (format!("\u{feff}{hi}"), Content),
        (hi.replacen('{', r#"{"error":null,"#, 1), Content),
        (hi.replacen('{', r#"{"error":{"type":"api_error","message":"b"},"#, 1), Error(F::UpstreamError)),
        (hi.clone() + "{", Error(F::Malformed)),
        (hi[..hi.len() / 2].to_owned(), Error(F::Malformed)),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#.into(),
            Error(F::Overloaded),
        ),
        (r#"{"type":"error","message":"too many requests"}"#.into(), Error(F::RateLimited)),
        (r#"{"error":{"code":502,"message":"b"}}"#.into(), Error(F::UpstreamError)),
        (r#"{"choices":[{"message":{"content":"Hi"}}]}"#.into(), Error(F::Empty)),
        ("{}".into(), Error(F::Empty)),
        ("".into(), Error(F::Empty)),
        (" \r\n ".into(), Error(F::Empty)),
        ("[]".into(), Error(F::Malformed)),
        ("<html></html>".into(), Error(F::Malformed)),
        ("event: message_start\ndata: {}\n\n".into(), Error(F::Malformed)),
    ] {
        assert_eq!(short(judge_whole(body.as_bytes())), verdict, "{body}");
    }
    let odd = hi.replace("Hi", "?").into_bytes();
    let odd: Vec<u8> = odd.into_iter().map(|byte| if byte == b'?' { 0xFF } else { byte }).collect();
    assert_eq!(judge_whole(&odd), Verdict::Content, "bad UTF-8 is passed through");
}

#[test]
fn a_count_is_a_number() {
    use Short::{Content, Error};
    for (body, verdict) in [
        (r#"{"input_tokens":14}"#, Content),
        (" { \"input_tokens\" : 0 , \"context_management\":{\"original_input_tokens\":3}}\n", Content),
        (r#"{"input_tokens":null}"#, Error(F::Empty)),
        (r#"{"input_tokens":"14"}"#, Error(F::Empty)),
        (r#"{"id":"m1","type":"message","content":[{"type":"text","text":"Hi"}]}"#, Error(F::Empty)),
        (r#"{"input_tokens":14,"error":{"message":"b"}}"#, Error(F::UpstreamError)),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"b"}}"#, Error(F::Overloaded)),
        ("", Error(F::Empty)),
        ("14", Error(F::Malformed)),
        ("<html>", Error(F::Malformed)),
        (r#"{"input_tokens":1"#, Error(F::Malformed)),
    ] {
        assert_eq!(short((COUNT_TOKENS.judge_whole)(body.as_bytes())), verdict, "{body}");
    }
}

#[test]
fn refusals_are_classified_as_anthropic_says_them() {
    for (status, kind, message, class, reason) in [
        (400, "invalid_request_error", "max_tokens: Field required", F::BadRequest, Reason::Plain),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            F::BadRequest,
            Reason::ContextLength,
        ),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            F::BadRequest,
            Reason::ContentPolicy,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits.",
            F::Balance,
            Reason::Plain,
        ),
        (401, "authentication_error", "invalid x-api-key", F::Credential, Reason::Plain),
        (402, "billing_error", "b", F::Balance, Reason::Plain),
        (403, "permission_error", "b", F::Misconfigured, Reason::Plain),
        (404, "not_found_error", "model: claude-x", F::Misconfigured, Reason::Plain),
        (404, "not_found_error", "Not Found", F::Misconfigured, Reason::Plain),
        (404, "not_found_error", "File not found: file_1", F::BadRequest, Reason::Unshaped),
        (409, "conflict_error", "b", F::Transient, Reason::Plain),
        (413, "request_too_large", "Request exceeds the maximum size", F::BadRequest, Reason::Unshaped),
        (429, "rate_limit_error", "b", F::RateLimited, Reason::Plain),
        (500, "api_error", "Internal server error", F::UpstreamError, Reason::Plain),
        (504, "timeout_error", "b", F::Timeout, Reason::Plain),
        (529, "overloaded_error", "Overloaded", F::Overloaded, Reason::Plain),
    ] {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
        );
        let status = http::StatusCode::from_u16(status).unwrap();
        let fault = classify::classify(status, &http::HeaderMap::new(), body.as_bytes(), 0, &RULES);
        assert_eq!((fault.class, fault.reason), (class, reason), "{body}");
    }
}

#[test]
fn br_044_credit_that_ran_out_comes_as_a_400_and_other_400s_stay_the_callers() {
    let judged = |message: &str| {
        let body =
            format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        classify::classify(http::StatusCode::BAD_REQUEST, &http::HeaderMap::new(), body.as_bytes(), 0, &RULES)
    };
    let credit = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";
    assert_eq!(judged(credit).class, F::Balance);
    let others = judged("messages.0: the text 'your credit balance is too low' is not allowed here");
    assert_eq!((others.class, others.status), (F::BadRequest, Some(400)));
}

#[test]
fn our_own_words_are_in_anthropics_shape() {
    let of = |code: Code| ErrorBody {
        status: code.status(),
        message: code.text(),
        kind: code.kind(),
        code: code.as_str(),
        param: None,
        request_id: "r",
    };
    let said = error_body(&ErrorBody { message: "say \"a\"", ..of(Code::ModelNotFound) });
    assert_eq!(
        said,
        r#"{"type":"error","error":{"type":"not_found_error","message":"say \"a\"","code":"model_not_found"},"request_id":"r"}"#
    );
    for (code, kind) in [
        (Code::InvalidApiKey, "authentication_error"),
        (Code::InsufficientBalance, "billing_error"),
        (Code::NotFound, "not_found_error"),
        (Code::MethodNotAllowed, "invalid_request_error"),
        (Code::InvalidRequest, "invalid_request_error"),
        (Code::RequestTooLarge, "request_too_large"),
        (Code::RequestTimeout, "timeout_error"),
        (Code::GatewayOverloaded, "overloaded_error"),
        (Code::NoConfig, "api_error"),
        (Code::NoAvailableChannel, "api_error"),
        (Code::AllRateLimited, "rate_limit_error"),
        (Code::UpstreamRateLimited, "rate_limit_error"),
        (Code::UpstreamTimeout, "timeout_error"),
        (Code::UpstreamOverloaded, "overloaded_error"),
        (Code::UpstreamUnavailable, "api_error"),
        (Code::UpstreamError, "api_error"),
    ] {
        assert_eq!(error_kind(&of(code)), kind, "{code}");
    }

    let frame = closing_frame("r-1");
    let text = std::str::from_utf8(&frame).unwrap();
    let data = text.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
    let said: Value = serde_json::from_str(data).unwrap();
    assert_eq!(said["error"]["type"], "api_error");
    assert_eq!(said["error"]["code"], "upstream_stream_error");
    assert_eq!(said["request_id"], "r-1");
}
