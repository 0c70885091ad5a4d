//! Streams are drained by their age, so that a control plane that joins gets its share.

use anyhow::ensure;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};

use super::{all_served_and_counted, metric, name, numbered, provider, traffic};

#[tokio::test]
async fn fr_013_a_control_plane_that_joins_gets_load_by_the_age_of_streams() -> anyhow::Result<()> {
    let (postgres, provider) = (Postgres::lend()?, provider().await?);
    let plan = Plan {
        control_planes: 3,
        database_url: Some(postgres.create(&name("joins"))?),
        control_plane_args: vec!["--stream-age".to_owned(), "2s".to_owned()],
        node_args: vec!["--window".to_owned(), "1s".to_owned()],
        ..Plan::default()
    };
    let mut fleet = Fleet::start_as(plan).await?;
    let revision = fleet.apply(&numbered(&provider, 1)).await?;
    // Its address is known, and nobody is there yet.
    fleet.plane_mut(2)?.kill().await?;
    for _ in 0..6 {
        fleet.add_node().await?;
    }
    for node in 1..=6 {
        fleet.at(0)?.node_in_sync(&format!("node-{node}"), revision).await?;
    }
    fleet.take_the_key().await?;
    let traffic = traffic(&fleet)?;
    fleet.plane_mut(2)?.start_again().await?;
    eventually("the one that has joined has its share", SOON, || async {
        let streams = metric(&fleet.at(2)?, "sluice_streams").await?;
        ensure!(streams >= 2, "{streams}");
        Ok(())
    })
    .await?;
    all_served_and_counted(&fleet, traffic, &[0, 1, 2]).await?;
    fleet.finish()
}
