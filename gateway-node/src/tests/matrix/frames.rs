//! Each row of the frame tables of the wire formats (section 2), through the whole path: the frame comes first, an
//! error behind it. What proves nothing is dropped with the error and another channel answers; what is an answer is
//! with the caller before the error comes; what is an error itself is counted as what it is.

use common::class::FailureClass as F;

use super::faults::{Ends, Play};
use super::forms::{CHAT, COMPLETIONS, Form, GEMINI, MESSAGES, RESPONSES, Style};
use super::play::play;
use super::says::Says;

/// What a frame is to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Hold,
    /// Content, or a lawful end.
    Answer,
    Error(F),
}
use Is::{Answer, Error, Hold};

/// A document, and what it is as the first frame.
type Rows = &'static [(&'static str, Is)];

const OPENAI: Rows = &[
    (
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"service_tier":"default","system_fingerprint":null,"obfuscation":"aB"}"#,
        Hold,
    ),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}]}"#, Hold),
    (r#"{"choices":[],"usage":null}"#, Hold),
    (r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#, Hold),
    (r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}"#, Hold),
    (r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{"content":" \n"},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{"refusal":"I"},"finish_reason":null}]}"#, Answer),
    (
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}"#,
        Answer,
    ),
    (
        r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":""}},"finish_reason":null}]}"#,
        Answer,
    ),
    (r#"{"choices":[{"index":0,"delta":{"audio":{"id":"a"}},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{"audio":{"data":"AA"}},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{"audio":{"transcript":"a"}},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[],"moderation":{"flagged":false}}"#, Hold),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#, Error(F::UpstreamError)),
    (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"network_error"}]}"#, Error(F::UpstreamError)),
    ("[DONE]", Error(F::Empty)),
    // Unknown things are content.
    (r#"{"choices":[{"index":0,"delta":{"hologram":"x"},"finish_reason":null}]}"#, Answer),
    ("{broken", Error(F::Malformed)),
    // Azure
    (
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#,
        Hold,
    ),
    (
        r#"{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}]}"#,
        Hold,
    ),
    (
        r#"{"choices":[{"content_filter_results":{"hate":{"filtered":false}},"content_filter_offsets":{"start_offset":1},"finish_reason":null,"index":0}]}"#,
        Hold,
    ),
    (
        r#"{"choices":[{"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}},"delta":{},"finish_reason":null,"index":0}]}"#,
        Hold,
    ),
    (
        r#"{"choices":[{"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}},"delta":{"content":"x"},"finish_reason":null,"index":0}]}"#,
        Answer,
    ),
    // OpenRouter
    (": OPENROUTER PROCESSING\n\n", Hold),
    (
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}"#,
        Answer,
    ),
    (
        r#"{"choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","text":"hm"}]},"finish_reason":null}]}"#,
        Answer,
    ),
    (
        r#"{"error":{"code":502,"message":"b","metadata":{"error_type":"rate_limit_exceeded"}},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        Error(F::RateLimited),
    ),
    (
        r#"{"error":{"code":408,"message":"b"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        Error(F::Timeout),
    ),
    (
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"network_error"}]}"#,
        Error(F::UpstreamError),
    ),
    (
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"end_turn"}]}"#,
        Answer,
    ),
    // DeepSeek, xAI
    (": keep-alive\n\n", Hold),
    (
        r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"},"finish_reason":null}]}"#,
        Answer,
    ),
    // Mistral
    (
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]},"finish_reason":null}]}"#,
        Answer,
    ),
    // Groq
    (
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"x_groq":{"id":"q"}}"#,
        Hold,
    ),
    (
        r#"{"choices":[{"index":0,"delta":{"executed_tools":[{"type":"search","arguments":"x"}]},"finish_reason":null}]}"#,
        Answer,
    ),
    // vLLM, SGLang
    (
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":3,"total_tokens":3,"completion_tokens":0}}"#,
        Hold,
    ),
    (
        r#"{"error":{"message":"b","type":"InternalServerError","param":null,"code":500}}"#,
        Error(F::UpstreamError),
    ),
    (
        r#"{"error":{"object":"error","message":"b","type":"BadRequestError","param":null,"code":400}}"#,
        Error(F::BadRequest),
    ),
    // llama.cpp
    (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#, Hold),
    (
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}],"prompt_progress":{"total":9,"processed":3}}"#,
        Hold,
    ),
    (":\n\n", Hold),
    (r#"{"error":{"code":500,"message":"b","type":"server_error"}}"#, Error(F::UpstreamError)),
    (
        r#"{"error":{"code":400,"message":"b","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#,
        Error(F::BadRequest),
    ),
    // Ollama
    (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#, Hold),
    (r#"{"error":"model runner has unexpectedly stopped"}"#, Error(F::UpstreamError)),
];

const TEXT: Rows = &[
    (r#"{"choices":[{"index":0,"text":"","finish_reason":null}]}"#, Hold),
    (r#"{"choices":[{"index":0,"text":"Hi","finish_reason":null}]}"#, Answer),
    (r#"{"choices":[{"index":0,"text":"","finish_reason":"length"}]}"#, Answer),
];

const TYPED: Rows = &[
    (
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","error":null,"output":[]}}"#,
        Hold,
    ),
    (
        r#"{"type":"response.in_progress","response":{"id":"r","status":"in_progress","error":null,"output":[]}}"#,
        Hold,
    ),
    (r#"{"type":"response.queued","response":{"id":"r","status":"queued","error":null,"output":[]}}"#, Hold),
    (
        r#"{"type":"response.output_item.added","item":{"id":"i","type":"message","role":"assistant","content":[]}}"#,
        Hold,
    ),
    (r#"{"type":"response.output_item.added","item":{"id":"i","type":"reasoning","summary":[]}}"#, Hold),
    (
        r#"{"type":"response.content_part.added","part":{"type":"output_text","text":"","annotations":[]}}"#,
        Hold,
    ),
    (r#"{"type":"response.reasoning_summary_part.added","part":{"type":"summary_text","text":""}}"#, Hold),
    (
        r#"{"type":"response.output_item.added","item":{"id":"i","type":"function_call","name":"f","arguments":""}}"#,
        Answer,
    ),
    (r#"{"type":"response.output_item.added","item":{"id":"i","type":"custom_tool_call"}}"#, Answer),
    (r#"{"type":"response.output_item.added","item":{"id":"i","type":"web_search_call"}}"#, Answer),
    (r#"{"type":"response.output_item.added","item":{"id":"i","type":"image_generation_call"}}"#, Answer),
    (r#"{"type":"response.output_item.added","item":{"id":"i","type":"mcp_call"}}"#, Answer),
    (r#"{"type":"response.output_text.delta","delta":"Hi"}"#, Answer),
    (r#"{"type":"response.output_text.delta","delta":""}"#, Hold),
    (r#"{"type":"response.refusal.delta","delta":"I"}"#, Answer),
    (r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#, Answer),
    (r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#, Answer),
    (r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#, Answer),
    (r#"{"type":"response.audio.delta","delta":"AA"}"#, Answer),
    (r#"{"type":"response.code_interpreter_call_code.delta","delta":"1"}"#, Answer),
    (r#"{"type":"response.web_search_call.in_progress","item_id":"i"}"#, Answer),
    (r#"{"type":"response.web_search_call.searching","item_id":"i"}"#, Answer),
    (r#"{"type":"response.image_generation_call.generating","item_id":"i"}"#, Answer),
    (r#"{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}"#, Answer),
    (
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","error":null,"output":[]}}"#,
        Answer,
    ),
    (
        r#"{"type":"response.incomplete","response":{"id":"r","status":"incomplete","error":null,"output":[]}}"#,
        Answer,
    ),
    (
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"b"}}}"#,
        Error(F::UpstreamError),
    ),
    (
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"b"}}}"#,
        Error(F::RateLimited),
    ),
    (
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"b"}}}"#,
        Error(F::BadRequest),
    ),
    (
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"bio_policy","message":"b"}}}"#,
        Error(F::BadRequest),
    ),
    (
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_image","message":"b"}}}"#,
        Error(F::BadRequest),
    ),
    (
        r#"{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"q","param":null}}"#,
        Error(F::Balance),
    ),
    (
        r#"{"type":"error","sequence_number":2,"code":"rate_limit_exceeded","message":"b","param":null}"#,
        Error(F::RateLimited),
    ),
    (r#"{"type":"response.something_new","x":"y"}"#, Answer),
];

const ANTHROPIC: Rows = &[
    (
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        Hold,
    ),
    (r#"{"type":"ping"}"#, Hold),
    (r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, Hold),
    (r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#, Hold),
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        Answer,
    ),
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"t","name":"f","input":{}}}"#,
        Answer,
    ),
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"AA"}}"#,
        Answer,
    ),
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","content":[]}}"#,
        Answer,
    ),
    (r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#, Answer),
    (r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#, Answer),
    (
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        Answer,
    ),
    (
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AA"}}"#,
        Answer,
    ),
    (
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}"#,
        Answer,
    ),
    (r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#, Hold),
    (r#"{"type":"content_block_stop","index":0}"#, Hold),
    (r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#, Answer),
    (r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":0}}"#, Answer),
    (r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":0}}"#, Answer),
    (r#"{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":0}}"#, Answer),
    (
        r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":0}}"#,
        Answer,
    ),
    (r#"{"type":"message_stop"}"#, Error(F::Empty)),
    (
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}              }"#,
        Error(F::Overloaded),
    ),
    (
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"b","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"q"}"#,
        Error(F::Balance),
    ),
    (r#"{"type":"something_new","x":"y"}"#, Answer),
];

const GOOGLE: Rows = &[
    (r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"}}]}"#, Answer),
    (r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#, Answer),
    (r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#, Answer),
    (
        r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}]}}]}"#,
        Answer,
    ),
    (
        r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}}]}}]}"#,
        Answer,
    ),
    (r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["x"]}}]}"#, Hold),
    (r#"{"usageMetadata":{"promptTokenCount":3}}"#, Hold),
    (r#"{"candidates":[{"finishReason":"STOP"}]}"#, Answer),
    (r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#, Answer),
    (
        r#"{"candidates":[{"finishReason":"SAFETY","safetyRatings":[{"category":"x","probability":"HIGH"}]}]}"#,
        Answer,
    ),
    (r#"{"candidates":[{"finishReason":"RECITATION"}]}"#, Answer),
    (r#"{"candidates":[{"finishReason":"BLOCKLIST"}]}"#, Answer),
    (r#"{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}"#, Answer),
    (r#"{"candidates":[{"finishReason":"SPII"}]}"#, Answer),
    (r#"{"candidates":[{"finishReason":"IMAGE_SAFETY"}]}"#, Answer),
    (r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, Answer),
    (
        r#"{"error":{"code":429,"message":"b","status":"RESOURCE_EXHAUSTED","details":[]}}"#,
        Error(F::RateLimited),
    ),
];

fn frame(style: Style, document: &str) -> String {
    let kind = document.split("\"type\":\"").nth(1).and_then(|rest| rest.split('"').next());
    match (style, kind) {
        _ if document.starts_with(':') => document.to_owned(),
        (Style::Named | Style::Messages, Some(kind)) => format!("event: {kind}\ndata: {document}\n\n"),
        (Style::Google, _) => format!("data: {document}\r\n\r\n"),
        (Style::Chunks | Style::Typed | Style::Named | Style::Messages | Style::Array, _) => {
            format!("data: {document}\n\n")
        }
    }
}

/// Plays a frame as the first of a stream of `a`, an error behind it, and says what is wrong with what came of it.
fn wrong(form: &Form, document: &str, is: Is) -> Option<String> {
    let style = form.stream()?.style;
    // Behind a frame that is an error of that class, another.
    let says = if is == Error(F::Overloaded) { Says::Failed } else { Says::Overloaded };
    let behind = super::faults::frame(style, form.speech, &says.words(form.speech)?, false);
    let said = [frame(style, document), behind];
    let ends = Ends::served(String::new(), "");
    let seen = play(form, &[Play::new(form.says(&said), ends), Play::healthy(form, "b")]);
    let (who, bytes, class) = match is {
        Answer => ("a", said.concat(), F::Cut),
        Hold => ("b", form.good("b"), says.class()),
        Error(F::BadRequest) => ("a", String::new(), F::BadRequest),
        Error(class) => ("b", form.good("b"), class),
    };
    let is_served_by = seen.headers.get("x-sluice-channel").is_some_and(|channel| channel == who);
    let is_status = if is == Error(F::BadRequest) { seen.status == 400 } else { seen.status == 200 };
    // An error behind the last frame changes nothing any more.
    let is_over = is == Answer && seen.attempts.contains_key("a ok");
    let is_counted = is_over || seen.attempts.contains_key(&format!("a {class}"));
    let is_said = bytes.is_empty() || seen.body == bytes;
    let is_right = is_served_by && is_status && is_counted && is_said && seen.wrongs.is_empty();
    (!is_right).then(|| format!("{} {is:?}: {document}\n    {:?}", form.dialect, seen))
}

#[test]
fn each_frame_of_the_wire_formats_is_held_or_passed_or_moves_on_through_the_whole_path() {
    let tables = [
        (&CHAT, OPENAI),
        (&COMPLETIONS, TEXT),
        (&RESPONSES, TYPED),
        (&MESSAGES, ANTHROPIC),
        (&GEMINI, GOOGLE),
    ];
    let rows = tables.iter().flat_map(|(form, rows)| rows.iter().map(move |row| (form, row)));
    let wrongs: Vec<_> = rows.filter_map(|(form, (document, is))| wrong(form, document, *is)).collect();
    assert!(wrongs.is_empty(), "{} frames:\n{}", wrongs.len(), wrongs.join("\n"));
}
