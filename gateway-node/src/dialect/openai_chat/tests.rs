use std::borrow::Cow;

use super::*;

fn event(data: &str) -> Event<'_> {
    Event { name: None, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

/// A chunk with these choices and further members.
fn chunk(choices: &str, more: &str) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{choices}]{more}}}"#
    )
}

/// A chunk with one choice.
fn delta(delta: &str, finish: &str) -> String {
    chunk(&format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#), "")
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
fn each_chunk_has_the_verdict_of_the_wire_formats() {
    use Short::{Content, End, Error, Hold};
    let rows = [
        // OpenAI
        (delta(r#"{"role":"assistant","content":"","refusal":null}"#, "null"), Hold),
        (delta("{}", "null"), Hold),
        (chunk("", r#","usage":null"#), Hold),
        (chunk("", ""), Hold),
        (chunk("", r#","usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}"#), Hold),
        (delta(r#"{"content":"Hi"}"#, "null"), Content),
        (delta(r#"{"content":" "}"#, "null"), Content),
        (delta(r#"{"content":"\n"}"#, "null"), Content),
        (delta(r#"{"refusal":"I"}"#, "null"), Content),
        (delta(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#, "null"), Content),
        (delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#, "null"), Content),
        (delta(r#"{"tool_calls":[]}"#, "null"), Hold),
        (delta(r#"{"function_call":{"name":"f","arguments":""}}"#, "null"), Content),
        (delta(r#"{"function_call":null}"#, "null"), Hold),
        (delta(r#"{"audio":{"id":"a"}}"#, "null"), Content),
        (delta(r#"{"audio":{"transcript":"a"}}"#, "null"), Content),
        (chunk(r#"{"index":0,"text":"Hi","finish_reason":null}"#, ""), Content),
        (chunk(r#"{"index":0,"text":"","finish_reason":null}"#, ""), Hold),
        (chunk("", r#","moderation":{"x":1}"#), Hold),
        (delta("{}", r#""stop""#), End),
        (delta("{}", r#""length""#), End),
        (delta("{}", r#""tool_calls""#), End),
        (delta("{}", r#""function_call""#), End),
        (delta("{}", r#""content_filter""#), End),
        (delta("{}", r#""something_new""#), End),
        (delta("{}", r#""""#), Hold),
        (delta(r#"{"content":"x"}"#, r#""stop""#), Content),
        (delta("{}", r#""error""#), Error(F::UpstreamError)),
        (delta("{}", r#""network_error""#), Error(F::UpstreamError)),
        (delta(r#"{"content":""}"#, r#""error""#), Error(F::UpstreamError)),
        ("[DONE]".into(), Error(F::Empty)),
        (" [DONE] ".into(), Error(F::Empty)),
        // Azure
        (r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0}]}"#.into(), Hold),
        (chunk(r#"{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}"#, ""), Hold),
        (chunk(r#"{"content_filter_results":{"hate":{"filtered":false}},"content_filter_offsets":{"start":1},"finish_reason":null,"index":0}"#, ""), Hold),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}},"finish_reason":null}"#, ""), Content),
        (chunk(r#"{"index":0,"delta":{},"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}},"finish_reason":null}"#, ""), Hold),
        // OpenRouter
        (delta(r#"{"reasoning":"r"}"#, "null"), Content),
        (delta(r#"{"reasoning":null,"reasoning_details":[]}"#, "null"), Hold),
        (delta(r#"{"reasoning_details":[{"type":"reasoning.text"}]}"#, "null"), Content),
        (chunk(r#"{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"network_error"}"#, ""), Error(F::UpstreamError)),
        (chunk(r#"{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"stop"}"#, ""), End),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":"stop","native_finish_reason":"network_error"}"#, ""), Content),
        (chunk(r#"{"index":0,"delta":{},"finish_reason":"error","error":{"code":429,"message":"b"}}"#, ""), Error(F::RateLimited)),
        // DeepSeek, Mistral, Groq, xAI
        (delta(r#"{"reasoning_content":"r"}"#, "null"), Content),
        (delta(r#"{"content":null,"reasoning_content":""}"#, "null"), Hold),
        (delta(r#"{"content":[{"type":"text","text":""}]}"#, "null"), Content),
        (delta(r#"{"content":[]}"#, "null"), Hold),
        (chunk(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#, r#","x_groq":{"id":"q"}"#), Hold),
        (chunk(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#, r#","x_groq":{"id":"q","error":"over capacity"}"#), Error(F::Overloaded)),
        (delta(r#"{"executed_tools":[{"index":0}]}"#, "null"), Content),
        // vLLM, llama.cpp, Ollama
        (chunk(r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#, r#","usage":{"total_tokens":3}"#), Hold),
        (delta(r#"{"role":"assistant","content":null}"#, "null"), Hold),
        (chunk(r#"{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}"#, r#","prompt_progress":{"total":9}"#), Hold),
        (r#"{"error":{"message":"b","type":"InternalServerError","param":null,"code":500}}"#.into(), Error(F::UpstreamError)),
        (r#"{"object":"error","message":"b","type":"BadRequestError","param":null,"code":400}"#.into(), Error(F::BadRequest)),
        // Whatever else there may be
        (delta(r#"{"brand_new":"x"}"#, "null"), Content),
        (delta(r#"{"brand_new":{"a":[]}}"#, "null"), Hold),
        (r#"{"type":"something.new","data":1}"#.into(), Content),
        (r#"{"type":"ping"}"#.into(), Hold),
        (r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m"}"#.into(), Hold),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":null}"#, r#","error":null"#), Content),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":null}"#, r#","error":"""#), Content),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":null}"#, r#","error":{}"#), Content),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":null}"#, r#","error":{"code":0}"#), Error(F::UpstreamError)),
        (r#"{"error":{}}"#.into(), Error(F::UpstreamError)),
        (r#"{"detail":"gone"}"#.into(), Error(F::UpstreamError)),
        (r#"{"success":false,"errors":[{"code":5006,"message":"b"}]}"#.into(), Error(F::UpstreamError)),
        ("".into(), Hold),
        ("null".into(), Hold),
        (r#"{"id":"#.into(), Error(F::Malformed)),
        ("<html>".into(), Error(F::Malformed)),
    ];
    for (data, verdict) in rows {
        assert_eq!(short(judge(&event(&data))), verdict, "{data}");
    }
}

#[test]
fn the_most_telling_choice_counts() {
    let role = r#"{"index":0,"delta":{"role":"assistant"},"finish_reason":null}"#;
    let text = r#"{"index":1,"delta":{"content":"x"},"finish_reason":null}"#;
    let stop = r#"{"index":2,"delta":{},"finish_reason":"stop"}"#;
    let fail = r#"{"index":3,"delta":{},"finish_reason":"error"}"#;
    let all = |choices: &[&str]| short(judge(&event(&chunk(&choices.join(","), ""))));
    assert_eq!(all(&[role, stop]), Short::End);
    assert_eq!(all(&[role, stop, text]), Short::Content);
    assert_eq!(all(&[text, fail]), Short::Error(F::UpstreamError));
}

#[test]
fn an_error_event_is_an_error_in_any_shape() {
    for (data, class) in [
        (r#"{"message":"boom","type":"server_error","code":500}"#, F::UpstreamError),
        (r#"{"error":{"type":"insufficient_quota"}}"#, F::Balance),
        (r#"{"type":"error","error":{"type":"overloaded_error"}}"#, F::Overloaded),
        (r#"{"what":"ever"}"#, F::UpstreamError),
        (r#""text""#, F::UpstreamError),
    ] {
        let event = Event { name: Some(b"error"), ..event(data) };
        assert_eq!(short(judge(&event)), Short::Error(class), "{data}");
        let is_nested = data.contains("\"error\":");
        assert_eq!(observe(&event) == After::Raises, is_nested, "{data}");
    }
}

#[test]
fn what_an_event_means_after_commit() {
    use After::{Done, FailedQuietly, Finish, Ordinary, Raises};
    for (data, after) in [
        (delta(r#"{"content":"x"}"#, "null"), Ordinary),
        (delta(r#"{"content":"say \"error\" and \"finish_reason\":\"stop\""}"#, "null"), Ordinary),
        (delta(r#"{"content":"an error"}"#, "null"), Ordinary),
        (delta("{}", r#""stop""#), Finish),
        (r#"{"choices":[{"delta":{},"finish_reason" : "length"}]}"#.into(), Finish),
        (r#"{"choices":[{"finish_reason":null},{"finish_reason":"stop"}]}"#.into(), Finish),
        (r#"{"choices":[{"finish_reason" :  null}]}"#.into(), Ordinary),
        (delta("{}", r#""""#), Ordinary),
        (delta("{}", r#""error""#), FailedQuietly),
        (delta("{}", r#""server_error""#), FailedQuietly),
        (
            chunk(
                r#"{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"network_error"}"#,
                "",
            ),
            Finish,
        ),
        (r#"{"error":{"message":"b"}}"#.into(), Raises),
        (r#"{"error":"b"}"#.into(), Raises),
        (chunk(r#"{"index":0,"delta":{},"finish_reason":"error"}"#, r#","error":{"code":502}"#), Raises),
        (chunk(r#"{"index":0,"delta":{"content":"x"},"finish_reason":null}"#, r#","error":null"#), Ordinary),
        (
            chunk(r#"{"index":0,"delta":{},"finish_reason":null}"#, r#","x_groq":{"error":"b"}"#),
            FailedQuietly,
        ),
        (r#"{"object":"error","message":"b"}"#.into(), FailedQuietly),
        ("[DONE]".into(), Done),
        ("[DONE] ".into(), Done),
        (chunk("", r#","usage":{"total_tokens":4}"#), Ordinary),
        (r#"{"error":"#.into(), Ordinary),
        ("".into(), Ordinary),
    ] {
        assert_eq!(observe(&event(&data)), after, "{data}");
    }
}

#[test]
fn whole_answers_are_judged_by_what_is_in_them() {
    use Short::{Content, Error};
    let answer = |message: &str, finish: &str| {
        format!(
            r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"message":{message},"finish_reason":{finish}}}],"usage":{{}}}}"#
        )
    };
    for (body, verdict) in [
        (answer(r#"{"role":"assistant","content":"Hi"}"#, r#""stop""#), Content),
        (answer(r#"{"role":"assistant","content":""}"#, r#""length""#), Content),
        (answer(r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}"#, r#""tool_calls""#), Content),
        (answer(r#"{"role":"assistant","content":"an error"}"#, r#""stop""#), Content),
        (answer(r#"{"role":"assistant","content":"half"}"#, r#""error""#), Error(F::UpstreamError)),
        (format!("\n\n \t{}\n", answer("{}", r#""stop""#)), Content),
        (format!("\u{feff}{}", answer("{}", r#""stop""#)), Content),
        (answer("{}", r#""stop""#).replacen('{', r#"{"error":null,"#, 1), Content),
        (answer("{}", r#""stop""#).replacen('{', r#"{"error":{"code":502},"#, 1), Error(F::UpstreamError)),
        (r#"{"choices":[{"finish_reason":"stop","native_finish_reason":"network_error","message":{"content":""}}]}"#.into(), Error(F::UpstreamError)),
        (r#"{"choices":[]}"#.into(), Error(F::Empty)),
        (r#"{"choices":null}"#.into(), Error(F::Empty)),
        (r#"{"id":"c","object":"chat.completion"}"#.into(), Error(F::Empty)),
        ("{}".into(), Error(F::Empty)),
        ("".into(), Error(F::Empty)),
        (" \r\n ".into(), Error(F::Empty)),
        ("[]".into(), Error(F::Malformed)),
        ("null".into(), Error(F::Malformed)),
        ("ok".into(), Error(F::Malformed)),
        ("<!doctype html><html></html>".into(), Error(F::Malformed)),
        (r#"{"choices":[{"message":{"content":"Hi"}"#.into(), Error(F::Malformed)),
        (answer("{}", r#""stop""#) + "{", Error(F::Malformed)),
        ("data: {}\n\n".into(), Error(F::Malformed)),
        (r#"{"error":{"message":"b","code":502}}"#.into(), Error(F::UpstreamError)),
        (r#"{"error":"rate limit reached"}"#.into(), Error(F::RateLimited)),
        (r#"{"message":"b"}"#.into(), Error(F::UpstreamError)),
        (r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#.into(), Error(F::RateLimited)),
        ("{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n".into(), Error(F::Overloaded)),
    ] {
        assert_eq!(short(judge_whole(body.as_bytes())), verdict, "{body}");
    }
    let odd = b"{\"choices\":[{\"message\":{\"content\":\"\xff\"},\"finish_reason\":\"stop\"}]}";
    assert_eq!(judge_whole(odd), Verdict::Content, "bad UTF-8 is passed through");
}

#[test]
fn our_closing_frame_raises() {
    let frame = (RULES.closing_frame)("r");
    let data = std::str::from_utf8(&frame).unwrap().strip_prefix("data: ").unwrap();
    assert_eq!(observe(&event(data)), After::Raises);
}
