//! What everybody sees off loopback, and how an operator gets to see the rest.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, REPORTED};
use harness::provider::Provider;

use crate::driver::{look, look_as};
use crate::status::short_windows;

#[tokio::test]
async fn everybody_sees_the_models_and_an_operator_who_shows_a_token_sees_all() -> anyhow::Result<()> {
    let p1 = Provider::start("p1").await?;
    let mut fleet = Fleet::start_as(short_windows()).await?;
    let revision = fleet.apply(&chain_of("m", &[&p1])).await?;
    fleet.in_sync(revision).await?;
    assert_eq!(fleet.caller(0)?.chat("m", false).await?.status, 200);
    eventually("the count has arrived", REPORTED, || async {
        let status = fleet.status().await?;
        ensure!(status.models.iter().any(|model| model.served == 1), "{status:?}");
        Ok(())
    })
    .await?;

    // The same control plane where others can reach it.
    fleet.control_plane.terminate(Duration::from_secs(15)).await?;
    let args = &mut fleet.control_plane.program_mut().args;
    let listen = args.iter().position(|arg| arg == "--http-listen").context("no --http-listen")?;
    args[listen + 1] = "0.0.0.0:0".to_owned();
    args.extend(["--insecure-plaintext", "--public-status"].map(str::to_owned));
    fleet.control_plane.start_again().await?;
    fleet.in_sync(revision).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, fleet.control_plane.address("http")?.port()));

    for view in look(address, "/", "public").await? {
        assert_eq!(view.table("m")?.below("requests callers saw")?.1[4], "100 % 1 served, 0 failed");
        for hidden in ["p1", "node-1", "Revision", "breaker", "Nodes"] {
            assert!(!view.text.contains(hidden), "{hidden} is in {}:\n{}", view.name, view.text);
        }
        assert!(view.text.contains("For operators"), "{}", view.text);
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    let token = std::fs::read_to_string(fleet.control_plane.data_dir().join("admin.token"))?;
    for view in look_as(Some(token.trim()), address, "/operator", "operator").await? {
        assert_eq!(view.table("m")?.below("p1 attempts")?.1[4], "100 % 1 ok, 0 failed", "{}", view.name);
        assert_eq!(view.table("What each node runs")?.row("node-1")?[..2], ["in sync", "1"], "{}", view.name);
        assert!(view.faults.is_empty(), "{}:\n{}", view.name, view.faults.join("\n"));
    }
    fleet.finish()
}
