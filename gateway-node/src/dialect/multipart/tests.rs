use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::dialect::splice::{apply, renaming};

const TYPE: &str = "multipart/form-data; boundary=B";

fn part(name: &str, value: &str) -> String {
    format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn form(parts: &[String]) -> String {
    parts.concat() + "--B--\r\n"
}

fn with(part: &str) -> String {
    form(&[part.to_owned()])
}

fn found(content_type: &str, body: &str) -> (String, bool, Vec<String>) {
    let scanned = scan_form(content_type, body.as_bytes()).unwrap_or_else(|fault| panic!("{body}: {fault}"));
    let values = scanned.model_spans.iter().map(|span| body[span.clone()].to_owned()).collect();
    (scanned.model, scanned.stream, values)
}

fn refused(content_type: &str, body: &str) -> String {
    scan_form(content_type, body.as_bytes()).expect_err(body).to_string()
}

#[test]
fn the_model_and_whether_to_stream_are_found_wherever_they_stand() {
    let file = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a; name=\\\"model\\\".mp3\"\r\nContent-Type: audio/mpeg\r\n\r\n\0\u{1}--B\n--\r\n-B\r\n\r\n";
    for (body, stream) in [
        (form(&[part("model", "m")]), false),
        (form(&[file.to_owned(), part("model", "m"), part("stream", "true")]), true),
        (
            form(&[part("stream", "True"), part("model", "m"), part("models", "x"), part("svg[model]", "x")]),
            true,
        ),
        (form(&[part("stream", "false"), part("", "model"), part("model", "m")]), false),
        (form(&[part("stream", ""), part("Model", "x"), part("model", "m"), file.to_owned()]), false),
        (
            with(
                "--B\r\ncontent-type: text/plain; charset=utf-8\r\nCONTENT-DISPOSITION:form-data;name=model\r\n\r\nm\r\n",
            ),
            false,
        ),
        (
            with(
                "--B\r\nContent-Disposition: form-data;\r\n\tNAME = \"model\" ;\r\nContent-Transfer-Encoding: 8BIT\r\n\r\nm\r\n",
            ),
            false,
        ),
        (with("--B \t\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n"), false),
        (format!("A preamble, with --B in it.\r\n\r\n{}an epilogue", form(&[part("model", "m")])), false),
        (form(&["--B\r\n\r\na part without headers\r\n".to_owned(), part("model", "m")]), false),
        (part("model", "m") + "--B--", false),
        (part("model", "m") + "--B-- \r\n\r\n", false),
    ] {
        assert_eq!(found(TYPE, &body), ("m".to_owned(), stream, vec!["m".to_owned()]), "{body}");
    }
}

#[test]
fn a_name_that_stands_there_twice_is_found_twice() {
    let body = form(&[part("model", "m"), part("prompt", "m"), part("model", "m")]);
    assert_eq!(found(TYPE, &body), ("m".into(), false, vec!["m".into(), "m".into()]));
}

#[test]
fn the_boundary_is_found_however_it_is_written() {
    for (content_type, boundary) in [
        ("multipart/form-data; boundary=B", "B"),
        ("Multipart/Form-Data;BOUNDARY=\"B\"", "B"),
        ("multipart/form-data ; charset=utf-8 ; boundary = \"B c:=?\" ; ", "B c:=?"),
        (
            "multipart/form-data; x=\"boundary=no; \\\"\"; boundary=----WebKitFormBoundaryAb0",
            "----WebKitFormBoundaryAb0",
        ),
        (
            "multipart/form-data; boundary=------------------------d74496d66958873e",
            "------------------------d74496d66958873e",
        ),
    ] {
        let body =
            form(&[part("file", "--\r\n-"), part("model", "m")]).replace("--B", &format!("--{boundary}"));
        assert_eq!(found(content_type, &body).0, "m", "{content_type}");
    }
}

#[test]
fn a_content_type_that_does_not_say_how_to_read_the_body_is_refused() {
    for (content_type, says) in [
        ("multipart/form-data", "the content-type names no boundary"),
        ("multipart/form-data; boundary=", "the content-type names no boundary"),
        ("multipart/form-data; boundary=\"\"", "the content-type names no boundary"),
        ("multipart/form-data; boundary=B; boundary=C", "the content-type names more than one boundary"),
        (
            "multipart/form-data; boundary=\"B",
            "the content-type the quotes around a parameter are not closed",
        ),
        (
            "multipart/form-data; boundary=\"B \"",
            "the content-type names a boundary with characters that none may have",
        ),
        (
            "multipart/form-data; boundary=\"B\\C\"",
            "the content-type names a boundary with characters that none may have",
        ),
        (
            "multipart/mixed; boundary=B",
            "the content-type must be multipart/form-data where the body has parts",
        ),
    ] {
        assert_eq!(refused(content_type, &form(&[part("model", "m")])), says);
    }
}

#[test]
fn what_is_no_form_is_refused_with_what_is_wrong_and_where() {
    let m = part("model", "m");
    let disposition = |rest: &str| with(&format!("--B\r\nContent-Disposition: form-data{rest}\r\n\r\nm\r\n"));
    for (body, says) in [
        (String::new(), "the request body is empty"),
        ("x".into(), "the boundary does not occur in the body (byte 0)"),
        (m.replace('B', "C"), "the boundary does not occur in the body (byte 0)"),
        (form(&[]), "the request body has no \"model\""),
        (form(&[part("prompt", "p")]), "the request body has no \"model\""),
        (m.clone(), "it is not closed: the boundary with two hyphens behind it is missing (part 1, byte 5)"),
        (
            m.clone() + &m[..30],
            "it is not closed: the boundary with two hyphens behind it is missing (part 2, byte 61)",
        ),
        (m.clone() + "--B", "a boundary is not followed by CR LF, nor by two hyphens (part 1, byte 59)"),
        (m.clone() + "--Bx\r\n", "a boundary is not followed by CR LF, nor by two hyphens (part 1, byte 59)"),
        (
            m.clone() + "--B--x\r\n",
            "a boundary is not followed by CR LF, nor by two hyphens (part 1, byte 59)",
        ),
        (m.clone() + "--B--\r\n--B\r\n", "it goes on behind its end (part 1, byte 63)"),
        (
            m.replace("\r\n", "\n") + "--B--",
            "a boundary is not followed by CR LF, nor by two hyphens (byte 3)",
        ),
        (
            m.replacen("m\r\n", "m\n", 1) + "--B--",
            "the line before a boundary does not end in CR LF (part 1, byte 55)",
        ),
        (with("--B\r\n--B\r\n"), "there is nothing between two boundaries (part 1, byte 5)"),
        (
            with("--B\r\nContent-Disposition: form-data; name=\"model\"\r\n"),
            "the headers of a part do not end in an empty line (part 1, byte 5)",
        ),
        (
            with(&format!("--B\r\nX: {}\r\n\r\nm\r\n", "x".repeat(20_000))),
            "the headers of a part have more than 16 KiB (part 1, byte 5)",
        ),
        (
            with("--B\r\nContent-Disposition: form-data; name=\"model\"\n\nm\r\n\r\nx\r\n"),
            "a header of a part does not end in CR LF (part 1, byte 5)",
        ),
        (with("--B\r\nmodel\r\n\r\nm\r\n"), "a header of a part has no colon (part 1, byte 5)"),
        (
            with("--B\r\nContent-Disposition : form-data; name=\"model\"\r\n\r\nm\r\n"),
            "a header of a part has no name, or one with blanks (part 1, byte 5)",
        ),
        (
            with(
                "--B\r\nContent-Disposition: form-data; name=\"x\"\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n",
            ),
            "a part has two Content-Disposition headers (part 1, byte 5)",
        ),
        (
            with(
                "--B\r\nContent-Disposition: form-data; name=\"x\"\r\nContent-Type: Multipart/mixed; boundary=C\r\n\r\n--C--\r\n",
            ),
            "a part has parts of its own: send each file in a part of the form (part 1, byte 5)",
        ),
        (disposition("; name=\"x\"; name=\"model\""), "a part has two names (part 1, byte 5)"),
        (disposition("; name=\"mo\\del\""), "the name of a part has a backslash in it (part 1, byte 5)"),
        (
            disposition("; name*=utf-8''model"),
            "a part is named by \"name*\": that is not for forms (part 1, byte 5)",
        ),
        (
            disposition("; name*0=mo; name*1=del"),
            "a part is named by \"name*\": that is not for forms (part 1, byte 5)",
        ),
        (disposition("; name=\"model"), "the quotes around a parameter are not closed (part 1, byte 5)"),
        (
            disposition("; filename=\"a\\\"; name=\"model\""),
            "something other than a semicolon stands behind a parameter (part 1, byte 5)",
        ),
    ] {
        let says = match says {
            says if says.starts_with("the request") => says.to_owned(),
            says => format!("the request body is not valid multipart/form-data: {says}"),
        };
        assert_eq!(refused(TYPE, &body), says, "{body}");
    }
}

#[test]
fn a_field_that_is_not_what_it_must_be_is_refused_with_its_place() {
    let head = |rest: &str| {
        with(&format!("--B\r\nContent-Disposition: form-data; name=\"model\"{rest}\r\n\r\nm\r\n"))
    };
    for (body, says) in [
        (form(&[part("model", "")]), "\"model\" must be a text that is not empty (part 1, byte 53)"),
        (head("; filename=\"m.txt\""), "\"model\" must be a text and no file (part 1, byte 71)"),
        (head("; filename*=utf-8''m"), "\"model\" must be a text and no file (part 1, byte 73)"),
        (
            head("\r\nContent-Transfer-Encoding: base64"),
            "\"model\" must be plain text in no transfer encoding (part 1, byte 88)",
        ),
        (
            form(&[part("model", "m"), part("stream", "maybe")]),
            "\"stream\" must be true or false (part 2, byte 110)",
        ),
        (
            form(&[part("model", "m"), part("model", "n")]),
            "\"model\" stands in the request body twice with different values (part 2, byte 109)",
        ),
        (
            form(&[part("stream", "1"), part("model", "m"), part("stream", "0")]),
            "\"stream\" stands in the request body twice with different values (part 3, byte 167)",
        ),
    ] {
        assert_eq!(refused(TYPE, &body), says, "{body}");
    }
    let odd = form(&[part("model", "?")]).replace('?', "\u{0}").into_bytes();
    let odd: Vec<u8> = odd.into_iter().map(|byte| if byte == 0 { 0xff } else { byte }).collect();
    assert_eq!(
        scan_form(TYPE, &odd).unwrap_err().to_string(),
        "\"model\" must be valid UTF-8 (part 1, byte 53)"
    );
}

#[test]
fn a_transcript_in_words_is_asked_for_by_its_format() {
    for (format, wants_text) in
        [("text", true), ("srt", true), ("vtt", true), ("json", false), ("verbose_json", false)]
    {
        let body = form(&[part("model", "m"), part("response_format", format)]);
        assert_eq!(scan_form(TYPE, body.as_bytes()).unwrap().wants_text, wants_text, "{format}");
    }
}

#[test]
fn a_body_is_read_as_its_type_says() {
    let headers = |types: &[&'static str]| {
        types.iter().map(|value| (header::CONTENT_TYPE, value.parse().unwrap())).collect::<HeaderMap>()
    };
    let form = form(&[part("model", "m")]);
    assert_eq!(scan(&headers(&[TYPE]), form.as_bytes()).unwrap().model_form, Form::Bare);
    let json = br#" {"model":"m"}"#;
    for types in [&["application/json; charset=utf-8"][..], &[], &["text/plain"]] {
        assert_eq!(scan(&headers(types), json).unwrap().model_form, Form::String, "{types:?}");
    }
    assert!(matches!(scan(&headers(&["application/json"]), form.as_bytes()), Err(ScanFault::Json(_))));
    assert_eq!(scan(&headers(&[]), b""), Err(ScanFault::Empty));
    for types in [&["text/plain"][..], &["application/x-www-form-urlencoded"], &[]] {
        assert!(matches!(scan(&headers(types), form.as_bytes()), Err(ScanFault::Type(_))), "{types:?}");
    }
    assert!(matches!(scan(&headers(&[TYPE, "application/json"]), form.as_bytes()), Err(ScanFault::Type(_))));
}

#[test]
fn a_name_that_begins_as_the_boundary_does_would_divide_the_form() {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, TYPE.parse().unwrap())]);
    for (name, divides_it) in [("--B", true), ("--Best", true), ("B", false), ("m--B", false), ("--A", false)]
    {
        assert_eq!(divides(&headers, name), divides_it, "{name}");
    }
}

#[test]
fn a_boundary_that_all_but_occurs_everywhere_costs_no_more_than_any_other() {
    let boundary = "-".repeat(4_000);
    let content_type = format!("multipart/form-data; boundary={boundary}");
    for fill in
        ["-".repeat(8_000_000), format!("{}\n", "-".repeat(3_999)).repeat(2_000), "\r\n-".repeat(2_000_000)]
    {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--{boundary}\r\n\r\nx{fill}"
        );
        assert!(refused(&content_type, &body).contains("is not closed"));
    }
}

proptest! {
    #[test]
    fn a_spliced_form_differs_from_the_callers_in_the_model_alone(
        before in proptest::collection::vec(("[a-l]{0,6}", "[^B]*"), 0..4),
        after in proptest::collection::vec(("[a-l]{0,6}", "[^B]*"), 0..4),
        model in "[!-~]{1,20}",
        upstream in "[a-zA-Z0-9/.:_-]{1,20}",
        preamble in prop_oneof![Just(""), Just("\r\n"), Just("words\r\n")],
    ) {
        let parts = |parts: &[(String, String)]| parts.iter().map(|(n, v)| part(n, v)).collect::<String>();
        let write = |model: &str| format!("{preamble}{}{}{}--B--\r\n", parts(&before), part("model", model), parts(&after));
        prop_assume!(!upstream.starts_with("--B"));
        let body = Bytes::from(write(&model));
        let scanned = scan_form(TYPE, &body);
        prop_assume!(scanned.is_ok() || !model.contains("--B"));
        let scanned = scanned.unwrap();
        prop_assert_eq!(&scanned.model, &model);
        let edits = renaming(&body, &scanned.model_spans, scanned.model_form, &upstream, &model);
        let spliced = apply(&body, edits).concat();
        let written = write(&upstream);
        prop_assert_eq!(&spliced, written.as_bytes());
        prop_assert_eq!(scan_form(TYPE, &spliced).unwrap().model, upstream);
    }

    #[test]
    fn no_bytes_make_the_scan_fall_over(
        content_type in "(multipart/form-data; ?boundary=)?[B\"\\\\;= ]{0,8}",
        body in proptest::collection::vec(prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(b"\r\n".to_vec()), Just(b"--B".to_vec()), Just(b"--".to_vec()),
            Just(b"\r\n\r\n".to_vec()), Just(b"Content-Disposition: form-data; name=\"model\"".to_vec()),
        ], 0..40),
    ) {
        let body = body.concat();
        for content_type in [content_type.as_str(), TYPE] {
            if let Ok(scanned) = scan_form(content_type, &body) {
                for span in scanned.model_spans {
                    prop_assert_eq!(&body[span], scanned.model.as_bytes());
                }
            }
        }
    }
}
