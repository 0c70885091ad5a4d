//! Callers: those that may not, those that ask for nothing that there is, and those that go away.

use http::Request;
use http_body_util::Full;

use super::listening::listening_to;
use super::support::*;

fn get(path: &str) -> Request<Full<bytes::Bytes>> {
    Request::get(path).header("host", "node").header("x-api-key", KEY).body(Full::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn without_any_config_the_answer_is_no_config_whatever_the_key() {
    let node = Node::bare();
    let paths = ["/v1/models", "/v1/models/m", "/v1/chat/completions", "/v1/nothing"];
    for request in paths.map(get).into_iter().chain([chat(true)]) {
        let refused = node.send(request).await;
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.code().await, (http::StatusCode::SERVICE_UNAVAILABLE, "no_config".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_refused_with_a_stable_code_and_no_upstream_call() {
    let node = Node::new(1);
    let mut wrong_key = chat(false);
    wrong_key.headers_mut().insert("authorization", "Bearer sk-other".parse().unwrap());
    let mut wrong_gate = chat(false);
    wrong_gate.headers_mut().insert("x-sluice-gate", "perhaps".parse().unwrap());
    let table = [
        (wrong_key, 401, "invalid_api_key"),
        (with_body(r#"{"model":"nope","messages":[]}"#), 404, "model_not_found"),
        (with_body(r#"{"model":"m","messages":["#), 400, "invalid_request"),
        (with_body(r#"{"messages":[]}"#), 400, "invalid_request"),
        (wrong_gate, 400, "invalid_request"),
        (get("/v1/chat/completions"), 405, "method_not_allowed"),
        (get("/v1/nothing"), 404, "not_found"),
        (get("/v1/models/nope"), 404, "model_not_found"),
    ];
    for (request, status, code) in table {
        let shown = format!("{request:?}");
        let refused = node.send(request).await;
        assert!(refused.header("x-request-id").is_some());
        assert_eq!(refused.header("x-sluice-revision"), Some("1"), "{shown}");
        assert_eq!(refused.header("allow"), (status == 405).then_some("POST"), "{shown}");
        let (got, got_code) = refused.code().await;
        assert_eq!((got.as_u16(), got_code.as_str()), (status, code), "{shown}");
    }
    assert_eq!(node.called(), [0, 0, 0]);
    let (attempts, requests) = node.counted();
    assert!(attempts.is_empty());
    assert_eq!(requests.get("model_not_found"), Some(&2), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn br_118_a_large_body_is_accepted_and_one_above_the_limit_is_told_the_limit() {
    let node = Node::new(1);
    node.up("a").does([whole("a")]);
    let body =
        |size| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{}"}}]}}"#, "x".repeat(size));
    assert_eq!(node.send(with_body(&body(3 * 1024 * 1024))).await.status.as_u16(), 200);
    let refused = node.send(with_body(&body(32 * 1024 * 1024))).await;
    assert_eq!(refused.status.as_u16(), 413);
    assert!(refused.text().await.0.contains("32 MiB"));
}

#[tokio::test(start_paused = true)]
async fn models_are_listed_as_the_sdks_read_them() {
    let node = Node::new(1);
    let answered = node.send(get("/v1/models")).await;
    assert_eq!(answered.status.as_u16(), 200);
    let list: serde_json::Value = serde_json::from_str(&answered.text().await.0).unwrap();
    assert_eq!((list["object"].as_str(), list["data"][0]["id"].as_str()), (Some("list"), Some("m")));
    assert_eq!(node.send(get("/v1/models/m")).await.status.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn br_065_br_069_br_072_a_caller_that_goes_away_ends_the_upstream_request_and_counts_for_nothing() {
    let held = || vec![sse_head(), chunk(&role()), Act::Hang];
    let streaming = || vec![sse_head(), chunk(&content("x")), Act::Hang];
    for (phase, script) in [("waiting", vec![Act::Hang]), ("held", held()), ("streaming", streaming())] {
        let node = Node::new(2);
        node.up("a").does([script]);
        match phase {
            "streaming" => drop(node.call(true).await),
            _ => assert!(tokio::time::timeout(s(3), node.call(true)).await.is_err()),
        }
        node.until_closed("a", s(1)).await;
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a canceled".into(), 1)].into(), "{phase}");
        assert_eq!(requests, [("canceled".into(), 1)].into(), "{phase}");
        assert_eq!((node.called(), node.gateway.in_flight()), ([1, 0, 0], 0), "{phase}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ending_is_counted_before_the_caller_has_the_last_bytes() {
    let node = Node::new(1);
    node.up("a").does([vec![sse_head(), chunk(&content("x")), chunk(&finish()), chunk(DONE), Act::Hang]]);
    let mut answered = node.call(true).await;
    let mut text = String::new();
    while !text.ends_with(DONE) {
        text += &answered.next().await.unwrap().unwrap();
    }
    assert_eq!(node.counted().1, [("served".into(), 1)].into(), "the upstream has not even closed yet");
    drop(answered);
    assert!(node.counted().1.is_empty(), "and it is counted once");
}

#[tokio::test(start_paused = true)]
async fn a_model_with_a_slash_in_its_name_is_found_as_the_sdks_write_it() {
    let node = Node::new(1);
    let mut next = snapshot(2, 1);
    next.models[0].name = "org/m:1".into();
    node.install(&next);
    for path in ["/v1/models/org%2Fm%3A1", "/v1/models/org/m:1"] {
        assert_eq!(node.send(get(path)).await.status.as_u16(), 200, "{path}");
    }
    assert_eq!(node.send(get("/v1/models/org%2")).await.status.as_u16(), 404);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_makes_the_upstreams_address_too_long_is_the_callers_fault_and_takes_no_route_out() {
    let node = Node::speaking("anthropic-messages", 1);
    node.up("a").does([failing(503)]);
    let path = "/v1/messages?beta=";
    let long = path.to_owned() + &"x".repeat(usize::from(u16::MAX) - 1 - path.len());
    let body = r#"{"model":"m","max_tokens":1,"messages":[]}"#;
    let refused = node.send(post_json(&long, body)).await;
    assert_eq!(refused.status.as_u16(), 414);
    assert!(refused.text().await.0.contains("the query of the request is too long"));
    assert_eq!(node.called(), [0, 0, 0]);
    assert_eq!(node.send(post_json("/v1/messages", body)).await.status.as_u16(), 503);
    assert_eq!(node.called(), [1, 0, 0], "the route is still asked");
}

#[tokio::test(start_paused = true)]
async fn a_query_that_fits_into_a_head_and_not_into_the_longer_address_of_a_channel_is_told_so_by_the_real_listener()
 {
    let node = Node::speaking("anthropic-messages", 1);
    let mut snapshot = snapshot_speaking("anthropic-messages", 2, 1);
    snapshot.channels[0].base_url = format!("http://a/{}v1", "tenant/".repeat(100));
    node.install(&snapshot);
    node.up("a").does([failing(503)]);
    let listening = listening_to(node, s(1)).await;
    let body = r#"{"model":"m","max_tokens":1,"messages":[]}"#;
    for (letters, status, calls) in [(65_200, "414 URI Too Long", 0), (64_000, "503 Service Unavailable", 1)]
    {
        let head = format!(
            "POST /v1/messages?beta={} HTTP/1.1\r\nhost: n\r\nx-api-key: {KEY}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            "x".repeat(letters),
            body.len()
        );
        let answer = listening.raw(&[head.as_bytes(), body.as_bytes()].concat()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{letters}: {answer}");
        assert_eq!(listening.node.called(), [calls, 0, 0]);
    }
}
