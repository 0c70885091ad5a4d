//! Google's own SDKs against a node: content whole and streamed, token counts, embeddings, the list of models, and
//! what they see of channels that fail.

use anyhow::Context as _;
use harness::provider::Script;
use serde_json::json;

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    healthy_content_is_read_whole_and_streamed => healthy;
    counts_embeddings_and_models_are_read => others;
    a_refusing_first_channel_is_not_noticed => |l| unnoticed(l, Script::Refuse);
    a_503_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::Status(503));
    a_429_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::RateLimited(Some(60)));
    an_error_inside_a_200_is_not_noticed => |l| unnoticed(l, Script::ErrorFirst);
    an_error_behind_the_usage_is_not_noticed => |l| unnoticed(l, Script::ErrorAfterRole);
    a_first_channel_that_hangs_before_headers_is_not_noticed => |l| unnoticed(l, Script::Hang);
    html_under_a_200_is_not_noticed => |l| unnoticed(l, Script::Html);
    an_empty_200_is_not_noticed => |l| unnoticed(l, Script::Empty);
    a_cut_in_the_middle_raises_and_no_other_channel_answers => |l| raises(l, Script::Cut);
    a_reset_in_the_middle_raises_and_no_other_channel_answers => |l| raises(l, Script::CutByReset);
    an_end_without_a_finish_raises => |l| raises(l, Script::NoFinish);
    a_stall_in_the_middle_raises => |l| raises(l, Script::Stall);
    e_14_a_raw_error_of_all_three_is_one_real_status => raw_errors;
    a_bad_request_is_returned_as_it_is => bad_request;
    br_021_an_error_in_an_array_is_read => array_error;
    a_wrong_key_and_an_unknown_model_have_their_own_errors => refused;
}

async fn stage(language: Language) -> anyhow::Result<Stage> {
    Stage::of(language, Api::Gemini).await
}

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for stream in [false, true] {
        stage.sees_the_answer_of(0, stream).await?;
        stage.raw_caller_gets_the_bytes_of(0, stream, 1).await?;
    }
    for call in stage.providers[0].calls() {
        let header =
            |name: &str| call.headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
        let (_, credential) = harness::catalog::credential("p1");
        assert_eq!(header("x-goog-api-key"), Some(credential));
        assert!(header("authorization").is_none(), "{:?}", call.headers);
        let path = if call.stream {
            "/v1/models/up-m:streamGenerateContent?alt=sse"
        } else {
            "/v1/models/up-m:generateContent"
        };
        assert_eq!(call.path, path);
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    stage.finish()
}

async fn others(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(Script::Status(503)).await;
    let result = stage.run("count").await?;
    assert_eq!((&result["count"], &result["error"]), (&json!(14), &json!(null)), "{result}");
    let result = stage.run("embed").await?;
    assert_eq!((&result["embeddings"], &result["error"]), (&json!([[0.5, -0.25]]), &json!(null)), "{result}");
    let call = stage.providers[1].calls().pop().context("a call")?;
    assert!(
        !String::from_utf8_lossy(&call.body).contains("\"models/m\""),
        "the body names our model: {call:?}"
    );
    let result = stage.run("models").await?;
    assert_eq!(result["models"], json!(["models/m", "models/other"]), "{result}");
    assert_eq!(result["one"], "models/m", "{result}");
    assert_eq!(stage.call_counts(), [2, 2, 0]);
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script.clone()).await;
    for stream in [false, true] {
        stage.sees_the_answer_of(1, stream).await?;
    }
    // A route that was rate limited cools down, so there the first channel is out by now.
    let cools_down = matches!(script, Script::RateLimited(_));
    for stream in [false, true] {
        stage.raw_caller_gets_the_bytes_of(1, stream, if cools_down { 1 } else { 2 }).await?;
    }
    let first = match script {
        Script::Refuse => 0,
        Script::RateLimited(_) => 1,
        _ => 4,
    };
    assert_eq!(stage.call_counts(), [first, 4, 0]);
    stage.finish()
}

async fn raises(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script).await;
    let result = stage.run("stream").await?;
    assert!(!result["error"].is_null(), "the SDK took a broken answer for a good one: {result}");
    assert_eq!(result["error"]["status"], 502, "{result}");
    assert_eq!(result["error"]["name"], "UNAVAILABLE", "{result}");
    assert_eq!(result["error"]["code"], "upstream_stream_error", "{result}");
    assert!(result["text"].as_str().unwrap_or_default().starts_with("p1 answers"), "{result}");
    assert_eq!(stage.call_counts(), [1, 0, 0]);

    let answer = stage.ask_raw(true).await?;
    let sent = stage.providers[0].last_sent();
    assert!(answer.body().starts_with(&sent), "what came before the cut is not what was sent");
    let rest = String::from_utf8_lossy(&answer.body()[sent.len()..]).into_owned();
    assert!(rest.starts_with("data: {\"error\":") && rest.contains("upstream_stream_error"), "{rest}");

    // A whole answer is held until it is complete, so the same fault moves it to the next channel.
    stage.sees_the_answer_of(1, false).await?;
    stage.finish()
}

async fn raw_errors(language: Language) -> anyhow::Result<()> {
    for scenario in ["whole", "stream"] {
        let stage = stage(language).await?;
        let raw = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"m\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
        for provider in &stage.providers {
            let chunks = vec![raw[..20].into(), raw[20..].into()];
            provider.set(Script::Raw { content_type: "text/event-stream", chunks }).await;
        }
        let result = stage.run(scenario).await?;
        assert_eq!(result["error"]["status"], 503, "{result}");
        assert_eq!(result["error"]["code"], "upstream_overloaded", "{result}");
        assert_eq!(stage.call_counts(), [1, 1, 1], "an SDK retried, or a channel was asked twice");
        stage.finish()?;
    }
    Ok(())
}

async fn bad_request(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(Script::Status(400)).await;
    for scenario in ["whole", "stream", "count", "embed"] {
        let result = stage.run(scenario).await?;
        assert_eq!(result["error"]["status"], 400, "{result}");
        assert_eq!(result["error"]["name"], "INVALID_ARGUMENT", "{result}");
        assert_eq!(result["error"]["code"], "invalid_request", "{result}");
        assert_eq!(result["error"]["message"], "the temperature is out of range", "{result}");
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    stage.finish()
}

async fn array_error(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let body = "[{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"m\",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n]";
    stage.providers[0].set(Script::Raw { content_type: "application/json", chunks: vec![body.into()] }).await;
    for scenario in ["whole", "stream", "count", "embed"] {
        let result = stage.run(scenario).await?;
        assert_eq!(result["error"]["status"], 400, "{result}");
        assert_eq!(result["error"]["name"], "INVALID_ARGUMENT", "{result}");
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    stage.finish()
}

async fn refused(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for scenario in ["whole", "stream", "count", "embed", "models"] {
        let result = stage.run_as(scenario, "m", "sk-nobody-knows-this-one").await?;
        assert_eq!(result["error"]["status"], 401, "{scenario}: {result}");
        assert_eq!(result["error"]["code"], "invalid_api_key", "{scenario}: {result}");
    }
    let key = stage.fleet.key.clone();
    for scenario in ["whole", "stream", "count", "embed"] {
        let result = stage.run_as(scenario, "no-such-model", &key).await?;
        assert_eq!(result["error"]["status"], 404, "{scenario}: {result}");
        assert_eq!(result["error"]["code"], "model_not_found", "{scenario}: {result}");
    }
    assert_eq!(stage.call_counts(), [0, 0, 0]);
    stage.finish()
}
