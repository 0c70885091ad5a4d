//! The life of a request on a real node: breaker, cooldown, callers that leave, bodies, paths. What
//! needs 30 s or more of waiting is tested on a paused clock, in the node's own tests.

use std::time::Duration;

use anyhow::ensure;
use harness::caller::{Caller, chat_body};
use harness::catalog::{Document, chain_of};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::{Ended, Provider, Script};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

async fn two() -> anyhow::Result<(Provider, Provider)> {
    Ok((Provider::start("p1").await?, Provider::start("p2").await?))
}

#[tokio::test]
async fn the_third_failure_takes_a_channel_out_and_its_cooldown_brings_it_back() -> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let document =
        chain_of("m", &[&p1, &p2]).policy("breaker = { failures = 3, window = \"5m\", cooldown = \"2s\" }");
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    p1.set(Script::Status(500)).await;
    for attempts in ["2", "2", "2", "1", "1"] {
        let answer = caller.chat("m", true).await?;
        assert_eq!((answer.status, answer.header("x-sluice-attempts")), (200, attempts));
    }
    assert_eq!(p1.call_count(), 3);
    let (_, metrics) = fleet.ops(0, "/metrics").await?;
    assert!(metrics.contains("sluice_breaker_open{channel=\"p1\"} 1"), "{metrics}");
    eventually("the control plane shows the open breaker", SOON * 2, || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.open_channels == ["p1"] || p1.call_count() > 3, "{node:?}");
        Ok(())
    })
    .await?;
    // After the cooldown it is asked again; inside the window one more failure is enough.
    eventually("the channel is tried again", SOON, || async {
        caller.chat("m", false).await?;
        ensure!(p1.call_count() == 4, "{}", p1.call_count());
        Ok(())
    })
    .await?;
    assert_eq!(caller.chat("m", false).await?.header("x-sluice-attempts"), "1");
    assert_eq!(p1.call_count(), 4);
    fleet.finish()
}

#[tokio::test]
async fn br_067_with_every_breaker_open_the_answer_comes_at_once_with_the_earliest_return()
-> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2])).await?;
    let caller = fleet.caller(0)?;
    for provider in [&p1, &p2] {
        provider.set(Script::Status(503)).await;
    }
    for _ in 0..3 {
        assert_eq!(caller.chat("m", false).await?.code(), "upstream_overloaded");
    }
    let answer = caller.chat("m", true).await?;
    assert_eq!((answer.status, answer.code().as_str()), (503, "no_available_channel"), "{}", answer.text());
    let after: u64 = answer.header("retry-after").parse()?;
    assert!((1..=60).contains(&after), "{after}");
    assert!(answer.header("x-should-retry").is_empty());
    assert_eq!((p1.call_count(), p2.call_count()), (3, 3));
    fleet.finish()
}

#[tokio::test]
async fn br_041_rate_limits_cool_down_and_never_open_a_breaker() -> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2])).await?;
    let caller = fleet.caller(0)?;
    p1.set(Script::RateLimited(Some(1))).await;
    for calls in 1..=4 {
        assert_eq!(caller.chat("m", false).await?.header("x-sluice-channel"), "p2");
        assert_eq!(caller.chat("m", true).await?.header("x-sluice-attempts"), "1", "it cools down");
        assert_eq!(p1.call_count(), calls);
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    p1.set(Script::Healthy).await;
    assert_eq!(caller.chat("m", false).await?.header("x-sluice-channel"), "p1", "429 opened a breaker");
    p1.set(Script::RateLimited(Some(50))).await;
    p2.set(Script::RateLimited(Some(7))).await;
    assert_eq!(caller.chat("m", false).await?.code(), "upstream_rate_limited");
    let answer = caller.chat("m", false).await?;
    assert_eq!((answer.status, answer.code().as_str()), (429, "no_available_channel"));
    let after: u64 = answer.header("retry-after").parse()?;
    assert!((5..=7).contains(&after), "{after}");
    fleet.finish()
}

async fn ended(provider: &Provider, wanted: Ended) -> anyhow::Result<()> {
    eventually(&format!("the call ends as {wanted:?}"), Duration::from_secs(1), || async {
        let ended = provider.calls().last().and_then(|call| call.ended);
        ensure!(ended == Some(wanted), "{ended:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn br_069_br_072_br_065_a_caller_that_leaves_ends_the_upstream_call_and_hurts_no_breaker()
-> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2])).await?;
    let caller = fleet.caller(0)?;
    for _ in 0..2 {
        p1.set(Script::Slow { deltas: 600, every: Duration::from_millis(50) }).await;
        caller.chat_and_leave("m", true, 10).await?;
        ended(&p1, Ended::Dropped).await?;
        for (script, stream) in
            [(Script::Slow { deltas: 600, every: Duration::from_millis(50) }, false), (Script::Hang, true)]
        {
            p1.set(script).await;
            let calls = p1.call_count();
            let waiting = caller.chat("m", stream);
            let left = timeout(Duration::from_millis(300), waiting).await;
            assert!(left.is_err() && p1.call_count() == calls + 1);
            ended(&p1, Ended::Dropped).await?;
        }
    }
    p1.set(Script::Healthy).await;
    assert_eq!(caller.chat("m", true).await?.header("x-sluice-channel"), "p1");
    assert_eq!(p2.call_count(), 0);
    fleet.finish()
}

#[tokio::test]
async fn br_120_br_112_every_hop_gets_the_same_body_with_the_channels_own_model() -> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2])).await?;
    let caller = fleet.caller(0)?;
    p1.set(Script::Status(500)).await;
    for stream in [true, false] {
        let answer = caller.chat("m", stream).await?;
        assert_eq!(answer.body(), p2.last_sent());
        let wanted = chat_body("m", stream).replace("\"m\"", "\"up-m\"");
        for provider in [&p1, &p2] {
            let call = provider.calls().pop().unwrap();
            assert_eq!(String::from_utf8_lossy(&call.body), wanted);
            assert_eq!(call.path, "/v1/chat/completions");
            let length = call.headers.get("content-length").and_then(|v| v.to_str().ok());
            assert_eq!(length, Some(wanted.len().to_string().as_str()));
            let encoding = call.headers.get("accept-encoding").and_then(|v| v.to_str().ok());
            assert_eq!(encoding, Some("identity"));
        }
    }
    fleet.finish()
}

#[tokio::test]
async fn br_118_a_large_body_is_served_and_one_above_the_limit_is_named_as_such() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    let caller = fleet.caller(0)?;
    let body = |size: usize| chat_body("m", false).replace("grüß dich", &"x".repeat(size));
    let answer = caller.post(body(3 * 1024 * 1024)).await?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = caller.post(body(33 * 1024 * 1024)).await?;
    assert_eq!((answer.status, answer.code().as_str()), (413, "request_too_large"), "{}", answer.text());
    assert_eq!(p1.call_count(), 1);
    fleet.finish()
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused_without_an_upstream_call() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    let caller = fleet.caller(0)?;
    for body in [
        "",
        "{",
        "[]",
        "{}",
        "{\"model\":7}",
        "{\"model\":\"m\"} x",
        "{\"model\":\"m\",\"stream\":\"yes\"}",
        "null",
    ] {
        let answer = caller.post(body.to_owned()).await?;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_request"),
            "{body}: {}",
            answer.text()
        );
        assert!(answer.json()?["error"]["request_id"] == answer.header("x-request-id"), "{}", answer.text());
    }
    assert_eq!(p1.call_count(), 0);
    fleet.finish()
}

#[tokio::test]
async fn paths_methods_and_ids_of_the_api_are_as_documented() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    let caller = fleet.caller(0)?;
    let answer = caller.send(caller.request("GET", "/v1/nothing")?).await?;
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
    let answer = caller.send(caller.request("GET", "/v1/chat/completions")?).await?;
    assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"));
    let answer = caller.models().await?;
    assert_eq!(answer.json()?["data"][0]["id"], "m");

    let request = caller.request("POST", "/v1/chat/completions")?.header("x-request-id", "callers-own-id-17");
    let answer = caller.send(request.body(chat_body("m", true))).await?;
    assert_eq!(answer.header("x-client-request-id"), "callers-own-id-17");
    let id = answer.header("x-request-id");
    assert!(id.len() == 36 && id == answer.header("request-id"), "{:?}", answer.headers);
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    fleet.finish()
}

#[tokio::test]
async fn http_2_in_clear_works_by_prior_knowledge() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build()?;
    let url = format!("http://{}/v1/chat/completions", fleet.data_address(0)?);
    for stream in [true, false] {
        let response = client.post(&url).bearer_auth(&fleet.key).body(chat_body("m", stream)).send().await?;
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        assert_eq!(response.bytes().await?, p1.last_sent());
    }
    // A cut whole answer that was committed already must not look complete: that needs > 4 MiB and
    // is a matter of the node's own tests; a cut stream ends with an error frame here too.
    p1.set(Script::Cut).await;
    let response = client.post(&url).bearer_auth(&fleet.key).body(chat_body("m", true)).send().await?;
    assert!(response.text().await?.contains("upstream_stream_error"));
    fleet.finish()
}

/// A provider that closes each connection a tenth of a second after its answer, without a word.
async fn closes_idle_connections(listener: TcpListener) {
    let mut open = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        open.spawn(async move {
            let body =
                "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}";
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            let mut buffer = vec![0; 64 * 1024];
            let idle = Duration::from_millis(100);
            while let Ok(Ok(1..)) = timeout(idle, stream.read(&mut buffer)).await {
                if stream.write_all((head.clone() + body).as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn br_124_a_pooled_connection_that_died_costs_neither_the_request_nor_a_failure() -> anyhow::Result<()>
{
    let p2 = Provider::start("p2").await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let document = Document::new().channel("flaky", &url, "").provider(&p2).model("m", &["flaky", "p2"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller: Caller = fleet.caller(0)?;
    let mut upstream = JoinSet::new();
    upstream.spawn(closes_idle_connections(listener));
    for pause in [0, 50, 95, 100, 105, 150, 0, 98, 101, 99] {
        let answer = caller.chat("m", false).await?;
        assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "flaky"), "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    assert_eq!(p2.call_count(), 0);
    fleet.finish()
}

#[tokio::test]
async fn br_133_a_change_of_nothing_but_a_timeout_is_in_use_once_it_is_acknowledged() -> anyhow::Result<()> {
    let (p1, p2) = two().await?;
    let document = chain_of("m", &[&p1, &p2]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    p1.set(Script::Hang).await;
    let patient = timeout(Duration::from_millis(500), caller.chat("m", false)).await;
    assert!(patient.is_err(), "headers are waited for 240 s");
    let revision = fleet.apply(&document.policy("timeouts = { headers = \"200ms\" }")).await?;
    fleet.in_sync(revision).await?;
    let answer = timeout(SOON, caller.chat("m", false)).await??;
    assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "p2"));
    assert_eq!(answer.header("x-sluice-revision"), revision.to_string());
    fleet.finish()
}
