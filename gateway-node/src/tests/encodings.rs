//! Answers in a content encoding that nobody asked for, through the whole path: they are decoded as they come, and what
//! is not what its label says never reaches a caller.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::support::*;

/// What an upstream does that flushes after each piece: the label, the pieces, the end of the encoding.
fn encoded(coding: &str, pieces: &[String]) -> Vec<Vec<u8>> {
    macro_rules! segments {
        ($encoder:expr) => {{
            let mut encoder = $encoder;
            let mut segments = Vec::new();
            for piece in pieces {
                encoder.write_all(piece.as_bytes()).unwrap();
                encoder.flush().unwrap();
                segments.push(std::mem::take(encoder.get_mut()));
            }
            segments.push(encoder.finish().unwrap());
            segments
        }};
    }
    let level = Compression::default();
    match coding {
        "gzip" => segments!(GzEncoder::new(Vec::new(), level)),
        "deflate" => segments!(ZlibEncoder::new(Vec::new(), level)),
        "raw deflate" => segments!(DeflateEncoder::new(Vec::new(), level)),
        "zstd" => segments!(zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap()),
        _ => panic!("no encoder for {coding}"),
    }
}

/// Brotli without an encoder: blocks that are stored as they are.
fn brotli(pieces: &[String]) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    for piece in pieces {
        assert!((1..=0x1_0000).contains(&piece.len()));
        // Not the last block, four nibbles of length, not compressed; the first one begins with the window.
        let length = u32::try_from(piece.len() - 1).unwrap() << 3 | 1 << 19;
        let bits = if segments.is_empty() { length << 1 } else { length };
        segments.push([&bits.to_le_bytes()[..3], piece.as_bytes()].concat());
    }
    segments.push(vec![3]);
    segments
}

const CODINGS: [&str; 5] = ["gzip", "deflate", "raw deflate", "zstd", "br"];

fn of(coding: &str, pieces: &[String]) -> Vec<Vec<u8>> {
    if coding == "br" { brotli(pieces) } else { encoded(coding, pieces) }
}

fn label(coding: &str) -> &str {
    coding.trim_start_matches("raw ")
}

fn bytes(piece: &[u8]) -> Act {
    Act::Send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
}

fn head(media: &str, label: &str) -> Act {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-encoding: {label}\r\ncontent-digest: x\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    Act::Send(head.into_bytes())
}

fn events(text: &str) -> Vec<String> {
    vec![role(), content(text), finish(), DONE.to_owned()]
}

/// A document with its length.
fn document(status: u16, label: &str, body: &[u8]) -> Script {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-encoding: {label}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    vec![Act::Send([head.as_bytes(), body].concat())]
}

#[tokio::test(start_paused = true)]
async fn br_109_a_stream_in_an_encoding_that_was_not_asked_for_reaches_the_caller_decoded_event_by_event() {
    for coding in CODINGS {
        let node = Node::new(1);
        let segments = of(coding, &events("grüße"));
        let mut script = vec![head("text/event-stream", label(coding))];
        for segment in &segments {
            script.extend([bytes(segment), Act::Wait(s(10))]);
        }
        script.push(end());
        node.up("a").does([script]);
        let mut answered = node.call(true).await;
        assert_eq!(answered.status, 200, "{coding}");
        assert_eq!(answered.after, s(10), "{coding}: with the first content");
        for name in ["content-encoding", "content-length", "content-digest"] {
            assert_eq!(answered.header(name), None, "{coding}");
        }
        // The role is held until there is content; from then on each comes when it is sent.
        for (event, at) in events("grüße").into_iter().zip([10, 10, 20, 30]) {
            assert_eq!(answered.next().await.unwrap().unwrap(), event, "{coding}");
            assert_eq!(answered.began.elapsed(), s(at), "{coding}: {event}");
        }
        assert!(answered.next().await.is_none(), "{coding}");
        assert_eq!(node.counted().1, [("served".into(), 1)].into(), "{coding}");
    }
}

#[tokio::test(start_paused = true)]
async fn br_110_header_and_body_of_a_whole_answer_agree() {
    for coding in CODINGS {
        let node = Node::new(1);
        let body = of(coding, &[whole_body("x")]).concat();
        node.up("a").does([document(200, label(coding), &body)]);
        let answered = node.call(false).await;
        assert_eq!(answered.header("content-encoding"), None, "{coding}");
        assert_eq!(answered.header("content-length"), Some(whole_body("x").len().to_string().as_str()));
        assert_eq!(answered.text().await.0, whole_body("x"), "{coding}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_what_its_label_says_goes_to_the_next_channel_and_so_does_what_nobody_knows() {
    let gzip = of("gzip", &events("x"));
    let cut_short = |segments: &[Vec<u8>]| {
        let mut script = vec![head("text/event-stream", "gzip")];
        script.extend(segments.iter().map(|segment| bytes(segment)));
        script.push(end());
        script
    };
    let mut broken = gzip[..1].to_vec();
    broken.push(b"garbage that is no deflate block".to_vec());
    let plain = [events("x").concat(), whole_body("x")];
    let in_gzip = of("gzip", &[whole_body("x")]).concat();
    let table = [
        ("a plain stream", true, vec![head("text/event-stream", "br"), chunk(&plain[0]), end()]),
        ("a plain document", false, document(200, "br", plain[1].as_bytes())),
        ("a plain document with gzip's name", false, document(200, "gzip", plain[1].as_bytes())),
        ("another encoding", false, document(200, "zstd", &in_gzip)),
        ("a stream without its end", true, cut_short(&gzip[..1])),
        ("broken", true, cut_short(&broken)),
        ("a document without its end", false, document(200, "gzip", &in_gzip[..in_gzip.len() - 4])),
        ("nothing that is known", false, document(200, "compress", &in_gzip)),
        ("too many at once", false, document(200, "gzip, gzip, gzip, gzip", &in_gzip)),
    ];
    for (what, is_stream, script) in table {
        let node = Node::new(2);
        node.up("a").does([script]);
        node.up("b").does([if is_stream { stream("b") } else { whole("b") }]);
        let answered = node.call(is_stream).await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("x-sluice-channel")),
            (200, Some("b")),
            "{what}"
        );
        let expected = if is_stream { stream_bytes("b") } else { whole_body("b") };
        assert_eq!(answered.text().await.0, expected, "{what}");
        assert_eq!(node.counted().0, [("a malformed".into(), 1), ("b ok".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_encoded_stream_that_is_broken_after_commit_ends_in_the_error_frame() {
    let gzip = of("gzip", &events("x"));
    let mut broken = gzip[..2].to_vec();
    broken.push(b"garbage that is no deflate block".to_vec());
    for (what, segments) in [("cut", gzip[..2].to_vec()), ("broken", broken)] {
        let node = Node::new(2);
        let mut script = vec![head("text/event-stream", "gzip")];
        script.extend(segments.iter().map(|segment| bytes(segment)));
        script.push(end());
        node.up("a").does([script]);
        let (text, _) = node.call(true).await.text().await;
        let rest = text.strip_prefix(&[role(), content("x")].concat()).unwrap();
        assert!(rest.contains("upstream_stream_error"), "{what}: {rest}");
        assert_eq!(node.counted().0, [("a cut".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_document_is_decoded_on_the_way_and_one_that_is_cut_aborts_the_connection() {
    let body = whole_body(&"x".repeat(6 << 20));
    let gzip = of("gzip", std::slice::from_ref(&body)).concat();
    let node = Node::new(1);
    node.up("a").does([document(200, "gzip", &gzip), document(200, "gzip", &gzip[..gzip.len() - 9])]);
    let answered = node.call(false).await;
    assert_eq!(answered.header("content-length"), None, "nobody knows it");
    assert!(answered.text().await.0 == body);
    let mut answered = node.call(false).await;
    let mut last = None;
    while let Some(piece) = answered.next().await {
        last = Some(piece.is_ok());
    }
    assert_eq!(last, Some(false), "the caller must not take it for whole");
    assert_eq!(node.counted().0, [("a cut".into(), 1), ("a ok".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_encoded_error_says_what_it_says_within_the_limit_of_what_is_read() {
    let quota = r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let node = Node::new(2);
    node.up("b").does([whole("b")]);
    for coding in CODINGS {
        let node = Node::new(2);
        node.up("a").does([document(429, label(coding), &of(coding, &[quota.into()]).concat())]);
        node.up("b").does([whole("b")]);
        assert_eq!(node.call(false).await.text().await.0, whole_body("b"), "{coding}");
        assert_eq!(node.counted().0, [("a balance".into(), 1), ("b ok".into(), 1)].into(), "{coding}");
    }
    // Behind more bytes than are read nothing is found, however few they were on the wire; nor in what is not known.
    let bomb = quota.replacen('{', &format!("{{\"x\":\"{}\",", "x".repeat(64 << 20)), 1);
    let bomb = of("gzip", &[bomb]).concat();
    for script in [document(429, "gzip", &bomb), document(429, "compress", quota.as_bytes())] {
        node.up("a").does([script]);
        assert_eq!(node.call(false).await.text().await.0, whole_body("b"));
        assert_eq!(node.counted().0, [("a rate_limited".into(), 1), ("b ok".into(), 1)].into());
        tokio::time::sleep(s(60)).await;
    }
}
