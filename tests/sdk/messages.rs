//! The official Anthropic SDKs against a node: messages whole, streamed and by the stream helper, tools, the count
//! of tokens, the list of models, and what they see of channels that fail.

use bytes::Bytes;
use harness::provider::Script;

use crate::application::{Api, Language, Stage};

for_each_sdk! {
    healthy_messages_are_read_whole_streamed_and_by_the_helper => healthy;
    a_tool_call_is_read_from_the_stream => tools;
    a_count_of_tokens_and_the_models_are_read => counted;
    a_refusing_first_channel_is_not_noticed => |l| unnoticed(l, Script::Refuse);
    a_503_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::Status(503));
    a_529_of_the_first_channel_is_not_noticed => |l| unnoticed(l, Script::Status(529));
    br_003_an_error_behind_message_start_is_not_noticed => |l| unnoticed(l, Script::ErrorAfterRole);
    a_first_channel_that_hangs_before_headers_is_not_noticed => |l| unnoticed(l, Script::Hang);
    html_under_a_200_is_not_noticed => |l| unnoticed(l, Script::Html);
    a_cut_in_the_middle_raises_and_no_other_channel_answers => |l| raises(l, Script::Cut);
    an_end_without_message_stop_raises => |l| raises(l, Script::NoFinish);
    a_stall_in_the_middle_raises => |l| raises(l, Script::Stall);
    br_141_all_three_failing_inside_a_200_is_one_real_status => exhausted;
    a_bad_request_is_returned_as_it_is => bad_request;
    a_wrong_key_and_an_unknown_model_have_their_own_errors => refused;
}

/// How a message can be asked for.
const WAYS: [&str; 3] = ["whole", "stream", "helper"];

async fn stage(language: Language) -> anyhow::Result<Stage> {
    Stage::of(language, Api::Messages).await
}

async fn healthy(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for way in WAYS {
        stage.sees_the_answer_of_as(way, 0).await?;
    }
    for stream in [false, true] {
        stage.raw_caller_gets_the_bytes_of(0, stream, 1).await?;
    }
    let call = &stage.providers[0].calls()[0];
    let header =
        |name: &str| call.headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
    let key = header("x-api-key").unwrap_or_default();
    assert!(
        key.starts_with(harness::catalog::CREDENTIAL),
        "not the credential of the channel: {:?}",
        call.headers
    );
    assert!(header("anthropic-version").is_some() && header("authorization").is_none(), "{:?}", call.headers);
    assert_eq!(stage.call_counts(), [5, 0, 0]);
    stage.finish()
}

async fn tools(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    let frames = [
        r#"{"type":"message_start","message":{"id":"msg-t","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Kö"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"ln\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let chunks = frames.map(|data| {
        let kind = data.split('"').nth(3).unwrap_or_default();
        Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
    });
    stage.providers[0].set(Script::Raw { content_type: "text/event-stream", chunks: chunks.to_vec() }).await;
    let result = stage.run("tools").await?;
    assert!(result["error"].is_null(), "{result}");
    assert_eq!(result["finish"], "tool_use", "{result}");
    assert_eq!(result["tool"], serde_json::json!({"name": "weather", "input": {"city": "Köln"}}), "{result}");
    let sent = String::from_utf8_lossy(&stage.providers[0].calls()[0].body).into_owned();
    assert!(sent.contains("input_schema"), "{sent}");
    stage.finish()
}

async fn counted(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(Script::Status(529)).await;
    let result = stage.run("count").await?;
    assert_eq!((&result["count"], &result["error"]), (&14.into(), &serde_json::Value::Null), "{result}");
    assert_eq!(stage.call_counts(), [1, 1, 0]);
    assert_eq!(stage.providers[1].calls()[0].path, "/v1/messages/count_tokens");
    let result = stage.run("models").await?;
    assert_eq!(result["models"], serde_json::json!(["m", "other"]), "{result}");
    stage.finish()
}

async fn unnoticed(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script.clone()).await;
    for way in WAYS {
        stage.sees_the_answer_of_as(way, 1).await?;
    }
    for stream in [false, true] {
        stage.raw_caller_gets_the_bytes_of(1, stream, 2).await?;
    }
    let first = if script == Script::Refuse { 0 } else { 5 };
    assert_eq!(stage.call_counts(), [first, 5, 0]);
    stage.finish()
}

async fn raises(language: Language, script: Script) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(script).await;
    for way in ["stream", "helper"] {
        let result = stage.run(way).await?;
        assert!(!result["error"].is_null(), "the SDK took a broken answer for a good one: {result}");
        assert!(result["error"]["message"].to_string().contains("upstream_stream_error"), "{result}");
        assert!(result["text"].as_str().unwrap_or_default().starts_with("p1 answers"), "{result}");
    }
    assert_eq!(stage.call_counts(), [2, 0, 0]);

    let answer = stage.ask_raw(true).await?;
    let sent = stage.providers[0].last_sent();
    assert!(answer.body().starts_with(&sent), "what came before the cut is not what was sent");
    let rest = String::from_utf8_lossy(&answer.body()[sent.len()..]).into_owned();
    assert!(rest.contains("event: error\n") && !rest.contains("message_stop"), "{rest}");

    // A whole answer is held until it is complete, so the same fault moves it to the next channel.
    stage.sees_the_answer_of_as("whole", 1).await?;
    stage.finish()
}

async fn exhausted(language: Language) -> anyhow::Result<()> {
    for way in WAYS {
        let stage = stage(language).await?;
        for provider in &stage.providers {
            provider.set(Script::ErrorAfterRole).await;
        }
        let result = stage.run(way).await?;
        assert_eq!(
            result["error"]["kind"],
            if way == "whole" { "api_error" } else { "overloaded_error" },
            "{result}"
        );
        assert_eq!(result["error"]["status"], if way == "whole" { 502 } else { 503 }, "{result}");
        assert_eq!(stage.call_counts(), [1, 1, 1], "an SDK retried, or a channel was asked twice");
        stage.finish()?;
    }
    Ok(())
}

async fn bad_request(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    stage.providers[0].set(Script::Status(400)).await;
    for way in WAYS {
        let result = stage.run(way).await?;
        assert_eq!(result["error"]["class"], "BadRequestError", "{result}");
        assert_eq!(result["error"]["kind"], "invalid_request_error", "{result}");
        assert!(result["error"]["message"].to_string().contains("temperature is out of range"), "{result}");
    }
    assert_eq!(stage.call_counts(), [3, 0, 0]);
    stage.finish()
}

async fn refused(language: Language) -> anyhow::Result<()> {
    let stage = stage(language).await?;
    for way in ["whole", "stream", "count", "models"] {
        let result = stage.run_as(way, "m", "sk-nobody-knows-this-one").await?;
        assert_eq!(result["error"]["class"], "AuthenticationError", "{way}: {result}");
        assert_eq!(result["error"]["kind"], "authentication_error", "{way}: {result}");
    }
    let key = stage.fleet.key.clone();
    for way in ["whole", "stream", "count"] {
        let result = stage.run_as(way, "no-such-model", &key).await?;
        assert_eq!(result["error"]["class"], "NotFoundError", "{way}: {result}");
        assert_eq!(result["error"]["kind"], "not_found_error", "{way}: {result}");
        assert!(result["error"]["message"].to_string().contains("model_not_found"), "{way}: {result}");
    }
    assert_eq!(stage.call_counts(), [0, 0, 0]);
    stage.finish()
}
