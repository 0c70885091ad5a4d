//! Layer 3 through the whole path: when the caller sees the first byte, and whose.

use super::support::*;

#[tokio::test(start_paused = true)]
async fn br_025_an_undecided_answer_is_committed_thirty_seconds_after_its_headers() {
    let node = Node::new(2);
    node.up("a").does([vec![
        Act::Wait(s(7)),
        sse_head(),
        chunk(&role()),
        Act::Wait(s(40)),
        chunk(&content("x")),
        chunk(&finish()),
        chunk(DONE),
        end(),
    ]]);
    let answered = node.call(true).await;
    assert_eq!((answered.status.as_u16(), answered.after), (200, s(37)));
    assert_eq!(answered.header("x-sluice-channel"), Some("a"));
    assert_eq!(answered.text().await, (stream_bytes("x"), s(47)));
    assert_eq!(node.called(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn br_024_comments_do_not_rearm_the_gate() {
    let node = Node::new(1);
    let mut script = vec![sse_head()];
    for _ in 0..12 {
        script.extend([Act::Wait(s(5)), chunk(": keep-alive\n\n")]);
    }
    script.extend([chunk(&content("x")), chunk(&finish()), chunk(DONE), end()]);
    node.up("a").does([script]);
    assert_eq!(node.call(true).await.after, s(30));
}

#[tokio::test(start_paused = true)]
async fn br_008_an_error_behind_the_preamble_moves_on_and_the_caller_sees_one_stream() {
    let node = Node::new(2);
    let error = "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"code\":500}}\n\n";
    node.up("a").does([vec![sse_head(), chunk(&role()), Act::Wait(s(2)), chunk(error), chunk(DONE), end()]]);
    node.up("b").does([stream("b")]);
    let answered = node.call(true).await;
    assert_eq!(
        (answered.header("x-sluice-channel"), answered.header("x-sluice-attempts")),
        (Some("b"), Some("2"))
    );
    assert_eq!(answered.text().await.0, stream_bytes("b"));
    let (attempts, requests) = node.counted();
    assert_eq!(attempts, [("a upstream_error".into(), 1), ("b ok".into(), 1)].into());
    assert_eq!(requests, [("served".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_under_a_200_moves_on() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"id\":";
    let table: [(&str, Script, &str); 7] = [
        ("HTML", vec![Act::Send(html.into())], "malformed"),
        ("nothing", vec![sse_head(), end()], "empty"),
        ("comments", vec![sse_head(), chunk(": hi\n\n"), end()], "empty"),
        ("broken JSON", vec![sse_head(), chunk("data: {\"id\":\n\n"), end()], "malformed"),
        ("a cut preamble", vec![sse_head(), chunk(&role()), Act::Close], "upstream_error"),
        ("a JSON error", answer(200, "", r#"{"error":{"message":"m","code":502}}"#), "upstream_error"),
        ("a cut body", vec![Act::Send(cut.into()), Act::Close], "upstream_error"),
    ];
    for (what, script, class) in table {
        for is_stream in [true, false] {
            let node = Node::new(2);
            node.up("a").does([script.clone()]);
            node.up("b").does([if is_stream { stream("b") } else { whole("b") }]);
            let answered = node.call(is_stream).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}, stream {is_stream}");
            let expected = if is_stream { stream_bytes("b") } else { whole_body("b") };
            assert_eq!(answered.text().await.0, expected, "{what}");
            let (attempts, _) = node.counted();
            // A stream where none was asked for is judged as the body that it is not.
            if is_stream || !what.contains("preamble") && !what.contains("comments") && what != "broken JSON"
            {
                assert_eq!(attempts.get(&format!("a {class}")), Some(&1), "{what} {is_stream}: {attempts:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_waits_for_the_end_moves_on_when_the_stream_breaks_off() {
    let node = Node::new(2);
    node.up("a").does([vec![sse_head(), chunk(&content("x")), Act::Wait(s(60)), Act::Close]]);
    node.up("b").does([vec![
        sse_head(),
        chunk(&content("b")),
        Act::Wait(s(60)),
        chunk(&finish()),
        chunk(DONE),
        end(),
    ]]);
    let mut request = chat(true);
    request.headers_mut().insert("x-sluice-gate", "complete".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("b"));
    assert_eq!(answered.after, s(120), "held to its end, beyond the thirty seconds");
    assert_eq!(answered.text().await.0, [content("b"), finish(), DONE.into()].concat());
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_waits_for_the_end_gives_a_stalled_stream_up_whatever_comments_it_sends() {
    let node = Node::new(2);
    let mut script = vec![sse_head(), chunk(&content("x"))];
    for _ in 0..100 {
        script.extend([Act::Wait(s(5)), chunk(": keep-alive\n\n")]);
    }
    node.up("a").does([script]);
    node.up("b").does([stream("b")]);
    let mut request = chat(true);
    request.headers_mut().insert("x-sluice-gate", "complete".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!((answered.header("x-sluice-channel"), answered.after), (Some("b"), s(300)));
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_above_four_mebibytes_is_committed_and_streamed_on() {
    let node = Node::new(1);
    let body = whole_body(&"x".repeat(6 * 1024 * 1024));
    node.up("a").does([answer(200, "", &body)]);
    let answered = node.call(false).await;
    assert_eq!(answered.header("content-length"), Some(body.len().to_string().as_str()));
    assert_eq!(answered.text().await.0, body);
    assert_eq!(node.counted().1, [("served".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn br_023_the_only_channel_is_waited_for_although_its_first_token_takes_longer_than_the_gate() {
    let node = Node::new(1);
    let healthy = [chunk(&content("x")), chunk(&finish()), chunk(DONE), end()];
    node.up("a").does([[vec![sse_head(), Act::Wait(s(35))], healthy.into()].concat()]);
    let answered = node.call(true).await;
    assert_eq!((answered.status.as_u16(), answered.after), (200, s(30)));
    assert_eq!(answered.text().await, ([content("x"), finish(), DONE.into()].concat(), s(35)));
    assert_eq!(node.counted().0, [("a ok".into(), 1)].into());
}
