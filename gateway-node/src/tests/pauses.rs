//! Cooldowns and suspensions through the whole path.

use tokio::time::Instant;

use super::support::*;

#[tokio::test(start_paused = true)]
async fn br_059_a_rate_limit_cools_the_route_down_and_is_only_ever_extended() {
    let (node, t0) = (Node::new(2), Instant::now());
    let limited = |hint| {
        answer(429, hint, r#"{"error":{"message":"m","type":"rate_limit","code":"rate_limit_exceeded"}}"#)
    };
    // Two requests at once: the second answer, with a shorter delay, comes while the route cools down.
    node.up("a").does([
        limited("retry-after: 20\r\n"),
        [vec![Act::Wait(s(1))], limited("retry-after: 2\r\n")].concat(),
        whole("a"),
    ]);
    node.up("b").does([whole("b")]);
    tokio::join!(node.call(false), node.call(false));
    assert_eq!(node.called(), [2, 2, 0]);
    until(t0, 19.9).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    until(t0, 20.0).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn br_041_br_058_when_all_only_cool_down_the_caller_gets_429_and_no_upstream_call_is_made() {
    let node = Node::new(2);
    let limited =
        |hint| answer(429, hint, r#"{"error":{"message":"m","type":"t","code":"rate_limit_exceeded"}}"#);
    node.up("a").does([limited("retry-after: 40\r\n")]);
    node.up("b").does([limited("")]);
    for _ in 0..3 {
        let refused = node.call(true).await;
        assert_eq!(refused.status.as_u16(), 429);
        assert_eq!((refused.header("retry-after"), refused.header("x-should-retry")), (Some("15"), None));
    }
    assert_eq!(node.called(), [1, 1, 0]);
    let (attempts, requests) = node.counted();
    assert_eq!(attempts, [("a rate_limited".into(), 1), ("b rate_limited".into(), 1)].into());
    assert_eq!(requests, [("exhausted".into(), 3)].into());
}

#[tokio::test(start_paused = true)]
async fn br_042_an_empty_account_suspends_the_channel_for_a_minute_and_then_one_request_may_try() {
    let (node, t0) = (Node::new(2), Instant::now());
    let broke = answer(
        429,
        "",
        r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
    );
    node.up("a").does([broke.clone(), [vec![Act::Wait(s(1))], broke].concat(), whole("a")]);
    node.up("b").does([whole("b")]);
    for second in [0.0, 30.0, 59.9] {
        until(t0, second).await;
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    }
    assert_eq!(node.up("a").called(), 1);
    until(t0, 60.0).await;
    tokio::join!(node.call(false), node.call(false), node.call(false));
    assert_eq!(node.called(), [2, 6, 0], "one trial, the others go on at once");
    until(t0, 180.9).await;
    node.call(false).await;
    assert_eq!(node.up("a").called(), 2, "the second suspension is twice as long");
    until(t0, 181.1).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"), "a success ends it");
}

#[tokio::test(start_paused = true)]
async fn a_channel_whose_model_is_unknown_is_not_asked_for_that_model_again_and_no_breaker_counts_it() {
    let node = Node::new(2);
    node.up("a").does([answer(404, "", r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#)]);
    node.up("b").does([whole("b")]);
    for _ in 0..4 {
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    }
    assert_eq!(node.called(), [1, 4, 0]);
    let table = node.gateway.tables.load().unwrap();
    assert!(table.channels().all(|channel| channel.open_until(Instant::now()).is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_request_found_the_credential_refused_is_told_not_to_retry_and_the_next_when_it_is_tried_again()
 {
    let node = Node::new(1);
    node.up("a").does([answer(
        401,
        "",
        r#"{"error":{"message":"bad key sk-upstream","type":"t","code":"invalid_api_key"}}"#,
    )]);
    for (should_retry, retry_after) in [(Some("false"), None), (None, Some("60"))] {
        let refused = node.call(false).await;
        assert_eq!(refused.status.as_u16(), 503);
        assert_eq!(
            (refused.header("x-should-retry"), refused.header("retry-after")),
            (should_retry, retry_after)
        );
        let (text, _) = refused.text().await;
        assert!(text.contains("no_available_channel") && !text.contains("sk-upstream"), "{text}");
    }
    assert_eq!(node.called(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_on_its_way_when_the_account_ran_dry_does_not_end_the_suspension() {
    let (node, t0) = (Node::new(2), Instant::now());
    let broke = answer(402, "", r#"{"error":{"message":"m","type":"billing_error","code":null}}"#);
    node.up("a").does([[vec![Act::Wait(s(10))], whole("a")].concat(), broke, whole("a")]);
    node.up("b").does([whole("b")]);
    let early = node.call(false);
    let late = async {
        until(t0, 1.0).await;
        node.call(false).await
    };
    let (early, late) = tokio::join!(early, late);
    assert_eq!((early.header("x-sluice-channel"), late.header("x-sluice-channel")), (Some("a"), Some("b")));
    until(t0, 12.0).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"), "suspended until 61 s");
    until(t0, 61.0).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn br_061_a_trial_whose_caller_goes_away_gives_its_place_back() {
    let (node, t0) = (Node::new(2), Instant::now());
    let broke = answer(402, "", r#"{"error":{"message":"m","type":"billing_error","code":null}}"#);
    node.up("a").does([broke, vec![Act::Hang], whole("a")]);
    node.up("b").does([whole("b")]);
    node.call(false).await;
    until(t0, 60.0).await;
    assert!(tokio::time::timeout(s(2), node.call(false)).await.is_err(), "the trial is gone");
    node.until_closed("a", s(1)).await;
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_says_nothing_of_the_account_gives_its_place_back() {
    let (node, t0) = (Node::new(2), Instant::now());
    let broke = answer(402, "", r#"{"error":{"message":"m","type":"billing_error","code":null}}"#);
    node.up("a").does([broke, failing(400), failing(500), whole("a")]);
    node.up("b").does([whole("b")]);
    node.call(false).await;
    until(t0, 60.0).await;
    assert_eq!(node.call(false).await.status.as_u16(), 400);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_swap_keeps_the_pauses_of_a_route_that_did_not_change_and_forgets_those_of_one_that_did() {
    let missing = r#"{"error":{"message":"m","type":"invalid_request_error","code":"model_not_found"}}"#;
    let limited = r#"{"error":{"message":"m","type":"t","code":"rate_limit_exceeded"}}"#;
    for failure in [answer(404, "", missing), answer(429, "", limited)] {
        let node = Node::new(2);
        node.up("a").does([failure]);
        node.up("b").does([whole("b")]);
        node.call(false).await;
        let mut next = snapshot(2, 2);
        next.models[0].chains[0].routes[0].timeouts.as_mut().unwrap().headers_ms = 1_000;
        node.install(&next);
        node.call(false).await;
        assert_eq!(node.called(), [1, 2, 0], "the route is the same");
        next.models[0].chains[0].routes[0].upstream_model = "other".into();
        node.install(&next);
        node.call(false).await;
        assert_eq!(node.called(), [2, 3, 0], "the route is another");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_out_on_every_channel_that_shows_it_until_it_is_another() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "sk-upstream-1").unwrap();
    let mut config = snapshot(2, 3);
    for channel in &mut config.channels[..2] {
        channel.credential = format!("file:{}", key.display());
    }
    let node = Node::new(3);
    node.install(&config);
    let refused = r#"{"error":{"message":"m","type":"t","code":"invalid_api_key"}}"#;
    node.up("a").does([answer(401, "", refused)]);
    node.up("b").does([whole("b")]);
    node.up("c").does([whole("c")]);
    for _ in 0..2 {
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("c"));
    }
    assert_eq!(node.called(), [1, 0, 2]);
    node.install(&config);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("c"), "a swap changes nothing");
    std::fs::write(&key, "sk-upstream-2").unwrap();
    node.install(&config);
    node.up("a").does([whole("a")]);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"));
    let heads: Vec<_> = node.up("a").calls().into_iter().map(|call| call.head).collect();
    assert!(heads[0].contains("authorization: bearer sk-upstream-1"), "{heads:?}");
    assert!(heads[1].contains("authorization: bearer sk-upstream-2"), "{heads:?}");
}

#[tokio::test(start_paused = true)]
async fn br_114_a_channel_whose_credential_is_not_here_is_never_asked() {
    let node = Node::new(2);
    let mut config = snapshot(2, 2);
    config.channels[0].credential = "env:SLUICE_TEST_NO_SUCH".into();
    node.install(&config);
    node.up("b").does([whole("b")]);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    assert_eq!(node.called(), [0, 1, 0]);
    let mut alone = config.clone();
    alone.models[0].chains[0].routes.truncate(1);
    node.install(&alone);
    let refused = node.call(false).await;
    assert_eq!((refused.status.as_u16(), refused.header("x-should-retry")), (503, Some("false")));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_streams_for_long_lets_the_others_in_as_soon_as_it_is_committed() {
    let (node, t0) = (Node::new(1), Instant::now());
    let broke = answer(402, "", r#"{"error":{"message":"m","type":"t","code":"insufficient_quota"}}"#);
    let long =
        vec![sse_head(), chunk(&content("x")), Act::Wait(s(100)), chunk(&finish()), chunk(DONE), end()];
    node.up("a").does([broke, long, stream("y")]);
    assert_eq!(node.call(true).await.status.as_u16(), 503);
    until(t0, 60.0).await;
    let trial = node.call(true).await;
    assert_eq!(trial.status.as_u16(), 200);
    assert_eq!(node.call(true).await.text().await.0, stream_bytes("y"));
    assert_eq!(trial.text().await.1, s(100));
}
