//! The official OpenAI SDKs beside chat: responses (whole, streamed, by the stream helper), legacy completions,
//! embeddings, moderations, images. One process of an SDK runs all of them, one after the other. What `matrix` has a
//! first channel do in each of them is not done here once more.

use harness::provider::Script;

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    healthy_answers_are_read => healthy;
    an_error_inside_a_200_is_not_noticed => |l| unnoticed(l, Script::ErrorFirst);
    a_first_channel_that_hangs_before_headers_is_not_noticed => |l| unnoticed(l, Script::Hang);
    html_under_a_200_is_not_noticed => |l| unnoticed(l, Script::Html);
    an_empty_200_is_not_noticed => |l| unnoticed(l, Script::Empty);
    a_cut_in_the_middle_raises => |l| raises(l, Script::Cut);
    a_reset_in_the_middle_raises => |l| raises(l, Script::CutByReset);
    an_end_without_the_last_event_raises => |l| raises(l, Script::NoFinish);
    a_stall_in_the_middle_raises => |l| raises(l, Script::Stall);
    a_response_that_fails_in_the_middle_raises => failed;
    a_bad_request_is_returned_as_it_is => bad_request;
    what_nobody_made_is_not_found => unknown;
}

const WHOLE: [&str; 5] = ["responses", "completions", "embeddings", "moderations", "images"];
const STREAMED: [&str; 4] = ["responses_stream", "responses_helper", "completions_stream", "images_stream"];

async fn stage(language: Language) -> anyhow::Result<Stage> {
    Stage::of(language, Api::Operations).await
}

/// Every operation comes to a good answer of this provider, which is asked once for each.
async fn all_answered_by(stage: &Stage, provider: usize, names: &[&str]) -> anyhow::Result<()> {
    let before = stage.providers[provider].call_count();
    let results = stage.run_each(names).await?;
    let provider = &stage.providers[provider];
    let calls = provider.calls().split_off(before);
    assert_eq!(calls.len(), names.len(), "an SDK retried: {results:?}");
    for ((name, result), call) in results.iter().zip(calls) {
        assert!(result["error"].is_null(), "{name}: {result}");
        assert_eq!(call.model, "up-m", "{name}");
        assert_eq!(result["text"], call.healthy_text(provider.name()), "{name}: {result}");
        if !result["id"].is_null() {
            assert_eq!(result["id"], call.answer_id(provider.name()), "{name}: {result}");
        }
        match name.as_str() {
            "embeddings" => assert_eq!(result["numbers"][1].as_f64(), Some(call.number as f64), "{result}"),
            "moderations" => assert_eq!(result["flagged"], false, "{result}"),
            "images" => {}
            name if name.starts_with("completions") => assert_eq!(result["finish"], "stop", "{result}"),
            _ => assert_eq!(result["finish"], "completed", "{result}"),
        }
    }
    Ok(())
}

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    all_answered_by(&stage, 0, &[&WHOLE[..], &STREAMED].concat()).await?;
    assert_eq!(stage.call_counts(), [9, 0, 0]);
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script).await;
    all_answered_by(&stage, 1, &[&WHOLE[..], &STREAMED].concat()).await?;
    assert_eq!(stage.call_counts(), [9, 9, 0]);
    stage.finish()
}

async fn raises(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script).await;
    for (name, result) in stage.run_each(&STREAMED).await? {
        assert!(!result["error"].is_null(), "{name}: the SDK took a broken answer for a good one: {result}");
        assert!(result["error"].to_string().contains("upstream_stream_error"), "{name}: {result}");
        if name == "images_stream" {
            assert_eq!(result["parts"], 2, "{result}");
        } else {
            assert!(
                result["text"].as_str().unwrap_or_default().starts_with("p1 answers"),
                "{name}: {result}"
            );
        }
    }
    assert_eq!(stage.call_counts(), [4, 0, 0]);
    // A whole answer is held until it is complete, so the same fault moves it to the next channel.
    all_answered_by(&stage, 1, &WHOLE).await?;
    stage.finish()
}

async fn failed(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let delta = r#"{"type":"response.output_text.delta","sequence_number":1,"item_id":"i","output_index":0,"content_index":0,"delta":"p1 answers","logprobs":[]}"#;
    let failed = r#"{"type":"response.failed","sequence_number":2,"response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"b"},"output":[]}}"#;
    let flat = r#"{"type":"error","sequence_number":2,"code":"server_error","message":"b","param":null}"#;
    for (kind, last) in [("response.failed", failed), ("error", flat)] {
        let frames =
            format!("event: response.output_text.delta\ndata: {delta}\n\nevent: {kind}\ndata: {last}\n\n");
        let chunks = vec![frames.into()];
        stage.providers[0].set(Script::Raw { content_type: "text/event-stream", chunks }).await;
        let results = stage.run("responses_stream").await?;
        let result = &results["responses_stream"];
        assert_eq!(result["text"], "p1 answers", "{kind}: {result}");
        // Newer SDKs raise for a flat error event themselves, before they read ours.
        let codes: &[&str] = if kind == "error" {
            &["upstream_stream_error", "server_error"]
        } else {
            &["upstream_stream_error"]
        };
        let code = result["error"]["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{kind}: {result}");
    }
    assert_eq!(stage.call_counts(), [2, 0, 0]);
    stage.finish()
}

async fn bad_request(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(Script::Status(400)).await;
    for (name, result) in stage.run_each(&[&WHOLE[..], &STREAMED].concat()).await? {
        assert_eq!(result["error"]["class"], "BadRequestError", "{name}: {result}");
        assert_eq!(result["error"]["code"], "invalid_value", "{name}: {result}");
        assert!(
            result["error"]["message"].to_string().contains("temperature is out of range"),
            "{name}: {result}"
        );
    }
    assert_eq!(stage.call_counts(), [9, 0, 0]);
    stage.finish()
}

async fn unknown(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for (name, result) in stage.run_each(&["previous_response", "retrieve"]).await? {
        let (class, code) = match name.as_str() {
            "retrieve" => ("NotFoundError", "not_found"),
            _ => ("BadRequestError", "previous_response_not_found"),
        };
        assert_eq!(result["error"]["class"], class, "{name}: {result}");
        assert_eq!(result["error"]["code"], code, "{name}: {result}");
    }
    assert_eq!(stage.call_counts(), [0, 0, 0]);
    stage.finish()
}
