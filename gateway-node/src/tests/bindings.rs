//! Stored responses go back to the channel that made them: by id and by `previous_response_id`, with the key that made
//! them alone, here and on another node.

mod by_id;

use std::sync::Arc;

use bytes::Bytes;
use common::clock::Clock;
use common::dialect::Dialect;
use common::pb::fleet as pb;
use http::{Method, Request};
use http_body_util::Full;
use sha2::Digest as _;
use tokio::time::Instant;

use super::support::*;
use crate::api::auth::Keys;
use crate::bindings::{Binding, Bindings, Name};

const OTHER_KEY: &str = "sk-other";

fn created(id: &str) -> String {
    format!(
        "event: response.created\ndata: {{\"type\":\"response.created\",\"sequence_number\":0,\"response\":{{\"id\":\"{id}\",\"status\":\"queued\",\"error\":null,\"output\":[]}}}}\n\n"
    )
}

const DELTA: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":5,\"delta\":\"hi\"}\n\n";

fn ended(kind: &str, id: &str) -> String {
    format!(
        "event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",\"sequence_number\":9,\"response\":{{\"id\":\"{id}\",\"status\":\"{kind}\",\"error\":{}}}}}\n\n",
        if kind == "failed" { r#"{"code":"server_error","message":"b"}"# } else { "null" }
    )
}

fn document(id: &str, status: &str) -> String {
    format!("{{\n \"id\": \"{id}\", \"object\":\"response\", \"status\":\"{status}\",\"output\":[]}}\n")
}

fn streamed(frames: &[String]) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![end()]].concat()
}

/// Two keys, and three channels.
fn node() -> Node {
    let node = Node::speaking("openai-responses", 3);
    let key =
        |id: &str, key: &str| pb::ClientKey { id: id.into(), sha256: sha2::Sha256::digest(key).to_vec() };
    let keys = vec![key("k", KEY), key("other", OTHER_KEY)];
    let keys = Keys::build(&pb::KeySet { version: 2, keys_exist: true, keys }).unwrap();
    node.gateway.keys.store(Arc::new(keys));
    node
}

fn create(more: &str) -> Request<Full<Bytes>> {
    post_json("/v1/responses", &format!(r#"{{"model":"m","input":"hi"{more}}}"#))
}

fn with_key(key: &str, method: Method, path: &str) -> Request<Full<Bytes>> {
    let mut request = post_json(path, "");
    *request.method_mut() = method;
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    request
}

fn get(path: &str) -> Request<Full<Bytes>> {
    with_key(KEY, Method::GET, path)
}

/// Has `b` answer a request with this response, as `a` is rate limited at the moment.
async fn made_by_b(node: &Node, id: &str, more: &str) {
    node.up("a").does([answer(
        429,
        "retry-after: 1\r\n",
        r#"{"error":{"message":"m","type":"t","code":"rate_limit_exceeded"}}"#,
    )]);
    node.up("b").does([answer(200, "", &document(id, "completed"))]);
    let answered = node.send(create(more)).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("b")));
    answered.text().await;
    node.up("a").does([answer(200, "", &document("resp_of_a", "completed"))]);
    tokio::time::sleep(s(2)).await;
}

async fn error(answered: Answered) -> serde_json::Value {
    let (text, _) = answered.text().await;
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["error"].clone()
}

fn known(node: &Node) -> Vec<(String, String)> {
    let waiting = node.gateway.bindings.waiting(99);
    waiting.iter().map(|(_, b)| (b.name.id.to_string(), b.channel.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_asked_of_a_response_goes_to_the_channel_that_made_it_and_is_counted_under_its_model() {
    let node = node();
    made_by_b(&node, "resp_1", r#","background":true"#).await;
    node.counted();
    let before = node.called();
    for (method, path, up) in [
        (Method::GET, "/v1/responses/resp_1", "get /v1/responses/resp_1 http"),
        (
            Method::GET,
            "/v1/responses/resp_1?include[]=x&key=sk-q&junk=1",
            "get /v1/responses/resp_1?include[]=x http",
        ),
        (
            Method::GET,
            "/v1/responses/resp_1/input_items?limit=2&order=asc",
            "get /v1/responses/resp_1/input_items?limit=2&order=asc http",
        ),
        (Method::POST, "/v1/responses/resp_1/cancel", "post /v1/responses/resp_1/cancel http"),
        (Method::DELETE, "/v1/responses/resp_1", "delete /v1/responses/resp_1 http"),
    ] {
        let body = document("resp_1", "cancelled");
        node.up("b").does([answer(200, "", &body)]);
        let answered = node.send(with_key(KEY, method, path)).await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("x-sluice-channel")),
            (200, Some("b")),
            "{path}"
        );
        assert_eq!(answered.header("x-sluice-upstream-model"), None);
        assert_eq!(answered.text().await.0, body, "untouched");
        let call = node.up("b").calls().pop().unwrap();
        assert!(call.head.starts_with(up), "{}", call.head);
        assert!(!call.head.contains(KEY));
    }
    assert_eq!(node.called(), [before[0], before[1] + 5, 0]);
    assert_eq!(node.counted(), ([("b ok".into(), 5)].into(), [("served".into(), 5)].into()));
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_from_a_response_on_its_channel_and_nowhere_else() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    let before = node.called();
    node.up("b").does([answer(200, "", &document("resp_2", "completed")), failing(500)]);
    let answered = node.send(create(r#","previous_response_id":"resp_1""#)).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("b")));
    assert!(node.up("b").calls()[1].body.contains(r#""model":"m-at-b""#), "as any request of the model");
    let answered = node.send(create(r#","previous_response_id":"resp_2""#)).await;
    assert_eq!(answered.status, 502);
    assert!(answered.header("retry-after").is_some() && answered.header("x-should-retry").is_none());
    assert_eq!(node.called(), [before[0], before[1] + 2, 0], "never walked");
}

#[tokio::test(start_paused = true)]
async fn only_the_key_that_made_it_may_use_it_and_all_others_are_told_what_the_ignorant_are() {
    let node = node();
    made_by_b(&node, "resp_1", "").await;
    let before = node.called();
    let mut told = Vec::new();
    for (key, path) in
        [(OTHER_KEY, "/v1/responses/resp_1"), (KEY, "/v1/responses/resp_unknown"), (KEY, "/v1/videos/resp_1")]
    {
        for (method, below) in [(Method::GET, ""), (Method::DELETE, "")] {
            let answered = node.send(with_key(key, method, &format!("{path}{below}"))).await;
            assert_eq!(answered.status, 404, "{path}");
            let mut error = error(answered).await;
            assert_eq!((&error["code"], &error["param"]), (&"not_found".into(), &"id".into()));
            error["request_id"] = "".into();
            if !path.contains("videos") {
                told.push(error);
            }
        }
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    for (key, id) in [(OTHER_KEY, "resp_1"), (KEY, "resp_unknown")] {
        let mut request = create(&format!(r#","previous_response_id":"{id}""#));
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let answered = node.send(request).await;
        assert_eq!(answered.status, 400);
        let error = error(answered).await;
        assert_eq!(error["code"], "previous_response_not_found");
        assert_eq!(error["param"], "previous_response_id");
    }
    assert_eq!(node.called(), before, "nothing was sent");
    let asked = node.plane.asked.lock().unwrap();
    let of_maker = |name: &&Name| name.key.as_str() == "k" && name.dialect == Dialect::OpenaiResponses;
    assert!(asked.iter().filter(of_maker).all(|name| &*name.id == "resp_unknown"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn callers_without_a_key_have_what_callers_without_a_key_made() {
    let node = node();
    let settings = crate::api::Settings { allow_anonymous: true };
    assert_eq!(
        Keys::build(&pb::KeySet { version: 1, keys_exist: false, keys: vec![] })
            .unwrap()
            .check(&http::HeaderMap::new(), None, settings)
            .unwrap()
            .as_str(),
        ""
    );
    let name = |key: &str| Name { dialect: Dialect::OpenaiResponses, id: "resp_1".into(), key: key.into() };
    node.gateway.bindings.bind(name(""), "a".into(), "m".into());
    assert!(node.gateway.bindings.find(&name("")).is_some());
    assert!(node.gateway.bindings.find(&name("k")).is_none());
    assert_eq!(node.send(get("/v1/responses/resp_1")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_id_is_bound_before_a_byte_that_shows_it_leaves_streamed_and_whole() {
    let node = node();
    let begin = vec![sse_head(), chunk(&created("resp_s")), chunk(DELTA), Act::Hang];
    node.up("a").does([begin, answer(200, "", &document("resp_w", "queued"))]);
    let mut answered = node.send(create(r#","stream":true"#)).await;
    assert_eq!(known(&node), [("resp_s".into(), "a".into())], "as soon as the headers are there");
    answered.next().await.unwrap().unwrap();
    drop(answered);
    let answered = node.send(create("")).await;
    assert_eq!(known(&node)[1], ("resp_w".into(), "a".into()));
    answered.text().await;
    // Killed now: the next boot knows both, and reports them.
    let again = Bindings::open(node.dir.path(), Clock::system()).unwrap();
    assert_eq!(again.waiting(9).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_committed_before_it_names_its_response_is_bound_when_it_does() {
    let node = node();
    let late = vec![
        sse_head(),
        chunk(": queued\n\n"),
        Act::Wait(s(40)),
        chunk(&created("resp_late")),
        chunk(DELTA),
        chunk(&ended("completed", "resp_late")),
        end(),
    ];
    node.up("a").does([late]);
    let mut answered = node.send(create(r#","stream":true,"background":true"#)).await;
    assert_eq!(answered.after, s(30));
    assert_eq!(known(&node), []);
    let mut seen = String::new();
    while !seen.contains("resp_late") {
        seen += &answered.next().await.unwrap().unwrap();
    }
    assert_eq!(known(&node), [("resp_late".into(), "a".into())]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_passed_on_early_because_all_gates_are_full_is_bound_before_its_id_leaves() {
    let node = node();
    let body = document("resp_1", "completed");
    let at = body.find("resp").unwrap() + 2;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let pieces = [head.as_bytes(), &body.as_bytes()[..at]].concat();
    let rest = body.as_bytes()[at..].to_vec();
    node.up("a").does([vec![Act::Send(pieces), Act::Wait(s(1)), Act::Send(rest)]]);
    let mut full = node.gateway.gates.share();
    assert!(full.grow(common::limits::GATE_HELD_BYTES_TOTAL_MAX));
    let mut answered = node.send(create("")).await;
    assert_eq!(answered.after, s(0), "it is not held");
    assert_eq!(answered.next().await.unwrap().unwrap(), body[..at]);
    assert_eq!(known(&node), []);
    assert_eq!(answered.next().await.unwrap().unwrap(), body[at..]);
    assert_eq!(known(&node), [("resp_1".into(), "a".into())]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_or_failed_is_not_bound() {
    let node = node();
    node.up("a").does([
        answer(200, "", &document("resp_1", "completed")),
        streamed(&[created("resp_2"), ended("failed", "resp_2")]),
    ]);
    node.up("b").does([streamed(&[created("resp_3"), DELTA.into(), ended("completed", "resp_3")])]);
    node.send(create(r#","store":false"#)).await.text().await;
    assert_eq!(known(&node), []);
    node.send(create(r#","stream":true"#)).await.text().await;
    assert_eq!(known(&node), [("resp_3".into(), "b".into())], "the one that the caller saw");
}

#[tokio::test(start_paused = true)]
async fn a_very_long_answer_and_one_whose_first_event_is_huge_are_bound() {
    let node = node();
    let long = "x".repeat(5 * 1024 * 1024);
    let body = format!(
        r#"{{"id":"resp_long","object":"response","output":[{{"type":"message","text":"{long}"}}]}}"#
    );
    let huge = created("resp_huge")
        .replace("\"error\":null", &format!("\"instructions\":\"{}\"", "y".repeat(90_000)));
    node.up("a")
        .does([answer(200, "", &body), streamed(&[huge, DELTA.into(), ended("completed", "resp_huge")])]);
    assert_eq!(node.send(create("")).await.text().await.0.len(), body.len());
    node.send(create(r#","stream":true"#)).await.text().await;
    assert_eq!(known(&node), [("resp_long".into(), "a".into()), ("resp_huge".into(), "a".into())]);
}

#[tokio::test(start_paused = true)]
async fn what_another_node_bound_is_found_at_the_control_plane_once() {
    let node = node();
    let name = Name { dialect: Dialect::OpenaiResponses, id: "resp_far".into(), key: "k".into() };
    let far = Binding { name, channel: "c".into(), model: "m".into(), made_at_ms: Clock::system().now_ms() };
    node.plane.known.lock().unwrap().push(far);
    node.up("c").does([answer(200, "", &document("resp_far", "completed"))]);
    for _ in 0..2 {
        let answered = node.send(get("/v1/responses/resp_far")).await;
        assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("c")));
    }
    let answered = node.send(create(r#","previous_response_id":"resp_far""#)).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("c"));
    assert_eq!(node.plane.asked.lock().unwrap().len(), 1);
    let metrics = node.gateway.metrics.render();
    assert!(metrics.contains(r#"sluice_binding_lookups_total{result="found"} 1"#), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_is_away_or_silent_makes_it_503_within_two_seconds_and_never_404() {
    for (is_silent, after) in [(true, s(2)), (false, s(0))] {
        let node = node();
        if is_silent {
            node.plane.is_silent();
        } else {
            node.plane.is_away.store(true, std::sync::atomic::Ordering::Release);
        }
        for request in [
            get("/v1/responses/resp_1"),
            get("/v1/responses/resp_1/input_items"),
            create(r#","previous_response_id":"resp_1""#),
        ] {
            let began = Instant::now();
            let answered = node.send(request).await;
            assert_eq!((answered.status.as_u16(), began.elapsed()), (503, after));
            assert_eq!(answered.header("retry-after"), Some("1"));
            assert_eq!(answered.header("x-should-retry"), None);
            assert_eq!(error(answered).await["code"], "binding_unavailable");
        }
        assert_eq!(node.called(), [0, 0, 0]);
        // What is known here needs nobody.
        made_by_b(&node, "resp_2", "").await;
        assert_eq!(node.send(get("/v1/responses/resp_2")).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_ids_does_not_reach_the_control_plane_whole() {
    let node = Arc::new(node());
    node.plane.is_silent();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..300 {
        let node = node.clone();
        calls.spawn(async move { node.send(get(&format!("/v1/responses/resp_{n}"))).await.status.as_u16() });
    }
    let statuses = calls.join_all().await;
    assert!(statuses.iter().all(|status| *status == 503));
    assert_eq!(node.plane.asked.lock().unwrap().len(), common::limits::BINDING_LOOKUPS_MAX);
}
