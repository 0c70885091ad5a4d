//! The scans of request bodies against a parser, and the splice of another model's name.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::scan::{self, ScanFault, Scanned};
use crate::dialect::splice::{self, Form};
use crate::dialect::{ask_usage, gemini, openai_responses};

/// A name that has to be escaped in JSON.
pub(super) const UPSTREAM: &str = "up/\"stream\"\u{e9}";

pub(super) fn run(body: &[u8]) {
    let scanned = scan::scan(body);
    // What it goes on from must be named, and no conversation; all else is the same.
    match openai_responses::scan(body) {
        Err(ScanFault::NotServed { .. } | ScanFault::Member { param: "previous_response_id", .. }) => {}
        responses => assert_eq!(responses.map(|create| create.scanned), scanned),
    }
    let valid = serde_json::from_slice::<IgnoredAny>(body);
    // What may not stand in a member's name is left to the upstream.
    if valid.is_err_and(|fault| !fault.to_string().starts_with("control character")) {
        assert!(matches!(scanned, Err(ScanFault::Empty | ScanFault::Json(_))), "{scanned:?}");
    }
    let members = std::str::from_utf8(body).ok().and_then(members);
    if let Some(members) = &members {
        assert_eq!(scanned.as_ref().ok().map(|s| (s.model.clone(), s.stream)), asked(members), "{scanned:?}");
    }
    match (scanned, scan::scan_or(body, Some("unnamed"))) {
        (Err(ScanFault::NoModel), Ok(unnamed)) => {
            assert_eq!(unnamed.model, "unnamed");
            check_splice(body, &unnamed, true);
        }
        (scanned, or) => assert_eq!(scanned, or),
    }
    if let Ok(scanned) = scan::scan(body) {
        check_splice(body, &scanned, false);
        check_usage_asked(body, &scanned);
    }
}

/// Asks for usage, and checks that it is asked for and that nothing else is.
fn check_usage_asked(body: &[u8], scanned: &Scanned) {
    let Some(edits) = ask_usage::edits(body, &scanned.stream_options).filter(|_| scanned.stream) else {
        return;
    };
    let asking = splice::apply(&Bytes::copy_from_slice(body), edits).concat();
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let (Some(before), Some(mut after)) = (parsed(body), parsed(&asking)) else { return };
    assert_eq!(after["stream_options"]["include_usage"], true);
    match before.get("stream_options") {
        Some(Value::Object(options)) => {
            let own = options.get("include_usage").cloned();
            let options = after["stream_options"].as_object_mut().unwrap();
            match own {
                Some(own) => options.insert("include_usage".to_owned(), own),
                None => options.remove("include_usage"),
            };
        }
        Some(_) => after["stream_options"] = Value::Null,
        None => {
            after.as_object_mut().unwrap().remove("stream_options");
        }
    }
    assert_eq!(before, after, "more was changed");
}

/// Puts another name there, and checks that the members are the same but for that.
fn check_splice(body: &[u8], scanned: &Scanned, is_added: bool) {
    let bytes = Bytes::copy_from_slice(body);
    let edits = splice::renaming(body, &scanned.model_spans, scanned.model_form, UPSTREAM, &scanned.model);
    let spliced = splice::apply(&bytes, edits).concat();
    let after = std::str::from_utf8(&spliced).ok().and_then(members);
    let (Some(mut before), Some(after)) = (std::str::from_utf8(body).ok().and_then(members), after) else {
        return;
    };
    if is_added {
        before.insert(0, ("model".to_owned(), ""));
    }
    assert_eq!(before.len(), after.len());
    for ((name, before), (name_after, after)) in before.iter().zip(&after) {
        assert_eq!(name, name_after);
        if name == "model" {
            assert_eq!(serde_json::from_str::<String>(after).unwrap(), UPSTREAM);
        } else {
            assert_eq!(before, after, "{name} was changed");
        }
    }
    if is_added {
        return;
    }
    check_rest(body, &scanned.model_spans, &scanned.model, &spliced);
}

/// What is outside the names stays byte by byte.
fn check_rest(body: &[u8], spans: &[Range<usize>], model: &str, spliced: &[u8]) {
    let (mut rest, mut done) = (spliced, 0);
    for span in spans {
        rest = rest.strip_prefix(&body[done..span.start]).expect("what is in front of a name stays");
        let said: String = serde_json::from_slice(&body[span.clone()]).expect("a span is a string");
        let before = said.strip_suffix(model).expect("it ends with the model");
        assert!(matches!(before, "" | "models/"), "{before}");
        let name = serde_json::to_vec(&[before, UPSTREAM].concat()).unwrap();
        rest = rest.strip_prefix(&name[..]).expect("the new name stands there");
        done = span.end;
    }
    assert_eq!(rest, &body[done..], "what is behind the last name stays");
}

/// What a request with these members asks for, if it is one.
fn asked(members: &[(String, &str)]) -> Option<(String, bool)> {
    let raw = |wanted| members.iter().filter(move |(name, _)| name == wanted).map(|(_, raw)| *raw);
    let mut models = raw("model").map(|raw| serde_json::from_str::<String>(raw).ok());
    let model = models.next()??;
    if model.is_empty() || models.any(|other| other.as_ref() != Some(&model)) {
        return None;
    }
    let mut streams = raw("stream").map(|raw| serde_json::from_str::<Option<bool>>(raw).ok());
    let Some(first) = streams.next() else { return Some((model, false)) };
    let stream = first?.unwrap_or(false);
    streams
        .all(|other| other.is_some_and(|other| other.unwrap_or(false) == stream))
        .then_some((model, stream))
}

/// Every member of an object as it stands there, the repeated ones too.
fn members(text: &str) -> Option<Vec<(String, &str)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(members)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members).ok()?;
    deserializer.end().ok()?;
    Some(members)
}

pub(super) fn run_google(body: &[u8]) {
    const MODEL: &str = "m";
    let Ok(spans) = gemini::body::scan(body, MODEL) else { return };
    let edits = splice::renaming(body, &spans, Form::String, UPSTREAM, MODEL);
    let spliced = splice::apply(&Bytes::copy_from_slice(body), edits).concat();
    check_rest(body, &spans, MODEL, &spliced);
    // Deep documents are skipped, not refused.
    let (Ok(before), Ok(after)) = (serde_json::from_slice::<Value>(body), serde_json::from_slice(&spliced))
    else {
        return;
    };
    let named = |document: &Value| {
        let mut places = vec![document];
        places.extend(document.get("requests").and_then(Value::as_array).into_iter().flatten());
        places.extend(
            ["generateContentRequest", "generate_content_request"].iter().filter_map(|n| document.get(n)),
        );
        let names = places.iter().filter_map(|place| place.get("model")).filter(|name| !name.is_null());
        names.cloned().collect::<Vec<_>>()
    };
    for name in named(&after) {
        let name = name.as_str().expect("a model is a name");
        assert_eq!(name.strip_prefix("models/").unwrap_or(name), UPSTREAM);
    }
    assert_eq!(named(&before).len(), named(&after).len());
}
