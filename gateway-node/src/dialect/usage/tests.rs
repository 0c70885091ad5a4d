use std::borrow::Cow;

use common::limits::USAGE_BYTES_MAX;

use super::*;

fn event(data: &str) -> Event<'_> {
    Event { name: None, data: Cow::Borrowed(data.as_bytes()), end: 0, size: 0, is_opaque: false }
}

fn said(reading: &Reading) -> Option<Usage> {
    match reading.spent() {
        Spent::Reported(usage) => Some(usage),
        Spent::Nothing | Spent::Unreported => None,
    }
}

fn of_stream(reader: &'static Reader, events: &[&str]) -> Option<Usage> {
    let mut reading = Reading::new(reader);
    for data in events {
        reading.on_event(&event(data), &[]);
    }
    said(&reading)
}

fn of_whole(reader: &'static Reader, body: &str) -> Option<Usage> {
    let mut whole = Reading::new(reader);
    whole.on_bytes(body.as_bytes());
    let mut single = Reading::new(reader);
    body.as_bytes().chunks(1).for_each(|byte| single.on_bytes(byte));
    assert_eq!(said(&single), said(&whole), "{body}");
    said(&whole)
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

#[test]
fn chat_says_it_at_the_top_under_x_groq_or_in_the_choice_and_counts_parts_inside_their_whole() {
    let full = Usage { cached_input: 40, cache_write: 7, reasoning: 5, ..tokens(100, 20) };
    for (object, usage) in [
        (
            r#"{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}"#,
            tokens(3, 1),
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":7,"audio_tokens":1},"completion_tokens_details":{"reasoning_tokens":5,"rejected_prediction_tokens":2}}"#,
            full,
        ),
        // DeepSeek, Moonshot, and relays in front of Anthropic, each with names of its own.
        (
            r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}"#,
            Usage { cached_input: 8, ..tokens(9, 2) },
        ),
        (
            r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":8}"#,
            Usage { cached_input: 8, ..tokens(9, 2) },
        ),
        (
            r#"{"prompt_tokens":4,"completion_tokens":2,"cache_read_input_tokens":2455,"cache_creation_input_tokens":6}"#,
            Usage { cached_input: 2455, cache_write: 6, ..tokens(2465, 2) },
        ),
        // xAI counts the reasoning beside the completion.
        (
            r#"{"prompt_tokens":10120,"completion_tokens":1499,"total_tokens":14428,"completion_tokens_details":{"reasoning_tokens":2809}}"#,
            Usage { reasoning: 2809, ..tokens(10120, 4308) },
        ),
        (
            r#"{"prompt_tokens":12,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":386}}"#,
            Usage { reasoning: 386, ..tokens(12, 387) },
        ),
        // Both names, of which one says nothing; decimals; details that are none.
        (
            r#"{"prompt_tokens":3,"completion_tokens":1,"input_tokens":0,"output_tokens":0,"input_tokens_details":null,"prompt_tokens_details":[]}"#,
            tokens(3, 1),
        ),
        (
            r#"{"prompt_tokens":3.0,"completion_tokens":1.2,"cost":0.01,"is_byok":false,"cost_details":{"a":{"b":7}}}"#,
            tokens(3, 2),
        ),
    ] {
        for frame in [
            format!(r#"{{"choices":[],"usage":{object}}}"#),
            format!(r#"{{"usage" : {object},"choices":[{{"delta":{{}},"finish_reason":"stop"}}]}}"#),
            format!(r#"{{"choices":[],"x_groq":{{"id":"q","usage":{object}}}}}"#),
            format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop","usage":{object}}}]}}"#),
        ] {
            assert_eq!(of_stream(&CHAT, &[&frame]), Some(usage), "{frame}");
            assert_eq!(of_whole(&CHAT, &frame), Some(usage), "{frame}");
        }
    }
}

#[test]
fn br_084_nulls_empty_objects_and_zeros_never_take_back_what_was_known() {
    let said = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    for silent in [
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"usage":{}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":"7","x":[9,{"total_tokens":8}]}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":-5,"total_tokens":1e300}}"#,
        r#"{"choices":[],"usage":"none"}"#,
        r#"{"choices":[]}"#,
    ] {
        assert_eq!(of_stream(&CHAT, &[silent]), None, "{silent}");
        assert_eq!(of_stream(&CHAT, &[silent, said, silent]), Some(tokens(3, 1)), "{silent}");
    }
}

#[test]
fn numbers_that_count_up_in_every_chunk_are_not_added() {
    let chunk = |output: u64| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"x"}}}}],"usage":{{"prompt_tokens":7,"completion_tokens":{output},"total_tokens":{}}}}}"#,
            7 + output
        )
    };
    let chunks: Vec<String> = (1..=9).map(chunk).collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    assert_eq!(of_stream(&CHAT, &chunks), Some(tokens(7, 9)));
    assert_eq!(
        of_stream(&CHAT, &chunks[..4]),
        Some(tokens(7, 4)),
        "a stream that was cut keeps what was known"
    );
}

#[test]
fn responses_say_it_in_all_three_terminal_events_and_in_the_whole_answer() {
    let object = r#"{"input_tokens":81,"input_tokens_details":{"cached_tokens":64},"output_tokens":1035,"output_tokens_details":{"reasoning_tokens":832},"total_tokens":1116}"#;
    let usage = Some(Usage { cached_input: 64, reasoning: 832, ..tokens(81, 1035) });
    let created = r#"{"type":"response.created","response":{"id":"r","usage":null,"output":[]}}"#;
    for kind in ["completed", "incomplete", "failed"] {
        let last = format!(
            r#"{{"type":"response.{kind}","response":{{"status":"{kind}","output":[{{"usage":{{"input_tokens":9}}}}],"usage":{object},"metadata":{{"usage":{{"input_tokens":5}}}}}}}}"#
        );
        assert_eq!(of_stream(&RESPONSES, &[created, &last]), usage, "{kind}");
    }
    assert_eq!(
        of_whole(&RESPONSES, &format!(r#"{{"status":"completed","output":[],"usage":{object}}}"#)),
        usage
    );
}

#[test]
fn br_077_the_events_of_a_message_count_up_and_each_says_what_it_says_anew() {
    let start = |usage: &str| format!(r#"{{"type":"message_start","message":{{"id":"m","usage":{usage}}}}}"#);
    let delta = |usage: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#)
    };
    let cached = |input, cached_input, cache_write, output| Usage {
        cached_input,
        cache_write,
        ..tokens(input, output)
    };
    for (begins, ends, usage) in [
        (
            r#"{"input_tokens":27,"output_tokens":1}"#,
            r#"{"input_tokens":27,"output_tokens":47}"#,
            tokens(27, 47),
        ),
        (r#"{"input_tokens":9,"output_tokens":1}"#, r#"{"output_tokens":12}"#, tokens(9, 12)),
        // What was cached stands beside the input, and stays where the end is silent about it.
        (
            r#"{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":2455,"output_tokens":1}"#,
            r#"{"output_tokens":30}"#,
            cached(2459, 2455, 0, 30),
        ),
        (
            r#"{"input_tokens":4,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":1}"#,
            r#"{"input_tokens":5,"cache_creation_input_tokens":10,"cache_read_input_tokens":25,"output_tokens":9,"server_tool_use":{"web_search_requests":2}}"#,
            Usage { searches: 2, ..cached(40, 25, 10, 9) },
        ),
        // Lookalikes: one number for all and then the split, the other way round, a guess, nothing but zeros.
        (
            r#"{"input_tokens":2459,"output_tokens":0}"#,
            r#"{"input_tokens":4,"cache_read_input_tokens":2455,"output_tokens":9}"#,
            cached(2459, 2455, 0, 9),
        ),
        (
            r#"{"input_tokens":4,"cache_read_input_tokens":2455,"output_tokens":1}"#,
            r#"{"input_tokens":2459,"output_tokens":9}"#,
            tokens(2459, 9),
        ),
        (r#"{"input_tokens":0,"output_tokens":0}"#, r#"{"input_tokens":8,"output_tokens":2}"#, tokens(8, 2)),
        (r#"{"input_tokens":8,"output_tokens":1}"#, r#"{"input_tokens":0,"output_tokens":2}"#, tokens(8, 2)),
        (
            r#"{"input_tokens":8,"output_tokens":1}"#,
            r#"{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":2}"#,
            tokens(8, 2),
        ),
    ] {
        assert_eq!(of_stream(&MESSAGES, &[&start(begins), &delta(ends)]), Some(usage), "{begins} {ends}");
    }
    let begun = start(r#"{"input_tokens":27,"output_tokens":1}"#);
    assert_eq!(of_stream(&MESSAGES, &[&begun]), Some(tokens(27, 1)), "a cut stream keeps what was known");
    let whole = r#"{"type":"message","content":[{"type":"tool_use","input":{"usage":{"input_tokens":99}}}],"usage":{"input_tokens":4,"cache_read_input_tokens":2455,"cache_creation":{"ephemeral_5m_input_tokens":6,"ephemeral_1h_input_tokens":1},"output_tokens":30}}"#;
    assert_eq!(of_whole(&MESSAGES, whole), Some(cached(2466, 2455, 7, 30)));
}

#[test]
fn gemini_counts_thoughts_beside_the_candidates_unless_the_total_says_otherwise() {
    for (object, usage) in [
        (r#"{"promptTokenCount":8,"totalTokenCount":8}"#, tokens(8, 0)),
        (
            r#"{"promptTokenCount":8,"candidatesTokenCount":3,"totalTokenCount":11,"promptTokensDetails":[{"modality":"TEXT","tokenCount":8}]}"#,
            tokens(8, 3),
        ),
        (
            r#"{"promptTokenCount":8,"candidatesTokenCount":3,"thoughtsTokenCount":20,"totalTokenCount":31}"#,
            Usage { reasoning: 20, ..tokens(8, 23) },
        ),
        (
            r#"{"promptTokenCount":8,"candidatesTokenCount":23,"thoughtsTokenCount":20,"totalTokenCount":31}"#,
            Usage { reasoning: 20, ..tokens(8, 23) },
        ),
        (r#"{"promptTokenCount":8,"thoughtsTokenCount":20}"#, Usage { reasoning: 20, ..tokens(8, 20) }),
        (
            r#"{"promptTokenCount":80,"cachedContentTokenCount":64,"toolUsePromptTokenCount":10,"candidatesTokenCount":3,"totalTokenCount":93}"#,
            Usage { cached_input: 64, ..tokens(90, 3) },
        ),
    ] {
        let frame = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"args":{{"usageMetadata":{{"promptTokenCount":1}}}}}}}}]}}}}],"usageMetadata":{object}}}"#
        );
        let first = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8}}"#;
        assert_eq!(of_stream(&GEMINI, &[first, &frame]), Some(usage), "{object}");
        assert_eq!(of_whole(&GEMINI, &frame), Some(usage), "{object}");
        assert_eq!(of_whole(&GEMINI, &format!("[{first},\r\n{frame}]")), Some(usage), "{object}");
    }
}

#[test]
fn what_has_no_output_is_counted_by_what_its_answer_says() {
    let searches = Usage { searches: 1, ..Usage::default() };
    for (reader, body, usage) in [
        (
            &TOP,
            r#"{"data":[{"embedding":[0.1,-2e3],"index":0}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#,
            Some(tokens(8, 0)),
        ),
        (
            &TOP,
            r#"{"created":1,"data":[{"b64_json":"x"}],"usage":{"input_tokens":50,"output_tokens":4160,"total_tokens":4210,"input_tokens_details":{"text_tokens":10,"image_tokens":40}}}"#,
            Some(tokens(50, 4160)),
        ),
        (
            &TOP,
            r#"{"text":"a","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"audio_tokens":14},"output_tokens":45,"total_tokens":59}}"#,
            Some(tokens(14, 45)),
        ),
        (
            &TOP,
            r#"{"text":"a","usage":{"type":"duration","seconds":9.25}}"#,
            Some(Usage { audio_ms: 9250, ..Usage::default() }),
        ),
        (
            &RANKING,
            r#"{"results":[],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}"#,
            Some(searches),
        ),
        (
            &RANKING,
            r#"{"results":[{"document":{"usage":{"total_tokens":9}}}],"usage":{"total_tokens":815}}"#,
            Some(tokens(815, 0)),
        ),
        (&RANKING, r#"{"data":[],"usage":{"prompt_tokens":20,"total_tokens":26}}"#, Some(tokens(20, 0))),
        (&TOP, r#"{"data":[{"url":"x"}]}"#, None),
        (&TOP, "usage: {\"usage\":{\"total_tokens\":9}}", None),
        (&TOP, "<p>{\"usage\":{\"total_tokens\":9}}", None),
        (&NONE, r#"{"input_tokens":8,"usage":{"total_tokens":9}}"#, None),
    ] {
        assert_eq!(of_whole(reader, body), usage, "{body}");
    }
}

#[test]
fn what_only_looks_like_usage_is_none() {
    for data in [
        r#"{"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}"#,
        r#"{"choices":[{"delta":{"content":"usage"}}]}"#,
        r#"{"choices":[{"delta":{"usage":{"prompt_tokens":9}}}]}"#,
        r#"{"choices":[{"delta":{"content":"}}}]}"}}],"other":{"usage":{"prompt_tokens":9}}}"#,
        r#"{"the usage":{"prompt_tokens":9},"usages":{"prompt_tokens":9},"x":"usage"}"#,
        r#"{"a name that is longer than any":{"usage":{"prompt_tokens":9}}}"#,
        r#"{"x_gro\u0071":{"usage":{"prompt_tokens":9}}}"#,
        r#"["usage",{"x":{"y":1}}]"#,
    ] {
        assert_eq!(of_stream(&CHAT, &[data]), None, "{data}");
        assert_eq!(of_whole(&CHAT, data), None, "{data}");
    }
    let large =
        format!(r#"{{"usage":{{"prompt_tokens":9,"x":"{}"}},"choices":[]}}"#, "x".repeat(USAGE_BYTES_MAX));
    assert_eq!(of_whole(&CHAT, &large), None);
}

#[test]
fn an_event_that_comes_in_pieces_or_is_too_large_to_be_kept_is_read_all_the_same() {
    let text = "x".repeat(70_000);
    for lines in [
        format!(
            "event: response.completed\r\ndata: {{\"response\":{{\"output\":[\"{text}\"],\"usage\":{{\"input_tokens\":3,\"output_tokens\":4}}}},\"a\":1}}\r\n\r\n"
        ),
        format!(
            ": note {{\"\nid: \"{{\ndata:{{\"response\":\ndata: {{\"output\":\"{text}\"\n: \"\ndata:,\"usage\":\ndata: {{\"input_tokens\":3\ndata:,\"output_tokens\":4}}}}}}\n\n"
        ),
    ] {
        let begins = lines.find(['e', 'i']).unwrap();
        let bytes = &lines.as_bytes()[begins.min(lines.find("id:").unwrap_or(begins))..];
        for size in [1, 7, 4096, 1 << 20] {
            let mut reading = Reading::new(&RESPONSES);
            let mut pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let last = pieces.pop().unwrap();
            pieces.into_iter().for_each(|piece| reading.on_begun(piece));
            reading.on_event(&Event { is_opaque: true, ..event("") }, last);
            assert_eq!(said(&reading), Some(tokens(3, 4)), "{size}");
            // The next event begins anew.
            reading.on_event(&event(r#"{"response":{"usage":{"input_tokens":5,"output_tokens":6}}}"#), &[]);
            assert_eq!(said(&reading), Some(tokens(5, 6)));
        }
    }
}
