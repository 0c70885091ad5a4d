//! Streams of Google's own API: server-sent events with CRLF, and one JSON array.

use super::*;
use crate::dialect::gemini;

const USAGE: &str = "data: {\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"v\"}\r\n\r\n";
const TEXT: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"H\u{e9}\"}],\"role\":\"model\"},\"index\":0}]}\r\n\r\n";
const STOP: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":\"STOP\"}],\"usageMetadata\":{}}\r\n\r\n";
const BLOCKED: &str = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\r\n\r\n";
const BUSY: &str = "data: {\"error\":{\"code\":503,\"message\":\"m\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n";
const QUIET: &str = "data: {\"candidates\":[{\"index\":0}],\"error\":{\"code\":500}}\r\n\r\n";
const RAW: &str = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"m\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";

fn events() -> Gate {
    Gate::new(&gemini::RULES, true, Some("text/event-stream"), Until::Content).taking_arrays()
}

fn complete() -> Gate {
    Gate::new(&gemini::RULES, true, Some("text/event-stream"), Until::Complete).taking_arrays()
}

fn array() -> Gate {
    Gate::new(&gemini::RULES, true, Some("application/json; charset=UTF-8"), Until::Content).taking_arrays()
}

fn complete_array() -> Gate {
    Gate::new(&gemini::RULES, true, Some("application/json"), Until::Complete).taking_arrays()
}

fn run(gate: Gate, frames: &[&str], tail: Tail) -> Seen {
    let chunks: Vec<&[u8]> = frames.iter().map(|frame| frame.as_bytes()).collect();
    attempt(gate, &chunks, tail)
}

/// The same events as one array, as Google writes it, a piece for each.
fn elements(frames: &[&str], is_closed: bool) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for frame in frames {
        let data = frame.strip_prefix("data: ").unwrap().trim_end();
        pieces.push(format!("{}{data}", if pieces.is_empty() { "[" } else { ",\r\n" }));
    }
    if is_closed {
        pieces.push("\r\n]".into());
    }
    pieces
}

fn run_array(gate: Gate, frames: &[&str], is_closed: bool, tail: Tail) -> Seen {
    let pieces = elements(frames, is_closed);
    run(gate, &pieces.iter().map(String::as_str).collect::<Vec<_>>(), tail)
}

#[test]
fn an_answer_is_committed_with_its_first_word_or_its_lawful_end_in_both_forms() {
    for (frames, decision) in [
        (&[TEXT, STOP][..], Decision::Content),
        (&[USAGE, TEXT, TEXT, STOP, USAGE], Decision::Content),
        (&[STOP], Decision::End),
        (&[USAGE, STOP, USAGE], Decision::End),
        (&[BLOCKED], Decision::End),
    ] {
        for gate in [events, complete] {
            assert_eq!(run(gate(), frames, Tail::Clean), sent(decision, frames, How::Complete), "{frames:?}");
        }
        let pieces = elements(frames, true);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        for gate in [array, complete_array] {
            let seen = run(gate(), &pieces, Tail::Clean);
            assert_eq!(seen, sent(decision, &pieces, How::Complete), "{pieces:?}");
        }
    }
}

#[test]
fn e_14_e_15_e_17_to_e_20_e_24_and_e_25_move_on_with_their_class() {
    let object = "data: {\"cand\r\n\r\n";
    for (id, frames, tail, class) in [
        ("in a data line", &[BUSY][..], Tail::Clean, F::Overloaded),
        ("behind usage", &[USAGE, BUSY], Tail::Clean, F::Overloaded),
        ("beside candidates", &[USAGE, QUIET], Tail::Clean, F::UpstreamError),
        ("E-05", &["data: {\"error\":\"boom\"}\r\n\r\n"], Tail::Clean, F::UpstreamError),
        ("E-14", &[RAW], Tail::Clean, F::Overloaded),
        (
            "E-14, line by line",
            &["{\n", "  \"error\": {\n", "    \"code\": 503\n", "  }\n", "}\n"],
            Tail::Clean,
            F::Overloaded,
        ),
        ("E-17", &["<html>"], Tail::Clean, F::Malformed),
        ("E-18", &[], Tail::Clean, F::Empty),
        ("E-19", &[": x\r\n\r\n", USAGE], Tail::Clean, F::Empty),
        ("E-20", &[USAGE], Tail::Broken, F::UpstreamError),
        ("E-24", &[object], Tail::Clean, F::Malformed),
        (
            "E-25",
            &["[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]"],
            Tail::Clean,
            F::RateLimited,
        ),
        (
            "E-25, pretty",
            &["[{\n  \"error\": {\n", "    \"code\": 429\n  }\n}\n]\n"],
            Tail::Clean,
            F::RateLimited,
        ),
        ("an empty array", &["[", "]"], Tail::Clean, F::Empty),
        ("a broken element", &["[{\"cand"], Tail::Clean, F::Malformed),
        ("a cut element", &["[{\"cand"], Tail::Broken, F::UpstreamError),
    ] {
        for gate in [events, complete, array, complete_array] {
            assert_eq!(dropped(&run(gate(), frames, tail)), Some(class), "{id}");
        }
    }
    for (frames, class) in [(&[USAGE, BUSY][..], F::Overloaded), (&[USAGE], F::Empty)] {
        assert_eq!(dropped(&run_array(array(), frames, true, Tail::Clean)), Some(class));
    }
}

#[test]
fn e_16_a_whole_answer_passes_where_a_stream_was_asked_for() {
    let body = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}";
    for gate in [events, array] {
        assert_eq!(run(gate(), &[body], Tail::Clean), sent(Decision::Whole, &[body], How::Complete));
    }
}

#[test]
fn e_21_to_e_23_after_commit_an_end_needs_a_finish_and_a_clean_one_needs_the_array_closed() {
    for (frames, tail, how) in [
        (&[TEXT][..], Tail::Broken, How::Cut),
        (&[TEXT], Tail::Clean, How::Cut),
        (&[TEXT, USAGE], Tail::Clean, How::Cut),
        (&[TEXT, STOP], Tail::Broken, How::Cut),
        (&[TEXT, STOP], Tail::Clean, How::Complete),
        (&[TEXT, BUSY], Tail::Clean, How::Raised),
        (&[TEXT, QUIET], Tail::Clean, How::Cut),
    ] {
        assert_eq!(run(events(), frames, tail), sent(Decision::Content, frames, how), "{frames:?} {tail:?}");
        let pieces = elements(frames, false);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let how = if how == How::Complete { How::Cut } else { how };
        assert_eq!(run(array(), &pieces, tail), sent(Decision::Content, &pieces, how), "{pieces:?} {tail:?}");
    }
    // Held to the end, a cut one moves on.
    assert_eq!(dropped(&run(complete(), &[TEXT], Tail::Clean)), Some(F::UpstreamError));
    assert_eq!(
        dropped(&run_array(complete_array(), &[TEXT, STOP], false, Tail::Clean)),
        Some(F::UpstreamError)
    );
    assert_eq!(dropped(&run_array(complete_array(), &[TEXT, BUSY], true, Tail::Clean)), Some(F::Overloaded));
}

#[test]
fn only_server_sent_events_have_a_place_for_an_error_frame() {
    for (gate, chunk, takes_frame) in
        [(events(), TEXT, true), (array(), &*elements(&[TEXT], false)[0], false)]
    {
        let mut gate = gate;
        assert_eq!(gate.on_bytes(Bytes::copy_from_slice(chunk.as_bytes())), Step::Commit(Decision::Content));
        let tap = gate.commit().tap;
        assert!(tap.is_stream());
        assert_eq!(tap.takes_frame(), takes_frame);
    }
}

#[test]
fn a_picture_with_its_finish_in_one_event_is_a_complete_answer() {
    let picture = TEXT
        .replace("H\u{e9}", &"A".repeat(GATE_EVENT_BYTES_MAX))
        .replace("\"index\":0", "\"finishReason\":\"STOP\"");
    assert_eq!(run(events(), &[&picture], Tail::Clean), sent(Decision::Bounds, &[&picture], How::Complete));
    let pieces = elements(&[&picture], true);
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    assert_eq!(run(array(), &pieces, Tail::Clean), sent(Decision::Bounds, &pieces, How::Complete));
}

#[test]
fn br_102_every_cut_in_two_gives_the_same_verdict_and_bytes() {
    let streams: [&[&str]; 9] = [
        &[USAGE, TEXT, STOP],
        &[TEXT],
        &[STOP],
        &[BLOCKED],
        &[USAGE, BUSY],
        &[TEXT, QUIET],
        &[USAGE],
        &[RAW],
        &["\u{feff}", ": x\r\n\r\n", TEXT, STOP],
    ];
    type MakeGate = fn() -> Gate;
    let mut cases: Vec<(Vec<u8>, MakeGate)> = Vec::new();
    for frames in streams {
        let lf = frames.concat().replace("\r\n", "\n").into_bytes();
        cases.extend([events as MakeGate, complete].map(|gate| (frames.concat().into_bytes(), gate)));
        cases.push((lf, events as MakeGate));
        if frames.iter().all(|frame| frame.starts_with("data:")) {
            for is_closed in [true, false] {
                let bytes = elements(frames, is_closed).concat().into_bytes();
                cases.extend([array as MakeGate, complete_array].map(|gate| (bytes.clone(), gate)));
            }
        }
    }
    for (bytes, gate) in cases {
        for tail in [Tail::Clean, Tail::Broken] {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let expected = attempt(gate(), &single, tail);
            for cut in 0..=bytes.len() {
                let seen = attempt(gate(), &[&bytes[..cut], &bytes[cut..]], tail);
                let what = format!("{} cut at {cut}, {tail:?}", String::from_utf8_lossy(&bytes));
                splits::assert_same(&seen, &expected, &what);
            }
        }
    }
}
