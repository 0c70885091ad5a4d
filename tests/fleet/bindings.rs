//! Things with an id over the whole fleet: made on one node, found on another, whatever ends in between.

use std::time::Duration;

use anyhow::ensure;
use harness::caller::{Answer, Caller};
use harness::catalog::{Document, chain_in};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::things::content;
use harness::provider::{Provider, Script};

const DIALECTS: &str = "openai-responses,openai-videos";

fn document(providers: &[&Provider]) -> Document {
    chain_in(DIALECTS, "m", providers)
}

async fn call(caller: &Caller, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
    let request = caller.request(method, path)?.header("content-type", "application/json");
    caller.send(request.body(body.to_owned())).await
}

/// Submits a video that the first provider has refused, so that the second has it.
async fn submitted(caller: &Caller, p1: &Provider) -> anyhow::Result<String> {
    p1.set(Script::Status(503)).await;
    let answer = call(caller, "POST", "/v1/videos", r#"{"model":"m","prompt":"a sluice"}"#).await?;
    ensure!(answer.status == 200 && answer.header("x-sluice-channel") == "p2", "{answer:?}");
    p1.set(Script::Healthy).await;
    Ok(answer.json()?["id"].as_str().unwrap_or_default().to_owned())
}

async fn polled_at_p2(caller: &Caller, id: &str) -> anyhow::Result<()> {
    let answer = call(caller, "GET", &format!("/v1/videos/{id}"), "").await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
    ensure!(answer.header("x-sluice-channel") == "p2", "{:?}", answer.headers);
    ensure!(answer.json()?["status"] == "completed", "{}", answer.text());
    Ok(())
}

#[tokio::test]
async fn what_one_node_submitted_is_polled_fetched_and_deleted_at_another_at_once() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::with_catalog(2, &document(&[&p1, &p2])).await?;
    let (a, b) = (fleet.caller(0)?, fleet.caller(1)?);
    let id = submitted(&a, &p1).await?;
    let calls_before = p1.call_count();
    // Without a pause: the report may still be on its way.
    polled_at_p2(&b, &id).await?;
    let fetched = call(&b, "GET", &format!("/v1/videos/{id}/content"), "").await?;
    assert_eq!(fetched.text(), content(&id));
    assert_eq!(fetched.header("content-type"), "video/mp4");
    let remixed = call(&b, "POST", &format!("/v1/videos/{id}/remix"), r#"{"prompt":"again"}"#).await?;
    let remixed = remixed.json()?["id"].as_str().unwrap_or_default().to_owned();
    polled_at_p2(&a, &remixed).await?;
    let deleted = call(&b, "DELETE", &format!("/v1/videos/{id}"), "").await?;
    assert_eq!((deleted.status, deleted.json()?["deleted"].as_bool()), (200, Some(true)));
    let gone = call(&a, "GET", &format!("/v1/videos/{id}"), "").await?;
    assert_eq!((gone.status, gone.code().as_str()), (404, "not_found"));
    assert!(gone.text().contains("Video with id"), "the channel's own words: {}", gone.text());
    assert_eq!(p1.call_count(), calls_before, "nobody else was asked");

    // Another key is told that there is no such thing, at both nodes.
    let other = fleet.create_key("other").await?;
    for caller in [&a, &b] {
        eventually("the new key is taken", SOON, || async {
            let answer = call(&caller.with_key(&other), "GET", &format!("/v1/videos/{remixed}"), "").await?;
            ensure!((answer.status, answer.code().as_str()) == (404, "not_found"), "{}", answer.text());
            ensure!(answer.text().contains("not made with this key"), "{}", answer.text());
            Ok(())
        })
        .await?;
    }
    let (_, metrics) = fleet.ops(1, "/metrics").await?;
    assert!(metrics.contains("sluice_binding_lookups_total{result=\"found\"}"), "{metrics}");
    let (_, metrics) = fleet.http("/metrics").await?;
    assert!(metrics.contains("sluice_bindings_reported_total 2"), "{metrics}");
    fleet.finish()
}

#[tokio::test]
async fn a_node_killed_right_after_its_answer_still_brings_the_binding_home() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let mut fleet = Fleet::with_catalog(2, &document(&[&p1, &p2])).await?;
    let (a, b) = (fleet.caller(0)?, fleet.caller(1)?);
    // The control plane is away, so that only the node's journal has it.
    fleet.control_plane.terminate(Duration::from_secs(15)).await?;
    let id = submitted(&a, &p1).await?;
    fleet.nodes[0].kill().await?;
    let answer = call(&b, "GET", &format!("/v1/videos/{id}"), "").await?;
    assert_eq!((answer.status, answer.code().as_str()), (503, "binding_unavailable"), "{}", answer.text());
    assert!(!answer.header("retry-after").is_empty());
    // The control plane is back and knows nothing, but that a node is missing: never a 404.
    fleet.control_plane.start_again().await?;
    let path = format!("/v1/videos/{id}");
    eventually("the second node is connected again", SOON, || async {
        ensure!(fleet.node("node-2").await?.connected, "not yet");
        Ok(())
    })
    .await?;
    let answer = call(&b, "GET", &path, "").await?;
    assert_eq!((answer.status, answer.code().as_str()), (503, "binding_unavailable"), "{}", answer.text());
    fleet.nodes[0].start_again().await?;
    polled_at_p2(&fleet.caller(0)?, &id).await?;
    let b = fleet.caller(1)?;
    eventually("the other node finds it", SOON, || polled_at_p2(&b, &id)).await?;
    // Also after a further restart of the control plane, at a node that asks for the first time.
    fleet.control_plane.terminate(Duration::from_secs(15)).await?;
    fleet.control_plane.start_again().await?;
    let third = fleet.add_node().await?;
    fleet.in_sync(1).await?;
    polled_at_p2(&fleet.caller(third)?, &id).await?;
    assert_eq!(p2.calls().iter().filter(|call| call.path.ends_with("/videos")).count(), 1, "submitted once");
    fleet.finish()
}

#[tokio::test]
async fn a_conversation_goes_on_at_any_node_on_the_channel_that_began_it() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::with_catalog(2, &document(&[&p1, &p2])).await?;
    let (a, b) = (fleet.caller(0)?, fleet.caller(1)?);
    p1.set(Script::Status(503)).await;
    let body = r#"{"model":"m","input":"hi","stream":true,"background":true}"#;
    let first = call(&a, "POST", "/v1/responses", body).await?;
    p1.set(Script::Healthy).await;
    assert_eq!((first.status, first.header("x-sluice-channel")), (200, "p2"));
    let id = p2.calls().last().map(|call| call.answer_id("p2")).unwrap_or_default();
    let next = call(
        &b,
        "POST",
        "/v1/responses",
        &format!(r#"{{"model":"m","input":"on","previous_response_id":"{id}"}}"#),
    )
    .await?;
    assert_eq!((next.status, next.header("x-sluice-channel")), (200, "p2"), "{}", next.text());
    let resumed = call(&b, "GET", &format!("/v1/responses/{id}?stream=true&starting_after=3"), "").await?;
    let text = resumed.text();
    assert!(text.starts_with("event: response.output_text.delta\n"), "{text}");
    assert!(text.contains("response.completed"), "{text}");
    let unknown =
        call(&b, "POST", "/v1/responses", r#"{"model":"m","input":"on","previous_response_id":"resp_no"}"#)
            .await?;
    assert_eq!((unknown.status, unknown.code().as_str()), (400, "previous_response_not_found"));
    fleet.finish()
}
