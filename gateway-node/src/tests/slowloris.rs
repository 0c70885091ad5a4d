//! Callers that hold a connection for nothing: heads and bodies that trickle, heads that are too large, connections on
//! which nothing is asked.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::listening::*;
use super::support::*;

const BODY: &str = r#"{"model":"m","messages":[]}"#;

fn request() -> String {
    raw_chat(&format!("content-length: {}\r\n", BODY.len()), BODY)
}

/// Reads one answer of a connection that stays open.
async fn read_answer(tcp: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert!(tcp.read_buf(&mut answer).await.unwrap() > 0, "closed");
    }
    String::from_utf8(answer).unwrap()
}

/// Writes a byte every `pause` until the node closes; how long that took.
async fn trickle(tcp: &mut TcpStream, text: &str, pause: std::time::Duration) -> std::time::Duration {
    let began = Instant::now();
    let (mut read, mut write) = tcp.split();
    let writing = async {
        for byte in text.as_bytes() {
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(pause).await;
        }
        std::future::pending::<()>().await;
    };
    let mut rest = Vec::new();
    tokio::select! {
        () = writing => {}
        _ = read.read_to_end(&mut rest) => {}
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_is_given_up_after_half_a_minute_also_on_a_connection_that_was_used() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("a")]);
    let head = raw_chat(&"x-more: 1\r\n".repeat(50), "");
    let mut fresh = listening.tcp().await;
    let took = trickle(&mut fresh, &head, s(1)).await;
    assert!((s(30)..s(32)).contains(&took), "{took:?}");
    let mut used = listening.tcp().await;
    used.write_all(request().as_bytes()).await.unwrap();
    assert!(read_answer(&mut used).await.starts_with("HTTP/1.1 200"));
    sleep(s(100)).await;
    let took = trickle(&mut used, &head, s(1)).await;
    assert!((s(30)..s(32)).contains(&took), "{took:?}");
    assert_eq!(listening.node.called(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_is_asked_is_closed_and_one_that_waits_for_its_answer_is_not() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("a"), whole("a"), [vec![Act::Wait(s(230))], whole("slow")].concat()]);
    let mut tcp = listening.tcp().await;
    for _ in 0..2 {
        tcp.write_all(request().as_bytes()).await.unwrap();
        assert!(read_answer(&mut tcp).await.starts_with("HTTP/1.1 200"));
        sleep(s(110)).await;
    }
    tcp.write_all(request().as_bytes()).await.unwrap();
    assert!(read_answer(&mut tcp).await.ends_with(&whole_body("slow")));
    let idle = Instant::now();
    let closed = timeout(s(300), tcp.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok() && (s(120)..=s(240)).contains(&idle.elapsed()), "{:?}", idle.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_given_up_and_one_that_is_merely_slow_is_not() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("a")]);
    let body = format!(r#"{{"model":"m","messages":[],"x":"{}"}}"#, "x".repeat(200 * 1024));
    let head = raw_chat(&format!("connection: close\r\ncontent-length: {}\r\n", body.len()), "");
    for (bytes, pause, status) in [(1, s(5), "408"), (10 * 1024, s(25), "408"), (2 * 1024, s(1), "200")] {
        let mut tcp = listening.tcp().await;
        tcp.write_all(head.as_bytes()).await.unwrap();
        let (mut read, mut write) = tcp.split();
        let writing = async {
            for piece in body.as_bytes().chunks(bytes) {
                if write.write_all(piece).await.is_err() {
                    break;
                }
                sleep(pause).await;
            }
            std::future::pending::<()>().await;
        };
        let mut answer = Vec::new();
        tokio::select! {
            () = writing => {}
            _ = read.read_to_end(&mut answer) => {}
        }
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes} every {pause:?}: {answer}");
    }
    assert_eq!(listening.node.counted().1, [("request_timeout".into(), 2), ("served".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_large_or_has_too_many_headers_is_refused() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("a")]);
    let close = format!("connection: close\r\ncontent-length: {}\r\n", BODY.len());
    let large = |bytes| format!("{close}x-large: {}\r\n", "x".repeat(bytes));
    let many = |count| format!("{close}{}", "x-more: 1\r\n".repeat(count));
    for (headers, status) in
        [(large(60 * 1024), "200"), (large(70 * 1024), "431"), (many(90), "200"), (many(100), "431")]
    {
        let answer = listening.raw(raw_chat(&headers, BODY).as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{} bytes: {answer}", headers.len());
    }
}

#[tokio::test]
async fn an_http_2_request_with_too_large_a_head_is_refused_and_the_connection_goes_on() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("a")]);
    let (mut sender, _driver) = listening.http2().await;
    let mut large = over_http2(false);
    for n in 0..10 {
        let name: http::HeaderName = format!("x-large-{n}").parse().unwrap();
        large.headers_mut().insert(name, "x".repeat(8 * 1024).parse().unwrap());
    }
    // The client knows the limit and keeps it, or the node refuses.
    let refused = sender.send_request(large).await;
    assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status() == 431));
    assert_eq!(sender.send_request(over_http2(false)).await.unwrap().status(), 200);
    assert_eq!(listening.node.called(), [1, 0, 0]);
}
