//! A catalog through `sluice`: refused whole with every fault located, refused when somebody was
//! faster, kept word for word, shown as chains.

use common::pb::admin;
use harness::catalog::chain_of;
use harness::fleet::Fleet;
use harness::provider::Provider;
use harness::tools::package_path;
use tonic::Code;

/// Ten faults, each on a line of its own: what is wrong, its line, its path.
const FAULTY: &str = r#"[policy]
breaker = { failures = 0, window = "5m", cooldown = "60s" }
gate = { timeout = "30s", until = "contents" }

[channels.openai-direct]
dialects = ["openai-chat"]
base_url = "https://api.example/v1"
credential = "sk-in-clear-text-0123456789"

[channels.reseller]
dialects = ["openai-chatt"]
base_url = "not a url"
credential = "env:RESELLER_KEY"
colour = "blue"

[models."gpt-4o"]
price = { input = "3.00", output = "12.00" }
routes = [
  { channel = "opnai-direct", upstream_model = "gpt-4o", cost = { input = "2.00", output = "8.00" } },
  { channel = "openai-direct", upstream_model = "gpt-4o" },
  { channel = "reseller", upstream_model = "gpt-4o", cost = { input = "-1", output = "8.00" } },
]

[models.late]
price = { input = "3.00", output = "12.00" }
timeouts = { headers = "soon" }
routes = [{ channel = "openai-direct", upstream_model = "x", cost = { input = "1", output = "1" } }]
"#;

const FAULTS: [(u32, &str); 10] = [
    (2, "policy.breaker.failures"),
    (3, "policy.gate.until"),
    (8, "channels.openai-direct.credential"),
    (11, "channels.reseller.dialects[0]"),
    (12, "channels.reseller.base_url"),
    (14, "channels.reseller.colour"),
    (19, "models.gpt-4o.routes[0].channel"),
    (20, "models.gpt-4o.routes[1].cost"),
    (21, "models.gpt-4o.routes[2].cost.input"),
    (26, "models.late.timeouts.headers"),
];

#[tokio::test]
async fn a_catalog_with_ten_faults_is_refused_whole_with_ten_located_messages() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let file = fleet.dir().join("faulty.toml");
    std::fs::write(&file, FAULTY)?;
    let name = file.to_string_lossy().into_owned();

    for command in ["validate", "apply"] {
        let said = fleet.sluice(&["catalog", command, "-f", &name]).await?.with_code(2)?;
        let text = format!("{}{}", said.out, said.err);
        for (line, path) in FAULTS {
            let place = format!("{name}:{line}: {path}: ");
            assert!(text.lines().any(|l| l.starts_with(&place)), "{command}: no {place:?} in\n{text}");
        }
        assert_eq!(
            text.lines().filter(|l| l.starts_with(&format!("{name}:"))).count(),
            FAULTS.len(),
            "{text}"
        );
        assert!(text.contains("did you mean \"openai-direct\"?"), "{text}");
        assert!(!text.contains("sk-in-clear-text"), "a credential is repeated: {text}");
    }
    let json =
        fleet.sluice(&["catalog", "validate", "-f", &name, "-o", "json"]).await?.with_code(2)?.json()?;
    let found: Vec<_> = json["faults"].as_array().unwrap().iter().collect();
    assert_eq!(found.len(), FAULTS.len(), "{json}");

    let refused = fleet.apply_text(FAULTY, None).await.unwrap_err();
    let status = refused.downcast_ref::<tonic::Status>().unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);
    let history = fleet.sluice(&["catalog", "history", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(history["revisions"].as_array().map(Vec::len), Some(1), "something was kept: {history}");
    fleet.in_sync(1).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_stale_expected_revision_is_refused_with_the_current_number() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let document = chain_of("m", &[&provider]);
    let fleet = Fleet::with_catalog(1, &document).await?;
    let second = document.clone().model("second", &["p1"]);
    let file = fleet.dir().join("second.toml");
    std::fs::write(&file, second.text())?;
    let name = file.to_string_lossy().into_owned();

    let said = fleet
        .sluice(&["catalog", "apply", "-f", &name, "--expect", "1", "-o", "json"])
        .await?
        .with_code(0)?;
    assert_eq!(said.json()?, serde_json::json!({"revision": 2}));
    let said = fleet.sluice(&["catalog", "apply", "-f", &name, "--expect", "1"]).await?.with_code(2)?;
    assert!(said.err.contains('2') && said.err.contains("--expect 2"), "{}", said.err);

    let third = second.clone().model("third", &["p1"]).text();
    let status = fleet.apply_text(&third, Some(1)).await.unwrap_err();
    assert_eq!(
        status.downcast_ref::<tonic::Status>().map(tonic::Status::code),
        Some(Code::Aborted),
        "{status:?}"
    );
    assert_eq!(fleet.apply_text(&third, Some(2)).await?, 3);

    // Two who expect the same revision: one of them wins.
    let (a, b) = (document.clone().model("a", &["p1"]).text(), document.clone().model("b", &["p1"]).text());
    let (a, b) = tokio::join!(fleet.apply_text(&a, Some(3)), fleet.apply_text(&b, Some(3)));
    assert_eq!([a.is_ok(), b.is_ok()].iter().filter(|ok| **ok).count(), 1, "{a:?} {b:?}");
    fleet.in_sync(4).await?;
    fleet.finish()
}

#[tokio::test]
async fn a_document_is_kept_word_for_word_and_the_same_one_makes_no_revision() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let text = format!("# größe\n{}\n\n# the end", chain_of("m", &[&provider]).text());
    let fleet = Fleet::start(0).await?;
    let file = fleet.dir().join("catalog.toml");
    std::fs::write(&file, &text)?;
    let name = file.to_string_lossy().into_owned();
    let said = fleet.sluice(&["catalog", "validate", "-f", &name]).await?.with_code(0)?;
    assert!(said.out.contains("valid"), "{}", said.out);
    for message in ["because", "again"] {
        let apply = ["catalog", "apply", "-f", &name, "-m", message, "-o", "json"];
        assert_eq!(fleet.sluice(&apply).await?.with_code(0)?.json()?["revision"], 1);
    }
    assert_eq!(fleet.sluice(&["catalog", "get"]).await?.with_code(0)?.out.trim_end(), text.trim_end());
    assert_eq!(fleet.sluice(&["catalog", "get", "1"]).await?.with_code(0)?.out.trim_end(), text.trim_end());
    fleet.sluice(&["catalog", "get", "9"]).await?.with_code(1)?;
    let history = fleet.sluice(&["catalog", "history"]).await?.with_code(0)?;
    assert!(history.out.contains("because") && !history.out.contains("again"), "{}", history.out);

    let mut catalogs = admin::catalog_service_client::CatalogServiceClient::new(fleet.admin()?);
    let kept = catalogs.get_catalog(admin::GetCatalogRequest { revision: 1 }).await?.into_inner();
    assert_eq!(kept.document, text.as_bytes());
    fleet.finish()
}

#[tokio::test]
async fn a_chain_is_shown_as_every_node_has_it_cheapest_first_and_cut_to_three() -> anyhow::Result<()> {
    let mut providers = vec![];
    for name in ["p1", "p2", "p3", "p4"] {
        providers.push(Provider::start(name).await?);
    }
    let all: Vec<&Provider> = providers.iter().collect();
    let document = all.iter().fold(chain_of("m", &[]), |document, p| document.provider(p));
    let document = document.model("n", &["p4", "p2", "p3", "p1"]);
    let fleet = Fleet::start(1).await?;
    // A model without routes would be a fault of its own.
    let text = document
        .text()
        .replace("[models.\"m\"]\nprice = { input = \"9.00\", output = \"9.00\" }\nroutes = [\n]\n", "");
    let revision = fleet.apply_text(&text, None).await?;
    fleet.in_sync(revision).await?;
    let said = fleet.sluice(&["chain", "n"]).await?.with_code(0)?;
    let at = |name: &str| said.out.find(name);
    assert!(at("p4") < at("p2") && at("p2") < at("p3") && at("p1").is_none(), "{}", said.out);
    fleet.sluice(&["chain", "no-such-model"]).await?.with_code(1)?;
    let chains = fleet.sluice(&["chains", "-o", "json"]).await?.with_code(0)?;
    assert!(chains.json()?.to_string().contains("up-n"), "{}", chains.out);
    let (status, shown) = fleet.ops(0, "/debug/chains").await?;
    assert_eq!(status, 200);
    let at = |name: &str| shown.find(name);
    assert!(at("p4") < at("p2") && at("p2") < at("p3"), "{shown}");

    for provider in &providers {
        provider.set(harness::provider::Script::Status(500)).await;
    }
    assert_eq!(fleet.caller(0)?.chat("n", false).await?.status, 502);
    let counts: Vec<usize> = providers.iter().map(Provider::call_count).collect();
    assert_eq!(counts, [0, 1, 1, 1], "br_049: each hop once, none beyond the third");
    fleet.finish()
}

#[tokio::test]
async fn the_example_catalogs_are_valid() -> anyhow::Result<()> {
    let fleet = Fleet::start(0).await?;
    let mut checked = 0;
    let mut folders = vec![package_path("../deploy")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let is_document = path.extension().is_some_and(|e| e == "toml" || e == "json");
            if path.is_dir() {
                folders.push(path);
            } else if is_document && path.to_string_lossy().contains("catalog") {
                fleet.sluice(&["catalog", "validate", "-f", &path.to_string_lossy()]).await?.with_code(0)?;
                checked += 1;
            }
        }
    }
    assert!(checked >= 2, "only {checked} example catalogs");
    fleet.finish()
}

#[tokio::test]
async fn errors_of_sluice_say_what_to_do_and_end_with_the_documented_codes() -> anyhow::Result<()> {
    let fleet = Fleet::start(0).await?;
    assert_eq!(fleet.sluice(&["catalog", "get"]).await?.code, 1, "no catalog yet");
    fleet.sluice(&["catalog", "validate", "-f", "/nonexistent/file.toml"]).await?.with_code(2)?;
    fleet.sluice(&["frobnicate"]).await?.with_code(2)?;
    fleet.sluice(&["--server", "http://127.0.0.1:1", "nodes", "list"]).await?.with_code(2)?;
    for shell in ["bash", "zsh", "fish"] {
        assert!(fleet.sluice(&["completions", shell]).await?.with_code(0)?.out.contains("sluice"));
    }
    let nodes = fleet.sluice(&["nodes", "list"]).await?.with_code(0)?;
    assert!(!nodes.out.is_empty());
    fleet.finish()
}
