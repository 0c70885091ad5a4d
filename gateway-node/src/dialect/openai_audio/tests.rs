use std::borrow::Cow;

use super::*;

fn event<'a>(name: Option<&'a str>, data: &'a str) -> Event<'a> {
    Event {
        name: name.map(str::as_bytes),
        data: Cow::Borrowed(data.as_bytes()),
        end: 0,
        size: data.len(),
        is_opaque: false,
    }
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Hold => "hold".into(),
        Verdict::Content => "content".into(),
        Verdict::End => "end".into(),
        Verdict::Error(fault) => fault.class.as_str().into(),
    }
}

fn asked(stream: bool, wants_text: bool) -> Scanned {
    let scanned = scan::scan(br#"{"model":"m"}"#).unwrap();
    Scanned { stream, wants_text, ..scanned }
}

#[test]
fn sound_is_judged_by_what_would_stand_in_its_place() {
    let error = r#"{"error":{"message":"b","code":503}}"#;
    for (content_type, body, verdict) in [
        (Some("audio/mpeg"), "ID3\u{4}\0\0", "content"),
        (Some("audio/pcm"), "{\0\0\u{1}", "content"),
        (Some("AUDIO/WAV; x=y"), "<\0RIFF", "content"),
        (Some("application/octet-stream"), "[\0\0", "content"),
        (Some("application/ogg"), "OggS", "content"),
        (None, "OggS", "content"),
        (Some("audio/mpeg"), "", "empty"),
        (None, "", "empty"),
        (Some("audio/mpeg"), error, "overloaded"),
        (Some("audio/mpeg"), "\r\n{\"error\":\"rate limit\"}", "rate_limited"),
        (Some("audio/mpeg"), "{}", "empty"),
        (Some("audio/mpeg"), r#"{"id":"x"}"#, "malformed"),
        (Some("audio/mpeg"), r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#, "rate_limited"),
        (None, " \n<!DOCTYPE html><html>", "malformed"),
        (Some("audio/mpeg"), "<html>", "malformed"),
        (Some("application/json"), error, "overloaded"),
        (Some("application/problem+json"), r#"{"detail":"gone"}"#, "upstream_error"),
        (Some("application/json"), "{}", "empty"),
        (Some("application/json"), r#"{"audio":"SUQz"}"#, "malformed"),
        (Some("application/json"), "", "empty"),
        (Some("application/json"), "ID3", "malformed"),
        (Some("text/html"), "<html>", "malformed"),
        (Some("text/plain"), "upstream connect error", "malformed"),
        (Some("text/event-stream"), "data: {}\n\n", "malformed"),
        (Some("image/png"), "PNG", "malformed"),
    ] {
        let (rules, may_stream) = speech(&asked(false, false), content_type);
        assert!(!may_stream);
        assert_eq!(said(&(rules.judge_whole)(body.as_bytes())), verdict, "{content_type:?} {body}");
    }
}

#[test]
fn a_transcript_is_a_document_that_may_have_nothing_to_say() {
    for (body, verdict) in [
        (r#"{"text":"hello"}"#, "content"),
        (r#"{"text":""}"#, "content"),
        (
            " \n{\"task\":\"transcribe\",\"language\":\"en\",\"duration\":1.0,\"text\":\"\",\"segments\":[]}\n",
            "content",
        ),
        (r#"{"segments":[{"text":"a","speaker":"A"}],"error":null}"#, "content"),
        (r#"{"text":"a","x_groq":{"id":"r"},"error":{}}"#, "content"),
        (r#"{"text":"a","error":{"message":"b","code":429}}"#, "rate_limited"),
        (r#"{"error":{"message":"b","type":"server_error"}}"#, "upstream_error"),
        (r#"{"text":null}"#, "empty"),
        (r#"{"segments":[]}"#, "empty"),
        ("{}", "empty"),
        ("", "empty"),
        (r#"{"text":"a""#, "malformed"),
        ("hello", "malformed"),
        ("\"hello\"", "malformed"),
        ("<html>", "malformed"),
    ] {
        for content_type in [Some("application/json"), Some("text/plain"), None] {
            let (rules, may_stream) = transcript(&asked(false, false), content_type);
            assert!(!may_stream);
            assert_eq!(said(&(rules.judge_whole)(body.as_bytes())), verdict, "{content_type:?} {body}");
        }
    }
}

#[test]
fn words_are_judged_as_words_where_words_were_asked_for() {
    let error = r#"{"error":{"message":"b","type":"server_error","code":503}}"#;
    for (content_type, body, verdict) in [
        (Some("text/plain; charset=utf-8"), "hello\n", "content"),
        (Some("text/plain"), "{braces} and <angles>", "content"),
        (Some("text/plain"), "[MUSIC]", "content"),
        (Some("text/plain"), r#"{"text":"said so"}"#, "content"),
        (Some("text/plain"), "\n", "content"),
        (Some("text/plain"), "", "end"),
        (Some("application/x-subrip"), "", "end"),
        (Some("text/vtt"), "WEBVTT\n\n", "content"),
        // As whisper.cpp labels its words.
        (Some("text/html; charset=utf-8"), " hello", "content"),
        (Some("text/html"), "<!doctype html>", "malformed"),
        (Some("text/html"), "", "end"),
        (Some("application/xml"), "<?xml version=\"1.0\"?><Error/>", "malformed"),
        (Some("text/plain"), error, "overloaded"),
        (Some("text/plain"), r#"{"detail":"Not Found"}"#, "upstream_error"),
        (Some("text/plain"), r#"{"message":"said so"}"#, "content"),
        (None, "hello", "content"),
        (None, "", "empty"),
        (Some("application/octet-stream"), "1\n00:00:00,000 --> 00:00:01,000\na\n", "content"),
        (Some("application/json"), r#"{"text":"hello"}"#, "content"),
        (Some("application/json"), "\"hello\\n\"", "content"),
        (Some("application/json"), error, "overloaded"),
        (Some("application/json"), "{}", "empty"),
        (Some("application/json"), "", "empty"),
        (Some("application/json"), "hello", "malformed"),
        (Some("audio/mpeg"), "ID3", "malformed"),
        (Some("text/event-stream"), "data: {}\n\n", "malformed"),
        (Some("image/png"), "", "empty"),
    ] {
        let (rules, may_stream) = transcript(&asked(false, true), content_type);
        assert!(!may_stream);
        assert_eq!(said(&(rules.judge_whole)(body.as_bytes())), verdict, "{content_type:?} {body}");
    }
}

#[test]
fn a_stream_is_one_where_it_was_asked_for_and_the_type_allows_it() {
    for (content_type, of_speech, of_document, of_words) in [
        (Some("text/event-stream; charset=utf-8"), true, true, true),
        (Some("application/json"), true, true, false),
        (Some("text/plain"), true, true, false),
        (Some("audio/mpeg"), false, true, false),
        (Some("application/octet-stream"), false, true, false),
        (None, true, true, true),
    ] {
        assert_eq!(speech(&asked(true, false), content_type).1, of_speech, "{content_type:?}");
        assert_eq!(transcript(&asked(true, false), content_type).1, of_document, "{content_type:?}");
        assert_eq!(transcript(&asked(true, true), content_type).1, of_words, "{content_type:?}");
        assert!(
            !speech(&asked(false, false), content_type).1 && !transcript(&asked(false, true), content_type).1
        );
    }
}

#[test]
fn an_event_means_what_it_says() {
    use After::{Done, Ends, FailedQuietly, Finish, Ordinary, Raises};
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"{{"id":"t","object":"transcription.chunk","choices":[{{"delta":{delta},"finish_reason":{finish}}}]}}"#
        )
    };
    for (name, data, verdict, after) in [
        (None, r#"{"type":"transcript.text.delta","delta":"I"}"#.to_owned(), "content", Ordinary),
        (None, r#"{"type":"transcript.text.delta","delta":""}"#.into(), "hold", Ordinary),
        (
            None,
            r#"{"type":"transcript.text.segment","id":"s","text":"a","speaker":"A"}"#.into(),
            "content",
            Ordinary,
        ),
        (None, r#"{"type":"transcript.text.done","text":""}"#.into(), "end", Done),
        (Some("transcript.text.done"), r#"{"text":"a done \"error\""}"#.into(), "end", Done),
        (None, r#"{"type":"transcript.something","x":1}"#.into(), "content", Ordinary),
        (None, r#"{"type":"speech.audio.delta","audio":"SUQz"}"#.into(), "content", Ordinary),
        (None, r#"{"type":"speech.audio.delta","audio":""}"#.into(), "hold", Ordinary),
        (None, r#"{"type":"speech.audio.done","usage":{"total_tokens":1}}"#.into(), "end", Done),
        (None, chunk(r#"{"content":" a"}"#, "null"), "content", Ordinary),
        (None, chunk(r#"{"content":""}"#, "null"), "hold", Ordinary),
        (None, chunk("{}", "\"stop\""), "end", Finish),
        (
            None,
            r#"{"object":"transcription.chunk","choices":[],"usage":{"total_tokens":1}}"#.into(),
            "hold",
            Ordinary,
        ),
        (Some("ping"), "{}".into(), "hold", Ordinary),
        (None, "null".into(), "hold", Ordinary),
        (None, "{}".into(), "hold", Ordinary),
        (None, String::new(), "hold", Ordinary),
        (None, "[DONE]".into(), "empty", Ends),
        (None, r#"{"type":"#.into(), "malformed", Ordinary),
        (None, r#"{"error":{"message":"b","code":429}}"#.into(), "rate_limited", Raises),
        (
            None,
            r#"{"type":"transcript.text.delta","delta":"a","error":{"code":500}}"#.into(),
            "upstream_error",
            Raises,
        ),
        (
            Some("error"),
            r#"{"type":"error","error":{"message":"b","type":"server_error"}}"#.into(),
            "upstream_error",
            Raises,
        ),
        (Some("error"), r#"{"message":"b","code":503}"#.into(), "overloaded", FailedQuietly),
        (
            None,
            r#"{"type":"error","code":"rate_limit_exceeded","message":"b"}"#.into(),
            "rate_limited",
            FailedQuietly,
        ),
    ] {
        let event = event(name, &data);
        assert_eq!(said(&(TRANSCRIPTS.judge)(&event)), verdict, "{name:?} {data}");
        assert_eq!((TRANSCRIPTS.observe)(&event), after, "{name:?} {data}");
        if !data.contains("choices") && !data.contains("\"code\":\"rate") {
            assert_eq!((SPEECH.observe)(&event), after, "{name:?} {data}");
        }
    }
}

#[test]
fn an_event_too_large_to_be_kept_is_the_text_once_more_or_sound() {
    let large = |name: Option<&'static str>| Event { is_opaque: true, ..event(name, "") };
    assert_eq!((TRANSCRIPTS.judge)(&large(None)), Verdict::Content);
    assert_eq!((TRANSCRIPTS.observe)(&large(None)), After::Finish);
    assert_eq!((SPEECH.observe)(&large(None)), After::Ordinary);
    for rules in [&TRANSCRIPTS, &SPEECH] {
        assert_eq!((rules.observe)(&large(Some("error"))), After::FailedQuietly);
        assert_eq!(said(&(rules.judge)(&large(Some("error")))), "upstream_error");
    }
}

#[test]
fn speech_is_a_stream_of_events_where_its_format_says_so() {
    for (body, stream) in [
        (r#"{"model":"m","input":"x"}"#, false),
        (r#"{"model":"m","stream_format":"sse"}"#, true),
        (r#"{"model":"m","stream_format":"s\u0073e"}"#, true),
        (r#"{"model":"m","stream_format":"audio","stream":true}"#, false),
        (r#"{"model":"m","stream_format":null}"#, false),
        (r#"{"model":"m","input":"\"stream_format\":\"sse\""}"#, false),
    ] {
        assert_eq!(scan_speech(body.as_bytes()).unwrap().stream, stream, "{body}");
    }
    assert_eq!(scan_speech(b"{}"), Err(ScanFault::NoModel));
    assert!(wants_words(br#"{"response_format":"srt"}"#) && !wants_words(br#"{"response_format":"json"}"#));
}
