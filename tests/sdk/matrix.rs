//! Every caller × every operation that it has × what a first channel most often does wrong: the caller notices
//! nothing, the answer is that of the second channel alone, and each channel is asked once. One process of a
//! caller runs all its cases.
//!
//! Each case has a model of its own, whose first route meets one fault, so that no case takes a route out for
//! another: a 429 lets its route cool down. A credential that is refused takes its channel out for all.

use anyhow::{Context as _, ensure};
use harness::catalog::Document;
use harness::fleet::Fleet;
use harness::provider::{Call, Provider, Script};
use serde_json::{Value, json};

use crate::application::{Api, Language, run_cases};

/// What carries the text of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// The text.
    Text,
    /// Arguments of the tool that the answer calls.
    Call,
    /// Arguments, and the text of the second answer, which has the result of the tool.
    Agent,
    /// An object of the shape that was asked for.
    Object,
    /// A count of tokens.
    Count,
    /// Numbers.
    Embeddings,
}

/// An operation of a caller: its name in the scenario, whether a stream goes over the wire, what it gives.
pub type Operation = (&'static str, bool, Gives);

use Gives::{Agent, Call as Tool, Count, Embeddings, Object, Text};

pub const CHAT: &[Operation] = &[
    ("whole", false, Text),
    ("stream", true, Text),
    ("helper", true, Text),
    ("tools", false, Tool),
    ("tools_stream", true, Tool),
    ("parse", false, Object),
    ("parse_stream", true, Object),
];

pub const OPERATIONS: &[Operation] = &[
    ("responses", false, Text),
    ("responses_stream", true, Text),
    ("responses_helper", true, Text),
    ("responses_tools", false, Tool),
    ("responses_tools_stream", true, Tool),
    ("responses_parse", false, Object),
    ("responses_parse_stream", true, Object),
    ("completions", false, Text),
    ("completions_stream", true, Text),
    ("embeddings", false, Text),
    ("moderations", false, Text),
    ("images", false, Text),
    ("images_stream", true, Text),
];

pub const MESSAGES: &[Operation] = &[
    ("whole", false, Text),
    ("stream", true, Text),
    ("helper", true, Text),
    ("tools_whole", false, Tool),
    ("tools", true, Tool),
    ("parse", false, Object),
    ("parse_stream", true, Object),
    ("count", false, Count),
];

pub const GEMINI: &[Operation] = &[
    ("whole", false, Text),
    ("stream", true, Text),
    ("chat", true, Text),
    ("tools", false, Tool),
    ("tools_stream", true, Tool),
    ("parse", false, Object),
    ("count", false, Count),
    ("embed", false, Embeddings),
];

/// What Google's SDK for Node has not: a loop that calls functions of the application.
const GEMINI_AGENT: Operation = ("agent", false, Agent);

const LANGCHAIN: &[Operation] = &[
    ("openai_invoke", false, Text),
    ("openai_stream", true, Text),
    ("openai_tools", false, Tool),
    ("openai_tools_stream", true, Tool),
    ("openai_parse", false, Object),
    ("openai_embed", false, Embeddings),
    ("responses_invoke", false, Text),
    ("responses_stream", true, Text),
    ("responses_tools", false, Tool),
    ("responses_tools_stream", true, Tool),
    ("responses_parse", false, Object),
    ("anthropic_invoke", false, Text),
    ("anthropic_stream", true, Text),
    ("anthropic_tools", false, Tool),
    ("anthropic_tools_stream", true, Tool),
    ("anthropic_parse", false, Object),
    ("google_invoke", false, Text),
    ("google_stream", true, Text),
    ("google_tools", false, Tool),
    ("google_tools_stream", true, Tool),
    ("google_parse", false, Object),
];

const AI_SDK: &[Operation] = &[
    ("openai_text", false, Text),
    ("openai_stream", true, Text),
    ("openai_tools", false, Tool),
    ("openai_tools_stream", true, Tool),
    ("openai_object", false, Object),
    ("openai_object_stream", true, Object),
    ("openai_agent", false, Agent),
    ("openai_embed", false, Embeddings),
    ("responses_text", false, Text),
    ("responses_stream", true, Text),
    ("responses_tools", false, Tool),
    ("responses_tools_stream", true, Tool),
    ("responses_object", false, Object),
    ("responses_object_stream", true, Object),
    ("responses_agent", false, Agent),
    ("anthropic_text", false, Text),
    ("anthropic_stream", true, Text),
    ("anthropic_tools", false, Tool),
    ("anthropic_tools_stream", true, Tool),
    ("anthropic_object", false, Object),
    ("anthropic_object_stream", true, Object),
    ("anthropic_agent", false, Agent),
    ("google_text", false, Text),
    ("google_stream", true, Text),
    ("google_tools", false, Tool),
    ("google_tools_stream", true, Tool),
    ("google_object", false, Object),
    ("google_object_stream", true, Object),
    ("google_agent", false, Agent),
];

/// What the first channel does; `None`: there is no such channel.
const FAULTS: [(&str, Option<Script>); 7] = [
    ("none", None),
    ("503", Some(Script::Status(503))),
    ("429", Some(Script::RateLimited(None))),
    ("refused", Some(Script::Refuse)),
    ("error-in-200", Some(Script::ErrorAfterRole)),
    ("cut-first", Some(Script::CutFirst)),
    ("401", Some(Script::Status(401))),
];

mod python {
    use super::*;

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_chat_completions() -> anyhow::Result<()> {
        unnoticed(Language::Python, Api::Chat, CHAT).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_beside_chat() -> anyhow::Result<()> {
        unnoticed(Language::Python, Api::Operations, OPERATIONS).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_messages() -> anyhow::Result<()> {
        unnoticed(Language::Python, Api::Messages, MESSAGES).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_gemini() -> anyhow::Result<()> {
        unnoticed(Language::Python, Api::Gemini, &[GEMINI, &[GEMINI_AGENT]].concat()).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_langchain() -> anyhow::Result<()> {
        unnoticed(Language::Python, Api::Framework, LANGCHAIN).await
    }
}

mod node {
    use super::*;

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_chat_completions() -> anyhow::Result<()> {
        unnoticed(Language::Node, Api::Chat, CHAT).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_beside_chat() -> anyhow::Result<()> {
        unnoticed(Language::Node, Api::Operations, OPERATIONS).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_messages() -> anyhow::Result<()> {
        unnoticed(Language::Node, Api::Messages, MESSAGES).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_gemini() -> anyhow::Result<()> {
        unnoticed(Language::Node, Api::Gemini, GEMINI).await
    }

    #[tokio::test]
    async fn no_fault_of_a_first_channel_is_noticed_in_the_ai_sdk() -> anyhow::Result<()> {
        unnoticed(Language::Node, Api::Framework, AI_SDK).await
    }
}

/// Four providers: one that does something wrong for each model, one that is well, one that refuses our
/// credential, one that nobody can reach.
struct Channels {
    faulty: Provider,
    well: Provider,
    unauthorized: Provider,
    unreachable: Provider,
}

impl Channels {
    async fn start() -> anyhow::Result<Self> {
        let [faulty, well, unauthorized, unreachable] = ["p1", "p2", "p3", "p4"].map(Provider::start);
        let channels = Channels {
            faulty: faulty.await?,
            well: well.await?,
            unauthorized: unauthorized.await?,
            unreachable: unreachable.await?,
        };
        channels.unauthorized.set(Script::Status(401)).await;
        channels.unreachable.set(Script::Refuse).await;
        Ok(channels)
    }

    /// Who does this wrong.
    fn first(&self, script: &Script) -> &Provider {
        match script {
            Script::Refuse => &self.unreachable,
            Script::Status(401) => &self.unauthorized,
            _ => &self.faulty,
        }
    }

    /// A model for each case; what its first channel does with it is set.
    fn catalog(&self, api: Api, operations: &[Operation]) -> Document {
        let all = [&self.faulty, &self.well, &self.unauthorized, &self.unreachable];
        let mut document = all
            .into_iter()
            .fold(Document::of(api.dialect()), Document::provider)
            .policy("breaker = { failures = 1000, window = \"5m\", cooldown = \"60s\" }");
        for (operation, _, _) in operations {
            for (fault, script) in &FAULTS {
                let model = model(operation, fault);
                let Some(script) = script else {
                    document = document.model(&model, &[self.well.name()]);
                    continue;
                };
                let first = self.first(script);
                if first.name() == self.faulty.name() {
                    first.set_for(&format!("up-{model}"), script.clone());
                }
                document = document.model(&model, &[first.name(), self.well.name()]);
            }
        }
        document
    }
}

fn model(operation: &str, fault: &str) -> String {
    format!("{operation}.{fault}")
}

/// The calls of this provider for a model.
fn calls_for(provider: &Provider, model: &str) -> Vec<Call> {
    let upstream_model = format!("up-{model}");
    provider.calls().into_iter().filter(|call| call.model == upstream_model).collect()
}

async fn unnoticed(language: Language, api: Api, operations: &[Operation]) -> anyhow::Result<()> {
    let channels = Channels::start().await?;
    let fleet = Fleet::with_catalog(1, &channels.catalog(api, operations)).await?;
    let mut cases = Vec::new();
    for operation in operations {
        for (fault, script) in &FAULTS {
            cases.push((operation, script, model(operation.0, fault)));
        }
    }
    let names: Vec<String> =
        cases.iter().map(|((operation, _, _), _, model)| format!("{operation}={model}")).collect();
    let results = run_cases(language, api, &fleet, &names.join(","), "", &fleet.key).await?;
    let mut wrong = Vec::new();
    for ((operation, script, model), name) in cases.into_iter().zip(names) {
        let result = &results[&name];
        if let Err(error) = channels.answered(operation, script.as_ref(), &model, result) {
            wrong.push(format!("{name}: {error:#}: {result}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = channels.unauthorized.call_count();
    assert_eq!(refused, 1, "a channel whose credential was refused was asked again");
    fleet.finish()
}

impl Channels {
    /// One case went well: what the caller saw is what the channel that is well has sent for it.
    fn answered(
        &self,
        &(_, stream, gives): &Operation,
        script: Option<&Script>,
        model: &str,
        result: &Value,
    ) -> anyhow::Result<()> {
        ensure!(result["error"].is_null(), "it raised");
        let calls = calls_for(&self.well, model);
        let asked = if gives == Agent { 2 } else { 1 };
        ensure!(calls.len() == asked, "asked {} times", calls.len());
        ensure!(calls.iter().all(|call| call.stream == stream), "not what goes over the wire");
        let first = script.map(|script| calls_for(self.first(script), model).len());
        let expected = match script {
            None => None,
            // Its cooldown outlasts the second question of a loop.
            Some(Script::RateLimited(_)) => Some(1),
            // Nobody counts who is not reached; the other is out after the first of all cases.
            Some(Script::Refuse | Script::Status(401)) => first,
            Some(_) => Some(asked),
        };
        ensure!(first == expected, "the first channel was asked {first:?} times");

        let text = |call: Option<&Call>| call.map(|call| call.healthy_text(self.well.name()));
        let last = calls.last().context("a call")?;
        let (seen, sent) = match gives {
            Text => (result["text"].clone(), json!(text(Some(last)))),
            Tool => (result["tool"].clone(), json!({"name": "weather", "input": {"city": text(Some(last))}})),
            Agent => (
                json!([result["called_with"], result["text"]]),
                json!([text(calls.first()), text(Some(last))]),
            ),
            Object => (result["object"].clone(), json!({"answer": text(Some(last))})),
            Count => (result["count"].clone(), json!(14)),
            Embeddings if last.path.contains("embedContent") || last.path.contains("batchEmbed") => {
                (result["embeddings"].clone(), json!([[0.5, -0.25]]))
            }
            Embeddings => (json!([result["embeddings"][0][1].as_f64()]), json!([last.number as f64])),
        };
        ensure!(seen == sent, "saw {seen}, not {sent}");
        if let Some(id) = result["id"].as_str() {
            ensure!(id == last.answer_id(self.well.name()), "another id");
        }
        Ok(())
    }
}
