//! Faults reported against other gateways, as far as the gate and the tap are concerned.

use super::*;
use common::walk::Reason;

fn fault(seen: Seen) -> Fault {
    match seen {
        Seen::Dropped(fault) => *fault,
        Seen::Sent(..) => panic!("was committed: {seen:?}"),
    }
}

#[test]
fn br_001_an_error_behind_lifecycle_events_moves_on() {
    let quota = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n";
    for held in 0..20 {
        assert_eq!(dropped(&stream(&[&ROLE.repeat(held), quota])), Some(F::Balance), "after {held} events");
    }
}

#[test]
fn br_002_azures_preamble_proves_nothing() {
    let first = "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}}}]}\n\n";
    let role = "data: {\"choices\":[{\"content_filter_results\":{},\"delta\":{\"content\":\"\",\"refusal\":null,\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}],\"id\":\"c1\"}\n\n";
    assert_eq!(dropped(&stream(&[first, role, ERROR])), Some(F::UpstreamError));
    assert_eq!(dropped(&stream(&[first, role])), Some(F::Empty));
}

#[test]
fn br_005_a_rate_limit_in_the_first_frame_of_a_200_moves_on() {
    let frame = "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}}\n\n";
    assert_eq!(dropped(&stream(&[frame])), Some(F::RateLimited));
    assert_eq!(
        dropped(&whole("{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}}")),
        Some(F::RateLimited)
    );
}

#[test]
fn br_006_a_vendors_number_in_a_200_is_a_fault_of_the_upstream() {
    let frame = "data: {\"error\":{\"code\":11200,\"message\":\"AppIdNoAuthError\"}}\n\n";
    let fault = fault(stream(&[frame]));
    assert_eq!((fault.class, fault.status), (F::UpstreamError, None));
}

#[test]
fn br_008_the_preamble_of_a_failed_attempt_is_not_seen() {
    assert_eq!(dropped(&stream(&[ROLE, ERROR])), Some(F::UpstreamError));
    let second = [ROLE, TEXT, STOP, DONE];
    assert_eq!(stream(&second), sent(Decision::Content, &second, How::Finished));
}

#[test]
fn br_011_nothing_at_all_is_empty_on_every_path() {
    for gate in [stream_gate(), complete_gate(), whole_gate(), Gate::new(&RULES, true, None, Until::Content)]
    {
        assert_eq!(dropped(&attempt(gate, &[], Tail::Clean)), Some(F::Empty));
    }
}

#[test]
fn br_012_a_failure_that_hides_behind_a_stop_is_a_failure() {
    let frame = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"network_error\"}]}\n\n";
    assert_eq!(dropped(&stream(&[ROLE, frame, DONE])), Some(F::UpstreamError));
    let body = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"network_error\"}]}";
    assert_eq!(dropped(&whole(body)), Some(F::UpstreamError));
}

#[test]
fn br_013_an_answer_of_reasoning_alone_is_a_success() {
    let thought = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n";
    let frames = [ROLE, thought, STOP, DONE];
    assert_eq!(stream(&frames), sent(Decision::Content, &frames, How::Finished));
    let body = "{\"choices\":[{\"message\":{\"content\":\"\",\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}]}";
    assert_eq!(whole(body), sent(Decision::Whole, &[body], How::Complete));
}

#[test]
fn br_014_done_behind_an_error_changes_nothing() {
    let frame = "data: {\"error\":{\"message\":\"quota\"}}\n\n";
    assert_eq!(dropped(&stream(&[frame, DONE])), Some(F::UpstreamError));
    // After commit neither: the caller's SDK raises at the frame.
    assert_eq!(stream(&[TEXT, frame, DONE]), sent(Decision::Content, &[TEXT, frame, DONE], How::Raised));
}

#[test]
fn br_015_a_json_error_under_a_200_is_an_error_streamed_or_not() {
    let body = "{\"error\":{\"code\":502,\"message\":\"down\"}}";
    assert_eq!(fault(whole(body)).status, Some(502));
    let gate = Gate::new(&RULES, true, Some("application/json"), Until::Content);
    assert_eq!(dropped(&attempt(gate, &[body.as_bytes()], Tail::Clean)), Some(F::UpstreamError));
}

#[test]
fn br_017_a_prompt_that_is_too_long_is_the_callers_fault_in_a_stream_too() {
    let frame = "data: {\"error\":{\"object\":\"error\",\"message\":\"This model's maximum context length is 8 tokens\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n";
    let fault = fault(stream(&[frame, DONE]));
    assert_eq!((fault.class, fault.status, fault.reason), (F::BadRequest, Some(400), Reason::ContextLength));
    assert!(fault.detail.unwrap().message.starts_with("This model's maximum"));
}

#[test]
fn br_018_so_is_a_context_that_a_local_server_cannot_hold() {
    let frame = "data: {\"error\":{\"code\":400,\"message\":\"b\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9,\"n_ctx\":8}}\n\n";
    let fault = fault(stream(&[frame]));
    assert_eq!((fault.class, fault.status, fault.reason), (F::BadRequest, Some(400), Reason::ContextLength));
}

#[test]
fn br_020_code_and_message_of_a_nested_error_are_kept() {
    let frame = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"server_error\",\"message\":\"lost\"}}\n\n";
    let detail = fault(stream(&[ROLE, frame])).detail.unwrap();
    assert_eq!((detail.message.as_str(), detail.code.as_deref()), ("lost", Some("server_error")));
}

#[test]
fn br_022_the_class_comes_from_the_code_and_not_from_json_in_the_message() {
    let frame = "data: {\"error\":{\"message\":\"{\\\"error\\\":{\\\"code\\\":401}}\",\"code\":429}}\n\n";
    assert_eq!(dropped(&stream(&[frame])), Some(F::RateLimited));
}

#[test]
fn br_084_usage_that_is_null_or_empty_says_nothing() {
    for usage in ["null", "{}", "{\"total_tokens\":0}"] {
        let role = ROLE.replace("\"usage\":null", &format!("\"usage\":{usage}"));
        let text = TEXT.replace("\"usage\":null", &format!("\"usage\":{usage}"));
        assert_eq!(dropped(&stream(&[&role, &role])), Some(F::Empty), "{usage}");
        let frames = [&role, &text, STOP, USAGE, DONE];
        assert_eq!(stream(&frames), sent(Decision::Content, &frames, How::Finished), "{usage}");
    }
}

#[test]
fn br_100_a_character_that_is_cut_by_the_reads_stays_whole() {
    let text = TEXT.replace("Hi", "世界é😀");
    let bytes = [ROLE, &text, STOP, DONE].concat().into_bytes();
    let expected = Seen::Sent(Decision::Content, bytes.clone(), How::Finished);
    for cut in 0..bytes.len() {
        assert_eq!(
            attempt(stream_gate(), &[&bytes[..cut], &bytes[cut..]], Tail::Clean),
            expected,
            "cut at {cut}"
        );
    }
    // Bytes that are no UTF-8 at all are the upstream's business.
    let odd =
        [ROLE.as_bytes(), b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n", DONE.as_bytes()]
            .concat();
    assert_eq!(
        attempt(stream_gate(), &[&odd], Tail::Clean),
        Seen::Sent(Decision::Content, odd, How::Finished)
    );
}

#[test]
fn br_103_no_space_is_needed_after_the_colon() {
    let tight = |frame: &str| frame.replace("data: ", "data:");
    assert_eq!(dropped(&stream(&[&tight(ERROR)])), Some(F::UpstreamError));
    let frames = [ROLE, TEXT, STOP, DONE].map(tight);
    let frames = frames.each_ref().map(String::as_str);
    assert_eq!(stream(&frames), sent(Decision::Content, &frames, How::Finished));
}

#[test]
fn br_105_a_large_frame_passes() {
    let large = TEXT.replace("Hi", &"x".repeat(200 * 1024));
    for frames in [[ROLE, &large, STOP, DONE], [TEXT, &large, STOP, DONE]] {
        let bytes = frames.concat().into_bytes();
        for size in [1024, 16 * 1024, bytes.len()] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            let Seen::Sent(_, out, How::Finished) = attempt(stream_gate(), &chunks, Tail::Clean) else {
                panic!("did not pass in chunks of {size}");
            };
            assert_eq!(out, bytes);
        }
    }
}

#[test]
fn br_138_a_tool_call_without_an_index_is_passed_as_it_is() {
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n";
    let frames = [ROLE, call, STOP, DONE];
    assert_eq!(stream(&frames), sent(Decision::Content, &frames, How::Finished));
}
