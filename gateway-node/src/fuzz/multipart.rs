//! The reader of forms: what it finds is what a plain reader finds, and another name in a form is found again.

use bytes::Bytes;

use super::scan::UPSTREAM;
use crate::dialect::multipart::scan_form;
use crate::dialect::scan::Scanned;
use crate::dialect::splice;

/// The content type up to the first line end, then the body.
pub(super) fn run(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let Ok(content_type) = std::str::from_utf8(&input[..end]) else { return };
    let body = input.get(end + 1..).unwrap_or_default();
    let Ok(scanned) = scan_form(content_type, body) else { return };
    let model = scanned.model.as_bytes();
    for span in &scanned.model_spans {
        assert_eq!(&body[span.clone()], model);
    }
    if let Some(boundary) = plain_boundary(content_type) {
        let mut values = plain_values(boundary.as_bytes(), body, b"name=\"model\"");
        assert!(values.all(|value| value == model), "a plain reader finds another model");
    }
    let bytes = Bytes::copy_from_slice(body);
    let edits = splice::renaming(body, &scanned.model_spans, scanned.model_form, UPSTREAM, &scanned.model);
    let spliced = splice::apply(&bytes, edits).concat();
    let model_spans = moved(&scanned.model_spans, &scanned.model);
    let expected = Scanned { model: UPSTREAM.to_owned(), model_spans, ..scanned };
    assert_eq!(scan_form(content_type, &spliced), Ok(expected));
}

/// Where the names stand once each is as long as the new one.
fn moved(spans: &[std::ops::Range<usize>], model: &str) -> Vec<std::ops::Range<usize>> {
    let shifted = spans.iter().enumerate().map(|(before, span)| {
        let start = span.start + before * UPSTREAM.len() - before * model.len();
        start..start + UPSTREAM.len()
    });
    shifted.collect()
}

fn plain_boundary(content_type: &str) -> Option<&str> {
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=")?;
    (!boundary.is_empty() && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(boundary)
}

/// The values of the parts that a reader which knows nothing but the boundary takes for this field.
fn plain_values<'b>(boundary: &[u8], body: &'b [u8], named: &'static [u8]) -> impl Iterator<Item = &'b [u8]> {
    let line = [b"\r\n--", boundary].concat();
    let mut rest = body.strip_prefix(&line[2..]).map(Some).unwrap_or_else(|| after(body, &line));
    std::iter::from_fn(move || {
        let part = rest.take()?;
        let end = memchr::memmem::find(part, &line)?;
        rest = part.get(end + line.len()..);
        Some(&part[..end])
    })
    .filter_map(move |part| {
        let headers = memchr::memmem::find(part, b"\r\n\r\n")?;
        let disposition = part[..headers].strip_prefix(b"\r\nContent-Disposition: form-data; ")?;
        (disposition == named).then(|| &part[headers + 4..])
    })
}

fn after<'b>(body: &'b [u8], line: &[u8]) -> Option<&'b [u8]> {
    body.get(memchr::memmem::find(body, line)? + line.len()..)
}
