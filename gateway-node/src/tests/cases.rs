//! Faults reported against other gateways: hints of upstreams, pauses, models that an upstream does not know, and
//! changes that must be in use once they are taken.

use tokio::time::Instant;

use super::support::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[tokio::test(start_paused = true)]
async fn br_046_an_upstreams_word_on_retries_is_about_its_account_and_keeps_nobody_from_the_next_one() {
    let broke = r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let hints = "x-should-retry: false\r\nretry-after: 7\r\nretry-after-ms: 7000\r\n";
    for failing_hops in 1..3 {
        for is_stream in [true, false] {
            let node = Node::new(3);
            for name in &NAMES[..failing_hops] {
                node.up(name).does([answer(402, hints, broke)]);
            }
            let server = NAMES[failing_hops];
            node.up(server).does([if is_stream {
                stream("x")
            } else {
                answer(200, hints, &whole_body("x"))
            }]);
            let answered = node.call(is_stream).await;
            assert_eq!(answered.header("x-sluice-channel"), Some(server));
            for name in ["x-should-retry", "retry-after", "retry-after-ms"] {
                assert_eq!(answered.header(name), None, "{name}");
            }
        }
    }
    // Where nobody is left, what is said of retries is ours.
    let node = Node::new(1);
    node.up("a").does([answer(503, "x-should-retry: true\r\nretry-after: 500\r\n", "{}")]);
    let refused = node.call(false).await;
    assert_eq!((refused.header("x-should-retry"), refused.header("retry-after")), (None, Some("1")));
}

#[tokio::test(start_paused = true)]
async fn br_047_a_rate_limit_that_says_nothing_cools_its_route_down_for_fifteen_seconds_and_the_next_answers()
{
    for body in ["", "slow down", "{}", r#"{"error":{"message":"m"}}"#] {
        let (node, t0) = (Node::new(2), Instant::now());
        node.up("a").does([answer(429, "", body), whole("a")]);
        node.up("b").does([whole("b")]);
        for second in [0.0, 1.0, 14.9] {
            until(t0, second).await;
            assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"), "{body:?}, {second} s");
        }
        assert_eq!(node.called(), [1, 3, 0], "{body:?}");
        until(t0, 15.0).await;
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("a"), "{body:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn br_049_attempts_walk_the_chain_in_its_order_and_each_route_once() {
    for is_stream in [true, false] {
        let node = Node::new(3);
        for name in NAMES {
            let script = [vec![Act::Wait(s(1))], answer(429, "", "{}")].concat();
            node.up(name).does([script]);
        }
        let refused = node.call(is_stream).await;
        assert_eq!((refused.status.as_u16(), refused.after), (429, s(3)), "one after the other");
        assert_eq!(refused.header("x-sluice-attempts"), Some("3"));
        assert_eq!(node.called(), [1, 1, 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn br_052_an_upstream_that_does_not_know_our_model_is_left_out_and_the_caller_is_served() {
    for (status, error) in [
        (
            404,
            r#"{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}"#,
        ),
        (
            400,
            r#"{"message":"The model `x` does not exist","type":"invalid_request_error","param":"model","code":null}"#,
        ),
        (400, r#"{"message":"Invalid model: x","type":"invalid_request_error","code":null}"#),
        (404, r#"{"message":"b","code":"DeploymentNotFound"}"#),
    ] {
        for failing_hops in 1..3 {
            let node = Node::new(3);
            for name in &NAMES[..failing_hops] {
                node.up(name).does([answer(status, "", &format!("{{\"error\":{error}}}"))]);
            }
            node.up(NAMES[failing_hops]).does([whole("x")]);
            for attempts in [failing_hops + 1, 1] {
                let answered = node.call(false).await;
                assert_eq!(answered.header("x-sluice-channel"), Some(NAMES[failing_hops]), "{error}");
                assert_eq!(answered.header("x-sluice-attempts"), Some(attempts.to_string().as_str()));
            }
            assert_eq!(node.counted().0.get("a misconfigured"), Some(&1), "{error}");
        }
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
