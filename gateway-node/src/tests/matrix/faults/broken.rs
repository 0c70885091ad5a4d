//! What goes wrong behind what the caller already has.

use common::class::FailureClass as F;

use super::super::super::support::{Act, chunk, end, s};
use super::super::forms::{Form, Stream, Style, head};
use super::super::says::Says;
use super::held::frame;
use super::known::broken;
use super::{Ends, Failed, Fault, Phase, Play, Tail, fault};

/// Bytes that a whole answer has when it is committed undecided: more than 4 MiB.
const LARGE: usize = 5 * 1024 * 1024;

fn streams(
    id: &str,
    what: &str,
    play: impl Fn(&Form, &Stream, &str) -> Option<Play> + Send + Sync + 'static,
) -> Fault {
    fault(Phase::Committed, id, what, move |form, who| play(form, form.stream()?, who))
}

/// The same, and these bytes more reach the caller in front of what tells it.
fn with(play: Play, more: &str, told: Tail) -> Play {
    let Ends::Broken { bytes, after, took, .. } = play.ends else { return play };
    Play { ends: Ends::Broken { bytes: bytes + more, after, took, tail: told }, ..play }
}

fn taking(play: Play, time: u64) -> Play {
    let Ends::Broken { bytes, after, tail, .. } = play.ends else { return play };
    Play { ends: Ends::Broken { bytes, after, took: s(time), tail }, ..play }
}

pub fn faults() -> Vec<Fault> {
    vec![
        streams("cut-inside", "cut inside an event behind content", |form, stream, who| {
            let (half, tail) = match stream.style {
                Style::Array => (",\r\n{\"candi", Tail::Abort),
                Style::Chunks | Style::Typed | Style::Google => ("data: {\"half\":", Tail::FrameBehindHalf),
                Style::Named | Style::Messages => ("event: half\ndata: {\"half\":", Tail::FrameBehindHalf),
            };
            Some(with(broken(form, stream, who, vec![chunk(half), Act::Close]), half, tail))
        }),
        streams("stall", "silence for 300 s behind content", |form, stream, who| {
            Some(taking(broken(form, stream, who, vec![Act::Hang]), 300))
        }),
        streams("stall-comments", "nothing but comments for 300 s behind content", |form, stream, who| {
            let comments = (0..60).flat_map(|_| [Act::Wait(s(7)), chunk(": wait\n\n")]).collect();
            let play = (stream.style != Style::Array).then(|| broken(form, stream, who, comments))?;
            Some(taking(with(play, &": wait\n\n".repeat(42), Tail::Frame), 300))
        }),
        streams("half-finish", "a reason to stop, and no last frame", |form, stream, who| {
            let finish = stream.finish.replace("WHO", who);
            let play = (stream.needs_last && !finish.is_empty())
                .then(|| broken(form, stream, who, vec![chunk(&finish), end()]))?;
            Some(with(play, &finish, Tail::Frame))
        }),
        streams("open-array", "an array with its finish, and not closed", |form, stream, who| {
            let finish = stream.last.replace("WHO", who).replace("]\r\n", "");
            let finish = finish + if stream.last.ends_with("]\r\n") { "" } else { return None };
            let play = broken(form, stream, who, vec![chunk(&finish), end()]);
            (stream.style == Style::Array).then(|| with(play, &finish, Tail::Abort))
        }),
        streams("error", "an error event that the SDKs raise, behind content", |form, stream, who| {
            let words = Says::Failed.words(form.speech)?;
            let mut error = frame(stream.style, form.speech, &words, false);
            if stream.style == Style::Chunks {
                error += stream.last;
            }
            let play = broken(form, stream, who, vec![chunk(&error), end()]);
            Some(with(play, &error, Tail::Theirs))
        }),
        streams("quiet-finish", "`finish_reason: \"error\"` behind content", |form, stream, who| {
            let quiet = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n";
            let play = (stream.style == Style::Chunks)
                .then(|| broken(form, stream, who, vec![chunk(&[quiet, stream.last].concat()), end()]))?;
            Some(with(play, quiet, Tail::Frame))
        }),
        streams("quiet-failed", "`response.failed` behind content", |form, stream, who| {
            let quiet = "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"b\"}}}\n\n";
            let play = (form.dialect == "openai-responses")
                .then(|| broken(form, stream, who, vec![chunk(quiet), end()]))?;
            Some(with(play, quiet, Tail::Frame))
        }),
        streams(
            "quiet-error",
            "an error event that the SDKs pass over, behind content",
            |form, stream, who| {
                let quiet = match stream.style {
                    Style::Chunks | Style::Typed => {
                        "event: error\ndata: {\"message\":\"boom\",\"type\":\"server_error\",\"code\":500}\n\n"
                    }
                    Style::Named => {
                        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"code\":\"server_error\",\"message\":\"boom\",\"param\":null}\n\n"
                    }
                    Style::Messages => {
                        "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n"
                    }
                    Style::Google => "data: {\"error\":{\"message\":\"boom\"}}\r\n\r\n",
                    Style::Array => return None,
                };
                Some(with(broken(form, stream, who, vec![chunk(quiet), end()]), quiet, Tail::Frame))
            },
        ),
        streams(
            "foreign-done",
            "`[DONE]` of another dialect in place of the last frame",
            |form, stream, who| {
                let play = matches!(stream.style, Style::Named | Style::Typed)
                    .then(|| broken(form, stream, who, vec![chunk("data: [DONE]\n\n"), end()]))?;
                // As the word of an upstream it says that there was nothing.
                Some(if form.is_held {
                    Play { ends: Ends::Failed(Failed::of(F::Empty)), ..play }
                } else {
                    play
                })
            },
        ),
        large("large-length", "cut behind 4 MiB, before the announced length"),
        large("large-chunked", "cut behind 4 MiB, before the last chunk"),
    ]
}

fn large(id: &'static str, what: &str) -> Fault {
    fault(Phase::Committed, id, what, move |form, _| {
        if form.stream().is_some() {
            return None;
        }
        let bytes = ["{\"text\":\"", "x".repeat(LARGE).as_str()].concat();
        let (framing, body) = if id == "large-length" {
            (format!("content-length: {}\r\n", 2 * LARGE), Act::Send(bytes.clone().into_bytes()))
        } else {
            ("transfer-encoding: chunked\r\n".to_owned(), chunk(&bytes))
        };
        let script = vec![head(200, form.media(), &framing), body, Act::Close];
        let (after, took) = Default::default();
        Some(Play::new(script, Ends::Broken { bytes, after, took, tail: Tail::Abort }))
    })
}
