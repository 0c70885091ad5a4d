//! Layer 2 through the whole path: who is asked, with what, and what the caller is told.

use super::support::*;

#[tokio::test(start_paused = true)]
async fn br_141_when_all_three_fail_the_caller_gets_one_real_status_and_is_told_not_to_retry() {
    let node = Node::new(3);
    node.up("a").refuses();
    node.up("b").does([vec![
        sse_head(),
        chunk(&role()),
        chunk("data: {\"error\":{\"code\":500,\"message\":\"m\"}}\n\n"),
        end(),
    ]]);
    node.up("c").does([failing(503)]);
    let refused = node.call(true).await;
    assert_eq!(refused.status.as_u16(), 503);
    assert_eq!(refused.header("content-type"), Some("application/json"));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!((refused.header("retry-after"), refused.header("x-sluice-attempts")), (None, Some("3")));
    assert_eq!(refused.code().await.1, "upstream_overloaded");
    assert_eq!(node.called(), [0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn br_055_br_015_all_connects_refused_is_a_503_in_json_for_a_stream_too() {
    let node = Node::new(3);
    for name in ["a", "b", "c"] {
        node.up(name).refuses();
    }
    let refused = node.call(true).await;
    assert_eq!((refused.status.as_u16(), refused.header("content-type")), (503, Some("application/json")));
    assert_eq!(refused.code().await.1, "upstream_unavailable");
}

#[tokio::test(start_paused = true)]
async fn br_120_br_112_each_hop_gets_the_whole_body_with_its_own_model_and_length() {
    let node = Node::new(2);
    node.up("a").does([failing(500)]);
    node.up("b").does([whole("b")]);
    let body = format!(
        r#"{{"x":1.10, "model" : "m","messages":[{{"role":"user","content":"{}"}}] ,"y":[]}}"#,
        "é".repeat(9000)
    );
    node.send(with_body(&body)).await;
    for name in ["a", "b"] {
        let call = &node.up(name).calls()[0];
        let expected = body.replacen("\"m\"", &format!("\"m-at-{name}\""), 1);
        assert_eq!(call.body, expected);
        assert!(call.head.contains(&format!("content-length: {}", expected.len())));
        assert!(call.head.contains("accept-encoding: identity"));
        assert!(!call.head.contains(KEY), "{}", call.head);
    }
}

#[tokio::test(start_paused = true)]
async fn br_017_a_request_at_fault_is_returned_with_its_status_and_asked_of_one_channel_only() {
    let error = r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
    let in_stream = vec![
        sse_head(),
        chunk(
            "data: {\"error\":{\"message\":\"too long\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n",
        ),
        chunk(DONE),
        end(),
    ];
    for script in [answer(400, "", error), in_stream] {
        let node = Node::new(2);
        node.up("a").does([script]);
        let refused = node.call(true).await;
        assert_eq!((refused.status.as_u16(), refused.header("x-should-retry")), (400, None));
        assert!(refused.text().await.0.contains("too long"));
        assert_eq!(node.called(), [1, 0, 0]);
        assert_eq!(node.counted().1, [("bad_request".into(), 1)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn br_124_a_connection_that_went_stale_in_the_pool_is_tried_once_afresh_and_counts_for_nothing() {
    let node = Node::new(2);
    // The upstream closes its connection just as the next request is sent.
    node.up("a").does([whole("1"), vec![Act::Close], whole("2")]);
    assert_eq!(node.call(false).await.text().await.0, whole_body("1"));
    let answered = node.call(false).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("a"));
    assert_eq!(answered.text().await.0, whole_body("2"));
    assert_eq!(node.counted().0, [("a ok".into(), 2)].into());
}

#[tokio::test(start_paused = true)]
async fn a_fresh_connection_that_closes_before_it_answers_is_a_failure_of_the_channel() {
    let node = Node::new(2);
    node.up("a").does([vec![Act::Close]]);
    node.up("b").does([whole("b")]);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    assert_eq!(node.called(), [1, 1, 0]);
    assert_eq!(node.counted().0, [("a connect".into(), 1), ("b ok".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_upstreams_account_headers_stay_with_us_and_ours_are_on_every_answer() {
    let node = Node::new(1);
    let headers = "x-request-id: theirs\r\nset-cookie: a=b\r\nx-ratelimit-limit-requests: 1\r\nopenai-processing-ms: 7\r\n";
    node.up("a").does([answer(200, headers, &whole_body("a"))]);
    let mut request = chat(false);
    request.headers_mut().insert("x-request-id", "mine-1".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!(answered.header("x-client-request-id"), Some("mine-1"));
    assert_eq!(answered.header("x-request-id"), answered.header("request-id"));
    assert_eq!(answered.header("x-request-id").unwrap().len(), 36);
    assert_eq!(answered.header("x-sluice-upstream-model"), Some("m-at-a"));
    assert_eq!(answered.header("openai-processing-ms"), Some("7"));
    assert_eq!((answered.header("set-cookie"), answered.header("x-ratelimit-limit-requests")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn br_122_the_model_in_an_answer_is_the_upstreams_and_our_headers_say_who_served() {
    let node = Node::new(1);
    node.up("a").does([whole("a"), stream("a")]);
    for (is_stream, expected) in [(false, whole_body("a")), (true, stream_bytes("a"))] {
        let answered = node.call(is_stream).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("a"));
        assert_eq!(answered.header("x-sluice-upstream-model"), Some("m-at-a"));
        assert_eq!(answered.text().await.0, expected, "untouched, whatever it calls the model");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reused_connection_that_is_reset_later_than_five_seconds_is_a_failure_of_the_channel() {
    for (seconds, served_by, end) in [(4, "a", "a ok"), (6, "b", "a connect")] {
        let node = Node::new(2);
        node.up("a").does([whole("1"), vec![Act::Wait(s(seconds)), Act::Close], whole("2")]);
        node.up("b").does([whole("b")]);
        node.call(false).await.text().await;
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some(served_by), "{seconds} s");
        assert!(node.counted().0.contains_key(end), "{seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_never_ends_is_waited_for_five_seconds() {
    let node = Node::new(2);
    let head = "HTTP/1.1 500 X\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{";
    let endless = "HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n";
    let flood = std::iter::repeat_n(chunk(&"x".repeat(32 * 1024)), 8);
    for (script, after) in [
        (vec![Act::Send(head.into()), Act::Hang], s(5)),
        ([Act::Send(endless.into())].into_iter().chain(flood).chain([Act::Hang]).collect(), s(0)),
    ] {
        node.up("a").does([script]);
        node.up("b").does([whole("b")]);
        let answered = node.call(false).await;
        assert_eq!((answered.header("x-sluice-channel"), answered.after), (Some("b"), after));
    }
}

#[tokio::test(start_paused = true)]
async fn br_109_br_110_an_encoding_that_was_not_asked_for_is_never_passed_on() {
    for (encoding, served_by) in
        [("gzip", "b"), ("br", "b"), ("GZIP", "b"), ("identity", "a"), ("Identity", "a")]
    {
        for is_stream in [true, false] {
            let node = Node::new(2);
            let head = format!("content-encoding: {encoding}\r\n");
            node.up("a").does([answer(200, &head, &whole_body("a"))]);
            node.up("b").does([if is_stream { stream("b") } else { whole("b") }]);
            let answered = node.call(is_stream).await;
            assert_eq!(answered.header("x-sluice-channel"), Some(served_by), "{encoding}");
            assert!(node.up("a").calls()[0].head.contains("accept-encoding: identity"));
            assert!(answered.header("content-encoding").is_none_or(|e| e.eq_ignore_ascii_case("identity")));
        }
    }
}
