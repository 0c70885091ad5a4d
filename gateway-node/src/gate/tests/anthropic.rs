//! Messages of Anthropic behind the gate: what is preamble, what moves on, and what ends a stream.

use super::*;
use crate::dialect::anthropic_messages::RULES;

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
const BLOCK: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
const TEXT: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
const TOOL: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{}}}\n\n";
const BLOCK_STOP: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
const DELTA: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":5}}\n\n";
const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const ERROR: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
const FLAT: &str = "event: error\ndata: {\"code\":500,\"message\":\"b\",\"type\":\"server_error\"}\n\n";

fn gate(until: Until) -> Gate {
    Gate::new(&RULES, true, Some("text/event-stream; charset=utf-8"), until)
}

fn stream(frames: &[&str]) -> Seen {
    attempt(gate(Until::Content), &[frames.concat().as_bytes()], Tail::Clean)
}

fn complete(frames: &[&str]) -> Seen {
    attempt(gate(Until::Complete), &[frames.concat().as_bytes()], Tail::Clean)
}

#[test]
fn a_message_passes_untouched_and_ends_with_its_stop() {
    let text = [START, PING, BLOCK, TEXT, BLOCK_STOP, DELTA, STOP];
    assert_eq!(stream(&text), sent(Decision::Content, &text, How::Finished));
    assert_eq!(complete(&text), sent(Decision::Content, &text, How::Finished));
    let tool = [START, TOOL, BLOCK_STOP, DELTA, STOP];
    assert_eq!(stream(&tool), sent(Decision::Content, &tool, How::Finished));
    // Some relays put the marker of another dialect behind it.
    let marked = [START, TEXT, DELTA, STOP, DONE];
    assert_eq!(stream(&marked), sent(Decision::Content, &marked, How::Finished));
}

#[test]
fn an_empty_message_with_a_reason_to_stop_is_an_answer() {
    let empty = [START, DELTA, STOP];
    assert_eq!(stream(&empty), sent(Decision::End, &empty, How::Finished));
    assert_eq!(complete(&empty), sent(Decision::End, &empty, How::Finished));
}

#[test]
fn br_003_e_12_e_13_an_error_behind_the_preamble_moves_on() {
    for (error, class) in [(ERROR, F::Overloaded), (FLAT, F::UpstreamError)] {
        for preamble in [&[START][..], &[START, PING], &[START, PING, BLOCK], &[], &[": x\n\n", START]] {
            let frames = [preamble, &[error]].concat();
            assert_eq!(dropped(&stream(&frames)), Some(class), "{frames:?}");
            assert_eq!(dropped(&complete(&frames)), Some(class), "{frames:?}");
        }
    }
    // Without its `event:` line it is an error all the same.
    let unnamed = ERROR.strip_prefix("event: error\n").unwrap();
    assert_eq!(dropped(&stream(&[START, unnamed])), Some(F::Overloaded));
}

#[test]
fn a_message_in_which_nothing_comes_moves_on() {
    let nothing: [&[&str]; 6] =
        [&[], &[": x\n\n"], &[PING, PING], &[START], &[START, BLOCK, BLOCK_STOP, STOP], &[START, PING, STOP]];
    for frames in nothing {
        assert_eq!(dropped(&stream(frames)), Some(F::Empty), "{frames:?}");
    }
    assert_eq!(dropped(&stream(&[START, "event: message_delta\ndata: {\"type\":\n\n"])), Some(F::Malformed));
}

#[test]
fn without_its_stop_a_message_is_cut_whatever_was_announced() {
    for frames in
        [&[START, TEXT][..], &[START, TEXT, BLOCK_STOP], &[START, TEXT, DELTA], &[START, TEXT, PING]]
    {
        let Seen::Sent(_, bytes, how) = stream(frames) else { panic!("was dropped: {frames:?}") };
        assert_eq!((bytes, how), (frames.concat().into_bytes(), How::Cut));
        assert_eq!(dropped(&complete(frames)), Some(F::UpstreamError), "{frames:?}");
    }
    assert_eq!(dropped(&complete(&[START, DELTA])), Some(F::UpstreamError));
}

#[test]
fn after_commit_an_error_that_the_sdks_see_passes_and_one_that_they_do_not_is_followed_by_ours() {
    assert_eq!(stream(&[START, TEXT, ERROR]), sent(Decision::Content, &[START, TEXT, ERROR], How::Raised));
    assert_eq!(stream(&[START, TEXT, FLAT]), sent(Decision::Content, &[START, TEXT, FLAT], How::Raised));
    let unnamed = ERROR.strip_prefix("event: error\n").unwrap();
    let kept = [START, TEXT, unnamed];
    assert_eq!(stream(&[START, TEXT, unnamed, STOP]), sent(Decision::Content, &kept, How::Cut));
    let failed = DELTA.replace("end_turn", "error");
    let kept = [START, TEXT, &failed];
    assert_eq!(stream(&[START, TEXT, &failed, STOP]), sent(Decision::Content, &kept, How::Cut));
}

#[test]
fn what_becomes_of_a_message_does_not_depend_on_how_the_reads_cut_it() {
    let streams: [&[&str]; 8] = [
        &[START, PING, BLOCK, TEXT, BLOCK_STOP, DELTA, STOP],
        &[START, DELTA, STOP],
        &[START, PING, ERROR],
        &[START, FLAT],
        &[START, ERROR.trim_end()],
        &[START, STOP],
        &[START, TEXT, DELTA],
        &[START, TEXT, PING],
    ];
    for frames in streams {
        for newline in ["\n", "\r\n"] {
            let bytes = frames.concat().replace('\n', newline).into_bytes();
            for until in [Until::Content, Until::Complete] {
                for tail in [Tail::Clean, Tail::Broken] {
                    let expected = attempt(gate(until), &[&bytes], tail);
                    for cut in 0..=bytes.len() {
                        let seen = attempt(gate(until), &[&bytes[..cut], &bytes[cut..]], tail);
                        assert_eq!(seen, expected, "{frames:?} {tail:?} {until:?} cut at {cut}");
                    }
                    let single: Vec<&[u8]> = bytes.chunks(1).collect();
                    assert_eq!(attempt(gate(until), &single, tail), expected, "{frames:?} byte by byte");
                }
            }
        }
    }
}

#[test]
fn br_100_a_character_that_is_cut_by_the_reads_stays_whole() {
    let text = TEXT.replace("Hi", "世界é😀");
    let bytes = [START, &text, DELTA, STOP].concat().into_bytes();
    let expected = Seen::Sent(Decision::Content, bytes.clone(), How::Finished);
    for cut in 0..bytes.len() {
        assert_eq!(attempt(gate(Until::Content), &[&bytes[..cut], &bytes[cut..]], Tail::Clean), expected);
    }
}
