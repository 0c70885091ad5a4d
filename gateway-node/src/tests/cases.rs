//! Faults reported against other gateways: hints of upstreams, pauses, models that an upstream does not know, accounts
//! without credit, in every dialect that streams, streamed and whole; and changes that must be in use once they are
//! taken.

use tokio::time::Instant;

use super::speaks::{ALL, Speaks, streamed};
use super::support::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A good answer, and its bytes.
fn good(speaks: &Speaks, is_stream: bool, who: &str, headers: &str) -> (Script, String) {
    if is_stream {
        let bytes = speaks.stream(who);
        (streamed(&[&bytes]), bytes)
    } else {
        let bytes = speaks.whole_of(who);
        (answer(200, headers, &bytes), bytes)
    }
}

/// Every dialect, streamed and whole.
fn all() -> impl Iterator<Item = (&'static Speaks, bool, String)> {
    let each = ALL.iter().flat_map(|speaks| [true, false].map(|is_stream| (speaks, is_stream)));
    each.map(|(speaks, is_stream)| (speaks, is_stream, format!("{}, stream {is_stream}", speaks.dialect)))
}

#[tokio::test(start_paused = true)]
async fn br_046_an_upstreams_word_on_retries_is_about_its_account_and_keeps_nobody_from_the_next_one() {
    let hints = "x-should-retry: false\r\nretry-after: 7\r\nretry-after-ms: 7000\r\n";
    for (speaks, is_stream, what) in all() {
        let broke = speaks.says(402, "FAILED_PRECONDITION", "no money");
        for failing_hops in 1..3 {
            let node = speaks.node(3);
            for name in &NAMES[..failing_hops] {
                node.up(name).does([answer(402, hints, &broke)]);
            }
            let server = NAMES[failing_hops];
            let (script, bytes) = good(speaks, is_stream, "x", hints);
            node.up(server).does([script]);
            let answered = node.send(speaks.ask(is_stream)).await;
            assert_eq!(answered.header("x-sluice-channel"), Some(server), "{what}");
            for name in ["x-should-retry", "retry-after", "retry-after-ms"] {
                assert_eq!(answered.header(name), None, "{what}: {name}");
            }
            assert_eq!(answered.text().await.0, bytes, "{what}");
        }
        // Where nobody is left, what is said of retries is ours.
        let node = speaks.node(1);
        node.up("a").does([answer(503, "x-should-retry: true\r\nretry-after: 500\r\n", "{}")]);
        let refused = node.send(speaks.ask(is_stream)).await;
        let told = (refused.header("x-should-retry"), refused.header("retry-after"));
        assert_eq!(told, (None, Some("1")), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn br_047_a_rate_limit_that_says_nothing_cools_its_route_down_for_fifteen_seconds_and_the_next_answers()
{
    for (speaks, is_stream, what) in all() {
        for body in ["", "slow down", "{}", r#"{"error":{"message":"m"}}"#] {
            let (node, t0) = (speaks.node(2), Instant::now());
            node.up("a").does([answer(429, "", body), good(speaks, is_stream, "a", "").0]);
            node.up("b").does([good(speaks, is_stream, "b", "").0]);
            for (second, server) in [(0.0, "b"), (1.0, "b"), (14.9, "b"), (15.0, "a")] {
                until(t0, second).await;
                let answered = node.send(speaks.ask(is_stream)).await;
                assert_eq!(answered.header("x-sluice-channel"), Some(server), "{what}: {body:?}, {second} s");
                answered.text().await;
            }
            assert_eq!(node.called(), [2, 3, 0], "{what}: {body:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_049_attempts_walk_the_chain_in_its_order_and_each_route_once() {
    for (speaks, is_stream, what) in all() {
        let node = speaks.node(3);
        for name in NAMES {
            let script = [vec![Act::Wait(s(1))], answer(429, "", "{}")].concat();
            node.up(name).does([script]);
        }
        let refused = node.send(speaks.ask(is_stream)).await;
        assert_eq!((refused.status.as_u16(), refused.after), (429, s(3)), "{what}: one after the other");
        assert_eq!(refused.header("x-sluice-attempts"), Some("3"), "{what}");
        assert_eq!(node.called(), [1, 1, 1], "{what}");
    }
}

/// How upstreams of a dialect say that they do not know the model.
fn unknown_model(speaks: &Speaks) -> Vec<(u16, String)> {
    match speaks.dialect {
        "anthropic-messages" => vec![
            (404, speaks.says(404, "not_found_error", "model: x")),
            (404, speaks.says(404, "not_found_error", "Not found")),
            (400, speaks.says(400, "invalid_request_error", "The model `x` does not exist")),
        ],
        "gemini" => vec![
            (404, speaks.says(404, "NOT_FOUND", "models/x is not found for API version v1beta, or is not supported for generateContent.")),
            (404, speaks.says(404, "NOT_FOUND", "Publisher Model `x` was not found.")),
        ],
        _ => [
            (404, r#"{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}"#),
            (400, r#"{"message":"The model `x` does not exist","type":"invalid_request_error","param":"model","code":null}"#),
            (400, r#"{"message":"Invalid model: x","type":"invalid_request_error","code":null}"#),
            (404, r#"{"message":"b","code":"DeploymentNotFound"}"#),
        ]
        .map(|(status, error)| (status, format!("{{\"error\":{error}}}")))
        .into(),
    }
}

#[tokio::test(start_paused = true)]
async fn br_052_an_upstream_that_does_not_know_our_model_is_left_out_and_the_caller_is_served() {
    for (speaks, is_stream, what) in all() {
        for (status, error) in unknown_model(speaks) {
            for failing_hops in 1..3 {
                let node = speaks.node(3);
                for name in &NAMES[..failing_hops] {
                    node.up(name).does([answer(status, "", &error)]);
                }
                node.up(NAMES[failing_hops]).does([good(speaks, is_stream, "x", "").0]);
                for attempts in [failing_hops + 1, 1] {
                    let answered = node.send(speaks.ask(is_stream)).await;
                    let served_by = answered.header("x-sluice-channel");
                    assert_eq!(served_by, Some(NAMES[failing_hops]), "{what}: {error}");
                    let tried = attempts.to_string();
                    assert_eq!(answered.header("x-sluice-attempts"), Some(tried.as_str()), "{what}");
                    answered.text().await;
                }
                assert_eq!(node.counted().0.get("a misconfigured"), Some(&1), "{what}: {error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_044_an_account_without_credit_is_suspended_however_it_says_so_and_other_bad_requests_are_not() {
    let low = "Your credit balance is too low to access the API. Please go to Plans & Billing.";
    for (speaks, is_stream, what) in all() {
        let kind = if speaks.dialect == "gemini" { "INVALID_ARGUMENT" } else { "invalid_request_error" };
        let said = |message: &str| speaks.says(400, kind, message);
        let mut ways = vec![answer(400, "", &said(low)), answer(200, "", &said(low))];
        if is_stream {
            let frame = speaks.frame(&said(low));
            ways.extend([streamed(&[&frame]), streamed(&[speaks.preamble, &frame])]);
        }
        for (way, script) in ways.into_iter().enumerate() {
            let node = speaks.node(2);
            node.up("a").does([script]);
            node.up("b").does([good(speaks, is_stream, "b", "").0]);
            for _ in 0..2 {
                let answered = node.send(speaks.ask(is_stream)).await;
                assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{what}, {way}");
                answered.text().await;
            }
            assert_eq!(node.called(), [1, 2, 0], "{what}, {way}: suspended");
            assert_eq!(node.counted().0.get("a balance"), Some(&1), "{what}, {way}");
        }
        let node = speaks.node(2);
        node.up("a").does([answer(400, "", &said("temperature must be at most 2"))]);
        for _ in 0..2 {
            assert_eq!(node.send(speaks.ask(is_stream)).await.status, 400, "{what}");
        }
        assert_eq!(node.called(), [2, 0, 0], "{what}: neither suspended nor asked elsewhere");
    }
}

#[tokio::test(start_paused = true)]
async fn br_002_whatever_proves_nothing_may_come_in_front_of_an_error_and_the_next_channel_answers_alone() {
    for speaks in &ALL {
        let preamble = speaks.proves_nothing();
        for failing in [speaks.failed, speaks.overloaded] {
            for failing_hops in 1..3 {
                let node = speaks.node(3);
                let frames: Vec<&str> = preamble.iter().map(String::as_str).chain([failing]).collect();
                for name in &NAMES[..failing_hops] {
                    node.up(name).does([streamed(&frames)]);
                }
                let server = NAMES[failing_hops];
                node.up(server).does([streamed(&[&speaks.stream(server)])]);
                let answered = node.send(speaks.ask(true)).await;
                assert_eq!(answered.header("x-sluice-channel"), Some(server), "{}", speaks.dialect);
                assert_eq!(answered.text().await.0, speaks.stream(server), "{}", speaks.dialect);
            }
        }
        // Each of them alone, and all of them, are no answer.
        let all = preamble.concat();
        for frames in preamble.iter().chain([&all]) {
            let node = speaks.node(2);
            node.up("a").does([streamed(&[frames])]);
            node.up("b").does([streamed(&[&speaks.stream("b")])]);
            assert_eq!(node.send(speaks.ask(true)).await.text().await.0, speaks.stream("b"), "{frames}");
            assert_eq!(node.counted().0.get("a empty"), Some(&1), "{}: {frames}", speaks.dialect);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_012_a_failure_that_hides_behind_a_reason_to_stop_is_one_and_the_next_channel_answers() {
    let native = r#""finish_reason":"stop","native_finish_reason":"network_error""#;
    let error = r#""finish_reason":"error""#;
    for (dialect, streamed_as, whole_as) in [
        ("openai-chat", r#""delta":{"content":""}"#, r#""message":{"content":""}"#),
        ("openai-completions", r#""text":"""#, r#""text":"""#),
    ] {
        let speaks = ALL.iter().find(|speaks| speaks.dialect == dialect).unwrap();
        for reason in [native, error] {
            let choice = |said: &str| format!(r#"{{"choices":[{{"index":0,{said},{reason}}}]}}"#);
            let frame = format!("data: {}\n\n", choice(streamed_as));
            for (is_stream, script) in [
                (true, streamed(&[speaks.preamble, &frame, DONE])),
                (true, streamed(&[&frame])),
                (false, answer(200, "", &choice(whole_as))),
            ] {
                let node = speaks.node(2);
                node.up("a").does([script]);
                let (script, bytes) = good(speaks, is_stream, "b", "");
                node.up("b").does([script]);
                assert_eq!(
                    node.send(speaks.ask(is_stream)).await.text().await.0,
                    bytes,
                    "{dialect}: {reason}"
                );
                assert_eq!(node.counted().0.get("a upstream_error"), Some(&1), "{dialect}: {reason}");
            }
        }
    }
    // Where the reason to stop is an event of its own, its status says so.
    let speaks = ALL.iter().find(|speaks| speaks.dialect == "openai-responses").unwrap();
    let document = r#"{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"b"},"output":[]}"#;
    for (is_stream, script) in
        [(true, streamed(&[speaks.preamble, speaks.failed])), (false, answer(200, "", document))]
    {
        let node = speaks.node(2);
        node.up("a").does([script]);
        let (script, bytes) = good(speaks, is_stream, "b", "");
        node.up("b").does([script]);
        assert_eq!(node.send(speaks.ask(is_stream)).await.text().await.0, bytes);
        assert_eq!(node.counted().0.get("a upstream_error"), Some(&1), "stream {is_stream}");
    }
}

#[tokio::test(start_paused = true)]
async fn br_133_a_change_of_nothing_but_a_limit_is_in_use_for_the_next_request() {
    let late =
        || vec![sse_head(), Act::Wait(s(20)), chunk(&content("x")), chunk(&finish()), chunk(DONE), end()];
    let stalls = || vec![sse_head(), chunk(&content("x")), Act::Hang];
    type Change = fn(&mut common::pb::fleet::Snapshot);
    let route = |snapshot: &mut common::pb::fleet::Snapshot| snapshot.models[0].chains[0].routes[0].clone();
    let base = route(&mut snapshot(1, 1));
    assert_eq!(base.timeouts.unwrap().headers_ms, 240_000);
    let table: [(&str, Script, Change, u64, u64); 4] = [
        ("headers", vec![Act::Hang], |s| timeouts(s).headers_ms = 3_000, 240, 3),
        ("gate", late(), |s| gate(s).timeout_ms = 4_000, 20, 4),
        ("idle", stalls(), |s| timeouts(s).idle_ms = 5_000, 300, 5),
        ("until", late(), |s| gate(s).until = common::pb::fleet::GateUntil::Complete.into(), 20, 20),
    ];
    for (what, script, change, before, after) in table {
        let node = Node::new(1);
        node.up("a").does([script]);
        let took = async || {
            let answered = node.call(true).await;
            let headers = answered.after;
            let (_, whole) = answered.text().await;
            if what == "idle" { whole } else { headers }
        };
        assert_eq!(took().await, s(before), "{what}");
        let mut next = snapshot(2, 1);
        change(&mut next);
        node.install(&next);
        assert_eq!(took().await, s(after), "{what} is in use");
        assert_eq!(node.call(true).await.header("x-sluice-revision"), Some("2"), "{what}");
    }
}

fn timeouts(snapshot: &mut common::pb::fleet::Snapshot) -> &mut common::pb::fleet::Timeouts {
    snapshot.models[0].chains[0].routes[0].timeouts.as_mut().unwrap()
}

fn gate(snapshot: &mut common::pb::fleet::Snapshot) -> &mut common::pb::fleet::Gate {
    snapshot.models[0].chains[0].routes[0].gate.as_mut().unwrap()
}

#[tokio::test(start_paused = true)]
async fn br_133_a_change_of_nothing_but_the_breaker_is_in_use_and_keeps_its_failures() {
    let node = Node::new(2);
    node.up("a").does([failing(500)]);
    node.up("b").does([whole("b")]);
    node.call(false).await;
    let mut next = snapshot(2, 2);
    for channel in &mut next.channels {
        channel.breaker.as_mut().unwrap().failures = 2;
    }
    node.install(&next);
    node.call(false).await;
    node.call(false).await;
    assert_eq!(node.called(), [2, 3, 0], "two failures are enough now");
}
