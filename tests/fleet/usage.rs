//! What client keys used and what it comes to, as operators and as the applications themselves see it.

use anyhow::ensure;
use harness::caller::Caller;
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED, SOON};
use harness::provider::{Provider, Script};
use serde_json::{Value, json};

async fn asked(caller: &Caller, path: &str) -> anyhow::Result<(u16, Value)> {
    let answer = caller.send(caller.request("GET", path)?).await?;
    Ok((answer.status, answer.json()?))
}

#[tokio::test]
async fn an_application_sees_its_own_requests_and_use_to_the_token_and_nobody_elses() -> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&p1, &p2])).await?;
    let ours = fleet.caller(0)?;
    let made =
        fleet.sluice(&["keys", "create", "--name", "theirs", "-o", "json"]).await?.with_code(0)?.json()?;
    let (theirs_id, secret) = (made["id"].as_str().unwrap_or(""), made["key"].as_str().unwrap_or(""));
    let theirs = ours.with_key(secret);
    eventually("the new key works", SOON, || async {
        ensure!(theirs.models().await?.status == 200);
        Ok(())
    })
    .await?;
    // A stream whose upstream does not say what it used comes to nobody knows what.
    let silent = theirs.chat("m", true).await?;
    // Nine tokens each at 9 USD per million; p1 takes 1 USD of us and p2 takes 2.
    let plain = ours.chat("m", false).await?;
    assert_eq!(theirs.chat("m", false).await?.status, 200);
    p1.set(Script::Status(503)).await;
    let over = ours.chat("m", false).await?;
    p2.set(Script::Status(500)).await;
    let lost = ours.chat("m", false).await?;
    assert_eq!((plain.status, over.status, ours.chat("no-such-model", false).await?.status), (200, 200, 404));

    let at = fleet.control_plane.address("http")?;
    let (ours, theirs, nobody) =
        (Caller::new(at, &fleet.key)?, Caller::new(at, secret)?, Caller::new(at, "sk-nobody")?);
    let total = json!({
        "requests": 4, "served": 2, "input_tokens": 6, "cached_input_tokens": 0, "output_tokens": 12,
        "searches": 0, "audio_ms": 0, "price_usd": "0.000162", "unpriced": 0
    });
    let used = eventually("all of it is counted", REPORTED, || async {
        let (status, used) = asked(&ours, "/v1/usage").await?;
        ensure!(status == 200 && used["total"] == total, "{status} {used}");
        Ok(used)
    })
    .await?;
    let rows: Vec<_> = used["usage"].as_array().into_iter().flatten().collect();
    let by_model: Vec<_> = rows.iter().map(|row| (row["model"].as_str(), row["requests"].as_u64())).collect();
    assert_eq!(
        by_model,
        [(Some(""), Some(1)), (Some("m"), Some(3))],
        "names of nobody's models count as none"
    );
    assert_eq!(rows[1]["day"], used["to"], "{used}");
    let (_, used) = asked(&theirs, "/v1/usage").await?;
    let total = &used["total"];
    assert_eq!((&total["requests"], &total["unpriced"]), (&json!(2), &json!(1)), "{used}");
    assert_eq!(total["price_usd"], "0.000081");
    let (_, shown) = asked(&theirs, &format!("/v1/requests/{}", silent.header("x-request-id"))).await?;
    assert_eq!((&shown["usage"], &shown["price_usd"]), (&Value::Null, &Value::Null), "{shown}");

    let path = format!("/v1/requests/{}", over.header("x-request-id"));
    let (status, shown) = asked(&ours, &path).await?;
    assert_eq!(status, 200, "{shown}");
    for (member, wanted) in [
        ("channel", json!("p2")),
        ("attempts", json!(2)),
        ("outcome", json!("served")),
        ("price_usd", json!("0.000081")),
        ("code", Value::Null),
    ] {
        assert_eq!(shown[member], wanted, "{member} in {shown}");
    }
    assert_eq!((&shown["usage"]["input_tokens"], &shown["usage"]["output_tokens"]), (&json!(3), &json!(6)));
    assert!(!shown.to_string().contains("cost"), "what it costs us is nobody's matter: {shown}");
    let (_, shown) = asked(&ours, &format!("/v1/requests/{}", lost.header("x-request-id"))).await?;
    assert_eq!((&shown["channel"], &shown["code"]), (&Value::Null, &json!(lost.code())), "{shown}");

    let none = ours.with_key("");
    let wrong_day = "/v1/usage?from=yesterday";
    let too_long = "/v1/usage?from=1970-01-01";
    for (caller, path, status, said) in [
        (&theirs, path.as_str(), 404, over.header("x-request-id")),
        (&nobody, path.as_str(), 401, "not valid"),
        (&none, path.as_str(), 401, "authorization: Bearer KEY"),
        (&nobody, "/v1/usage", 401, "not valid"),
        (&ours, wrong_day, 400, "write it like 2026-12-01"),
        (&ours, too_long, 400, "400 days"),
        (&ours, "/v1/usage?key=other", 400, "key"),
    ] {
        let (found, answer) = asked(caller, path).await?;
        let message = answer["error"]["message"].as_str().unwrap_or("");
        assert!(found == status && message.contains(said), "{path}: {found} {answer}");
    }
    let request = none.request("GET", &path)?.header("x-api-key", &fleet.key);
    assert_eq!(none.send(request).await?.status, 200, "as Anthropic's SDK shows it");

    // An operator sees what it cost as well, in the same figures.
    let used = fleet.sluice(&["usage", "--by", "key,model", "-o", "json"]).await?.with_code(0)?.json()?;
    let of = |key: &str, model: &str| {
        let rows = used["usage"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["key"] == key && row["model"] == model).unwrap_or_default()
    };
    let of_theirs = of(theirs_id, "m");
    assert_eq!((&of_theirs["cost_usd"], &of_theirs["price_usd"]), (&json!("0.000009"), &json!("0.000081")));
    let all = fleet.sluice(&["usage", "--by", "model", "--model", "m", "-o", "json"]).await?.with_code(0)?;
    let all = all.json()?["usage"][0].clone();
    assert_eq!(
        (&all["requests"], &all["cost_usd"]),
        (&json!(5), &json!("0.000036")),
        "9 + 9 + 18 millionths"
    );
    let shown = fleet.sluice(&["requests", "show", over.header("x-request-id")]).await?.with_code(0)?;
    assert!(shown.out.contains("it cost us 0.000018 USD; the caller pays 0.000081 USD"), "{}", shown.out);
    let table = fleet.sluice(&["usage"]).await?.with_code(0)?;
    assert!(table.out.contains(theirs_id) && table.out.contains("PRICE USD"), "{}", table.out);

    fleet.sluice(&["keys", "revoke", theirs_id]).await?.with_code(0)?;
    assert_eq!(asked(&theirs, "/v1/usage").await?.0, 401, "at once");
    fleet.finish()
}
