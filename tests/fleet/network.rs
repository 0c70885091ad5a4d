//! The network between the processes fails: connections that nobody ends and that carry nothing, resets in the middle of
//! a message, a node whose line is slow, a database that is silent.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::limits::HEARTBEAT_LOST;
use common::pb::admin::catalog_service_client::CatalogServiceClient;
use common::pb::admin::{ApplyCatalogRequest, ListRevisionsRequest};
use harness::caller::Tally;
use harness::catalog::{Document, chain_of};
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON, apply_by};
use harness::provider::Provider;
use harness::proxy::{Proxy, Side, Target, Way};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::control_plane_down::nothing_failed;
use crate::counters::{audit_is_clean, short_windows, shows_exactly};
use crate::traffic::Traffic;

/// Models of a large catalog.
const MODELS: usize = 400;
/// A call that the database does not answer is answered by then: 8 s, and what a busy machine takes.
const BOUNDED: Duration = Duration::from_secs(12);

/// A large catalog whose models all name its number, and that does not compress well.
fn large(provider: &Provider, number: u64) -> Document {
    let mut document = chain_of("m", &[provider]);
    for model in 0..MODELS {
        let noise: String = (0..40).map(|_| fastrand::alphanumeric()).collect();
        document = document.model(&format!("r{number}-{model}-{noise}"), &[provider.name()]);
    }
    document
}

async fn proxy_to(fleet: &Fleet) -> anyhow::Result<(Proxy, String)> {
    let proxy = Proxy::start(Target::Tcp(fleet.control_plane.address("fleet")?)).await?;
    let url = format!("http://{}", proxy.address());
    Ok((proxy, url))
}

/// Which number the large catalog has that a node serves; an error where it serves parts of two.
async fn whole(fleet: &Fleet, node: usize) -> anyhow::Result<u64> {
    let answer = fleet.caller(node)?.models().await?.json()?;
    let models = answer["data"].as_array().context("no list of models")?;
    let names: Vec<_> =
        models.iter().filter_map(|model| model["id"].as_str()).filter(|id| *id != "m").collect();
    let number = names.first().and_then(|name| name[1..].split('-').next()).context("no models")?;
    let is_whole = names.len() == MODELS && names.iter().all(|name| name.starts_with(&format!("r{number}-")));
    ensure!(is_whole, "half of a catalog: {names:?}");
    Ok(number.parse()?)
}

#[tokio::test]
async fn fr_047_a_blackholed_stream_is_noticed_and_the_node_goes_to_the_next_address_and_serves_meanwhile()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(0, &large(&provider, 1)).await?;
    let ((one, at_one), (other, at_other)) = (proxy_to(&fleet).await?, proxy_to(&fleet).await?);
    fleet.add_node_at(&[&at_one, &at_other]).await?;
    fleet.in_sync(1).await?;
    let traffic = Traffic::start(&fleet.caller(0)?, "m", 2);
    let (used, spare) = if one.open() > 0 { (one, other) } else { (other, one) };
    used.set(Way::Blackhole);
    let since = Instant::now();
    let revision = fleet.apply(&large(&provider, 2)).await?;
    eventually("the node comes by its other address", HEARTBEAT_LOST + Duration::from_secs(10), || async {
        ensure!(spare.open() > 0, "{} connections by the address that is dead", used.open());
        Ok(())
    })
    .await?;
    let noticed = since.elapsed();
    assert!(noticed > Duration::from_secs(10), "a silence of a moment is no reason to go: {noticed:?}");
    fleet.node_in_sync("node-1", revision).await?;
    assert_eq!(whole(&fleet, 0).await?, 2);

    // Half of the connection is closed now, and the next address is the dead one: it takes connections and says nothing.
    spare.half_close();
    let revision = fleet.apply(&large(&provider, 3)).await?;
    fleet.node_in_sync("node-1", revision).await?;
    assert_eq!(whole(&fleet, 0).await?, 3);
    assert_eq!(fleet.ops(0, "/readyz").await?.0, 200);
    nothing_failed(&traffic.stop().await?);
    fleet.finish()
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_snapshot_or_a_report_loses_nothing_and_doubles_nothing()
-> anyhow::Result<()> {
    const NODES: usize = 3;
    const ROUNDS: u64 = 5;
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::start_as(short_windows(0)).await?;
    fleet.apply(&large(&provider, 1)).await?;
    let mut proxies = Vec::new();
    for _ in 0..NODES {
        let (proxy, url) = proxy_to(&fleet).await?;
        fleet.add_node_at(&[&url]).await?;
        proxies.push(proxy);
    }
    fleet.in_sync(1).await?;
    let size = proxies[0].carried(Side::Target) as usize;
    assert!(size > 5_000, "{size} bytes are too few to be cut anywhere");
    let traffic: Vec<_> = (0..NODES)
        .map(|node| Ok(Traffic::start(&fleet.caller(node)?, "m", 2)))
        .collect::<anyhow::Result<_>>()?;
    for round in 0..ROUNDS {
        for (node, proxy) in proxies.iter().enumerate() {
            // Somewhere in what a node is sent, from its first bytes to its last; or in what it says.
            let part = round as usize * NODES + node;
            match part % 3 {
                0 => proxy.cut_after(Side::Client, 40 + 60 * part),
                _ => proxy.cut_after(Side::Target, 1 + size * part / (NODES * ROUNDS as usize)),
            }
        }
        fleet.apply(&large(&provider, 2 + round)).await?;
        eventually("every connection is cut", SOON, || async {
            for (node, proxy) in proxies.iter().enumerate() {
                let number = whole(&fleet, node).await?;
                ensure!(number <= 2 + round, "{number}");
                ensure!(proxy.cuts() == round + 1, "node {node} was cut {} times", proxy.cuts());
            }
            Ok(())
        })
        .await?;
    }
    fleet.in_sync(1 + ROUNDS).await?;
    let mut seen = Tally::default();
    for (node, traffic) in traffic.into_iter().enumerate() {
        let said = traffic.stop().await?;
        nothing_failed(&said);
        seen.merge(&said.tally);
        assert_eq!(whole(&fleet, node).await?, 1 + ROUNDS);
    }
    let status = shows_exactly(&fleet, &seen).await?;
    let channel = status.channels.iter().find(|channel| channel.channel == "p1").context("no p1")?;
    assert_eq!(channel.ok + channel.failed + channel.neutral, provider.call_count() as u64, "{channel:?}");
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

#[tokio::test]
async fn fr_021_fr_049_a_node_with_a_slow_line_holds_up_nobody_and_gets_only_the_newest() -> anyhow::Result<()>
{
    const REVISIONS: u64 = 9;
    let provider = Provider::start("p1").await?;
    let mut fleet = Fleet::with_catalog(1, &large(&provider, 1)).await?;
    let (slow, url) = proxy_to(&fleet).await?;
    fleet.add_node_at(&[&url]).await?;
    fleet.in_sync(1).await?;
    slow.set(Way::Throttled(300));
    for number in 2..=REVISIONS {
        let since = Instant::now();
        fleet.apply(&large(&provider, number)).await?;
        fleet.node_in_sync("node-1", number).await?;
        assert!(since.elapsed() < Duration::from_secs(10), "{number} took {:?}", since.elapsed());
    }
    let behind = fleet.node("node-2").await?;
    assert!(behind.applied_revision < REVISIONS, "the line is not slow: {behind:?}");
    slow.set(Way::Open);
    fleet.node_in_sync("node-2", REVISIONS).await?;
    let taken = fleet.nodes[1]
        .log()
        .into_iter()
        .filter(|line| line.contains("is served") && line.contains("catalog"));
    let taken = taken.count();
    assert!(taken <= 5, "{taken} of {REVISIONS}: not only what was on its way and the newest");
    fleet.finish()
}

/// What an apply came to, and how long that took.
async fn try_apply(fleet: &Fleet, document: Document) -> anyhow::Result<(Result<u64, Status>, Duration)> {
    let mut client = CatalogServiceClient::new(fleet.admin()?);
    let request = ApplyCatalogRequest { document: document.text().into_bytes(), ..Default::default() };
    let since = Instant::now();
    let answer = client.apply_catalog(request).await;
    let number = answer.map(|answer| answer.into_inner().revision.map_or(0, |revision| revision.number));
    Ok((number, since.elapsed()))
}

#[tokio::test]
async fn a_silent_database_refuses_writes_in_bounded_time_and_nodes_do_not_notice() -> anyhow::Result<()> {
    /// More than the control plane has connections.
    const AT_ONCE: u64 = 12;
    let postgres = Postgres::lend()?;
    let name = format!("silent_{}", std::process::id());
    let on_socket = postgres.create(&name)?;
    let (_, folder) = on_socket.split_once("host=").context("a socket's folder")?;
    let line = Proxy::start(Target::Unix(format!("{folder}/.s.PGSQL.5432").into())).await?;
    let url = format!("postgres://postgres@{}/{name}?sslmode=disable", line.address());
    let fleet = Fleet::start_as(Plan { database_url: Some(url), ..short_windows(2) }).await?;
    let provider = Provider::start("p1").await?;
    fleet.apply(&large(&provider, 1)).await?;
    fleet.in_sync(1).await?;
    let traffic = [Traffic::start(&fleet.caller(0)?, "m", 2), Traffic::start(&fleet.caller(1)?, "m", 2)];

    // As many calls as there are connections, so that the silence meets all of them.
    line.set(Way::Delayed(Duration::from_millis(300)));
    let mut applies = JoinSet::new();
    for number in 0..AT_ONCE {
        let apply = apply_by(fleet.admin()?, large(&provider, 100 + number).text(), Some(1));
        applies.spawn(async move { (apply.await, Instant::now()) });
    }
    sleep(Duration::from_millis(600)).await;
    line.set(Way::Blackhole);
    let since = Instant::now();
    while let Some(applied) = applies.join_next().await {
        let (applied, at) = applied?;
        assert!(at - since < BOUNDED, "an answer after {:?}", at - since);
        let refused = applied.unwrap_err().downcast::<Status>()?;
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        assert!(refused.message().contains("the database "), "{refused:?}");
    }
    let (refused, took) = try_apply(&fleet, large(&provider, 2)).await?;
    let refused = refused.unwrap_err();
    assert!(refused.code() == Code::Unavailable && took < BOUNDED, "{refused:?} after {took:?}");
    let said = fleet.sluice(&["keys", "create", "--name", "late"]).await?.with_code(2)?;
    assert!(said.err.contains("the database "), "{}", said.err);
    assert_eq!(fleet.http("/healthz").await?.0, 200);
    assert_eq!(fleet.http("/readyz").await?.0, 200, "nodes are to come here: they are served from memory");
    let since = Instant::now();
    assert_eq!(fleet.http("/api/v1/status").await?.0, 503);
    assert!(since.elapsed() < BOUNDED, "{:?}", since.elapsed());
    for node in fleet.list_nodes().await? {
        assert!(node.connected, "{node:?}");
    }

    // The old connections stay dead for ever; nobody told the control plane.
    line.forget();
    line.set(Way::Open);
    let since = Instant::now();
    let revision = eventually("an apply goes through again", SOON, || async {
        Ok(try_apply(&fleet, large(&provider, 2)).await?.0?)
    })
    .await?;
    assert!(since.elapsed() < Duration::from_secs(20), "back after {:?}", since.elapsed());
    assert_eq!(revision, 2, "what was refused is not there");
    let mut reads = JoinSet::new();
    for _ in 0..AT_ONCE {
        let mut client = CatalogServiceClient::new(fleet.admin()?);
        reads.spawn(async move { client.list_revisions(ListRevisionsRequest::default()).await });
    }
    for read in reads.join_all().await {
        assert_eq!(read?.into_inner().revisions.len(), 2);
    }
    fleet.sluice(&["audit", "verify"]).await?.with_code(0)?;
    let mut seen = Tally::default();
    for traffic in traffic {
        let said = traffic.stop().await?;
        nothing_failed(&said);
        seen.merge(&said.tally);
    }
    for node in 0..2 {
        assert_eq!(fleet.ops(node, "/readyz").await?.0, 200);
        let lost =
            fleet.nodes[node].log().into_iter().find(|line| line.contains("no stream to the control plane"));
        assert_eq!(lost, None, "the node noticed");
    }
    shows_exactly(&fleet, &seen).await?;
    audit_is_clean(&fleet.at(0)?).await?;
    fleet.finish()
}

/// A session of the database that has written a revision and was not told what to do with it.
const IN_THE_MIDDLE: &str = "select count(*) from pg_stat_activity where datname = current_database()
    and state = 'idle in transaction' and backend_xid is not null and query ilike '%insert into revision%'";

#[tokio::test]
async fn a_write_that_was_cut_off_without_a_word_holds_up_no_other_one_for_long() -> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let name = format!("cut_off_{}", std::process::id());
    postgres.create(&name)?;
    let folder = postgres.socket_dir().display().to_string();
    let line = Proxy::start(Target::Unix(format!("{folder}/.s.PGSQL.5432").into())).await?;
    let url = format!("postgres://postgres@{}/{name}?sslmode=disable", line.address());
    let fleet = Fleet::start_as(Plan { database_url: Some(url), ..short_windows(1) }).await?;
    let provider = Provider::start("p1").await?;
    fleet.apply(&large(&provider, 1)).await?;
    fleet.in_sync(1).await?;

    // A line on which a statement takes long enough to be seen, and all of them together far less than a call may take.
    line.set(Way::Delayed(Duration::from_millis(60)));
    let (mut apply, mut kept) = (JoinSet::new(), 1);
    loop {
        apply.spawn(apply_by(fleet.admin()?, large(&provider, kept + 1).text(), None));
        // The line runs on this thread as well, so that it stands still while the database is asked.
        let is_in_the_middle = async {
            while postgres.sql(&name, IN_THE_MIDDLE)? != "1" {
                sleep(Duration::from_millis(5)).await;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            seen = is_in_the_middle => {
                seen?;
                line.forget();
                break;
            }
            // It was over before anybody looked: another one.
            Some(applied) = apply.join_next() => kept = applied??,
        }
        ensure!(kept < 50, "no apply was ever seen in the middle");
    }
    line.set(Way::Open);
    if let Some(applied) = apply.join_next().await {
        assert!(applied?.is_err(), "nobody knows whether it is kept");
    }
    let revision = eventually("an apply goes through again", SOON, || async {
        Ok(try_apply(&fleet, large(&provider, kept + 2)).await?.0?)
    })
    .await?;
    assert_eq!(revision, kept + 1, "what was cut off is undone by the database itself");
    fleet.in_sync(revision).await?;
    fleet.finish()
}
