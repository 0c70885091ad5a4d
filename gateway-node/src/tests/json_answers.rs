//! Operations whose answer is one JSON document, legacy completions, and images in both forms, through the whole path.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::support::*;

struct Case {
    dialect: &'static str,
    paths: &'static [&'static str],
    upstream: &'static str,
    /// Without the model.
    body: &'static str,
    /// `WHO` stands for the channel.
    good: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        dialect: "openai-embeddings",
        paths: &["/v1/embeddings"],
        upstream: "/v1/embeddings",
        body: r#""input":["grüß dich"],  "encoding_format":"base64""#,
        good: "{\n \"object\":\"list\", \"data\":[{\"index\":0,\"embedding\":\"AACAPw==\"}],\"model\":\"WHO\" }\n",
    },
    Case {
        dialect: "openai-moderations",
        paths: &["/v1/moderations"],
        upstream: "/v1/moderations",
        body: r#""input":"x""#,
        good: "{\"id\":\"WHO\", \"results\":[{\"flagged\":false}]}",
    },
    Case {
        dialect: "rerank",
        paths: &["/v1/rerank", "/v2/rerank"],
        upstream: "/v1/rerank",
        body: r#""query":"q","documents":["a","b"],"top_n":1"#,
        good: "{\"id\":\"WHO\",\"results\":[{\"index\":1, \"relevance_score\":0.9}]}",
    },
    Case {
        dialect: "openai-images",
        paths: &["/v1/images/generations"],
        upstream: "/v1/images/generations",
        body: r#""prompt":"a sluice""#,
        good: "{\"created\":1, \"data\":[{\"b64_json\":\"iVBO\"}],\"x\":\"WHO\"}",
    },
    Case {
        dialect: "openai-completions",
        paths: &["/v1/completions"],
        upstream: "/v1/completions",
        body: r#""prompt":"once upon""#,
        good: "{\"id\":\"WHO\",\"object\":\"text_completion\", \"choices\":[{\"index\":0,\"text\":\" a time\",\"finish_reason\":\"stop\"}]}",
    },
];

impl Case {
    fn node(&self, channels: usize) -> Node {
        Node::speaking(self.dialect, channels)
    }

    fn ask(&self, path: &str) -> Request<Full<Bytes>> {
        post_json(path, &format!(r#"{{"model":"m", {}}}"#, self.body))
    }

    fn good(&self, who: &str) -> String {
        self.good.replace("WHO", who)
    }
}

#[tokio::test(start_paused = true)]
async fn answers_pass_untouched_and_the_model_alone_is_spliced() {
    for case in CASES {
        let node = case.node(1);
        node.up("a").does([answer(200, "", &case.good("a"))]);
        for path in case.paths {
            let answered = node.send(case.ask(path)).await;
            assert_eq!(
                (answered.status.as_u16(), answered.header("x-sluice-channel")),
                (200, Some("a")),
                "{path}"
            );
            assert_eq!(answered.text().await.0, case.good("a"), "{path}");
            let call = node.up("a").calls().pop().unwrap();
            assert!(call.head.starts_with(&format!("post {} http/1.1", case.upstream)), "{}", call.head);
            assert_eq!(call.body, format!(r#"{{"model":"m-at-a", {}}}"#, case.body));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_moves_on_in_every_one_of_them() {
    for case in CASES {
        let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
        let half = &case.good("a")[..20];
        let cut =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{half}");
        let table = [
            ("refused", failing(503), "overloaded"),
            ("a status", failing(500), "upstream_error"),
            ("throttled", failing(429), "rate_limited"),
            ("no credential", failing(401), "credential"),
            ("HTML", vec![Act::Send(html.into())], "malformed"),
            ("nothing", answer(200, "", ""), "empty"),
            ("an empty object", answer(200, "", "{}"), "empty"),
            ("a cut body", vec![Act::Send(cut.into_bytes()), Act::Close], "upstream_error"),
            ("half a body", answer(200, "", half), "malformed"),
            ("an error", answer(200, "", r#"{"error":{"message":"b","code":503}}"#), "overloaded"),
            ("an error in words", answer(200, "", r#"{"error":"too many requests"}"#), "rate_limited"),
        ];
        for (what, script, class) in table {
            let node = case.node(2);
            node.up("a").does([script]);
            node.up("b").does([answer(200, "", &case.good("b"))]);
            let answered = node.send(case.ask(case.paths[0])).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{} {what}", case.dialect);
            assert_eq!(answered.text().await.0, case.good("b"), "{} {what}", case.dialect);
            let (attempts, requests) = node.counted();
            assert_eq!(
                attempts.get(&format!("a {class}")),
                Some(&1),
                "{} {what}: {attempts:?}",
                case.dialect
            );
            assert_eq!(requests, [("served".into(), 1)].into());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_at_fault_is_returned_and_one_for_another_dialects_model_is_not_found() {
    for case in CASES {
        let node = case.node(2);
        node.up("a").does([answer(400, "", r#"{"error":{"message":"no such size","type":"invalid_request_error","param":"size","code":"invalid_value"}}"#)]);
        let (status, code) = node.send(case.ask(case.paths[0])).await.code().await;
        assert_eq!((status.as_u16(), code.as_str()), (400, "invalid_value"), "{}", case.dialect);
        let (status, code) = node.call(false).await.code().await;
        assert_eq!((status.as_u16(), code.as_str()), (404, "model_not_found"), "{}", case.dialect);
        assert_eq!(node.called(), [1, 0, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ranker_says_what_is_wrong_with_a_request_by_a_message_alone() {
    let case = &CASES[2];
    let node = case.node(2);
    node.up("a").does([answer(400, "", r#"{"id":"x","message":"too many documents"}"#)]);
    let answered = node.send(case.ask("/v2/rerank")).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text().await.0.contains("too many documents"));
    assert_eq!(node.called(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn moderations_that_name_no_model_mean_the_default_one() {
    let node = CASES[1].node(1);
    let mut snapshot = snapshot_speaking("openai-moderations", 2, 1);
    snapshot.models[0].name = "omni-moderation-latest".into();
    node.install(&snapshot);
    node.up("a").does([answer(200, "", &CASES[1].good("a"))]);
    let answered = node.send(post_json("/v1/moderations", r#"{ "input":"x"}"#)).await;
    assert_eq!(answered.status, 200);
    assert_eq!(node.up("a").calls()[0].body, r#"{"model":"m-at-a", "input":"x"}"#);
    let (status, code) = node.send(post_json("/v1/embeddings", r#"{"input":"x"}"#)).await.code().await;
    assert_eq!((status.as_u16(), code.as_str()), (400, "invalid_request"));
}

const PARTIAL: &str = "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"iVBO\"}\n\n";

fn finished(size: usize) -> String {
    let image = "A".repeat(size);
    format!(
        "event: image_generation.completed\ndata: {{\"type\":\"image_generation.completed\",\"b64_json\":\"{image}\"}}\n\n"
    )
}

fn paint() -> Request<Full<Bytes>> {
    post_json(
        "/v1/images/generations",
        r#"{"model":"m","prompt":"a sluice","stream":true,"partial_images":1}"#,
    )
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_images_ends_with_the_finished_one_however_large_it_is() {
    for size in [10, 1_000_000] {
        let node = CASES[3].node(1);
        node.up("a").does([vec![sse_head(), chunk(PARTIAL), chunk(&finished(size)), end()]]);
        let (text, _) = node.send(paint()).await.text().await;
        assert_eq!(text, [PARTIAL, &finished(size)].concat());
        assert_eq!(node.counted().1, [("served".into(), 1)].into(), "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_images_moves_on_before_the_first_and_raises_after_it() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"server_error\",\"message\":\"b\"}}\n\n";
    let node = CASES[3].node(2);
    node.up("a").does([
        vec![sse_head(), chunk(error), end()],
        vec![sse_head(), chunk(PARTIAL), Act::Close],
        vec![sse_head(), chunk(PARTIAL), end()],
    ]);
    node.up("b").does([vec![sse_head(), chunk(PARTIAL), chunk(&finished(10)), end()]]);
    assert_eq!(node.send(paint()).await.header("x-sluice-channel"), Some("b"));
    for what in ["cut", "no finished image"] {
        let (text, _) = node.send(paint()).await.text().await;
        let rest = text.strip_prefix(PARTIAL).unwrap();
        assert!(
            rest.starts_with("event: error\ndata: {") && rest.contains("upstream_stream_error"),
            "{what}: {rest}"
        );
    }
}

fn text(text: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"object\":\"text_completion\", \"choices\":[{{\"index\":0,\"text\":\"{text}\",\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn complete() -> Request<Full<Bytes>> {
    post_json("/v1/completions", r#"{"model":"m","prompt":"once","stream":true}"#)
}

#[tokio::test(start_paused = true)]
async fn legacy_completions_stream_from_their_first_text_and_end_as_chat_does() {
    let frames = [text(" upon", "null"), text("", "\"stop\""), DONE.to_owned()];
    let good: Script = [vec![sse_head()], frames.iter().map(|f| chunk(f)).collect(), vec![end()]].concat();
    let node = CASES[4].node(2);
    node.up("a").does([
        good.clone(),
        vec![sse_head(), chunk("data: {\"error\":{\"message\":\"b\",\"code\":500}}\n\n"), end()],
        vec![sse_head(), chunk(&text(" upon", "null")), Act::Close],
    ]);
    node.up("b").does([good]);
    assert_eq!(node.send(complete()).await.text().await.0, frames.concat());
    let answered = node.send(complete()).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("b"));
    assert_eq!(answered.text().await.0, frames.concat());
    let (cut, _) = node.send(complete()).await.text().await;
    let rest = cut.strip_prefix(&text(" upon", "null")).unwrap();
    assert!(rest.starts_with("data: {\"error\":") && rest.contains("upstream_stream_error"), "{rest}");
}
