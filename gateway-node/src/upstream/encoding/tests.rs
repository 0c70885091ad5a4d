use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;

const EVENTS: [&str; 3] = [
    "data: {\"n\":1,\"text\":\"Es war einmal\"}\n\n",
    "data: {\"n\":2,\"text\":\"ein König, ein König\"}\n\n",
    "data: [DONE]\n\n",
];

/// `EVENTS` as the reference encoder of brotli has them, flushed after each, and its end.
const BROTLI: [&str; 4] = [
    "8b1280646174613a207b226e223a312c2274657874223a224573207761722065696e6d616c227d0a0a",
    "700100d27960c738f0a6a7070aa79569676ebd445666ab64860b84a51f100419a094e6130356c657380d",
    "6800805f5261ab2b09504493484955f83100",
    "03",
];
/// 4 MiB of zeros.
const BROTLI_BOMB: &str = "9bffff3ff82700e2b14020f7fe07";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// How a body is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gzip,
    Zlib,
    Raw,
    Brotli,
    Zstd,
}
use Kind::{Brotli, Gzip, Raw, Zlib, Zstd};

const KINDS: [Kind; 5] = [Gzip, Zlib, Raw, Brotli, Zstd];
/// Those of which an encoder is at hand.
const MADE: [Kind; 4] = [Gzip, Zlib, Raw, Zstd];

fn coding(kind: Kind) -> Coding {
    match kind {
        Gzip => Coding::Gzip,
        Zlib | Raw => Coding::Deflate,
        Brotli => Coding::Brotli,
        Zstd => Coding::Zstd,
    }
}

fn segments<E: std::io::Write>(
    mut encoder: E,
    written: fn(&mut E) -> &mut Vec<u8>,
    finish: fn(E) -> std::io::Result<Vec<u8>>,
    pieces: &[&[u8]],
) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    for piece in pieces {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        segments.push(std::mem::take(written(&mut encoder)));
    }
    segments.push(finish(encoder).unwrap());
    segments
}

/// The pieces as an upstream sends them that flushes after each, and the end.
fn encoded(kind: Kind, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let level = Compression::default();
    match kind {
        Gzip => segments(GzEncoder::new(Vec::new(), level), GzEncoder::get_mut, GzEncoder::finish, pieces),
        Zlib => {
            segments(ZlibEncoder::new(Vec::new(), level), ZlibEncoder::get_mut, ZlibEncoder::finish, pieces)
        }
        Raw => segments(
            DeflateEncoder::new(Vec::new(), level),
            DeflateEncoder::get_mut,
            DeflateEncoder::finish,
            pieces,
        ),
        Zstd => {
            let encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            segments(encoder, |encoder| encoder.get_mut(), |encoder| encoder.finish(), pieces)
        }
        Brotli => unreachable!("there is no encoder"),
    }
}

fn events(kind: Kind) -> Vec<Vec<u8>> {
    match kind {
        Brotli => BROTLI.map(hex).to_vec(),
        _ => encoded(kind, &EVENTS.map(str::as_bytes)),
    }
}

fn decoder(kinds: &[Kind]) -> Decoder {
    Decoder::new(&kinds.iter().copied().map(coding).collect::<Vec<_>>()).unwrap()
}

/// Pushes a chunk and takes all that is in it.
fn take(decoder: &mut Decoder, chunk: &[u8]) -> Result<Vec<u8>, Broken> {
    decoder.push(Bytes::copy_from_slice(chunk));
    let mut taken = Vec::new();
    while let Some(decoded) = decoder.next()? {
        assert!((1..=STEP_BYTES).contains(&decoded.len()));
        taken.extend_from_slice(&decoded);
    }
    Ok(taken)
}

#[test]
fn br_109_what_is_flushed_comes_through_at_once() {
    for kind in KINDS {
        let mut decoder = decoder(&[kind]);
        let segments = events(kind);
        for (segment, event) in segments.iter().zip(EVENTS) {
            assert_eq!(take(&mut decoder, segment).unwrap(), event.as_bytes(), "{kind:?}");
            assert!(!decoder.may_end(), "{kind:?} is not at its end");
        }
        assert_eq!(take(&mut decoder, &segments[3]), Ok(Vec::new()), "{kind:?}");
        assert!(decoder.may_end(), "{kind:?}");
    }
}

#[test]
fn how_the_reads_cut_it_changes_nothing_and_every_cut_short_is_seen() {
    for kind in KINDS {
        let all = events(kind).concat();
        let mut decoder = decoder(&[kind]);
        let mut taken = Vec::new();
        for (at, byte) in all.iter().enumerate() {
            assert_eq!(decoder.may_end(), at == 0, "{kind:?} at {at}");
            taken.extend(take(&mut decoder, &[*byte]).unwrap());
        }
        assert_eq!(taken, EVENTS.concat().as_bytes(), "{kind:?}");
        assert!(decoder.may_end(), "{kind:?}");
    }
}

#[test]
fn br_110_a_plain_body_with_a_label_is_told_and_so_is_another_encoding() {
    let plain: [&[u8]; 4] =
        [b"{\"choices\":[{\"message\":{}}]}", b"data: {\"choices\":[]}\n\n", b"<html>", b"{}"];
    for kind in KINDS {
        let others = KINDS.into_iter().filter(|other| coding(*other) != coding(kind)).map(events);
        for body in plain.iter().map(|body| body.to_vec()).chain(others.map(|other| other.concat())) {
            let mut decoder = decoder(&[kind]);
            let taken = take(&mut decoder, &body);
            assert!(taken.is_err() || !decoder.may_end(), "{body:?} passes as {kind:?}: {taken:?}");
        }
    }
}

#[test]
fn encodings_on_top_of_each_other_are_undone_in_their_order() {
    for inner in KINDS {
        for outer in MADE {
            let segments = events(inner);
            let pieces: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
            let segments = encoded(outer, &pieces);
            let mut decoder = decoder(&[inner, outer]);
            for (segment, event) in segments.iter().zip(EVENTS) {
                assert_eq!(take(&mut decoder, segment).unwrap(), event.as_bytes(), "{inner:?} in {outer:?}");
            }
            for segment in &segments[3..] {
                assert!(!decoder.may_end());
                assert_eq!(take(&mut decoder, segment), Ok(Vec::new()));
            }
            assert!(decoder.may_end(), "{inner:?} in {outer:?}");
        }
    }
}

#[test]
fn a_bomb_makes_no_more_at_a_time_than_anything_else() {
    let zeros = vec![0; 4 << 20];
    let bombs = MADE.map(|kind| (kind, encoded(kind, &[&zeros]).concat()));
    for (kind, bomb) in bombs.into_iter().chain([(Brotli, hex(BROTLI_BOMB))]) {
        assert!(bomb.len() < 8 * 1024, "{kind:?}");
        assert_eq!(take(&mut decoder(&[kind]), &bomb).unwrap().len(), zeros.len(), "{kind:?}");
        // A bomb in a bomb: what comes out of the outer one is taken as the inner one needs it.
        let twice = encoded(Gzip, &[&bomb]).concat();
        assert_eq!(take(&mut decoder(&[kind, Gzip]), &twice).unwrap().len(), zeros.len(), "{kind:?}");
    }
}

#[test]
fn bytes_without_end_that_say_nothing_are_broken() {
    let empty_block = [0x00, 0x00, 0x00, 0xff, 0xff];
    let mut raw = decoder(&[Raw]);
    let blocks = empty_block.repeat(1000);
    let broken = (0..100).find(|_| take(&mut raw, &blocks).is_err());
    assert_eq!(broken, Some(SILENT_BYTES_MAX / blocks.len()));
    let mut long_name = decoder(&[Gzip]);
    take(&mut long_name, &[0x1f, 0x8b, 8, HAS_NAME, 0, 0, 0, 0, 0, 3]).unwrap();
    assert!((0..100).any(|_| take(&mut long_name, &[b'x'; 4096]).is_err()));
}

const HAS_NAME: u8 = 1 << 3;

#[test]
fn gzip_comes_with_all_its_fields_in_several_members_and_with_something_behind_them() {
    let header = flate2::GzBuilder::new().filename("name").comment("comment").extra(vec![1, 2, 3]);
    let mut first = header.write(Vec::new(), Compression::default());
    first.write_all(b"first ").unwrap();
    let mut first = first.finish().unwrap();
    // A checksum of the header, which no encoder at hand writes: behind name and comment.
    first[3] |= 1 << 1;
    let end = memchr::memmem::find(&first, b"comment\0").unwrap() + 8;
    first.splice(end..end, [7, 7]);
    let second = encoded(Gzip, &[b"second"]).concat();
    for behind in [&b""[..], b"\0\0\0", b"garbage"] {
        let mut decoder = decoder(&[Gzip]);
        let body = [&first, &second, behind].concat();
        assert_eq!(take(&mut decoder, &body).unwrap(), b"first second", "{behind:?}");
        assert!(decoder.may_end());
    }
    for (at, what) in [(3, "a reserved flag"), (2, "another method"), (second.len() - 5, "a wrong checksum")]
    {
        let mut wrong = second.clone();
        wrong[at] ^= 0x80;
        assert_eq!(take(&mut decoder(&[Gzip]), &wrong), Err(Broken), "{what}");
    }
}

#[test]
fn what_follows_a_whole_body_is_passed_over() {
    for kind in KINDS {
        let mut decoder = decoder(&[kind]);
        let body = [events(kind).concat(), b"xyz".to_vec()].concat();
        assert_eq!(take(&mut decoder, &body).unwrap(), EVENTS.concat().as_bytes(), "{kind:?}");
        assert_eq!(take(&mut decoder, b"xyz"), Ok(Vec::new()), "{kind:?}");
        assert!(decoder.may_end(), "{kind:?}");
    }
}

#[test]
fn what_follows_a_whole_zstd_frame_is_told_from_a_frame_however_the_reads_cut_it() {
    let frame = ::zstd::encode_all(&b"first"[..], 3).unwrap();
    let skipped = [&b"\x5e\x2a\x4d\x18\x02\0\0\0"[..], b"xx"].concat();
    for (behind, expected) in [
        (frame.clone(), Some("firstfirst")),
        ([skipped, frame.clone()].concat(), Some("firstfirst")),
        (b"(\xb5garbage".to_vec(), Some("first")),
        (b"(\xb5/\xfe".to_vec(), Some("first")),
        (b"(\xb5/".to_vec(), Some("first")),
        ([&b"(\xb5/\xfd"[..], &[0xff; 20]].concat(), None),
    ] {
        let body = [&frame[..], &behind].concat();
        for size in 1..=body.len() {
            let mut decoder = Decoder::new(&[Coding::Zstd]).unwrap();
            let mut decoded = Vec::new();
            let taken = body.chunks(size).try_for_each(|piece| {
                decoded.extend(take(&mut decoder, piece)?);
                Ok::<_, Broken>(())
            });
            let seen = taken.is_ok().then(|| String::from_utf8(decoded).unwrap());
            assert_eq!(seen.as_deref(), expected, "{behind:?} in reads of {size}");
            assert!(expected.is_none() || decoder.may_end());
        }
    }
}

#[test]
fn the_headers_name_encodings_in_one_line_or_in_several() {
    use Coding::{Deflate, Gzip};
    for (values, expected) in [
        (&["gzip"][..], Ok(vec![Gzip])),
        (&["GZIP , identity"], Ok(vec![Gzip])),
        (&["x-gzip", "br, zstd"], Ok(vec![Gzip, Coding::Brotli, Coding::Zstd])),
        (&["deflate"], Ok(vec![Deflate])),
        (&["identity", ""], Ok(vec![])),
        (&[], Ok(vec![])),
        (&["compress"], Err(Unknown)),
        (&["gzip, aes128gcm"], Err(Unknown)),
        (&["gzip, gzip, gzip, gzip"], Err(Unknown)),
    ] {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
        }
        headers.insert(header::CONTENT_LENGTH, 7.into());
        assert_eq!(named(&headers), expected, "{values:?}");
        strip(&mut headers);
        assert!(headers.is_empty());
    }
}

proptest! {
    #[test]
    fn what_was_encoded_comes_out_as_it_was(
        pieces in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..3000), 0..4),
        chunk in 1usize..4000,
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        for kind in MADE {
            let all = encoded(kind, &pieces).concat();
            let mut decoder = decoder(&[kind]);
            let mut taken = Vec::new();
            for chunk in all.chunks(chunk) {
                taken.extend(take(&mut decoder, chunk).unwrap());
            }
            prop_assert_eq!(&taken, &pieces.concat());
            prop_assert!(decoder.may_end());
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_fall_over(body: Vec<u8>, cut in 0usize..200, flip in 0usize..200, with: u8) {
        for kind in KINDS {
            let _ = take(&mut decoder(&[kind]), &body);
            let mut almost = events(kind).concat();
            let at = flip % almost.len();
            almost[at] = with;
            almost.truncate(cut);
            let _ = take(&mut decoder(&[kind]), &almost);
        }
    }
}
