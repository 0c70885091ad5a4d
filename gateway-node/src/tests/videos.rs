//! Videos: submitted once, whatever happens, and asked for where they were submitted.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;

use super::support::*;

fn node() -> Node {
    Node::speaking("openai-videos", 3)
}

fn submit() -> Request<Full<Bytes>> {
    post_json("/v1/videos", r#"{"model":"m","prompt":"a cat","seconds":"4"}"#)
}

fn by_id(method: Method, path: &str) -> Request<Full<Bytes>> {
    let mut request = post_json(path, "");
    *request.method_mut() = method;
    request
}

fn video(id: &str) -> String {
    format!("{{\n\"id\": \"{id}\",\"object\":\"video\",\"status\":\"queued\",\"progress\":0}}")
}

fn accepts(id: &str) -> Script {
    answer(200, "", &video(id))
}

fn shaped(status: u16) -> Script {
    answer(status, "", r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#)
}

async fn code(answered: Answered) -> String {
    answered.code().await.1
}

#[tokio::test(start_paused = true)]
async fn a_submission_goes_on_only_where_nobody_can_have_taken_it() {
    let untaken: [(&str, Script); 6] = [
        ("401", shaped(401)),
        ("402", shaped(402)),
        ("403", shaped(403)),
        (
            "404",
            answer(
                404,
                "",
                r#"{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
            ),
        ),
        ("429", shaped(429)),
        ("503", shaped(503)),
    ];
    for (what, script) in untaken {
        let node = node();
        node.up("a").does([script]);
        node.up("b").does([accepts("video_b")]);
        let answered = node.send(submit()).await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("x-sluice-channel")),
            (200, Some("b")),
            "{what}"
        );
        assert_eq!(node.called(), [1, 1, 0], "{what}");
    }
    let node = node();
    node.up("a").refuses();
    node.up("b").does([accepts("video_b")]);
    assert_eq!(
        node.send(submit()).await.text().await.0,
        video("video_b"),
        "a refused connection, byte for byte"
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_is_ambiguous_is_returned_and_not_to_be_repeated() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let cut = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{}",
        video("x")
    );
    let ambiguous: [(&str, Script, u16); 16] = [
        ("closed without an answer", vec![Act::Close], 503),
        ("a reset after a part of the headers", vec![Act::Send(b"HTTP/1.1 2".to_vec()), Act::Close], 503),
        ("no headers", vec![Act::Hang], 504),
        ("500", shaped(500), 502),
        ("502 of a proxy", answer(502, "", "<html>"), 502),
        ("504", shaped(504), 504),
        ("408", shaped(408), 504),
        ("409", shaped(409), 503),
        ("529", shaped(529), 503),
        ("503 without an error", answer(503, "", "<html>busy</html>"), 503),
        ("429 without an error", answer(429, "", ""), 429),
        ("a page under 200", vec![Act::Send(html.into())], 502),
        ("nothing under 200", answer(200, "", ""), 502),
        ("a 204", vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())], 502),
        ("an answer that is cut", vec![Act::Send(cut.into()), Act::Close], 502),
        ("an error under 200", answer(200, "", r#"{"error":{"message":"m","code":"server_error"}}"#), 502),
    ];
    for (what, script, status) in ambiguous {
        let node = node();
        node.up("a").does([script]);
        node.up("b").does([accepts("video_b")]);
        let answered = node.send(submit()).await;
        assert_eq!(answered.status, status, "{what}");
        assert_eq!(answered.header("x-should-retry"), Some("false"), "{what}");
        assert_eq!(answered.header("retry-after"), None, "{what}");
        assert_eq!(node.called(), [1, 0, 0], "{what}: submitted once");
        assert_eq!(node.gateway.bindings.counts().0, 0, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_at_fault_is_told_so_and_goes_nowhere_else() {
    for status in [400, 413, 422] {
        let node = node();
        node.up("a").does([answer(status, "", r#"{"error":{"message":"seconds","type":"invalid_request_error","param":"seconds","code":"bad"}}"#)]);
        let answered = node.send(submit()).await;
        assert_eq!(answered.status, status);
        assert_eq!(node.called(), [1, 0, 0]);
        answered.text().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_connection_is_no_reason_to_submit_twice() {
    let node = node();
    node.up("a").does([accepts("video_1")]);
    node.send(submit()).await.text().await;
    // A connection that is kept open, and then closes instead of an answer.
    node.up("a").does([vec![Act::Close]]);
    let answered = node.send(submit()).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-should-retry")), (503, Some("false")));
    assert_eq!(node.called(), [2, 0, 0]);
    assert_eq!(node.up("a").connections.load(std::sync::atomic::Ordering::Acquire), 2, "each over its own");
}

#[tokio::test(start_paused = true)]
async fn when_all_have_refused_a_submission_waiting_may_help() {
    let node = node();
    for name in ["a", "b", "c"] {
        node.up(name).does([answer(
            429,
            "retry-after: 5\r\n",
            r#"{"error":{"message":"m","type":"t","code":"rate_limit_exceeded"}}"#,
        )]);
    }
    let answered = node.send(submit()).await;
    assert_eq!((answered.status.as_u16(), answered.header("retry-after")), (429, Some("5")));
    assert_eq!(node.called(), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_video_is_polled_fetched_and_deleted_where_it_was_submitted() {
    let node = node();
    node.up("a").does([shaped(503)]);
    node.up("b").does([accepts("video_1")]);
    node.send(submit()).await.text().await;
    node.up("a").does([accepts("video_a")]);
    let failed = r#"{"id":"video_1","object":"video","status":"failed","error":{"code":"moderation_blocked","message":"m"}}"#;
    for (method, path, up) in [
        (Method::GET, "/v1/videos/video_1", "get /v1/videos/video_1 http"),
        (Method::GET, "/v1/videos/video_1?limit=3", "get /v1/videos/video_1 http"),
        (Method::DELETE, "/v1/videos/video_1", "delete /v1/videos/video_1 http"),
        (Method::GET, "/v1beta/openai/videos/video_1", "get /v1/videos/video_1 http"),
    ] {
        node.up("b").does([answer(200, "", failed)]);
        let answered = node.send(by_id(method, path)).await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("x-sluice-channel")),
            (200, Some("b")),
            "{path}"
        );
        assert_eq!(answered.text().await.0, failed, "a job that failed is an answer");
        assert!(node.up("b").calls().pop().unwrap().head.starts_with(up), "{path}");
    }
    assert_eq!(node.called(), [1, 5, 0]);
    assert_eq!(node.counted().1, [("served".into(), 5)].into());
}

#[tokio::test(start_paused = true)]
async fn a_remix_goes_to_the_videos_channel_once_and_is_bound_itself() {
    let node = node();
    node.up("a").does([shaped(503)]);
    node.up("b").does([accepts("video_1")]);
    node.send(submit()).await.text().await;
    node.up("a").does([accepts("video_a")]);
    let remix = || post_json("/v1/videos/video_1/remix", r#"{"prompt":"a dog"}"#);
    node.up("b").does([accepts("video_2"), vec![Act::Close]]);
    assert_eq!(node.send(remix()).await.text().await.0, video("video_2"));
    let call = node.up("b").calls().pop().unwrap();
    assert_eq!(call.body, r#"{"prompt":"a dog"}"#);
    let answered = node.send(remix()).await;
    assert_eq!((answered.status.as_u16(), answered.header("x-should-retry")), (503, Some("false")));
    assert_eq!(node.called(), [1, 3, 0]);
    node.up("b").does([accepts("video_2")]);
    assert_eq!(
        node.send(by_id(Method::GET, "/v1/videos/video_2")).await.header("x-sluice-channel"),
        Some("b")
    );
}

#[tokio::test(start_paused = true)]
async fn content_is_bytes_that_pass_as_they_come_however_many_they_are() {
    let node = node();
    node.up("a").does([accepts("video_1")]);
    node.send(submit()).await.text().await;
    let head = |length: usize| {
        Act::Send(format!("HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\naccept-ranges: bytes\r\ncontent-length: {length}\r\n\r\n").into())
    };
    let piece = "m".repeat(1024 * 1024);
    let pieces = 12;
    let mut script = vec![head(piece.len() * pieces)];
    script.extend((0..pieces).map(|_| Act::Send(piece.clone().into_bytes())));
    node.up("a").does([script.clone()]);
    let mut request = by_id(Method::GET, "/v1/videos/video_1/content?variant=thumbnail&x=1");
    request.headers_mut().insert("range", "bytes=5-".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!(answered.header("content-type"), Some("video/mp4"));
    assert_eq!(answered.header("content-length"), Some((piece.len() * pieces).to_string().as_str()));
    assert_eq!(answered.header("accept-ranges"), None, "whole, or not at all");
    assert_eq!(answered.text().await.0.len(), piece.len() * pieces);
    let call = node.up("a").calls().pop().unwrap();
    assert!(call.head.starts_with("get /v1/videos/video_1/content?variant=thumbnail http"), "{}", call.head);
    assert!(!call.head.contains("range"), "{}", call.head);

    // What breaks off after the first megabytes ends without a complete length.
    script.truncate(8);
    script.push(Act::Close);
    node.up("a").does([script]);
    let mut answered = node.send(by_id(Method::GET, "/v1/videos/video_1/content")).await;
    let mut last = answered.next().await;
    while let Some(Ok(_)) = last {
        last = answered.next().await;
    }
    assert!(last.is_some_and(|end| end.is_err()), "aborted");
}

#[tokio::test(start_paused = true)]
async fn content_that_is_elsewhere_or_not_there_yet_takes_no_polling_from_anybody() {
    let node = node();
    node.up("a").does([accepts("video_1")]);
    node.send(submit()).await.text().await;
    let content = || by_id(Method::GET, "/v1/videos/video_1/content");
    node.up("a").does([answer(
        404,
        "",
        r#"{"error":{"message":"Video is not ready yet","type":"invalid_request_error"}}"#,
    )]);
    assert_eq!(node.send(content()).await.status, 404);
    node.up("a").does([answer(302, "location: https://cdn.example/x\r\n", "")]);
    assert_eq!(code(node.send(content()).await).await, "no_available_channel");
    node.up("a").does([accepts("video_1")]);
    assert_eq!(node.send(by_id(Method::GET, "/v1/videos/video_1")).await.status, 200);
    assert_eq!(node.send(content()).await.status, 503, "that alone is out");
}

#[tokio::test(start_paused = true)]
async fn a_submission_without_a_model_means_the_usual_one() {
    let node = node();
    let mut snapshot = snapshot_speaking("openai-videos", 2, 1);
    snapshot.models[0].name = "sora-2".into();
    node.install(&snapshot);
    node.up("a").does([accepts("video_1")]);
    assert_eq!(node.send(post_json("/v1/videos", r#"{"prompt":"p"}"#)).await.status, 200);
    assert!(node.up("a").calls()[0].body.contains(r#""model":"m-at-a""#));
}

#[tokio::test(start_paused = true)]
async fn a_form_is_submitted_as_it_came_but_for_the_models_name_and_its_answer_is_bound() {
    let node = node();
    node.up("a").does([accepts("video_1")]);
    let form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"f.png\"\r\nContent-Type: image/png\r\n\r\n\0\x01\r\n--b--\r\n";
    let mut request = post_json("/v1/videos", form);
    request.headers_mut().insert("content-type", "multipart/form-data; boundary=b".parse().unwrap());
    assert_eq!(node.send(request).await.status, 200);
    let call = node.up("a").calls().pop().unwrap();
    assert_eq!(call.body, form.replace("\r\nm\r\n", "\r\nm-at-a\r\n"));
    assert_eq!(node.send(by_id(Method::GET, "/v1/videos/video_1")).await.status, 200);
}
