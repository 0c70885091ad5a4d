//! A caller that leaves ends its upstream request within a second, whatever it asked for, however it is connected and
//! whatever is under way; and it counts for nothing.

use std::sync::atomic::Ordering;

use http_body_util::Full;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::listening::*;
use super::support::*;

/// What a dialect is asked for, and what an upstream begins with.
struct Case {
    dialect: &'static str,
    whole: (&'static str, &'static str),
    stream: Option<Stream>,
}

struct Stream {
    ask: (&'static str, &'static str),
    preamble: &'static str,
    content: &'static str,
}

const CASES: [Case; 9] = [
    Case {
        dialect: "openai-chat",
        whole: ("/v1/chat/completions", r#"{"model":"m","messages":[]}"#),
        stream: Some(Stream {
            ask: ("/v1/chat/completions", r#"{"model":"m","messages":[],"stream":true}"#),
            preamble: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            content: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
        }),
    },
    Case {
        dialect: "openai-completions",
        whole: ("/v1/completions", r#"{"model":"m","prompt":"x"}"#),
        stream: Some(Stream {
            ask: ("/v1/completions", r#"{"model":"m","prompt":"x","stream":true}"#),
            preamble: ": wait\n\n",
            content: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"x\"}]}\n\n",
        }),
    },
    Case {
        dialect: "openai-responses",
        whole: ("/v1/responses", r#"{"model":"m","input":"x"}"#),
        stream: Some(Stream {
            ask: ("/v1/responses", r#"{"model":"m","input":"x","stream":true}"#),
            preamble: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n",
            content: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n",
        }),
    },
    Case {
        dialect: "anthropic-messages",
        whole: ("/v1/messages", r#"{"model":"m","max_tokens":9,"messages":[]}"#),
        stream: Some(Stream {
            ask: ("/v1/messages", r#"{"model":"m","max_tokens":9,"messages":[],"stream":true}"#),
            preamble: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
            content: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
        }),
    },
    Case {
        dialect: "gemini",
        whole: ("/v1beta/models/m:generateContent", r#"{"contents":[]}"#),
        stream: Some(Stream {
            ask: ("/v1beta/models/m:streamGenerateContent?alt=sse", r#"{"contents":[]}"#),
            preamble: ": wait\n\n",
            content: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n",
        }),
    },
    Case {
        dialect: "openai-embeddings",
        whole: ("/v1/embeddings", r#"{"model":"m","input":"x"}"#),
        stream: None,
    },
    Case {
        dialect: "openai-moderations",
        whole: ("/v1/moderations", r#"{"model":"m","input":"x"}"#),
        stream: None,
    },
    Case {
        dialect: "openai-images",
        whole: ("/v1/images/generations", r#"{"model":"m","prompt":"x"}"#),
        stream: None,
    },
    Case {
        dialect: "rerank",
        whole: ("/v1/rerank", r#"{"model":"m","query":"q","documents":[]}"#),
        stream: None,
    },
];

impl Case {
    /// Each phase: its name, what is asked, what the upstream does, and whether the caller has an answer by then.
    fn phases(&self) -> Vec<(&'static str, (&'static str, &'static str), Script, bool)> {
        let head = |status: &str| {
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{{"
            );
            vec![Act::Send(head.into_bytes()), Act::Hang]
        };
        let mut phases = vec![
            ("waiting for headers", self.whole, vec![Act::Hang], false),
            ("half a whole answer", self.whole, head("200 OK"), false),
            ("half an error", self.whole, head("500 X"), false),
        ];
        if let Some(Stream { ask, preamble, content }) = &self.stream {
            let held = vec![sse_head(), chunk(preamble), Act::Hang];
            let begun = vec![sse_head(), chunk(preamble), chunk(content), Act::Hang];
            phases.push(("waiting for a stream", *ask, vec![Act::Hang], false));
            phases.push(("held", *ask, held, false));
            phases.push(("committed", *ask, begun, true));
        }
        phases
    }
}

/// Until the n-th call is there, and what the upstream says at once has arrived.
async fn until_called(node: &Node, calls: usize) {
    let called = async {
        while node.up("a").called() < calls {
            sleep(ms(1)).await;
        }
        sleep(ms(20)).await;
    };
    timeout(s(5), called).await.expect("the upstream is asked");
}

async fn until_gone(node: &Node, calls: usize, what: &str) {
    let deadline = Instant::now() + s(1);
    while node.up("a").closed.load(Ordering::Acquire) < calls || node.gateway.in_flight() > 0 {
        assert!(Instant::now() < deadline, "{what}: the upstream request goes on");
        sleep(ms(2)).await;
    }
}

#[tokio::test]
async fn br_065_br_069_br_072_who_leaves_in_any_phase_of_any_dialect_ends_the_upstream_request_and_counts_for_nothing()
 {
    for case in &CASES {
        for is_http_2 in [false, true] {
            let listening = listening_to(Node::speaking(case.dialect, 2), s(30)).await;
            let node = &listening.node;
            let (mut sender, _driver) = listening.http2().await;
            let phases = case.phases();
            // More than open a breaker: had one of them counted, the later ones went to the other channel.
            for (calls, (phase, (path, body), script, has_answer)) in (1..).zip(&phases) {
                let what = format!("{} {phase}, HTTP/2: {is_http_2}", case.dialect);
                node.up("a").does([script.clone()]);
                let request = post_json(path, body);
                if is_http_2 {
                    let answering = sender.send_request(to_http2(request));
                    let leaving = async {
                        until_called(node, calls).await;
                        // An answer is waited for; else the request is dropped now.
                        sleep(if *has_answer { s(5) } else { ms(0) }).await;
                    };
                    tokio::select! {
                        biased;
                        answer = answering => {
                            assert!(*has_answer && answer.unwrap().status() == 200, "{what}");
                            until_called(node, calls).await;
                        }
                        () = leaving => assert!(!has_answer, "{what}: no answer"),
                    }
                } else {
                    let mut tcp = listening.tcp().await;
                    let head = format!(
                        "POST {path} HTTP/1.1\r\nhost: n\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    tcp.write_all((head + body).as_bytes()).await.unwrap();
                    until_called(node, calls).await;
                    if *has_answer {
                        let mut answer = [0; 12];
                        tcp.read_exact(&mut answer).await.unwrap();
                        assert_eq!(&answer, b"HTTP/1.1 200", "{what}");
                    }
                }
                until_gone(node, calls, &what).await;
            }
            let (attempts, requests) = node.counted();
            let left = phases.len() as u64;
            assert_eq!(attempts, [("a canceled".into(), left)].into(), "{}", case.dialect);
            assert_eq!(requests, [("canceled".into(), left)].into(), "{}", case.dialect);
            assert_eq!(node.called(), [phases.len(), 0, 0], "{}", case.dialect);
            assert_eq!(node.gateway.gates.held() + node.gateway.bodies.held(), 0, "{}", case.dialect);
        }
    }
}

/// An unbounded answer, in events of a kilobyte.
fn endless() -> Script {
    let event = content(&"x".repeat(1000));
    [sse_head()].into_iter().chain(std::iter::repeat_n(chunk(&event), 50_000)).collect()
}

#[tokio::test]
async fn a_caller_that_does_not_read_stops_the_upstream() {
    for is_http_2 in [false, true] {
        let listening = listening(1).await;
        let node = &listening.node;
        node.up("a").does([endless()]);
        let (mut sender, _driver) = listening.http2().await;
        let mut tcp = listening.tcp().await;
        let mut _answer = None;
        if is_http_2 {
            _answer = Some(sender.send_request(over_http2(true)).await.unwrap());
        } else {
            let body = r#"{"model":"m","stream":true,"messages":[]}"#;
            let request = raw_chat(&format!("content-length: {}\r\n", body.len()), body);
            tcp.write_all(request.as_bytes()).await.unwrap();
        }
        let written = || node.up("a").written.load(Ordering::Acquire);
        let mut before = usize::MAX;
        let standing = async {
            while before != written() || before == 0 {
                before = written();
                sleep(ms(200)).await;
            }
        };
        timeout(s(30), standing).await.expect("the upstream can write no more");
        // The sockets of both ends take most of it, and a window of HTTP/2; the node the least.
        assert!(written() < 12 << 20, "{} bytes, HTTP/2: {is_http_2}", written());
    }
}

#[tokio::test]
async fn slow_callers_over_http_2_do_not_stop_each_other() {
    let listening = listening(1).await;
    let node = &listening.node;
    node.up("a").does([endless()]);
    let (mut sender, _driver) = listening.http2().await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(sender.send_request(over_http2(true)).await.unwrap());
    }
    node.up("a").does([stream("a")]);
    let (mut other, _driver) = listening.http2().await;
    let answer = other.send_request(over_http2(true)).await.unwrap();
    let text = timeout(s(10), http_body_util::BodyExt::collect(answer.into_body())).await.expect("in time");
    assert_eq!(text.unwrap().to_bytes(), stream_bytes("a"));
}

#[tokio::test(start_paused = true)]
async fn when_all_gates_together_hold_too_much_a_gate_commits_with_the_next_bytes_and_a_large_answer_passes()
{
    let node = Node::new(2);
    let held = || vec![sse_head(), chunk(&role()), Act::Wait(s(5)), chunk(&content("x")), chunk(DONE), end()];
    node.up("a").does([held()]);
    assert_eq!(node.call(true).await.after, s(5), "the role alone decides nothing");
    let mut full = node.gateway.gates.share();
    assert!(full.grow(common::limits::GATE_HELD_BYTES_TOTAL_MAX));
    let answered = node.call(true).await;
    assert_eq!(answered.after, s(0), "it is not held any more");
    assert_eq!(answered.text().await.0, [role(), content("x"), DONE.to_owned()].concat());
    node.up("a").does([whole("a")]);
    assert_eq!(node.call(false).await.text().await.0, whole_body("a"));
    let bounds = node.gateway.metrics.render();
    assert!(bounds.contains(r#"sluice_gate_decisions_total{channel="a",decision="bounds"} 2"#), "{bounds}");
    drop(full);
    node.up("a").does([held()]);
    assert_eq!(node.call(true).await.after, s(5), "there is room again");
    assert_eq!(node.gateway.gates.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_gates_and_bodies_hold_is_given_back_however_a_request_ends() {
    let node = Node::new(2);
    let refused = answer(400, "", r#"{"error":{"message":"m","type":"invalid_request_error"}}"#);
    let cut = vec![sse_head(), chunk(&role()), chunk(&content("x")), Act::Close];
    for (script, stream) in
        [(whole("a"), false), (stream("a"), true), (failing(500), true), (refused, false), (cut, true)]
    {
        node.up("a").does([script]);
        node.up("b").does([if stream { super::support::stream("b") } else { whole("b") }]);
        node.call(stream).await.text().await;
        assert_eq!((node.gateway.gates.held(), node.gateway.bodies.held()), (0, 0));
    }
}

fn to_http2(request: http::Request<Full<bytes::Bytes>>) -> http::Request<Full<bytes::Bytes>> {
    let (mut parts, body) = request.into_parts();
    parts.uri = format!("http://node{}", parts.uri).parse().unwrap();
    parts.headers.remove("host");
    http::Request::from_parts(parts, body)
}
