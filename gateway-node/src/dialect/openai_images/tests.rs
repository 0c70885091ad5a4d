use std::borrow::Cow;

use super::*;

fn event<'a>(name: Option<&'a str>, data: &'a str) -> Event<'a> {
    Event {
        name: name.map(str::as_bytes),
        data: Cow::Borrowed(data.as_bytes()),
        end: 0,
        size: 0,
        is_opaque: false,
    }
}

fn class(verdict: Verdict) -> Option<F> {
    match verdict {
        Verdict::Error(fault) => Some(fault.class),
        _ => None,
    }
}

const PARTIAL: &str =
    r#"{"type":"image_generation.partial_image","b64_json":"iVBO","partial_image_index":0}"#;
const COMPLETED: &str =
    r#"{"type":"image_generation.completed","b64_json":"iVBO","usage":{"total_tokens":9}}"#;

#[test]
fn each_event_has_its_verdict() {
    for (name, data, expected) in [
        (Some("image_generation.partial_image"), PARTIAL, Verdict::Content),
        (None, PARTIAL, Verdict::Content),
        (None, COMPLETED, Verdict::Content),
        (None, r#"{"type":"image_generation.brand_new"}"#, Verdict::Content),
        (None, r#"{"type":"keepalive"}"#, Verdict::Hold),
        (None, "null", Verdict::Hold),
        (None, "{}", Verdict::Hold),
        (None, "", Verdict::Hold),
    ] {
        assert_eq!(judge(&event(name, data)), expected, "{data}");
    }
    for (name, data, expected) in [
        (
            Some("error"),
            r#"{"type":"error","error":{"code":"moderation_blocked","message":"m"}}"#,
            F::BadRequest,
        ),
        (None, r#"{"type":"error","code":"rate_limit_exceeded","message":"m"}"#, F::RateLimited),
        (Some("error"), r#"{"message":"m","code":503}"#, F::Overloaded),
        (None, r#"{"type":"image_generation.partial_image","error":{"code":502}}"#, F::UpstreamError),
        (None, r#"{"error":{"code":429}}"#, F::RateLimited),
        (None, "[DONE]", F::Empty),
        (None, "{\"type\"", F::Malformed),
    ] {
        assert_eq!(class(judge(&event(name, data))), Some(expected), "{data}");
    }
    let opaque = |name| Event { is_opaque: true, ..event(name, "") };
    assert_eq!(judge(&opaque(Some("image_generation.partial_image"))), Verdict::Content);
    assert_eq!(judge(&opaque(None)), Verdict::Content);
    assert_eq!(class(judge(&opaque(Some("error")))), Some(F::UpstreamError));
}

#[test]
fn the_finished_image_makes_a_clean_end_also_where_it_is_too_large_to_be_kept() {
    use After::{FailedQuietly, Finish, Ordinary, Raises};
    let opaque = |name| Event { is_opaque: true, ..event(name, "") };
    assert_eq!(observe(&opaque(Some("image_generation.completed"))), Finish);
    assert_eq!(observe(&opaque(Some("image_generation.partial_image"))), Ordinary);
    assert_eq!(observe(&opaque(Some("error"))), FailedQuietly);
    assert_eq!(observe(&opaque(None)), Finish);
    for (name, data, expected) in [
        (Some("image_generation.completed"), COMPLETED, Finish),
        (None, COMPLETED, Finish),
        (Some("image_generation.partial_image"), PARTIAL, Ordinary),
        (None, PARTIAL, Ordinary),
        (Some("error"), r#"{"type":"error","error":{"code":"server_error","message":"m"}}"#, Raises),
        (None, r#"{"error":{"code":500}}"#, Raises),
        (Some("error"), r#"{"type":"error","code":"server_error","message":"m"}"#, FailedQuietly),
        (None, r#"{"type":"error","code":"server_error","message":"m"}"#, FailedQuietly),
        (None, "[DONE]", After::Ends),
    ] {
        assert_eq!(observe(&event(name, data)), expected, "{data}");
    }
}

#[test]
fn a_whole_answer_may_have_had_every_image_filtered_out() {
    let whole = |body: &str| class((RULES.judge_whole)(body.as_bytes()));
    assert_eq!(whole(r#"{"created":1,"data":[{"b64_json":"iVBO"}],"usage":{}}"#), None);
    assert_eq!(whole(r#"{"created":1,"data":[]}"#), None);
    assert_eq!(whole(r#"{"created":1}"#), Some(F::Empty));
    assert_eq!(whole(r#"{"error":{"code":"content_policy_violation","message":"m"}}"#), Some(F::BadRequest));
    assert_eq!(whole(r#"{"created":1,"data":[{"b64_json":"iV"#), Some(F::Malformed));
}
