//! Who may call whom: client keys on a node, the admin token on the control plane, the node token on
//! the stream; and what of a credential never passes on.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::ensure;
use common::pb::admin;
use harness::catalog::{chain_of, credential};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::provider::Provider;
use tonic::Code;

#[tokio::test]
async fn a_key_works_at_once_as_bearer_or_x_api_key_and_a_revoked_one_no_longer() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let caller = fleet.caller(0)?;
    let anonymous = caller.with_key("");

    for wrong in
        [anonymous.clone(), caller.with_key("sk-wrong"), caller.with_key(&fleet.key[..fleet.key.len() - 1])]
    {
        let answer = wrong.chat("m", false).await?;
        assert_eq!((answer.status, answer.code().as_str()), (401, "invalid_api_key"));
        assert_eq!(wrong.models().await?.status, 401);
    }
    assert_eq!(provider.call_count(), 0);

    let request = anonymous.request("GET", "/v1/models")?.header("x-api-key", &fleet.key);
    assert_eq!(anonymous.send(request).await?.status, 200);

    let made =
        fleet.sluice(&["keys", "create", "--name", "second", "-o", "json"]).await?.with_code(0)?.json()?;
    let second = made["key"].as_str().unwrap_or_default().to_owned();
    assert!(second.starts_with("sk-"), "{made}");
    let second = caller.with_key(&second);
    eventually("the new key works", SOON, || async {
        let status = second.models().await?.status;
        ensure!(status == 200, "{status}");
        Ok(())
    })
    .await?;
    let listed = fleet.sluice(&["keys", "list", "-o", "json"]).await?.with_code(0)?;
    assert!(listed.out.contains("second") && !listed.out.contains(&fleet.key), "{}", listed.out);
    fleet.sluice(&["keys", "revoke", made["id"].as_str().unwrap_or_default()]).await?.with_code(0)?;
    eventually("the revoked key is refused", SOON, || async {
        let status = second.models().await?.status;
        ensure!(status == 401, "{status}");
        Ok(())
    })
    .await?;
    assert_eq!(caller.models().await?.status, 200);
    fleet.finish()
}

#[tokio::test]
async fn without_any_key_only_a_node_that_allows_it_serves_and_the_first_key_ends_that() -> anyhow::Result<()>
{
    let provider = Provider::start("p1").await?;
    for allowed in [false, true] {
        let node_args = if allowed { vec!["--allow-anonymous".to_owned()] } else { vec![] };
        let fleet =
            Fleet::start_as(Plan { nodes: 1, without_key: true, node_args, ..Plan::default() }).await?;
        let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
        fleet.in_sync(revision).await?;
        let caller = fleet.caller(0)?;
        let wanted = if allowed { 200 } else { 401 };
        eventually("the node has its config", SOON, || async {
            let status = caller.chat("m", false).await?.status;
            ensure!(status == wanted, "{status}");
            Ok(())
        })
        .await?;
        let key = fleet.create_key("first").await?;
        eventually("from the first key on, keys are asked for", SOON, || async {
            let (without, with) =
                (caller.models().await?.status, caller.with_key(&key).models().await?.status);
            ensure!((without, with) == (401, 200), "{without} {with}");
            Ok(())
        })
        .await?;
        fleet.finish()?;
    }
    Ok(())
}

#[tokio::test]
async fn br_114_a_callers_credentials_never_reach_an_upstream_and_the_channels_do() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    let caller = fleet.caller(0)?;
    let body = harness::caller::chat_body("m", false);
    let request = caller
        .request("POST", "/v1/chat/completions")?
        .header("x-api-key", &fleet.key)
        .header("cookie", "session=callers")
        .header("openai-organization", "org-callers")
        .header("proxy-authorization", "Basic callers")
        .body(body);
    assert_eq!(caller.send(request).await?.status, 200);
    let call = provider.calls().remove(0);
    let authorization = call.headers.get("authorization").and_then(|v| v.to_str().ok());
    assert_eq!(authorization, Some(format!("Bearer {}", credential("p1").1).as_str()));
    for (name, value) in &call.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        assert!(!value.contains(&fleet.key) && !value.contains("callers"), "{name}: {value}");
    }
    fleet.finish()
}

#[tokio::test]
async fn a_credential_that_a_node_cannot_resolve_suspends_its_channel_and_rejects_nothing()
-> anyhow::Result<()> {
    let (p1, p2) = (Provider::start("p1").await?, Provider::start("p2").await?);
    let document =
        chain_of("m", &[&p1, &p2]).text().replacen("env:TEST_UPSTREAM_KEY_P1", "env:NOBODY_SET_THIS", 1);
    let fleet = Fleet::start(1).await?;
    let revision = fleet.apply_text(&document, None).await?;
    fleet.in_sync(revision).await?;
    let answer = fleet.caller(0)?.chat("m", false).await?;
    assert_eq!((answer.status, answer.header("x-sluice-channel")), (200, "p2"));
    assert_eq!(p1.call_count(), 0);
    let node = fleet.node("node-1").await?;
    let warned =
        node.warnings.iter().any(|w| format!("{} {}", w.path, w.message).contains("NOBODY_SET_THIS"));
    assert!(warned, "{node:?}");
    fleet.finish()
}

#[tokio::test]
async fn without_the_admin_token_nothing_is_answered() -> anyhow::Result<()> {
    let fleet = Fleet::start(0).await?;
    for token in ["wrong", "", "Bearer"] {
        let admin = fleet.admin_with(token)?;
        let nodes = admin::node_service_client::NodeServiceClient::new(admin.clone())
            .list_nodes(admin::ListNodesRequest::default())
            .await;
        let catalog = admin::catalog_service_client::CatalogServiceClient::new(admin.clone())
            .get_catalog(admin::GetCatalogRequest { revision: 0 })
            .await;
        let keys = admin::key_service_client::KeyServiceClient::new(admin.clone())
            .create_key(admin::CreateKeyRequest { name: "x".to_owned() })
            .await;
        let chains = admin::chain_service_client::ChainServiceClient::new(admin.clone())
            .list_chains(admin::ListChainsRequest {})
            .await;
        let status = admin::status_service_client::StatusServiceClient::new(admin)
            .watch_status(admin::WatchStatusRequest { window_seconds: 0, model: String::new() })
            .await;
        let codes = [nodes.err(), catalog.err(), keys.err(), chains.err(), status.err()];
        assert!(
            codes.iter().all(|e| e.as_ref().is_some_and(|e| e.code() == Code::Unauthenticated)),
            "{codes:?}"
        );
    }
    let said = fleet.sluice(&["keys", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(said["keys"].as_array().map(Vec::len), Some(1), "{said}");
    fleet.finish()
}

#[tokio::test]
async fn tokens_are_files_for_their_owner_alone_and_their_paths_are_logged_not_their_contents()
-> anyhow::Result<()> {
    let fleet = Fleet::start(0).await?;
    let log = fleet.control_plane.log().join("\n");
    for name in ["admin.token", "node.token"] {
        let path = fleet.control_plane.data_dir().join(name);
        let mode = std::fs::metadata(&path)?.permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
        assert!(log.contains(name), "the path of {name} is not logged");
        assert!(!log.contains(std::fs::read_to_string(&path)?.trim()), "{name} is logged");
    }
    fleet.finish()
}

#[tokio::test]
async fn fr_027_a_node_with_a_wrong_token_is_not_let_in_serves_what_it_has_and_heals() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &chain_of("m", &[&provider])).await?;
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    let good = fleet.control_plane.data_dir().join("node.token");
    let token = fleet.dir().join("token-of-the-node");
    std::fs::write(&token, "wrong")?;
    for arg in &mut fleet.nodes[0].program_mut().args {
        if *arg == good.to_string_lossy() {
            *arg = token.to_string_lossy().into_owned();
        }
    }
    fleet.nodes[0].start_again().await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fleet.caller(0)?.chat("m", false).await?.status, 200);
    assert!(!fleet.node("node-1").await?.connected);
    assert!(fleet.nodes[0].is_running(), "a node never gives up");
    std::fs::copy(&good, &token)?;
    fleet.nodes[0].terminate(Duration::from_secs(15)).await?;
    fleet.nodes[0].start_again().await?;
    fleet.in_sync(1).await?;
    fleet.finish()
}
