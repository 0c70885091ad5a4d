//! All nodes and the control plane are restarted one after another under constant load, again and again, behind a
//! balancer that goes by `/readyz`: no request fails, whole or streamed.

use std::time::Duration;

use anyhow::ensure;
use harness::balancer::Balancer;
use harness::caller::{Caller, Outcome};
use harness::catalog::chain_of;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::provider::{Provider, Script};

use crate::traffic::Traffic;

const NODES: usize = 3;
const ROUNDS: usize = 3;
const WORKERS: usize = 6;
/// A node ends within its delay and its grace.
const END: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_rolling_restart_of_all_nodes_and_the_control_plane_under_load_fails_no_request()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    // Long enough that a restart always meets answers that are on their way.
    provider.set(Script::Slow { deltas: 10, every: Duration::from_millis(15) }).await;
    let node_args = ["--drain-delay", "1s", "--shutdown-grace", "10s"].map(str::to_owned).to_vec();
    let mut fleet = Fleet::start_as(Plan { nodes: NODES, node_args, ..Plan::default() }).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.in_sync(revision).await?;
    let balancer = Balancer::start(fleet.nodes.iter().map(|node| node.data_dir().to_owned())).await?;
    eventually("all nodes are ready", SOON, || async {
        ensure!(balancer.ready_count() == NODES, "{} are ready", balancer.ready_count());
        Ok(())
    })
    .await?;

    let traffic = Traffic::start(&Caller::new(balancer.address(), &fleet.key)?, "m", WORKERS);
    for round in 0..ROUNDS {
        for node in 0..NODES {
            // By the operator's order and by the signal alike.
            if round % 2 == 0 {
                let id = fleet.nodes[node].label().to_owned();
                fleet.node_in_sync(&id, revision).await?;
                fleet.sluice(&["nodes", "drain", &id]).await?.with_code(0)?;
            } else {
                fleet.nodes[node].signal("TERM").await?;
            }
            let status = fleet.nodes[node].ended(END).await?;
            ensure!(status.success(), "node {node} ended with {status}");
            fleet.nodes[node].start_again().await?;
            eventually("all nodes are ready again", SOON, || async {
                ensure!(balancer.ready_count() == NODES, "{} are ready", balancer.ready_count());
                Ok(())
            })
            .await?;
        }
        fleet.control_plane.terminate(END).await?;
        fleet.control_plane.start_again().await?;
    }
    fleet.in_sync(revision).await?;
    let seen = traffic.stop().await?;

    assert_eq!(seen.errors, Vec::<String>::new());
    assert_eq!(seen.tally.unanswered, 0, "{:?}", seen.tally);
    assert_eq!(seen.tally.of("m", Outcome::Served), seen.tally.answered(), "{:?}", seen.tally);
    assert_eq!(balancer.refused_count(), 0);
    // The test says something only if there was load all the time and every node had its part.
    assert!(seen.tally.answered() >= 100, "{:?}", seen.tally);
    let taken = balancer.taken();
    assert!(taken.len() == NODES && taken.values().all(|count| *count >= ROUNDS), "{taken:?}");
    fleet.finish()
}
