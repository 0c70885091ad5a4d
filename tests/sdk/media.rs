//! The official OpenAI SDKs where they send or take files: speech, transcripts, translations, edits and variations of
//! images. One process of an SDK runs all of them, one after the other.

use harness::provider::Script;
use serde_json::Value;

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    healthy_answers_are_read_and_sound_is_the_same_byte_for_byte => healthy;
    a_refusing_first_channel_is_not_noticed => |l| unnoticed(l, Script::Refuse);
    a_503_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::Status(503));
    an_error_inside_a_200_is_not_noticed => |l| unnoticed(l, Script::ErrorFirst);
    an_error_behind_the_first_events_is_not_noticed => |l| unnoticed(l, Script::ErrorAfterRole);
    a_first_channel_that_hangs_before_headers_is_not_noticed => |l| unnoticed(l, Script::Hang);
    html_under_a_200_is_not_noticed => |l| unnoticed(l, Script::Html);
    an_empty_200_is_not_noticed => |l| unnoticed(l, Script::Empty);
    a_cut_in_the_middle_raises => |l| raises(l, Script::Cut);
    an_end_without_the_last_event_raises => |l| raises(l, Script::NoFinish);
    a_stall_in_the_middle_raises => |l| raises(l, Script::Stall);
    words_come_as_they_are_also_where_the_first_channel_sends_a_page => words;
    br_118_an_upload_of_25_mb_reaches_every_hop_and_one_above_the_limit_is_told_of_it => uploads;
}

const WHOLE: [&str; 6] = ["speech", "speech_streamed", "transcription", "translation", "edit", "variation"];
const STREAMED: [&str; 2] = ["transcription_stream", "edit_stream"];

async fn stage(language: Language) -> anyhow::Result<Stage> {
    Stage::of(language, Api::Media).await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        if name.starts_with("speech") {
            assert_eq!(result["hex"], hex(&call.sent), "{name}");
            continue;
        }
        assert_eq!(result["text"], call.healthy_text(provider.name()), "{name}: {result}");
        let file = call.file().unwrap_or_default();
        assert!(file.ends_with(&(0..=255).collect::<Vec<u8>>()), "{name}: the file did not arrive");
        if STREAMED.contains(&name.as_str()) {
            assert_eq!(result["finish"], "done", "{name}: {result}");
        }
    }
    Ok(())
}

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    all_answered_by(&stage, 0, &[&WHOLE[..], &STREAMED].concat()).await?;
    assert_eq!(stage.call_counts(), [8, 0, 0]);
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script.clone()).await;
    all_answered_by(&stage, 1, &[&WHOLE[..], &STREAMED].concat()).await?;
    assert_eq!(stage.call_counts(), [if script == Script::Refuse { 0 } else { 8 }, 8, 0]);
    stage.finish()
}

async fn raises(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script.clone()).await;
    for (name, result) in stage.run_each(&STREAMED).await? {
        assert!(!result["error"].is_null(), "{name}: the SDK took a broken answer for a good one: {result}");
        assert!(result["error"].to_string().contains("upstream_stream_error"), "{name}: {result}");
        match name.as_str() {
            "edit_stream" => assert_eq!(result["parts"], 2, "{result}"),
            _ => assert!(result["text"].as_str().unwrap_or_default().starts_with("p1 answers"), "{result}"),
        }
    }
    assert_eq!(stage.call_counts(), [2, 0, 0]);
    // A whole answer is held until it is complete, so the same fault moves it to the next channel. Half of a sound with
    // a clean end is a sound.
    let whole =
        WHOLE.iter().copied().filter(|name| script != Script::NoFinish || !name.starts_with("speech"));
    all_answered_by(&stage, 1, &whole.collect::<Vec<_>>()).await?;
    stage.finish()
}

async fn words(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let written = "WEBVTT\n\n00:00.000 --> 00:01.000\n{grüß} <dich>\n";
    let page = Script::Raw { content_type: "text/html", chunks: vec!["<!DOCTYPE html><html>".into()] };
    let vtt = Script::Raw { content_type: "text/vtt; charset=utf-8", chunks: vec![written.into()] };
    stage.providers[0].set(page).await;
    stage.providers[1].set(vtt).await;
    let result = &stage.run("transcription_words").await?["transcription_words"];
    assert_eq!((&result["text"], &result["error"]), (&written.into(), &Value::Null), "{result}");
    assert_eq!(stage.call_counts(), [1, 1, 0]);
    stage.finish()
}

async fn uploads(language: Language) -> anyhow::Result<()> {
    let stage = Stage::waiting(language, Api::Media, "60s").await?;
    stage.providers[0].set(Script::Status(503)).await;
    let results = stage.run_each(&["upload", "upload_too_large"]).await?;
    let [(_, good), (_, large)] = &results[..] else { anyhow::bail!("{results:?}") };
    assert!(good["error"].is_null(), "{good}");
    for provider in &stage.providers[..2] {
        let calls = provider.calls();
        let file = calls[0].file().unwrap_or_default();
        assert_eq!((calls.len(), file.len(), calls[0].model.as_str()), (1, 25_000_000, "up-m"));
        let mut pieces = file.chunks(250);
        assert!(pieces.all(|piece| piece.iter().copied().eq(0..250)), "not the bytes that were uploaded");
    }
    assert_eq!(
        (&large["error"]["status"], &large["error"]["code"]),
        (&413.into(), &"request_too_large".into())
    );
    assert!(large["error"]["message"].to_string().contains("32 MiB"), "{large}");
    assert_eq!(stage.call_counts(), [1, 1, 0]);
    stage.finish()
}
