use common::walk::Reason;
use std::borrow::Cow;

use super::*;

fn event(data: &str) -> Event<'_> {
    Event { name: None, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

fn named<'a>(name: &'a str, data: &'a str) -> Event<'a> {
    Event { name: Some(name.as_bytes()), ..event(data) }
}

/// An event of a type with further members.
fn of(kind: &str, more: &str) -> String {
    format!(r#"{{"type":"{kind}","sequence_number":3{more}}}"#)
}

fn response(kind: &str, status: &str, more: &str) -> String {
    let members = r#""object":"response","created_at":1,"model":"m","output":[]"#;
    of(kind, &format!(r#","response":{{"id":"r1",{members},"status":"{status}"{more}}}"#))
}

fn item(kind: &str, item: &str) -> String {
    of(kind, &format!(r#","output_index":0,"item":{{"id":"i",{item}}}"#))
}

fn part(kind: &str, part: &str) -> String {
    of(kind, &format!(r#","item_id":"i","output_index":0,"part":{{{part}}}"#))
}

fn delta(kind: &str, delta: &str) -> String {
    of(kind, &format!(r#","item_id":"i","delta":{delta}"#))
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

#[test]
fn each_event_has_the_verdict_of_the_wire_formats() {
    use Short::{Content, End, Error, Hold};
    let failed = |code: &str| {
        response("response.failed", "failed", &format!(r#","error":{{"code":"{code}","message":"b"}}"#))
    };
    let rows = [
        // Its life
        (response("response.created", "in_progress", ""), Hold),
        (response("response.created", "in_progress", r#","error":null"#), Hold),
        (response("response.in_progress", "in_progress", ""), Hold),
        (response("response.queued", "queued", ""), Hold),
        (
            response("response.created", "failed", r#","error":{"code":"server_error","message":"b"}"#),
            Error(F::UpstreamError),
        ),
        (response("response.completed", "completed", r#","error":null,"usage":{"output_tokens":0}"#), End),
        (
            response(
                "response.incomplete",
                "incomplete",
                r#","incomplete_details":{"reason":"max_output_tokens"}"#,
            ),
            End,
        ),
        (response("response.completed", "failed", ""), Error(F::UpstreamError)),
        (of("response.completed", ""), End),
        (failed("server_error"), Error(F::UpstreamError)),
        (failed("rate_limit_exceeded"), Error(F::RateLimited)),
        (failed("insufficient_quota"), Error(F::Balance)),
        (failed("invalid_prompt"), Error(F::BadRequest)),
        (failed("bio_policy"), Error(F::BadRequest)),
        (failed("invalid_image_format"), Error(F::BadRequest)),
        (failed("image_too_large"), Error(F::BadRequest)),
        (failed("image_content_policy_violation"), Error(F::BadRequest)),
        (failed("brand_new"), Error(F::UpstreamError)),
        (response("response.failed", "failed", r#","error":null"#), Error(F::UpstreamError)),
        (of("response.failed", ""), Error(F::UpstreamError)),
        // Items and parts
        (
            item(
                "response.output_item.added",
                r#""type":"message","status":"in_progress","role":"assistant","content":[]"#,
            ),
            Hold,
        ),
        (
            item(
                "response.output_item.added",
                r#""type":"message","content":[{"type":"output_text","text":""}]"#,
            ),
            Hold,
        ),
        (
            item(
                "response.output_item.added",
                r#""type":"message","content":[{"type":"output_text","text":"x"}]"#,
            ),
            Content,
        ),
        (item("response.output_item.added", r#""type":"reasoning","summary":[]"#), Hold),
        (
            item(
                "response.output_item.added",
                r#""type":"reasoning","summary":[],"encrypted_content":"gAAA""#,
            ),
            Hold,
        ),
        (
            item(
                "response.output_item.added",
                r#""type":"reasoning","summary":[{"type":"summary_text","text":"x"}]"#,
            ),
            Content,
        ),
        (
            item(
                "response.output_item.added",
                r#""type":"function_call","call_id":"c","name":"f","arguments":"""#,
            ),
            Content,
        ),
        (
            item(
                "response.output_item.added",
                r#""type":"custom_tool_call","call_id":"c","name":"f","input":"""#,
            ),
            Content,
        ),
        (item("response.output_item.added", r#""type":"web_search_call","status":"in_progress""#), Content),
        (
            item("response.output_item.added", r#""type":"image_generation_call","status":"in_progress""#),
            Content,
        ),
        (item("response.output_item.added", r#""type":"mcp_call""#), Content),
        (item("response.output_item.added", r#""type":"brand_new""#), Content),
        (
            item(
                "response.output_item.done",
                r#""type":"message","content":[{"type":"output_text","text":"","annotations":[]}]"#,
            ),
            Hold,
        ),
        (
            item(
                "response.output_item.done",
                r#""type":"message","content":[{"type":"output_text","text":"x"}]"#,
            ),
            Content,
        ),
        (
            part(
                "response.content_part.added",
                r#""type":"output_text","text":"","annotations":[],"logprobs":[]"#,
            ),
            Hold,
        ),
        (part("response.content_part.added", r#""type":"output_text","text":"x""#), Content),
        (part("response.content_part.added", r#""type":"refusal","refusal":"""#), Hold),
        (part("response.reasoning_summary_part.added", r#""type":"summary_text","text":"""#), Hold),
        (part("response.reasoning_summary_part.done", r#""type":"summary_text","text":"x""#), Content),
        // Deltas
        (delta("response.output_text.delta", r#""Hi""#), Content),
        (delta("response.output_text.delta", r#"" ""#), Content),
        (delta("response.output_text.delta", r#""""#), Hold),
        (delta("response.refusal.delta", r#""I""#), Content),
        (delta("response.reasoning_text.delta", r#""r""#), Content),
        (delta("response.reasoning_summary_text.delta", r#""r""#), Content),
        (delta("response.reasoning_summary_text.delta", r#""""#), Hold),
        (delta("response.function_call_arguments.delta", r#""{""#), Content),
        (delta("response.audio.delta", r#""UklG""#), Content),
        (delta("response.audio.transcript.delta", r#""a""#), Content),
        (delta("response.code_interpreter_call_code.delta", r#""x""#), Content),
        (delta("response.mcp_call_arguments.delta", r#"{"a":"b"}"#), Content),
        (of("response.brand_new.delta", ""), Content),
        (of("response.output_text.done", r#","text":"""#), Hold),
        (of("response.output_text.done", r#","text":"x""#), Content),
        (of("response.brand_new.done", ""), Content),
        // Tools at work
        (of("response.web_search_call.in_progress", ""), Content),
        (of("response.web_search_call.searching", ""), Content),
        (of("response.image_generation_call.generating", ""), Content),
        (of("response.image_generation_call.partial_image", r#","partial_image_b64":"iVBO""#), Content),
        // Errors in both shapes
        (
            of(
                "error",
                r#","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"q","param":null}"#,
            ),
            Error(F::Balance),
        ),
        (of("error", r#","code":"rate_limit_exceeded","message":"q","param":null"#), Error(F::RateLimited)),
        (of("error", r#","code":"server_error","message":"q","param":null"#), Error(F::UpstreamError)),
        (
            of("error", r#","code":null,"message":"the model is overloaded","param":null"#),
            Error(F::Overloaded),
        ),
        (of("error", ""), Error(F::UpstreamError)),
        (
            of("response.output_text.delta", r#","delta":"x","error":{"code":502,"message":"down"}"#),
            Error(F::UpstreamError),
        ),
        (of("response.output_text.delta", r#","delta":"x","error":null"#), Content),
        (of("response.output_text.delta", r#","delta":"x","error":{}"#), Content),
        (
            r#"{"error":{"message":"b","type":"InternalServerError","code":500}}"#.into(),
            Error(F::UpstreamError),
        ),
        (r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#.into(), Error(F::RateLimited)),
        (r#"{"detail":"gone"}"#.into(), Error(F::UpstreamError)),
        // Whatever else there may be
        (of("response.brand_new", ""), Content),
        (of("keepalive", ""), Hold),
        (of("ping", ""), Hold),
        ("{}".into(), Hold),
        (r#"{"x":1}"#.into(), Content),
        ("null".into(), Hold),
        ("".into(), Hold),
        ("[DONE]".into(), Error(F::Empty)),
        (r#"{"type":"response.created""#.into(), Error(F::Malformed)),
        ("<html>".into(), Error(F::Malformed)),
    ];
    for (data, verdict) in rows {
        assert_eq!(short(judge(&event(&data))), verdict, "{data}");
    }
}

#[test]
fn br_020_code_and_message_of_a_nested_error_are_kept() {
    let nested = of(
        "error",
        r#","error":{"type":"invalid_request_error","code":"invalid_prompt","message":"flagged","param":"input"}"#,
    );
    let Verdict::Error(fault) = judge(&named("error", &nested)) else { panic!("no error") };
    assert_eq!((fault.class, fault.reason, fault.status), (F::BadRequest, Reason::ContentPolicy, Some(400)));
    let detail = fault.detail.unwrap();
    assert_eq!(detail.message, "flagged");
    assert_eq!(detail.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(detail.code.as_deref(), Some("invalid_prompt"));
    assert_eq!(detail.param.as_deref(), Some("input"));

    let flat = of("error", r#","code":"invalid_image","message":"no image","param":null"#);
    let Verdict::Error(fault) = judge(&named("error", &flat)) else { panic!("no error") };
    let detail = fault.detail.unwrap();
    assert_eq!(
        (detail.message.as_str(), detail.kind, detail.code.as_deref()),
        ("no image", None, Some("invalid_image"))
    );
}

#[test]
fn the_name_tells_the_kind_where_the_document_does_not() {
    assert_eq!(short(judge(&named("response.created", r#"{"response":{}}"#))), Short::Hold);
    assert_eq!(short(judge(&named("response.failed", r#"{"response":{}}"#))), Short::Error(F::UpstreamError));
    assert_eq!(
        short(judge(&named("error", r#"{"message":"boom","code":429}"#))),
        Short::Error(F::RateLimited)
    );
    assert_eq!(observe(&named("response.completed", "{}")), After::Done);
}

#[test]
fn what_an_event_means_after_commit() {
    use After::{Done, FailedQuietly, Finish, Ordinary, Raises};
    let completed = response("response.completed", "completed", r#","error":null"#);
    for (name, data, after) in [
        ("response.output_text.delta", delta("response.output_text.delta", r#""x""#), Ordinary),
        (
            "response.output_text.delta",
            delta("response.output_text.delta", r#""say \"error\":{}""#),
            Ordinary,
        ),
        ("response.output_text.delta", of("response.output_text.delta", r#","error":null"#), Ordinary),
        ("response.output_text.delta", of("response.output_text.delta", r#","error":{"code":502}"#), Raises),
        (
            "response.in_progress",
            response("response.in_progress", "in_progress", r#","error":null"#),
            Ordinary,
        ),
        ("response.completed", completed.clone(), Done),
        ("", completed, Done),
        ("response.incomplete", response("response.incomplete", "incomplete", ""), Done),
        ("response.completed", response("response.completed", "failed", ""), FailedQuietly),
        (
            "response.failed",
            response("response.failed", "failed", r#","error":{"code":"server_error"}"#),
            FailedQuietly,
        ),
        ("", response("response.failed", "failed", ""), FailedQuietly),
        ("error", of("error", r#","error":{"code":"server_error","message":"b"}"#), Raises),
        ("", of("error", r#","error":{"code":"server_error","message":"b"}"#), Raises),
        ("error", of("error", r#","code":"server_error","message":"b","param":null"#), FailedQuietly),
        ("error", of("error", r#","error":{}"#), FailedQuietly),
        ("", r#"{"error":"text"}"#.into(), Raises),
        ("", "[DONE]".into(), After::Ends),
        ("", r#"{"type":"#.into(), Ordinary),
        ("", "".into(), Ordinary),
    ] {
        let event = if name.is_empty() { event(&data) } else { named(name, &data) };
        assert_eq!(observe(&event), after, "{name} {data}");
    }
    let opaque =
        |name: Option<&'static str>| Event { is_opaque: true, name: name.map(str::as_bytes), ..event("") };
    assert_eq!(observe(&opaque(Some("response.completed"))), Done, "it holds the whole answer once more");
    assert_eq!(observe(&opaque(Some("response.failed"))), FailedQuietly);
    assert_eq!(observe(&opaque(Some("response.output_item.done"))), Ordinary);
    assert_eq!(observe(&opaque(None)), Finish);
    assert_eq!(short(judge(&opaque(Some("response.created")))), Short::Hold);
    assert_eq!(short(judge(&opaque(Some("response.failed")))), Short::Error(F::UpstreamError));
    assert_eq!(short(judge(&opaque(None))), Short::Content);

    let frame = (RULES.closing_frame)("r");
    let data = std::str::from_utf8(&frame).unwrap().strip_prefix("event: error\ndata: ").unwrap();
    assert_eq!(observe(&named("error", data)), Raises);
}

#[test]
fn whole_answers_are_judged_by_what_is_in_them() {
    use Short::{Content, Error};
    let answer = |status: &str, more: &str| {
        format!(r#"{{"id":"r","object":"response","status":"{status}","model":"m"{more}}}"#)
    };
    let output = r#","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]"#;
    for (body, verdict) in [
        (answer("completed", output), Content),
        (answer("completed", &format!(r#","error":null{output}"#)), Content),
        (answer("incomplete", r#","error":null,"output":[]"#), Content),
        (answer("completed", r#","output":[]"#), Content),
        (format!("\n\n{}\n", answer("completed", output)), Content),
        (format!("\u{feff}{}", answer("completed", output)), Content),
        (
            answer("failed", r#","error":{"code":"server_error","message":"b"},"output":[]"#),
            Error(F::UpstreamError),
        ),
        (
            answer("failed", r#","error":{"code":"rate_limit_exceeded","message":"b"},"output":[]"#),
            Error(F::RateLimited),
        ),
        (
            answer("failed", r#","error":{"code":"invalid_prompt","message":"b"},"output":[]"#),
            Error(F::BadRequest),
        ),
        (answer("failed", r#","error":null,"output":[]"#), Error(F::UpstreamError)),
        (answer("failed", ""), Error(F::UpstreamError)),
        (answer("completed", &format!(r#","error":{{"code":502}}{output}"#)), Error(F::UpstreamError)),
        (answer("completed", &format!(r#","error":{{}}{output}"#)), Content),
        (answer("completed", ""), Error(F::Empty)),
        (answer("completed", r#","output":null"#), Error(F::Empty)),
        ("{}".into(), Error(F::Empty)),
        ("".into(), Error(F::Empty)),
        (" \r\n".into(), Error(F::Empty)),
        ("[]".into(), Error(F::Malformed)),
        ("ok".into(), Error(F::Malformed)),
        ("<!doctype html>".into(), Error(F::Malformed)),
        (r#"{"output":[{"type":"message""#.into(), Error(F::Malformed)),
        (answer("completed", output) + "{", Error(F::Malformed)),
        (r#"{"error":{"message":"b","code":429}}"#.into(), Error(F::RateLimited)),
        (r#"{"type":"error","error":{"type":"insufficient_quota","message":"b"}}"#.into(), Error(F::Balance)),
        (r#"{"error":"rate limit reached"}"#.into(), Error(F::RateLimited)),
        (r#"{"message":"b"}"#.into(), Error(F::UpstreamError)),
    ] {
        assert_eq!(short(judge_whole(body.as_bytes())), verdict, "{body}");
    }
}

#[test]
fn a_request_says_what_it_goes_on_from_and_whether_its_answer_is_kept() {
    let asked = |more: &str| scan(format!(r#"{{"model":"m","input":"hi"{more}}}"#).as_bytes());
    for (more, previous, is_stored) in [
        ("", None, true),
        (r#","previous_response_id":null,"store":null"#, None, true),
        (r#","background":true,"store":true"#, None, true),
        (r#","conversation":null,"stream":true,"store":false"#, None, false),
        (r#","metadata":{"previous_response_id":"x","store":false}"#, None, true),
        (r#","previous_response_id":"resp_1""#, Some("resp_1"), true),
        (r#","previous\u005fresponse_id":"resp_\u0031","store":false"#, Some("resp_1"), false),
    ] {
        let create = asked(more).unwrap();
        assert_eq!((create.previous.as_deref(), create.is_stored), (previous, is_stored), "{more}");
        assert_eq!(create.scanned.model, "m");
    }
    for more in [r#","conversation":"conv_1""#, r#","conversation":{"id":"conv_1"}"#] {
        let text = asked(more).unwrap_err().to_string();
        assert!(text.starts_with("\"conversation\" is not served: "), "{text}");
    }
    for more in [r#","previous_response_id":7"#, r#","previous_response_id":"""#] {
        let text = asked(more).unwrap_err().to_string();
        assert_eq!(
            text,
            "\"previous_response_id\" must be the id of a response, or null (line 1, column 50)"
        );
    }
}

#[test]
fn a_stored_response_that_has_failed_is_an_answer_and_an_error_is_none() {
    let events = [
        (
            "response.failed",
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"b"}}}"#,
            Verdict::End,
            After::Done,
        ),
        (
            "response.completed",
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
            Verdict::End,
            After::Done,
        ),
        (
            "response.output_text.delta",
            r#"{"type":"response.output_text.delta","delta":"x"}"#,
            Verdict::Content,
            After::Ordinary,
        ),
        (
            "response.created",
            r#"{"type":"response.created","response":{"id":"r","status":"queued"}}"#,
            Verdict::Hold,
            After::Ordinary,
        ),
    ];
    for (name, data, verdict, after) in events {
        let event = Event {
            name: Some(name.as_bytes()),
            data: data.as_bytes().into(),
            end: 0,
            size: 0,
            is_opaque: false,
        };
        assert_eq!((STORED.judge)(&event), verdict, "{name}");
        assert_eq!((STORED.observe)(&event), after, "{name}");
    }
    let data = r#"{"type":"error","error":{"type":"server_error","code":"server_error","message":"b"}}"#;
    let event =
        Event { name: Some(b"error"), data: data.as_bytes().into(), end: 0, size: 0, is_opaque: false };
    assert!(matches!((STORED.judge)(&event), Verdict::Error(_)));
    assert_eq!((STORED.observe)(&event), After::Raises);
}
