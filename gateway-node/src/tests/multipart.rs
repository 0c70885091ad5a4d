//! Requests that are forms, through the whole path: where the model stands, what goes up, what is refused.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::support::*;

const GOOD: &str = "{\"created\":1, \"data\":[{\"b64_json\":\"iVBO\"}]}";

/// A picture with all that could be taken for something else.
const PICTURE: &str = "\u{1}\r\n\r\n--\r\n-B\r\nname=\"model\"\r\n\r\nm\n--A\u{0}";

fn form(model: &str) -> String {
    [&file("image", PICTURE), &field("model", model), &field("prompt", "a sluice, not model m"), CLOSED]
        .concat()
}

fn edit(body: &str) -> Request<Full<Bytes>> {
    post_form("/v1/images/edits", body)
}

fn good() -> Script {
    answer(200, "", GOOD)
}

#[tokio::test(start_paused = true)]
async fn br_120_every_hop_gets_the_same_form_with_its_own_name_of_the_model_and_br_112_its_length() {
    for path in ["/v1/images/edits", "/v1/images/variations"] {
        let mut snapshot = snapshot_speaking("openai-images", 2, 3);
        snapshot.models[0].chains[0].routes[1].upstream_model = "a/far-longer.name:of_it".into();
        let node = Node::speaking("openai-images", 3);
        node.install(&snapshot);
        node.up("a").does([failing(503)]);
        node.up("b").does([failing(500)]);
        node.up("c").does([good()]);
        let answered = node.send(post_form(path, &form("m"))).await;
        assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("c")));
        assert_eq!(answered.text().await.0, GOOD);
        for (name, model) in [("a", "m-at-a"), ("b", "a/far-longer.name:of_it"), ("c", "m-at-c")] {
            let call = node.up(name).calls().pop().unwrap();
            assert_eq!(call.body, form(model), "{name}");
            assert!(call.head.starts_with(&format!("post {path} http/1.1")), "{}", call.head);
            assert!(
                call.head.contains(&format!("\r\ncontent-length: {}", form(model).len())),
                "{}",
                call.head
            );
            assert!(
                call.head.contains("\r\ncontent-type: multipart/form-data; boundary=\"b\""),
                "{}",
                call.head
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_takes_a_form_takes_json_too_where_the_content_type_says_so() {
    let node = Node::speaking("openai-images", 1);
    node.up("a").does([good()]);
    let body = r#"{"model":"m", "prompt":"p","images":[{"image_url":"https://a.example/x.png"}]}"#;
    assert_eq!(node.send(post_json("/v1/images/edits", body)).await.status, 200);
    let sent = &node.up("a").calls()[0];
    assert_eq!(sent.body, body.replace("\"m\"", "\"m-at-a\""));
    assert!(sent.head.contains("\r\ncontent-type: application/json"), "{}", sent.head);
}

#[tokio::test(start_paused = true)]
async fn a_form_that_readers_take_in_different_ways_is_refused_and_nobody_is_asked() {
    let node = Node::speaking("openai-images", 1);
    let model = field("model", "m");
    for (body, says) in [
        (String::new(), "the request body is empty"),
        (model.clone(), "it is not closed"),
        ([&field("prompt", "p"), CLOSED].concat(), "has no \\\"model\\\""),
        ([&model, &field("model", "other"), CLOSED].concat(), "stands in the request body twice"),
        ([&file("model", "m"), CLOSED].concat(), "must be a text and no file (part 1"),
        (r#"{"model":"m"}"#.to_owned(), "the boundary does not occur in the body"),
    ] {
        let answered = node.send(edit(&body)).await;
        assert_eq!(answered.status, 400, "{body}");
        let (text, _) = answered.text().await;
        assert!(text.contains(says) && text.contains("invalid_request"), "{body}: {text}");
    }
    let (status, code) = node.send(edit(&form("nobody"))).await.code().await;
    assert_eq!((status.as_u16(), code.as_str()), (404, "model_not_found"));
    let mut request = post_json("/v1/images/edits", &form("m"));
    request.headers_mut().insert("content-type", http::HeaderValue::from_static("text/plain"));
    let answered = node.send(request).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text().await.0.contains("the content-type must be multipart/form-data with a boundary"));
    assert_eq!(node.called(), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_upstreams_name_can_never_become_the_line_that_divides_the_form() {
    let node = Node::speaking("openai-images", 2);
    let mut snapshot = snapshot_speaking("openai-images", 2, 2);
    snapshot.models[0].chains[0].routes[1].upstream_model = "--Best".into();
    node.install(&snapshot);
    node.up("a").does([good()]);
    let answered = node.send(edit(&form("m"))).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text().await.0.contains("boundary"));
    assert_eq!(node.called(), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_cannot_edit_is_left_out_for_that_alone() {
    let node = Node::speaking("openai-images", 2);
    let none = r#"{"error":{"message":"Invalid URL (POST /v1/images/edits)","type":"invalid_request_error","param":null,"code":null}}"#;
    node.up("a").does([answer(404, "", none), good()]);
    node.up("b").does([good()]);
    for _ in 0..2 {
        assert_eq!(node.send(edit(&form("m"))).await.header("x-sluice-channel"), Some("b"));
    }
    let paint = post_json("/v1/images/generations", r#"{"model":"m","prompt":"p"}"#);
    assert_eq!(node.send(paint).await.header("x-sluice-channel"), Some("a"));
    let vary = post_form("/v1/images/variations", &form("m"));
    assert_eq!(node.send(vary).await.header("x-sluice-channel"), Some("a"));
    assert_eq!(node.called(), [3, 2, 0]);
}

fn event(kind: &str) -> String {
    format!("event: image_edit.{kind}\ndata: {{\"type\":\"image_edit.{kind}\",\"b64_json\":\"iVBO\"}}\n\n")
}

#[tokio::test(start_paused = true)]
async fn an_edit_streams_where_the_form_asks_for_it() {
    let streamed = [&field("stream", "true"), form("m").as_str()].concat();
    let healthy = [event("partial_image"), event("completed")];
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"server_error\",\"message\":\"b\"}}\n\n";
    let node = Node::speaking("openai-images", 2);
    node.up("a").does([
        vec![sse_head(), chunk(&healthy[0]), chunk(&healthy[1]), end()],
        vec![sse_head(), chunk(error), end()],
        vec![sse_head(), chunk(&healthy[0]), Act::Close],
    ]);
    node.up("b").does([vec![sse_head(), chunk(&healthy.concat()), end()]]);
    assert_eq!(node.send(edit(&streamed)).await.text().await.0, healthy.concat());
    let answered = node.send(edit(&streamed)).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("b"));
    assert_eq!(answered.text().await.0, healthy.concat());
    let (cut, _) = node.send(edit(&streamed)).await.text().await;
    let rest = cut.strip_prefix(&healthy[0]).unwrap();
    assert!(rest.starts_with("event: error\ndata: {") && rest.contains("upstream_stream_error"), "{rest}");
}
