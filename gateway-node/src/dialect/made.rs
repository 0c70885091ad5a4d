//! The id of what an answer has made: a response that the channel keeps, a video. Read from the beginning of a
//! document or of a stream, however much of it is there yet. Pure.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// As much of a stream is looked through; the id stands in its first event.
const LOOKED_THROUGH_BYTES_MAX: usize = 64 * 1024;

/// The id at the top of a document, of which perhaps only the beginning is here.
pub fn in_document(body: &[u8]) -> Option<String> {
    let mut id = None;
    read(body, &mut id, None);
    id
}

/// Looks for the id at the top of a document that comes piece by piece.
#[derive(Debug, Default)]
pub struct InDocument {
    begun: Vec<u8>,
    has_given_up: bool,
}

impl InDocument {
    /// Takes the next bytes of the document, and looks in all of them.
    pub fn on_bytes(&mut self, piece: &[u8]) -> Option<String> {
        if self.has_given_up {
            return None;
        }
        let found = if self.begun.is_empty() {
            in_document(piece)
        } else {
            self.begun.extend_from_slice(piece);
            in_document(&self.begun)
        };
        self.has_given_up = found.is_none() && self.begun.len().max(piece.len()) > LOOKED_THROUGH_BYTES_MAX;
        if found.is_some() || self.has_given_up {
            self.begun = Vec::new();
        } else if self.begun.is_empty() {
            self.begun.extend_from_slice(piece);
        }
        found
    }

    /// Whether so much came without an id that none is looked for any more.
    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}

/// Looks for the id of the response in the events of a stream.
#[derive(Debug, Default)]
pub struct InStream {
    /// From the beginning of a line on.
    begun: Vec<u8>,
    bytes: usize,
}

impl InStream {
    /// Takes the next bytes of the stream. The id is found as soon as it is there, also in an event that has no end yet.
    pub fn on_bytes(&mut self, chunk: &[u8]) -> Option<String> {
        if self.has_given_up() {
            return None;
        }
        self.bytes += chunk.len();
        self.begun.extend_from_slice(chunk);
        let mut at = 0;
        let found = loop {
            let rest = self.begun.get(at..).unwrap_or_default();
            let end = memchr2(b'\n', b'\r', rest);
            let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let id = in_line(line);
            match end {
                Some(end) if id.is_none() => at += end + 1,
                _ => break id,
            }
        };
        self.begun.drain(..at);
        if found.is_some() || self.has_given_up() {
            self.begun = Vec::new();
        }
        found
    }

    /// Whether so much came without an id that none is looked for any more.
    pub fn has_given_up(&self) -> bool {
        self.bytes > LOOKED_THROUGH_BYTES_MAX
    }
}

fn in_line(line: &[u8]) -> Option<String> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let data = line.strip_prefix(b"data:")?;
    let mut id = None;
    read(data, &mut id, Some("response"));
    id
}

/// Reads `id` of an object, or of the object in its member `within`. That the document breaks off does not matter.
fn read(json: &[u8], id: &mut Option<String>, within: Option<&'static str>) {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // What was found until then is found.
    let _read = deserializer.deserialize_map(Object { id, within }).is_ok();
}

struct Object<'o> {
    id: &'o mut Option<String>,
    within: Option<&'static str>,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match (self.within, key.as_ref()) {
                (None, "id") => match map.next_value::<Id>()? {
                    Id(Some(id)) if !id.is_empty() => *self.id = Some(id),
                    Id(_) => {}
                },
                (Some(within), key) if within == key => {
                    map.next_value_seed(Seed(Object { id: &mut *self.id, within: None }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Seed<'o>(Object<'o>);

impl<'de> serde::de::DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self.0)
    }
}

/// An id, or something that is none.
struct Id(Option<String>);

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Id(value.as_str().map(str::to_owned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"object":"response", "id" : "resp_1","output":[{"id":"msg_1"}]}"#;
    const STREAM: &str = ": c\r\n\r\nevent: response.created\r\ndata: {\"type\":\"response.created\",\"item_id\":\"x\",\"response\":{\"object\":\"response\",\"id\":\"resp_1\",\"instructions\":\"long";

    #[test]
    fn an_id_is_found_as_soon_as_it_is_there() {
        for cut in 0..=DOCUMENT.len() {
            let is_there = cut > DOCUMENT.find("\",\"output").unwrap();
            assert_eq!(in_document(&DOCUMENT.as_bytes()[..cut]).is_some(), is_there, "cut at {cut}");
        }
        for (body, id) in [
            (r#"{"id":"a","id":"b"}"#, Some("b")),
            (r#"{"i\u0064":"a"}"#, Some("a")),
            (r#"{"id":7}"#, None),
            (r#"{"id":null,"data":{"id":"x"}}"#, None),
            (r#"{"id":""}"#, None),
            (r#"["id"]"#, None),
            ("\n\n {\"id\":\"a\"}", Some("a")),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(in_document(body.as_bytes()).as_deref(), id, "{body}");
        }
    }

    #[test]
    fn in_a_document_that_comes_in_pieces_it_is_found_whatever_the_reads_cut_and_given_up_after_many_bytes() {
        let bytes = DOCUMENT.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut ids = InDocument::default();
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let found = pieces.into_iter().find_map(|piece| ids.on_bytes(piece));
                assert_eq!(found.as_deref(), Some("resp_1"), "{first} {second}");
            }
        }
        let mut ids = InDocument::default();
        assert_eq!(ids.on_bytes(br#"{"output":""#), None);
        for _ in 0..3 {
            assert_eq!(ids.on_bytes(&vec![b'x'; 30_000]), None);
        }
        assert!(ids.has_given_up());
        assert_eq!(ids.on_bytes(br#"","id":"late"}"#), None);
    }

    #[test]
    fn in_a_stream_it_is_found_whatever_the_reads_cut() {
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let mut ids = InStream::default();
                let bytes = STREAM.as_bytes();
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let found: Vec<_> = pieces.into_iter().filter_map(|piece| ids.on_bytes(piece)).collect();
                assert_eq!(found.first().map(String::as_str), Some("resp_1"), "{first} {second}");
            }
        }
    }

    #[test]
    fn events_without_a_response_are_passed_over_and_after_many_bytes_it_is_given_up() {
        let mut ids = InStream::default();
        assert_eq!(
            ids.on_bytes(
                b"data: {\"type\":\"keepalive\"}\n\ndata: [DONE]\n\ndata: {\"response\":{\"id\":\"r\"}}\n\n"
            )
            .as_deref(),
            Some("r")
        );
        let mut ids = InStream::default();
        for _ in 0..3 {
            assert_eq!(ids.on_bytes(&vec![b'x'; 30_000]), None);
        }
        assert!(ids.has_given_up());
        assert_eq!(ids.on_bytes(b"\ndata: {\"response\":{\"id\":\"r\"}}\n\n"), None);
    }
}
