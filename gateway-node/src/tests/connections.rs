//! Connections of callers, as the listener serves them: HTTP/1.1 and HTTP/2, slow ones, and the end in order.

use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::listening::*;
use super::support::*;

const BODY: &str = r#"{"model":"m","messages":[]}"#;

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_say_what_it_wants_is_given_up_after_half_a_minute() {
    let listening = listening(1).await;
    for begin in ["", "P", "PRI * HTTP/2.0\r\n", "POST /v1/chat"] {
        let mut tcp = listening.tcp().await;
        tcp.write_all(begin.as_bytes()).await.unwrap();
        let closed = timeout(s(40), tcp.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "{begin:?} is still connected");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_outlives_the_time_for_the_head() {
    let listening = listening(1).await;
    listening.node.up("a").does([[vec![Act::Wait(s(100))], whole("a")].concat()]);
    let answer = listening
        .raw(raw_chat(&format!("connection: close\r\ncontent-length: {}\r\n", BODY.len()), BODY).as_bytes())
        .await;
    assert!(answer.ends_with(&whole_body("a")), "{answer}");
}

#[tokio::test]
async fn br_069_br_072_an_http_2_stream_that_is_reset_ends_its_upstream_request_and_no_other() {
    let held = || vec![sse_head(), chunk(&role()), Act::Hang];
    let streaming = || vec![sse_head(), chunk(&content("x")), Act::Hang];
    for (phase, script) in [("waiting", vec![Act::Hang]), ("held", held()), ("streaming", streaming())] {
        let listening = listening(2).await;
        let (mut sender, _driver) = listening.http2().await;
        listening.node.up("a").does([script, whole("a")]);
        match phase {
            "streaming" => drop(sender.send_request(over_http2(true)).await.unwrap()),
            _ => assert!(timeout(ms(200), sender.send_request(over_http2(true))).await.is_err()),
        }
        listening.node.until_closed("a", s(1)).await;
        until_idle(&listening.node).await;
        let next = sender.send_request(over_http2(false)).await.unwrap();
        assert_eq!(next.into_body().collect().await.unwrap().to_bytes(), whole_body("a"));
        let (attempts, requests) = listening.node.counted();
        assert_eq!(attempts, [("a canceled".into(), 1), ("a ok".into(), 1)].into(), "{phase}");
        assert_eq!(requests, [("canceled".into(), 1), ("served".into(), 1)].into(), "{phase}");
        assert_eq!(listening.node.gateway.in_flight(), 0, "{phase}");
    }
}

#[tokio::test]
async fn br_069_a_connection_that_is_lost_ends_the_upstream_requests_of_all_its_streams() {
    let listening = listening(2).await;
    listening.node.up("a").does([vec![Act::Hang]]);
    let (sender, driver) = listening.http2().await;
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let mut sender = sender.clone();
        calls.spawn(async move { sender.send_request(over_http2(true)).await.is_ok() });
    }
    let arrived = async {
        while listening.node.called() != [3, 0, 0] {
            sleep(ms(1)).await;
        }
    };
    timeout(s(5), arrived).await.expect("all three are asked");
    drop((driver, sender, calls));
    until_idle(&listening.node).await;
    listening.node.until_closed("a", s(1)).await;
    assert_eq!(listening.node.counted().1, [("canceled".into(), 3)].into());
}

#[tokio::test]
async fn at_the_end_an_http_2_connection_finishes_its_streams_and_takes_no_new_ones() {
    let mut listening = listening(1).await;
    let slow =
        vec![sse_head(), chunk(&content("x")), Act::Wait(ms(300)), chunk(&finish()), chunk(DONE), end()];
    listening.node.up("a").does([slow]);
    let (mut sender, _driver) = listening.http2().await;
    let answered = sender.send_request(over_http2(true)).await.unwrap();
    listening.stop.cancel();
    sleep(ms(100)).await;
    assert!(sender.send_request(over_http2(true)).await.is_err(), "the connection takes no more");
    let text = answered.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, [content("x"), finish(), DONE.into()].concat());
    assert!(timeout(s(1), listening.served.join_next()).await.is_ok(), "nothing is left to wait for");
    assert_eq!(listening.node.called(), [1, 0, 0]);
}

#[tokio::test]
async fn what_does_not_finish_within_the_grace_period_is_cut_and_counted() {
    let mut listening = listening_with(1, ms(50)).await;
    listening.node.up("a").does([vec![sse_head(), chunk(&content("x")), Act::Hang]]);
    let (mut sender, _driver) = listening.http2().await;
    let answered = sender.send_request(over_http2(true)).await.unwrap();
    listening.stop.cancel();
    assert!(timeout(s(5), listening.served.join_next()).await.is_ok());
    assert!(answered.into_body().collect().await.is_err(), "no clean end");
    until_idle(&listening.node).await;
    assert_eq!(listening.node.counted().1, [("canceled".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn br_118_a_caller_that_writes_all_of_a_body_above_the_limit_still_reads_why_it_is_refused() {
    let listening = listening(1).await;
    let body = format!(r#"{{"model":"m","x":"{}"}}"#, "x".repeat(33 * 1024 * 1024));
    let announced = raw_chat(&format!("connection: close\r\ncontent-length: {}\r\n", body.len()), &body);
    let chunked = raw_chat(
        "connection: close\r\ntransfer-encoding: chunked\r\n",
        &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    );
    for request in [announced, chunked] {
        let mut tcp = listening.tcp().await;
        tcp.write_all(request.as_bytes()).await.expect("the node takes the body");
        let mut answer = String::new();
        timeout(s(60), tcp.read_to_string(&mut answer)).await.expect("an end").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("32 MiB"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_come_chunked_pipelined_and_with_an_expectation() {
    let listening = listening(1).await;
    listening.node.up("a").does([whole("1"), whole("2"), whole("3")]);
    let (first, second) = BODY.split_at(9);
    let chunked = raw_chat(
        "transfer-encoding: chunked\r\n",
        &format!(
            "{:x}\r\n{first}\r\n{:x};e=1\r\n{second}\r\n0\r\nx-trailer: 1\r\n\r\n",
            first.len(),
            second.len()
        ),
    );
    let expecting = raw_chat(&format!("expect: 100-continue\r\ncontent-length: {}\r\n", BODY.len()), BODY);
    let last = raw_chat(&format!("connection: close\r\ncontent-length: {}\r\n", BODY.len()), BODY);
    let answers = listening.raw([chunked, expecting, last].concat().as_bytes()).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
    let places: Vec<_> = ["1", "2", "3"].map(|n| answers.find(&whole_body(n)).unwrap()).into();
    assert!(places.is_sorted(), "{answers}");
    for call in listening.node.up("a").calls() {
        assert_eq!(call.body, BODY.replace("\"m\"", "\"m-at-a\""));
        assert!(!call.head.contains("expect") && !call.head.contains("transfer-encoding"), "{}", call.head);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_refused_for_its_key_is_told_so_whether_it_sends_its_body_or_asks_first() {
    let listening = listening(1).await;
    let large = "x".repeat(8 * 1024 * 1024);
    let wrong = raw_chat(&format!("content-length: {}\r\n", large.len()), &large).replace(KEY, "sk-wrong");
    let mut tcp = listening.tcp().await;
    tcp.write_all(wrong.as_bytes()).await.expect("the node takes the body");
    let mut answer = Vec::new();
    tcp.read_buf(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: n\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        BODY.len()
    );
    let mut tcp = listening.tcp().await;
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tcp.read_buf(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_coming_is_given_up_and_counted() {
    let listening = listening(1).await;
    let request = raw_chat("connection: close\r\ncontent-length: 999\r\n", "{\"model\":");
    let answer = listening.raw(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"), "{answer}");
    assert_eq!(listening.node.counted().1, [("request_timeout".into(), 1)].into());
}
