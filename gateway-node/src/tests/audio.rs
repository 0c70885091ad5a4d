//! Speech and transcripts, through the whole path: sound, documents, words, and streams of both.

use bytes::Bytes;
use common::limits::{GATE_WHOLE_BYTES_MAX, REQUEST_BYTES_MAX};
use http::Request;
use http_body_util::Full;

use super::support::*;

fn node(channels: usize) -> Node {
    Node::speaking("openai-audio", channels)
}

fn say(rest: &str) -> Request<Full<Bytes>> {
    post_json("/v1/audio/speech", &format!(r#"{{"model":"m", "input":"a sluice","voice":"alloy"{rest}}}"#))
}

fn write_down(fields: &str) -> Request<Full<Bytes>> {
    post_form("/v1/audio/transcriptions", &transcription("m", fields))
}

fn transcription(model: &str, fields: &str) -> String {
    [fields, &file("file", "ID3\u{4}\r\n\r\n--A\0"), &field("model", model), CLOSED].concat()
}

/// Every byte, and what could be taken for the end of something.
fn sound(size: usize) -> Vec<u8> {
    b"ID3\x04\r\n\r\n0\r\n\r\ndata: [DONE]\n\n".iter().copied().chain((0..=255).cycle()).take(size).collect()
}

fn typed(content_type: &str, body: &[u8]) -> Script {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![Act::Send([head.as_bytes(), body].concat())]
}

fn chunked(content_type: &str, pieces: &[&[u8]], last: Act) -> Script {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut script = vec![Act::Send(head.into_bytes())];
    for piece in pieces {
        let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        script.push(Act::Send(framed));
    }
    script.push(last);
    script
}

#[tokio::test(start_paused = true)]
async fn sound_comes_down_byte_for_byte_with_its_type_whatever_its_size() {
    for size in [1, 1000, 300_000, GATE_WHOLE_BYTES_MAX, GATE_WHOLE_BYTES_MAX + 70_000] {
        let sound = sound(size);
        let node = node(1);
        let pieces: Vec<&[u8]> = sound.chunks(50_000).collect();
        node.up("a").does([typed("audio/mpeg", &sound), chunked("audio/mpeg", &pieces, end())]);
        for _ in 0..2 {
            let answered = node.send(say("")).await;
            assert_eq!(
                (answered.status.as_u16(), answered.header("content-type")),
                (200, Some("audio/mpeg"))
            );
            assert!(answered.bytes().await == (sound.clone(), true), "{size}");
        }
        let call = &node.up("a").calls()[0];
        assert!(call.head.starts_with("post /v1/audio/speech http/1.1"), "{}", call.head);
        assert_eq!(call.body, r#"{"model":"m-at-a", "input":"a sluice","voice":"alloy"}"#);
        assert_eq!(node.counted().1, [("served".into(), 2)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_sound_moves_on() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 999\r\n\r\nID3";
    for (what, script, class) in [
        ("refused", failing(503), "overloaded"),
        ("throttled", failing(429), "rate_limited"),
        ("a page", typed("text/html", b"<html>"), "malformed"),
        ("a page that is said to be sound", typed("audio/mpeg", b"<!doctype html>"), "malformed"),
        ("words", typed("text/plain", b"no healthy upstream"), "malformed"),
        ("nothing", typed("audio/mpeg", b""), "empty"),
        ("an error", typed("application/json", br#"{"error":{"message":"b","code":503}}"#), "overloaded"),
        (
            "an error that is said to be sound",
            typed("audio/mpeg", br#"{"error":"too many requests"}"#),
            "rate_limited",
        ),
        ("a document", typed("application/json", br#"{"audio":"SUQz"}"#), "malformed"),
        ("events", typed("text/event-stream", b"data: {\"type\":\"speech.audio.delta\"}\n\n"), "malformed"),
        ("a cut body", vec![Act::Send(half.to_vec()), Act::Close], "upstream_error"),
        ("a cut body without a length", chunked("audio/mpeg", &[b"ID3"], Act::Close), "upstream_error"),
    ] {
        let node = node(2);
        node.up("a").does([script]);
        node.up("b").does([typed("audio/mpeg", b"ID3 of b")]);
        let answered = node.send(say("")).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}");
        assert_eq!(answered.bytes().await, (b"ID3 of b".to_vec(), true), "{what}");
        let (attempts, requests) = node.counted();
        assert_eq!(attempts.get(&format!("a {class}")), Some(&1), "{what}: {attempts:?}");
        assert_eq!(requests, [("served".into(), 1)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn sound_that_is_cut_after_commit_never_ends_as_if_it_were_whole() {
    let sound = sound(GATE_WHOLE_BYTES_MAX + 70_000);
    let pieces: Vec<&[u8]> = sound.chunks(50_000).collect();
    let long =
        format!("HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: {}\r\n\r\n", sound.len() + 1);
    for (script, length) in [
        (chunked("audio/wav", &pieces, Act::Close), None),
        (
            vec![Act::Send(long.into_bytes()), Act::Send(sound.clone()), Act::Close],
            Some((sound.len() + 1).to_string()),
        ),
    ] {
        let node = node(2);
        node.up("a").does([script]);
        let answered = node.send(say("")).await;
        assert_eq!(answered.header("content-length"), length.as_deref());
        let (bytes, is_whole) = answered.bytes().await;
        assert!(!is_whole && sound.starts_with(&bytes), "{is_whole} {}", bytes.len());
        assert_eq!(node.called(), [1, 0, 0]);
        assert_eq!(node.counted().1, [("cut".into(), 1)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_comes_down_as_it_is_also_where_nothing_was_said() {
    for path in ["/v1/audio/transcriptions", "/v1/audio/translations"] {
        for (format, content_type, body) in [
            (
                "json",
                "application/json",
                "{\"text\": \"grüß dich\" , \"usage\":{\"type\":\"duration\",\"seconds\":1}}\n",
            ),
            ("json", "application/json", r#"{"text":""}"#),
            (
                "verbose_json",
                "application/json",
                r#"{"task":"transcribe","language":"en","duration":1.0,"text":"","segments":[]}"#,
            ),
            (
                "diarized_json",
                "application/json",
                r#"{"task":"transcribe","duration":1.0,"text":"a","segments":[{"id":"s"}]}"#,
            ),
            ("text", "text/plain; charset=utf-8", "grüß dich\n"),
            ("text", "text/plain; charset=utf-8", "\n"),
            ("srt", "text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:00:01,000\na\n\n"),
            ("srt", "application/x-subrip", ""),
            ("vtt", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\na\n"),
        ] {
            let node = node(2);
            node.up("a").does([typed(content_type, body.as_bytes())]);
            let form = |model: &str| transcription(model, &field("response_format", format));
            let answered = node.send(post_form(path, &form("m"))).await;
            assert_eq!(answered.header("content-type"), Some(content_type));
            assert_eq!(answered.header("x-sluice-channel"), Some("a"), "{format} {body}");
            assert_eq!(answered.text().await.0, body, "{format}");
            let call = &node.up("a").calls()[0];
            assert!(call.head.starts_with(&format!("post {path} http/1.1")), "{}", call.head);
            assert_eq!(call.body, form("m-at-a"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_transcript_moves_on() {
    let good = r#"{"text":"of b"}"#;
    for (format, script, class) in [
        ("json", failing(500), "upstream_error"),
        ("json", typed("text/html", b"<html>"), "malformed"),
        ("json", typed("application/json", b""), "empty"),
        ("json", typed("application/json", b"{}"), "empty"),
        ("json", typed("application/json", br#"{"text":"half"#), "malformed"),
        ("json", typed("text/plain", b"no healthy upstream"), "malformed"),
        ("json", typed("application/json", br#"{"error":{"message":"b","code":503}}"#), "overloaded"),
        ("text", typed("text/html", b"<!DOCTYPE html><html>"), "malformed"),
        ("text", typed("application/json", br#"{"error":{"message":"b","code":503}}"#), "overloaded"),
        ("vtt", typed("text/plain", br#"{"error":{"message":"b","code":429}}"#), "rate_limited"),
        ("srt", vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())], "empty"),
        ("text", typed("audio/mpeg", b"ID3"), "malformed"),
        ("srt", chunked("text/plain", &[b"1\n"], Act::Close), "upstream_error"),
    ] {
        let node = node(2);
        let what = format!(
            "{format} {}",
            match &script[0] {
                Act::Send(bytes) => String::from_utf8_lossy(bytes),
                _ => "".into(),
            }
        );
        node.up("a").does([script]);
        let is_json = format == "json";
        node.up("b").does([if is_json { answer(200, "", good) } else { typed("text/plain", b"of b") }]);
        let answered = node.send(write_down(&field("response_format", format))).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}");
        assert_eq!(answered.text().await.0, if is_json { good } else { "of b" }, "{what}");
        let (attempts, _) = node.counted();
        assert_eq!(attempts.get(&format!("a {class}")), Some(&1), "{what}: {attempts:?}");
    }
}

fn data(event: &str) -> String {
    format!("data: {event}\n\n")
}

fn heard(text: &str) -> String {
    data(&format!(r#"{{"type":"transcript.text.delta","delta":"{text}"}}"#))
}

fn heard_all(text: &str) -> String {
    data(&format!(
        r#"{{"type":"transcript.text.done","text":"{text}","usage":{{"type":"tokens","input_tokens":1,"output_tokens":1,"total_tokens":2}}}}"#
    ))
}

fn streamed(frames: &[&str], last: Act) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![last]].concat()
}

#[tokio::test(start_paused = true)]
async fn a_streamed_transcript_ends_with_its_last_event_however_long_and_in_every_servers_way() {
    let segment =
        data(r#"{"type":"transcript.text.segment","id":"s","start":0.0,"end":1.0,"speaker":"A","text":"a"}"#);
    let piece = |delta: &str, finish: &str| {
        data(&format!(
            r#"{{"object":"transcription.chunk","choices":[{{"delta":{delta},"finish_reason":{finish}}}]}}"#
        ))
    };
    let long = "a".repeat(200_000);
    for frames in [
        vec![heard("a"), heard("b"), heard_all("ab")],
        vec![heard_all("")],
        vec![segment, heard_all("a")],
        vec![heard("a"), heard_all(&long)],
        vec![heard("a"), heard_all("a"), DONE.to_owned()],
        vec![piece(r#"{"content":" a"}"#, "null"), piece(r#"{"content":""}"#, "\"stop\""), DONE.to_owned()],
    ] {
        for gate in ["content", "complete"] {
            let node = node(1);
            let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
            node.up("a").does([streamed(&frames, end())]);
            let mut request = write_down(&field("stream", "true"));
            request.headers_mut().insert("x-sluice-gate", gate.parse().unwrap());
            let answered = node.send(request).await;
            assert_eq!(answered.text().await.0, frames.concat());
            assert_eq!(node.counted().1, [("served".into(), 1)].into(), "{gate} {:.100}", frames[0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_transcript_moves_on_before_its_first_words_and_raises_after_them() {
    let good = [heard("of b"), heard_all("of b")].concat();
    for (script, class) in [
        (streamed(&[&data(r#"{"error":{"message":"b","code":429}}"#), DONE], end()), "rate_limited"),
        (
            streamed(
                &[": wait\n\n", &heard(""), &data(r#"{"error":{"message":"b","type":"server_error"}}"#)],
                end(),
            ),
            "upstream_error",
        ),
        (streamed(&[&heard(""), DONE], end()), "empty"),
        (streamed(&[], end()), "empty"),
        (streamed(&[&heard("")], Act::Close), "upstream_error"),
        (typed("application/json", br#"{"error":{"message":"b","code":503}}"#), "overloaded"),
        (typed("text/html", b"<html>"), "malformed"),
    ] {
        let node = node(2);
        node.up("a").does([script]);
        node.up("b").does([streamed(&[&good], end())]);
        let answered = node.send(write_down(&field("stream", "true"))).await;
        assert_eq!(answered.text().await.0, good);
        assert_eq!(node.counted().0.get(&format!("a {class}")), Some(&1), "{class}");
    }
    for (what, frames, last) in [
        ("cut", vec![heard("a")], Act::Close),
        ("no last event", vec![heard("a")], end()),
        ("stalled", vec![heard("a")], Act::Hang),
        ("done without the last event", vec![heard("a"), DONE.to_owned()], end()),
    ] {
        let node = node(2);
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        node.up("a").does([streamed(&frames, last)]);
        let (text, _) = node.send(write_down(&field("stream", "true"))).await.text().await;
        let rest = text.strip_prefix(&heard("a")).unwrap();
        assert!(
            rest.starts_with("data: {\"error\":") && rest.contains("upstream_stream_error"),
            "{what}: {rest}"
        );
        assert_eq!((node.called(), node.counted().1), ([1, 0, 0], [("cut".into(), 1)].into()), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_stream_answers_whole_and_that_passes() {
    let node = node(2);
    for (format, content_type, body) in [
        ("json", "application/json", r#"{"text":"a"}"#),
        ("text", "text/plain; charset=utf-8", "did anyone hear it\n"),
    ] {
        node.up("a").does([typed(content_type, body.as_bytes())]);
        let fields = [field("stream", "true"), field("response_format", format)].concat();
        let answered = node.send(write_down(&fields)).await;
        assert_eq!(answered.header("content-type"), Some(content_type));
        assert_eq!(answered.text().await.0, body);
    }
    node.up("a").does([typed("audio/mpeg", b"ID3")]);
    let answered = node.send(say(r#","stream_format":"sse""#)).await;
    assert_eq!(answered.bytes().await, (b"ID3".to_vec(), true));
    assert_eq!(node.called(), [3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn speech_as_events_moves_on_before_the_first_sound_and_raises_after_it() {
    let delta =
        |size: usize| data(&format!(r#"{{"type":"speech.audio.delta","audio":"{}"}}"#, "A".repeat(size)));
    let done =
        data(r#"{"type":"speech.audio.done","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}"#);
    let error = data(r#"{"type":"error","error":{"code":"server_error","message":"b"}}"#);
    let good = [delta(8), delta(100_000), done.clone()].concat();
    let ask = || say(r#","stream_format":"sse""#);
    let node = node(2);
    node.up("a").does([
        streamed(&[&good], end()),
        streamed(&[&error], end()),
        streamed(&[&delta(100_000), &delta(8)], Act::Close),
        streamed(&[&delta(100_000)], end()),
    ]);
    node.up("b").does([streamed(&[&delta(8), &done], end())]);
    assert_eq!(node.send(ask()).await.text().await.0, good);
    let moved = node.send(ask()).await;
    assert_eq!(moved.header("x-sluice-channel"), Some("b"));
    assert_eq!(moved.text().await.0, [delta(8), done].concat());
    for sent in [[delta(100_000), delta(8)].concat(), delta(100_000)] {
        let (text, _) = node.send(ask()).await.text().await;
        let rest = text.strip_prefix(&sent).unwrap();
        assert!(rest.starts_with("data: {\"error\":") && rest.contains("upstream_stream_error"), "{rest}");
    }
    assert_eq!(node.counted().1, [("served".into(), 2), ("cut".into(), 2)].into());
}

#[tokio::test(start_paused = true)]
async fn a_request_at_fault_is_returned_and_an_upstream_that_cannot_translate_still_transcribes() {
    let node = node(2);
    let bad = r#"{"error":{"message":"Invalid file format.","type":"invalid_request_error","param":"file","code":null}}"#;
    let none = r#"{"error":{"message":"Invalid URL (POST /v1/audio/translations)","type":"invalid_request_error","param":null,"code":null}}"#;
    let good = r#"{"text":"a"}"#;
    node.up("a").does([answer(400, "", bad), answer(404, "", none), answer(200, "", good)]);
    node.up("b").does([answer(200, "", good)]);
    let answered = node.send(write_down("")).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text().await.0.contains("Invalid file format."));
    for _ in 0..2 {
        let translate = post_form("/v1/audio/translations", &transcription("m", ""));
        assert_eq!(node.send(translate).await.header("x-sluice-channel"), Some("b"));
    }
    assert_eq!(node.send(write_down("")).await.header("x-sluice-channel"), Some("a"));
    assert_eq!(node.called(), [3, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn br_118_an_upload_of_25_mb_goes_up_on_every_hop_and_one_above_the_limit_is_told_of_it() {
    let node = node(2);
    node.up("a").does([failing(503)]);
    node.up("b").does([answer(200, "", r#"{"text":"a"}"#)]);
    let recording = "0123456789\r\n--A\r\n".repeat(25_000_000 / 17);
    let form = |model: &str| [&file("file", &recording), &field("model", model), CLOSED].concat();
    let answered = node.send(post_form("/v1/audio/transcriptions", &form("m"))).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("b")));
    for name in ["a", "b"] {
        assert!(node.up(name).calls()[0].body == form(&format!("m-at-{name}")), "{name}");
    }
    let huge = "x".repeat(REQUEST_BYTES_MAX);
    let answered =
        node.send(post_form("/v1/audio/transcriptions", &[&file("file", &huge), CLOSED].concat())).await;
    assert_eq!(answered.status, 413);
    let (text, _) = answered.text().await;
    assert!(text.contains("32 MiB") && text.contains("request_too_large"), "{text}");
    assert_eq!(node.called(), [1, 1, 0]);
}
