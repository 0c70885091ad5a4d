//! The official OpenAI SDKs and what has an id: stored responses and videos, made, read, followed up, fetched, deleted,
//! all on the channel that made them.

use harness::provider::Script;
use harness::provider::things::content;
use serde_json::{Value, json};

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    a_stored_response_is_read_resumed_followed_cancelled_and_deleted => responses;
    a_video_is_submitted_polled_downloaded_remixed_and_deleted => videos;
    a_submission_that_may_have_been_taken_is_not_repeated_by_the_sdk_either => ambiguous;
    a_submission_that_nobody_took_goes_on_unnoticed => unnoticed;
}

async fn stage(language: Language) -> anyhow::Result<Stage> {
    Stage::of(language, Api::Things).await
}

/// Runs a scenario whose things the second provider makes, as the first one has no capacity at their making.
async fn run(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    stage.providers[0].set(Script::Status(503)).await;
    Ok(stage.run(name).await?[name].clone())
}

fn is_gone(result: &Value) {
    let error = &result["error"];
    assert_eq!((&error["class"], &error["status"]), (&json!("NotFoundError"), &json!(404)), "{result}");
    assert!(error["message"].to_string().contains("not found"), "the channel's own words: {result}");
}

async fn responses(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let result = run(&stage, "responses").await?;
    let id = &result["id"];
    assert_eq!((id, &result["made"]), (&json!("resp-p2-1"), &json!("queued")), "{result}");
    assert_eq!(result["read"], json!([id, "completed"]), "{result}");
    assert!(result["text"].to_string().contains("p2 answers"), "{result}");
    let events = result["events"].as_array().cloned().unwrap_or_default();
    assert_eq!(events.first(), Some(&json!("response.output_text.delta")), "{result}");
    assert_eq!(events.last(), Some(&json!("response.completed")), "{result}");
    assert_eq!(result["items"], json!(["msg_in"]), "{result}");
    assert_eq!(result["following"], "completed", "{result}");
    assert_eq!(result["cancelled"], "cancelled", "{result}");
    is_gone(&result);
    assert_eq!(stage.call_counts(), [1, 8, 0], "only the making was tried elsewhere: {result}");
    stage.finish()
}

async fn videos(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let result = run(&stage, "videos").await?;
    let id = &result["id"];
    assert_eq!((id, &result["made"]), (&json!("video-p2-1"), &json!("queued")), "{result}");
    assert_eq!(result["read"], json!([id, "completed"]), "{result}");
    assert!(result["text"] == content("video-p2-1"), "byte for byte");
    assert_eq!(
        (&result["following"], &result["deleted"]),
        (&json!("queued"), &json!(true)),
        "{}",
        result["error"]
    );
    is_gone(&json!({ "error": result["error"] }));
    assert_eq!(stage.call_counts(), [1, 6, 0]);
    stage.finish()
}

async fn ambiguous(language: Language) -> anyhow::Result<()> {
    for script in [Script::Reset, Script::Status(500), Script::Hang, Script::Html, Script::Cut] {
        let stage = stage(language).await?;
        stage.providers[0].set(script.clone()).await;
        let result = stage.run("submit").await?["submit"].clone();
        assert!(!result["error"].is_null(), "{script}: {result}");
        assert_eq!(stage.call_counts(), [1, 0, 0], "{script}: submitted once: {result}");
        stage.finish()?;
    }
    Ok(())
}

async fn unnoticed(language: Language) -> anyhow::Result<()> {
    for script in [Script::Refuse, Script::Status(503), Script::RateLimited(Some(1)), Script::Status(401)] {
        let stage = stage(language).await?;
        stage.providers[0].set(script.clone()).await;
        let result = stage.run("submit").await?["submit"].clone();
        assert_eq!(result, json!({"id": "video-p2-1", "error": null}), "{script}");
        stage.finish()?;
    }
    Ok(())
}
