//! All nodes and all control planes are restarted one after another under constant load, again and again, behind a
//! balancer that goes by `/readyz`: no request fails, whole or streamed.

use std::time::Duration;

use anyhow::ensure;
use harness::balancer::Balancer;
use harness::caller::{Caller, Outcome};
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::provider::{Provider, Script};

use crate::traffic::Traffic;

const NODES: usize = 3;
const ROUNDS: usize = 3;
const WORKERS: usize = 6;
/// A node ends within its delay and its grace.
const END: Duration = Duration::from_secs(20);

/// Gives a node the order to leave by whichever control plane has its stream.
async fn send_away(fleet: &Fleet, id: &str) -> anyhow::Result<()> {
    eventually(&format!("{id} is sent away"), SOON, || async {
        let mut refused = String::new();
        for operator in fleet.operators()? {
            let said = operator.sluice(&["nodes", "drain", id]).await?;
            if said.code == 0 {
                return Ok(());
            }
            refused += &said.err;
        }
        anyhow::bail!(refused)
    })
    .await
}

async fn all_are_ready(balancer: &Balancer) -> anyhow::Result<()> {
    eventually("all nodes are ready", SOON, || async {
        ensure!(balancer.ready_count() == NODES, "{} are ready", balancer.ready_count());
        Ok(())
    })
    .await
}

/// Every node is connected to some control plane, and runs this revision.
async fn all_follow(fleet: &Fleet, revision: u64) -> anyhow::Result<()> {
    for node in &fleet.nodes {
        eventually(&format!("{} follows", node.label()), SOON, || async {
            for operator in fleet.operators()? {
                let shown = operator.node(node.label()).await;
                if shown.is_ok_and(|shown| shown.connected && shown.applied_revision == revision) {
                    return Ok(());
                }
            }
            anyhow::bail!("no control plane shows it connected and in sync")
        })
        .await?;
    }
    fleet.take_the_key().await
}

async fn roll(plan: Plan) -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    // Long enough that a restart always meets answers that are on their way.
    provider.set(Script::Slow { deltas: 10, every: Duration::from_millis(15) }).await;
    // Longer than a caller or the balancer is kept waiting on a busy machine.
    let node_args = ["--drain-delay", "2s", "--shutdown-grace", "10s"].map(str::to_owned).to_vec();
    let mut fleet = Fleet::start_as(Plan { nodes: NODES, node_args, ..plan }).await?;
    let planes = fleet.operators()?.len();
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    all_follow(&fleet, revision).await?;
    let balancer = Balancer::start(fleet.nodes.iter().map(|node| node.data_dir().to_owned())).await?;
    all_are_ready(&balancer).await?;

    let traffic = Traffic::start(&Caller::new(balancer.address(), &fleet.key)?, "m", WORKERS);
    for round in 0..ROUNDS {
        for node in 0..NODES {
            // By the operator's order and by the signal alike.
            if round % 2 == 0 {
                let id = fleet.nodes[node].label().to_owned();
                send_away(&fleet, &id).await?;
            } else {
                fleet.nodes[node].signal("TERM").await?;
            }
            let status = fleet.nodes[node].ended(END).await?;
            ensure!(status.success(), "node {node} ended with {status}");
            fleet.nodes[node].start_again().await?;
            all_are_ready(&balancer).await?;
        }
        for at in 0..planes {
            let plane = fleet.plane_mut(at)?;
            plane.terminate(END).await?;
            plane.start_again().await?;
        }
    }
    all_follow(&fleet, revision).await?;
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

#[tokio::test]
async fn a_rolling_restart_of_all_nodes_and_the_control_plane_under_load_fails_no_request()
-> anyhow::Result<()> {
    roll(Plan::default()).await
}

#[tokio::test]
async fn a_rolling_restart_of_all_nodes_and_all_control_planes_over_one_database_fails_no_request()
-> anyhow::Result<()> {
    let cluster = Postgres::lend()?;
    let database_url = Some(cluster.create(&format!("rolling_{}", std::process::id()))?);
    roll(Plan { control_planes: 2, database_url, ..Plan::default() }).await
}
