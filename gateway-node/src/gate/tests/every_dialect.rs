//! Faults reported against other gateways, in each dialect: what the gate and the tap of all of them have in common.

use common::dialect::Dialect;

use super::*;
use crate::dialect::operation::{OPERATIONS, Operation};
use crate::fuzz::drive;
use crate::tests::speaks::ALL;

fn gate(operation: &Operation, asked_stream: bool, until: Until) -> Gate {
    drive::gate(operation, asked_stream, false, None, until)
}

#[test]
fn br_011_nothing_at_all_is_empty_in_every_operation_and_on_every_path() {
    for operation in OPERATIONS {
        for asked_stream in [true, false] {
            for until in [Until::Content, Until::Complete] {
                // Blanks may be sound.
                let blanks = ["\n\n", "\u{feff}", " \r\n"].into_iter();
                let blanks = blanks.filter(|_| operation.dialect != Dialect::OpenaiAudio);
                for body in blanks.chain([""]) {
                    let seen = attempt(gate(operation, asked_stream, until), &[body.as_bytes()], Tail::Clean);
                    assert_eq!(dropped(&seen), Some(F::Empty), "{}, {body:?}", operation.dialect);
                }
            }
        }
    }
}

#[test]
fn br_014_what_comes_behind_an_error_changes_nothing() {
    for speaks in &ALL {
        let stream = [speaks.preamble, speaks.failed, speaks.content, speaks.end, DONE].concat();
        for until in [Until::Content, Until::Complete] {
            let gate = gate(speaks.operation(true), true, until);
            let seen = attempt(gate, &[stream.as_bytes()], Tail::Clean);
            assert_eq!(dropped(&seen), Some(F::UpstreamError), "{}", speaks.dialect);
        }
    }
}

#[test]
fn br_006_br_022_the_class_comes_from_the_code_and_a_vendors_own_number_is_no_status() {
    for speaks in &ALL {
        for (error, class) in [
            (r#"{"message":"AppIdNoAuthError","code":11200}"#, F::UpstreamError),
            (r#"{"message":"{\"error\":{\"code\":401}}","code":429}"#, F::RateLimited),
        ] {
            let event = format!("event: error\ndata: {{\"type\":\"error\",\"error\":{error}}}\n\n");
            let gate = gate(speaks.operation(true), true, Until::Content);
            let seen = attempt(gate, &[speaks.preamble.as_bytes(), event.as_bytes()], Tail::Clean);
            assert_eq!(dropped(&seen), Some(class), "{}: {error}", speaks.dialect);
        }
    }
}

/// Healthy streams, each in a form that is rarely met.
fn odd_streams() -> Vec<(&'static str, &'static Operation, Vec<u8>)> {
    let mut streams = Vec::new();
    for speaks in &ALL {
        let stream = speaks.stream("世界é😀 \\ud83d\\ude00");
        let tight = stream.replace("data: ", "data:").replace("event: ", "event:");
        let bytes = |text: String| text.into_bytes();
        let bad_utf8 = [
            speaks.preamble.as_bytes(),
            &speaks
                .content
                .replace("SAID", "\u{1}")
                .into_bytes()
                .iter()
                .map(|b| if *b == 1 { 0xff } else { *b })
                .collect::<Vec<_>>(),
            speaks.end.as_bytes(),
        ]
        .concat();
        let half = speaks.stream("\\ud83d");
        for (what, bytes) in [
            ("as it is", bytes(stream.clone())),
            ("no space after the colon", bytes(tight)),
            ("CRLF", bytes(stream.replace("\r\n", "\n").replace('\n', "\r\n"))),
            ("CR", bytes(stream.replace("\r\n", "\n").replace('\n', "\r"))),
            ("a BOM", bytes("\u{feff}".to_owned() + &stream)),
            ("bad UTF-8", bad_utf8),
            ("half of an escaped pair", bytes(half)),
        ] {
            streams.push((what, speaks.operation(true), bytes));
        }
    }
    streams
}

#[test]
fn br_100_br_102_br_103_every_cut_of_every_healthy_stream_passes_byte_by_byte() {
    for (what, operation, bytes) in odd_streams() {
        let has_mark = bytes.ends_with(b"[DONE]\n\n") || operation.dialect.as_str() != "gemini";
        let how = if has_mark { How::Finished } else { How::Complete };
        let expected = Seen::Sent(Decision::Content, bytes.clone(), how);
        for cut in 0..=bytes.len() {
            let seen =
                attempt(gate(operation, true, Until::Content), &[&bytes[..cut], &bytes[cut..]], Tail::Clean);
            assert_eq!(seen, expected, "{}, {what}, cut at {cut}", operation.dialect);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(attempt(gate(operation, true, Until::Content), &single, Tail::Clean), expected, "{what}");
    }
}

#[test]
fn br_105_a_frame_of_200_kib_passes_before_and_after_commit() {
    for speaks in &ALL {
        let large = speaks.content.replace("SAID", &"x".repeat(200 * 1024));
        let small = speaks.content.replace("SAID", "x");
        for frames in [[speaks.preamble, &large, speaks.end], [&small, &large, speaks.end]] {
            let bytes = frames.concat().into_bytes();
            for size in [1000, 16 * 1024, bytes.len()] {
                let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                let seen = attempt(gate(speaks.operation(true), true, Until::Content), &chunks, Tail::Clean);
                let Seen::Sent(_, sent, How::Finished | How::Complete) = seen else {
                    panic!("{} in reads of {size}", speaks.dialect);
                };
                assert_eq!(sent, bytes);
            }
        }
    }
}
