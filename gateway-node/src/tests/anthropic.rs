//! Messages of Anthropic through the whole path: what an upstream is sent, what a caller sees, and what ends a stream.

use bytes::Bytes;
use common::pb::fleet as pb;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;

use super::support::*;

fn frame(data: &str) -> String {
    let kind = data.split('"').nth(3).unwrap();
    format!("event: {kind}\ndata: {data}\n\n")
}

fn start() -> String {
    frame(
        r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}"#,
    )
}

fn ping() -> String {
    frame(r#"{"type": "ping"}"#)
}

fn text(text: &str) -> String {
    frame(&format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    ))
}

fn reason() -> String {
    frame(
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}"#,
    )
}

fn stop() -> String {
    frame(r#"{"type":"message_stop"}"#)
}

fn overloaded() -> String {
    frame(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)
}

fn message_bytes(said: &str) -> String {
    [start(), ping(), text(said), reason(), stop()].concat()
}

fn message(said: &str) -> Script {
    vec![sse_head(), chunk(&start()), chunk(&ping()), chunk(&text(said)), chunk(&(reason() + &stop())), end()]
}

fn whole_message(said: &str) -> String {
    format!(
        r#"{{"id":"m1","type":"message","role":"assistant","model":"up","content":[{{"type":"text","text":"{said}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":3,"output_tokens":5}}}}"#
    )
}

fn refusal(status: u16, kind: &str, message: &str) -> Script {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_theirs"}}"#
    );
    answer(status, "", &body)
}

/// A node whose channels speak the dialect.
fn node(channels: usize) -> Node {
    let node = Node::new(channels);
    node.install(&speaking(snapshot(2, channels)));
    node
}

fn speaking(mut snapshot: pb::Snapshot) -> pb::Snapshot {
    for channel in &mut snapshot.channels {
        channel.dialects = vec!["anthropic-messages".into()];
    }
    for chain in snapshot.models.iter_mut().flat_map(|model| &mut model.chains) {
        chain.dialect = "anthropic-messages".into();
    }
    snapshot
}

fn to(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("host", "node")
        .header("x-api-key", KEY)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}

fn messages(stream: bool) -> Request<Full<Bytes>> {
    to(
        "/v1/messages",
        &format!(
            r#"{{"model":"m","stream":{stream},"max_tokens":9,"messages":[{{"role":"user","content":"hi"}}]}}"#
        ),
    )
}

fn get(path: &str) -> Request<Full<Bytes>> {
    let mut request = to(path, "");
    *request.method_mut() = Method::GET;
    request.headers_mut().insert("anthropic-version", "2023-06-01".parse().unwrap());
    request
}

async fn json(answered: Answered) -> Value {
    serde_json::from_str(&answered.text().await.0).unwrap()
}

fn is_error_frame(text: &str) -> bool {
    text.starts_with("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",")
        && text.contains("\"code\":\"upstream_stream_error\"")
        && text.ends_with("\n\n")
}

#[tokio::test(start_paused = true)]
async fn a_message_passes_untouched_streamed_and_whole() {
    for is_stream in [true, false] {
        let node = node(1);
        node.up("a").does([if is_stream { message("x") } else { answer(200, "", &whole_message("x")) }]);
        let answered = node.send(messages(is_stream)).await;
        assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("a")));
        let expected = if is_stream { message_bytes("x") } else { whole_message("x") };
        assert_eq!(answered.text().await.0, expected);
        assert_eq!(node.counted().1, [("served".into(), 1)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_gets_its_own_name_and_credential_and_the_version_that_the_caller_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "sk-upstream").unwrap();
    let node = Node::new(1);
    let mut snapshot = speaking(snapshot(2, 1));
    snapshot.channels[0].credential = format!("file:{}", path.display());
    node.install(&snapshot);
    node.up("a").does([answer(200, "anthropic-organization-id: ours\r\n", &whole_message("x"))]);

    let answered = node.send(messages(false)).await;
    assert_eq!(
        answered.header("anthropic-organization-id"),
        None,
        "the operator's account is nobody's business"
    );
    let mut request = messages(false);
    request.headers_mut().insert("anthropic-version", "2042-01-01".parse().unwrap());
    request.headers_mut().insert("anthropic-beta", "a-2025,b-2025".parse().unwrap());
    *request.uri_mut() = "/v1/messages?beta=true&key=sk-caller-too".parse().unwrap();
    node.send(request).await;

    let calls = node.up("a").calls();
    for (call, version) in calls.iter().zip(["2023-06-01", "2042-01-01"]) {
        assert!(call.head.contains("\r\nx-api-key: sk-upstream"), "{}", call.head);
        assert!(call.head.contains(&format!("\r\nanthropic-version: {version}")), "{}", call.head);
        assert!(!call.head.contains(KEY) && !call.head.contains("authorization"), "{}", call.head);
        assert!(
            call.body.starts_with(r#"{"model":"m-at-a","stream":false,"max_tokens":9,"#),
            "{}",
            call.body
        );
    }
    assert!(calls[0].head.starts_with("post /v1/messages http/1.1"), "{}", calls[0].head);
    assert!(calls[1].head.starts_with("post /v1/messages?beta=true http/1.1"), "{}", calls[1].head);
    assert!(calls[1].head.contains("\r\nanthropic-beta: a-2025,b-2025"), "{}", calls[1].head);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_where_the_next_channel_can_when_the_first_cannot() {
    let good = "{ \"input_tokens\": 14 }\n";
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let no_count = answer(200, "", &whole_message("x"));
    for first in [answer(200, "", ""), no_count, refusal(529, "overloaded_error", "b"), vec![Act::Close]] {
        let node = node(2);
        node.up("a").does([first]);
        node.up("b").does([answer(200, "", good)]);
        let answered = node.send(to("/v1/messages/count_tokens", body)).await;
        assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("b")));
        assert_eq!(answered.text().await.0, good);
        let calls = node.up("b").calls();
        assert!(calls[0].head.starts_with("post /v1/messages/count_tokens http/1.1"), "{}", calls[0].head);
        assert_eq!(calls[0].body, body.replace("\"m\"", "\"m-at-b\""));
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_cannot_count_tokens_still_answers_messages() {
    let node = node(2);
    let body = r#"{"model":"m","messages":[]}"#;
    node.up("a").does([answer(404, "", r#"{"detail":"Not Found"}"#), answer(200, "", &whole_message("a"))]);
    node.up("b").does([answer(200, "", r#"{"input_tokens":1}"#), answer(200, "", r#"{"input_tokens":1}"#)]);
    for called in [[1, 1], [1, 2]] {
        let counted = node.send(to("/v1/messages/count_tokens", body)).await;
        assert_eq!((counted.status.as_u16(), counted.header("x-sluice-channel")), (200, Some("b")));
        assert_eq!(node.called()[..2], called);
    }
    assert_eq!(node.send(messages(false)).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn br_003_overload_inside_the_stream_moves_on_and_is_counted() {
    let node = node(2);
    let failing =
        vec![sse_head(), chunk(&start()), chunk(&ping()), Act::Wait(s(2)), chunk(&overloaded()), end()];
    node.up("a").does([failing]);
    node.up("b").does([message("b")]);
    for _ in 0..3 {
        let answered = node.send(messages(true)).await;
        assert_eq!(
            (answered.header("x-sluice-channel"), answered.header("x-sluice-attempts")),
            (Some("b"), Some("2"))
        );
        assert_eq!(answered.text().await.0, message_bytes("b"), "one message_start, and it is b's");
    }
    assert_eq!(node.counted().0, [("a overloaded".into(), 3), ("b ok".into(), 3)].into());
    // It counts in the window: three of them open the breaker.
    assert_eq!(node.send(messages(true)).await.header("x-sluice-attempts"), Some("1"));
    assert_eq!(node.called(), [3, 4, 0]);
}

#[tokio::test(start_paused = true)]
async fn br_141_when_every_stream_fails_before_content_the_caller_gets_a_real_status() {
    let node = node(3);
    for name in ["a", "b", "c"] {
        node.up(name).does([vec![sse_head(), chunk(&start()), chunk(&overloaded()), end()]]);
    }
    let answered = node.send(messages(true)).await;
    assert_eq!(answered.status.as_u16(), 503);
    assert_eq!(answered.header("content-type"), Some("application/json"));
    assert_eq!((answered.header("x-should-retry"), answered.header("retry-after")), (Some("false"), None));
    let request_id = answered.header("request-id").unwrap().to_owned();
    let error = json(answered).await;
    assert_eq!(error["type"], "error");
    assert_eq!(error["error"]["type"], "overloaded_error");
    assert_eq!(error["error"]["code"], "upstream_overloaded");
    assert_eq!(error["request_id"], request_id);
    assert_eq!(node.called(), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_under_a_200_moves_on() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"id\":";
    let flat = "event: error\ndata: {\"code\":500,\"message\":\"b\",\"type\":\"server_error\"}\n\n";
    let json_error = r#"{"type":"error","error":{"type":"api_error","message":"b"}}"#;
    let table: [(&str, Script, Option<&str>, Option<&str>); 9] = [
        ("HTML", vec![Act::Send(html.into())], Some("malformed"), Some("malformed")),
        ("nothing", vec![sse_head(), end()], Some("empty"), Some("empty")),
        ("pings", vec![sse_head(), chunk(&ping()), end()], Some("empty"), None),
        (
            "a stop without a message",
            vec![sse_head(), chunk(&(start() + &stop())), end()],
            Some("empty"),
            None,
        ),
        ("broken JSON", vec![sse_head(), chunk("data: {\"type\":\n\n"), end()], Some("malformed"), None),
        ("a cut preamble", vec![sse_head(), chunk(&start()), Act::Close], Some("upstream_error"), None),
        ("a flat error", vec![sse_head(), chunk(&(start() + flat)), end()], Some("upstream_error"), None),
        ("a JSON error", answer(200, "", json_error), Some("upstream_error"), Some("upstream_error")),
        (
            "a cut body",
            vec![Act::Send(cut.into()), Act::Close],
            Some("upstream_error"),
            Some("upstream_error"),
        ),
    ];
    for (what, script, streamed, whole) in table {
        for (is_stream, class) in [(true, streamed), (false, whole)] {
            let node = node(2);
            node.up("a").does([script.clone()]);
            node.up("b").does([if is_stream { message("b") } else { answer(200, "", &whole_message("b")) }]);
            let answered = node.send(messages(is_stream)).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}, stream {is_stream}");
            let expected = if is_stream { message_bytes("b") } else { whole_message("b") };
            assert_eq!(answered.text().await.0, expected, "{what}");
            // A stream where none was asked for is judged as the body that it is not.
            if let Some(class) = class {
                let (attempts, _) = node.counted();
                assert_eq!(attempts.get(&format!("a {class}")), Some(&1), "{what} {is_stream}: {attempts:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_breaks_off_ends_in_an_error_event_and_no_second_answer() {
    let begin = || vec![sse_head(), chunk(&start()), chunk(&text("x"))];
    let keeps_pinging = || vec![vec![Act::Wait(s(20)), chunk(&ping())]; 40].concat();
    let table = [
        ("cut", [begin(), vec![Act::Close]].concat(), 0),
        ("clean end", [begin(), vec![end()]].concat(), 0),
        ("clean end behind a reason to stop", [begin(), vec![chunk(&reason()), end()]].concat(), 0),
        ("stall", [begin(), vec![Act::Hang]].concat(), 300),
        ("stall with pings", [begin(), keeps_pinging()].concat(), 300),
    ];
    for (what, script, after) in table {
        let node = node(2);
        node.up("a").does([script]);
        node.up("b").does([message("b")]);
        let (body, took) = node.send(messages(true)).await.text().await;
        let rest = body.strip_prefix(&(start() + &text("x"))).unwrap();
        let rest = rest.strip_prefix(&reason()).unwrap_or(rest);
        assert!(is_error_frame(rest.trim_start_matches(&ping())), "{what}: {rest}");
        assert_eq!(took, s(after), "{what}");
        assert_eq!(node.called(), [1, 0, 0], "{what}");
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a cut".into(), 1)].into(), "{what}");
        assert_eq!(requests, [("cut".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_sent_event_is_closed_before_the_error_event() {
    let node = node(1);
    let half = "event: content_block_delta\ndata: {\"type\":\"content";
    node.up("a").does([vec![sse_head(), chunk(&(start() + &text("x"))), chunk(half), Act::Close]]);
    let (body, _) = node.send(messages(true)).await.text().await;
    let rest = body.strip_prefix(&[&start(), &text("x"), half, "\n\n"].concat()).unwrap();
    assert!(is_error_frame(rest), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_upstream_after_content_passes_and_one_that_no_sdk_sees_is_followed_by_ours() {
    let unnamed = overloaded().strip_prefix("event: error\n").unwrap().to_owned();
    for (error, gets_ours) in [(overloaded(), false), (unnamed, true)] {
        let node = node(2);
        let sent = [start(), text("x"), error.clone()].concat();
        node.up("a").does([vec![sse_head(), chunk(&(start() + &text("x"))), chunk(&error), end()]]);
        let (body, _) = node.send(messages(true)).await.text().await;
        let rest = body.strip_prefix(&sent).unwrap();
        assert_eq!(is_error_frame(rest), gets_ours, "{rest}");
        assert_eq!(node.counted().0, [("a cut".into(), 1)].into());
        assert_eq!(node.called(), [1, 0, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn pings_do_not_rearm_the_gate_and_an_empty_message_with_a_reason_is_an_answer() {
    let node = node(2);
    let mut script = vec![sse_head(), chunk(&start())];
    for _ in 0..12 {
        script.extend([Act::Wait(s(5)), chunk(&ping())]);
    }
    script.extend([chunk(&(text("x") + &reason() + &stop())), end()]);
    let empty = start() + &reason() + &stop();
    node.up("a").does([script, vec![sse_head(), chunk(&empty), end()]]);
    assert_eq!(node.send(messages(true)).await.after, s(30));

    for until in ["content", "complete"] {
        let mut request = messages(true);
        request.headers_mut().insert("x-sluice-gate", until.parse().unwrap());
        let answered = node.send(request).await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("x-sluice-channel")),
            (200, Some("a")),
            "{until}"
        );
        assert_eq!(answered.text().await.0, empty);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_held_to_its_end_moves_on_when_it_breaks_off() {
    let node = node(2);
    node.up("a").does([vec![sse_head(), chunk(&(start() + &text("x"))), Act::Wait(s(60)), Act::Close]]);
    node.up("b").does([message("b")]);
    let mut request = messages(true);
    request.headers_mut().insert("x-sluice-gate", "complete".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!((answered.header("x-sluice-channel"), answered.after), (Some("b"), s(60)));
    assert_eq!(answered.text().await.0, message_bytes("b"));
}

#[tokio::test(start_paused = true)]
async fn br_044_credit_that_ran_out_moves_on_and_takes_the_channel_out_and_other_400s_are_the_callers() {
    let node = node(2);
    let credit = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";
    node.up("a").does([refusal(400, "invalid_request_error", credit)]);
    node.up("b").does([answer(200, "", &whole_message("b"))]);
    for attempts in ["2", "1"] {
        let answered = node.send(messages(false)).await;
        assert_eq!(
            (answered.header("x-sluice-channel"), answered.header("x-sluice-attempts")),
            (Some("b"), Some(attempts))
        );
    }
    assert_eq!(node.counted().0, [("a balance".into(), 1), ("b ok".into(), 2)].into());

    node.up("b").does([refusal(400, "invalid_request_error", "max_tokens: Field required")]);
    let answered = node.send(messages(false)).await;
    assert_eq!(answered.status.as_u16(), 400);
    let error = json(answered).await;
    assert_eq!(error["error"]["type"], "invalid_request_error");
    assert_eq!(error["error"]["message"], "max_tokens: Field required");
    assert_eq!(error["error"]["code"], "invalid_request");
    assert_ne!(error["request_id"], "req_theirs");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_another_channel_could_cure_moves_on() {
    for (status, kind) in [
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ] {
        for is_stream in [true, false] {
            let node = node(2);
            node.up("a").does([refusal(status, kind, "model: m")]);
            node.up("b").does([if is_stream { message("b") } else { answer(200, "", &whole_message("b")) }]);
            let answered = node.send(messages(is_stream)).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_request_names_by_id_and_nobody_has_takes_no_route_away() {
    let node = node(2);
    for name in ["a", "b"] {
        let missing = refusal(404, "not_found_error", "File not found: file_model_1");
        node.up(name).does([missing, answer(200, "", &whole_message(name))]);
    }
    let answered = node.send(messages(false)).await;
    assert_eq!(answered.status.as_u16(), 404);
    assert_eq!(json(answered).await["error"]["type"], "not_found_error");
    assert_eq!(node.send(messages(false)).await.header("x-sluice-channel"), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn our_own_refusals_are_in_anthropics_shape() {
    let node = node(1);
    let mut no_key = messages(false);
    no_key.headers_mut().remove("x-api-key");
    let unknown = to("/v1/messages", r#"{"model":"nobody","messages":[]}"#);
    let mut wrong_method = get("/v1/messages");
    wrong_method.headers_mut().remove("anthropic-version");
    for (request, status, kind, code) in [
        (no_key, 401, "authentication_error", "invalid_api_key"),
        (unknown, 404, "not_found_error", "model_not_found"),
        (to("/v1/messages", "{"), 400, "invalid_request_error", "invalid_request"),
        (to("/v1/messages/count_tokens", "[]"), 400, "invalid_request_error", "invalid_request"),
        (to("/v1/messages/batches", "{}"), 404, "not_found_error", "not_found"),
        (wrong_method, 405, "invalid_request_error", "method_not_allowed"),
        (get("/v1/models/nobody"), 404, "not_found_error", "model_not_found"),
    ] {
        let path = request.uri().path().to_owned();
        let answered = node.send(request).await;
        assert_eq!(answered.status.as_u16(), status, "{path}");
        let request_id = answered.header("request-id").unwrap().to_owned();
        let error = json(answered).await;
        assert_eq!(
            (error["type"].as_str(), error["error"]["type"].as_str(), error["error"]["code"].as_str()),
            (Some("error"), Some(kind), Some(code)),
            "{path}"
        );
        assert_eq!(error["request_id"], request_id);
    }
    assert_eq!(node.called(), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_models_are_listed_in_the_shape_of_the_sdk_that_asks() {
    let node = node(1);
    let list = json(node.send(get("/v1/models?limit=20")).await).await;
    assert_eq!((&list["first_id"], &list["last_id"]), (&"m".into(), &"m".into()));
    assert_eq!(list["has_more"], false);
    let one = json(node.send(get("/v1/models/m")).await).await;
    assert_eq!(list["data"][0], one);
    assert_eq!(one["type"], "model");
    assert_eq!((&one["id"], &one["display_name"]), (&"m".into(), &"m".into()));
    let mut openais = get("/v1/models");
    openais.headers_mut().remove("anthropic-version");
    assert_eq!(json(node.send(openais).await).await["object"], "list");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_ends_the_upstreams_message_within_a_second() {
    let held: Script = vec![sse_head(), chunk(&start()), Act::Hang];
    let begun: Script = vec![sse_head(), chunk(&(start() + &text("x"))), Act::Hang];
    for (script, is_begun) in [(held, false), (begun, true)] {
        let node = node(1);
        node.up("a").does([script]);
        if is_begun {
            drop(node.send(messages(true)).await);
        } else {
            let left = tokio::time::timeout(s(5), node.send(messages(true))).await;
            assert!(left.is_err(), "nothing is decisive yet");
        }
        node.until_closed("a", s(1)).await;
        assert_eq!(node.counted().1, [("canceled".into(), 1)].into());
    }
}
