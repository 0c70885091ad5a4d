//! Several control planes over one PostgreSQL, as real processes: what one of them changes reaches the nodes of the
//! others, whoever is killed, stopped or away meanwhile.

mod balance;
mod outage;
mod succession;
mod view;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::caller::Tally;
use harness::catalog::{Document, chain_of};
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, REPORTED, SOON};
use harness::operator::Operator;
use harness::provider::{Provider, Script};
use tokio::time::Instant;

use crate::counters::{audit_is_clean, counted};
use crate::traffic::Traffic;

/// Every control plane looks this often for what the others changed.
const POLL: Duration = Duration::from_secs(2);

fn name(test: &str) -> String {
    format!("replicas_{test}_{}", std::process::id())
}

/// A provider that takes a moment, so that callers do not take the machine for themselves.
async fn provider() -> anyhow::Result<Provider> {
    let provider = Provider::start("p1").await?;
    provider.set(Script::Slow { deltas: 4, every: Duration::from_millis(10) }).await;
    Ok(provider)
}

fn numbered(provider: &Provider, number: u64) -> Document {
    chain_of("m", &[provider]).model(&format!("n{number}"), &[provider.name()])
}

/// So many control planes and nodes with short windows, and a first revision in sync everywhere.
async fn fleet_of(
    url: String,
    control_planes: usize,
    nodes: usize,
    homes: Vec<Vec<usize>>,
    provider: &Provider,
) -> anyhow::Result<Fleet> {
    let node_args = vec!["--window".to_owned(), "1s".to_owned()];
    let database_url = Some(url);
    let plan = Plan { control_planes, nodes, database_url, node_args, homes, ..Plan::default() };
    let fleet = Fleet::start_as(plan).await?;
    let revision = fleet.apply(&numbered(provider, 1)).await?;
    for operator in fleet.operators()? {
        for node in &fleet.nodes {
            operator.node_in_sync(node.label(), revision).await?;
        }
    }
    fleet.take_the_key().await?;
    Ok(fleet)
}

/// A number of `/metrics`.
async fn metric(operator: &Operator<'_>, name: &str) -> anyhow::Result<u64> {
    let (_, text) = operator.http("/metrics").await?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.with_context(|| format!("{name} is not in {text}"))?.parse()?)
}

/// Waits until one of these control planes leads, and returns which.
async fn leader(fleet: &Fleet, among: &[usize]) -> anyhow::Result<usize> {
    eventually("one of the control planes leads", SOON, || async {
        let mut leads = Vec::new();
        for at in among {
            if metric(&fleet.at(*at)?, "sluice_leader").await? == 1 {
                leads.push(*at);
            }
        }
        let [leader] = leads[..] else { anyhow::bail!("{leads:?} lead") };
        Ok(leader)
    })
    .await
}

/// Callers of every node.
fn traffic(fleet: &Fleet) -> anyhow::Result<Vec<Traffic>> {
    (0..fleet.nodes.len()).map(|node| Ok(Traffic::start(&fleet.caller(node)?, "m", 2))).collect()
}

/// Ends the callers: every request was served, and each of these control planes counts exactly what they saw.
async fn all_served_and_counted(fleet: &Fleet, traffic: Vec<Traffic>, at: &[usize]) -> anyhow::Result<()> {
    let mut seen = Tally::default();
    for traffic in traffic {
        let new = traffic.stop().await?;
        ensure!(new.errors.is_empty(), "{:?}", new.errors);
        ensure!(new.went_back.is_empty(), "{:?}", new.went_back);
        let failed: Vec<u16> = new.answers.iter().map(|a| a.status).filter(|status| *status != 200).collect();
        ensure!(failed.is_empty(), "{failed:?}");
        seen.merge(&new.tally);
    }
    ensure!(seen.answered() > 0);
    for at in at {
        let operator = fleet.at(*at)?;
        eventually("the counters are what callers saw", REPORTED, || async {
            let counted = counted(&operator.status().await?).0;
            ensure!(counted == seen, "control plane {at} counted {counted:?}, seen {seen:?}");
            Ok(())
        })
        .await?;
        audit_is_clean(&operator).await?;
    }
    Ok(())
}

/// Applies a few revisions at the first control plane and returns how long each took to the node of the second one.
async fn times_of_applies(fleet: &Fleet, provider: &Provider, count: usize) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let caller = fleet.caller(1)?;
    for number in 0..count {
        let document = numbered(provider, number as u64);
        let revision = fleet.at(0)?.apply_text(&document.text()).await?.to_string();
        let applied_at = Instant::now();
        eventually(&format!("the other's node serves revision {revision}"), SOON, || async {
            let answer = caller.chat("m", false).await?;
            let served = answer.header("x-sluice-revision");
            ensure!(served == revision, "{served:?}");
            Ok(())
        })
        .await?;
        times.push(applied_at.elapsed());
    }
    Ok(times)
}

async fn two_with_a_node_each(database_url: String) -> anyhow::Result<Fleet> {
    let homes = vec![vec![0], vec![1]];
    let plan =
        Plan { control_planes: 2, nodes: 2, database_url: Some(database_url), homes, ..Plan::default() };
    Fleet::start_as(plan).await
}

#[tokio::test]
async fn a_change_at_one_control_plane_reaches_the_nodes_of_another_at_once() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let provider = Provider::start("p1").await?;
    let fleet = two_with_a_node_each(postgres.create(&name("news"))?).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.at(0)?.node_in_sync("node-1", revision).await?;
    fleet.at(1)?.node_in_sync("node-2", revision).await?;
    fleet.take_the_key().await?;
    let times = times_of_applies(&fleet, &provider, 8).await?;
    let fast = times.iter().filter(|time| **time < Duration::from_millis(700)).count();
    assert!(fast >= 6, "by the clock alone it would be up to {POLL:?}: {times:?}");
    fleet.finish()
}

#[tokio::test]
async fn a_change_that_nobody_announces_reaches_the_others_by_the_clock() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let database = name("silent");
    // Who may not announce is heard by nobody, and everything else goes on.
    let role = format!("sluice_{}", std::process::id());
    let url = postgres.create(&database)?;
    postgres
        .sql("postgres", &format!("create role {role} login; alter database {database} owner to {role}"))?;
    postgres.sql(&database, "revoke execute on function pg_notify(text, text) from public")?;
    let refused = postgres.sql(&database, &format!("set role {role}; select pg_notify('x', '')"));
    refused.err().context("the role may announce")?;
    let provider = Provider::start("p1").await?;
    let fleet = two_with_a_node_each(url.replace("//postgres@", &format!("//{role}@"))).await?;
    let revision = fleet.apply(&chain_of("m", &[&provider])).await?;
    fleet.at(1)?.node_in_sync("node-2", revision).await?;
    fleet.take_the_key().await?;
    let times = times_of_applies(&fleet, &provider, 3).await?;
    // A busy machine takes its time beside that.
    assert!(times.iter().all(|time| *time < POLL * 3), "{times:?}");
    fleet.finish()
}
