//! Bytes → the elements of one JSON array, incrementally and without copying what lies inside one read: the other
//! form in which a stream may come. An element is reported as an event without a name, so that a dialect judges it
//! as it judges a server-sent one. Nothing is decoded or checked; whether an element is JSON is the dialect's matter.
//!
//! An element larger than [`GATE_EVENT_BYTES_MAX`] is reported without its data, as by [`super::sse`].

use std::borrow::Cow;

use common::limits::GATE_EVENT_BYTES_MAX;
use memchr::memchr2;

use super::sse::Event;

/// Splits an array into its elements.
#[derive(Debug, Default)]
pub struct Splitter {
    place: Place,
    /// Brackets that are open inside the element.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Bytes of the begun element, kept or not.
    size: usize,
    /// Those from earlier chunks, unless there are too many.
    kept: Vec<u8>,
    is_opaque: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// The bracket that opens the array has not come.
    #[default]
    Before,
    /// Between two elements.
    Between,
    /// In an element.
    Inside,
    /// The array is closed.
    After,
}

/// What a byte means for the element that it stands in or behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    No,
    /// The byte is its last.
    With,
    /// The byte before was its last.
    Before,
}

impl Splitter {
    /// A splitter at the start of a body.
    pub fn new() -> Self {
        Splitter::default()
    }

    /// Takes a chunk and reports each element that it completes.
    pub fn push(&mut self, chunk: &[u8], on_event: &mut dyn FnMut(Event<'_>)) {
        let mut start = 0;
        let mut at = 0;
        while let Some(byte) = chunk.get(at).copied() {
            match self.place {
                Place::Before => {
                    if byte == b'[' {
                        self.place = Place::Between;
                    }
                    at += 1;
                }
                Place::Between if byte == b']' => self.place = Place::After,
                Place::Between if byte == b',' || byte.is_ascii_whitespace() => at += 1,
                Place::Between => {
                    self.place = Place::Inside;
                    start = at;
                }
                Place::Inside => {
                    at = self.skip_text(chunk, at);
                    let Some(byte) = chunk.get(at).copied() else { break };
                    let ends = self.step(byte);
                    if ends != Ends::Before {
                        at += 1;
                    }
                    if ends != Ends::No {
                        self.report(chunk.get(start..at).unwrap_or_default(), at, on_event);
                    }
                }
                Place::After => return,
            }
        }
        if self.place == Place::Inside {
            self.keep(chunk.get(start..).unwrap_or_default());
        }
    }

    /// The body is over: an element that was begun is reported as it is.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        if self.place == Place::Inside {
            self.report(&[], 0, on_event);
        }
    }

    /// Whether the whole array has come.
    pub fn is_closed(&self) -> bool {
        self.place == Place::After
    }

    /// Bytes of the element that has no end yet.
    pub fn unfinished(&self) -> usize {
        self.size
    }

    /// Where the next byte stands that means something: most bytes of an element are text.
    fn skip_text(&self, chunk: &[u8], at: usize) -> usize {
        if !self.in_string || self.is_escaped {
            return at;
        }
        let rest = chunk.get(at..).unwrap_or_default();
        memchr2(b'"', b'\\', rest).map_or(chunk.len(), |skipped| at + skipped)
    }

    fn step(&mut self, byte: u8) -> Ends {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return if self.depth == 0 && !self.in_string { Ends::With } else { Ends::No };
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return if self.depth == 0 { Ends::With } else { Ends::No };
            }
            b',' | b']' if self.depth == 0 => return Ends::Before,
            _ => {}
        }
        Ends::No
    }

    /// Copies what the begun element has in the chunk that goes away now.
    fn keep(&mut self, part: &[u8]) {
        self.size += part.len();
        if self.size > GATE_EVENT_BYTES_MAX {
            self.is_opaque = true;
            self.kept = Vec::new();
        }
        if !self.is_opaque {
            self.kept.extend_from_slice(part);
        }
    }

    fn report(&mut self, tail: &[u8], end: usize, on_event: &mut dyn FnMut(Event<'_>)) {
        let size = self.size + tail.len();
        let is_opaque = self.is_opaque || size > GATE_EVENT_BYTES_MAX;
        let data = if is_opaque {
            Cow::Borrowed(&[][..])
        } else if self.kept.is_empty() {
            Cow::Borrowed(tail)
        } else {
            self.kept.extend_from_slice(tail);
            Cow::Borrowed(self.kept.as_slice())
        };
        on_event(Event { name: None, data, end, size, is_opaque });
        *self = Splitter { place: Place::Between, ..Splitter::default() };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> (Vec<String>, bool) {
        let mut splitter = Splitter::new();
        let mut seen = Vec::new();
        let mut on_event = |event: Event<'_>| {
            seen.push(if event.is_opaque {
                "opaque".to_owned()
            } else {
                String::from_utf8_lossy(&event.data).into_owned()
            });
        };
        for chunk in chunks {
            splitter.push(chunk, &mut on_event);
        }
        splitter.finish(&mut on_event);
        (seen, splitter.is_closed())
    }

    #[test]
    fn an_array_is_split_the_same_however_the_reads_cut_it() {
        let array = "\r\n[{\"a\": \"}],{\\\"\\\\\"},\r\n[1,[2]] ,\"x,]\", 12,null\r\n]\r\n trailing";
        let expected = ["{\"a\": \"}],{\\\"\\\\\"}", "[1,[2]]", "\"x,]\"", "12", "null\r\n"];
        let expected = (expected.map(str::to_owned).to_vec(), true);
        let bytes = array.as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(split(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(split(&single), expected);
    }

    #[test]
    fn an_array_that_breaks_off_is_not_closed_and_shows_what_came() {
        assert_eq!(split(&[b"[{\"a\":1},"]), (vec!["{\"a\":1}".to_owned()], false));
        assert_eq!(split(&[b"[{\"a\":1},{\"b"]), (vec!["{\"a\":1}".to_owned(), "{\"b".to_owned()], false));
        assert_eq!(split(&[b"[]"]), (vec![], true));
        assert_eq!(split(&[b""]), (vec![], false));
    }

    #[test]
    fn where_an_element_ends_in_its_chunk_is_told() {
        let mut ends = Vec::new();
        Splitter::new().push(b"[{},\r\n{}]", &mut |event| ends.push(event.end));
        assert_eq!(ends, [3, 8]);
    }

    #[test]
    fn a_large_element_is_told_without_its_data() {
        let large = format!("[\"{}\",1]", "x".repeat(GATE_EVENT_BYTES_MAX));
        let expected = (vec!["opaque".to_owned(), "1".to_owned()], true);
        assert_eq!(split(&[large.as_bytes()]), expected);
        let pieces: Vec<&[u8]> = large.as_bytes().chunks(1000).collect();
        assert_eq!(split(&pieces), expected);
        let mut splitter = Splitter::new();
        splitter.push(&large.as_bytes()[..100], &mut |_| {});
        assert_eq!(splitter.unfinished(), 99);
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Into::into),
            any::<bool>().prop_map(Into::into),
            "[\"\\\\\\[\\]{},a\u{e9}]{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                proptest::collection::vec(("[\"\\\\}a]{0,3}", inner), 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_elements_are_those_that_a_parser_sees(
            values in proptest::collection::vec(value(), 0..5),
            is_pretty: bool,
            size in 1..40_usize,
        ) {
            let array = serde_json::Value::Array(values.clone());
            let json = if is_pretty { format!("{array:#}") } else { array.to_string() };
            let chunks: Vec<&[u8]> = json.as_bytes().chunks(size).collect();
            let (seen, is_closed) = split(&chunks);
            let seen: Vec<serde_json::Value> =
                seen.iter().map(|element| serde_json::from_str(element).unwrap()).collect();
            prop_assert_eq!((seen, is_closed), (values, true));
        }
    }
}
