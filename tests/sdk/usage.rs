//! What a stream used, as the official OpenAI SDKs show it: who did not ask sees no frame of it, although the upstream
//! was asked; who asked does.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use harness::catalog::Document;
use harness::fleet::Fleet;
use harness::provider::{Provider, Script};
use harness::tools::{package_path, tools_dir};
use serde_json::{Value, json};
use tokio::process::Command;

const FRAMES: [&str; 5] = [
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"grüß\"},\"finish_reason\":null}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\n",
    "data: [DONE]\n\n",
];

#[tokio::test]
async fn br_082_the_python_sdk_sees_the_frame_of_usage_only_where_it_asks() -> anyhow::Result<()> {
    let program = tools_dir()?.join("venv/bin/python");
    sees_usage_only_where_it_asks(Command::new(program), "sdk/python/usage.py").await
}

#[tokio::test]
async fn br_082_the_node_sdk_sees_the_frame_of_usage_only_where_it_asks() -> anyhow::Result<()> {
    sees_usage_only_where_it_asks(Command::new("node"), "sdk/node/usage.mjs").await
}

async fn sees_usage_only_where_it_asks(mut sdk: Command, program: &str) -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    // In reads that end in the middle of events.
    let chunks = FRAMES.concat().into_bytes().chunks(200).map(Bytes::copy_from_slice).collect();
    provider.set(Script::Raw { content_type: "text/event-stream", chunks }).await;
    let document = Document::new()
        .channel(provider.name(), &provider.url(), "include_usage = true")
        .model("m", &[provider.name()]);
    let fleet = Fleet::with_catalog(1, &document).await?;

    let output = sdk
        .arg(package_path(program))
        .env("SLUICE_TEST_TOOLS", tools_dir()?)
        .env("OPENAI_BASE_URL", format!("http://{}/v1", fleet.data_address(0)?))
        .env("OPENAI_API_KEY", &fleet.key)
        .kill_on_drop(true)
        .output()
        .await
        .context("the SDK does not start; tests/run installs it")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let expected = json!({
        "plain": {"text": "grüß", "without_choices": 0, "usage": null},
        "asking": {"text": "grüß", "without_choices": 1, "usage": [7, 2]},
    });
    ensure!(result == expected, "{result}");

    let calls = provider.calls();
    ensure!(calls.len() == 2, "an SDK retried");
    for call in calls {
        let body: Value = serde_json::from_slice(&call.body)?;
        ensure!(
            body["stream_options"] == json!({"include_usage": true}),
            "the upstream was not asked: {body}"
        );
    }
    let (_, metrics) = fleet.ops(0, "/metrics").await?;
    for (kind, count) in [("input", 14), ("output", 4)] {
        let line = format!("sluice_tokens_total{{model=\"m\",channel=\"p1\",kind=\"{kind}\"}} {count}");
        ensure!(metrics.contains(&line), "no {line} in\n{metrics}");
    }
    fleet.finish()
}
