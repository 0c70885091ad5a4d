//! The official SDKs, unchanged, against a real node: what an application sees when channels
//! are well, when they fail in ways that it must not notice, and when it must.
//! Each test drives one SDK and, beside it, a raw caller that looks at the bytes. The upstreams are simulated ones of
//! ours, but for `mock` and `inference`.

/// The same test for each SDK.
macro_rules! for_each_sdk {
    ($($(#[$doc:meta])* $name:ident => $scenario:expr;)+) => {
        mod python {
            use super::*;
            $($(#[$doc])* #[tokio::test] async fn $name() -> anyhow::Result<()> {
                ($scenario)(Language::Python).await
            })+
        }
        mod node {
            use super::*;
            $($(#[$doc])* #[tokio::test] async fn $name() -> anyhow::Result<()> {
                ($scenario)(Language::Node).await
            })+
        }
    };
}

mod application;
mod azure;
mod foreign;
mod gemini;
// It comes as a wheel for this platform alone.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod grpcurl;
// Its server comes as a wheel for this platform alone.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod inference;
mod matrix;
mod media;
mod messages;
mod mock;
mod operations;
mod things;
mod usage;

use application::{Language, Stage};
use harness::provider::Script;

for_each_sdk! {
    healthy_answers_are_read_whole_and_streamed => healthy;
    br_055_a_refusing_first_channel_is_not_noticed => |l| unnoticed(l, Script::Refuse);
    a_503_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::Status(503));
    br_015_an_error_inside_a_200_is_not_noticed => |l| unnoticed(l, Script::ErrorFirst);
    br_002_an_error_after_a_role_only_chunk_is_not_noticed => |l| unnoticed(l, Script::ErrorAfterRole);
    a_first_channel_that_hangs_before_headers_is_not_noticed => |l| unnoticed(l, Script::Hang);
    html_under_a_200_is_not_noticed => |l| unnoticed(l, Script::Html);
    an_empty_200_is_not_noticed => |l| unnoticed(l, Script::Empty);
    a_reset_before_headers_is_not_noticed => |l| unnoticed(l, Script::Reset);
    a_refused_credential_is_not_noticed => |l| unnoticed(l, Script::Status(401));
    br_032_a_cut_in_the_middle_raises_and_no_other_channel_answers => |l| raises(l, Script::Cut);
    a_reset_in_the_middle_raises_and_no_other_channel_answers => |l| raises(l, Script::CutByReset);
    br_034_an_end_without_a_finish_raises => |l| raises(l, Script::NoFinish);
    br_030_a_stall_in_the_middle_raises => |l| raises(l, Script::Stall);
    all_three_down_is_one_real_status_and_is_not_retried => exhausted;
    br_039_a_bad_request_is_returned_as_it_is => bad_request;
    a_rate_limit_is_waited_for_as_long_as_we_say => rate_limited;
    the_models_are_listed => models;
    a_wrong_key_is_an_authentication_error => wrong_key;
    an_unknown_model_is_not_found_and_no_upstream_is_asked => unknown_model;
}

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    for stream in [false, true] {
        stage.sees_the_answer_of(0, stream).await?;
        stage.raw_caller_gets_the_bytes_of(0, stream, 1).await?;
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    for stream in [false, true] {
        stage.providers[0].set(script.clone()).await;
        stage.sees_the_answer_of(1, stream).await?;
    }
    for stream in [false, true] {
        // A credential that was refused is not tried again, so there the first channel is out by now.
        let attempts = if script == Script::Status(401) { 1 } else { 2 };
        stage.raw_caller_gets_the_bytes_of(1, stream, attempts).await?;
    }
    let first = match script {
        Script::Refuse => 0,
        Script::Status(401) => 1,
        _ => 4,
    };
    assert_eq!(stage.call_counts(), [first, 4, 0]);
    stage.finish()
}

async fn raises(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    stage.providers[0].set(script).await;
    let result = stage.run("stream").await?;
    assert!(!result["error"].is_null(), "the SDK took a broken answer for a good one: {result}");
    assert_eq!(result["error"]["code"], "upstream_stream_error", "{result}");
    assert!(result["text"].as_str().unwrap_or_default().starts_with("p1 answers"), "{result}");
    assert_eq!(stage.call_counts(), [1, 0, 0]);

    let answer = stage.caller()?.chat("m", true).await?;
    let sent = stage.providers[0].last_sent();
    assert!(answer.body().starts_with(&sent), "what came before the cut is not what was sent");
    let rest = String::from_utf8_lossy(&answer.body()[sent.len()..]).into_owned();
    assert!(rest.contains("upstream_stream_error") && !rest.contains("[DONE]"), "{rest}");

    // A whole answer is held until it is complete, so the same fault moves it to the next channel.
    stage.sees_the_answer_of(1, false).await?;
    stage.finish()
}

async fn exhausted(language: Language) -> anyhow::Result<()> {
    for scenario in ["whole", "stream"] {
        let stage = Stage::new(language).await?;
        for provider in &stage.providers {
            provider.set(Script::Status(503)).await;
        }
        let result = stage.run(scenario).await?;
        assert_eq!(result["error"]["status"], 503, "{result}");
        assert_eq!(result["error"]["code"], "upstream_overloaded", "{result}");
        assert_eq!(stage.call_counts(), [1, 1, 1], "an SDK retried, or a channel was asked twice");

        let answer = stage.caller()?.chat("m", scenario == "stream").await?;
        assert_eq!((answer.status, answer.header("x-should-retry")), (503, "false"));
        assert_eq!(answer.header("content-type").split(';').next(), Some("application/json"));
        assert_eq!(answer.header("retry-after"), "", "never both hints");
        assert_eq!(answer.header("x-sluice-attempts"), "3");
        stage.finish()?;
    }
    Ok(())
}

async fn bad_request(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    stage.providers[0].set(Script::Status(400)).await;
    for scenario in ["whole", "stream"] {
        let result = stage.run(scenario).await?;
        assert_eq!(result["error"]["class"], "BadRequestError", "{result}");
        assert_eq!(result["error"]["status"], 400, "{result}");
        assert!(result["error"]["message"].to_string().contains("temperature is out of range"), "{result}");
    }
    assert_eq!(stage.call_counts(), [2, 0, 0]);
    stage.finish()
}

async fn rate_limited(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    for provider in &stage.providers {
        provider.set(Script::RateLimited(Some(2))).await;
    }
    let heals = async {
        // Once all three have refused, the SDK is asked to wait; by then they are well.
        harness::eventually::eventually("all three are asked", harness::fleet::SOON, || async {
            let counts = stage.call_counts();
            anyhow::ensure!(counts == [1, 1, 1], "{counts:?}");
            Ok(())
        })
        .await?;
        for provider in &stage.providers {
            provider.set(Script::Healthy).await;
        }
        anyhow::Ok(())
    };
    let (result, healed) = tokio::join!(stage.run("whole"), heals);
    healed?;
    let result = result?;
    assert!(result["error"].is_null(), "{result}");
    let calls = stage.providers[0].calls();
    let waited = calls.last().zip(calls.first()).map(|(last, first)| last.at - first.at).unwrap_or_default();
    assert!(waited >= std::time::Duration::from_millis(1900), "came back after {waited:?}");
    assert_eq!(stage.call_counts(), [2, 1, 1]);
    stage.finish()
}

async fn models(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    let result = stage.run("models").await?;
    assert_eq!(result["models"], serde_json::json!(["m", "other"]), "{result}");
    stage.finish()
}

async fn wrong_key(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    let result = stage.run_as("whole", "m", "sk-nobody-knows-this-one").await?;
    assert_eq!(result["error"]["class"], "AuthenticationError", "{result}");
    assert_eq!(result["error"]["code"], "invalid_api_key", "{result}");
    assert_eq!(stage.call_counts(), [0, 0, 0]);
    stage.finish()
}

async fn unknown_model(language: Language) -> anyhow::Result<()> {
    let stage = Stage::new(language).await?;
    let key = stage.fleet.key.clone();
    for scenario in ["whole", "stream"] {
        let result = stage.run_as(scenario, "no-such-model", &key).await?;
        assert_eq!(result["error"]["class"], "NotFoundError", "{result}");
        assert_eq!(result["error"]["code"], "model_not_found", "{result}");
    }
    assert_eq!(stage.call_counts(), [0, 0, 0]);
    stage.finish()
}
