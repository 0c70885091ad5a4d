//! The catalog from document to chain, snapshot and difference.

mod faults;
mod properties;
mod upstream;

use super::*;
use crate::pb::fleet as pb;
use crate::snapshot;

/// The example of the design, with references in place of its sealed secret.
pub(super) const EXAMPLE: &str = r#"
[policy]
breaker = { failures = 3, window = "5m", cooldown = "60s" }
gate    = { timeout = "30s", until = "content" }
timeouts = { connect = "10s", headers = "240s", idle = "300s" }

[channels.openai-direct]
dialects   = ["openai-chat", "openai-responses", "openai-embeddings"]
base_url   = "https://api.openai.com/v1"
credential = "env:OPENAI_API_KEY"

[channels.reseller]
dialects   = ["openai-chat"]
base_url   = "https://reseller.example/v1"
credential = "env:RESELLER_API_KEY"
enabled    = true

[models."gpt-4o"]
price  = { input = "3.00", output = "12.00", cached_input = "1.50" }
routes = [
  { channel = "reseller",      upstream_model = "gpt-4o",            cost = { input = "2.00", output = "8.00" } },
  { channel = "openai-direct", upstream_model = "gpt-4o-2024-11-20", cost = { input = "2.50", output = "10.00" } },
]
"#;

pub(super) fn catalog(document: &str) -> Catalog {
    parse(document.as_bytes())
        .unwrap_or_else(|faults| panic!("{}\n{document}", lines(&faults).join("\n")))
        .catalog
}

pub(super) fn lines(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

pub(super) fn warnings(document: &str) -> Vec<String> {
    lines(&parse(document.as_bytes()).unwrap().warnings)
}

fn hops(chain: &Chain) -> Vec<(&str, String)> {
    chain.hops.iter().map(|hop| (hop.channel.as_str(), hop.order.to_string())).collect()
}

#[test]
fn the_example_of_the_design_is_accepted_without_a_warning() {
    let checked = parse(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(lines(&checked.warnings), Vec::<String>::new());
    assert_eq!(checked.catalog.channels().len(), 2);
    let price = checked.catalog.model("gpt-4o").unwrap().price.unwrap();
    assert_eq!(price.cached_input.unwrap().to_string(), "1.50");
    assert_eq!(price.unit, None);
}

#[test]
fn the_catalogs_that_are_delivered_are_accepted() {
    let delivered: [&[u8]; 3] = [
        include_bytes!("../../../deploy/catalogs/minimal.toml"),
        include_bytes!("../../../deploy/catalogs/openai-compatible.toml"),
        include_bytes!("../../../deploy/catalogs/vendors.toml"),
    ];
    for document in delivered {
        let checked = parse(document).unwrap_or_else(|faults| panic!("{}", lines(&faults).join("\n")));
        assert_eq!(lines(&checked.warnings), Vec::<String>::new());
        for (name, _) in checked.catalog.models() {
            assert!(!checked.catalog.chain(name.as_str(), Dialect::OpenaiChat).hops.is_empty(), "{name}");
        }
    }
}

#[test]
fn a_chain_is_cheapest_first_and_shows_what_it_was_ordered_by() {
    let chain = catalog(EXAMPLE).chain("gpt-4o", Dialect::OpenaiChat);
    assert_eq!(hops(&chain), [("reseller", "3.5".to_owned()), ("openai-direct", "4.375".to_owned())]);
    let hop = &chain.hops[1];
    let shown = (hop.upstream_model.as_str(), hop.input_cost.as_str(), hop.output_cost.as_str());
    assert_eq!(shown, ("gpt-4o-2024-11-20", "2.50", "10.00"));
}

#[test]
fn a_chain_holds_the_routes_that_speak_its_dialect_and_no_others() {
    let catalog = catalog(EXAMPLE);
    assert_eq!(
        hops(&catalog.chain("gpt-4o", Dialect::OpenaiResponses)),
        [("openai-direct", "4.375".to_owned())]
    );
    assert_eq!(hops(&catalog.chain("gpt-4o", Dialect::Gemini)), []);
    assert_eq!(hops(&catalog.chain("gpt-5", Dialect::OpenaiChat)), []);
    let dialects: Vec<Dialect> = catalog.chains("gpt-4o").iter().map(|chain| chain.dialect).collect();
    assert_eq!(dialects, [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::OpenaiEmbeddings]);
    assert_eq!(catalog.chains("gpt-5"), []);
}

/// Channels `a`… that speak chat, and one model `m` with the routes given.
fn with_routes(channels: &[&str], routes: &str) -> String {
    let mut document = String::new();
    for id in channels {
        document +=
            &format!("[channels.{id}]\ndialects = [\"openai-chat\"]\nbase_url = \"https://{id}.example\"\n");
    }
    document + "[models.m]\nroutes = [\n" + routes + "]\n"
}

#[test]
fn routes_are_ordered_by_order_else_weighted_cost_else_unit_and_then_by_channel_and_cut_to_three() {
    let document = with_routes(
        &["a", "b", "c", "d", "e"],
        r#"
          { channel = "e", cost = { input = 1, output = 1 } },
          { channel = "d", cost = { unit = "0.99" } },
          { channel = "c", cost = { input = 1, output = "1.0" } },
          { channel = "b", cost = { input = 0.5, output = 2.48 } },
          { channel = "a", cost = { input = 0, output = 0, order = 7 } },
        "#,
    );
    let chain = catalog(&document).chain("m", Dialect::OpenaiChat);
    assert_eq!(hops(&chain), [("d", "0.99".to_owned()), ("b", "0.995".to_owned()), ("c", "1".to_owned())]);
    assert_eq!(chain.hops[0].input_cost, "");
    assert_eq!(chain.hops[2].upstream_model, "m");
}

#[test]
fn the_order_number_is_exact_to_a_quarter_of_a_millionth() {
    let document = with_routes(
        &["a", "b"],
        r#"
          { channel = "a", cost = { input = "0.000001", output = "0" } },
          { channel = "b", cost = { input = "0", output = "0.000002" } },
        "#,
    );
    let chain = catalog(&document).chain("m", Dialect::OpenaiChat);
    assert_eq!(hops(&chain), [("b", "0.0000005".to_owned()), ("a", "0.00000075".to_owned())]);
}

#[test]
fn a_disabled_route_or_channel_leaves_the_chain_before_the_cut() {
    let routes = |enabled: bool| {
        format!(
            r#"
          {{ channel = "a", cost = {{ order = 1 }}, enabled = {enabled} }},
          {{ channel = "b", cost = {{ order = 2 }} }},
          {{ channel = "c", cost = {{ order = 3 }} }},
          {{ channel = "d", cost = {{ order = 4 }} }},
        "#
        )
    };
    let channels = ["a", "b", "c", "d"];
    let ids = |document: &str| {
        let chain = catalog(document).chain("m", Dialect::OpenaiChat);
        chain.hops.iter().map(|hop| hop.channel.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&with_routes(&channels, &routes(true))), ["a", "b", "c"]);
    assert_eq!(ids(&with_routes(&channels, &routes(false))), ["b", "c", "d"]);
    let document =
        with_routes(&channels, &routes(true)).replace("[channels.b]", "[channels.b]\nenabled = false");
    assert_eq!(ids(&document), ["a", "c", "d"]);
    assert_eq!(catalog(&document).compile(1).channels.len(), 3);
}

#[test]
fn a_model_whose_routes_are_all_disabled_is_known_and_has_an_empty_chain() {
    let document = with_routes(&["a"], "{ channel = \"a\", cost = { order = 1 }, enabled = false },\n");
    assert_eq!(
        warnings(&document),
        ["models.m: every route of this model is disabled, so nothing serves it (line 4)"]
    );
    let snapshot = catalog(&document).compile(1);
    let chains = vec![pb::Chain { dialect: "openai-chat".into(), routes: vec![] }];
    assert_eq!(snapshot.models, [pb::Model { name: "m".into(), chains }]);
}

#[test]
fn policies_reach_the_snapshot_merged_fleet_under_model_under_channel_under_route() {
    let document = r#"
        policy.breaker = { failures = 5, cooldown = "1m 30s" }
        policy.gate = { timeout = "1s", until = "complete" }
        policy.timeouts = { connect = "1s", headers = "2s" }
        [channels.a]
        dialects = ["openai-chat"]
        base_url = "https://a.example/v1/"
        breaker.failures = 7
        timeouts.headers = "4s"
        [channels.b]
        dialects = ["openai-chat"]
        base_url = "https://b.example"
        [models.m]
        timeouts.headers = "3s"
        gate.until = "content"
        routes = [
          { channel = "a", upstream_model = "m-a", cost = { order = 1 }, gate.timeout = "250ms", context_window = 128000 },
          { channel = "b", cost = { order = 2 } },
        ]
    "#;
    let snapshot = catalog(document).compile(9);
    assert_eq!(snapshot.revision, 9);
    assert_eq!(snapshot.channels[0].base_url, "https://a.example/v1");
    let breaker = |failures| pb::Breaker { failures, window_ms: 300_000, cooldown_ms: 90_000 };
    assert_eq!(snapshot.channels[0].breaker, Some(breaker(7)));
    assert_eq!(snapshot.channels[1].breaker, Some(breaker(5)));
    let routes = &snapshot.models[0].chains[0].routes;
    let until = pb::GateUntil::Content.into();
    assert_eq!(routes[0].gate, Some(pb::Gate { timeout_ms: 250, until }));
    assert_eq!(routes[1].gate, Some(pb::Gate { timeout_ms: 1000, until }));
    let timeouts = |headers_ms| pb::Timeouts { connect_ms: 1000, headers_ms, idle_ms: 300_000 };
    assert_eq!(routes[0].timeouts, Some(timeouts(4000)));
    assert_eq!(routes[1].timeouts, Some(timeouts(3000)));
    assert_eq!((routes[0].upstream_model.as_str(), routes[0].context_window), ("m-a", 128_000));
    assert_eq!((routes[1].upstream_model.as_str(), routes[1].context_window), ("m", 0));
}

#[test]
fn what_a_channel_says_reaches_the_snapshot_sorted() {
    let document = r#"
        [channels.a]
        dialects = ["openai-responses", "openai-chat"]
        base_url = "https://a.example"
        credential = "file:/run/secrets/a"
        headers = { X-Title = "Sluice", Anthropic-Version = "2023-06-01" }
        query = { z = "1", api-version = "2024-10-21" }
        tls = { ca = "file:/etc/a.pem" }
        include_usage = true
        [models.m]
        routes = [{ channel = "a", cost = { order = 0 } }]
    "#;
    let channel = &catalog(document).compile(1).channels[0];
    let field = |name: &str, value: &str| pb::Field { name: name.into(), value: value.into() };
    assert_eq!(channel.dialects, ["openai-chat", "openai-responses"]);
    assert_eq!(channel.credential, "file:/run/secrets/a");
    assert_eq!(channel.headers, [field("anthropic-version", "2023-06-01"), field("x-title", "Sluice")]);
    assert_eq!(channel.query, [field("api-version", "2024-10-21"), field("z", "1")]);
    assert_eq!(channel.tls_ca_file, "/etc/a.pem");
    assert!(channel.include_usage && !catalog(EXAMPLE).compile(1).channels[0].include_usage);
}

#[test]
fn asking_for_usage_is_never_used_where_no_dialect_has_to_be_asked() {
    for (dialects, is_warned) in [
        ("\"openai-chat\"", false),
        ("\"openai-responses\", \"openai-completions\"", false),
        ("\"openai-responses\", \"anthropic-messages\"", true),
    ] {
        let document = with_routes(&["a"], "{ channel = \"a\", cost = { order = 1 } },\n")
            .replace("\"openai-chat\"]", &format!("{dialects}]\ninclude_usage = true"));
        let expected = "channels.a.include_usage: is never used: only openai-chat and openai-completions have to be \
                        asked (line 1)";
        let expected = if is_warned { vec![expected.to_owned()] } else { vec![] };
        assert_eq!(warnings(&document), expected, "{dialects}");
    }
}

#[test]
fn warnings_name_what_works_and_is_not_meant() {
    let document = r#"
        [channels.a]
        dialects = ["openai-chat"]
        base_url = "http://a.example/v1/chat/completions"
        credential = "env:A"
        tls = { ca = "file:/etc/a.pem" }
        [channels.b]
        dialects = ["openai-chat", "openai-responses"]
        base_url = "https://b.example"
        [channels.c]
        dialects = ["openai-chat", "openai-responses"]
        base_url = "https://c.example"
        [channels.d]
        dialects = ["openai-chat", "openai-responses"]
        base_url = "https://d.example"
        [channels.idle]
        dialects = ["openai-chat"]
        base_url = "http://127.0.0.1:1"
        credential = "env:A"
        [models.m]
        routes = [
          { channel = "d", cost = { unit = 9 } },
          { channel = "c", cost = { output = 3 } },
          { channel = "b", cost = { input = 2, output = 2 }, timeouts = { headers = "10m" } },
          { channel = "a", cost = { input = 1, output = 1 } },
        ]
    "#;
    let expected = [
        "channels.a.base_url: the credential and all traffic of this channel travel in clear text (line 2)",
        "channels.a.tls: is never used, for base_url is not https (line 2)",
        "channels.a.base_url: ends in /chat/completions; the path of the dialect is appended to this address (line 4)",
        "channels.idle: no route uses this channel (line 16)",
        "models.m: some of its routes are ordered by the cost of tokens and others by the cost of a unit; give \
         cost.order (line 20)",
        "models.m.routes[0]: is never used for openai-chat: 3 cheaper routes come before it (line 22)",
        "models.m.routes[1].cost: gives output only; input counts as 0 (write input = 0 if it is free) (line 23)",
        "models.m.routes[2].timeouts: timeouts.headers is 10m: after such a wait no other channel is tried, because \
         the request is older than 5m by then (line 24)",
    ];
    assert_eq!(warnings(document), expected);
}

#[test]
fn a_difference_is_one_of_meaning_with_its_path_and_both_values() {
    let after = EXAMPLE
        .replace("failures = 3", "failures = 4")
        .replace("input = \"2.00\"", "input = 1.9")
        .replace("[channels.reseller]", "[channels.reseller]\ngate.until = \"complete\"")
        .replace("credential = \"env:RESELLER_API_KEY\"\n", "");
    let change = |path: &str, before: Option<&str>, after: Option<&str>| Change {
        path: path.into(),
        before: before.map(Into::into),
        after: after.map(Into::into),
    };
    let expected = [
        change("channels.reseller.credential", Some("env:RESELLER_API_KEY"), None),
        change("channels.reseller.gate.until", None, Some("complete")),
        change("models.gpt-4o.routes[reseller].cost.input", Some("2.00"), Some("1.90")),
        change("policy.breaker.failures", Some("3"), Some("4")),
    ];
    assert_eq!(diff(&catalog(EXAMPLE), &catalog(&after)), expected);
}

#[test]
fn defaults_that_are_written_out_and_comments_are_no_difference() {
    let policy_written_out = EXAMPLE.find("[channels.openai-direct]").unwrap();
    let terse = format!("# all defaults\n{}", &EXAMPLE[policy_written_out..])
        .replace("enabled    = true\n", "")
        .replace("\"https://api.openai.com/v1\"", "\"https://api.openai.com/v1/\" # a slash");
    assert_eq!(diff(&catalog(EXAMPLE), &catalog(&terse)), []);
    assert_eq!(catalog(EXAMPLE).compile(1), catalog(&terse).compile(1));
}

#[test]
fn fr_045_a_compiled_snapshot_survives_packing_and_decoding() {
    use prost::Message as _;
    let compiled = catalog(EXAMPLE).compile(3);
    let encoded = compiled.encode_to_vec();
    let packed = snapshot::pack(&encoded).unwrap();
    let unpacked = snapshot::unpack(&packed, &snapshot::digest(&encoded)).unwrap();
    assert_eq!(snapshot::decode::<pb::Snapshot>(&unpacked).unwrap(), compiled);
}

#[test]
fn every_key_is_in_the_reference() {
    let reference = include_str!("../../../docs/catalog.md");
    for table in keys::TABLES {
        for key in table.names() {
            let is_there = reference.contains(&format!("`{key}`"))
                || reference.contains(&format!("`{}.{key}`", table.what))
                || reference.contains(&format!("`[{key}]`"));
            assert!(is_there, "docs/catalog.md does not explain {key} of {}", table.what);
        }
    }
    for policy in keys::POLICIES {
        assert!(reference.contains(&format!("`{}`", policy.name)), "docs/catalog.md lacks {}", policy.name);
    }
    for dialect in Dialect::ALL {
        assert!(reference.contains(&format!("`{dialect}`")), "docs/catalog.md lacks {dialect}");
    }
    for profile in crate::profile::PROFILES {
        let row = format!("| `{}` | `{}` |", profile.name, profile.base_url);
        assert!(reference.contains(&row), "docs/catalog.md lacks the profile {}", profile.name);
    }
}
