//! What becomes of a stream does not depend on how the reads cut it.

use proptest::prelude::*;

use super::*;

/// How the bytes that the caller got are compared: behind an error frame that raises, it does not matter what else
/// came with the same read.
fn comparable(seen: Seen, frames_end: usize) -> Seen {
    match seen {
        Seen::Sent(decision, mut bytes, How::Raised) => {
            bytes.truncate(frames_end);
            Seen::Sent(decision, bytes, How::Raised)
        }
        other => other,
    }
}

/// Streams of few bytes whose ends are all different.
fn small() -> Vec<(&'static str, Vec<u8>)> {
    let role = "data:{\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n";
    let text = "data:{\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n";
    let stop = "data:{\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
    let fail = "data:{\"choices\":[{\"finish_reason\":\"error\"}]}\n\n";
    let error = "data:{\"error\":{\"code\":429}}\n\n";
    let flat = "event:error\ndata:{\"message\":\"b\"}\n\n";
    let join = |frames: &[&str]| frames.concat().into_bytes();
    let crlf = |frames: &[&str]| frames.concat().replace('\n', "\r\n").into_bytes();
    let cr = |frames: &[&str]| frames.concat().replace('\n', "\r").into_bytes();
    vec![
        ("healthy", join(&[role, text, stop, DONE])),
        ("healthy, CRLF", crlf(&[role, text, stop, DONE])),
        ("healthy, CR", cr(&[role, text, stop, DONE])),
        ("BOM and comment", join(&["\u{feff}: x\n\n", text, DONE])),
        ("empty answer", join(&[role, stop])),
        ("error", join(&[role, error, DONE])),
        ("error, CRLF", crlf(&[role, error])),
        ("error without its blank line", join(&[role, error.trim_end()])),
        ("flat error", join(&[role, flat])),
        ("nothing", join(&[": x\n\n", role, DONE])),
        ("broken", join(&["data:{\"a\":\n\n"])),
        ("fails after commit", join(&[text, fail, DONE])),
        ("flat error after commit", join(&[text, flat, DONE])),
        ("truncated", join(&[text, role])),
        ("multi-line data", join(&["data:{\"choices\":[{\"delta\":\ndata:{\"content\":\"a\"}}]}\n\n", stop])),
        ("JSON error", join(&["\n {\"error\":{\"code\":503}}"])),
        ("JSON answer", join(&["{\"choices\":[{}]}"])),
        ("page", join(&["\n<html>"])),
        ("page after a BOM", join(&["\u{feff}<html>"])),
    ]
}

#[test]
fn br_102_every_cut_in_two_and_three_gives_the_same_verdict_and_bytes() {
    for (what, bytes) in small() {
        for gate in [stream_gate, complete_gate] {
            for tail in [Tail::Clean, Tail::Broken] {
                let expected = attempt(gate(), &[&bytes], tail);
                for first in 0..=bytes.len() {
                    // In three where the end is clean, in two where it is not.
                    for second in if tail == Tail::Clean { first..=bytes.len() } else { first..=first } {
                        let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                        let seen = attempt(gate(), &cut, tail);
                        assert_same(
                            &seen,
                            &expected,
                            &format!("{what}, {tail:?}, cut at {first} and {second}"),
                        );
                    }
                }
                let single: Vec<&[u8]> = bytes.chunks(1).collect();
                assert_same(
                    &attempt(gate(), &single, tail),
                    &expected,
                    &format!("{what}, {tail:?}, byte by byte"),
                );
            }
        }
    }
}

/// An answer that is replaced ends with its failing frame; whether the LF of its last CRLF came with the same read
/// makes no difference to anyone.
pub(super) fn assert_same(seen: &Seen, expected: &Seen, what: &str) {
    match (seen, expected) {
        (Seen::Sent(a, left, How::Cut), Seen::Sent(b, right, How::Cut)) => {
            let trim = |bytes: &[u8]| {
                bytes.strip_suffix(b"\r\n").map(|start| [start, b"\r"].concat()).unwrap_or(bytes.to_vec())
            };
            assert_eq!((a, trim(left)), (b, trim(right)), "{what}");
        }
        _ => assert_eq!(seen, expected, "{what}"),
    }
}

#[test]
fn after_an_error_that_raises_only_what_came_with_it_may_follow() {
    let bytes = [TEXT, ERROR, DONE].concat().into_bytes();
    let end = TEXT.len() + ERROR.len();
    let expected = Seen::Sent(Decision::Content, bytes[..end].to_vec(), How::Raised);
    for cut in 0..=bytes.len() {
        let seen = attempt(stream_gate(), &[&bytes[..cut], &bytes[cut..]], Tail::Clean);
        assert_eq!(comparable(seen, end), expected, "cut at {cut}");
    }
}

fn frame() -> impl Strategy<Value = String> {
    let content = prop_oneof![
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        (1usize..40_000).prop_map(|length| format!("\"{}\"", "y".repeat(length))),
    ];
    prop_oneof![
        8 => Just(ROLE.to_owned()),
        2 => Just(USAGE.to_owned()),
        2 => Just(": keep-alive\n\n".to_owned()),
        1 => Just("retry: 3\n\n".to_owned()),
        1 => (10_000usize..80_000).prop_map(|length| format!(": {}\n\n", "c".repeat(length))),
        3 => content.prop_map(|text| TEXT.replace("\"Hi\"", &text)),
        1 => Just(STOP.to_owned()),
        1 => Just(FAIL.to_owned()),
        1 => Just(DONE.to_owned()),
        1 => Just("data: {\"error\":{\"code\":429}}\n\n".to_owned()),
        1 => (60_000usize..70_000).prop_map(|length| format!("data: {{\"error\":\"{}\"}}\n\n", "e".repeat(length))),
        1 => Just("data: {\"broken\n\n".to_owned()),
        1 => Just(TEXT.trim_end().to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn verdict_bytes_and_end_do_not_depend_on_the_reads(
        frames in proptest::collection::vec(frame(), 0..90),
        newline in prop_oneof![Just("\n"), Just("\r\n")],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        is_complete: bool,
        is_broken: bool,
    ) {
        let bytes = frames.concat().replace('\n', newline).into_bytes();
        let gate = if is_complete { complete_gate } else { stream_gate };
        let tail = if is_broken { Tail::Broken } else { Tail::Clean };
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        let one = attempt(gate(), &[&bytes], tail);
        let many = attempt(gate(), &chunks, tail);
        match (&many, &one) {
            // Where it raised, the last read is forwarded whole: the shorter one is a part of the other.
            (Seen::Sent(a, short, How::Raised), Seen::Sent(b, long, How::Raised)) => {
                prop_assert_eq!(a, b);
                prop_assert!(long.starts_with(short));
            }
            _ => assert_same(&many, &one, "cut"),
        }
        if let Seen::Sent(_, sent, _) = &many {
            prop_assert!(bytes.starts_with(sent), "bytes out are bytes in");
        }
    }

    #[test]
    fn a_whole_answer_is_judged_the_same_however_it_comes(
        body in prop_oneof![
            Just(WHOLE.to_owned()),
            Just(format!("\n\n {WHOLE}\n")),
            Just("{\"error\":{\"code\":429}}".to_owned()),
            (0..WHOLE.len()).prop_map(|end| WHOLE[..end].to_owned()),
            ".{0,40}",
        ],
        size in 1usize..50,
        content_type in prop_oneof![Just("application/json"), Just("text/event-stream"), Just("")],
        asked_stream: bool,
    ) {
        let gate = || Gate::new(&RULES, asked_stream, Some(content_type), Until::Content);
        let chunks: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
        prop_assert_eq!(attempt(gate(), &chunks, Tail::Clean), attempt(gate(), &[body.as_bytes()], Tail::Clean));
    }
}
