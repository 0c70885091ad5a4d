//! A real inference server that nobody here wrote, llama.cpp's, as the upstream: with a tiny model of random weights,
//! which `upstreams/tiny_model.py` writes, it does everything that it does with a good one.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::catalog::{Document, credential};
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON};
use harness::provider::{Provider, Script};
use harness::tools::package_path;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::application::{Api, Language, run_cases};
use crate::foreign::{Foreign, tool};

/// What it speaks of our dialects.
const DIALECTS: &str = "openai-chat,openai-completions,openai-responses,anthropic-messages";

/// Tokens of an answer whose length nobody asked for.
const ANSWER: &str = "12";

/// A server with one slot that asks for the credential of this channel.
async fn server(channel: &str, context: &str) -> anyhow::Result<Foreign> {
    let mut server = Foreign::new()?;
    write_model(&server).await?;
    serve(&mut server, channel, context)?;
    server.ready().await?;
    Ok(server)
}

async fn write_model(server: &Foreign) -> anyhow::Result<()> {
    let written = Command::new(tool("python")?)
        .arg(package_path("sdk/upstreams/tiny_model.py"))
        .arg(server.dir().join("tiny.gguf"))
        .output()
        .await
        .context("no Python for the upstreams; tests/run installs it")?;
    ensure!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    Ok(())
}

fn serve(server: &mut Foreign, channel: &str, context: &str) -> anyhow::Result<()> {
    let model = server.dir().join("tiny.gguf").to_string_lossy().into_owned();
    let (_, key) = credential(channel);
    let args = [
        ["--model", &model],
        ["--ctx-size", context],
        ["--n-predict", ANSWER],
        // The likeliest token always, so that what it says can be read and is the same each time.
        ["--temp", "0"],
        ["--api-key", &key],
        ["--parallel", "1"],
        ["--threads", "1"],
    ];
    let args = args.concat();
    server.start("llama-server-vulkan", &args)
}

fn catalog() -> Document {
    Document::of(DIALECTS).policy("breaker = { failures = 1000, window = \"5m\", cooldown = \"60s\" }")
}

/// Waits until the one slot of a server is at work, or is not. It is read from the log: each question about the slots
/// would put off that the server looks whether its caller is still there.
async fn at_work(server: &Foreign, wanted: bool) -> anyhow::Result<()> {
    eventually("the one slot is as wanted", Duration::from_secs(20), || async {
        let log = server.log();
        let begun = log.matches("| processing task").count();
        let ended = log.matches("| stop processing").count();
        ensure!((begun > ended) == wanted, "{log}");
        Ok(())
    })
    .await
}

/// A chat request for an answer of this many tokens.
fn long_chat(model: &str, stream: bool, tokens: u32) -> String {
    let messages = json!([{"role": "user", "content": "grüß dich"}]);
    json!({"model": model, "stream": stream, "max_tokens": tokens, "messages": messages}).to_string()
}

mod python {
    use super::*;

    #[tokio::test]
    async fn a_real_server_is_read_whole_and_streamed() -> anyhow::Result<()> {
        is_read(Language::Python).await
    }
}

mod node {
    use super::*;

    #[tokio::test]
    async fn a_real_server_is_read_whole_and_streamed() -> anyhow::Result<()> {
        is_read(Language::Node).await
    }
}

/// By every SDK whose dialect it speaks, behind a channel that is down, too.
async fn is_read(language: Language) -> anyhow::Result<()> {
    let down = Provider::start("p1").await?;
    down.set(Script::Status(503)).await;
    let server = server("p2", "4096").await?;
    let document = catalog()
        .provider(&down)
        .channel("p2", &server.url("/v1"), "")
        .model("m", &["p2"])
        .model("behind", &["p1", "p2"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let apis: [(Api, &[&str]); 3] = [
        // Without the helpers: they refuse an answer that was cut to its length, and events without a place.
        (Api::Chat, &["whole", "stream"]),
        (Api::Operations, &["responses", "responses_stream", "completions", "completions_stream"]),
        (Api::Messages, &["whole", "stream", "helper", "count"]),
    ];
    for (api, operations) in apis {
        let cases: Vec<String> = ["m", "behind"]
            .iter()
            .flat_map(|model| operations.iter().map(move |operation| format!("{operation}={model}")))
            .collect();
        let results = run_cases(language, api, &fleet, &cases.join(","), "", &fleet.key).await?;
        for case in &cases {
            let result = &results[case];
            assert!(result["error"].is_null(), "{case}: {result}");
            if case.starts_with("count") {
                assert!(result["count"].as_u64() > Some(5), "{case}: {result}");
                continue;
            }
            let text = result["text"].as_str().unwrap_or_default();
            assert!(text.len() >= 12, "{case}: {result}");
            // The same question to the same weights: whole or streamed, the answer is one.
            let whole = match case.split('=').next() {
                Some(name) if name.starts_with("completions") => "completions=m",
                Some(name) if name.starts_with("responses") => "responses=m",
                _ => "whole=m",
            };
            assert_eq!(text, results[whole]["text"], "{case}");
        }
    }
    fleet.finish()
}

#[tokio::test]
async fn br_018_a_prompt_too_long_for_a_real_server_is_our_400_and_walks_only_to_a_larger_window()
-> anyhow::Result<()> {
    let [small, large] = [server("p1", "256").await?, server("p2", "16384").await?];
    let document = catalog()
        .channel("p1", &small.url("/v1"), "")
        .channel("p2", &large.url("/v1"), "")
        .model("unsaid", &["p1", "p2"])
        .routes("said", &[("p1", "context_window = 256"), ("p2", "context_window = 16384")]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    let long = "water ".repeat(200);
    for stream in [false, true] {
        for (model, status, attempts) in [("unsaid", 400, "1"), ("said", 200, "2")] {
            let body =
                json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": long}]});
            let answer = caller.post(body.to_string()).await?;
            assert_eq!(answer.status, status, "{model}: {}", answer.text());
            assert_eq!(answer.header("x-sluice-attempts"), attempts, "{model}: {}", answer.text());
            if status == 400 {
                let error: Value = answer.json()?;
                assert_eq!(error["error"]["code"], "context_length_exceeded", "{error}");
            } else {
                assert_eq!(answer.header("x-sluice-channel"), "p2", "{model}");
            }
        }
    }
    fleet.finish()
}

#[tokio::test]
async fn a_credential_that_a_real_server_refuses_is_not_shown_to_it_again() -> anyhow::Result<()> {
    let [stranger, server] = [server("p3", "1024").await?, server("p2", "1024").await?];
    let document = catalog()
        .channel("p1", &stranger.url("/v1"), "")
        .channel("p2", &server.url("/v1"), "")
        .model("m", &["p1", "p2"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    for (stream, attempts) in [(false, "2"), (true, "1")] {
        let answer = caller.chat("m", stream).await?;
        assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "p2"), "{}", answer.text());
        assert_eq!(answer.header("x-sluice-attempts"), attempts);
    }
    fleet.finish()
}

#[tokio::test]
async fn a_request_that_a_real_server_cannot_read_is_our_400() -> anyhow::Result<()> {
    let server = server("p1", "1024").await?;
    let other = Provider::start("p2").await?;
    let document = catalog().channel("p1", &server.url("/v1"), "").provider(&other).model("m", &["p1", "p2"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    for body in [json!({"model": "m"}), json!({"model": "m", "messages": [{"role": "user", "content": 7}]})] {
        let answer = caller.post(body.to_string()).await?;
        assert_eq!(
            (answer.status, answer.header("x-sluice-attempts")),
            (400, "1"),
            "{body}: {}",
            answer.text()
        );
        let error: Value = answer.json()?;
        assert_eq!(error["error"]["type"], "invalid_request_error", "{error}");
    }
    assert_eq!(other.call_count(), 0);
    fleet.finish()
}

#[tokio::test]
async fn a_caller_that_leaves_frees_the_slot_of_a_real_server() -> anyhow::Result<()> {
    let server = server("p1", "65536").await?;
    let document = catalog().channel("p1", &server.url("/v1"), "").model("m", &["p1"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    for stream in [true, false] {
        at_work(&server, false).await?;
        let request = caller.request("POST", "/v1/chat/completions")?.bearer_auth(&fleet.key);
        // Some ten seconds of work.
        let body = long_chat("m", stream, 60_000);
        let request = request.header("content-type", "application/json").body(body);
        let asking = async {
            let mut response = request.send().await?;
            if stream {
                response.chunk().await?.context("a first event")?;
                at_work(&server, true).await?;
                return anyhow::Ok(());
            }
            anyhow::bail!("a whole answer came at once: {}", response.text().await?)
        };
        tokio::select! {
            asked = asking => asked?,
            // Of a whole answer nothing comes while it is made.
            worked = at_work(&server, true), if !stream => worked?,
        }
        // By now the caller is gone.
        let left = tokio::time::Instant::now();
        at_work(&server, false).await?;
        assert!(left.elapsed() < Duration::from_secs(2), "stream {stream}: freed after {:?}", left.elapsed());
    }
    // And the next caller is answered.
    let answer = caller.chat("m", true).await?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    fleet.finish()
}

#[tokio::test]
async fn a_real_server_that_starts_loads_its_model_and_dies_is_never_noticed() -> anyhow::Result<()> {
    let mut server = Foreign::new()?;
    write_model(&server).await?;
    let other = Provider::start("p2").await?;
    let document = catalog().channel("p1", &server.url("/v1"), "").provider(&other).model("m", &["p1", "p2"]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let caller = fleet.caller(0)?;
    // Nobody listens, then it says that it loads, then it answers.
    for _ in 0..2 {
        let answer = caller.chat("m", true).await?;
        assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "p2"), "{}", answer.text());
        serve(&mut server, "p1", "65536")?;
        eventually("the server answers", SOON, || async {
            let answer = caller.chat("m", true).await?;
            assert_eq!(answer.status, 200, "{}", answer.text());
            ensure!(answer.header("x-sluice-channel") == "p1", "{:?}", answer.headers);
            Ok(())
        })
        .await
        .with_context(|| server.log())?;
        // Killed while it makes a whole answer, of which the caller has nothing yet.
        let dying = async {
            at_work(&server, true).await?;
            server.crash().await
        };
        let (answer, ()) = tokio::try_join!(caller.post(long_chat("m", false, 60_000)), dying)?;
        assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "p2"), "{}", answer.text());
        server.ended().await?;
    }
    fleet.finish()
}
