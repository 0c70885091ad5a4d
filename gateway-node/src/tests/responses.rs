//! The Responses API through the whole path.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::support::*;

const DELTA: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\", \"sequence_number\":2,\"delta\":\"grüß\"}\n\n";
const FAILED: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":3,\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}}}\n\n";
const QUOTA: &str = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n";

fn created(who: &str) -> String {
    format!(
        "event: response.created\ndata: {{\"type\":\"response.created\",\"sequence_number\":0,\"response\":{{\"id\":\"{who}\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}}}\n\n"
    )
}

fn completed(who: &str) -> String {
    format!(
        "event: response.completed\ndata: {{\"type\":\"response.completed\",\"sequence_number\":9,\"response\":{{\"id\":\"{who}\",\"status\":\"completed\",\"error\":null,\"usage\":{{\"output_tokens\":1}}}}}}\n\n"
    )
}

fn good(who: &str) -> Vec<String> {
    vec![created(who), DELTA.to_owned(), completed(who)]
}

fn whole(who: &str) -> String {
    format!(
        "{{\n  \"id\": \"{who}\", \"object\":\"response\", \"status\":\"completed\",\"error\":null,\"output\":[{{\"type\":\"message\"}}]\n}}\n"
    )
}

fn node(channels: usize) -> Node {
    Node::speaking("openai-responses", channels)
}

fn ask(stream: bool) -> Request<Full<Bytes>> {
    post_json(
        "/v1/responses",
        &format!(r#"{{"model":"m", "stream":{stream},"input":"hi","x_unknown":2.50}}"#),
    )
}

fn streamed(frames: &[String]) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![end()]].concat()
}

/// Our own frame: named, with the error in an object, and nothing behind it.
fn is_closing(text: &str) -> bool {
    let Some(data) = text.strip_prefix("event: error\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"))
    else {
        return false;
    };
    let event: serde_json::Value = serde_json::from_str(data).unwrap();
    event["type"] == "error"
        && event["error"]["code"] == "upstream_stream_error"
        && event["error"]["request_id"].is_string()
}

#[tokio::test(start_paused = true)]
async fn answers_pass_untouched_streamed_and_whole() {
    let node = node(1);
    node.up("a").does([streamed(&good("a")), answer(200, "", &whole("a"))]);
    assert_eq!(node.send(ask(true)).await.text().await.0, good("a").concat());
    assert_eq!(node.send(ask(false)).await.text().await.0, whole("a"));
    let calls = node.up("a").calls();
    assert!(calls[0].head.starts_with("post /v1/responses http/1.1"), "{}", calls[0].head);
    assert_eq!(calls[0].body, r#"{"model":"m-at-a", "stream":true,"input":"hi","x_unknown":2.50}"#);
    assert_eq!(node.counted().1, [("served".into(), 2)].into());
}

#[tokio::test(start_paused = true)]
async fn br_001_a_quota_error_behind_response_created_suspends_the_channel_and_the_next_one_answers() {
    let node = node(2);
    node.up("a").does([streamed(&[created("a"), QUOTA.to_owned()])]);
    node.up("b").does([streamed(&good("b"))]);
    for calls in [[1, 1, 0], [1, 2, 0]] {
        let answered = node.send(ask(true)).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("b"));
        assert_eq!(
            answered.text().await.0,
            good("b").concat(),
            "the second channel's stream and nothing else"
        );
        assert_eq!(node.called(), calls);
    }
    assert_eq!(node.counted().0, [("a balance".into(), 1), ("b ok".into(), 2)].into());
}

#[tokio::test(start_paused = true)]
async fn br_020_an_error_of_the_request_itself_is_returned_with_its_code_and_words() {
    for event in [
        r#"{"type":"error","error":{"type":"image_error","code":"invalid_image","message":"no image","param":null}}"#,
        r#"{"type":"error","code":"invalid_image","message":"no image","param":null}"#,
    ] {
        let node = node(2);
        node.up("a").does([streamed(&[created("a"), format!("event: error\ndata: {event}\n\n")])]);
        let answered = node.send(ask(true)).await;
        assert_eq!(answered.status, 400);
        let (text, _) = answered.text().await;
        let error: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&error["error"]["code"], &error["error"]["message"]),
            (&"invalid_image".into(), &"no image".into())
        );
        assert_eq!(node.called(), [1, 0, 0], "no channel could answer it");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_before_commit_moves_on() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let failed = r#"{"id":"a","object":"response","status":"failed","error":{"code":"server_error","message":"b"},"output":[]}"#;
    let table: [(&str, Script, &str, [bool; 2]); 10] = [
        ("E-11", streamed(&[created("a"), FAILED.to_owned()]), "rate_limited", [true, false]),
        (
            "flat",
            streamed(&[
                "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"b\"}\n\n"
                    .into(),
            ]),
            "upstream_error",
            [true, false],
        ),
        ("only the beginning", streamed(&[created("a")]), "empty", [true, false]),
        (
            "a cut beginning",
            vec![sse_head(), chunk(&created("a")), Act::Close],
            "upstream_error",
            [true, true],
        ),
        ("broken JSON", streamed(&["data: {\"type\":\n\n".into()]), "malformed", [true, true]),
        ("HTML", vec![Act::Send(html.into())], "malformed", [true, true]),
        ("nothing", vec![sse_head(), end()], "empty", [true, true]),
        ("a failed response", answer(200, "", failed), "upstream_error", [true, true]),
        (
            "an error body",
            answer(200, "", r#"{"error":{"message":"b","code":503}}"#),
            "overloaded",
            [true, true],
        ),
        ("a status", failing(500), "upstream_error", [true, true]),
    ];
    for (what, script, class, modes) in table {
        for (is_stream, _) in [true, false].into_iter().zip(modes).filter(|(_, is_meant)| *is_meant) {
            let node = node(2);
            node.up("a").does([script.clone()]);
            node.up("b").does([if is_stream { streamed(&good("b")) } else { answer(200, "", &whole("b")) }]);
            let answered = node.send(ask(is_stream)).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}, stream {is_stream}");
            let expected = if is_stream { good("b").concat() } else { whole("b") };
            assert_eq!(answered.text().await.0, expected, "{what}, stream {is_stream}");
            let (attempts, _) = node.counted();
            assert_eq!(
                attempts.get(&format!("a {class}")),
                Some(&1),
                "{what}, stream {is_stream}: {attempts:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_ends_in_an_error_event_that_the_sdks_raise() {
    let begin = || vec![sse_head(), chunk(&created("a")), chunk(DELTA)];
    let table = [
        ("cut", [begin(), vec![Act::Close]].concat(), ""),
        ("no last event", [begin(), vec![end()]].concat(), ""),
        ("stall", [begin(), vec![Act::Hang]].concat(), ""),
        ("failed", [begin(), vec![chunk(FAILED), end()]].concat(), FAILED),
        ("mid-event", [begin(), vec![chunk("event: resp"), Act::Close]].concat(), "event: resp\n\n"),
    ];
    for (what, script, between) in table {
        let node = node(2);
        node.up("a").does([script]);
        let (text, _) = node.send(ask(true)).await.text().await;
        let rest = text
            .strip_prefix(&[created("a").as_str(), DELTA, between].concat())
            .unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(is_closing(rest), "{what}: {rest}");
        assert_eq!(node.called(), [1, 0, 0], "{what}");
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a cut".into(), 1)].into(), "{what}");
        assert_eq!(requests, [("cut".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_event_of_the_upstream_passes_as_it_is() {
    let node = node(1);
    node.up("a").does([streamed(&[created("a"), DELTA.to_owned(), QUOTA.to_owned()])]);
    assert_eq!(node.send(ask(true)).await.text().await.0, [&created("a"), DELTA, QUOTA].concat());
    assert_eq!(node.counted().0, [("a cut".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn br_086_a_last_event_that_comes_in_two_reads_is_a_clean_end() {
    let node = node(1);
    let last = completed("a");
    let (left, right) = last.split_at(last.len() / 2);
    node.up("a").does([streamed(&[created("a"), DELTA.to_owned(), left.to_owned(), right.to_owned()])]);
    assert_eq!(node.send(ask(true)).await.text().await.0, good("a").concat());
    assert_eq!(node.counted().1, [("served".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn keepalives_do_not_keep_a_stalled_stream_alive() {
    let node = node(1);
    let mut script = vec![sse_head(), chunk(&created("a")), chunk(DELTA)];
    for number in 0..100 {
        let ping =
            format!("event: keepalive\ndata: {{\"type\":\"keepalive\",\"sequence_number\":{number}}}\n\n");
        script.extend([Act::Wait(s(5)), chunk(&ping)]);
    }
    node.up("a").does([script]);
    let (text, took) = node.send(ask(true)).await.text().await;
    assert_eq!(took, s(300));
    assert!(text.contains("upstream_stream_error"));
}
