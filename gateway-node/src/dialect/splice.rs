//! Puts the upstream's name of a model in place of the public one. Every other byte of the body stays as the
//! caller wrote it.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

/// The body for an upstream that calls the model `upstream_model`. `spans` are the places of the asked name, as the
/// scan found them; what stands in front of the name, as Google's `models/`, stays. The same buffer when the names
/// are equal.
pub fn splice(body: &Bytes, spans: &[Range<usize>], upstream_model: &str, asked: &str) -> Bytes {
    if upstream_model == asked {
        return body.clone();
    }
    let mut out = BytesMut::with_capacity(body.len() + spans.len() * (upstream_model.len() + 2));
    let mut done = 0;
    for span in spans {
        let Some(before) = body.get(done..span.start) else {
            debug_assert!(false, "spans are ascending and lie in the body");
            continue;
        };
        out.put_slice(before);
        out.put_slice(&renamed(body.get(span.clone()).unwrap_or_default(), upstream_model, asked));
        done = span.end;
    }
    out.put_slice(body.get(done..).unwrap_or_default());
    out.freeze()
}

fn renamed(token: &[u8], upstream_model: &str, asked: &str) -> Vec<u8> {
    let said: String = serde_json::from_slice(token).unwrap_or_default();
    let name = [said.strip_suffix(asked).unwrap_or_default(), upstream_model].concat();
    // A string always has a JSON form.
    serde_json::to_vec(&name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_front_of_the_name_stays() {
        let body = Bytes::from_static(br#"{"a":"models/m","b":"m"}"#);
        assert_eq!(
            splice(&body, &[5..15, 20..23], "up\"/2", "m"),
            &br#"{"a":"models/up\"/2","b":"up\"/2"}"#[..]
        );
    }
}
