//! A stage for an application: three providers in one chain, a node in front of them, and an SDK
//! that runs one scenario and says what it saw.

use anyhow::{Context as _, ensure};
use harness::caller::{Answer, Caller, chat_body};
use harness::catalog::{Document, chain_in};
use harness::fleet::Fleet;
use harness::provider::Provider;
use harness::tools::{package_path, tools_dir};
use tokio::process::Command;

/// Which SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
}

/// Whose SDK it is, and what it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat completions of OpenAI.
    Chat,
    /// Messages of Anthropic.
    Messages,
    /// Generated content of Google.
    Gemini,
    /// Sound and pictures of OpenAI.
    Media,
    /// What OpenAI has beside chat.
    Operations,
    /// All of them, through a framework over the SDKs: LangChain, the Vercel AI SDK.
    Framework,
    /// What OpenAI gives an id.
    Things,
}

impl Api {
    pub fn dialect(self) -> &'static str {
        match self {
            Api::Chat => "openai-chat",
            Api::Messages => "anthropic-messages",
            Api::Gemini => "gemini",
            Api::Media => "openai-audio,openai-images",
            Api::Framework => "openai-chat,openai-responses,openai-embeddings,anthropic-messages,gemini",
            Api::Operations => {
                "openai-responses,openai-completions,openai-embeddings,openai-moderations,openai-images"
            }
            Api::Things => "openai-responses,openai-videos",
        }
    }

    fn path(self, stream: bool) -> &'static str {
        match self {
            Api::Gemini if stream => "/v1beta/models/m:streamGenerateContent?alt=sse",
            Api::Gemini => "/v1beta/models/m:generateContent",
            Api::Chat | Api::Framework => "/v1/chat/completions",
            Api::Messages => "/v1/messages",
            Api::Media => "/v1/images/generations",
            Api::Operations | Api::Things => "/v1/responses",
        }
    }

    fn scenarios(self, language: Language) -> &'static str {
        match (self, language) {
            (Api::Chat, Language::Python) => "sdk/python/scenario.py",
            (Api::Chat, Language::Node) => "sdk/node/scenario.mjs",
            (Api::Messages, Language::Python) => "sdk/python/messages.py",
            (Api::Messages, Language::Node) => "sdk/node/messages.mjs",
            (Api::Gemini, Language::Python) => "sdk/python/gemini.py",
            (Api::Gemini, Language::Node) => "sdk/node/gemini.mjs",
            (Api::Media, Language::Python) => "sdk/python/media.py",
            (Api::Media, Language::Node) => "sdk/node/media.mjs",
            (Api::Operations, Language::Python) => "sdk/python/openai_operations.py",
            (Api::Framework, Language::Python) => "sdk/python/langchain_calls.py",
            (Api::Framework, Language::Node) => "sdk/node/ai_sdk.mjs",
            (Api::Operations, Language::Node) => "sdk/node/openai_operations.mjs",
            (Api::Things, Language::Python) => "sdk/python/openai_things.py",
            (Api::Things, Language::Node) => "sdk/node/openai_things.mjs",
        }
    }

    /// How an answer says that it came to its end.
    fn finish(self) -> &'static str {
        match self {
            Api::Chat | Api::Framework => "stop",
            Api::Messages => "end_turn",
            Api::Gemini => "STOP",
            Api::Media => "done",
            Api::Operations | Api::Things => "completed",
        }
    }
}

/// A fleet of one node with the chain `p1`, `p2`, `p3` for the model `m`.
pub struct Stage {
    pub fleet: Fleet,
    pub providers: [Provider; 3],
    language: Language,
    api: Api,
}

impl Stage {
    pub async fn new(language: Language) -> anyhow::Result<Self> {
        Stage::of(language, Api::Chat).await
    }

    pub async fn of(language: Language, api: Api) -> anyhow::Result<Self> {
        Stage::waiting(language, api, "1s").await
    }

    /// The same where an attempt has so long until its response headers: uploads take their time.
    pub async fn waiting(language: Language, api: Api, headers: &str) -> anyhow::Result<Self> {
        Stage::with(language, api, |providers| catalog(api, providers, headers)).await
    }

    /// The same with another catalog.
    pub async fn with(
        language: Language,
        api: Api,
        catalog: impl FnOnce(&[Provider; 3]) -> Document,
    ) -> anyhow::Result<Self> {
        let providers =
            [Provider::start("p1").await?, Provider::start("p2").await?, Provider::start("p3").await?];
        let fleet = Fleet::with_catalog(1, &catalog(&providers)).await?;
        Ok(Stage { fleet, providers, language, api })
    }

    pub fn caller(&self) -> anyhow::Result<Caller> {
        self.fleet.caller(0)
    }

    /// Runs a scenario for the model `m` with the fleet's key.
    pub async fn run(&self, scenario: &str) -> anyhow::Result<serde_json::Value> {
        self.run_as(scenario, "m", &self.fleet.key).await
    }

    /// Runs operations, and gives each name with what it came to.
    pub async fn run_each(&self, names: &[&str]) -> anyhow::Result<Vec<(String, serde_json::Value)>> {
        let results = self.run(&names.join(",")).await?;
        Ok(names.iter().map(|name| ((*name).to_owned(), results[name].clone())).collect())
    }

    /// Runs a scenario. Of those that are lists of operations it may be several, and the results have their names.
    pub async fn run_as(&self, scenario: &str, model: &str, key: &str) -> anyhow::Result<serde_json::Value> {
        let results = run_cases(self.language, self.api, &self.fleet, scenario, model, key).await?;
        let are_several = matches!(self.api, Api::Operations | Api::Media | Api::Things);
        Ok(if are_several { results } else { results[scenario].clone() })
    }

    /// The SDK sees one clean answer, and it is that of this provider.
    pub async fn sees_the_answer_of(&self, provider: usize, stream: bool) -> anyhow::Result<()> {
        self.sees_the_answer_of_as(if stream { "stream" } else { "whole" }, provider).await
    }

    /// The same, of another scenario that asks for an answer.
    pub async fn sees_the_answer_of_as(&self, scenario: &str, provider: usize) -> anyhow::Result<()> {
        let before = self.providers[provider].call_count();
        let result = self.run(scenario).await?;
        ensure!(result["error"].is_null(), "the SDK raised: {result}");
        let calls = self.providers[provider].calls();
        ensure!(calls.len() == before + 1, "asked {} times: {result}", calls.len() - before);
        let call = calls.last().context("a call")?;
        let name = self.providers[provider].name();
        ensure!(result["id"] == call.answer_id(name), "{result}");
        ensure!(result["text"] == call.healthy_text(name), "{result}");
        ensure!(result["finish"] == self.api.finish(), "{result}");
        Ok(())
    }

    /// A raw caller asks for an answer.
    pub async fn ask_raw(&self, stream: bool) -> anyhow::Result<Answer> {
        let caller = self.caller()?;
        let request =
            caller.request("POST", self.api.path(stream))?.header("content-type", "application/json");
        let body = match self.api {
            Api::Gemini => {
                "{ \"contents\": [{\"parts\": [{\"text\": \"grüß dich\"}]}],  \"x_unknown\": 2.50 }"
                    .to_owned()
            }
            Api::Chat | Api::Messages | Api::Media | Api::Operations | Api::Framework | Api::Things => {
                chat_body("m", stream)
            }
        };
        caller.send(request.body(body)).await
    }

    /// A raw caller gets exactly the bytes that this provider sent, and headers that say so.
    pub async fn raw_caller_gets_the_bytes_of(
        &self,
        provider: usize,
        stream: bool,
        attempts: u32,
    ) -> anyhow::Result<()> {
        let answer = self.ask_raw(stream).await?;
        let provider = &self.providers[provider];
        ensure!(answer.status == 200 && answer.broke.is_none(), "{answer:?}");
        ensure!(answer.body() == provider.last_sent(), "not the bytes that were sent: {}", answer.text());
        ensure!(answer.header("x-sluice-channel") == provider.name(), "{:?}", answer.headers);
        ensure!(answer.header("x-sluice-attempts") == attempts.to_string(), "{:?}", answer.headers);
        ensure!(answer.header("x-sluice-revision") == "1", "{:?}", answer.headers);
        ensure!(answer.header("x-request-id") != "req_upstream", "{:?}", answer.headers);
        for hidden in [
            "set-cookie",
            "openai-organization",
            "anthropic-organization-id",
            "x-ratelimit-remaining-requests",
            "x-should-retry",
        ] {
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

/// One process of an SDK runs cases, one after the other; what each came to, by its name.
pub async fn run_cases(
    language: Language,
    api: Api,
    fleet: &Fleet,
    cases: &str,
    model: &str,
    key: &str,
) -> anyhow::Result<serde_json::Value> {
    let tools = tools_dir()?;
    let mut command = match language {
        Language::Python => Command::new(tools.join("venv/bin/python")),
        Language::Node => Command::new("node"),
    };
    let node = format!("http://{}", fleet.data_address(0)?);
    let output = command
        .arg(package_path(api.scenarios(language)))
        .arg(cases)
        .env("SLUICE_TEST_TOOLS", &tools)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OPENAI_BASE_URL", format!("{node}/v1"))
        .env("OPENAI_API_KEY", key)
        .env("ANTHROPIC_BASE_URL", &node)
        .env("ANTHROPIC_API_KEY", key)
        .env("GEMINI_BASE_URL", &node)
        .env("GEMINI_API_KEY", key)
        .env("MODEL", model)
        .kill_on_drop(true)
        .output()
        .await
        .context("the SDK does not start; tests/run installs it")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Breakers that do not open in the way of a test, and waits that are short.
fn catalog(api: Api, providers: &[Provider; 3], headers: &str) -> Document {
    let [first, second, third] = providers;
    chain_in(api.dialect(), "m", &[first, second, third])
        .model("other", &["p1"])
        .policy("breaker = { failures = 100, window = \"5m\", cooldown = \"60s\" }")
        .policy(&format!("timeouts = {{ headers = \"{headers}\", idle = \"1500ms\" }}"))
}
