//! Profiles and what a channel says of its upstream: faults, warnings, and what reaches snapshot and differences.

use super::*;
use crate::profile::PROFILES;

/// A document of a channel with these lines; the first of them is the fourth line.
fn document(dialects: &str, base_url: &str, text: &str) -> String {
    format!(
        "[channels.a]\ndialects = [{dialects}]\nbase_url = \"{base_url}\"\n{text}\n\
         [models.m]\nroutes = [{{ channel = \"a\", upstream_model = \"up\", cost = {{ order = 1 }} }}]\n"
    )
}

fn chat(text: &str) -> String {
    document("\"openai-chat\"", "https://a.example/v1", text)
}

fn faults(document: &str) -> Vec<String> {
    lines(&parse(document.as_bytes()).unwrap_err())
}

#[test]
fn what_is_wrong_with_the_ways_of_an_upstream_is_located() {
    let auth_names = "must be one of \"bearer\", \"api-key\", \"x-api-key\", \"x-goog-api-key\", \"none\", or a table such as \
                      { header = \"X-Key\" } or { query = \"key\" }";
    let table = [
        (
            "profile = \"azure-opnai\"",
            "profile: no such profile \"azure-opnai\"; did you mean \"azure-openai\"?",
        ),
        ("profile = 1", "profile: must be a string, not a number"),
        ("auth = \"barer\"", &*format!("auth: {auth_names}, not \"barer\"; did you mean \"bearer\"?")),
        (
            "auth = \"none\"\ncredential = \"env:X\"",
            "auth: \"none\" shows nothing, and the channel has a credential: leave one of them out",
        ),
        ("auth = true", "auth: must be a table, not true or false"),
        ("auth = {}", "auth: must name either a `header` or a parameter of the `query`"),
        (
            "auth = { header = \"X\", query = \"x\" }",
            "auth: must name either a `header` or a parameter of the `query`",
        ),
        ("auth = { header = \"a b\" }", "auth.header: is no legal name of a header"),
        ("auth = { header = \"Content-Type\" }", "auth.header: is set by the gateway itself"),
        (
            "auth = { header = \"X-Key\", prefix = \"Token sk-1234567890\" }",
            "auth.prefix: must be a word, such as \"Token \", with the space that follows it; the credential itself \
             stands in `credential`",
        ),
        (
            "auth = { query = \"key\", prefix = \"Token \" }",
            "auth.prefix: stands before a credential in a header, and this one is in the query",
        ),
        (
            "auth = { query = \"\" }",
            "auth.query: must be the name of a parameter, without control characters",
        ),
        ("auth = { haeder = \"X\" }", "auth.haeder: no such key in auth; did you mean \"header\"?"),
        (
            "auth = { header = \"X-Team\" }\ncredential = \"env:X\"\nheaders = { x-team = \"1\" }",
            "auth: the credential goes where `headers` puts something else",
        ),
        (
            "auth = { query = \"api-version\" }\ncredential = \"env:X\"\nprofile = \"azure-openai\"",
            "auth: the credential goes where `query` puts something else",
        ),
        ("path = \"v1/chat\"", "path: must be a path such as \"/openai/deployments/{model}{operation}\""),
        ("path = \"/a/../b\"", "path: must be a path such as \"/openai/deployments/{model}{operation}\""),
        ("path = \"/a b\"", "path: must be a path such as \"/openai/deployments/{model}{operation}\""),
        ("path = \"/a?x=1\"", "path: must not have a query or a fragment; give parameters in `query`"),
        (
            "path = \"/{deployment}\"",
            "path: there is no {deployment}: only {model} and {operation} stand for something",
        ),
        ("path = \"/{model\"", "path: has a { without its }"),
        (
            "path = { openai-chta = \"/x\" }",
            "path.openai-chta: no such dialect \"openai-chta\"; did you mean \"openai-chat\"?",
        ),
        ("limits = \"account\"", "limits: must be \"route\" or \"channel\", not \"account\""),
        ("overrides = {}", "overrides: must be a list, not a table"),
        (
            "overrides = [{ class = \"balance\" }]",
            "overrides[0]: matches every error; give at least one of status, code and message",
        ),
        ("overrides = [{ status = 429 }]", "overrides[0].class: is missing"),
        (
            "overrides = [{ status = 429, class = \"rate_limit\" }]",
            "overrides[0].class: no such failure class \"rate_limit\"; did you mean \"rate_limited\"?",
        ),
        (
            "overrides = [{ status = 429, class = \"canceled\" }]",
            "overrides[0].class: \"canceled\" is nothing that an upstream can say; there are timeout, rate_limited, \
             overloaded, upstream_error, transient, credential, balance, misconfigured, bad_request",
        ),
        (
            "overrides = [{ status = 200, class = \"balance\" }]",
            "overrides[0].status: must be the status of an error, from 300 to 599; an error inside a 200 has its own",
        ),
        (
            "overrides = [{ message = \" \", class = \"balance\" }]",
            "overrides[0].message: must have 1 to 256 bytes",
        ),
        (
            "overrides = [{ code = true, class = \"balance\" }]",
            "overrides[0].code: must be a string, not true or false",
        ),
        (
            "overrides = [{ code = 1, clas = \"balance\" }]",
            "overrides[0].clas: no such key in an override; did you mean \"class\"?",
        ),
    ];
    for (text, expected) in table {
        let found = faults(&chat(text));
        assert!(found.contains(&format!("channels.a.{expected} (line 4)")), "{text}: {found:#?}");
    }
    let many = format!("overrides = [{}]", "{ code = 1, class = \"balance\" },".repeat(101));
    assert_eq!(faults(&chat(&many)), ["channels.a.overrides: are 101: at most 100 (line 4)"]);
}

#[test]
fn a_path_that_is_one_for_several_operations_must_hold_their_own() {
    let several = "must hold {operation}, the dialect's own path: ";
    let all = "and all of them would go there (line 4)";
    let table = [
        (
            "\"openai-images\"",
            "path = \"/x\"",
            format!("path: {several}openai-images has several operations, {all}"),
        ),
        (
            "\"openai-chat\", \"rerank\"",
            "path = \"/x\"",
            format!("path: {several}the channel speaks several dialects, {all}"),
        ),
        (
            "\"gemini\"",
            "path = { gemini = \"/{model}\" }",
            format!("path.gemini: {several}gemini has several operations, {all}"),
        ),
    ];
    for (dialects, text, expected) in table {
        assert_eq!(faults(&document(dialects, "https://a", text)), [format!("channels.a.{expected}")]);
    }
    for (dialects, text) in [
        ("\"openai-chat\"", "path = \"/x/{model}\""),
        ("\"openai-chat\", \"rerank\"", "path = { openai-chat = \"/x\", rerank = \"/y\" }"),
        ("\"openai-images\"", "path = \"{operation}/{model}\""),
    ] {
        assert_eq!(warnings(&document(dialects, "https://a", text)), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let azure = "https://n.openai.azure.com";
    let table = [
        (
            document("\"openai-chat\"", &format!("{azure}/openai/v1"), "profile = \"azure-openai-v1\""),
            "base_url: ends in /openai/v1, which the profile \"azure-openai-v1\" appends by itself: \
             https://NAME.openai.azure.com (line 3)",
        ),
        (
            document("\"openai-chat\", \"openai-responses\"", azure, "profile = \"azure-openai\""),
            "dialects: openai-responses needs query.api-version = \"2025-03-01-preview\" or later, not \"2024-10-21\"; or \
             the profile \"azure-openai-v1\", which has no versions (line 2)",
        ),
        (
            document("\"openai-embeddings\"", "https://api.deepseek.com", "profile = \"deepseek\""),
            "dialects: \"deepseek\" is not known to speak openai-embeddings; if it does, give its `path` (line 2)",
        ),
        (
            chat("profile = \"mistral\"\ninclude_usage = true"),
            "include_usage: \"mistral\" refuses requests with a field that it does not know, and this adds one (line 5)",
        ),
        (chat("auth = \"api-key\""), "auth: is never used, for the channel has no credential (line 4)"),
        (
            chat("path = { openai-chat = \"/x\", gemini = \"/y{operation}\" }"),
            "path.gemini: is never used, for the channel does not speak gemini (line 4)",
        ),
        (
            chat(
                "overrides = [{ status = 429, class = \"balance\" }, { status = 429, code = 7, class = \"balance\" }]",
            ),
            "overrides[1]: is never reached: overrides[0] takes all that it matches (line 4)",
        ),
        (
            chat("overrides = [{ message = \"quota: no credit\", class = \"balance\" }]"),
            "overrides[0]: never matches: for balance, which takes out more than this request, a message counts up to the first \
             quote, bracket or colon, because what callers wrote stands behind it (line 4)",
        ),
    ];
    for (document, expected) in table {
        assert_eq!(warnings(&document), [format!("channels.a.{expected}")], "{document}");
    }
    for text in [
        "auth = \"none\"",
        "limits = \"channel\"",
        "overrides = [{ message = \"busy: now\", class = \"overloaded\" }, { message = \"down\", code = 7, class = \"balance\" }]",
    ] {
        assert_eq!(warnings(&chat(text)), Vec::<String>::new(), "{text}");
    }
    // Right where nothing is appended.
    let deepseek = |dialect| document(dialect, "https://api.deepseek.com/v1", "profile = \"deepseek\"");
    assert_eq!(warnings(&deepseek("\"openai-chat\"")), Vec::<String>::new());
    assert!(warnings(&deepseek("\"anthropic-messages\""))[0].contains("ends in /v1"));
    let text = "profile = \"azure-openai\"\nquery.api-version = \"2025-04-01-preview\"";
    assert_eq!(warnings(&document("\"openai-responses\"", azure, text)), Vec::<String>::new());
}

#[test]
fn a_profile_and_what_wins_over_it_reach_the_snapshot() {
    let text = r#"
        profile = "azure-openai"
        credential = "env:X"
        query = { api-version = "2025-04-01-preview", z = "1" }
        path = { openai-chat = "/x{operation}" }
        limits = "channel"
        overrides = [{ code = 11200, class = "credential" }, { status = 429, message = "Daily", class = "balance" }]
    "#;
    let dialects = "\"openai-responses\", \"openai-chat\", \"rerank\"";
    let snapshot = catalog(&document(dialects, "https://n.openai.azure.com/", text)).compile(1);
    let channel = &snapshot.channels[0];
    let auth =
        pb::Auth { place: pb::AuthPlace::Header.into(), name: "api-key".into(), prefix: String::new() };
    assert_eq!(channel.auth, Some(auth));
    let field = |name: &str, value: &str| pb::Field { name: name.into(), value: value.into() };
    assert_eq!(channel.query, [field("api-version", "2025-04-01-preview"), field("z", "1")]);
    let path =
        |dialect: &str, template: &str| pb::Path { dialect: dialect.into(), template: template.into() };
    let paths = [path("openai-chat", "/x{operation}"), path("openai-responses", "/openai{operation}")];
    assert_eq!(channel.paths, paths);
    assert_eq!(channel.limits(), pb::Limits::Channel);
    let rule = |status, code: &str, message: &str, class: &str| pb::Override {
        status,
        code: code.into(),
        message: message.into(),
        class: class.into(),
    };
    let rules = [
        rule(0, "11200", "", "credential"),
        rule(429, "", "Daily", "balance"),
        rule(400, "OperationNotSupported", "", "misconfigured"),
    ];
    assert_eq!(channel.overrides, rules);
}

#[test]
fn a_channel_without_a_profile_says_nothing_that_a_node_would_not_do_by_itself() {
    let snapshot = catalog(&chat("path = \"{operation}\"\nlimits = \"route\"")).compile(1);
    let plain = catalog(&chat("")).compile(1);
    assert_eq!(snapshot, plain);
    let channel = &plain.channels[0];
    assert_eq!((&channel.auth, channel.paths.len(), channel.overrides.len()), (&None, 0, 0));
    for (text, place, name, prefix) in [
        ("auth = \"none\"", pb::AuthPlace::None, "", ""),
        ("auth = \"bearer\"", pb::AuthPlace::Header, "authorization", "Bearer "),
        ("auth = { header = \"X-Key\", prefix = \"Token \" }", pb::AuthPlace::Header, "x-key", "Token "),
        ("auth = { query = \"key\" }", pb::AuthPlace::Query, "key", ""),
    ] {
        let snapshot = catalog(&chat(text)).compile(1);
        let expected = pb::Auth { place: place.into(), name: name.into(), prefix: prefix.into() };
        assert_eq!(snapshot.channels[0].auth, Some(expected), "{text}");
    }
}

#[test]
fn every_profile_is_taken_without_a_warning_with_the_dialects_that_it_speaks() {
    for profile in PROFILES {
        let all = [Dialect::OpenaiChat, Dialect::AnthropicMessages];
        let speaks = if profile.speaks.is_empty() { &all } else { profile.speaks };
        let dialects: Vec<String> = speaks.iter().map(|dialect| format!("\"{dialect}\"")).collect();
        let base_url = profile.base_url.replace("http://HOST", "http://localhost");
        let version =
            if profile.name == "azure-openai" { "\nquery.api-version = \"2025-04-01-preview\"" } else { "" };
        let text = format!("profile = \"{}\"\ncredential = \"env:X\"{version}", profile.name);
        let document = document(&dialects.join(", "), &base_url, &text);
        assert_eq!(warnings(&document), Vec::<String>::new(), "{}", profile.name);
    }
}

#[test]
fn a_difference_shows_what_a_profile_changes_and_nothing_that_it_gives_anyway() {
    let shown = |before: &str, after: &str| {
        let changes = diff(&catalog(&chat(before)), &catalog(&chat(after)));
        let value = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        changes
            .into_iter()
            .map(|change| format!("{}: {} > {}", change.path, value(change.before), value(change.after)))
            .collect::<Vec<_>>()
    };
    let dashscope = [
        "channels.a.limits: route > channel",
        "channels.a.overrides[0]: - > code \"7\", class balance",
        "channels.a.overrides[1]: - > status 429, code \"insufficient_quota\", class rate_limited",
        "channels.a.overrides[2]: - > status 400, code \"Arrearage\", class balance",
        "channels.a.overrides[3]: - > status 403, code \"Arrearage\", class balance",
        "channels.a.profile: - > dashscope",
    ];
    let text =
        "profile = \"dashscope\"\nlimits = \"channel\"\noverrides = [{ code = 7, class = \"balance\" }]";
    assert_eq!(shown("", text), dashscope);
    let azure = [
        "channels.a.auth: - > api-key",
        "channels.a.overrides[0]: - > status 400, code \"OperationNotSupported\", class misconfigured",
        "channels.a.path.openai-chat: - > /openai/deployments/{model}{operation}",
        "channels.a.profile: - > azure-openai",
        "channels.a.query.api-version: - > 2024-10-21",
    ];
    assert_eq!(shown("", "profile = \"azure-openai\""), azure);
    let written_out = "profile = \"azure-openai\"\nauth = \"api-key\"\nquery.api-version = \"2024-10-21\"\nlimits = \"route\"";
    assert_eq!(shown("profile = \"azure-openai\"", written_out), Vec::<String>::new());
    assert_eq!(shown("", "limits = \"route\"\npath = \"{operation}\"\noverrides = []"), Vec::<String>::new());
    assert_eq!(shown("profile = \"vllm\"", "profile = \"sglang\""), ["channels.a.profile: vllm > sglang"]);
}
