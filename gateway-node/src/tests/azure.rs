//! Azure OpenAI as it really is, through the whole path: deployments, its first frames, its filter, its errors and
//! headers.

use super::support::*;
use common::catalog::parse;

/// The deployment `my-gpt` on the upstream `a`, and `b` behind it, which speaks as OpenAI does.
fn azure() -> Node {
    let document = r#"
        [channels.a]
        profile = "azure-openai"
        dialects = ["openai-chat"]
        base_url = "http://a"
        [channels.b]
        dialects = ["openai-chat"]
        base_url = "http://b/v1"
        [models.m]
        routes = [
          { channel = "a", upstream_model = "my-gpt", cost.order = 1 },
          { channel = "b", cost.order = 2 },
        ]
    "#;
    let node = Node::new(2);
    node.install(&parse(document.as_bytes()).unwrap().catalog.compile(2));
    node.up("b").does([stream("b")]);
    node
}

const FILTER: &str = r#"data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}

"#;
const ROLE: &str = r#"data: {"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"c1","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp"}

"#;
const TEXT: &str = r#"data: {"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":"Hi"},"finish_reason":null,"index":0}],"created":1,"id":"c1","model":"m","object":"chat.completion.chunk"}

"#;
/// The asynchronous filter's: about text that came before.
const OFFSETS: &str = r#"data: {"choices":[{"content_filter_offsets":{"check_offset":0,"start_offset":0,"end_offset":2},"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}},"finish_reason":null,"index":0}],"created":0,"id":"","model":"","object":""}

"#;
const FILTERED: &str = r#"data: {"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"content_filter","index":0}],"created":1,"id":"c1","model":"m","object":"chat.completion.chunk"}

"#;

fn sse(headers: &str, frames: &[&str]) -> Script {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
    );
    let frames = frames.iter().map(|frame| chunk(frame));
    [vec![Act::Send(head.into_bytes())], frames.collect(), vec![end()]].concat()
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_deployment_passes_untouched_with_its_filters_and_without_what_names_the_resource() {
    let node = azure();
    let headers = "apim-request-id: 8d7b\r\nx-ms-region: East US\r\nx-ms-deployment-name: my-gpt\r\n\
                   x-ms-rai-invoked: true\r\nx-ratelimit-remaining-tokens: 7\r\nx-request-id: theirs\r\n";
    let finish = finish();
    let frames = [FILTER, ROLE, TEXT, OFFSETS, &finish, DONE];
    node.up("a").does([sse(headers, &frames)]);
    let answered = node.call(true).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("a"));
    assert_eq!(answered.header("apim-request-id"), Some("8d7b"));
    for name in ["x-ms-region", "x-ms-deployment-name", "x-ratelimit-remaining-tokens"] {
        assert_eq!(answered.header(name), None, "{name}");
    }
    assert_ne!(answered.header("x-request-id"), Some("theirs"));
    assert_eq!(answered.text().await.0, frames.concat());
    let call = node.up("a").calls().pop().unwrap();
    let line = "post /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21 http/1.1";
    assert_eq!(call.head.lines().next(), Some(line));
    assert!(call.body.contains(r#""model":"my-gpt""#), "{}", call.body);
}

#[tokio::test(start_paused = true)]
async fn br_002_an_error_behind_azures_preamble_goes_to_the_next_channel() {
    let node = azure();
    let error = r#"data: {"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}

"#;
    node.up("a").does([sse("", &[FILTER, ROLE, error])]);
    let answered = node.call(true).await;
    assert_eq!(answered.header("x-sluice-channel"), Some("b"));
    assert_eq!(answered.text().await.0, stream_bytes("b"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_azures_filter_ends_is_an_answer_and_no_reason_for_another_channel() {
    for frames in [vec![FILTER, ROLE, FILTERED, DONE], vec![FILTER, OFFSETS, ROLE, TEXT, FILTERED, DONE]] {
        let node = azure();
        node.up("a").does([sse("", &frames)]);
        let answered = node.call(true).await;
        assert_eq!(answered.header("x-sluice-channel"), Some("a"));
        assert_eq!(answered.text().await.0, frames.concat());
    }
}

#[tokio::test(start_paused = true)]
async fn azures_errors_have_the_classes_of_the_table() {
    let policy = r#"{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true}}}}"#;
    // Status, error, class, whether the caller gets it, and who serves the next request.
    let table = [
        (
            404,
            r#"{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}"#,
            "misconfigured",
            false,
            "b",
        ),
        (404, r#"{"code":"404","message":"Resource not found"}"#, "misconfigured", false, "b"),
        (
            400,
            r#"{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, my-gpt."}"#,
            "misconfigured",
            false,
            "b",
        ),
        (
            401,
            r#"{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}"#,
            "credential",
            false,
            "b",
        ),
        (
            403,
            r#"{"code":"AccessDenied","message":"Access denied due to Virtual Network/Firewall rules."}"#,
            "misconfigured",
            false,
            "b",
        ),
        (
            429,
            r#"{"code":"429","message":"Requests have exceeded call rate limit of your current pricing tier."}"#,
            "rate_limited",
            false,
            "b",
        ),
        (400, policy, "bad_request", true, "a"),
        (
            400,
            r#"{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}"#,
            "bad_request",
            true,
            "a",
        ),
        (
            500,
            r#"{"code":"InternalServerError","message":"The server had an error."}"#,
            "upstream_error",
            false,
            "a",
        ),
    ];
    for (status, error, class, is_returned, next) in table {
        let node = azure();
        node.up("a").does([answer(status, "", &format!(r#"{{"error":{error}}}"#)), stream("a")]);
        let answered = node.call(true).await;
        if is_returned {
            assert_eq!(answered.status, status, "{error}");
        } else {
            assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{error}");
        }
        let (text, _) = answered.text().await;
        assert_eq!(text.contains("content management policy"), error == policy, "{text}");
        assert_eq!(node.call(true).await.header("x-sluice-channel"), Some(next), "{error}");
        assert_eq!(node.counted().0[&format!("a {class}")], 1, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn azures_hint_in_milliseconds_is_how_long_the_deployment_cools_down() {
    let (node, t0) = (azure(), tokio::time::Instant::now());
    let limited = answer(
        429,
        "retry-after: 60\r\nretry-after-ms: 4200\r\n",
        r#"{"error":{"code":"429","message":"rate limit"}}"#,
    );
    node.up("a").does([limited, stream("a")]);
    for (second, served_by) in [(0.0, "b"), (4.1, "b"), (4.2, "a")] {
        until(t0, second).await;
        assert_eq!(node.call(true).await.header("x-sluice-channel"), Some(served_by), "{second}");
    }
}
