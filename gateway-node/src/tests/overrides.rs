//! Rules about the errors of an upstream, from the catalog's text to what follows: every way in which an upstream says
//! an error, streamed and whole.

use tokio::time::Instant;

use super::profiles::{a_before_b, channel, credential, model, node};
use super::support::*;

/// The ways in which an upstream says the same error: status, body, and whether a stream was asked for.
fn ways(status: u16, error: &str) -> Vec<(&'static str, Script, bool)> {
    let body = format!(r#"{{"error":{error}}}"#);
    let frame = format!("data: {body}\n\n");
    let sse = |frames: &[&str]| {
        let frames = frames.iter().map(|frame| chunk(frame));
        [vec![sse_head()], frames.collect(), vec![end()]].concat()
    };
    vec![
        ("a status, whole", answer(status, "", &body), false),
        ("a status, streamed", answer(status, "", &body), true),
        ("a body under a 200, whole", answer(200, "", &body), false),
        ("a body under a 200, streamed", answer(200, "", &body), true),
        ("the first frame", sse(&[&frame, DONE]), true),
        ("a frame behind the preamble", sse(&[": wait\n\n", &role(), &frame]), true),
    ]
}

#[tokio::test(start_paused = true)]
async fn br_006_a_rule_about_a_vendors_number_holds_for_statuses_bodies_and_frames_alike() {
    let rule = "overrides = [{ code = 11200, class = \"credential\" }]";
    for (way, script, stream) in ways(500, r#"{"code":11200,"message":"AppIdNoAuthError"}"#) {
        let (_dir, credential) = credential();
        for (text, class, calls_of_a) in
            [(credential.clone(), "upstream_error", 2), (format!("{credential}\n{rule}"), "credential", 1)]
        {
            let node = a_before_b(&text);
            node.up("a").does([script.clone()]);
            node.up("b").does([if stream { self::stream("b") } else { whole("b") }]);
            for _ in 0..2 {
                let answered = node.call(stream).await;
                assert_eq!(answered.header("x-sluice-channel"), Some("b"), "{way}: {class}");
                answered.text().await;
            }
            assert_eq!(node.up("a").called(), calls_of_a, "{way}: {class}");
            let (attempts, _) = node.counted();
            assert_eq!(attempts[&format!("a {class}")], calls_of_a as u64, "{way}: {attempts:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_043_a_quota_that_is_only_a_throttle_there_cools_the_route_down_and_suspends_nothing() {
    let error = r#"{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}"#;
    for (way, script, stream) in ways(429, error).into_iter().take(2) {
        for (profile, back_after) in [("openai", 60.0), ("dashscope", 15.0)] {
            let t0 = Instant::now();
            let node = a_before_b(&format!("profile = \"{profile}\""));
            node.up("a").does([script.clone(), if stream { self::stream("a") } else { whole("a") }]);
            node.up("b").does([if stream { self::stream("b") } else { whole("b") }]);
            for (second, served_by) in [(0.0, "b"), (back_after - 0.1, "b"), (back_after, "a")] {
                until(t0, second).await;
                let answered = node.call(stream).await;
                assert_eq!(answered.header("x-sluice-channel"), Some(served_by), "{way} {profile} {second}");
                answered.text().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_class_of_a_rule_decides_all_that_follows() {
    let error = r#"{"message":"the deployment is paused","type":"t","code":"paused"}"#;
    // The class, the status that a caller sees who has no other channel, and whether the next request asks again.
    let table = [
        ("timeout", 504, 2),
        ("rate_limited", 429, 1),
        ("overloaded", 503, 2),
        ("upstream_error", 502, 2),
        ("transient", 503, 2),
        ("credential", 503, 1),
        ("balance", 503, 1),
        ("misconfigured", 503, 1),
        ("bad_request", 418, 2),
    ];
    for (way, script, stream) in ways(418, error) {
        for (class, status, calls) in table {
            let rule =
                format!("overrides = [{{ message = \"IS PAUSED\", code = \"t\", class = \"{class}\" }}]");
            let node = node(&[channel("a", &rule), model("m", &["a"])].concat());
            node.up("a").does([script.clone()]);
            let answered = node.call(stream).await;
            // Inside a 200 no status says so.
            let status = if status == 418 && !way.contains("status") { 400 } else { status };
            assert_eq!(answered.status, status, "{way} {class}");
            let (text, _) = answered.text().await;
            assert_eq!(text.contains("is paused"), class == "bad_request", "{way} {class}: {text}");
            node.call(stream).await;
            assert_eq!(node.up("a").called(), calls, "{way} {class}");
            assert_eq!(node.counted().0[&format!("a {class}")], calls as u64, "{way} {class}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_never_looks_into_what_is_not_the_errors_own_message() {
    let rule = "overrides = [{ status = 400, message = \"no credit\", class = \"balance\" }]";
    let quiet = [
        r#"{"error":{"message":"m","type":"invalid_request_error","code":"x"},"prompt":"no credit"}"#,
        r#"{"error":{"message":"m","type":"invalid_request_error","param":"no credit","code":"x"}}"#,
        "no credit",
        "<html>no credit</html>",
    ];
    for body in quiet {
        let node = a_before_b(rule);
        node.up("a").does([answer(400, "", body)]);
        node.up("b").does([whole("b")]);
        node.call(false).await;
        assert_eq!(node.counted().0["a bad_request"], 1, "{body}");
    }
    let node = a_before_b(rule);
    node.up("a").does([answer(400, "", r#"{"error":{"message":"Sorry, NO CREDIT left","type":"t"}}"#)]);
    node.up("b").does([whole("b")]);
    assert_eq!(node.call(false).await.header("x-sluice-channel"), Some("b"));
    assert_eq!(node.counted().0["a balance"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_matches_counts_and_the_channels_own_come_before_its_profiles() {
    let own = "profile = \"dashscope\"\noverrides = [\n  { status = 429, message = \"free\", class = \"balance\" },\n  \
               { status = 429, message = \"busy\", class = \"overloaded\" },\n]";
    for (message, class) in
        [("free tier is busy", "balance"), ("busy", "overloaded"), ("quota", "rate_limited")]
    {
        let node = a_before_b(own);
        let body = format!(r#"{{"error":{{"message":"{message}","code":"insufficient_quota"}}}}"#);
        node.up("a").does([answer(429, "", &body)]);
        node.up("b").does([whole("b")]);
        node.call(false).await;
        assert_eq!(node.counted().0[&format!("a {class}")], 1, "{message}");
    }
}
