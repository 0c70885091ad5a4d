use std::borrow::Cow;

use super::*;

fn class(rules: &Rules, body: &str) -> Option<F> {
    match (rules.judge_whole)(body.as_bytes()) {
        Verdict::Error(fault) => Some(fault.class),
        Verdict::Hold | Verdict::Content | Verdict::End => None,
    }
}

#[test]
fn an_answer_has_its_array_and_no_error() {
    let embeddings = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"m","usage":{"prompt_tokens":1}}"#;
    let moderations = r#"{"id":"modr-1","model":"m","results":[{"flagged":false,"categories":{}}]}"#;
    let cohere = r#"{"id":"x","results":[{"index":1,"relevance_score":0.9}],"meta":{}}"#;
    let voyage = r#"{"object":"list","data":[{"index":1,"relevance_score":0.9}],"model":"m"}"#;
    for (rules, good) in [
        (&EMBEDDINGS, embeddings),
        (&EMBEDDINGS, r#"{"data":[{"embedding":"AACAPw=="}]}"#),
        (&MODERATIONS, moderations),
        (&RERANK, cohere),
        (&RERANK, voyage),
        (&RERANK, r#"{"results":[]}"#),
        (&RERANK, r#"{"data":[],"object":"list"}"#),
    ] {
        assert_eq!(class(rules, good), None, "{good}");
        assert_eq!(class(rules, &format!("\n {good}\n")), None, "{good}");
        for none in ["null", r#""""#, "{}", "[]"] {
            let beside = good.replacen('{', &format!(r#"{{"error":{none},"#), 1);
            assert_eq!(class(rules, &beside), None, "{beside}");
        }
        let beside = good.replacen('{', r#"{"error":{"message":"b","code":503},"#, 1);
        assert_eq!(class(rules, &beside), Some(F::Overloaded), "{beside}");
        for end in 1..good.len() {
            assert_eq!(class(rules, &good[..end]), Some(F::Malformed), "cut at {end}: {good}");
        }
    }
}

#[test]
fn what_is_no_answer_is_told_apart_the_same_for_all() {
    for rules in [&EMBEDDINGS, &MODERATIONS, &RERANK] {
        for (body, expected) in [
            ("", F::Empty),
            (" \r\n ", F::Empty),
            ("{}", F::Empty),
            (r#"{"object":"list","model":"m"}"#, F::Empty),
            (r#"{"data":null,"results":null}"#, F::Empty),
            (r#"{"data":"x","results":{}}"#, F::Empty),
            ("null", F::Malformed),
            ("[]", F::Malformed),
            ("ok", F::Malformed),
            ("<!doctype html><html></html>", F::Malformed),
            (r#"{"error":{"message":"b","type":"server_error","code":"server_error"}}"#, F::UpstreamError),
            (r#"{"error":{"message":"b","code":429}}"#, F::RateLimited),
            (r#"{"error":"rate limit reached"}"#, F::RateLimited),
            (r#"{"error":{}}"#, F::UpstreamError),
            (r#"{"object":"error","message":"b","type":"BadRequestError","code":400}"#, F::BadRequest),
            (r#"{"detail":"gone"}"#, F::UpstreamError),
            (r#"{"message":"b"}"#, F::UpstreamError),
            (r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#, F::RateLimited),
        ] {
            assert_eq!(class(rules, body), Some(expected), "{body}");
        }
    }
}

#[test]
fn an_empty_array_is_lawful_only_where_nothing_can_be_the_answer() {
    assert_eq!(class(&EMBEDDINGS, r#"{"object":"list","data":[]}"#), Some(F::Empty));
    assert_eq!(class(&MODERATIONS, r#"{"id":"x","results":[ ]}"#), Some(F::Empty));
    assert_eq!(class(&RERANK, r#"{"id":"x","results":[ ]}"#), None);
}

#[test]
fn a_stream_is_no_answer() {
    let event = |data| Event { name: None, data: Cow::Borrowed(data), end: 0, size: 0, is_opaque: false };
    let class = |data| match (EMBEDDINGS.judge)(&event(data)) {
        Verdict::Error(fault) => Some(fault.class),
        _ => None,
    };
    assert_eq!(class(b""), None);
    assert_eq!(class(b"{\"data\":[]}"), Some(F::Malformed));
    assert_eq!(class(b"{\"error\":{\"code\":429}}"), Some(F::RateLimited));
    assert_eq!((EMBEDDINGS.observe)(&event(b"{\"error\":{\"code\":429}}")), After::Raises);
    assert_eq!((EMBEDDINGS.observe)(&event(b"{}")), After::Ordinary);
}

#[test]
fn a_message_alone_is_how_rankers_say_an_error() {
    let shape = |rules: &Rules, body: &str| {
        (rules.find_error)(&serde_json::from_str(body).unwrap()).map(|parts| parts.shape)
    };
    for body in [r#"{"id":"x","message":"too many documents"}"#, r#"{"detail":"top_k must be positive"}"#] {
        assert_eq!(shape(&RERANK, body), Some(Shape::Dialect), "{body}");
        assert_ne!(shape(&EMBEDDINGS, body), Some(Shape::Dialect), "{body}");
    }
    assert_eq!(shape(&RERANK, r#"{"results":[],"message":"ok"}"#), None);
}
