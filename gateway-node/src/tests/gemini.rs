//! Google's own API through the whole path.

use bytes::Bytes;
use common::pb::fleet as pb;
use http::Request;
use http_body_util::Full;

use super::support::*;

const TEXT: &str = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"x\"}],\"role\": \"model\"},\"index\": 0}]}\r\n\r\n";
const STOP: &str = "data: {\"candidates\": [{\"content\": {\"role\": \"model\"},\"finishReason\": \"STOP\"}],\"usageMetadata\": {\"totalTokenCount\": 4}}\r\n\r\n";
const USAGE: &str = "data: {\"usageMetadata\": {\"promptTokenCount\": 3}}\r\n\r\n";
const BUSY: &str = "data: {\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n";
const FIRST: &str = "[{\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"x\"}]}}]}";
const LAST: &str = ",\r\n{\"candidates\": [{\"finishReason\": \"STOP\"}]}";
const CLOSE: &str = "\r\n]\r\n";
const WHOLE: &str =
    "{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"x\"}]}, \"finishReason\": \"STOP\"}]\n}\n";
const GENERATE: &str = "/v1beta/models/m:generateContent";
const STREAM: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";
const ARRAY: &str = "/v1beta/models/m:streamGenerateContent";
const CONTENTS: &str = r#"{ "contents": [{"parts": [{"text": "grüß dich"}]}],  "x_unknown": 2.50 }"#;

fn node(channels: usize) -> Node {
    let node = Node::new(channels);
    let mut snapshot = snapshot(2, channels);
    for channel in &mut snapshot.channels {
        channel.dialects = vec!["gemini".into()];
        channel.base_url = format!("http://{}/v1beta", channel.id);
    }
    for model in &mut snapshot.models {
        model.chains[0].dialect = "gemini".into();
    }
    snapshot.models.push(pb::Model { name: "other".into(), chains: vec![] });
    node.install(&snapshot);
    node
}

fn post(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("host", "node")
        .header("x-goog-api-key", KEY)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}

fn array_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=UTF-8\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

fn streamed(frames: &[&str]) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![end()]].concat()
}

fn error(status: u16, name: &str) -> String {
    format!(
        "{{\n  \"error\": {{\n    \"code\": {status},\n    \"message\": \"m\",\n    \"status\": \"{name}\"\n  }}\n}}\n"
    )
}

/// The status, our code and Google's name of an error answer.
async fn refusal(answered: Answered) -> (u16, String, String) {
    let status = answered.status.as_u16();
    let (text, _) = answered.text().await;
    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
    let error = &body["error"];
    assert_eq!(error["code"], status, "{text}");
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{text}");
    assert_eq!(info["metadata"]["request_id"].as_str().unwrap().len(), 36, "{text}");
    (status, info["reason"].as_str().unwrap().into(), error["status"].as_str().unwrap().into())
}

fn is_error_frame(text: &str) -> bool {
    text.starts_with("data: {\"error\":{\"code\":502,")
        && text.contains("\"reason\":\"upstream_stream_error\"")
        && text.ends_with("\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn every_operation_is_asked_of_the_upstreams_own_name_and_its_bytes_come_back() {
    let counted = "{\n  \"totalTokens\": 3\n}\n";
    let one = "{\"embedding\": {\"values\": [0.5]}}";
    let many = "{\"embeddings\": [{\"values\": [0.5]}]}";
    let batch = r#"{"requests": [{"model": "models/m", "content": {}}, {"model":"models/m"}]}"#;
    let batch_up = batch.replace("models/m", "models/m-at-a");
    let inner = r#"{"generateContentRequest": {"model": "models/m", "contents": []}}"#;
    let inner_up = inner.replace("models/m", "models/m-at-a");
    for (verb, body, body_up, answers) in [
        ("generateContent", CONTENTS, CONTENTS, WHOLE),
        ("countTokens", CONTENTS, CONTENTS, counted),
        ("countTokens", inner, &inner_up, counted),
        ("embedContent", r#"{"content": {"parts": []}}"#, r#"{"content": {"parts": []}}"#, one),
        ("batchEmbedContents", batch, &batch_up, many),
    ] {
        for prefix in ["/v1beta", "/v1", ""] {
            let node = node(2);
            node.up("a").does([answer(200, "", answers)]);
            let answered = node.send(post(&format!("{prefix}/models/m:{verb}"), body)).await;
            assert_eq!((answered.status.as_u16(), answered.header("x-sluice-channel")), (200, Some("a")));
            assert_eq!(answered.header("x-sluice-upstream-model"), Some("m-at-a"));
            assert_eq!(answered.text().await.0, answers);
            let call = &node.up("a").calls()[0];
            assert!(
                call.head.starts_with(&format!("post /v1beta/models/m-at-a:{} http", verb.to_lowercase())),
                "{}",
                call.head
            );
            assert_eq!(call.body, body_up);
            assert!(call.head.contains(&format!("content-length: {}", body_up.len())));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_cannot_do_takes_away_nothing_that_it_can() {
    let missing = |verb: &str| {
        let message = format!(
            "models/m-at-a is not found for API version v1beta, or is not supported for {verb}. Call ListModels"
        );
        answer(404, "", &error(404, "NOT_FOUND").replace("\"m\"", &format!("{message:?}")))
    };
    let embeds = "/v1beta/models/m:embedContent";
    for (first, then, good) in
        [(embeds, GENERATE, WHOLE), (GENERATE, embeds, "{\"embedding\": {\"values\": [0.5]}}")]
    {
        let node = node(1);
        node.up("a").does([missing(first), answer(200, "", good)]);
        for _ in 0..2 {
            assert_eq!(node.send(post(first, CONTENTS)).await.status.as_u16(), 503);
            assert_eq!(node.up("a").called(), 1);
        }
        assert_eq!(node.send(post(then, CONTENTS)).await.status.as_u16(), 200, "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn br_116_a_key_is_taken_as_googles_clients_show_it_and_never_goes_up() {
    let bearer = format!("Bearer {KEY}");
    for (header, query) in [
        (Some(("x-goog-api-key", KEY)), ""),
        (Some(("authorization", bearer.as_str())), ""),
        (None, "key=sk-caller"),
        (None, "key=sk%2Dcaller&$alt=json"),
    ] {
        let node = node(1);
        node.up("a").does([streamed(&[TEXT, STOP])]);
        let mut request = post(&format!("{ARRAY}?alt=sse&{query}&upload=1"), CONTENTS);
        request.headers_mut().remove("x-goog-api-key");
        request.headers_mut().insert("x-goog-user-project", "callers".parse().unwrap());
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let answered = node.send(request).await;
        assert_eq!(answered.status.as_u16(), 200, "{header:?} {query}");
        assert_eq!(answered.text().await.0, [TEXT, STOP].concat());
        let head = &node.up("a").calls()[0].head;
        assert!(head.starts_with("post /v1beta/models/m-at-a:streamgeneratecontent?alt=sse"), "{head}");
        for secret in ["caller", "key", "upload"] {
            assert!(!head.contains(secret), "{secret}: {head}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_refused_in_googles_shape_and_no_upstream_is_asked() {
    let node = node(1);
    let no_key = |path: &str| {
        let mut request = post(path, CONTENTS);
        request.headers_mut().remove("x-goog-api-key");
        request
    };
    let get = |path: &str| {
        Request::get(path).header("host", "node").header("x-goog-api-key", KEY).body(Full::default()).unwrap()
    };
    let table = [
        (no_key(GENERATE), 401, "invalid_api_key", "UNAUTHENTICATED"),
        (no_key(&format!("{GENERATE}?key=sk-other")), 401, "invalid_api_key", "UNAUTHENTICATED"),
        (post("/v1beta/models/nope:generateContent", CONTENTS), 404, "model_not_found", "NOT_FOUND"),
        (post("/v1beta/models/other:countTokens", CONTENTS), 404, "model_not_found", "NOT_FOUND"),
        (post("/v1beta/models/m:predict", CONTENTS), 404, "not_found", "NOT_FOUND"),
        (post("/v1beta/files", CONTENTS), 404, "not_found", "NOT_FOUND"),
        (get(GENERATE), 405, "method_not_allowed", "UNIMPLEMENTED"),
        (get("/v1beta/models/nope"), 404, "model_not_found", "NOT_FOUND"),
        (post(GENERATE, "{\"contents\":["), 400, "invalid_request", "INVALID_ARGUMENT"),
        (post(GENERATE, ""), 400, "invalid_request", "INVALID_ARGUMENT"),
        (post(GENERATE, r#"{"model":"models/n"}"#), 400, "invalid_request", "INVALID_ARGUMENT"),
        (post(&format!("{ARRAY}?alt=proto"), CONTENTS), 400, "invalid_request", "INVALID_ARGUMENT"),
    ];
    for (request, status, code, name) in table {
        let shown = format!("{} {}", request.method(), request.uri());
        let expected = (status, code.to_owned(), name.to_owned());
        assert_eq!(refusal(node.send(request).await).await, expected, "{shown}");
    }
    assert_eq!(node.called(), [0, 0, 0]);
    let mut openais = post("/v1/chat/completions", "{\"model\":\"m\"}");
    openais.headers_mut().insert("x-goog-api-key", KEY.parse().unwrap());
    assert_eq!(node.send(openais).await.code().await.1, "model_not_found", "a model of another dialect");
}

#[tokio::test(start_paused = true)]
async fn models_are_listed_as_google_does() {
    let node = node(1);
    let get = |path: &str, header: (&str, &str)| {
        let request = Request::get(path).header("host", "node").header(header.0, header.1);
        request.header("x-goog-api-client", "google-genai-sdk/3").body(Full::default()).unwrap()
    };
    for path in ["/v1beta/models", "/v1/models"] {
        let (text, _) = node.send(get(path, ("x-goog-api-key", KEY))).await.text().await;
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(list["models"].as_array().unwrap().len(), 1, "only what answers here: {text}");
        assert_eq!(list["models"][0]["name"], "models/m");
        let (text, _) =
            node.send(get(&format!("{path}/m?key={KEY}"), ("x-goog-api-key", KEY))).await.text().await;
        let one: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&one["name"], &one["displayName"]), (&"models/m".into(), &"m".into()));
    }
    for path in ["/v1beta/models", "/v1/models", "/v1/models/m"] {
        let by_query = node.send(get(&format!("{path}?key={KEY}"), ("accept", "*/*"))).await;
        assert_eq!(by_query.status.as_u16(), 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_channel_that_fails_is_not_noticed_in_any_form() {
    let raw = error(503, "UNAVAILABLE");
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let table: [(&str, Script, &str); 9] = [
        ("a 503", answer(503, "", &raw), "overloaded"),
        ("a 429", answer(429, "", &error(429, "RESOURCE_EXHAUSTED")), "rate_limited"),
        (
            "a bad key",
            answer(
                400,
                "",
                r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            ),
            "credential",
        ),
        ("an error under a 200", answer(200, "", &raw), "overloaded"),
        (
            "E-25",
            answer(200, "", r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#),
            "rate_limited",
        ),
        ("a page", vec![Act::Send(html.into())], "malformed"),
        ("nothing", vec![sse_head(), end()], "empty"),
        ("no answer", vec![Act::Close], "connect"),
        ("no headers", vec![Act::Hang], "timeout"),
    ];
    let array = [FIRST, LAST, CLOSE];
    for (what, script, class) in table {
        for (path, healthy, bytes) in [
            (GENERATE, answer(200, "", WHOLE), WHOLE.to_owned()),
            (STREAM, streamed(&[USAGE, TEXT, STOP]), [USAGE, TEXT, STOP].concat()),
            (ARRAY, [vec![array_head()], array.map(chunk).to_vec(), vec![end()]].concat(), array.concat()),
        ] {
            let node = node(2);
            node.up("a").does([script.clone()]);
            node.up("b").does([healthy]);
            let answered = node.send(post(path, CONTENTS)).await;
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what} {path}");
            assert_eq!(answered.text().await.0, bytes, "{what} {path}");
            assert_eq!(node.called(), [1, 1, 0], "{what} {path}");
            assert_eq!(node.counted().0.get(&format!("a {class}")), Some(&1), "{what} {path}");
        }
    }
    for frames in [&[BUSY][..], &[USAGE, BUSY], &[USAGE], &[": x\r\n\r\n"]] {
        let node = node(2);
        node.up("a").does([streamed(frames)]);
        node.up("b").does([streamed(&[TEXT, STOP])]);
        assert_eq!(node.send(post(STREAM, CONTENTS)).await.text().await.0, [TEXT, STOP].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn br_021_an_error_in_an_array_is_the_callers_and_is_said_once_in_the_shape_of_the_path() {
    let body = format!("[{}]\n", error(400, "INVALID_ARGUMENT").trim_end());
    for status in [400, 200] {
        for path in [GENERATE, STREAM, ARRAY, "/v1beta/models/m:countTokens", "/v1beta/models/m:embedContent"]
        {
            let node = node(2);
            node.up("a").does([answer(status, "", &body)]);
            let refused = node.send(post(path, CONTENTS)).await;
            assert_eq!(refused.header("x-should-retry"), None);
            let expected = (400, "invalid_request".to_owned(), "INVALID_ARGUMENT".to_owned());
            assert_eq!(refusal(refused).await, expected, "{status} {path}");
            assert_eq!(node.called(), [1, 0, 0], "{status} {path}");
        }
    }
    // At the paths that speak as OpenAI does, from the endpoint that answers so.
    let node = Node::new(2);
    node.up("a").does([answer(400, "", &body)]);
    let mut request = chat(false);
    *request.uri_mut() = "/v1beta/openai/chat/completions".parse().unwrap();
    let (text, _) = node.send(request).await.text().await;
    let error = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["error"];
    assert_eq!((&error["message"], &error["type"]), (&"m".into(), &"INVALID_ARGUMENT".into()), "{text}");
    assert_eq!(node.called(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn googles_paths_that_speak_as_openai_does_are_openais() {
    let node = Node::new(1);
    node.up("a").does([stream("x")]);
    let mut request = chat(true);
    *request.uri_mut() = "/v1beta/openai/chat/completions?key=sk-other".parse().unwrap();
    assert_eq!(node.send(request).await.text().await.0, stream_bytes("x"));
    assert!(node.up("a").calls()[0].head.starts_with("post /v1/chat/completions http"));
}

#[tokio::test(start_paused = true)]
async fn a_policys_word_reaches_the_caller_and_is_a_success() {
    let blocked = "data: {\"promptFeedback\": {\"blockReason\": \"SAFETY\"}}\r\n\r\n";
    let safety = "data: {\"candidates\": [{\"finishReason\": \"SAFETY\"}]}\r\n\r\n";
    let length = "data: {\"candidates\": [{\"finishReason\": \"MAX_TOKENS\"}]}\r\n\r\n";
    for frames in [&[blocked][..], &[safety], &[USAGE, length], &[TEXT, safety], &[STOP, USAGE]] {
        let node = node(2);
        node.up("a").does([streamed(frames)]);
        assert_eq!(node.send(post(STREAM, CONTENTS)).await.text().await.0, frames.concat());
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a ok".into(), 1)].into(), "{frames:?}");
        assert_eq!(requests, [("served".into(), 1)].into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_ends_in_one_error_frame_and_no_second_answer() {
    let begin = || vec![sse_head(), chunk(USAGE), chunk(TEXT)];
    let table = [
        ("cut", [begin(), vec![Act::Close]].concat(), ""),
        ("cut in an event", [begin(), vec![chunk(&STOP[..30]), Act::Close]].concat(), &STOP[..30]),
        ("cut behind the finish", [begin(), vec![chunk(STOP), Act::Close]].concat(), STOP),
        ("clean end without a finish", [begin(), vec![end()]].concat(), ""),
        ("stall", [begin(), vec![Act::Hang]].concat(), ""),
    ];
    for (what, script, more) in table {
        let node = node(2);
        node.up("a").does([script]);
        node.up("b").does([streamed(&[TEXT, STOP])]);
        let (text, took) = node.send(post(STREAM, CONTENTS)).await.text().await;
        let rest = text.strip_prefix(&[USAGE, TEXT, more].concat()).unwrap();
        let rest = if what == "cut in an event" { rest.strip_prefix("\n\n").unwrap() } else { rest };
        assert!(is_error_frame(rest), "{what}: {rest}");
        assert_eq!(took, if what == "stall" { s(300) } else { s(0) }, "{what}");
        assert_eq!(node.called(), [1, 0, 0], "{what}");
        let (attempts, requests) = node.counted();
        assert_eq!(attempts, [("a cut".into(), 1)].into(), "{what}");
        assert_eq!(requests, [("cut".into(), 1)].into(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_frame_of_the_upstream_passes_and_one_that_no_sdk_raises_gets_ours_behind_it() {
    let quiet = "data: {\"candidates\": [{\"index\": 0}],\"error\": {\"code\": 500}}\r\n\r\n";
    let node = node(1);
    node.up("a").does([streamed(&[TEXT, BUSY]), streamed(&[TEXT, quiet, STOP])]);
    assert_eq!(node.send(post(STREAM, CONTENTS)).await.text().await.0, [TEXT, BUSY].concat());
    let (text, _) = node.send(post(STREAM, CONTENTS)).await.text().await;
    assert!(is_error_frame(text.strip_prefix(&[TEXT, quiet].concat()).unwrap()), "{text}");
    assert_eq!(node.counted().0, [("a cut".into(), 2)].into());
}

#[tokio::test(start_paused = true)]
async fn an_array_comes_element_by_element_and_is_never_closed_by_us() {
    let node = node(2);
    node.up("a").does([vec![
        array_head(),
        chunk(FIRST),
        Act::Wait(s(7)),
        chunk(LAST),
        Act::Wait(s(1)),
        chunk(CLOSE),
        end(),
    ]]);
    let answered = node.send(post(ARRAY, CONTENTS)).await;
    assert_eq!(answered.after, s(0), "the first element decides");
    assert_eq!(answered.text().await, ([FIRST, LAST, CLOSE].concat(), s(8)));
    assert_eq!(node.counted().1, [("served".into(), 1)].into());

    let begin = || vec![array_head(), chunk(FIRST)];
    let quiet = ",\r\n{\"error\": \"boom\"}";
    for (what, script, bytes) in [
        ("cut", [begin(), vec![Act::Close]].concat(), FIRST.to_owned()),
        (
            "cut in an element",
            [begin(), vec![chunk(",\r\n{\"cand"), Act::Close]].concat(),
            [FIRST, ",\r\n{\"cand"].concat(),
        ),
        ("ended without its bracket", [begin(), vec![chunk(LAST), end()]].concat(), [FIRST, LAST].concat()),
        ("closed without a finish", [begin(), vec![chunk(CLOSE), end()]].concat(), [FIRST, CLOSE].concat()),
        ("stall", [begin(), vec![Act::Hang]].concat(), FIRST.to_owned()),
        (
            "failed quietly",
            [begin(), vec![chunk(quiet), chunk(CLOSE), end()]].concat(),
            [FIRST, quiet].concat(),
        ),
    ] {
        let node = self::node(2);
        node.up("a").does([script]);
        let mut answered = node.send(post(ARRAY, CONTENTS)).await;
        let mut text = String::new();
        let mut has_broken = false;
        while let Some(piece) = answered.next().await {
            match piece {
                Ok(piece) => text += &piece,
                Err(_) => has_broken = true,
            }
        }
        assert!(has_broken, "{what}: the caller must not take it for whole");
        // What came in the same moment as the break may be lost with it.
        assert!(text == bytes || (what == "failed quietly" && text == FIRST), "{what}: {text}");
        assert_eq!(node.counted().1, [("cut".into(), 1)].into(), "{what}");
        assert_eq!(node.called(), [1, 0, 0], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecided_stream_is_committed_after_thirty_seconds_and_a_gate_to_the_end_moves_on() {
    let node = node(2);
    let late = |first| vec![first, Act::Wait(s(40)), chunk(TEXT), chunk(STOP), end()];
    node.up("a").does([[vec![sse_head()], late(chunk(USAGE))].concat()]);
    let answered = node.send(post(STREAM, CONTENTS)).await;
    assert_eq!(answered.after, s(30));
    assert_eq!(answered.text().await.0, [USAGE, TEXT, STOP].concat());

    node.up("a").does([vec![array_head(), chunk(FIRST), Act::Wait(s(60)), Act::Close]]);
    node.up("b").does([[vec![array_head()], [FIRST, LAST, CLOSE].map(chunk).to_vec(), vec![end()]].concat()]);
    let mut request = post(ARRAY, CONTENTS);
    request.headers_mut().insert("x-sluice-gate", "complete".parse().unwrap());
    let answered = node.send(request).await;
    assert_eq!((answered.header("x-sluice-channel"), answered.after), (Some("b"), s(60)));
    assert_eq!(answered.text().await.0, [FIRST, LAST, CLOSE].concat());
}

#[tokio::test(start_paused = true)]
async fn all_channels_down_is_one_real_status_in_googles_shape() {
    for (script, expected) in [
        (answer(503, "", &error(503, "UNAVAILABLE")), (503, "upstream_overloaded", "UNAVAILABLE")),
        (answer(500, "", &error(500, "INTERNAL")), (502, "upstream_error", "UNAVAILABLE")),
        (
            answer(429, "", &error(429, "RESOURCE_EXHAUSTED")),
            (429, "upstream_rate_limited", "RESOURCE_EXHAUSTED"),
        ),
        (answer(403, "", &error(403, "PERMISSION_DENIED")), (503, "no_available_channel", "UNAVAILABLE")),
    ] {
        for path in [GENERATE, STREAM, ARRAY] {
            let node = node(3);
            for name in ["a", "b", "c"] {
                node.up(name).does([script.clone()]);
            }
            let refused = node.send(post(path, CONTENTS)).await;
            assert_eq!(refused.header("content-type"), Some("application/json"));
            let (status, code, name) = refusal(refused).await;
            assert_eq!((status, code.as_str(), name.as_str()), expected, "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_gives_the_upstream_up_in_both_forms() {
    for (path, script) in [
        (STREAM, vec![sse_head(), chunk(TEXT), Act::Hang]),
        (ARRAY, vec![array_head(), chunk(FIRST), Act::Hang]),
    ] {
        let node = node(1);
        node.up("a").does([script]);
        let mut answered = node.send(post(path, CONTENTS)).await;
        answered.next().await.unwrap().unwrap();
        drop(answered);
        node.until_closed("a", s(1)).await;
        assert_eq!(node.counted().1, [("canceled".into(), 1)].into(), "{path}");
    }
}
