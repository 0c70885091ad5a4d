//! Faults reported against other gateways, in each dialect that streams: streamed and whole, at each hop.

use super::speaks::{ALL, Speaks, streamed};
use super::support::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What a caller reads of a refusal: the code of ours, wherever the dialect says it.
async fn refusal(speaks: &Speaks, answered: Answered) -> (u16, String) {
    let status = answered.status.as_u16();
    assert_eq!(answered.header("content-type"), Some("application/json"), "{}", speaks.dialect);
    let body: serde_json::Value = serde_json::from_str(&answered.text().await.0).unwrap();
    let code = match speaks.dialect {
        "gemini" => {
            assert_eq!(body["error"]["code"], status);
            &body["error"]["details"][0]["reason"]
        }
        "anthropic-messages" => {
            assert_eq!(body["type"], "error");
            &body["error"]["code"]
        }
        _ => &body["error"]["code"],
    };
    (status, code.as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn br_008_br_036_br_049_br_120_whatever_fails_first_the_caller_gets_one_answer_from_its_first_byte_on()
{
    for speaks in &ALL {
        for failing_hops in 0..3 {
            for is_stream in [true, false] {
                let node = speaks.node(3);
                for name in &NAMES[..failing_hops] {
                    node.up(name).does([if is_stream {
                        streamed(&[": x\n\n", speaks.preamble, speaks.failed])
                    } else {
                        failing(500)
                    }]);
                }
                let server = NAMES[failing_hops];
                let good = if is_stream { speaks.stream(server) } else { speaks.whole_of(server) };
                node.up(server).does([if is_stream { streamed(&[&good]) } else { answer(200, "", &good) }]);
                let answered = node.send(speaks.ask(is_stream)).await;
                let what = format!("{}, stream {is_stream}, {failing_hops} fail", speaks.dialect);
                assert_eq!(answered.header("x-sluice-channel"), Some(server), "{what}");
                assert_eq!(
                    answered.header("x-sluice-attempts"),
                    Some((failing_hops + 1).to_string().as_str())
                );
                assert_eq!(answered.text().await.0, good, "{what}");
                for (index, name) in NAMES.iter().enumerate() {
                    let calls = node.up(name).calls();
                    assert_eq!(calls.len(), usize::from(index <= failing_hops), "{what}, {name}");
                    for call in calls {
                        assert_eq!(call.body, speaks.body(is_stream, &format!("m-at-{name}")), "{what}");
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_030_br_032_br_034_br_036_what_breaks_off_after_commit_ends_in_the_dialects_error_frame() {
    for speaks in &ALL {
        let content = speaks.content.replace("SAID", "x");
        for (what, tail, half) in [
            ("cut", vec![Act::Close], ""),
            ("a clean end without the last frame", vec![end()], ""),
            ("a stall", vec![Act::Hang], ""),
            ("cut in an event", vec![Act::Close], "data: {\"half"),
        ] {
            let node = speaks.node(2);
            let begun = [vec![sse_head(), chunk(speaks.preamble), chunk(&content)]].concat();
            let begun = if half.is_empty() { begun } else { [begun, vec![chunk(half)]].concat() };
            node.up("a").does([[begun, tail].concat()]);
            node.up("b").does([streamed(&[&speaks.stream("b")])]);
            let answered = node.send(speaks.ask(true)).await;
            let request_id = answered.header("x-request-id").unwrap().to_owned();
            let (text, took) = answered.text().await;
            let closing = (speaks.rules().closing_frame)(&request_id);
            let closing = std::str::from_utf8(&closing).unwrap();
            let gap = if half.is_empty() { "" } else { "\n\n" };
            let expected = [speaks.preamble, &content, half, gap, closing].concat();
            assert_eq!(text, expected, "{}: {what}", speaks.dialect);
            assert_eq!(took, if what == "a stall" { s(300) } else { s(0) }, "{}: {what}", speaks.dialect);
            assert_eq!(node.called(), [1, 0, 0], "{}: {what}", speaks.dialect);
            let (attempts, requests) = node.counted();
            assert_eq!(attempts, [("a cut".into(), 1)].into(), "{}: {what}", speaks.dialect);
            assert_eq!(requests, [("cut".into(), 1)].into(), "{}: {what}", speaks.dialect);
            if what == "a stall" {
                node.until_closed("a", s(1)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_141_br_055_when_all_fail_before_commit_the_caller_gets_a_real_status_in_its_shape() {
    for speaks in &ALL {
        for is_stream in [true, false] {
            let node = speaks.node(3);
            for name in NAMES {
                node.up(name).refuses();
            }
            let refused = node.send(speaks.ask(is_stream)).await;
            assert_eq!(refusal(speaks, refused).await, (503, "upstream_unavailable".into()));

            let node = speaks.node(3);
            for name in NAMES {
                node.up(name).does([if is_stream {
                    streamed(&[speaks.preamble, speaks.overloaded])
                } else {
                    failing(529)
                }]);
            }
            let refused = node.send(speaks.ask(is_stream)).await;
            assert_eq!(refused.header("x-should-retry"), Some("false"));
            assert_eq!(refusal(speaks, refused).await, (503, "upstream_overloaded".into()));
            assert_eq!(node.called(), [1, 1, 1], "{}", speaks.dialect);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_017_br_018_br_020_br_039_a_request_at_fault_is_returned_at_whatever_hop_that_is_found() {
    for speaks in &ALL {
        for failing_hops in 0..2 {
            for is_in_stream in [true, false] {
                let node = speaks.node(3);
                for name in &NAMES[..failing_hops] {
                    node.up(name).does([failing(500)]);
                }
                let said = speaks.bad.split("data: ").nth(1).unwrap().trim_end();
                node.up(NAMES[failing_hops]).does([if is_in_stream {
                    streamed(&[speaks.preamble, speaks.bad])
                } else {
                    answer(400, "", said)
                }]);
                let refused = node.send(speaks.ask(true)).await;
                let what = format!("{}, in a stream {is_in_stream}", speaks.dialect);
                assert_eq!(refused.status.as_u16(), 400, "{what}");
                assert!(refused.text().await.0.contains("too long"), "{what}");
                let expected = [1, failing_hops, 0];
                assert_eq!(node.called(), expected, "{what}");
                assert_eq!(node.counted().1, [("bad_request".into(), 1)].into(), "{what}");
                let table = node.gateway.tables.load().unwrap();
                let now = tokio::time::Instant::now();
                assert!(table.channels().all(|channel| channel.open_until(now).is_none()), "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_001_br_003_br_005_what_an_event_says_of_the_upstream_decides_who_is_asked_next() {
    for speaks in &ALL {
        // The class, and how often the first channel is asked by four requests.
        for (event, class, calls) in [
            (speaks.limited, "rate_limited", 1),
            (speaks.broke, if speaks.dialect == "gemini" { "misconfigured" } else { "balance" }, 1),
            (speaks.overloaded, "overloaded", 3),
            (speaks.failed, "upstream_error", 3),
        ] {
            let node = speaks.node(2);
            node.up("a").does([streamed(&[speaks.preamble, event])]);
            node.up("b").does([streamed(&[&speaks.stream("b")])]);
            for _ in 0..4 {
                let answered = node.send(speaks.ask(true)).await;
                assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{}: {class}", speaks.dialect);
                assert_eq!(answered.text().await.0, speaks.stream("b"));
            }
            assert_eq!(node.called(), [calls, 4, 0], "{}: {class}", speaks.dialect);
            let (attempts, _) = node.counted();
            assert_eq!(
                attempts.get(&format!("a {class}")),
                Some(&(calls as u64)),
                "{}: {attempts:?}",
                speaks.dialect
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_015_br_021_an_error_under_a_200_is_one_streamed_or_not_in_an_array_or_not() {
    let error = r#"{"error":{"message":"b","code":502}}"#;
    for speaks in &ALL {
        for body in [error.to_owned(), format!("[{error}]"), format!("\n\n {error}")] {
            for is_stream in [true, false] {
                let node = speaks.node(2);
                node.up("a").does([answer(200, "", &body)]);
                let good = if is_stream { speaks.stream("b") } else { speaks.whole_of("b") };
                node.up("b").does([if is_stream { streamed(&[&good]) } else { answer(200, "", &good) }]);
                let answered = node.send(speaks.ask(is_stream)).await;
                assert_eq!(answered.text().await.0, good, "{}: {body}", speaks.dialect);
                assert_eq!(node.counted().0.get("a upstream_error"), Some(&1), "{}: {body}", speaks.dialect);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_023_br_024_br_025_thirty_seconds_after_the_headers_the_answer_is_committed_comments_or_not() {
    for speaks in &ALL {
        let content = speaks.content.replace("SAID", "x");
        let mut comments = vec![Act::Wait(s(7)), sse_head()];
        for _ in 0..8 {
            comments.extend([Act::Wait(s(5)), chunk(": keep-alive\n\n")]);
        }
        let silence = vec![sse_head(), Act::Wait(s(40))];
        let held = vec![sse_head(), chunk(speaks.preamble), Act::Wait(s(40))];
        for (script, after) in [(comments, 37), (silence, 30), (held, 30)] {
            let node = speaks.node(1);
            node.up("a").does([[script, vec![chunk(&content), chunk(speaks.end), end()]].concat()]);
            let answered = node.send(speaks.ask(true)).await;
            assert_eq!((answered.status.as_u16(), answered.after), (200, s(after)), "{}", speaks.dialect);
            let (text, _) = answered.text().await;
            assert!(text.ends_with(&[&content, speaks.end].concat()), "{}: {text}", speaks.dialect);
            assert_eq!(node.counted().0, [("a ok".into(), 1)].into(), "{}", speaks.dialect);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_event_that_lacks_its_blank_line_gets_it_since_clients_would_drop_it() {
    for speaks in &ALL {
        for gate in ["content", "complete"] {
            let node = speaks.node(1);
            let stream = speaks.stream("x");
            node.up("a").does([streamed(&[stream.trim_end()])]);
            let mut ask = speaks.ask(true);
            ask.headers_mut().insert("x-sluice-gate", gate.parse().unwrap());
            let (text, _) = node.send(ask).await.text().await;
            assert_eq!(text, stream.trim_end().to_owned() + "\n\n", "{}", speaks.dialect);
            assert_eq!(node.counted().1, [("served".into(), 1)].into(), "{}", speaks.dialect);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_013_an_answer_of_thoughts_alone_is_an_answer() {
    for speaks in &ALL {
        let Some(thought) = speaks.thought else { continue };
        let node = speaks.node(2);
        node.up("a").does([streamed(&[speaks.preamble, thought, speaks.end])]);
        let answered = node.send(speaks.ask(true)).await;
        assert_eq!(answered.text().await.0, [speaks.preamble, thought, speaks.end].concat());
        assert_eq!((node.called(), node.counted().0), ([1, 0, 0], [("a ok".into(), 1)].into()));
    }
}

#[tokio::test(start_paused = true)]
async fn br_027_a_stream_that_takes_long_and_never_stands_still_is_not_cut() {
    for speaks in &ALL {
        let node = speaks.node(1);
        let content = speaks.content.replace("SAID", "x");
        let mut script = vec![sse_head()];
        for _ in 0..40 {
            script.extend([chunk(&content), Act::Wait(s(30))]);
        }
        script.extend([chunk(speaks.end), end()]);
        node.up("a").does([script]);
        let (text, took) = node.send(speaks.ask(true)).await.text().await;
        assert_eq!((text, took), ([content.repeat(40), speaks.end.into()].concat(), s(1200)));
        assert_eq!(node.counted().1, [("served".into(), 1)].into());
    }
}
