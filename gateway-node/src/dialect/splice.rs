//! Puts the upstream's name of a model in place of the public one. Every other byte of the body stays as the
//! caller wrote it.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

/// The body for an upstream that calls the model `upstream_model`. `spans` are the places of the asked name, as the
/// scan found them. The same buffer when the names are equal.
pub fn splice(body: &Bytes, spans: &[Range<usize>], upstream_model: &str, asked: &str) -> Bytes {
    if upstream_model == asked {
        return body.clone();
    }
    // A string always has a JSON form.
    let name = serde_json::to_vec(upstream_model).unwrap_or_default();
    let mut out = BytesMut::with_capacity(body.len() + spans.len() * name.len());
    let mut done = 0;
    for span in spans {
        let Some(before) = body.get(done..span.start) else {
            debug_assert!(false, "spans are ascending and lie in the body");
            continue;
        };
        out.put_slice(before);
        out.put_slice(&name);
        done = span.end;
    }
    out.put_slice(body.get(done..).unwrap_or_default());
    out.freeze()
}
