//! What a request line and headers may say: paths, queries, percent-coding, and what of the headers goes on.

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::head;
use crate::dialect::operation::{Asked, find, shape};
use crate::dialect::{percent, query};
use crate::upstream::headers;

const SECRET: &str = "sk-Secret123";

pub(super) fn run(input: &[u8]) {
    let Some(([method], rest)) = head(input) else { return };
    let text = String::from_utf8_lossy(rest);
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*text, None),
    };
    assert_eq!(percent::decoded(&percent::encoded(path)), path);
    let method = if method % 2 == 0 { Method::POST } else { Method::GET };
    let asked = find(&method, path);
    shape(path, &HeaderMap::new());
    if let Asked::Operation(operation, model) = &asked {
        let up = operation.upstream_path(model.as_deref().unwrap_or("m"), model.as_deref());
        assert!(up.parse::<PathAndQuery>().is_ok_and(|parsed| parsed.query().is_none()), "{up}");
        if let Ok(Some(up)) = operation.upward_query(query) {
            assert!(query::value(Some(&up), "key").is_none(), "{up}");
            assert!(
                query.is_some_and(|query| up.split('&').all(|pair| query.split('&').any(|own| own == pair)))
            );
        }
    }
    check_headers(rest);
}

/// `name: value` lines.
fn check_headers(text: &[u8]) {
    let mut sent = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            sent.append(name, value);
        }
    }
    for name in ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"] {
        sent.insert(name, HeaderValue::from_static(SECRET));
    }
    let own = (HeaderName::from_static("authorization"), HeaderValue::from_static("Bearer ours"));
    let up = headers::upward(&sent, &[], &HeaderMap::new(), Some(own));
    for (name, value) in &up {
        let is_the_callers = sent.get_all(name).iter().any(|own| own == value);
        assert!(value != SECRET || (is_the_callers && !is_credential(name)), "{name}");
    }
    assert_eq!(up.get_all("authorization").iter().count(), 1);
    let down = headers::downward(&sent);
    for name in
        ["retry-after", "set-cookie", "x-should-retry", "connection", "transfer-encoding", "content-length"]
    {
        assert!(!down.contains_key(name), "{name}");
    }
    // What a connection names belongs to it.
    for headers in [&up, &down] {
        assert!(!headers.contains_key("connection"));
    }
}

fn is_credential(name: &HeaderName) -> bool {
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"].contains(&name.as_str())
}
