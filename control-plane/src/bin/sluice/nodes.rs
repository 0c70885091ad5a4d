//! `sluice nodes`: who is there, what each runs and should run, and why one refused.

mod one;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use comfy_table::Color;
use serde::Serialize;

use common::clock::Clock;
use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format, NodesCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, ago, cell, clean, table};

#[derive(Serialize)]
struct NodesJson<'a> {
    nodes: Vec<NodeJson<'a>>,
}

#[derive(Serialize)]
struct NodeJson<'a> {
    id: &'a str,
    boot_id: &'a str,
    version: &'a str,
    schema: u32,
    features: &'a [String],
    labels: BTreeMap<&'a str, &'a str>,
    state: &'static str,
    connected: bool,
    applied_revision: u64,
    target_revision: u64,
    pin: Option<PinJson<'a>>,
    violations: Vec<FindingJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
    open_channels: &'a [String],
    in_flight: u64,
    control_plane: &'a str,
    streaming_since_ms: i64,
    config_since_ms: i64,
    last_seen_at_ms: i64,
    data_address: &'a str,
    ops_address: &'a str,
}

#[derive(Serialize)]
struct PinJson<'a> {
    revision: u64,
    author: &'a str,
    reason: &'a str,
    pinned_at_ms: i64,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    path: &'a str,
    message: &'a str,
}

/// Runs a command of the group.
pub async fn run(command: NodesCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        NodesCommand::List { watch: false, labels } => list(labels.into_iter().collect(), conn, output).await,
        NodesCommand::List { watch: true, labels } => watch(labels.into_iter().collect(), conn, output).await,
        NodesCommand::Show { id } => one::show(id, conn, output).await,
        NodesCommand::Drain { id, reason } => one::drain(id, reason, conn, output).await,
        NodesCommand::Retry { id } => one::retry(id, conn, output).await,
        NodesCommand::Pin { id, revision, reason } => one::pin(id, revision, reason, conn, output).await,
        NodesCommand::Unpin { id } => one::unpin(id, conn, output).await,
        NodesCommand::Revoke { id } => one::revoke(id, conn, output).await,
    }
}

async fn list(
    labels: HashMap<String, String>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let answer = conn
        .answer(conn.nodes().list_nodes(pb::ListNodesRequest { labels }))
        .await
        .map_err(|s| conn.fault(&s))?;
    print(&answer.nodes, Clock::system().now_ms(), output)?;
    Ok(Exit::Done)
}

async fn watch(
    labels: HashMap<String, String>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let mut client = conn.nodes();
    let call = client.watch_nodes(pb::WatchNodesRequest { labels });
    let mut stream = conn.answer(call).await.map_err(|s| conn.fault(&s))?;
    let mut news = Some(conn.first(&mut stream).await?);
    while let Some(pb::WatchNodesResponse { nodes }) = news {
        output.next_frame()?;
        print(&nodes, Clock::system().now_ms(), output)?;
        news = conn.next(&mut stream).await?;
    }
    Ok(Exit::Done)
}

fn print(nodes: &[pb::Node], now_ms: u64, output: &mut Output) -> Result<(), Fault> {
    if output.format() == Format::Json {
        output.json(&NodesJson { nodes: nodes.iter().map(node_json).collect() })?;
    } else if nodes.is_empty() {
        output.text("no node was ever connected\n")?;
    } else {
        output.text(&text(nodes, now_ms))?;
    }
    Ok(())
}

fn text(nodes: &[pb::Node], now_ms: u64) -> String {
    // Of one control plane nobody asks.
    let planes: BTreeSet<&str> = nodes.iter().map(|node| node.control_plane.as_str()).collect();
    let has_several = planes.iter().filter(|plane| !plane.is_empty()).count() > 1;
    let rows = nodes.iter().map(|node| {
        let (state, color) = state(node.state());
        let open = if node.open_channels.is_empty() { "-".to_owned() } else { node.open_channels.join(", ") };
        let seen =
            if node.last_seen_at_ms == 0 { "never".to_owned() } else { ago(now_ms, node.last_seen_at_ms) };
        let mut row = vec![
            cell(&node.id),
            cell(state).fg(color),
            cell(revision(node.applied_revision)),
            cell(target(node)),
            cell(since(node.config_since_ms, now_ms)),
            cell(node.in_flight.to_string()),
            cell(open),
            cell(seen),
            cell(&node.version),
            cell(&node.data_address),
            cell(labels(node).iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(",")),
        ];
        if has_several {
            row.push(cell(if node.control_plane.is_empty() { "-" } else { &node.control_plane }));
        }
        row
    });
    let mut header = vec![
        "NODE",
        "STATE",
        ">APPLIED",
        ">TARGET",
        "SINCE",
        ">IN FLIGHT",
        "OPEN BREAKERS",
        "SEEN",
        "VERSION",
        "ADDRESS",
        "LABELS",
    ];
    if has_several {
        header.push("CONTROL PLANE");
    }
    let mut text = table(&header, rows);
    for node in nodes {
        for (kind, findings) in [("refuses", &node.violations), ("warns", &node.warnings)] {
            for finding in findings {
                text += &format!("{} {kind}: {}\n", clean(&node.id), said(finding));
            }
        }
    }
    text
}

fn said(finding: &pb::node::Finding) -> String {
    let pb::node::Finding { path, message } = finding;
    if path.is_empty() { clean(message) } else { format!("{}: {}", clean(path), clean(message)) }
}

/// Since when a node runs what it runs.
fn since(at_ms: i64, now_ms: u64) -> String {
    if at_ms == 0 { "-".to_owned() } else { ago(now_ms, at_ms) }
}

fn revision(number: u64) -> String {
    if number == 0 { "-".to_owned() } else { number.to_string() }
}

/// What it should run, and whether that is what it is pinned to.
fn target(node: &pb::Node) -> String {
    let mark = if node.pin.is_some() { "pin " } else { "" };
    format!("{mark}{}", revision(node.target_revision))
}

fn state(state: pb::NodeState) -> (&'static str, Color) {
    match state {
        pb::NodeState::Unspecified => ("unknown", Color::Yellow),
        pb::NodeState::InSync => ("in_sync", Color::Green),
        pb::NodeState::Behind => ("behind", Color::Yellow),
        pb::NodeState::Stale => ("stale", Color::Red),
        pb::NodeState::Rejected => ("rejected", Color::Red),
        pb::NodeState::Quarantined => ("quarantined", Color::Red),
        pb::NodeState::Incompatible => ("incompatible", Color::Red),
        pb::NodeState::Drained => ("drained", Color::Reset),
        pb::NodeState::Lost => ("lost", Color::Red),
    }
}

fn node_json(node: &pb::Node) -> NodeJson<'_> {
    NodeJson {
        id: &node.id,
        boot_id: &node.boot_id,
        version: &node.version,
        schema: node.schema,
        features: &node.features,
        labels: labels(node),
        state: state(node.state()).0,
        connected: node.connected,
        applied_revision: node.applied_revision,
        target_revision: node.target_revision,
        pin: node.pin.as_ref().map(|pin| PinJson {
            revision: pin.revision,
            author: &pin.author,
            reason: &pin.reason,
            pinned_at_ms: pin.pinned_at_ms,
        }),
        violations: node.violations.iter().map(finding_json).collect(),
        warnings: node.warnings.iter().map(finding_json).collect(),
        open_channels: &node.open_channels,
        in_flight: node.in_flight,
        control_plane: &node.control_plane,
        streaming_since_ms: node.streaming_since_ms,
        config_since_ms: node.config_since_ms,
        last_seen_at_ms: node.last_seen_at_ms,
        data_address: &node.data_address,
        ops_address: &node.ops_address,
    }
}

/// In the order of their names.
fn labels(node: &pb::Node) -> BTreeMap<&str, &str> {
    node.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn finding_json(finding: &pb::node::Finding) -> FindingJson<'_> {
    FindingJson { path: &finding.path, message: &finding.message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    const NOW_MS: u64 = 1_000_000;

    fn nodes() -> Vec<pb::Node> {
        let well = pb::Node {
            id: "node-a".to_owned(),
            state: pb::NodeState::InSync.into(),
            connected: true,
            applied_revision: 43,
            target_revision: 43,
            in_flight: 7,
            config_since_ms: 700_000,
            last_seen_at_ms: 997_000,
            version: "0.1.0".to_owned(),
            data_address: "127.0.0.1:8080".to_owned(),
            labels: [("zone", "eu"), ("rack", "7")].map(|(n, v)| (n.to_owned(), v.to_owned())).into(),
            ..pb::Node::default()
        };
        let violation =
            pb::node::Finding { path: "channels[3].base_url".to_owned(), message: "no host".to_owned() };
        let refusing = pb::Node {
            id: "node-b".to_owned(),
            state: pb::NodeState::Rejected.into(),
            applied_revision: 42,
            violations: vec![violation],
            open_channels: vec!["reseller".to_owned()],
            pin: Some(pb::node::Pin { revision: 43, ..pb::node::Pin::default() }),
            ..well.clone()
        };
        vec![well, refusing]
    }

    #[test]
    fn a_node_that_refuses_is_shown_with_its_reason() {
        let want = "\
NODE    STATE     APPLIED  TARGET  SINCE   IN FLIGHT  OPEN BREAKERS  SEEN    VERSION  ADDRESS         LABELS
node-a  in_sync        43      43  5m ago          7  -              3s ago  0.1.0    127.0.0.1:8080  rack=7,zone=eu
node-b  rejected       42  pin 43  5m ago          7  reseller       3s ago  0.1.0    127.0.0.1:8080  rack=7,zone=eu
node-b refuses: channels[3].base_url: no host
";
        assert_eq!(plain(&text(&nodes(), NOW_MS)), want);
    }

    #[test]
    fn the_json_of_a_node_carries_state_by_name_and_every_violation() {
        let (mut output, captured) = Captured::new(Format::Json);
        print(&nodes(), NOW_MS, &mut output).unwrap();
        let json: serde_json::Value = serde_json::from_str(&captured.out()).unwrap();
        let node = &json["nodes"][1];
        assert_eq!(node["state"], "rejected");
        assert_eq!(node["labels"], serde_json::json!({"rack": "7", "zone": "eu"}));
        assert_eq!(
            node["violations"],
            serde_json::json!([{"path": "channels[3].base_url", "message": "no host"}])
        );
        assert_eq!(captured.out().lines().count(), 1);
    }

    #[test]
    fn with_several_control_planes_it_is_shown_which_of_them_a_node_streams_to() {
        let mut nodes = nodes();
        nodes[0].control_plane = "cp-a:7444".to_owned();
        assert!(!text(&nodes, NOW_MS).contains("CONTROL PLANE"), "there is one");
        nodes[1].control_plane = "cp-b:7444".to_owned();
        nodes.push(pb::Node { id: "away".to_owned(), ..pb::Node::default() });
        let shown = plain(&text(&nodes, NOW_MS));
        let ends: Vec<&str> =
            shown.lines().take(4).filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends, ["PLANE", "cp-a:7444", "cp-b:7444", "-"], "{shown}");
    }

    #[test]
    fn a_fleet_without_nodes_is_said_to_be_one() {
        let (mut output, captured) = Captured::new(Format::Table);
        print(&[], NOW_MS, &mut output).unwrap();
        assert_eq!(captured.out(), "no node was ever connected\n");
    }
}
