use common::walk::Reason;
use std::borrow::Cow;

use super::*;

fn event(data: &str) -> Event<'_> {
    Event { name: None, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

fn class(verdict: &Verdict) -> Option<F> {
    match verdict {
        Verdict::Error(fault) => Some(fault.class),
        Verdict::Hold | Verdict::Content | Verdict::End => None,
    }
}

#[test]
fn a_message_is_judged_by_what_is_in_it() {
    let table = [
        // Text, thoughts, calls, pictures, code.
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}]}"#,
            Verdict::Content,
        ),
        (r#"{"candidates":[{"content":{"parts":[{"text":" "}]}}]}"#, Verdict::Content),
        (r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#, Verdict::Content),
        (
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#,
            Verdict::Content,
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}]}}]}"#,
            Verdict::Content,
        ),
        (r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}}]}}]}"#, Verdict::Content),
        (r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"AA"}]}}]}"#, Verdict::Content),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"SAFETY"}]}"#,
            Verdict::Content,
        ),
        (r#"{"candidates":[{},{"content":{"parts":[{"text":"Hi"}]}}]}"#, Verdict::Content),
        // What is new counts as content.
        (r#"{"candidates":[{"hologram":{"x":"y"}}]}"#, Verdict::Content),
        (r#"{"candidates":[{"content":{"layers":["y"]}}]}"#, Verdict::Content),
        (r#"{"hologram":"x"}"#, Verdict::Content),
        ("7", Verdict::Content),
        // Nothing yet.
        (r#"{"candidates":[{"content":{"role":"model"}}]}"#, Verdict::Hold),
        (r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}"#, Verdict::Hold),
        (r#"{"candidates":[{"content":{"parts":[]}}]}"#, Verdict::Hold),
        (r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["q"]}}]}"#, Verdict::Hold),
        (
            r#"{"usageMetadata":{"promptTokenCount":3,"promptTokensDetails":[{"modality":"TEXT"}]},"modelVersion":"v","responseId":"r"}"#,
            Verdict::Hold,
        ),
        (r#"{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}"#, Verdict::Hold),
        (r#"{"promptFeedback":{"safetyRatings":[{"category":"c"}]}}"#, Verdict::Hold),
        ("{}", Verdict::Hold),
        ("null", Verdict::Hold),
        ("", Verdict::Hold),
        // A lawful end without a word.
        (r#"{"candidates":[{"finishReason":"STOP","index":0}]}"#, Verdict::End),
        (
            r#"{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"thoughtsTokenCount":9}}"#,
            Verdict::End,
        ),
    ];
    for (data, verdict) in table {
        assert_eq!(judge(&event(data)), verdict, "{data}");
    }
}

#[test]
fn a_policys_word_is_an_answer_and_no_failure() {
    for reason in ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "OTHER"]
    {
        let streamed = format!(
            r#"{{"candidates":[{{"finishReason":"{reason}","safetyRatings":[{{"category":"c"}}]}}]}}"#
        );
        let prompt = format!(r#"{{"promptFeedback":{{"blockReason":"{reason}"}},"usageMetadata":{{}}}}"#);
        for data in [streamed, prompt] {
            assert_eq!(judge(&event(&data)), Verdict::End, "{data}");
            assert_eq!(observe(&event(&data)), After::Finish, "{data}");
            assert_eq!(judge_whole(data.as_bytes()), Verdict::Content, "{data}");
        }
    }
}

#[test]
fn an_error_wins_and_its_status_decides() {
    for (data, expected) in [
        (
            r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[]}}"#,
            F::RateLimited,
        ),
        (
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            F::Overloaded,
        ),
        (r#"{"error":{"code":500,"status":"INTERNAL"}}"#, F::UpstreamError),
        (r#"{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}"#, F::Timeout),
        (r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}"#, F::BadRequest),
        (
            r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
            F::Misconfigured,
        ),
        (
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}"#,
            F::Credential,
        ),
        (r#"{"error":{"code":403,"status":"PERMISSION_DENIED"}}"#, F::Misconfigured),
        (
            r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#,
            F::Misconfigured,
        ),
        (r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#, F::RateLimited),
        (r#"{"error":"boom"}"#, F::UpstreamError),
        (
            r#"{"candidates":[{"finishReason":"STOP"}],"error":{"code":503,"status":"UNAVAILABLE"}}"#,
            F::Overloaded,
        ),
        (r#"{"candidates":[{"content"#, F::Malformed),
        ("[DONE]", F::Malformed),
    ] {
        assert_eq!(class(&judge(&event(data))), Some(expected), "{data}");
    }
    let named = Event { name: Some(b"error"), ..event(r#"{"code":503,"message":"m"}"#) };
    assert_eq!(class(&judge(&named)), Some(F::Overloaded));
    let Verdict::Error(fault) = judge(&event(
        r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
    )) else {
        panic!("no error")
    };
    assert_eq!((fault.reason, fault.status), (Reason::ContextLength, Some(400)));
}

#[test]
fn after_commit_only_what_ends_the_answer_matters() {
    for (data, after) in [
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"say \"finishReason\" and error"}]}}]}"#,
            After::Ordinary,
        ),
        (r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}"#, After::Finish),
        (r#"{"candidates":[{"finishReason":null}]}"#, After::Ordinary),
        (r#"{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}"#, After::Ordinary),
        (r#"{"usageMetadata":{"totalTokenCount":7}}"#, After::Ordinary),
        ("[DONE]", After::Ordinary),
        (r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#, After::Raises),
        ("{ \"error\" : {\"code\":429}}", After::Raises),
        // One of the SDKs, or both, hand these on as ordinary chunks.
        (r#"{"candidates":[{"index":0}],"error":{"code":503}}"#, After::FailedQuietly),
        (r#"{"error":{"message":"m"}}"#, After::FailedQuietly),
        (r#"{"error":"boom"}"#, After::FailedQuietly),
        (r#"[{"error":{"code":429}}]"#, After::FailedQuietly),
    ] {
        assert_eq!(observe(&event(data)), after, "{data}");
    }
    let opaque = Event { is_opaque: true, ..event("") };
    assert_eq!((judge(&opaque), observe(&opaque)), (Verdict::Content, After::Finish));
}

#[test]
fn whole_answers_are_judged_by_what_is_in_them() {
    let healthy = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
    let unfinished = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#;
    for body in [healthy, unfinished, &format!("\u{feff}\n{healthy}\n")] {
        assert_eq!(judge_whole(body.as_bytes()), Verdict::Content, "{body}");
    }
    let odd = b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\xff\"}]},\"finishReason\":\"STOP\"}]}";
    assert_eq!(judge_whole(odd), Verdict::Content, "bad UTF-8 is passed through");
    for judge in [judge_whole, judge_embeddings, judge_count] {
        for (body, expected) in [
            ("", F::Empty),
            ("\n", F::Empty),
            ("{}", F::Empty),
            (r#"{"candidates":[]}"#, F::Empty),
            (r#"{"usageMetadata":{"promptTokenCount":3}}"#, F::Empty),
            ("<html>", F::Malformed),
            ("[]", F::Malformed),
            (&healthy[..40], F::Malformed),
            (
                "{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n",
                F::Overloaded,
            ),
            (r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#, F::RateLimited),
            (
                r#"{"totalTokens":1,"embedding":{"values":[0.5]},"candidates":[{"finishReason":"STOP"}],"error":{"code":500}}"#,
                F::UpstreamError,
            ),
        ] {
            assert_eq!(class(&judge(body.as_bytes())), Some(expected), "{body}");
        }
    }
    for (judge, body) in [
        (judge_embeddings as fn(&[u8]) -> Verdict, r#"{"embedding":{"values":[0.5,1]}}"#),
        (judge_embeddings, r#"{"embeddings":[{"values":[0.5]},{"values":[1]}]}"#),
        (judge_count, r#"{"totalTokens":31,"promptTokensDetails":[]}"#),
        (judge_count, r#"{"totalTokens":0}"#),
    ] {
        assert_eq!(judge(body.as_bytes()), Verdict::Content, "{body}");
    }
    assert_eq!(class(&judge_embeddings(br#"{"embeddings":[]}"#)), Some(F::Empty));
    assert_eq!(class(&judge_count(br#"{"totalTokens":null}"#)), Some(F::Empty));
}

#[test]
fn our_own_words_are_in_googles_shape() {
    let error = ErrorBody {
        status: 429,
        message: "m",
        kind: "rate_limit_error",
        code: "upstream_rate_limited",
        param: None,
        request_id: "r",
    };
    assert_eq!(
        error_body(&error),
        r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"upstream_rate_limited","domain":"sluice","metadata":{"request_id":"r"}}]}}"#
    );
    // An upstream's own words about the request: its status name stays, its code is the status.
    let theirs =
        ErrorBody { status: 400, kind: "OUT_OF_RANGE", code: "400", param: Some("contents"), ..error };
    let body: Value = serde_json::from_slice(&error_body(&theirs)).unwrap();
    assert_eq!((&body["error"]["status"], &body["error"]["code"]), (&"OUT_OF_RANGE".into(), &400.into()));
    assert_eq!(body["error"]["details"][0]["reason"], "invalid_request");
    assert_eq!(body["error"]["details"][0]["metadata"]["param"], "contents");
    for (code, name) in [
        (Code::InvalidApiKey, "UNAUTHENTICATED"),
        (Code::InsufficientBalance, "FAILED_PRECONDITION"),
        (Code::ModelNotFound, "NOT_FOUND"),
        (Code::MethodNotAllowed, "UNIMPLEMENTED"),
        (Code::InvalidRequest, "INVALID_ARGUMENT"),
        (Code::RequestTooLarge, "INVALID_ARGUMENT"),
        (Code::NoConfig, "UNAVAILABLE"),
        (Code::UpstreamTimeout, "DEADLINE_EXCEEDED"),
        (Code::UpstreamError, "UNAVAILABLE"),
        (Code::Internal, "INTERNAL"),
    ] {
        assert_eq!(status_name(code.status()), name, "{code}");
    }
}

#[test]
fn the_closing_frame_raises() {
    let frame = closing_frame("r-1");
    let text = std::str::from_utf8(&frame).unwrap();
    let data = text.strip_prefix("data: ").unwrap().strip_suffix("\r\n\r\n").unwrap();
    assert_eq!(observe(&event(data)), After::Raises);
    assert!(data.contains(r#""reason":"upstream_stream_error""#) && data.contains("r-1"), "{data}");
}
