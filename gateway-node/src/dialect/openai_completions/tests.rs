use std::borrow::Cow;

use common::class::FailureClass as F;

use super::super::sse::Event;
use super::super::{After, Verdict};
use super::*;

fn event(data: &str) -> Event<'_> {
    Event { name: None, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

fn chunk(text: &str, finish: &str, more: &str) -> String {
    format!(
        r#"{{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{{"index":0,"text":{text},"logprobs":null,"finish_reason":{finish}}}]{more}}}"#
    )
}

#[test]
fn the_first_chunk_has_text_and_commits() {
    assert_eq!((RULES.judge)(&event(&chunk(r#""Hi""#, "null", ""))), Verdict::Content);
    assert_eq!((RULES.judge)(&event(&chunk(r#"" ""#, "null", r#","usage":null"#))), Verdict::Content);
    assert_eq!((RULES.judge)(&event(&chunk(r#""""#, "null", ""))), Verdict::Hold);
    assert_eq!((RULES.judge)(&event(&chunk(r#""""#, r#""length""#, ""))), Verdict::End);
    let failed = (RULES.judge)(&event(r#"{"error":{"message":"b","code":503}}"#));
    assert!(matches!(failed, Verdict::Error(fault) if fault.class == F::Overloaded));
}

#[test]
fn a_finish_and_done_mean_what_they_mean_in_chat() {
    assert_eq!((RULES.observe)(&event(&chunk(r#""x""#, "null", ""))), After::Ordinary);
    assert_eq!((RULES.observe)(&event(&chunk(r#""""#, r#""stop""#, ""))), After::Finish);
    assert_eq!((RULES.observe)(&event("[DONE]")), After::Done);
    assert_eq!((RULES.observe)(&event(r#"{"error":{"message":"b"}}"#)), After::Raises);
}

#[test]
fn whole_answers_have_a_choice() {
    let class = |body: &str| match (RULES.judge_whole)(body.as_bytes()) {
        Verdict::Error(fault) => Some(fault.class),
        _ => None,
    };
    assert_eq!(class(&chunk(r#""Hi""#, r#""stop""#, r#","usage":{}"#)), None);
    assert_eq!(class(&chunk(r#""""#, r#""length""#, "")), None);
    assert_eq!(class(r#"{"object":"text_completion","choices":[]}"#), Some(F::Empty));
    assert_eq!(class(r#"{"error":{"code":429}}"#), Some(F::RateLimited));
    assert_eq!(class("<html>"), Some(F::Malformed));
}
