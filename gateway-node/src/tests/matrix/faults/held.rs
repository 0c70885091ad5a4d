//! What comes under a 200 before anything reached the caller, beside the known twenty-six: errors in the dialect's own
//! words, answers with nothing in them, bodies that are something else; and what only looks like a fault.

use std::io::Write as _;

use common::class::FailureClass as F;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::super::support::{Act, chunk, end, s};
use super::super::forms::{Answer, Form, Style, answers, head};
use super::super::says::{Says, Speech, Words};
use super::{Ends, Failed, Fault, Phase, Play, Tail, fault};

/// What must not be taken for a fault.
pub fn lawful() -> Vec<Fault> {
    vec![
        fault(Phase::None, "nothing", "a lawful answer without content", |form, who| {
            let stream = form.stream().filter(|stream| !stream.nothing.is_empty())?;
            let said = [stream.preamble, stream.nothing].map(|piece| piece.replace("WHO", who));
            Some(Play::new(form.says(&said), Ends::served(said.concat(), form.media())))
        }),
        fault(Phase::None, "other-media", "a good answer as `text/plain`", |form, who| {
            // Of sound the type alone says that it is some.
            let good = (!form.is_sound()).then(|| form.good(who))?;
            Some(Play::new(answers(200, "text/plain", "", &good), Ends::served(good, "text/plain")))
        }),
        fault(Phase::None, "no-media", "a good answer without a media type", |form, who| {
            let good = form.good(who);
            Some(Play::new(answers(200, "", "", &good), Ends::served(good, "")))
        }),
        fault(Phase::None, "blank-first", "a good answer behind blank lines", |form, who| {
            let good = ["\n\n", &form.good(who)].concat();
            Some(Play::new(answers(200, form.media(), "", &good), Ends::served(good, form.media())))
        }),
        fault(Phase::None, "gzip", "a good answer that is gzip, unasked", |form, who| {
            let (good, mut gzip) = (form.good(who), GzEncoder::new(Vec::new(), Compression::fast()));
            gzip.write_all(good.as_bytes()).ok()?;
            let body = gzip.finish().ok()?;
            let head = head(
                200,
                form.media(),
                &format!("content-encoding: gzip\r\ncontent-length: {}\r\n", body.len()),
            );
            Some(Play::new(vec![head, Act::Send(body)], Ends::served(good, form.media())))
        }),
        fault(Phase::None, "silence", "31 s of silence behind the response headers", |form, who| {
            let script = [form.begins(&[]), vec![Act::Wait(s(31))], rest(form, who)].concat();
            Some(late(form, who, "", script))
        }),
        fault(Phase::None, "comments", "31 s of comments, then the answer", |form, who| {
            let stream = form.stream().filter(|stream| stream.style != Style::Array)?;
            let preamble = stream.preamble.replace("WHO", who);
            let waits: Vec<_> = (0..31).flat_map(|_| [Act::Wait(s(1)), chunk(": wait\n\n")]).collect();
            let rest = form.pieces(who)[1..].iter().map(|piece| chunk(piece)).chain([end()]).collect();
            let comments = ": wait\n\n".repeat(31);
            let before = [preamble.as_str(), comments.as_str()].concat();
            let script = [form.begins(std::slice::from_ref(&preamble)), waits, rest].concat();
            let after = [before, form.pieces(who)[1..].concat()].concat();
            let (media, took) = (form.media(), s(31));
            Some(Play::new(script, Ends::Served { bytes: after, media, after: s(30), took }))
        }),
        fault(
            Phase::None,
            "behind-last",
            "the connection closed right behind the last frame",
            |form, who| {
                form.stream()
                    .filter(|stream| stream.style != Style::Google && stream.style != Style::Array)?;
                let script = [form.begins(&form.pieces(who)), vec![Act::Close]].concat();
                // Images have a frame that may be the last, and the end of the body that says so.
                (form.dialect != "openai-images")
                    .then(|| Play::new(script, Ends::served(form.good(who), form.media())))
            },
        ),
    ]
}

fn rest(form: &Form, who: &str) -> Vec<Act> {
    form.pieces(who).iter().map(|piece| chunk(piece)).chain([end()]).collect()
}

/// A stream is committed undecided after 30 s; a whole answer is waited for.
fn late(form: &Form, who: &str, before: &str, script: Vec<Act>) -> Play {
    let is_timed = form.stream().is_some_and(|stream| stream.style != Style::Array);
    let (after, took) = (if is_timed { s(30) } else { s(31) }, s(31));
    let bytes = [before, &form.good(who)].concat();
    Play::new(script, Ends::Served { bytes, media: form.media(), after, took })
}

/// Errors in the dialect's own words: as the first event, behind the preamble, and as the whole body.
fn said() -> Vec<Fault> {
    let mut faults = Vec::new();
    for (says, id, what) in Says::ALL {
        for (place, is_first) in [("first", true), ("behind", false)] {
            let what = format!("{what}, in the first event or behind the preamble");
            faults.push(fault(Phase::Held, &format!("{place}-{id}"), &what, move |form, who| {
                let stream = form.stream()?;
                let words = says.words(form.speech)?;
                let preamble = if is_first { "" } else { stream.preamble };
                let said = [preamble.replace("WHO", who), frame(stream.style, form.speech, &words, is_first)];
                let said: Vec<_> = said.into_iter().filter(|piece| !piece.is_empty()).collect();
                Some(Play::failing(form.says(&said), failed(says, words)))
            }));
        }
        let what = format!("{what}, as JSON under a 200");
        faults.push(fault(Phase::Held, &format!("json-{id}"), &what, move |form, _| {
            let words = says.words(form.speech)?;
            let script = answers(200, "application/json", "", &words.document(form.speech));
            Some(Play::failing(script, failed(says, words)))
        }));
    }
    faults
}

fn failed(says: Says, words: Words) -> Failed {
    Failed { words, ..Failed::of(says.class()) }
}

/// An error as an event of a stream; the last one of it.
pub fn frame(style: Style, speech: Speech, words: &Words, is_first: bool) -> String {
    let member = words.member(speech);
    match style {
        Style::Chunks | Style::Typed => format!("data: {}\n\n", words.document(speech)),
        Style::Named => {
            format!("event: error\ndata: {{\"type\":\"error\",\"sequence_number\":1,\"error\":{member}}}\n\n")
        }
        Style::Messages => format!("event: error\ndata: {{\"type\":\"error\",\"error\":{member}}}\n\n"),
        Style::Google => format!("data: {}\r\n\r\n", words.document(speech)),
        Style::Array => {
            format!("{}{}\r\n]\r\n", if is_first { "[" } else { ",\r\n" }, words.document(speech))
        }
    }
}

pub fn faults() -> Vec<Fault> {
    let body = |id: &str, what: &str, is_for: fn(&Form) -> bool, body: &'static str, class| {
        fault(Phase::Held, id, what, move |form, _| {
            is_for(form).then(|| Play::failing(answers(200, form.media(), "", body), Failed::of(class)))
        })
    };
    let is_whole = |form: &Form| form.stream().is_none() && !form.is_sound();
    let mut faults = said();
    faults.extend([
        fault(Phase::Held, "204", "a 204", |form, _| {
            let script = vec![head(204, "", "")];
            (!form.may_be_empty()).then(|| Play::failing(script, Failed::of(F::Empty)))
        }),
        body("object", "a JSON object with nothing in it", |form| !form.is_sound(), "{}", F::Empty),
        body("text", "a text that is no JSON", is_whole, "upstream says hello", F::Malformed),
        body(
            "stream",
            "a stream where none was asked for",
            is_whole,
            "data: {\"id\":\"x\"}\n\n",
            F::Malformed,
        ),
        fault(Phase::Held, "encoded", "`content-encoding: br` on a plain body", |form, who| {
            let script = answers(200, form.media(), "content-encoding: br\r\n", &form.good(who));
            Some(Play::failing(script, Failed::of(F::Malformed)))
        }),
        fault(Phase::Held, "half", "half a document, ended as it should", |form, who| {
            // Of sound no half can be told.
            if form.is_sound() {
                return None;
            }
            whole(form, who, "", |half| [chunk(half), end()].into(), F::Malformed)
        }),
        fault(Phase::Held, "cut-length", "cut before the announced length", |form, who| {
            whole(
                form,
                who,
                "content-length: 9999\r\n",
                |half| [Act::Send(half.into()), Act::Close].into(),
                F::UpstreamError,
            )
        }),
        fault(Phase::Held, "cut-chunked", "cut before the last chunk", |form, who| {
            whole(form, who, "", |half| [chunk(half), Act::Close].into(), F::UpstreamError)
        }),
        fault(Phase::Held, "stalled", "half a document, and then nothing for 300 s", |form, who| {
            let play = whole(form, who, "", |half| [chunk(half), Act::Hang].into(), F::UpstreamError)?;
            Some(Play { ends: Ends::Failed(Failed::after(F::UpstreamError, s(300))), ..play })
        }),
        fault(Phase::Committed, "silent", "response headers, and never a byte", |form, _| {
            let stream = form.stream().filter(|stream| stream.style != Style::Array)?;
            let tail = if stream.style == Style::Array { Tail::Abort } else { Tail::Frame };
            let script = [form.begins(&[]), vec![Act::Hang]].concat();
            // Held to its end a stream is not committed undecided, so that nothing begins anew at 30 s.
            let took = if form.is_held { s(300) } else { s(330) };
            Some(Play::new(script, Ends::Broken { bytes: String::new(), after: s(30), took, tail }))
        }),
        fault(Phase::Committed, "late-error", "an error behind 31 s of preamble", |form, who| {
            let stream = form.stream()?;
            let preamble = stream.preamble.replace("WHO", who);
            let error = frame(stream.style, form.speech, &Says::Failed.words(form.speech)?, false);
            let script =
                [form.begins(std::slice::from_ref(&preamble)), vec![Act::Wait(s(31)), chunk(&error), end()]];
            let (bytes, after, took) = ([preamble, error].concat(), s(30), s(31));
            Some(Play::new(script.concat(), Ends::Broken { bytes, after, took, tail: Tail::Theirs }))
        }),
    ]);
    faults
}

/// A whole answer that comes to half of it.
fn whole(form: &Form, who: &str, length: &str, acts: fn(&str) -> Vec<Act>, class: F) -> Option<Play> {
    let (Answer::Whole(body) | Answer::Sound(body)) = form.answer else { return None };
    let framing = if length.is_empty() { "transfer-encoding: chunked\r\n" } else { length };
    let half: String = body.replace("WHO", who).chars().take(12).collect();
    let script = [vec![head(200, form.media(), framing)], acts(&half)].concat();
    Some(Play::failing(script, Failed::of(class)))
}
