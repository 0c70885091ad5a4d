//! A stage for an application: three providers in one chain, a node in front of them, and an SDK
//! that runs one scenario and says what it saw.

use anyhow::{Context as _, ensure};
use harness::caller::Caller;
use harness::catalog::{Document, chain_of};
use harness::fleet::Fleet;
use harness::provider::Provider;
use harness::provider::script::{Asked, healthy_text};
use harness::tools::{package_path, tools_dir};
use tokio::process::Command;

/// Which SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
}

/// A fleet of one node with the chain `p1`, `p2`, `p3` for the model `m`.
pub struct Stage {
    pub fleet: Fleet,
    pub providers: [Provider; 3],
    language: Language,
}

impl Stage {
    pub async fn new(language: Language) -> anyhow::Result<Self> {
        let providers =
            [Provider::start("p1").await?, Provider::start("p2").await?, Provider::start("p3").await?];
        let fleet = Fleet::with_catalog(1, &catalog(&providers)).await?;
        Ok(Stage { fleet, providers, language })
    }

    pub fn caller(&self) -> anyhow::Result<Caller> {
        self.fleet.caller(0)
    }

    /// Runs a scenario for the model `m` with the fleet's key.
    pub async fn run(&self, scenario: &str) -> anyhow::Result<serde_json::Value> {
        self.run_as(scenario, "m", &self.fleet.key).await
    }

    /// Runs a scenario.
    pub async fn run_as(&self, scenario: &str, model: &str, key: &str) -> anyhow::Result<serde_json::Value> {
        let tools = tools_dir()?;
        let mut command = match self.language {
            Language::Python => {
                let mut command = Command::new(tools.join("venv/bin/python"));
                command.arg(package_path("sdk/python/scenario.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(package_path("sdk/node/scenario.mjs"));
                command
            }
        };
        let output = command
            .arg(scenario)
            .env("SLUICE_TEST_TOOLS", &tools)
            .env("OPENAI_BASE_URL", format!("http://{}/v1", self.fleet.data_address(0)?))
            .env("OPENAI_API_KEY", key)
            .env("MODEL", model)
            .kill_on_drop(true)
            .output()
            .await
            .context("the SDK does not start; tests/run installs it")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The SDK sees one clean answer, and it is that of this provider.
    pub async fn sees_the_answer_of(&self, provider: usize, stream: bool) -> anyhow::Result<()> {
        let before = self.providers[provider].call_count();
        let result = self.run(if stream { "stream" } else { "whole" }).await?;
        ensure!(result["error"].is_null(), "the SDK raised: {result}");
        let calls = self.providers[provider].calls();
        ensure!(calls.len() == before + 1, "asked {} times: {result}", calls.len() - before);
        let call = calls.last().context("a call")?;
        let name = self.providers[provider].name();
        let asked = Asked {
            provider: name.to_owned(),
            number: call.number,
            model: call.model.clone(),
            stream: call.stream,
        };
        ensure!(result["id"] == call.answer_id(name), "{result}");
        ensure!(result["text"] == healthy_text(&asked), "{result}");
        ensure!(result["finish"] == "stop", "{result}");
        Ok(())
    }

    /// A raw caller gets exactly the bytes that this provider sent, and headers that say so.
    pub async fn raw_caller_gets_the_bytes_of(
        &self,
        provider: usize,
        stream: bool,
        attempts: u32,
    ) -> anyhow::Result<()> {
        let answer = self.caller()?.chat("m", stream).await?;
        let provider = &self.providers[provider];
        ensure!(answer.status == 200 && answer.broke.is_none(), "{answer:?}");
        ensure!(answer.body() == provider.last_sent(), "not the bytes that were sent: {}", answer.text());
        ensure!(answer.header("x-sluice-channel") == provider.name(), "{:?}", answer.headers);
        ensure!(answer.header("x-sluice-attempts") == attempts.to_string(), "{:?}", answer.headers);
        ensure!(answer.header("x-sluice-revision") == "1", "{:?}", answer.headers);
        ensure!(answer.header("x-request-id") != "req_upstream", "{:?}", answer.headers);
        for hidden in
            ["set-cookie", "openai-organization", "x-ratelimit-remaining-requests", "x-should-retry"]
        {
            ensure!(answer.header(hidden).is_empty(), "{hidden} of the upstream came through");
        }
        Ok(())
    }

    /// How often each provider was called.
    pub fn call_counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|index: usize| self.providers[index].call_count())
    }

    pub fn finish(self) -> anyhow::Result<()> {
        self.fleet.finish()
    }
}

/// Breakers that do not open in the way of a test, and waits that are short.
fn catalog(providers: &[Provider; 3]) -> Document {
    let [first, second, third] = providers;
    chain_of("m", &[first, second, third])
        .model("other", &["p1"])
        .policy("breaker = { failures = 100, window = \"5m\", cooldown = \"60s\" }")
        .policy("timeouts = { headers = \"1s\", idle = \"1500ms\" }")
}
