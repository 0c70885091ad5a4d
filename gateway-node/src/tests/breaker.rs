//! Layer 1 through the whole path: what is sent to a channel and what is not.

use tokio::time::Instant;

use super::support::*;

/// Fails on `a` at each of the given seconds; `b` serves.
async fn fails_at(node: &Node, t0: Instant, seconds: &[f64]) {
    for second in seconds {
        until(t0, *second).await;
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    }
}

fn node() -> Node {
    let node = Node::new(2);
    node.up("a").does([failing(500)]);
    node.up("b").does([whole("b")]);
    node
}

#[tokio::test(start_paused = true)]
async fn the_third_failure_opens_when_the_first_is_299_9_seconds_old_and_not_when_it_is_300() {
    for (third, calls_after) in [(299.9, 3), (300.0, 4)] {
        let (node, t0) = (node(), Instant::now());
        fails_at(&node, t0, &[0.0, 5.0, third]).await;
        assert_eq!(node.called(), [3, 3, 0]);
        node.call(false).await;
        assert_eq!(node.up("a").called(), calls_after, "third failure at {third} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_channel_is_out_for_exactly_sixty_seconds() {
    let (node, t0) = (node(), Instant::now());
    fails_at(&node, t0, &[0.0, 1.0, 2.0]).await;
    for second in [2.1, 30.0, 61.999] {
        fails_at(&node, t0, &[second]).await;
        assert_eq!(node.up("a").called(), 3, "at {second} s");
    }
    fails_at(&node, t0, &[62.0]).await;
    assert_eq!(node.up("a").called(), 4);
}

#[tokio::test(start_paused = true)]
async fn one_more_failure_inside_the_window_opens_it_again() {
    let (node, t0) = (node(), Instant::now());
    fails_at(&node, t0, &[0.0, 1.0, 2.0, 70.0, 71.0, 129.9]).await;
    assert_eq!(node.up("a").called(), 4);
    fails_at(&node, t0, &[130.0]).await;
    assert_eq!(node.up("a").called(), 5);
}

#[tokio::test(start_paused = true)]
async fn br_067_when_every_channel_is_open_the_caller_is_told_at_once_when_the_first_returns() {
    let (node, t0) = (Node::new(1), Instant::now());
    node.up("a").does([failing(503)]);
    for second in [0.0, 1.0, 2.0] {
        until(t0, second).await;
        assert_eq!(node.call(true).await.header("retry-after"), Some(if second < 2.0 { "1" } else { "60" }));
    }
    until(t0, 12.0).await;
    let refused = node.call(true).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("50")));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert_eq!(refused.header("x-should-retry"), None);
    assert_eq!(refused.code().await.1, "no_available_channel");
    assert_eq!(node.called(), [3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_swap_keeps_the_breaker_of_a_channel_that_did_not_change_and_forgets_that_of_one_that_did() {
    let (node, t0) = (node(), Instant::now());
    fails_at(&node, t0, &[0.0, 1.0, 2.0]).await;
    let mut next = snapshot(2, 2);
    next.models[0].chains[0].routes[0].upstream_model = "other".into();
    node.install(&next);
    fails_at(&node, t0, &[3.0]).await;
    assert_eq!(node.up("a").called(), 3, "the endpoint is the same");
    next.channels[0].base_url = "http://a/v2".into();
    node.install(&next);
    fails_at(&node, t0, &[4.0]).await;
    assert_eq!(node.up("a").called(), 4, "the endpoint is another");
    assert!(node.up("a").calls()[3].head.starts_with("post /v2/chat/completions"));
}

#[tokio::test(start_paused = true)]
async fn br_137_a_swap_leaves_connections_and_answers_in_flight_alone() {
    let node = Node::new(1);
    let slow =
        || vec![sse_head(), chunk(&content("x")), Act::Wait(s(5)), chunk(&finish()), chunk(DONE), end()];
    node.up("a").does([slow(), stream("y")]);
    let answered = node.call(true).await;
    node.install(&snapshot(2, 1));
    assert_eq!(answered.header("x-sluice-revision"), Some("1"));
    assert_eq!(answered.text().await.0, [content("x"), finish(), DONE.into()].concat());
    let next = node.call(true).await;
    assert_eq!(next.header("x-sluice-revision"), Some("2"));
    assert_eq!(next.text().await.0, stream_bytes("y"));
    assert_eq!(node.up("a").connections.load(std::sync::atomic::Ordering::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn br_097_answers_that_are_cut_after_commit_open_the_breaker() {
    let node = Node::new(2);
    node.up("a").does([vec![sse_head(), chunk(&content("x")), Act::Close]]);
    node.up("b").does([stream("b")]);
    for _ in 0..3 {
        let answered = node.call(true).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("a"));
        assert!(answered.text().await.0.contains("upstream_stream_error"));
    }
    assert_eq!(node.call(true).await.header("x-sluice-channel"), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn br_065_callers_that_leave_in_the_middle_of_answers_open_no_breaker() {
    let node = Node::new(2);
    node.up("a").does([vec![sse_head(), chunk(&content("x")), Act::Hang]]);
    for call in 1..=5 {
        drop(node.call(true).await);
        tokio::time::sleep(ms(1)).await;
        assert_eq!(node.called(), [call, 0, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_before_commit_of_every_kind_that_counts_open_the_breaker() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    for failure in [failing(503), vec![Act::Close], vec![Act::Send(html.into())], vec![sse_head(), end()]] {
        let node = Node::new(2);
        node.up("a").does([failure]);
        node.up("b").does([stream("b")]);
        for _ in 0..4 {
            assert_eq!(node.call(true).await.header("x-sluice-channel"), Some("b"));
        }
        assert_eq!(node.called(), [3, 4, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_whose_address_differs_only_in_its_query_starts_fresh() {
    let (node, t0) = (node(), Instant::now());
    fails_at(&node, t0, &[0.0, 1.0, 2.0]).await;
    let mut next = snapshot(2, 2);
    next.channels[0].query =
        vec![common::pb::fleet::Field { name: "api-version".into(), value: "2026-01-01".into() }];
    node.install(&next);
    fails_at(&node, t0, &[3.0]).await;
    assert_eq!(node.up("a").called(), 4);
}
