use proptest::prelude::*;

use super::*;

type Seen = (Option<Vec<u8>>, Vec<u8>, bool);

/// The events of a body that comes in these chunks, and whether it ended inside one.
fn split<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, bool) {
    let mut splitter = Splitter::new();
    let mut seen = Vec::new();
    let mut note = |event: Event<'_>| {
        seen.push((event.name.map(<[u8]>::to_vec), event.data.to_vec(), event.is_opaque));
    };
    for chunk in chunks {
        splitter.push(chunk, &mut note);
    }
    splitter.finish(&mut note);
    splitter.finish(&mut note);
    (seen, splitter.is_mid_event())
}

fn event(data: &str) -> Seen {
    (None, data.as_bytes().to_vec(), false)
}

#[test]
fn every_lawful_way_to_write_events_is_understood() {
    let bad_utf8: &[u8] = b"data: \xff\xfe\n\n";
    let table: [(&str, &[u8], Vec<Seen>); 19] = [
        ("LF", b"data: a\n\ndata: b\n\n", vec![event("a"), event("b")]),
        ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", vec![event("a"), event("b")]),
        ("CR", b"data: a\r\rdata: b\r\r", vec![event("a"), event("b")]),
        (
            "mixed",
            b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\rdata: d\n\r",
            ["a", "b", "c", "d"].map(event).to_vec(),
        ),
        ("no space", b"data:a\n\n", vec![event("a")]),
        ("one space of two", b"data:  a\n\n", vec![event(" a")]),
        ("several data lines", b"data: a\ndata: b\ndata\ndata:\n\n", vec![event("a\nb\n\n")]),
        ("comments", b": ping\n\n:\n\n: x\ndata: a\n\n", vec![event("a")]),
        ("id and retry only", b"id: 1\nretry: 10\n\ndata: a\n\n", vec![event("a")]),
        ("event only", b"event: ping\n\ndata: a\n\n", vec![event("a")]),
        ("BOM", b"\xEF\xBB\xBFdata: a\n\n", vec![event("a")]),
        ("half a BOM", b"\xEF\xBBdata: a\n\ndata: b\n\n", vec![event("b")]),
        ("BOM not at the start", b"data: a\n\n\xEF\xBB\xBFdata: b\n\n", vec![event("a")]),
        ("bad UTF-8", bad_utf8, vec![(None, vec![0xff, 0xfe], false)]),
        ("no blank line at the end", b"data: a\n\ndata: b", vec![event("a"), event("b")]),
        ("no blank line, line ended", b"data: a\n", vec![event("a")]),
        ("unknown fields", b"foo: x\ndatax: y\n data: z\n\ndata: a\n\n", vec![event("a")]),
        ("blank lines only", b"\n\n\r\n\r\r", vec![]),
        (
            "name",
            b"event: error\ndata: a\n\ndata: b\n\n",
            vec![(Some(b"error".to_vec()), b"a".to_vec(), false), event("b")],
        ),
    ];
    for (what, bytes, events) in table {
        assert_eq!(split([bytes]).0, events, "{what}");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(split(cut).0, events, "{what}, cut at {first} and {second}");
            }
        }
        assert_eq!(split(bytes.chunks(1)).0, events, "{what}, byte by byte");
    }
}

#[test]
fn the_end_of_an_event_is_the_end_of_its_blank_line() {
    let mut ends = Vec::new();
    let bytes = b"data: a\n\n: ping\r\n\r\ndata: b\r\n\r\ndata: c\r\r";
    Splitter::new().push(bytes, &mut |event| ends.push(event.end));
    assert_eq!(ends, [9, 30, 39]);
    assert_eq!(bytes.len(), 39);
}

#[test]
fn where_an_event_begins_is_told_whatever_comes_before_it_and_however_the_reads_cut_it() {
    let bytes = b"\xEF\xBB\xBFdata: a\n\n: ping\r\n\r\n: with it\r\nid: 1\r\ndata: b\r\n\r\nretry: 1\n\n\n\rdata: c\r: inside\r\r: x";
    let begins = [&b"data: a"[..], b"id: 1", b"data: c"]
        .map(|start| bytes.windows(start.len()).position(|window| window == start).unwrap());
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let (mut splitter, mut seen, mut before) = (Splitter::new(), Vec::new(), 0);
            for chunk in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                splitter.push(chunk, &mut |event| seen.push(before + event.end - event.size));
                before += chunk.len();
                if let Some(next) = begins.get(seen.len()).filter(|next| **next < before) {
                    assert_eq!(splitter.open(), before - next, "cut at {first} and {second}");
                }
            }
            assert_eq!(seen, begins, "cut at {first} and {second}");
            assert_eq!(splitter.open(), 0);
        }
    }
}

#[test]
fn an_event_inside_one_chunk_is_not_copied() {
    let chunk = b"data: {\"a\":1}\n\ndata: x\n\n".to_vec();
    let range = chunk.as_ptr_range();
    let mut splitter = Splitter::new();
    splitter.push(&chunk, &mut |event| assert!(range.contains(&event.data.as_ptr())));
    assert_eq!(splitter.begun.line.capacity() + splitter.begun.data.capacity(), 0);
}

#[test]
fn a_stream_is_mid_event_from_the_first_byte_of_a_line_to_the_blank_one() {
    for (bytes, is_mid) in [
        (&b""[..], false),
        (b"\xEF\xBB\xBF", false),
        (b"d", true),
        (b"data: a\n", true),
        (b"data: a\r", true),
        (b"data: a\n\n", false),
        (b"data: a\r\n\r", false),
        (b"data: a\r\n\r\n", false),
        (b": ping", true),
        (b"data: a\n\n:", true),
    ] {
        let mut splitter = Splitter::new();
        splitter.push(bytes, &mut |_| {});
        assert_eq!(splitter.is_mid_event(), is_mid, "{bytes:?}");
    }
    let mut splitter = Splitter::new();
    splitter.push(b"data: a\n", &mut |_| {});
    splitter.finish(&mut |_| {});
    assert!(splitter.is_mid_event(), "clients still wait for the blank line");
}

#[test]
fn an_event_above_the_limit_is_skipped_without_being_stored() {
    let large = [b"event: x\ndata: ", "y".repeat(3 * GATE_EVENT_BYTES_MAX).as_bytes(), b"\n\n"].concat();
    let stream = [&b"data: a\n\n"[..], &large, b"data: b\n\n"].concat();
    let expected = vec![event("a"), (Some(b"x".to_vec()), Vec::new(), true), event("b")];
    for size in [1000, 4096, GATE_EVENT_BYTES_MAX, stream.len()] {
        assert_eq!(split(stream.chunks(size)).0, expected, "chunks of {size}");
    }
    let mut splitter = Splitter::new();
    for chunk in large[..large.len() - 2].chunks(1000) {
        splitter.push(chunk, &mut |_| panic!("no event yet"));
        let begun = &splitter.begun;
        let kept = begun.line.capacity() + begun.data.capacity() + begun.name.capacity();
        assert!(kept <= 3 * GATE_EVENT_BYTES_MAX, "keeps {kept} bytes");
    }
    assert_eq!(splitter.begun.line.capacity(), 0);
    assert_eq!(splitter.unfinished(), large.len() - 2);
}

#[test]
fn the_largest_event_that_is_kept_has_exactly_the_limit() {
    let of_size = |size: usize| format!("data: {}\n\n", "z".repeat(size - 8));
    for (size, is_opaque) in [(GATE_EVENT_BYTES_MAX, false), (GATE_EVENT_BYTES_MAX + 1, true)] {
        let bytes = of_size(size);
        for cut in [1, 7, size / 2, size - 1, size] {
            let (seen, _) = split([&bytes.as_bytes()[..cut], &bytes.as_bytes()[cut..]]);
            assert_eq!(seen.len(), 1);
            assert_eq!(seen[0].2, is_opaque, "{size} bytes, cut at {cut}");
        }
    }
}

#[test]
fn an_event_that_is_not_kept_still_has_the_name_in_front_of_it_however_it_is_cut() {
    let data = format!("data: {}\n", "z".repeat(GATE_EVENT_BYTES_MAX));
    for (what, bytes, name) in [
        ("in front", format!("event: last\n{data}\n"), Some(b"last".to_vec())),
        ("behind", format!("{data}event: last\n\n"), None),
        ("both", format!("event: first\n{data}event: last\n\n"), Some(b"first".to_vec())),
        ("of the one before", format!("event: other\ndata: x\n\n{data}\n"), None),
    ] {
        let bytes = bytes.as_bytes();
        let around = [1, 5, 11, 12, 13, 20, 30, 100, GATE_EVENT_BYTES_MAX, bytes.len() - 3, bytes.len() - 1];
        for cut in around.into_iter().chain([bytes.len()]) {
            for chunk in [bytes.len(), 1000] {
                let chunks = bytes[..cut].chunks(chunk).chain(bytes[cut..].chunks(chunk));
                let (seen, _) = split(chunks);
                let last = seen.last().unwrap();
                assert_eq!((&last.0, last.2), (&name, true), "{what}, cut at {cut}, {chunk}");
                assert!(last.1.is_empty());
            }
        }
    }
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"data: x".to_vec()),
        Just(b"event: error".to_vec()),
        Just(b": c".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just("é世".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ]
}

/// What the standard says, on the whole body at once.
fn reference(bytes: &[u8]) -> Vec<Seen> {
    let body = bytes.strip_prefix(&BOM).unwrap_or(bytes);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'\r' | b'\n' => {
                lines.push(std::mem::take(&mut line));
                at += usize::from(body[at..].starts_with(b"\r\n"));
            }
            byte => line.push(byte),
        }
        at += 1;
    }
    lines.push(line);
    lines.push(Vec::new());
    let (mut name, mut data, mut seen) = (None, Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                seen.push((name, data.join(&b'\n'), false));
            }
            (name, data) = (None, Vec::new());
            continue;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        match field {
            b"data" => data.push(value),
            b"event" => name = Some(value),
            _ => {}
        }
    }
    seen
}

proptest! {
    #[test]
    fn events_do_not_depend_on_the_reads_and_are_those_of_the_standard(
        pieces in proptest::collection::vec(piece(), 0..30),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = pieces.concat();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks = at.windows(2).map(|w| &bytes[w[0]..w[1]]);
        let expected = reference(&bytes);
        prop_assert_eq!(&split([&bytes[..]]).0, &expected);
        prop_assert_eq!(&split(chunks).0, &expected);
        prop_assert_eq!(&split(bytes.chunks(1)).0, &expected);
    }
}
