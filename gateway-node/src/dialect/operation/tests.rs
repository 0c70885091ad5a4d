use super::*;

fn asked(method: &str, path: &str) -> String {
    match find(&method.parse().unwrap(), path) {
        Asked::Operation(operation, model) => {
            format!("{} {}", operation.dialect, model.unwrap_or_default())
        }
        Asked::Models => "models".into(),
        Asked::Model(name) => format!("model {name}"),
        Asked::GoogleModels => "google models".into(),
        Asked::GoogleModel(name) => format!("google model {name}"),
        Asked::OtherMethod(_) => "method_not_allowed".into(),
        Asked::Nothing => "not_found".into(),
        Asked::NotServed(_) => "not served".into(),
    }
}

#[test]
fn a_path_asks_for_one_thing_and_what_is_not_there_is_said() {
    let table = [
        ("POST", "/v1/chat/completions", "openai-chat "),
        ("POST", "/v1/chat/completions/", "openai-chat "),
        ("GET", "/v1/chat/completions", "method_not_allowed"),
        ("POST", "/chat/completions", "not_found"),
        ("POST", "/v1/messages", "anthropic-messages "),
        ("POST", "/v1/messages/count_tokens", "anthropic-messages "),
        ("GET", "/v1/messages", "method_not_allowed"),
        ("POST", "/v1/messages/batches", "not_found"),
        ("POST", "/v1/responses", "openai-responses "),
        ("GET", "/v1/responses", "method_not_allowed"),
        ("GET", "/v1/responses/resp_1", "openai-responses resp_1"),
        ("DELETE", "/v1/responses/resp_1/", "openai-responses resp_1"),
        ("POST", "/v1/responses/resp_1", "method_not_allowed"),
        ("POST", "/v1/responses/resp_1/cancel", "openai-responses resp_1"),
        ("GET", "/v1/responses/resp_1/input_items", "openai-responses resp_1"),
        ("GET", "/v1/responses/resp_1/nothing", "not_found"),
        ("GET", "/v1/responses/a%2Fb", "openai-responses a/b"),
        ("POST", "/v1/responses/compact", "not_found"),
        ("POST", "/v1/responses/input_tokens", "not_found"),
        ("GET", "/v1/responses/compact", "not_found"),
        ("POST", "/v1/conversations", "not served"),
        ("GET", "/v1/conversations/conv_1/items", "not served"),
        ("POST", "/v1/videos", "openai-videos "),
        ("GET", "/v1/videos", "not served"),
        ("DELETE", "/v1/videos", "method_not_allowed"),
        ("GET", "/v1/videos/video_1", "openai-videos video_1"),
        ("DELETE", "/v1/videos/video_1", "openai-videos video_1"),
        ("GET", "/v1/videos/video_1/content", "openai-videos video_1"),
        ("POST", "/v1/videos/video_1/remix", "openai-videos video_1"),
        ("GET", "/v1/videos/video_1/remix", "method_not_allowed"),
        ("POST", "/v1/videos/edits", "not served"),
        ("GET", "/v1/videos/characters/c", "not served"),
        ("POST", "/v1/completions", "openai-completions "),
        ("POST", "/v1/embeddings", "openai-embeddings "),
        ("POST", "/v1/moderations", "openai-moderations "),
        ("POST", "/v1/images/generations", "openai-images "),
        ("POST", "/v1beta/openai/images/generations", "openai-images "),
        ("POST", "/v1/images/edits", "openai-images "),
        ("POST", "/v1/images/variations", "openai-images "),
        ("POST", "/v1/audio/speech", "openai-audio "),
        ("POST", "/v1/audio/transcriptions", "openai-audio "),
        ("POST", "/v1/audio/translations", "openai-audio "),
        ("GET", "/v1/audio/speech", "method_not_allowed"),
        ("POST", "/v1/audio/voices", "not_found"),
        ("POST", "/v1/rerank", "rerank "),
        ("POST", "/v2/rerank", "rerank "),
        ("POST", "/v2/embeddings", "not_found"),
        ("GET", "/v1/models", "models"),
        ("GET", "/v1/models/gpt-4o", "model gpt-4o"),
        ("GET", "/v1/models/org/name%20x", "model org/name x"),
        ("POST", "/v1/models", "method_not_allowed"),
        ("GET", "/v1/modelsx", "not_found"),
        ("GET", "/", "not_found"),
        ("POST", "/v1beta/models/m:generateContent", "gemini m"),
        ("POST", "/v1/models/org/m:8b:streamGenerateContent", "gemini org/m:8b"),
        ("POST", "/models/m%3A8b:countTokens", "gemini m:8b"),
        ("POST", "/v1beta/models/m:embedContent", "gemini m"),
        ("POST", "/v1beta/models/m:batchEmbedContents/", "gemini m"),
        ("GET", "/v1beta/models/m:generateContent", "method_not_allowed"),
        ("POST", "/v1beta/models/m:predict", "not_found"),
        ("POST", "/v1beta/models/:generateContent", "not_found"),
        ("POST", "/v1alpha/models/m:generateContent", "not_found"),
        ("GET", "/v1beta/models", "google models"),
        ("GET", "/v1beta/models/m", "google model m"),
        ("POST", "/v1beta/models/m", "method_not_allowed"),
        ("POST", "/v1beta/openai/chat/completions", "openai-chat "),
        ("POST", "/v1beta/openai/embeddings", "openai-embeddings "),
        ("POST", "/v1beta/openai/responses", "not_found"),
        ("GET", "/v1beta/openai/models", "models"),
        ("GET", "/v1beta/openai/models/m", "model m"),
        ("POST", "/v1beta/chat/completions", "not_found"),
    ];
    for (method, path, expected) in table {
        assert_eq!(asked(method, path), expected, "{method} {path}");
    }
}

#[test]
fn googles_paths_say_errors_as_google_does() {
    let none = HeaderMap::new();
    let googles = HeaderMap::from_iter([("x-goog-api-client".parse().unwrap(), "x".parse().unwrap())]);
    let is_googles =
        |path, headers| std::ptr::fn_addr_eq(shape(path, headers).error_body, gemini::RULES.error_body);
    for path in [
        "/v1beta/models/m:generateContent",
        "/models/m:countTokens",
        "/v1/models/m:embedContent",
        "/v1beta/models",
        "/v1beta/nothing",
    ] {
        assert!(is_googles(path, &none), "{path}");
    }
    for path in ["/v1beta/openai/chat/completions", "/v1beta/openai/nothing", "/v1/models/m", "/v1betas"] {
        assert!(!is_googles(path, &none), "{path}");
    }
    assert!(is_googles("/v1/models", &googles) && !is_googles("/v1/chat/completions", &googles));
}

#[test]
fn a_form_of_answer_that_cannot_be_judged_is_refused_wherever_it_stands() {
    let Asked::Operation(operation, _) = find(&Method::POST, "/models/m:streamGenerateContent") else {
        panic!("no operation");
    };
    assert_eq!(operation.upward_query(Some("alt=sse&key=k")), Ok(Some("alt=sse".into())));
    for query in ["alt=proto", "alt=sse&alt=media", "alt=sse&$alt=proto", "$alt=json&%24alt=proto"] {
        assert!(operation.upward_query(Some(query)).is_err(), "{query}");
    }
}

#[test]
fn the_upstreams_name_stands_in_the_upstreams_path() {
    let Asked::Operation(operation, _) = find(&Method::POST, "/models/m:generateContent") else {
        panic!("no operation");
    };
    assert_eq!(operation.upstream_path("org/a b:c", Some("m")), "/models/org/a%20b%3Ac:generateContent");
}

#[test]
fn an_id_goes_up_as_one_part_of_the_path_with_what_may_be_asked_of_it() {
    let Asked::Operation(operation, Some(id)) = find(&Method::GET, "/v1/responses/a%2F..%3Fb") else {
        panic!("no operation");
    };
    assert_eq!(operation.upstream_path("m", Some(&id)), "/responses/a%2F..%3Fb");
    let query = Some("stream=true&starting_after=7&key=sk&include[]=a&x=1");
    assert_eq!(operation.upward_query(query), Ok(Some("stream=true&starting_after=7&include[]=a".into())));
    assert!(operation.streams(query) && !operation.streams(Some("stream=false")));
}

#[test]
fn what_takes_several_methods_names_them_all() {
    let Asked::OtherMethod(takes) = find(&Method::PUT, "/v1/videos/video_1") else { panic!("found") };
    assert_eq!(takes, "GET, DELETE");
}

#[test]
fn errors_are_said_as_the_path_or_the_sdk_reads_them() {
    let anthropics = HeaderMap::from_iter([("anthropic-version".parse().unwrap(), "x".parse().unwrap())]);
    let is_anthropics = |path, headers| shape(path, headers).headers == anthropic_messages::RULES.headers;
    let none = HeaderMap::new();
    for path in ["/v1/messages", "/v1/messages/", "/v1/messages/count_tokens", "/v1/messages/batches"] {
        assert!(is_anthropics(path, &none), "{path}");
    }
    for path in ["/v1/models", "/v1/models/m"] {
        assert!(is_anthropics(path, &anthropics) && !is_anthropics(path, &none), "{path}");
    }
    for path in ["/v1/chat/completions", "/v1/messagesx", "/"] {
        assert!(!is_anthropics(path, &anthropics), "{path}");
    }
}
