//! After commit: bytes pass untouched, and what breaks off never looks like a clean end.

use super::support::*;

fn is_error_frame(text: &str) -> bool {
    text.starts_with("data: {\"error\":")
        && text.contains("\"code\":\"upstream_stream_error\"")
        && text.ends_with("\n\n")
}

#[tokio::test(start_paused = true)]
async fn br_032_br_034_br_036_a_stream_that_breaks_off_ends_in_one_error_frame_and_no_second_answer() {
    let begin = || vec![sse_head(), chunk(&role()), chunk(&content("x"))];
    let table = [
        ("cut", [begin(), vec![Act::Close]].concat()),
        ("clean end without a finish", [begin(), vec![end()]].concat()),
        ("stall", [begin(), vec![Act::Hang]].concat()),
    ];
    for (what, script) in table {
        let node = Node::new(2);
        node.up("a").does([script]);
        node.up("b").does([stream("b")]);
        let (text, took) = node.call(true).await.text().await;
        let rest = text.strip_prefix(&[role(), content("x")].concat()).unwrap();
        assert!(is_error_frame(rest), "{what}: {rest}");
        assert_eq!(took, if what == "stall" { s(300) } else { s(0) }, "{what}");
        assert_eq!(node.called(), [1, 0, 0], "{what}");
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a cut".into(), 1)].into(), "{what}");
        assert_eq!(requests, [("cut".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_sent_event_is_closed_before_the_error_frame() {
    let node = Node::new(1);
    node.up("a").does([vec![
        sse_head(),
        chunk(&content("x")),
        chunk("data: {\"id\":\"c\",\"cho"),
        Act::Close,
    ]]);
    let (text, _) = node.call(true).await.text().await;
    let rest = text.strip_prefix(&(content("x") + "data: {\"id\":\"c\",\"cho\n\n")).unwrap();
    assert!(is_error_frame(rest), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn br_030_comments_do_not_keep_a_stalled_stream_alive() {
    let node = Node::new(1);
    let mut script = vec![sse_head(), chunk(&content("x"))];
    for _ in 0..100 {
        script.extend([Act::Wait(s(5)), chunk(": keep-alive\n\n")]);
    }
    node.up("a").does([script]);
    let (text, took) = node.call(true).await.text().await;
    assert_eq!(took, s(300));
    assert!(text.contains("upstream_stream_error"));
    node.until_closed("a", s(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_reads_slowly_is_no_stall_of_the_upstream() {
    let node = Node::new(1);
    let big = content(&"x".repeat(300_000));
    node.up("a").does([vec![
        sse_head(),
        chunk(&content("x")),
        chunk(&big),
        chunk(&big),
        chunk(&finish()),
        chunk(DONE),
        end(),
    ]]);
    let mut answered = node.call(true).await;
    let mut text = answered.next().await.unwrap().unwrap();
    tokio::time::sleep(s(1000)).await;
    while let Some(piece) = answered.next().await {
        text += &piece.unwrap();
    }
    assert!(!text.contains("upstream_stream_error"));
    assert_eq!(text, [content("x"), big.clone(), big, finish(), DONE.into()].concat());
}

#[tokio::test(start_paused = true)]
async fn a_finish_without_done_is_a_clean_end() {
    let node = Node::new(1);
    node.up("a").does([vec![sse_head(), chunk(&content("x")), chunk(&finish()), end()]]);
    assert_eq!(node.call(true).await.text().await.0, content("x") + &finish());
    assert_eq!(node.counted().1, [("served".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_error_frame_of_the_upstream_passes_as_it_is_and_counts_as_cut() {
    let node = Node::new(1);
    let error = "data: {\"error\":{\"message\":\"theirs\",\"code\":500}}\n\n";
    node.up("a").does([vec![sse_head(), chunk(&content("x")), chunk(error), chunk(DONE), end()]]);
    assert_eq!(node.call(true).await.text().await.0, [&content("x"), error, DONE].concat());
    assert_eq!(node.counted().0, [("a cut".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_no_sdk_raises_gets_our_error_frame_in_place_of_done() {
    let node = Node::new(1);
    let quiet =
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n";
    node.up("a").does([vec![sse_head(), chunk(&content("x")), chunk(&[quiet, DONE].concat()), end()]]);
    let (text, _) = node.call(true).await.text().await;
    let rest = text.strip_prefix(&(content("x") + quiet)).unwrap();
    assert!(is_error_frame(rest) && !text.contains("[DONE]"), "{rest}");
    assert_eq!(node.counted().1, [("cut".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_that_is_cut_after_commit_aborts_the_connection() {
    let node = Node::new(1);
    let length = 6 * 1024 * 1024;
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    let part = format!("{{\"choices\":[\"{}", "x".repeat(5 * 1024 * 1024));
    node.up("a").does([vec![Act::Send(head.into_bytes()), Act::Send(part.into_bytes()), Act::Close]]);
    let mut answered = node.call(false).await;
    let mut last = None;
    while let Some(piece) = answered.next().await {
        last = Some(piece.is_ok());
    }
    assert_eq!(last, Some(false), "the caller must not take it for whole");
    assert_eq!(node.counted().1, [("cut".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_without_a_length_that_is_cut_after_commit_has_no_last_chunk() {
    let node = Node::new(1);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let part = format!("{{\"choices\":[\"{}", "x".repeat(5 * 1024 * 1024));
    node.up("a").does([vec![Act::Send(head.into()), chunk(&part), Act::Close]]);
    let mut answered = node.call(false).await;
    let mut last = None;
    while let Some(piece) = answered.next().await {
        last = Some(piece.is_ok());
    }
    assert_eq!(last, Some(false), "the caller must not take it for whole");
    assert_eq!(node.counted().1, [("cut".into(), 1)].into());
}
