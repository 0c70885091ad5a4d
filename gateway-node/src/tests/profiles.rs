//! Channels by their profiles and by their own keys, from the catalog's text to the bytes at the upstream: addresses,
//! credentials, limits of an account.

use common::catalog::parse;
use common::pb::fleet as pb;
use common::profile::{PROFILES, Profile};
use http::Request;
use tokio::time::Instant;

use super::support::*;
use crate::bindings::Name;
use crate::table::build::build;

const SECRET: &str = "sk-upstream-7f3a/b";

/// A file with the credential, and what refers to it.
pub(super) fn credential() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, SECRET).unwrap();
    let reference = format!("credential = \"file:{}\"", path.display());
    (dir, reference)
}

/// `[channels.ID]` that speaks chat at the upstream of the same name, with further lines.
pub(super) fn channel(id: &str, text: &str) -> String {
    format!("[channels.{id}]\ndialects = [\"openai-chat\"]\nbase_url = \"http://{id}\"\n{text}\n")
}

/// Models on channels, cheapest first; the upstream's name is `up-MODEL`.
pub(super) fn model(name: &str, channels: &[&str]) -> String {
    let routes = channels.iter().enumerate().map(|(cost, channel)| {
        format!("{{ channel = \"{channel}\", upstream_model = \"up-{name}\", cost.order = {cost} }}")
    });
    format!("[models.{name}]\nroutes = [{}]\n", routes.collect::<Vec<_>>().join(", "))
}

pub(super) fn install(node: &Node, revision: u64, document: &str) {
    let checked = parse(document.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}\n{document}"));
    node.install(&checked.catalog.compile(revision));
}

pub(super) fn node(document: &str) -> Node {
    let node = Node::new(2);
    install(&node, 2, document);
    node
}

/// `a` with these lines, and `b` behind it.
pub(super) fn a_before_b(text: &str) -> Node {
    node(&[channel("a", text), channel("b", ""), model("m", &["a", "b"])].concat())
}

/// What the upstream `a` was asked for last: the request line without its version, and the lines that begin so.
fn asked(node: &Node, starts: &[&str]) -> (String, Vec<String>) {
    let call = node.up("a").calls().pop().expect("no call");
    let mut lines = call.head.lines();
    let first = lines.next().unwrap().trim_start_matches("post ").trim_end_matches(" http/1.1").to_owned();
    let shown = lines.filter(|line| starts.iter().any(|start| line.starts_with(start)));
    (first, shown.map(str::to_owned).collect())
}

const CREDENTIAL_HEADERS: [&str; 4] = ["authorization:", "api-key:", "x-api-key:", "x-goog-api-key:"];

/// Dialect, the caller's path, and where it lies behind the `base_url` as its vendor has it.
const OPERATIONS: [(&str, &str, &str); 18] = [
    ("openai-chat", "/v1/chat/completions", "/chat/completions"),
    ("openai-completions", "/v1/completions", "/completions"),
    ("openai-responses", "/v1/responses", "/responses"),
    ("openai-embeddings", "/v1/embeddings", "/embeddings"),
    ("openai-images", "/v1/images/generations", "/images/generations"),
    ("openai-images", "/v1/images/edits", "/images/edits"),
    ("openai-audio", "/v1/audio/speech", "/audio/speech"),
    ("openai-audio", "/v1/audio/transcriptions", "/audio/transcriptions"),
    ("openai-audio", "/v1/audio/translations", "/audio/translations"),
    ("openai-videos", "/v1/videos", "/videos"),
    ("openai-moderations", "/v1/moderations", "/moderations"),
    ("rerank", "/v1/rerank", "/rerank"),
    ("anthropic-messages", "/v1/messages", "/messages"),
    ("anthropic-messages", "/v1/messages/count_tokens", "/messages/count_tokens"),
    ("gemini", "/v1beta/models/m:generateContent", "/models/up-m:generatecontent"),
    (
        "gemini",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        "/models/up-m:streamgeneratecontent?alt=sse",
    ),
    ("gemini", "/v1beta/models/m:embedContent", "/models/up-m:embedcontent"),
    ("gemini", "/v1beta/models/m:countTokens", "/models/up-m:counttokens"),
];

/// The same of what has an id.
const BY_ID: [(&str, &str, &str); 4] = [
    ("openai-responses", "/v1/responses/x_1", "/responses/x_1"),
    ("openai-responses", "/v1/responses/x_1/input_items", "/responses/x_1/input_items"),
    ("openai-videos", "/v1/videos/x_1", "/videos/x_1"),
    ("openai-videos", "/v1/videos/x_1/content", "/videos/x_1/content"),
];

/// A request with a body that the operation takes: some take forms.
fn ask(path: &str) -> Request<http_body_util::Full<bytes::Bytes>> {
    if ["edits", "transcriptions", "translations"].iter().any(|end| path.ends_with(end)) {
        return post_form(path, &[field("model", "m"), CLOSED.to_owned()].concat());
    }
    post_json(path, r#"{"model":"m","input":"x"}"#)
}

/// Where the operation of a dialect is to be found with a profile, and how the credential is shown there.
fn expected(profile: &Profile, dialect: &str, own: &str) -> (String, String) {
    let base = profile.base_url.split("://").nth(1).and_then(|rest| rest.split_once('/'));
    let base = base.map(|(_, path)| format!("/{path}")).unwrap_or_default().to_lowercase();
    let path = match (profile.name, dialect) {
        ("azure-openai", "openai-responses") => format!("/openai{own}?api-version=2024-10-21"),
        ("azure-openai", _) => format!("/openai/deployments/up-m{own}?api-version=2024-10-21"),
        ("azure-openai-v1", _) => format!("/openai/v1{own}"),
        ("deepseek", "openai-completions") => format!("/beta{own}"),
        ("deepseek", "anthropic-messages") => format!("/anthropic/v1{own}"),
        ("gemini", dialect) if dialect.starts_with("openai-") => format!("{base}/openai{own}"),
        ("mistral", "openai-completions") => format!("{base}/fim{own}"),
        _ => format!("{base}{own}"),
    };
    let shown = match (profile.name, dialect) {
        ("azure-openai" | "azure-openai-v1", _) => "api-key: ",
        ("anthropic" | "deepseek", "anthropic-messages") => "x-api-key: ",
        ("gemini", "gemini") => "x-goog-api-key: ",
        _ => "authorization: bearer ",
    };
    (path, format!("{shown}{SECRET}"))
}

#[tokio::test(start_paused = true)]
async fn every_profile_asks_where_its_vendor_listens_and_shows_the_credential_as_it_wants_it() {
    let (_dir, credential) = credential();
    for profile in PROFILES {
        let name = profile.name;
        let mut all: Vec<&str> = OPERATIONS.iter().map(|(dialect, ..)| *dialect).collect();
        all.dedup();
        // One address has those or these.
        all.retain(|dialect| *dialect != "gemini");
        let speaks: Vec<&str> = match profile.speaks {
            [] => all,
            speaks => speaks.iter().map(|dialect| dialect.as_str()).collect(),
        };
        let (_, path) = profile.base_url.split_once("://").unwrap();
        let path = path.split_once('/').map(|(_, path)| format!("/{path}")).unwrap_or_default();
        let text = format!(
            "[channels.a]\nprofile = \"{name}\"\ndialects = {speaks:?}\nbase_url = \"http://a{path}\"\n{credential}\n"
        );
        let node = node(&[text, model("m", &["a"])].concat());
        node.up("a").does([failing(400)]);
        for (dialect, path, own) in OPERATIONS.iter().filter(|(dialect, ..)| speaks.contains(dialect)) {
            let before = node.up("a").called();
            node.send(ask(path)).await;
            assert_eq!(node.up("a").called(), before + 1, "{name} {path}");
            let (line, shown) = asked(&node, &CREDENTIAL_HEADERS);
            let (expected_line, expected_header) = expected(profile, dialect, own);
            assert_eq!((line, shown), (expected_line, vec![expected_header]), "{name} {dialect}");
        }
        for (dialect, path, own) in BY_ID.iter().filter(|(dialect, ..)| speaks.contains(dialect)) {
            let thing = Name { dialect: dialect.parse().unwrap(), id: "x_1".into(), key: "k".into() };
            node.gateway.bindings.bind(thing, "a".into(), "m".into());
            let mut request = post_json(path, "");
            *request.method_mut() = http::Method::GET;
            let before = node.up("a").called();
            node.send(request).await;
            assert_eq!(node.up("a").called(), before + 1, "{name} {path}");
            let (line, shown) = asked(&node, &CREDENTIAL_HEADERS);
            let (expected_line, expected_header) = expected(profile, dialect, own);
            assert_eq!(
                (line, shown),
                (format!("get {expected_line}"), vec![expected_header]),
                "{name} {path}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_shows_its_credential_where_its_own_keys_say_and_nowhere_else() {
    let (_dir, credential) = credential();
    for (auth, line, headers) in [
        ("auth = \"x-api-key\"", "/v1/chat/completions", vec![format!("x-api-key: {SECRET}")]),
        (
            "auth = { header = \"X-Key\", prefix = \"Token \" }",
            "/v1/chat/completions",
            vec![format!("x-key: token {SECRET}")],
        ),
        ("auth = { query = \"my key\" }", "/v1/chat/completions?a=1&my%20key=sk-upstream-7f3a%2fb", vec![]),
        // What the channel says wins over its profile.
        (
            "profile = \"azure-openai\"\nauth = \"bearer\"\npath = \"/x/{model}\"\nquery.api-version = \"9\"",
            "/x/up-m?a=1&api-version=9",
            vec![format!("authorization: bearer {SECRET}")],
        ),
    ] {
        let query = if line.contains("a=1") { "query.a = \"1\"" } else { "" };
        let path = if auth.contains("path") { "" } else { "path = \"/v1{operation}\"" };
        let node = node(
            &[channel("a", &format!("{credential}\n{auth}\n{query}\n{path}")), model("m", &["a"])].concat(),
        );
        node.up("a").does([whole("x")]);
        let mut request = chat(false);
        request.headers_mut().insert("x-key", "a caller's".parse().unwrap());
        assert_eq!(node.send(request).await.status, 200, "{auth}");
        let starts: Vec<&str> = CREDENTIAL_HEADERS.into_iter().chain(["x-key: token"]).collect();
        assert_eq!(asked(&node, &starts), (line.to_owned(), headers), "{auth}");
    }
    let node = node(&[channel("a", "auth = \"none\""), model("m", &["a"])].concat());
    node.up("a").does([whole("x")]);
    assert_eq!(node.call(false).await.status, 200);
    assert_eq!(asked(&node, &CREDENTIAL_HEADERS), ("/chat/completions".to_owned(), vec![]));
}

#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn br_116_a_credential_in_the_query_reaches_the_upstream_and_no_log_error_or_metric() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (_dir, credential) = credential();
    let text = format!("{credential}\nauth = {{ query = \"key\" }}");
    let node = node(&[channel("a", &text), model("m", &["a"])].concat());
    let encoded = "sk-upstream-7f3a%2Fb";
    let echo = format!("no such page /chat/completions?key={encoded} for {SECRET}");
    let echo = format!(r#"{{"error":{{"message":"{echo}","type":"invalid_request_error","code":"x"}}}}"#);
    let mut seen = String::new();
    node.up("a").refuses();
    seen += &node.call(false).await.text().await.0;
    for script in
        [answer(400, "", &echo), failing(500), vec![Act::Close], answer(307, "location: /x\r\n", "")]
    {
        node.up("a").does([script]);
        let answered = node.call(true).await;
        seen += &format!("{:?}", answered.headers);
        seen += &answered.text().await.0;
    }
    assert!(node.up("a").calls()[0].head.contains(&encoded.to_lowercase()));
    seen += &node.gateway.metrics.render();
    seen += &String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(seen.contains("[redacted]") && seen.contains("hop failed"), "{seen}");
    for secret in [SECRET, encoded] {
        assert!(!seen.contains(secret), "{seen}");
    }
}

/// Two models on `a`, with `b` behind it.
fn two_models(text: &str) -> String {
    [channel("a", text), channel("b", ""), model("m", &["a", "b"]), model("n", &["a", "b"])].concat()
}

fn of_model(name: &str) -> Request<http_body_util::Full<bytes::Bytes>> {
    with_body(&format!(r#"{{"model":"{name}","messages":[]}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_of_the_account_cools_the_whole_channel_down_and_is_only_ever_extended() {
    let limited = |hint: &str| {
        answer(429, hint, r#"{"error":{"message":"m","type":"t","code":"rate_limit_exceeded"}}"#)
    };
    for (text, is_account) in [("limits = \"channel\"", true), ("profile = \"moonshot\"", true), ("", false)]
    {
        let (node, t0) = (node(&two_models(text)), Instant::now());
        // Both are on their way when the first answer comes; the second asks for less.
        node.up("a").does([
            limited("retry-after: 20\r\n"),
            [vec![Act::Wait(s(1))], limited("retry-after: 2\r\n")].concat(),
            whole("a"),
        ]);
        node.up("b").does([whole("b")]);
        tokio::join!(node.send(of_model("m")), node.send(of_model("m")));
        let served = async |name: &str| {
            node.send(of_model(name)).await.header("x-sluice-channel").map(str::to_owned).unwrap()
        };
        let other = if is_account { "b" } else { "a" };
        for (second, of_m, of_n) in [(2.0, "b", other), (19.9, "b", other), (20.0, "a", "a")] {
            until(t0, second).await;
            let found = (served("m").await, served("n").await);
            assert_eq!(found, (of_m.to_owned(), of_n.to_owned()), "{text} {second}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn when_accounts_are_all_that_cools_down_the_caller_is_told_when_to_come_back() {
    let node = node(&[channel("a", "limits = \"channel\""), model("m", &["a"]), model("n", &["a"])].concat());
    node.up("a").does([answer(429, "retry-after: 7\r\n", r#"{"error":{"message":"m","type":"t"}}"#)]);
    node.send(of_model("m")).await;
    let refused = node.send(of_model("n")).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("7")));
    assert_eq!(node.up("a").called(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_address_or_way_to_show_the_credential_starts_a_channel_fresh_and_other_rules_do_not() {
    let (_dir, credential) = credential();
    let refused = r#"{"error":{"message":"m","type":"t","code":"invalid_api_key"}}"#;
    for (text, is_fresh) in [
        ("auth = \"api-key\"", true),
        ("path = \"/v2{operation}\"", false),
        ("limits = \"channel\"\noverrides = [{ status = 418, class = \"timeout\" }]", false),
    ] {
        let document = |text: &str| {
            let text = format!("{credential}\n{text}");
            [channel("a", &text), channel("b", ""), model("m", &["a", "b"])].concat()
        };
        let node = node(&document(""));
        node.up("a").does([answer(401, "", refused), whole("a")]);
        node.up("b").does([whole("b")]);
        node.call(false).await;
        install(&node, 3, &document(text));
        let served = node.call(false).await;
        let expected = if is_fresh { "a" } else { "b" };
        assert_eq!(served.header("x-sluice-channel"), Some(expected), "{text}");
    }
    // An address that changed is another endpoint: its breaker is closed.
    for (text, is_fresh) in [("path = \"/v2{operation}\"", true), ("limits = \"channel\"", false)] {
        let node = a_before_b("");
        node.up("a").does([failing(500)]);
        node.up("b").does([whole("b")]);
        for _ in 0..3 {
            node.call(false).await;
        }
        node.up("a").does([whole("a")]);
        install(&node, 3, &[channel("a", text), channel("b", ""), model("m", &["a", "b"])].concat());
        let expected = if is_fresh { "a" } else { "b" };
        assert_eq!(node.call(false).await.header("x-sluice-channel"), Some(expected), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_with_ways_that_this_node_does_not_know_is_refused_with_every_violation() {
    let node = Node::new(1);
    let mut faulty = snapshot(2, 1);
    faulty.channels[0].auth = Some(pb::Auth { place: 9, name: "x".into(), prefix: String::new() });
    faulty.channels[0].paths = vec![pb::Path { dialect: "openai-chat".into(), template: "x".into() }];
    faulty.channels[0].overrides =
        vec![pb::Override { class: "odd".into(), status: 400, ..Default::default() }];
    faulty.channels[0].limits = 7;
    let violations = |snapshot: &pb::Snapshot| {
        let ways = (&node.gateway.connections, &node.gateway.sources);
        let built = build(snapshot, 1, None, ways, &node.gateway.metrics);
        built.err().unwrap().into_iter().map(|violation| violation.path).collect::<Vec<_>>()
    };
    let expected = ["auth", "paths", "overrides", "limits"].map(|key| format!("channels[0].{key}"));
    assert_eq!(violations(&faulty), expected);
    let mut silent = snapshot(2, 1);
    silent.channels[0].auth = Some(pb::Auth { place: pb::AuthPlace::None.into(), ..Default::default() });
    silent.channels[0].credential = "env:X".into();
    assert_eq!(violations(&silent), ["channels[0].auth"]);
}
