//! What answers used, through the whole path: read in every dialect, streamed and whole, also of what broke off; and
//! asked for where a caller did not ask, without showing it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::support::*;

const USAGE: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n";

/// The counters of use that are not zero, as `channel kind`.
fn spent(node: &Node) -> BTreeMap<String, String> {
    let text = node.gateway.metrics.render();
    let lines = text.lines().filter(|line| {
        ["sluice_tokens_total{", "sluice_units_total{", "sluice_usage_unreported_total{"]
            .iter()
            .any(|family| line.starts_with(family))
    });
    lines
        .map(|line| {
            let values: Vec<&str> = line.split('"').collect();
            let kind = values.get(5).copied().unwrap_or("unreported");
            (format!("{} {kind}", values[3]), line.rsplit(' ').next().unwrap().to_owned())
        })
        .collect()
}

fn counts<const N: usize>(expected: [(&str, &str); N]) -> BTreeMap<String, String> {
    expected.map(|(kind, count)| (kind.to_owned(), count.to_owned())).into()
}

/// A node whose channels are told to ask for usage.
fn asking(dialect: &str, channels: usize) -> Node {
    let node = Node::speaking(dialect, channels);
    let mut snapshot = snapshot_speaking(dialect, 2, channels);
    snapshot.channels.iter_mut().for_each(|channel| channel.include_usage = true);
    node.install(&snapshot);
    node
}

fn streamed(frames: &[&str]) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![end()]].concat()
}

fn streaming(path: &str, options: &str) -> Request<Full<Bytes>> {
    post_json(path, &format!(r#"{{"model":"m","stream":true,{options}"x_unknown":2.50}}"#))
}

const CHAT: &str = "/v1/chat/completions";
const ASKS: &str = r#""stream_options":{"include_usage":true},"#;

#[tokio::test(start_paused = true)]
async fn br_082_usage_is_asked_for_and_its_frame_left_out_where_the_caller_did_not_ask() {
    let frames = [": hello\n\n", &role(), &content("x"), &finish(), USAGE, DONE];
    let shown = frames.concat().replace(USAGE, "");
    for (dialect, path) in [("openai-chat", CHAT), ("openai-completions", "/v1/completions")] {
        for (options, sent) in [
            ("", format!(r#"{{{ASKS}"model":"m-at-b","stream":true,"x_unknown":2.50}}"#)),
            (
                r#""stream_options":{"include_usage":false},"#,
                format!(r#"{{"model":"m-at-b","stream":true,{ASKS}"x_unknown":2.50}}"#),
            ),
        ] {
            let node = asking(dialect, 2);
            node.up("a").does([failing(500)]);
            node.up("b").does([streamed(&frames)]);
            let (text, _) = node.send(streaming(path, options)).await.text().await;
            assert_eq!(text, shown, "{dialect} {options}");
            assert_eq!(node.up("b").calls()[0].body, sent, "{dialect} {options}");
            assert_eq!(node.up("a").calls()[0].body, sent.replace("m-at-b", "m-at-a"), "every hop asks");
            assert_eq!(spent(&node), counts([("b input", "3"), ("b cached_input", "1"), ("b output", "2")]));
            assert_eq!(node.counted().1, [("served".into(), 1)].into());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_082_who_asks_gets_the_frame_and_a_channel_without_the_switch_is_not_asked() {
    let frames = [&role(), &content("x"), &finish(), USAGE, DONE];
    for (node, options) in [(asking("openai-chat", 1), ASKS), (Node::new(1), ASKS), (Node::new(1), "")] {
        node.up("a").does([streamed(&frames)]);
        let (text, _) = node.send(streaming(CHAT, options)).await.text().await;
        assert_eq!(text, frames.concat());
        let body = format!(r#"{{"model":"m-at-a","stream":true,{options}"x_unknown":2.50}}"#);
        assert_eq!(node.up("a").calls()[0].body, body);
    }
    // What is no stream has its usage anyway.
    let node = asking("openai-chat", 1);
    node.up("a").does([whole("x")]);
    assert_eq!(node.call(false).await.text().await.0, whole_body("x"));
    assert!(!node.up("a").calls()[0].body.contains("stream_options"));
    assert_eq!(spent(&node), counts([("a unreported", "1")]));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_refuses_to_be_asked_is_the_operators_fault_and_the_caller_is_served() {
    let refusals = [
        (
            400,
            r#"{"error":{"message":"Unknown parameter: 'stream_options'.","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}"#,
        ),
        (422, r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#),
        (400, r#"{"error":{"message":"json: unknown field \"stream_options\"","code":400}}"#),
        (200, r#"{"error":{"message":"stream_options is not allowed","code":400}}"#),
    ];
    for (status, refusal) in refusals {
        let node = asking("openai-chat", 2);
        node.up("a").does([answer(status, "", refusal)]);
        node.up("b").does([stream("b")]);
        assert_eq!(node.call(true).await.text().await.0, stream_bytes("b"), "{refusal}");
        assert_eq!(node.counted().0, [("a misconfigured".into(), 1), ("b ok".into(), 1)].into(), "{refusal}");
    }
    // What a caller itself says of it is the caller's, and so is what is echoed of its words.
    for request in
        [streaming(CHAT, r#""stream_options":{"x":1},"#), streaming(CHAT, r#""user":"stream_options","#)]
    {
        let node = asking("openai-chat", 2);
        node.up("a").does([answer(400, "", refusals[0].1)]);
        assert_eq!(node.send(request).await.status, 400);
        assert_eq!(node.called(), [1, 0, 0]);
    }
    let node = Node::new(2);
    node.up("a").does([answer(400, "", refusals[0].1)]);
    assert_eq!(node.call(true).await.status, 400, "nothing was added");
}

#[tokio::test(start_paused = true)]
async fn the_frame_is_left_out_wherever_reads_cut_it_and_an_end_without_done_stays_a_clean_one() {
    let all = [&content("x"), &finish(), USAGE].concat();
    let shown = [content("x"), finish()].concat();
    for cut in (1..all.len()).step_by(7) {
        for complete in [false, true] {
            let node = asking("openai-chat", 1);
            let pause = Act::Wait(ms(1));
            node.up("a").does([vec![sse_head(), chunk(&all[..cut]), pause, chunk(&all[cut..]), end()]]);
            let mut request = streaming(CHAT, "");
            if complete {
                request.headers_mut().insert("x-sluice-gate", "complete".parse().unwrap());
            }
            assert_eq!(node.send(request).await.text().await.0, shown, "cut at {cut}");
            assert_eq!(spent(&node)["a output"], "2");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_closed_behind_what_was_kept_back_and_keeps_what_was_known() {
    let cumulative =
        content("x").replace("}]}", "}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":4}}");
    let half = "data: {\"id\":\"c\",\"choices\":[],\"usa";
    for (last, act) in [(half, Act::Close), (half, end()), ("", Act::Hang)] {
        let node = asking("openai-chat", 1);
        node.up("a").does([vec![sse_head(), chunk(&cumulative), chunk(&(last.to_owned() + " ")), act]]);
        let (text, _) = node.call(true).await.text().await;
        let rest = text.strip_prefix(&(cumulative.clone() + last + " \n\n")).unwrap();
        assert!(rest.starts_with("data: {\"error\":"), "{rest}");
        assert_eq!(node.counted().1, [("cut".into(), 1)].into());
        assert_eq!(spent(&node), counts([("a input", "7"), ("a output", "4")]));
    }
}

#[tokio::test(start_paused = true)]
async fn br_073_br_075_a_caller_that_leaves_spends_what_was_known_and_nothing_where_nothing_came() {
    let cumulative =
        content("x").replace("}]}", "}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":4}}");
    for (frames, expected) in [
        (vec![cumulative.as_str()], counts([("a input", "7"), ("a output", "4")])),
        (vec![&content("x")], counts([("a unreported", "1")])),
        (vec![&role()], counts([])),
    ] {
        let node = Node::new(1);
        let chunks = frames.iter().map(|frame| chunk(frame));
        node.up("a").does([[sse_head()].into_iter().chain(chunks).chain([Act::Hang]).collect::<Script>()]);
        if frames == [role()] {
            // Held by the gate: nothing of it has reached the caller.
            assert!(tokio::time::timeout(s(5), node.call(true)).await.is_err());
        } else {
            let mut answered = node.call(true).await;
            answered.next().await.unwrap().unwrap();
            drop(answered);
        }
        node.until_closed("a", s(1)).await;
        while node.gateway.in_flight() > 0 {
            tokio::time::sleep(ms(1)).await;
        }
        assert_eq!(node.counted().1, [("canceled".into(), 1)].into());
        assert_eq!(spent(&node), expected);
    }
    // Neither does a request that failed on every hop.
    let node = Node::new(2);
    node.up("a").does([failing(500)]);
    node.up("b").does([streamed(&[&role(), USAGE])]);
    assert_eq!(node.call(true).await.status, 502);
    assert_eq!(spent(&node), counts([]));
}

/// A dialect, what a caller sends, and frames or a body of an upstream with what they say.
struct Case {
    dialect: &'static str,
    path: &'static str,
    /// `None`: a whole answer.
    frames: Option<&'static [&'static str]>,
    body: &'static str,
    spent: &'static [(&'static str, &'static str)],
}

const GEMINI_USAGE: &str = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":80,"cachedContentTokenCount":64,"candidatesTokenCount":3,"thoughtsTokenCount":20,"totalTokenCount":103}}"#;
const GEMINI_SPENT: &[(&str, &str)] =
    &[("a input", "80"), ("a cached_input", "64"), ("a output", "23"), ("a reasoning", "20")];
const MESSAGES_SPENT: &[(&str, &str)] =
    &[("a input", "2459"), ("a cached_input", "2455"), ("a output", "30")];
const RESPONSES_SPENT: &[(&str, &str)] =
    &[("a input", "81"), ("a cached_input", "64"), ("a output", "1035"), ("a reasoning", "832")];

const CASES: &[Case] = &[
    Case {
        dialect: "openai-chat",
        path: CHAT,
        frames: Some(&[
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"q\",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13,\"prompt_tokens_details\":{\"cached_tokens\":8}}}}\n\n",
            "data: [DONE]\n\n",
        ]),
        body: "",
        spent: &[("a input", "9"), ("a cached_input", "8"), ("a output", "4")],
    },
    Case {
        dialect: "openai-chat",
        path: CHAT,
        frames: None,
        body: r#"{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":8}}}"#,
        spent: &[("a input", "9"), ("a cached_input", "8"), ("a output", "4")],
    },
    Case {
        dialect: "anthropic-messages",
        path: "/v1/messages",
        frames: Some(&[
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":2455,\"output_tokens\":1}}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":30}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ]),
        body: "",
        spent: MESSAGES_SPENT,
    },
    Case {
        dialect: "anthropic-messages",
        path: "/v1/messages",
        frames: None,
        body: r#"{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":4,"cache_read_input_tokens":2455,"output_tokens":30}}"#,
        spent: MESSAGES_SPENT,
    },
    Case {
        dialect: "anthropic-messages",
        path: "/v1/messages/count_tokens",
        frames: None,
        body: r#"{"input_tokens":14}"#,
        spent: &[],
    },
    Case {
        dialect: "openai-responses",
        path: "/v1/responses",
        frames: Some(&[
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n",
            "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"usage\":{\"input_tokens\":81,\"input_tokens_details\":{\"cached_tokens\":64},\"output_tokens\":1035,\"output_tokens_details\":{\"reasoning_tokens\":832}}}}\n\n",
        ]),
        body: "",
        spent: RESPONSES_SPENT,
    },
    Case {
        dialect: "openai-responses",
        path: "/v1/responses",
        frames: None,
        body: r#"{"status":"completed","output":[{"type":"message"}],"usage":{"input_tokens":81,"input_tokens_details":{"cached_tokens":64},"output_tokens":1035,"output_tokens_details":{"reasoning_tokens":832}}}"#,
        spent: RESPONSES_SPENT,
    },
    Case {
        dialect: "gemini",
        path: "/v1beta/models/m:generateContent",
        frames: None,
        body: GEMINI_USAGE,
        spent: GEMINI_SPENT,
    },
    Case {
        dialect: "gemini",
        path: "/v1beta/models/m:streamGenerateContent",
        frames: Some(&["data: ", GEMINI_USAGE, "\r\n\r\n"]),
        body: "",
        spent: GEMINI_SPENT,
    },
    Case {
        dialect: "gemini",
        path: "/v1beta/models/m:streamGenerateContent",
        frames: Some(&[
            "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]},\r\n",
            GEMINI_USAGE,
            "]",
        ]),
        body: "",
        spent: GEMINI_SPENT,
    },
    Case {
        dialect: "openai-embeddings",
        path: "/v1/embeddings",
        frames: None,
        body: r#"{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#,
        spent: &[("a input", "8")],
    },
    Case {
        dialect: "openai-images",
        path: "/v1/images/generations",
        frames: None,
        body: r#"{"created":1,"data":[{"b64_json":"x"}],"usage":{"input_tokens":50,"output_tokens":4160,"total_tokens":4210}}"#,
        spent: &[("a input", "50"), ("a output", "4160")],
    },
    Case {
        dialect: "openai-images",
        path: "/v1/images/generations",
        frames: None,
        body: r#"{"created":1,"data":[{"url":"https://x"}]}"#,
        spent: &[("a unreported", "1")],
    },
    Case {
        dialect: "rerank",
        path: "/v1/rerank",
        frames: None,
        body: r#"{"results":[{"index":0,"relevance_score":1}],"meta":{"billed_units":{"search_units":2}}}"#,
        spent: &[("a search", "2.0")],
    },
    Case {
        dialect: "openai-moderations",
        path: "/v1/moderations",
        frames: None,
        body: r#"{"results":[{"flagged":false}]}"#,
        spent: &[],
    },
];

#[tokio::test(start_paused = true)]
async fn br_080_every_dialect_says_what_it_used_streamed_and_whole_alike() {
    for case in CASES {
        let node = Node::speaking(case.dialect, 1);
        let (script, expected) = match case.frames {
            Some(frames) => (streamed(frames), frames.concat()),
            None => (answer(200, "", case.body), case.body.to_owned()),
        };
        node.up("a").does([script]);
        let stream = case.frames.is_some() && case.dialect != "gemini";
        let body = if case.dialect == "gemini" {
            "{}".to_owned()
        } else {
            format!(r#"{{"model":"m","stream":{stream}}}"#)
        };
        let (text, _) = node.send(post_json(case.path, &body)).await.text().await;
        assert_eq!(text, expected, "{}", case.path);
        let expected = case.spent.iter().map(|(kind, count)| (String::from(*kind), String::from(*count)));
        assert_eq!(spent(&node), expected.collect(), "{} {:?}", case.path, case.frames);
    }
}

#[tokio::test(start_paused = true)]
async fn br_086_a_terminal_event_that_reads_cut_anywhere_keeps_its_usage() {
    let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n";
    let last = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":81,\"output_tokens\":7}}}\n\n";
    for cut in (1..last.len()).step_by(5) {
        let node = Node::speaking("openai-responses", 1);
        let acts =
            [sse_head(), chunk(delta), chunk(&last[..cut]), Act::Wait(ms(1)), chunk(&last[cut..]), end()];
        node.up("a").does([acts.to_vec()]);
        let (text, _) = node.send(streaming("/v1/responses", "")).await.text().await;
        assert_eq!(text, [delta, last].concat());
        assert_eq!(spent(&node), counts([("a input", "81"), ("a output", "7")]), "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_to_be_held_has_its_usage_at_its_end() {
    let text = "x".repeat(5 * 1024 * 1024);
    // A whole answer above 4 MiB, passed on before it is complete.
    let node = Node::new(1);
    let body = whole_body(&text).replace("}]}", r#"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#);
    node.up("a").does([answer(200, "", &body)]);
    assert_eq!(node.call(false).await.text().await.0.len(), body.len());
    assert_eq!(spent(&node), counts([("a input", "3"), ("a output", "2")]));
    // The last event of a response holds the whole answer once more.
    let node = Node::speaking("openai-responses", 1);
    let delta = "event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n";
    let last = format!(
        "event: response.completed\ndata: {{\"response\":{{\"output\":[\"{text}\"],\"usage\":{{\"input_tokens\":3,\"output_tokens\":2}},\"user\":null}}}}\n\n"
    );
    node.up("a").does([streamed(&[delta, &last])]);
    let (answered, _) = node.send(streaming("/v1/responses", "")).await.text().await;
    assert_eq!(answered.len(), delta.len() + last.len());
    assert_eq!(spent(&node), counts([("a input", "3"), ("a output", "2")]));
    // So does the last of a picture.
    let node = Node::speaking("openai-images", 1);
    let last = format!(
        "event: image_generation.completed\ndata: {{\"b64_json\":\"{text}\",\"usage\":{{\"input_tokens\":50,\"output_tokens\":4160}}}}\n\n"
    );
    node.up("a").does([streamed(&[&last])]);
    node.send(streaming("/v1/images/generations", "")).await.text().await;
    assert_eq!(spent(&node), counts([("a input", "50"), ("a output", "4160")]));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_stream_although_one_was_asked_for_is_read_too() {
    let node = asking("openai-chat", 1);
    let body = whole_body("x").replace("}]}", r#"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#);
    node.up("a").does([answer(200, "", &body)]);
    assert_eq!(node.call(true).await.text().await.0, body);
    assert_eq!(spent(&node), counts([("a input", "3"), ("a output", "2")]));
}
