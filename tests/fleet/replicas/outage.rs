//! The database of several control planes goes away and comes back.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, SOON, apply_by};
use harness::outage::Ending;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::{all_served_and_counted, fleet_of, leader, name, numbered, provider, traffic};

/// How a change is refused at each control plane.
async fn refusals(fleet: &Fleet, document: &str) -> anyhow::Result<Vec<Status>> {
    let mut refusals = Vec::new();
    for operator in fleet.operators()? {
        let refused = apply_by(operator.admin()?, document.to_owned(), None).await;
        let refused = refused.err().context("it was applied without a database")?;
        refusals.push(refused.downcast_ref::<Status>().context("no status")?.clone());
    }
    Ok(refusals)
}

#[tokio::test]
async fn while_the_database_is_away_no_node_notices_writes_are_refused_and_reports_wait() -> anyhow::Result<()>
{
    let (postgres, provider) = (Postgres::own()?, provider().await?);
    let homes = vec![vec![0], vec![1]];
    let fleet = fleet_of(postgres.create(&name("away"))?, 2, 2, homes, &provider).await?;
    leader(&fleet, &[0, 1]).await?;
    let traffic = traffic(&fleet)?;
    for ending in [Ending::Fast, Ending::Immediate] {
        // After an outage the control planes hear of each other again within seconds.
        for operator in fleet.operators()? {
            eventually("every node is shown as connected", SOON, || async {
                let nodes = operator.list_nodes().await?;
                ensure!(nodes.len() == 2 && nodes.iter().all(|node| node.connected), "{nodes:?}");
                Ok(())
            })
            .await?;
        }
        sleep(Duration::from_secs(2)).await;
        postgres.end(ending)?;
        for refused in refusals(&fleet, &numbered(&provider, 2).text()).await? {
            assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
            assert!(refused.message().contains("database"), "{refused:?}");
        }
        sleep(Duration::from_secs(8)).await;
        for operator in fleet.operators()? {
            let nodes = operator.list_nodes().await?;
            assert!(nodes.len() == 2 && nodes.iter().all(|node| node.connected), "{nodes:?}");
            assert_eq!(operator.http("/readyz").await?.0, 200);
        }
        for node in 0..2 {
            assert_eq!(fleet.ops(node, "/readyz").await?.0, 200);
        }
        postgres.begin()?;
    }
    for node in &fleet.nodes {
        let lost: Vec<_> =
            node.log().into_iter().filter(|line| line.contains("no stream to the control plane")).collect();
        assert!(lost.is_empty(), "{} noticed: {lost:?}", node.label());
    }
    let revision = eventually("a change is taken again", SOON, || async {
        fleet.at(1)?.apply_text(&numbered(&provider, 2).text()).await
    })
    .await?;
    ensure!(revision == 2, "{revision}");
    for operator in fleet.operators()? {
        operator.node_in_sync("node-1", 2).await?;
        operator.node_in_sync("node-2", 2).await?;
    }
    leader(&fleet, &[0, 1]).await?;
    all_served_and_counted(&fleet, traffic, &[0, 1]).await?;
    fleet.finish()
}
