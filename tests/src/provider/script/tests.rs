//! What the scripts send.

use super::*;

fn asked(stream: bool) -> Asked {
    asked_at("/v1/chat/completions", stream)
}

fn asked_at(path: &str, stream: bool) -> Asked {
    Asked {
        provider: "p1".to_owned(),
        number: 7,
        path: path.to_owned(),
        model: "m".to_owned(),
        stream,
        wanted: Wanted::Text,
    }
}

fn body(script: &Script, stream: bool) -> String {
    let Plan::Answer { steps, .. } = script.plan(&asked(stream)) else { panic!("no answer") };
    let sent = steps.iter().filter_map(|step| match step {
        Step::Send(bytes) => Some(bytes.clone()),
        _ => None,
    });
    String::from_utf8(sent.flatten().collect()).unwrap()
}

#[test]
fn every_name_is_a_script_and_comes_back() {
    for name in Script::NAMES {
        let script: Script = name.parse().unwrap();
        assert_eq!(script.to_string().parse::<Script>().unwrap(), script);
    }
    assert_eq!("429:2".parse::<Script>().unwrap(), Script::RateLimited(Some(2)));
    assert_eq!("500".parse::<Script>().unwrap(), Script::Status(500));
    assert!("nonsense".parse::<Script>().is_err());
}

#[test]
fn a_healthy_answer_says_who_gave_it() {
    let text = healthy_text(&asked(true));
    assert!(text.starts_with("p1 answers call 7"));
    let whole: serde_json::Value = serde_json::from_str(&body(&Script::Healthy, false)).unwrap();
    assert_eq!(whole["choices"][0]["message"]["content"], text);
    assert!(body(&Script::Healthy, true).ends_with("data: [DONE]\n\n"));
}

#[test]
fn the_path_decides_what_the_answer_looks_like() {
    let sent = |path: &str, stream: bool| {
        let Plan::Answer { steps, .. } = Script::Healthy.plan(&asked_at(path, stream)) else {
            panic!("no answer")
        };
        let bytes = steps.into_iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(bytes),
            _ => None,
        });
        String::from_utf8(bytes.flatten().collect()).unwrap()
    };
    let message: serde_json::Value = serde_json::from_str(&sent("/v1/messages", false)).unwrap();
    assert_eq!(message["content"][0]["text"], healthy_text(&asked(true)));
    assert_eq!(message["id"], answer_id("/v1/messages", "p1", 7));
    let stream = sent("/v1/messages?beta=true", true);
    assert!(
        stream.starts_with(": welcome\n\nevent: message_start\ndata: {\"type\":\"message_start\""),
        "{stream}"
    );
    assert!(stream.contains("event: message_stop\n") && !stream.contains("[DONE]"), "{stream}");
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        serde_json::from_str::<serde_json::Value>(data).unwrap();
    }
    assert!(sent("/v1/messages/count_tokens", false).contains("input_tokens"));
}

#[test]
fn what_breaks_off_has_no_end() {
    for script in [Script::Cut, Script::CutFirst, Script::CutByReset, Script::NoFinish, Script::Stall] {
        assert!(!body(&script, true).contains("[DONE]"), "{script}");
        assert!(serde_json::from_str::<serde_json::Value>(&body(&script, false)).is_err(), "{script}");
    }
}

#[test]
fn what_is_wanted_is_read_from_each_wire_format() {
    let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#;
    let tool = Wanted::Call { tool: "weather".to_owned(), member: "city".to_owned() };
    let object = Wanted::Object { member: "city".to_owned() };
    let cases = [
        (r#"{"tools": [{"type": "function", "function": {"name": "weather", "parameters": %}}]}"#, &tool),
        (r#"{"tools": [{"type": "function", "name": "weather", "parameters": %}]}"#, &tool),
        (r#"{"tools": [{"name": "weather", "input_schema": %}]}"#, &tool),
        (r#"{"tools": [{"functionDeclarations": [{"name": "weather", "parameters": %}]}]}"#, &tool),
        (r#"{"response_format": {"type": "json_schema", "json_schema": {"schema": %}}}"#, &object),
        (r#"{"text": {"format": {"type": "json_schema", "schema": %}}}"#, &object),
        (r#"{"output_config": {"format": {"type": "json_schema", "schema": %}}}"#, &object),
        (r#"{"generationConfig": {"responseSchema": %}}"#, &object),
        (r#"{"messages": []}"#, &Wanted::Text),
        (
            r#"{"tools": [{"name": "weather", "input_schema": %}], "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}"#,
            &Wanted::Text,
        ),
    ];
    for (body, wanted) in cases {
        let body = serde_json::from_str(&body.replace('%', schema)).unwrap();
        assert_eq!(&Wanted::of(&body), wanted, "{body}");
    }
}

#[test]
fn a_call_of_a_tool_has_the_text_in_its_arguments_in_each_wire_format() {
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:generateContent"]
    {
        let wanted = Wanted::Call { tool: "weather".to_owned(), member: "city".to_owned() };
        let asked = Asked { wanted, ..asked_at(path, false) };
        let arguments = healthy_text(&asked);
        let parsed: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(parsed["city"], healthy_text(&asked_at(path, false)));
        let whole = wanted::whole_call(&asked, &arguments).unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert!(whole.to_string().contains("weather"), "{whole}");
        let frames = wanted::call_frames(&asked, &[arguments]).unwrap().concat();
        for data in frames.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|d| *d != "[DONE]") {
            serde_json::from_str::<serde_json::Value>(data).unwrap();
        }
        assert!(frames.contains("weather"), "{frames}");
    }
}
