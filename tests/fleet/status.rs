//! What operators look at: `sluice status`, the page and its JSON, metrics, health.

use anyhow::ensure;
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED};
use harness::provider::{Provider, Script};

#[tokio::test]
async fn both_rates_are_shown_side_by_side_with_their_counts_and_no_data_is_said() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2]).model("unused", &["p2"])).await?;
    let before = fleet.sluice(&["status"]).await?.with_code(0)?;
    assert!(before.out.contains("no data") && !before.out.contains("100"), "{}", before.out);

    p1.set(Script::Status(500)).await;
    for _ in 0..2 {
        assert_eq!(fleet.caller(0)?.chat("m", false).await?.status, 200);
    }
    let json = eventually("the counts have arrived", REPORTED, || async {
        let json = fleet.sluice(&["status", "-o", "json"]).await?.with_code(0)?.json()?;
        ensure!(json.to_string().contains("\"served\":2"), "{json}");
        Ok(json)
    })
    .await?;
    let model = json["models"].as_array().unwrap().iter().find(|m| m["model"] == "m").unwrap();
    assert_eq!((&model["served"], &model["success_rate"]), (&2.into(), &1.0.into()), "{json}");
    let rate = |channel: &str| {
        let all = json["channels"].as_array().unwrap();
        all.iter().find(|c| c["channel"] == channel).map(|c| c["success_rate"].clone()).unwrap()
    };
    assert_eq!((rate("p1"), rate("p2")), (0.0.into(), 1.0.into()), "{json}");

    let (code, text) = fleet.http("/api/v1/status").await?;
    assert_eq!(code, 200);
    let api: serde_json::Value = serde_json::from_str(&text)?;
    assert!(
        api["models"].as_array().is_some_and(|m| m.iter().any(|m| m["model"] == "m" && m["served"] == 2)),
        "{api}"
    );
    let (code, page) = fleet.http("/").await?;
    assert_eq!(code, 200);
    assert!(page.contains("<html") && page.contains("p1") && page.contains("no data"), "{page}");
    let table = fleet.sluice(&["status", "--model", "m"]).await?.with_code(0)?;
    assert!(
        table.out.contains("p1") && table.out.contains("p2") && !table.out.contains("unused"),
        "{}",
        table.out
    );
    fleet.finish()
}

#[tokio::test]
async fn health_readiness_and_metrics_are_answered_by_both_programs() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1])).await?;
    assert_eq!(fleet.caller(0)?.chat("m", true).await?.status, 200);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(fleet.http(path).await?.0, 200, "control plane {path}");
        assert_eq!(fleet.ops(0, path).await?.0, 200, "node {path}");
    }
    let (_, metrics) = fleet.ops(0, "/metrics").await?;
    for line in [
        "sluice_requests_total{model=\"m\",outcome=\"served\"} 1",
        "sluice_attempts_total{channel=\"p1\",class=\"ok\"} 1",
        "sluice_revision 1",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|l| l == line), "no {line:?} in\n{metrics}");
    }
    let (_, metrics) = fleet.http("/metrics").await?;
    assert!(metrics.contains("sluice_counter_audit_mismatch_total 0"), "{metrics}");
    fleet.finish()
}
