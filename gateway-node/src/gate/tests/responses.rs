//! Streams of the Responses API: what becomes of them, whole, cut, and however the reads cut them.

use super::*;
use crate::dialect::openai_responses::RULES;

const CREATED: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n";
const PROGRESS: &str = "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n";
const ITEM: &str = "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"content\":[]}}\n\n";
const DELTA: &str =
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"é\"}\n\n";
const COMPLETED: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":9,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"error\":null,\"usage\":{\"output_tokens\":1}}}\n\n";
const INCOMPLETE: &str = "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\"}}\n\n";
const FAILED: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}}}\n\n";
const NESTED: &str = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n";
const FLAT: &str = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"code\":\"server_error\",\"message\":\"q\",\"param\":null}\n\n";

fn gate(until: Until) -> Gate {
    Gate::new(&RULES, true, Some("text/event-stream; charset=utf-8"), until)
}

fn seen(frames: &[&str], tail: Tail) -> Seen {
    attempt(gate(Until::Content), &[frames.concat().as_bytes()], tail)
}

fn class(seen: Seen) -> Option<F> {
    match seen {
        Seen::Dropped(fault) => Some(fault.class),
        Seen::Sent(..) => None,
    }
}

fn sent(decision: Decision, frames: &[&str], how: How) -> Seen {
    Seen::Sent(decision, frames.concat().into_bytes(), how)
}

#[test]
fn br_001_a_quota_error_behind_the_first_events_is_dropped() {
    assert_eq!(class(seen(&[CREATED, PROGRESS, NESTED], Tail::Clean)), Some(F::Balance));
    assert_eq!(class(seen(&[CREATED, PROGRESS, ITEM, NESTED], Tail::Clean)), Some(F::Balance));
    assert_eq!(class(seen(&[CREATED, FLAT], Tail::Clean)), Some(F::UpstreamError));
    assert_eq!(class(seen(&[CREATED, FAILED], Tail::Clean)), Some(F::RateLimited));
    assert_eq!(class(seen(&[CREATED, NESTED.trim_end()], Tail::Clean)), Some(F::Balance), "no blank line");
}

#[test]
fn what_says_nothing_is_dropped_and_a_lawful_empty_answer_is_not() {
    assert_eq!(class(seen(&[CREATED, PROGRESS, ITEM], Tail::Clean)), Some(F::Empty));
    assert_eq!(class(seen(&[CREATED, PROGRESS, ITEM], Tail::Broken)), Some(F::UpstreamError));
    for last in [COMPLETED, INCOMPLETE] {
        let frames = [CREATED, PROGRESS, ITEM, last];
        assert_eq!(seen(&frames, Tail::Clean), sent(Decision::End, &frames, How::Finished));
    }
}

#[test]
fn after_commit_only_the_last_event_makes_a_clean_end() {
    let begin = [CREATED, ITEM, DELTA];
    for last in [COMPLETED, INCOMPLETE] {
        let frames = [&begin[..], &[last]].concat();
        for tail in [Tail::Clean, Tail::Broken] {
            assert_eq!(seen(&frames, tail), sent(Decision::Content, &frames, How::Finished), "{tail:?}");
        }
    }
    for tail in [Tail::Clean, Tail::Broken] {
        assert_eq!(seen(&begin, tail), sent(Decision::Content, &begin, How::Cut), "{tail:?}");
    }
    let raised = [CREATED, DELTA, NESTED];
    assert_eq!(seen(&raised, Tail::Clean), sent(Decision::Content, &raised, How::Raised));
    for quiet in [FAILED, FLAT] {
        let frames = [CREATED, DELTA, quiet];
        let more = [CREATED, DELTA, quiet, COMPLETED];
        assert_eq!(
            seen(&more, Tail::Clean),
            sent(Decision::Content, &frames, How::Cut),
            "no SDK raises for it"
        );
    }
}

#[test]
fn a_done_marker_without_a_last_event_is_no_end_and_is_held_back() {
    let frames = [CREATED, DELTA, DONE];
    let begin = [CREATED, DELTA];
    assert_eq!(seen(&frames, Tail::Clean), sent(Decision::Content, &begin, How::Cut), "in one read");
    for size in [CREATED.len() + DELTA.len(), CREATED.len()] {
        let bytes = frames.concat().into_bytes();
        let chunks = [&bytes[..size], &bytes[size..]];
        let seen = attempt(gate(Until::Content), &chunks, Tail::Clean);
        assert_eq!(seen, sent(Decision::Content, &begin, How::Cut), "a read of {size}");
    }
    let whole = [CREATED, DELTA, COMPLETED, DONE];
    assert_eq!(seen(&whole, Tail::Clean), sent(Decision::Content, &whole, How::Finished));
}

#[test]
fn a_whole_answer_to_a_request_for_a_stream_passes_as_it_is() {
    let body = b"{\"object\":\"response\",\"status\":\"completed\",\"output\":[]}";
    let json = || Gate::new(&RULES, true, Some("application/json"), Until::Content);
    assert_eq!(
        attempt(json(), &[body], Tail::Clean),
        Seen::Sent(Decision::Whole, body.to_vec(), How::Complete)
    );
    let error = b"{\"error\":{\"message\":\"b\",\"code\":429}}";
    assert_eq!(class(attempt(json(), &[error], Tail::Clean)), Some(F::RateLimited));
}

#[test]
fn the_last_event_is_known_also_where_it_is_too_large_to_be_kept() {
    let text = "x".repeat(3 * GATE_EVENT_BYTES_MAX);
    let large = COMPLETED.replace("\"usage\"", &format!("\"output\":[{{\"text\":\"{text}\"}}],\"usage\""));
    let bytes = [CREATED, DELTA, &large].concat().into_bytes();
    for size in [1000, 64 * 1024, bytes.len()] {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        let seen = attempt(gate(Until::Content), &chunks, Tail::Clean);
        assert!(seen == Seen::Sent(Decision::Content, bytes.clone(), How::Finished), "chunks of {size}");
    }
    for missing in [1, 2, 10] {
        let cut = &bytes[..bytes.len() - missing];
        let seen = attempt(gate(Until::Content), &[cut], Tail::Clean);
        assert!(seen == Seen::Sent(Decision::Content, cut.to_vec(), How::Cut), "{missing} bytes are missing");
    }
}

#[test]
fn br_086_every_cut_in_two_and_byte_by_byte_gives_the_same_verdict_bytes_and_end() {
    let streams = [
        vec![CREATED, PROGRESS, ITEM, DELTA, COMPLETED],
        vec![CREATED, COMPLETED],
        vec![CREATED, DELTA, INCOMPLETE],
        vec![CREATED, DELTA],
        vec![CREATED, NESTED],
        vec![CREATED, FAILED],
        vec![CREATED, FLAT],
        vec![CREATED, DELTA, FAILED],
        vec![CREATED, DELTA, FLAT],
    ];
    for frames in streams {
        for newline in ["\n", "\r\n"] {
            let bytes = frames.concat().replace('\n', newline).into_bytes();
            for until in [Until::Content, Until::Complete] {
                for tail in [Tail::Clean, Tail::Broken] {
                    let expected = attempt(gate(until), &[&bytes], tail);
                    for cut in 0..=bytes.len() {
                        let seen = attempt(gate(until), &[&bytes[..cut], &bytes[cut..]], tail);
                        splits::assert_same(&seen, &expected, &format!("{until:?} {tail:?} cut at {cut}"));
                    }
                    let single: Vec<&[u8]> = bytes.chunks(1).collect();
                    splits::assert_same(&attempt(gate(until), &single, tail), &expected, "byte by byte");
                }
            }
        }
    }
}

#[test]
fn a_gate_that_waits_for_the_end_drops_whatever_has_none() {
    let complete =
        |frames: &[&str], tail| attempt(gate(Until::Complete), &[frames.concat().as_bytes()], tail);
    let frames = [CREATED, DELTA, COMPLETED];
    assert_eq!(complete(&frames, Tail::Clean), sent(Decision::Content, &frames, How::Finished));
    let empty = [CREATED, COMPLETED];
    assert_eq!(complete(&empty, Tail::Clean), sent(Decision::End, &empty, How::Finished));
    assert_eq!(class(complete(&[CREATED, DELTA], Tail::Clean)), Some(F::UpstreamError));
    assert_eq!(class(complete(&[CREATED, DELTA, FAILED], Tail::Clean)), Some(F::RateLimited));
    assert_eq!(class(complete(&[CREATED, DELTA, NESTED], Tail::Clean)), Some(F::Balance));
}
