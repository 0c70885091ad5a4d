//! Audio: speech, which is sound or a stream of it, and transcripts, which are a document, words, or a stream of them.
//! Only here the media type of an answer tells how it is to be judged: sound and words have no shape of their own.
//!
//! | asked for | answer |
//! | --- | --- |
//! | speech | sound; with `stream_format: "sse"` events `speech.audio.delta` … `speech.audio.done` |
//! | a transcript | a document with a `text`, which may be empty |
//! | the same as `text`, `srt` or `vtt` | words; none are lawful where the type says that they would be words |
//! | the same with `stream` | events `transcript.text.delta`, `.segment` … `.done`, or chunks as chat has them (vLLM) |

use common::class::FailureClass as F;
use memchr::memmem;
use serde_json::{Map, Value};

use super::json::{is_error_event, is_something, kind, name, read, trimmed};
use super::json_answer::{unanswered, unless_none};
use super::multipart::media;
use super::parts::{Parts, Shape};
use super::scan::{self, ScanFault, Scanned};
use super::sse::Event;
use super::{After, Rules, Verdict, fields, openai_error, usage};
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// Speech.
pub const SPEECH: Rules = Rules { judge_whole: judge_sound, observe: observe_speech, ..TRANSCRIPTS };
/// Speech that comes as sound.
const SOUND: Rules = Rules { usage: &usage::UNSAID, ..SPEECH };

/// Transcripts and translations.
pub const TRANSCRIPTS: Rules = Rules {
    auth: Auth::Bearer,
    headers: &[],
    judge,
    judge_whole: judge_document,
    observe,
    find_error,
    usage: &usage::TOP,
    error_body: openai_error::body,
    closing_frame: openai_error::closing_frame,
};

/// Where sound was asked for and the type says that it is none.
const NO_SOUND: Rules = Rules { judge_whole: judge_no_answer, ..SPEECH };
/// Words, as the type says.
const WORDS: Rules =
    Rules { judge_whole: |body| judge_words(body, Verdict::End), usage: &usage::UNSAID, ..TRANSCRIPTS };
/// Words of no type.
const UNTYPED_WORDS: Rules =
    Rules { judge_whole: |body| judge_words(body, Verdict::failed(F::Empty)), ..TRANSCRIPTS };
/// Where words were asked for and a document came.
const DOCUMENT_OF_WORDS: Rules = Rules { judge_whole: judge_document_of_words, ..TRANSCRIPTS };
/// Where words were asked for and the type says that there are none.
const NO_WORDS: Rules = Rules { judge_whole: judge_no_answer, ..TRANSCRIPTS };

/// Finds what a request for speech asks for. It is a stream of events that makes a stream of it; sound comes as it is
/// made either way.
pub fn scan_speech(body: &[u8]) -> Result<Scanned, ScanFault> {
    let scanned = scan::scan(body)?;
    Ok(Scanned { stream: says(body, "stream_format", &["sse"]), ..scanned })
}

/// Finds the same of a transcript that is asked for by a document.
pub fn wants_words(body: &[u8]) -> bool {
    // The body may hold the recording.
    memmem::find(body, b"\"response_format\"").is_some() && says(body, "response_format", &WORD_FORMATS)
}

/// Formats of a transcript that are no document.
pub const WORD_FORMATS: [&str; 3] = ["text", "srt", "vtt"];

fn says(body: &[u8], name: &str, values: &[&str]) -> bool {
    let text = String::from_utf8_lossy(body);
    let value = fields::object(&text, [name]).ok().and_then(|[value]| value);
    let value = value.and_then(|value| serde_json::from_str::<String>(value).ok());
    value.is_some_and(|value| values.contains(&value.as_str()))
}

/// How an answer of this type to a request for speech is judged, and whether it may be a stream.
pub fn speech(asked: &Scanned, content_type: Option<&str>) -> (&'static Rules, bool) {
    let media = media(content_type.unwrap_or_default());
    match Kind::of(&media) {
        // An error may come in place of either.
        Kind::Events | Kind::Document | Kind::Words if asked.stream => (&SPEECH, true),
        Kind::Events | Kind::Document | Kind::Words | Kind::Pictures => (&NO_SOUND, false),
        Kind::Sound => (&SOUND, false),
        Kind::Unsaid if asked.stream && media.is_empty() => (&SPEECH, true),
        Kind::Unsaid => (&SOUND, false),
    }
}

/// How an answer of this type to a request for a transcript is judged, and whether it may be a stream.
pub fn transcript(asked: &Scanned, content_type: Option<&str>) -> (&'static Rules, bool) {
    let media = media(content_type.unwrap_or_default());
    match Kind::of(&media) {
        Kind::Events if asked.stream => (&TRANSCRIPTS, true),
        _ if !asked.wants_text => (&TRANSCRIPTS, asked.stream),
        Kind::Document => (&DOCUMENT_OF_WORDS, false),
        Kind::Words => (&WORDS, false),
        // A model that cannot stream leaves out that it should.
        Kind::Unsaid => (&UNTYPED_WORDS, asked.stream && media.is_empty()),
        Kind::Events | Kind::Sound | Kind::Pictures => (&NO_WORDS, false),
    }
}

/// What a media type says of a body.
enum Kind {
    Events,
    Document,
    Words,
    Sound,
    Pictures,
    Unsaid,
}

impl Kind {
    fn of(media: &str) -> Self {
        let (family, name) = media.split_once('/').unwrap_or((media, ""));
        match (family, name) {
            ("text", "event-stream") => Kind::Events,
            (_, "json") => Kind::Document,
            (_, name) if name.ends_with("+json") => Kind::Document,
            ("text", _) | ("application", "x-subrip" | "srt" | "xml" | "xhtml+xml") => Kind::Words,
            ("audio" | "video", _) | ("application", "ogg") => Kind::Sound,
            ("image" | "multipart", _) => Kind::Pictures,
            _ => Kind::Unsaid,
        }
    }
}

/// Whether a body is a page: a proxy's, or a portal's.
fn is_page(body: &[u8]) -> bool {
    let start = body.get(..16).unwrap_or(body).to_ascii_lowercase();
    [&b"<!doctype"[..], b"<html", b"<head", b"<body", b"<?xml"].iter().any(|tag| start.starts_with(tag))
}

/// The document that a body is, where it begins as one does.
fn document(body: &[u8]) -> Option<Value> {
    matches!(body, [b'{' | b'[', ..]).then(|| read(body)).flatten()
}

fn judge_sound(body: &[u8]) -> Verdict {
    let text = trimmed(body);
    match document(text) {
        _ if body.is_empty() => Verdict::failed(F::Empty),
        Some(document) => judge_instead(&document),
        None if is_page(text) => Verdict::failed(F::Malformed),
        None => Verdict::Content,
    }
}

fn judge_words(body: &[u8], of_none: Verdict) -> Verdict {
    let text = trimmed(body);
    match document(text).as_ref().and_then(find_error) {
        _ if body.is_empty() => of_none,
        Some(parts) if parts.shape != Shape::Foreign => {
            Verdict::Error(Box::new(classify::error_value(&parts)))
        }
        _ if is_page(text) => Verdict::failed(F::Malformed),
        _ => Verdict::Content,
    }
}

/// Servers that know one format only send a document, and some write words as one string.
fn judge_document_of_words(body: &[u8]) -> Verdict {
    let is_string = trimmed(body).starts_with(b"\"") && read(trimmed(body)).is_some();
    if is_string { Verdict::Content } else { judge_document(body) }
}

fn judge_document(body: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(trimmed(body));
    let has_answer = |text: Option<&str>, segments: Option<&str>| {
        text.is_some_and(|text| text.starts_with('"')) || segments.is_some_and(fields::is_filled_array)
    };
    match fields::object(&text, ["error", "text", "segments"]) {
        Ok([error, words, segments]) if unless_none(error).is_none() && has_answer(words, segments) => {
            Verdict::Content
        }
        _ => unanswered(&text, find_error, |_| false),
    }
}

fn judge_no_answer(body: &[u8]) -> Verdict {
    let text = trimmed(body);
    match document(text) {
        _ if text.is_empty() => Verdict::failed(F::Empty),
        Some(document) => judge_instead(&document),
        None => Verdict::failed(F::Malformed),
    }
}

/// Judges a document that stands where none should.
fn judge_instead(document: &Value) -> Verdict {
    match find_error(document) {
        Some(parts) => Verdict::Error(Box::new(classify::error_value(&parts))),
        None if document.as_object().is_some_and(Map::is_empty) => Verdict::failed(F::Empty),
        None => Verdict::failed(F::Malformed),
    }
}

fn find_error(document: &Value) -> Option<Parts> {
    let has_answer = |map: &Map<String, Value>| {
        map.get("text").is_some_and(Value::is_string)
            || ["segments", "choices"].iter().any(|name| map.get(*name).is_some_and(Value::is_array))
    };
    openai_error::find(document, has_answer)
}

fn judge(event: &Event<'_>) -> Verdict {
    if event.is_opaque {
        return if is_error_event(event) { Verdict::failed(F::UpstreamError) } else { Verdict::Content };
    }
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Verdict::Hold;
    }
    if openai_error::is_done(data) {
        return Verdict::failed(F::Empty);
    }
    let Some(document) = read(data) else { return Verdict::failed(F::Malformed) };
    let kind = kind(event, &document);
    if let Some(parts) = openai_error::find_in_event(event, kind, &document, find_error) {
        return Verdict::Error(Box::new(classify::error_value(&parts)));
    }
    let Value::Object(map) = &document else {
        return if document.is_null() { Verdict::Hold } else { Verdict::Content };
    };
    match (kind, map.get("choices").and_then(Value::as_array)) {
        (Some("ping" | "keepalive"), _) => Verdict::Hold,
        // Nothing was said, and that is all.
        (Some(kind), _) if kind.ends_with(".done") => Verdict::End,
        (Some(kind), _) if kind.ends_with(".delta") => {
            let is_empty = ["delta", "audio"].iter().all(|name| !map.get(*name).is_some_and(is_something));
            if is_empty { Verdict::Hold } else { Verdict::Content }
        }
        (Some(_), _) => Verdict::Content,
        (None, Some(choices)) => judge_choices(choices),
        (None, None) if map.is_empty() => Verdict::Hold,
        (None, None) => Verdict::Content,
    }
}

fn judge_choices(choices: &[Value]) -> Verdict {
    let says = |choice: &Value| {
        choice.get("delta").is_some_and(|delta| delta.get("content").is_some_and(is_something))
    };
    if choices.iter().any(says) {
        Verdict::Content
    } else if choices.iter().any(is_finished) {
        Verdict::End
    } else {
        Verdict::Hold
    }
}

fn is_finished(choice: &Value) -> bool {
    choice.get("finish_reason").is_some_and(Value::is_string)
}

fn observe(event: &Event<'_>) -> After {
    if event.is_opaque {
        // The whole text comes once more in the last event: only that one can be so large.
        return if is_error_event(event) { After::FailedQuietly } else { After::Finish };
    }
    let data = event.data.trim_ascii();
    if openai_error::is_done(data) {
        return After::Ends;
    }
    let Some(document) = read(data) else { return After::Ordinary };
    let map = document.as_object();
    let choices = map.and_then(|map| map.get("choices")).and_then(Value::as_array);
    match kind(event, &document) {
        _ if map.is_some_and(|map| openai_error::find_member(map, true).is_some()) => After::Raises,
        _ if is_error_event(event) => After::FailedQuietly,
        Some("error") => After::FailedQuietly,
        Some("transcript.text.done" | "speech.audio.done") => After::Done,
        Some(kind) if kind.ends_with(".done") => After::Finish,
        None if choices.is_some_and(|choices| choices.iter().any(is_finished)) => After::Finish,
        _ => After::Ordinary,
    }
}

fn observe_speech(event: &Event<'_>) -> After {
    let is_sound = name(event).is_none_or(|name| name.ends_with(".delta"));
    if is_sound && event.is_opaque {
        return After::Ordinary;
    }
    // Sound is long and none of these: base64 has no quotes and no brackets.
    let may_matter = [&b"\"error\""[..], b".done\"", b"[DONE]"];
    if is_sound && !may_matter.iter().any(|words| memmem::find(&event.data, words).is_some()) {
        return After::Ordinary;
    }
    observe(event)
}

#[cfg(test)]
mod tests;
