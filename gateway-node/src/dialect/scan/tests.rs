use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::dialect::splice::{apply, renaming};

/// The body for an upstream that calls the model `upstream`.
fn spliced(body: &Bytes, scanned: &Scanned, upstream: &str) -> Vec<u8> {
    let Scanned { model, model_spans, model_form, .. } = scanned;
    apply(body, renaming(body, model_spans, *model_form, upstream, model)).concat()
}

fn found(body: &str) -> (String, bool, Vec<&str>) {
    let scanned = scan(body.as_bytes()).unwrap();
    let tokens = scanned.model_spans.iter().map(|span| &body[span.clone()]).collect();
    (scanned.model, scanned.stream, tokens)
}

#[test]
fn the_model_and_whether_to_stream_are_found_wherever_they_stand() {
    for (body, model, stream, tokens) in [
        (r#"{"model":"m"}"#, "m", false, vec![r#""m""#]),
        (r#"{"model" : "m" , "stream" : true}"#, "m", true, vec![r#""m""#]),
        (
            r#"{"stream":null,"messages":[{"model":"x","stream":true}],"model":"m"}"#,
            "m",
            false,
            vec![r#""m""#],
        ),
        (r#"{"mod\u0065l":"m","str\u0065am":true}"#, "m", true, vec![r#""m""#]),
        (r#"{"model":"gpt\u002d4"}"#, "gpt-4", false, vec![r#""gpt\u002d4""#]),
        (r#"{"model":"m","stream":false,"model":"\u006d"}"#, "m", false, vec![r#""m""#, r#""\u006d""#]),
        (r#"{"model":"世界","é":"\"model\":\"no\""}"#, "世界", false, vec![r#""世界""#]),
        ("\n\t {\"model\":\"m\"}\r\n ", "m", false, vec![r#""m""#]),
    ] {
        assert_eq!(found(body), (model.to_owned(), stream, tokens), "{body}");
    }
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    for (body, text) in [
        ("", "the request body is empty"),
        (" \n", "the request body is empty"),
        (r#"{"messages":[]}"#, "the request body has no \"model\""),
        ("{}", "the request body has no \"model\""),
        (r#"{"model":7}"#, "\"model\" must be a string that is not empty (line 1, column 10)"),
        (r#"{"model":null}"#, "\"model\" must be a string that is not empty (line 1, column 10)"),
        ("{\n \"model\": \"\"}", "\"model\" must be a string that is not empty (line 2, column 11)"),
        (r#"{"model":["m"]}"#, "\"model\" must be a string that is not empty (line 1, column 10)"),
        (r#"{"model":"\ud800"}"#, "\"model\" must be a string that is not empty (line 1, column 10)"),
        (r#"{"model":"m","stream":1}"#, "\"stream\" must be true or false (line 1, column 23)"),
        (r#"{"model":"m","stream":"true"}"#, "\"stream\" must be true or false (line 1, column 23)"),
        (
            r#"{"model":"a","model":"b"}"#,
            "\"model\" stands in the request body twice with different values (line 1, column 22)",
        ),
        (
            r#"{"model":"a","stream":true,"stream":false}"#,
            "\"stream\" stands in the request body twice with different values (line 1, column 37)",
        ),
    ] {
        assert_eq!(scan(body.as_bytes()).unwrap_err().to_string(), text, "{body}");
    }
}

#[test]
fn what_is_not_one_json_object_is_refused() {
    for body in [
        r#"{"model":"m""#,
        r#"{"model":"m"#,
        r#"{"model":"m","x":[1,2}"#,
        r#"{"model":"m"} x"#,
        r#"{"model":"m"}{"model":"m"}"#,
        r#"{"model":"m",}"#,
        r#"{'model':'m'}"#,
        r#"["model","m"]"#,
        r#""model""#,
        "model=m",
        "null",
        "\u{feff}{\"model\":\"m\"}",
    ] {
        let fault = scan(body.as_bytes()).unwrap_err();
        assert!(matches!(fault, ScanFault::Json(_)), "{body}: {fault}");
        assert!(fault.to_string().contains(" at line 1 column "), "{fault}");
    }
}

#[test]
fn deep_nesting_and_bad_utf8_elsewhere_are_no_harm() {
    let deep = format!(r#"{{"x":{}{},"model":"m"}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(scan(deep.as_bytes()).unwrap().model, "m");
    let deep = format!(r#"{{"model":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(scan(deep.as_bytes()).is_err());
    let odd = b"{\"x\":\"\xff\",\"model\":\"m\",\"\xfe\":1}";
    assert_eq!(&odd[scan(odd).unwrap().model_spans[0].clone()], b"\"m\"");
    assert!(scan(b"{\"model\":\"\xff\"}").is_err());
}

#[test]
fn the_splice_changes_the_name_and_nothing_else() {
    for (body, upstream, out) in [
        (r#"{ "model" : "m", "x": 1.50 }"#, "up/stream-2", r#"{ "model" : "up/stream-2", "x": 1.50 }"#),
        (r#"{"model":"m","model":"m"}"#, "q", r#"{"model":"q","model":"q"}"#),
        (r#"{"model":"m"}"#, "a\"b\\世", r#"{"model":"a\"b\\世"}"#),
    ] {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let scanned = scan(&body).unwrap();
        assert_eq!(spliced(&body, &scanned, upstream), out.as_bytes());
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".*".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(".*", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_spliced_body_differs_from_the_callers_in_the_model_alone(
        rest in proptest::collection::btree_map("[a-z]{1,6}", json(), 0..6),
        model in ".+",
        upstream in ".+",
        is_pretty: bool,
    ) {
        let mut document: serde_json::Map<_, _> = rest.into_iter().filter(|(k, _)| k != "stream").collect();
        document.insert("model".into(), model.clone().into());
        let body = Bytes::from(match is_pretty {
            true => serde_json::to_vec_pretty(&document).unwrap(),
            false => serde_json::to_vec(&document).unwrap(),
        });
        let scanned = scan(&body).unwrap();
        prop_assert_eq!(&scanned.model, &model);
        let spliced = spliced(&body, &scanned, &upstream);
        document.insert("model".into(), upstream.into());
        prop_assert_eq!(serde_json::from_slice::<serde_json::Map<_, _>>(&spliced).unwrap(), document);
        let span = &scanned.model_spans[0];
        prop_assert!(spliced.starts_with(&body[..span.start]) && spliced.ends_with(&body[span.end..]));
    }

    #[test]
    fn no_bytes_make_the_scan_fall_over(body: Vec<u8>) {
        let _ = scan(&body);
    }
}

#[test]
fn a_body_without_a_model_can_be_given_one_and_any_other_stays_as_it_is() {
    for (body, expected) in [
        (r#" {"input":"x"}"#, r#" {"model":"d\"","input":"x"}"#),
        ("{ }", r#"{"model":"d\"" }"#),
        (r#"{"model":"m"}"#, r#"{"model":"m"}"#),
    ] {
        let scanned = scan_or(body.as_bytes(), Some("d\"")).unwrap();
        let same = scanned.model.clone();
        assert_eq!(spliced(&Bytes::from(body), &scanned, &same), expected.as_bytes(), "{body}");
    }
    for body in [r#"{"model":1}"#, r#"{"input":"#, "[]", ""] {
        assert_eq!(scan_or(body.as_bytes(), Some("d")), scan(body.as_bytes()), "{body}");
    }
    let unnamed = Bytes::from_static(b"{\"input\":\"x\",\"stream\":true}");
    let scanned = scan_or(&unnamed, Some("d")).unwrap();
    assert_eq!((scanned.model.as_str(), scanned.stream), ("d", true));
    let scanned = scan(&spliced(&unnamed, &scanned, "up")).unwrap();
    assert_eq!(scanned.model, "up");
}
