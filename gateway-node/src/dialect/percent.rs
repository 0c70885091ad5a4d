//! Percent-coding of names in paths and queries (RFC 3986 section 2). Pure.

use std::borrow::Cow;

/// Percent-decodes a part of a path or query; what is not valid is left as it is.
pub fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let value = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Percent-encodes all but the unreserved characters of RFC 3986 and the slash.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The same, and the slash: for a name or a value in a query.
pub fn encoded_whole(text: &str) -> String {
    encoded(text).replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_to_the_same_and_what_is_not_valid_is_left_alone() {
        for name in ["gpt-4o", "org/name x", "é%?&#", "100%"] {
            assert_eq!(decoded(&encoded(name)), name);
        }
        for faulty in ["100%", "%zz", "%4", "%ff"] {
            assert_eq!(decoded(faulty), faulty);
        }
    }
}
