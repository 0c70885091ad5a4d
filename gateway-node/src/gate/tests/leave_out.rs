//! The one edit of a stream: it loses the frame of usage that its caller did not ask for, and nothing else.

use std::collections::VecDeque;

use common::limits::USAGE_FRAME_BYTES_MAX;
use proptest::prelude::*;

use super::splits::assert_same;
use super::*;
use crate::dialect::ask_usage;

fn leaving_out(gate: Gate) -> Gate {
    gate.leaving_out(ask_usage::is_answer)
}

/// Frames, of which those that are to be left out are told.
fn streams() -> Vec<(&'static str, Vec<(&'static str, bool)>)> {
    let role = "data:{\"choices\":[{\"delta\":{\"content\":\"\"}}],\"usage\":null}\n\n";
    let text = "data:{\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n";
    let cumulative = "data:{\"choices\":[{\"delta\":{\"content\":\"\"}}],\"usage\":{\"a\":1}}\n\n";
    let stop = "data:{\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let named = "id: 1\ndata: {\"usage\":{},\ndata: \"choices\":[ ]}\n: within\n\n";
    let azure = "data:{\"choices\":[],\"prompt_filter_results\":[]}\n\n";
    let error = "data:{\"error\":{\"code\":429}}\n\n";
    let (pass, out) = (|frame| (frame, false), |frame| (frame, true));
    vec![
        ("short", vec![pass(text), pass(": x\n"), out("data:{\"choices\":[],\"usage\":{}}\n\n"), pass(DONE)]),
        ("healthy", vec![pass(azure), pass(role), pass(text), pass(stop), out(usage), pass(DONE)]),
        ("no DONE", vec![pass(text), pass(cumulative), pass(stop), out(usage)]),
        (
            "comments",
            vec![
                pass(": a\n\n: b\n"),
                out(named),
                pass(": c\n"),
                pass(text),
                pass(": d\n"),
                out(usage),
                pass(": e\n\n"),
                pass(DONE),
            ],
        ),
        ("in front", vec![pass("\u{feff}"), out(usage), pass("\n\n"), pass(text), pass(stop), pass(DONE)]),
        ("none", vec![pass(role), pass(text), pass(stop), pass("data: [DONE]\n\nrest")]),
        ("an error", vec![pass(text), out(usage), pass(error)]),
        ("cut", vec![pass(text), out(usage), pass("data:{\"choices\":[],\"usage\":{\"prompt_tok")]),
        ("without its blank line", vec![pass(text), pass(stop), out("data:{\"choices\":[],\"usage\":{}}")]),
    ]
}

#[test]
fn br_082_the_frame_is_left_out_and_all_else_passes_however_the_reads_cut_it() {
    for (what, frames) in streams() {
        for (line_end, gate, tail) in [
            ("\n", stream_gate as fn() -> Gate, Tail::Clean),
            ("\r\n", stream_gate, Tail::Clean),
            ("\r", stream_gate, Tail::Clean),
            ("\r\n", stream_gate, Tail::Broken),
            ("\r\n", complete_gate, Tail::Clean),
        ] {
            // Behind it the driver takes no more reads.
            if what == "an error" && line_end != "\n" {
                continue;
            }
            // Of one that broke off nobody can tell whether it is the frame.
            let is_out = |frame: &str| frame.ends_with("\n\n") || tail == Tail::Clean;
            let join = |is_plain: bool| {
                let kept = frames.iter().filter(|(frame, out)| is_plain || !(*out && is_out(frame)));
                kept.map(|(frame, _)| frame.replace('\n', line_end)).collect::<String>().into_bytes()
            };
            let (bytes, rest) = (join(true), join(false));
            let Seen::Sent(decision, plain, how) = attempt(gate(), &[&bytes], tail) else { continue };
            assert_eq!(plain, bytes, "{what}: who asked gets all of it");
            let expected = Seen::Sent(decision, rest, how);
            let check = |chunks: &[&[u8]], place: &str| {
                let seen = attempt(leaving_out(gate()), chunks, tail);
                assert_same(&seen, &expected, &format!("{what}, {line_end:?}, {tail:?}, cut {place}"));
            };
            for first in 0..=bytes.len() {
                // In three where that is little.
                for second in if bytes.len() < 150 { first..=bytes.len() } else { first..=first } {
                    let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    let cut: Vec<&[u8]> = cut.into_iter().filter(|chunk| !chunk.is_empty()).collect();
                    check(&cut, &format!("at {first} and {second}"));
                }
            }
            check(&bytes.chunks(1).collect::<Vec<_>>(), "everywhere");
        }
    }
}

#[test]
fn a_frame_that_is_too_large_to_be_kept_back_passes_whatever_is_in_it() {
    let frame = |bytes: usize| {
        let frame = "data: {\"choices\":[],\"usage\":{}}\n\n";
        frame.replace("{}", &format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - frame.len() - 6)))
    };
    for (size, is_left_out) in [(USAGE_FRAME_BYTES_MAX, true), (USAGE_FRAME_BYTES_MAX + 1, false)] {
        let frame = frame(size);
        assert_eq!(frame.len(), size);
        let bytes = [TEXT, STOP, &frame, DONE].concat().into_bytes();
        let rest = if is_left_out { [TEXT, STOP, DONE].concat().into_bytes() } else { bytes.clone() };
        let expected = Seen::Sent(Decision::Content, rest, How::Finished);
        for chunk in [1, 100, 8192, bytes.len()] {
            let chunks: Vec<&[u8]> = bytes.chunks(chunk).collect();
            assert_same(
                &attempt(leaving_out(stream_gate()), &chunks, Tail::Clean),
                &expected,
                &format!("{size} by {chunk}"),
            );
        }
    }
}

#[test]
fn a_large_event_is_not_kept_back_until_its_end() {
    let mut gate = leaving_out(stream_gate());
    assert_eq!(gate.on_bytes(Bytes::from_static(TEXT.as_bytes())), Step::Commit(Decision::Content));
    let mut tap = gate.commit().tap;
    let mut sent = VecDeque::new();
    let part = Bytes::from("data: ".to_owned() + &"x".repeat(USAGE_FRAME_BYTES_MAX - 6));
    for (bytes, so_far) in [
        (part, 0),
        (Bytes::from_static(b"x"), USAGE_FRAME_BYTES_MAX + 1),
        (Bytes::from_static(b"yz"), USAGE_FRAME_BYTES_MAX + 3),
    ] {
        tap.on_bytes(&bytes);
        tap.pass(bytes, &mut sent);
        assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), so_far);
    }
}

fn frame() -> impl Strategy<Value = (String, bool)> {
    prop_oneof![
        3 => Just((TEXT.to_owned(), false)),
        2 => Just((USAGE.to_owned(), true)),
        1 => Just((": note\r\n\r\n".to_owned(), false)),
        1 => Just(("data: {\"choices\":[],\"usage\":null}\r\r".to_owned(), false)),
        1 => Just(("event: x\r\ndata: {\"choices\":[],\"usage\":{}}\r\n\r\n".to_owned(), true)),
        1 => "[a-z:\" ]{0,9}".prop_map(|text| (format!("x: {text}\ndata: {{\"a\":\"{}\"}}\n\n", text.replace('"', "")), false)),
    ]
}

proptest! {
    #[test]
    fn what_a_caller_gets_is_what_came_without_the_frames(
        frames in proptest::collection::vec(frame(), 1..20),
        sizes in proptest::collection::vec(1..200_usize, 1..30),
    ) {
        let bytes = [TEXT.as_bytes(), frames.iter().map(|(frame, _)| frame.as_str()).collect::<String>().as_bytes(), DONE.as_bytes()].concat();
        let kept: String = frames.iter().filter(|(_, out)| !out).map(|(frame, _)| frame.as_str()).collect();
        let expected = [TEXT, &kept, DONE].concat();
        let mut chunks = Vec::new();
        let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
        while !rest.is_empty() {
            let (chunk, next) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            chunks.push(chunk);
            rest = next;
        }
        let seen = attempt(leaving_out(stream_gate()), &chunks, Tail::Clean);
        prop_assert_eq!(seen, Seen::Sent(Decision::Content, expected.into_bytes(), How::Finished));
    }
}
