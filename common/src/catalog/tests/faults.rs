//! Faulty documents: every fault at once, each with its path and line.

use super::*;

fn faults(document: &str) -> Vec<String> {
    lines(&parse(document.as_bytes()).unwrap_err())
}

/// The faults of a channel with these lines beside `dialects` and `base_url`.
fn of_channel(text: &str) -> Vec<String> {
    let document = format!(
        "[channels.a]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a.example\"\n{text}\n\
         [models.m]\nroutes = [{{ channel = \"a\", cost = {{ order = 1 }} }}]\n"
    );
    faults(&document)
}

/// The faults of a route on a good channel, in a list of its own.
fn of_route(route: &str) -> Vec<String> {
    let document = format!(
        "[channels.openai-direct]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a.example\"\n\
         [models.m]\nroutes = [\n{route}\n]\n"
    );
    faults(&document)
}

#[test]
fn ten_faults_at_once_give_ten_located_messages() {
    let document = r#"
[policy]
breaker = { failures = 0, window = "-5m" }
gate = { timeout = 30 }

[channels.openai-direct]
dialects = ["openai-chta"]
base_url = "https://user:pw@api.openai.com/v1"
credential = "sk-1234567890"
colour = "blue"

[models."gpt-4.1"]
routes = [
  { channel = "opnai", cost = { input = "2.00", output = "8.00" } },
  { channel = "openai-direct", cost = { input = "2.0000001", output = "8.00" } },
]
[models.empty]
routes = []
"#;
    let expected = [
        "policy.breaker.failures: must be above zero (line 3)",
        "policy.breaker.window: must not be negative (line 3)",
        "policy.gate.timeout: needs a unit, such as \"30s\", \"5m\" or \"250ms\" (line 4)",
        "channels.openai-direct.dialects[0]: no such dialect \"openai-chta\"; did you mean \"openai-chat\"? (line 7)",
        "channels.openai-direct.base_url: must not hold a credential; give it in `credential`, as env:NAME or \
         file:PATH (line 8)",
        "channels.openai-direct.credential: must be a reference, env:NAME, file:PATH or secret:NAME, and never the \
         credential itself; if this is one, it was shown to whoever read the document and wants to be replaced (line 9)",
        "channels.openai-direct.colour: no such key in a channel (line 10)",
        "models.\"gpt-4.1\".routes[0].channel: no such channel \"opnai\"; did you mean \"openai-direct\"? (line 14)",
        "models.\"gpt-4.1\".routes[1].cost.input: is too precise: at most 6 decimals are kept (line 15)",
        "models.empty.routes: must hold at least one route (line 18)",
    ];
    assert_eq!(faults(document), expected);
}

#[test]
fn the_same_faults_are_found_in_json() {
    let document = "{\n\"channels\": {\"a\": {\"dialects\": [],\n \"base_url\": null}},\n\"models\": {\"m\": {\n\
                    \"routes\": [\n{\"channel\": \"b\", \"cost\": {\"input\": 1.0000001}, \"x\": 1}]}}}";
    let expected = [
        "channels.a.dialects: must name at least one dialect (line 2)",
        "channels.a.base_url: must be a string, not null (line 3)",
        "models.m.routes[0].channel: no such channel \"b\" (line 6)",
        "models.m.routes[0].cost.input: is too precise: at most 6 decimals are kept (line 6)",
        "models.m.routes[0].x: no such key in a route (line 6)",
    ];
    assert_eq!(faults(document), expected);
}

#[test]
fn a_document_without_channels_or_models_is_none() {
    assert_eq!(faults(""), ["channels: is missing (line 1)", "models: is missing (line 1)"]);
    assert_eq!(faults("{}"), ["channels: is missing (line 1)", "models: is missing (line 1)"]);
    let empty = faults("channels = {}\nmodels = {}\n");
    let expected = [
        "channels: must hold at least one channel (line 1)",
        "models: must hold at least one model (line 2)",
    ];
    assert_eq!(empty, expected);
    assert_eq!(faults("[1, 2]"), ["not valid TOML: unclosed table, expected `]` (line 1)"]);
}

#[test]
fn a_document_above_the_limit_is_not_read() {
    let found = parse(&vec![b'#'; CATALOG_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(lines(&found), ["the document has 8388609 bytes; at most 8388608 are read"]);
}

#[test]
fn a_document_that_stands_for_a_snapshot_above_the_limit_is_refused() {
    let dialects: Vec<String> = Dialect::ALL.iter().map(|dialect| format!("\"{dialect}\"")).collect();
    let mut document =
        format!("[channels.a]\ndialects = [{}]\nbase_url = \"https://a\"\n", dialects.join(","));
    let upstream = "x".repeat(256);
    for i in 0..24_000 {
        document +=
            &format!("[models.{i}]\nroutes=[{{channel=\"a\",upstream_model=\"{upstream}\",cost.order=1}}]\n");
    }
    let found = faults(&document);
    assert!(found.len() == 1 && found[0].contains("nodes take 67108864"), "{found:?}");
}

#[test]
fn keys_of_later_versions_are_told_from_keys_that_do_not_exist() {
    let table = [
        (
            "max_in_flight = 3",
            "channels.a.max_in_flight: this version does not have \"max_in_flight\" yet (line 4)",
        ),
        ("queue = { max = 3 }", "channels.a.queue: this version does not have \"queue\" yet (line 4)"),
        ("retry = {}", "channels.a.retry: this version does not have \"retry\" yet (line 4)"),
        ("checks.enabled = true", "channels.a.checks: this version does not have \"checks\" yet (line 4)"),
        (
            "breaker.recovery = \"probe\"",
            "channels.a.breaker.recovery: this version does not have \"recovery\" yet (line 4)",
        ),
        (
            "gate.keepalive = true",
            "channels.a.gate.keepalive: this version does not have \"keepalive\" yet (line 4)",
        ),
        (
            "timeouts.total = \"9m\"",
            "channels.a.timeouts.total: this version does not have \"total\" yet (line 4)",
        ),
        (
            "credential = \"secret:a b\"",
            "channels.a.credential: secret: wants the name of a secret that the control plane keeps (line 4)",
        ),
        (
            "[rollout]\nbake = \"60\"",
            "rollout.bake: must be a duration, such as \"30s\", \"5m\" or \"250ms\" (line 5)",
        ),
        (
            "[rollout]\nstages = [\"1\", \"50%\"]",
            "rollout.stages: must end with \"100%\": nodes of no stage would never get the revision (line 5)",
        ),
        (
            "[rollout]\nstages = [\"100%\", \"100%\"]",
            "rollout.stages[0]: \"100%\" is the whole fleet: no stage can follow it (line 5)",
        ),
        (
            "[rollout]\nstages = [\"few\", \"100%\"]",
            "rollout.stages[0]: must be a number of nodes (\"1\"), a share (\"25%\") or a label (\"region=eu\") (line 5)",
        ),
        (
            "[rollout]\nstage = []",
            "rollout.stage: no such key in [rollout]; did you mean \"stages\"? (line 5)",
        ),
        ("[[alerts.webhooks]]\nurl = \"x\"", "alerts: this version does not have \"alerts\" yet (line 4)"),
        (
            "order = \"weighted\"",
            "channels.a.order: \"order\" may stand in [policy] and models only, not in a channel (line 4)",
        ),
        ("cooldown = \"1s\"", "channels.a.cooldown: no such key in a channel (line 4)"),
        (
            "timeout.idle = \"1s\"",
            "channels.a.timeout: no such key in a channel; did you mean \"timeouts\"? (line 4)",
        ),
        (
            "base_ulr = \"x\"",
            "channels.a.base_ulr: no such key in a channel; did you mean \"base_url\"? (line 4)",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(of_channel(text), [expected], "{text}");
    }
}

#[test]
fn policy_keys_out_of_place_say_where_they_may_stand() {
    let found = of_route("{ channel = \"openai-direct\", cost.order = 1, breaker = { failures = 0 } }");
    let expected = "models.m.routes[0].breaker: \"breaker\" may stand in [policy] and channels only, not in a route (line 6)";
    assert_eq!(found, [expected]);
    let found = of_channel("[breaker]\nfailures = 3");
    let expected =
        "breaker: \"breaker\" may stand in [policy] and channels only, not in the top level (line 4)";
    assert_eq!(found, [expected]);
}

#[test]
fn limits_durations_and_choices_are_checked() {
    let table = [
        ("breaker.failures = 0", "breaker.failures: must be above zero"),
        ("breaker.failures = -1", "breaker.failures: must not be negative"),
        ("breaker.failures = 3.5", "breaker.failures: must be a whole number"),
        ("breaker.failures = \"3\"", "breaker.failures: must be a whole number, not a string"),
        ("breaker.failures = 1001", "breaker.failures: is too large: at most 1000"),
        ("breaker.window = \"0s\"", "breaker.window: must be above zero"),
        ("breaker.cooldown = \"25h\"", "breaker.cooldown: is too long: at most a day (\"24h\")"),
        ("gate.timeout = \"1us\"", "gate.timeout: is too precise: milliseconds are the smallest unit"),
        ("gate.timeout = \"soon\"", "gate.timeout: must be a duration, such as \"30s\", \"5m\" or \"250ms\""),
        ("gate.timeout = true", "gate.timeout: must be a duration, such as \"30s\", not true or false"),
        ("timeouts.headers = 240", "timeouts.headers: needs a unit, such as \"30s\", \"5m\" or \"250ms\""),
        (
            "gate.until = \"complet\"",
            "gate.until: must be \"content\" or \"complete\", not \"complet\"; did you mean \"complete\"?",
        ),
        ("gate = \"30s\"", "gate: must be a table, not a string"),
        ("enabled = \"no\"", "enabled: must be true or false, not a string"),
        ("include_usage = 1", "include_usage: must be true or false, not a number"),
    ];
    for (text, expected) in table {
        assert_eq!(of_channel(text), [format!("channels.a.{expected} (line 4)")], "{text}");
    }
}

#[test]
fn credentials_in_clear_are_refused_wherever_they_stand_and_never_repeated() {
    let places = [
        "credential = \"sk-abcdef\"",
        "credential = \"env:sk-abcdef\"",
        "credential = { value = \"sk-abcdef\" }",
        "headers = { authorization = \"Bearer sk-abcdef\" }",
        "headers = { x-api-key = \"sk-abcdef\" }",
        "headers = { x-title = \"sk-abcdef\" }",
        "query = { key = \"sk-abcdef\" }",
    ];
    for text in places {
        let found = of_channel(text);
        assert!(found.len() == 1 && found[0].ends_with("(line 4)"), "{text}: {found:?}");
        assert!(!found[0].contains("abcdef"), "{found:?}");
    }
}

#[test]
fn headers_that_differ_in_case_alone_stand_twice() {
    let found = of_channel("headers = { X-Title = \"a\", x-title = \"b\" }");
    assert_eq!(found, ["channels.a.headers.x-title: stands here twice (line 4)"]);
}

#[test]
fn routes_are_checked_whole() {
    let twice =
        "{ channel = \"openai-direct\", cost.order = 1 },\n{ channel = \"openai-direct\", cost.order = 2 }";
    let message =
        "models.m.routes[1].channel: the model has a route on \"openai-direct\" already: routes[0] (line 7)";
    assert_eq!(of_route(twice), [message]);
    let table = [
        ("{ cost.order = 1 }", "channel: is missing"),
        (
            "{ channel = \"openai-direct\" }",
            "cost: is missing: give input and output in USD per million tokens, or unit, or order",
        ),
        (
            "{ channel = \"openai-direct\", cost = { cached_input = 1 } }",
            "cost: says nothing to order by: give input and output in USD per million tokens, or unit, or order",
        ),
        (
            "{ channel = \"openai-direct\", cost = { input = -1, output = 1 } }",
            "cost.input: must not be negative",
        ),
        (
            "{ channel = \"openai-direct\", cost = { input = 1, output = \"$1\" } }",
            "cost.output: must be a plain decimal number of USD, such as \"2.50\"",
        ),
        (
            "{ channel = \"openai-direct\", cost = { order = 1000001 } }",
            "cost.order: is too large: at most 1000000",
        ),
        (
            "{ channel = \"openai-direct\", cost.order = 1, context_window = 0 }",
            "context_window: must be above zero",
        ),
        (
            "{ channel = \"openai-direct\", cost.order = 1, upstream_model = \"\" }",
            "upstream_model: a model's name has 1 to 256 bytes without white space or control characters",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(of_route(text), [format!("models.m.routes[0].{expected} (line 6)")], "{text}");
    }
    assert_eq!(of_route("\"openai-direct\""), ["models.m.routes[0]: must be a table, not a string (line 6)"]);
}

#[test]
fn routes_on_a_faulty_channel_are_not_blamed_for_it() {
    let found = faults(
        "[channels.a]\ndialects = [\"openai-chat\"]\n[models.m]\nroutes = [{ channel = \"a\", cost.order = 1 }]\n",
    );
    assert_eq!(found, ["channels.a.base_url: is missing (line 1)"]);
}

#[test]
fn a_name_that_was_cut_at_its_dot_is_explained() {
    let document = "[channels.a]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a.example\"\n\
                    [models.gpt-4.1]\nroutes = [{ channel = \"a\", cost.order = 1 }]\n";
    let expected = "models.gpt-4.1: no such key in a model; a name with a dot in it must be quoted: \
                    [models.\"gpt-4.1\"] (line 4)";
    assert_eq!(faults(document), [expected]);
}

#[test]
fn thousands_of_faults_are_all_reported_and_soon() {
    let mut document =
        String::from("[channels.openai-direct]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a\"\n");
    for i in 0..20_000 {
        document += &format!("[models.m{i}]\nroutes = [{{ channel = \"opnai{i}\", cost.order = 1 }}]\n");
    }
    assert_eq!(faults(&document).len(), 20_000);
}

#[test]
fn where_it_is_known_which_secrets_there_are_another_one_is_a_fault_with_its_place() {
    let document = b"[channels.a]\ndialects = [\"openai-chat\"]\nbase_url = \"https://a.example\"\n\
        credential = \"secret:reseler\"\n\
        [models.m]\nroutes = [{ channel = \"a\", cost = { order = 1 } }]\n";
    let checked = parse(document).unwrap();
    let [named] = &checked.secrets[..] else { panic!("{checked:?}") };
    assert_eq!(
        (named.name.as_str(), named.line, named.path.as_str()),
        ("reseler", 4, "channels.a.credential")
    );
    assert_eq!(
        checked.catalog.secrets().map(|(id, name)| (id.as_str(), name)).collect::<Vec<_>>(),
        [("a", "reseler")]
    );
    let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let faults = |names: &[&str]| lines(&parse_knowing(document, Some(&known(names))).unwrap_err());
    let message = "channels.a.credential: no such secret \"reseler\": set it by `sluice secret set reseler`";
    assert_eq!(faults(&["reseller"]), [format!("{message}; did you mean \"reseller\"? (line 4)")]);
    assert_eq!(faults(&[]), [format!("{message} (line 4)")]);
    assert!(parse_knowing(document, Some(&known(&["reseler"]))).is_ok());
}
