//! The official OpenAI SDKs, unchanged, in front of Azure: deployments with their versions first, the newer API second,
//! a plain server third. What the SDKs see is what they would see of OpenAI.

use anyhow::Context as _;
use harness::catalog::{Document, credential};
use harness::provider::{Call, Provider, Script};

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    a_deployment_answers_as_openai_does => healthy;
    br_002_an_error_behind_azures_preamble_is_not_noticed => |l| unnoticed(l, Script::ErrorAfterRole);
    a_deployment_that_does_not_exist_is_not_noticed => |l| unnoticed(l, Script::Status(404));
    a_deployment_of_another_kind_is_not_noticed => |l| unnoticed(l, Script::Status(400));
    a_throttled_deployment_is_not_noticed => |l| unnoticed(l, Script::RateLimited(Some(30)));
}

async fn stage(language: Language) -> anyhow::Result<Stage> {
    let resource = |provider: &Provider| format!("http://{}", provider.address());
    Stage::with(language, Api::Chat, |[first, second, third]| {
        Document::of("openai-chat")
            .channel("p1", &resource(first), "profile = \"azure-openai\"")
            .channel("p2", &resource(second), "profile = \"azure-openai-v1\"")
            .provider(third)
            .model("m", &["p1", "p2", "p3"])
    })
    .await
}

fn last_call(stage: &Stage, provider: usize) -> anyhow::Result<Call> {
    stage.providers[provider].calls().pop().context("a call")
}

/// It was asked there, with the credential where Azure looks for it and nowhere else.
fn was_asked(call: &Call, channel: &str, path: &str) {
    assert_eq!(call.path, path);
    assert_eq!(call.headers["api-key"], credential(channel).1);
    assert!(!call.headers.contains_key("authorization"), "{:?}", call.headers);
    assert_eq!(call.model, "up-m");
}

const DEPLOYMENT: &str = "/openai/deployments/up-m/chat/completions?api-version=2024-10-21";

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for stream in [false, true] {
        stage.sees_the_answer_of(0, stream).await?;
        was_asked(&last_call(&stage, 0)?, "p1", DEPLOYMENT);
        stage.raw_caller_gets_the_bytes_of(0, stream, 1).await?;
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let asks_again = script == Script::ErrorAfterRole;
    stage.providers[0].set(script).await;
    for stream in [false, true] {
        stage.sees_the_answer_of(1, stream).await?;
        was_asked(&last_call(&stage, 1)?, "p2", "/openai/v1/chat/completions");
    }
    was_asked(&last_call(&stage, 0)?, "p1", DEPLOYMENT);
    // Who only the operator can help, and who asked for a pause, is left alone.
    assert_eq!(stage.call_counts(), [if asks_again { 2 } else { 1 }, 2, 0]);
    stage.finish()
}
