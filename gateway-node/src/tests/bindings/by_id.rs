//! What calls by id are told, and what they do to a channel.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_the_channel_says_of_a_thing_is_the_answer_and_harms_no_channel() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    node.counted();
    let gone = r#"{"error":{"message":"Response with id 'resp_1' not found.","type":"invalid_request_error","param":null,"code":null}}"#;
    for (script, status, code, message) in [
        (answer(404, "", gone), 404, "not_found", "Response with id"),
        (answer(404, "", "<html>nginx</html>"), 404, "not_found", "there is no response with this id"),
        (answer(409, "", &gone.replace("not found", "busy")), 409, "invalid_request", "Response with id"),
        (answer(405, "", "{}"), 405, "invalid_request", ""),
        (
            answer(400, "", &gone.replace("not found", "already completed")),
            400,
            "invalid_request",
            "Response with id",
        ),
        (answer(400, "", "nope"), 400, "invalid_request", ""),
    ] {
        // More than would open a breaker.
        for _ in 0..4 {
            node.up("b").does([script.clone()]);
            let answered = node.send(get("/v1/responses/resp_1")).await;
            assert_eq!(answered.status, status, "{message}");
            assert_eq!(answered.header("retry-after"), None);
            let error = error(answered).await;
            assert_eq!(error["code"], code, "{error}");
            assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        }
    }
    let (attempts, requests) = node.counted();
    assert_eq!(
        (attempts, requests),
        ([("b bad_request".into(), 24)].into(), [("bad_request".into(), 24)].into())
    );
    node.up("b").does([answer(200, "", &document("resp_1", "failed"))]);
    assert_eq!(
        node.send(get("/v1/responses/resp_1")).await.status,
        200,
        "a response that failed is an answer"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_the_operators_matter_or_the_upstreams_fault_is_said_as_ever() {
    for (script, status, code, waits) in [
        (failing(401), 503, "no_available_channel", false),
        (failing(402), 503, "no_available_channel", false),
        (
            answer(
                403,
                "",
                r#"{"error":{"message":"Missing scopes","type":"invalid_request_error","code":"missing_scope"}}"#,
            ),
            503,
            "no_available_channel",
            false,
        ),
        (failing(500), 502, "upstream_error", true),
        (failing(503), 503, "upstream_overloaded", true),
        (
            answer(429, "retry-after: 7\r\n", r#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#),
            429,
            "upstream_rate_limited",
            true,
        ),
    ] {
        let node = node();
        made_by_b(&node, "resp_1", "").await;
        node.up("b").does([script]);
        let answered = node.send(get("/v1/responses/resp_1")).await;
        assert_eq!(answered.status, status, "{code}");
        assert_eq!(answered.header("retry-after").is_some(), waits, "{code}");
        assert_eq!(answered.header("x-should-retry").is_some(), !waits, "{code}");
        assert_eq!(error(answered).await["code"], code);
        assert_eq!(node.up("c").called(), 0, "never walked");
    }
}

#[tokio::test(start_paused = true)]
async fn who_polls_too_often_or_may_not_read_takes_no_model_from_anybody() {
    for script in [
        answer(429, "retry-after: 30\r\n", r#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#),
        answer(
            403,
            "",
            r#"{"error":{"message":"Missing scopes","type":"invalid_request_error","code":"missing_scope"}}"#,
        ),
    ] {
        let node = node();
        node.up("a").does([answer(200, "", &document("resp_1", "completed"))]);
        node.send(create("")).await.text().await;
        node.up("a").does([script]);
        node.send(get("/v1/responses/resp_1")).await;
        let called = node.up("a").called();
        let answered = node.send(get("/v1/responses/resp_1")).await;
        assert!(answered.header("retry-after").is_some(), "its own way is out");
        assert_eq!(node.up("a").called(), called);
        node.up("a").does([answer(200, "", &document("resp_2", "completed"))]);
        assert_eq!(node.send(create("")).await.header("x-sluice-channel"), Some("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_keeps_everybody_out_and_says_until_when() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    node.up("b").does([failing(500)]);
    for _ in 0..3 {
        assert_eq!(node.send(get("/v1/responses/resp_1")).await.status, 502);
    }
    let called = node.up("b").called();
    for request in [get("/v1/responses/resp_1"), create(r#","previous_response_id":"resp_1""#)] {
        let answered = node.send(request).await;
        assert_eq!((answered.status.as_u16(), answered.header("retry-after")), (503, Some("60")));
        assert_eq!(error(answered).await["code"], "no_available_channel");
    }
    assert_eq!(node.up("b").called(), called);
}

#[tokio::test(start_paused = true)]
async fn a_response_is_found_as_long_as_its_channel_is_in_the_catalog_whatever_it_serves() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    let mut snapshot = snapshot_speaking("openai-responses", 2, 3);
    snapshot.models[0].chains[0].routes.retain(|route| route.channel != "b");
    node.install(&snapshot);
    node.up("b").does([answer(200, "", &document("resp_1", "completed"))]);
    assert_eq!(node.send(get("/v1/responses/resp_1")).await.status, 200);
    let answered = node.send(create(r#","previous_response_id":"resp_1""#)).await;
    assert_eq!(answered.status, 400);
    let said = error(answered).await;
    assert_eq!(said["code"], "previous_response_not_found");
    assert!(said["message"].as_str().unwrap().contains("send the whole conversation"), "{said}");

    snapshot.channels.retain(|channel| channel.id != "b");
    node.install(&snapshot);
    let answered = node.send(get("/v1/responses/resp_1")).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-should-retry")), (503, Some("false")));
    let said = error(answered).await;
    assert_eq!(said["code"], "no_available_channel");
    assert!(said["message"].as_str().unwrap().contains("\"b\" that made it is not in the catalog"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_background_stream_is_taken_up_again_wherever_it_stood() {
    let node = node();
    made_by_b(&node, "resp_1", r#","background":true,"stream":false"#).await;
    node.counted();
    let path = "/v1/responses/resp_1?stream=true&starting_after=4";
    for frames in [
        vec![DELTA.to_owned(), ended("completed", "resp_1")],
        vec![ended("completed", "resp_1")],
        vec![ended("failed", "resp_1")],
        vec![DELTA.to_owned(), ended("failed", "resp_1")],
        vec![created("resp_1"), DELTA.to_owned(), ended("incomplete", "resp_1")],
        vec![": nothing more\n\n".to_owned()],
        vec![],
    ] {
        node.up("b").does([streamed(&frames)]);
        let answered = node.send(get(path)).await;
        assert_eq!(answered.status, 200, "{frames:?}");
        assert_eq!(answered.text().await.0, frames.concat());
    }
    assert!(
        node.up("b")
            .calls()
            .pop()
            .unwrap()
            .head
            .starts_with("get /v1/responses/resp_1?stream=true&starting_after=4 ")
    );
    assert_eq!(node.counted(), ([("b ok".into(), 7)].into(), [("served".into(), 7)].into()));
    // One that breaks off ends so that the SDK raises.
    node.up("b").does([vec![sse_head(), chunk(DELTA), Act::Close]]);
    let (text, _) = node.send(get(path)).await.text().await;
    assert!(text.starts_with(DELTA) && text.contains("upstream_stream_error"), "{text}");
    assert_eq!(known(&node).len(), 1, "to read is not to make");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_a_stream_by_id_closes_the_upstreams() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    node.up("b").does([vec![sse_head(), chunk(DELTA), Act::Hang]]);
    let mut answered = node.send(get("/v1/responses/resp_1?stream=true")).await;
    answered.next().await.unwrap().unwrap();
    drop(answered);
    node.until_closed("b", s(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_to_a_deletion_is_one() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    node.up("b").does([vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())]]);
    let answered = node.send(with_key(KEY, Method::DELETE, "/v1/responses/resp_1")).await;
    assert_eq!(answered.status, 204);
    assert_eq!(answered.text().await.0, "");
}

#[tokio::test(start_paused = true)]
async fn what_no_one_channel_can_answer_is_refused_with_a_text_that_says_why() {
    let node = node();
    for (request, status, text) in [
        (create(r#","conversation":"conv_1""#), 400, "previous_response_id"),
        (with_key(KEY, Method::POST, "/v1/conversations"), 404, "previous_response_id"),
        (get("/v1/videos"), 404, "there is no list of videos"),
    ] {
        let answered = node.send(request).await;
        assert_eq!(answered.status, status);
        let (body, _) = answered.text().await;
        assert!(body.contains(text), "{body}");
    }
    assert_eq!(node.called(), [0, 0, 0]);
}
