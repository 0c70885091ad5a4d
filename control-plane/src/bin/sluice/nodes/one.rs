//! What is asked of one node: show, drain, retry, pin, unpin, revoke.

use serde::Serialize;

use common::clock::Clock;
use common::pb::admin as pb;

use super::{labels, node_json, revision, said, since, state};
use crate::args::Format;
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, ago, cell, clean, table};

#[derive(Serialize)]
struct RetriedJson<'a> {
    node: &'a str,
    revisions: &'a [u64],
}

#[derive(Serialize)]
struct PinnedJson<'a> {
    node: &'a str,
    revision: u64,
}

/// Shows all that is known of a node.
pub async fn show(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let answer = conn.answer(conn.nodes().get_node(pb::GetNodeRequest { id })).await;
    let node = answer.map_err(|s| conn.fault(&s))?.node.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&node_json(&node))?;
    } else {
        output.text(&text(&node, Clock::system().now_ms()))?;
    }
    Ok(Exit::Done)
}

/// Sends a node away.
pub async fn drain(
    id: String,
    reason: String,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let answer = conn.answer(conn.nodes().drain_node(pb::DrainNodeRequest { id, reason })).await;
    let node = answer.map_err(|s| conn.fault(&s))?.node.unwrap_or_default();
    if output.format() == Format::Json {
        output.json(&node_json(&node))?;
    } else {
        let (id, in_flight) = (clean(&node.id), node.in_flight);
        output.text(&format!(
            "node {id} is on its way out, with {in_flight} requests in flight; watch it by `sluice nodes list --watch`\n"
        ))?;
    }
    Ok(Exit::Done)
}

/// Ends a node's quarantines.
pub async fn retry(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::RetryNodeRequest { id: id.clone() };
    let revisions =
        conn.answer(conn.nodes().retry_node(request)).await.map_err(|s| conn.fault(&s))?.revisions;
    if output.format() == Format::Json {
        output.json(&RetriedJson { node: &id, revisions: &revisions })?;
    } else if revisions.is_empty() {
        output.text(&format!("nothing is in quarantine on node {}\n", clean(&id)))?;
    } else {
        let revisions: Vec<String> = revisions.iter().map(u64::to_string).collect();
        let revisions = revisions.join(", ");
        output.text(&format!("node {} tries again what it put aside: {revisions}\n", clean(&id)))?;
    }
    Ok(Exit::Done)
}

/// Keeps a node on a revision.
pub async fn pin(
    id: String,
    number: u64,
    reason: String,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let request = pb::PinNodeRequest { id: id.clone(), revision: number, reason };
    let answer = conn.answer(conn.nodes().pin_node(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&PinnedJson { node: &id, revision: number })?;
    } else {
        let runs = answer.node.map_or(0, |node| node.applied_revision);
        let on_its_way = if runs == number { "" } else { ", and is on its way to it" };
        output.text(&format!("node {} is pinned to revision {number}{on_its_way}\n", clean(&id)))?;
    }
    Ok(Exit::Done)
}

/// Lets a node follow the fleet again.
pub async fn unpin(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::UnpinNodeRequest { id: id.clone() };
    let was = conn.answer(conn.nodes().unpin_node(request)).await.map_err(|s| conn.fault(&s))?.revision;
    if output.format() == Format::Json {
        output.json(&PinnedJson { node: &id, revision: was })?;
    } else if was == 0 {
        output.text(&format!("node {} was not pinned\n", clean(&id)))?;
    } else {
        output.text(&format!("node {} is not pinned to revision {was} any more\n", clean(&id)))?;
    }
    Ok(Exit::Done)
}

/// Takes a node's identity away.
pub async fn revoke(id: String, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::RevokeNodeRequest { id: id.clone() };
    conn.answer(conn.nodes().revoke_node(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&serde_json::json!({ "id": id }))?;
    } else {
        output.text(&format!("revoked node {}\n", clean(&id)))?;
    }
    Ok(Exit::Done)
}

fn text(node: &pb::Node, now_ms: u64) -> String {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let (state, color) = state(node.state());
    let seen = if node.last_seen_at_ms == 0 { "never".to_owned() } else { ago(now_ms, node.last_seen_at_ms) };
    let connected = if node.connected { "yes" } else { "no" };
    let labels = labels(node).iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(", ");
    let rows = [
        ("node", cell(&node.id)),
        ("state", cell(state).fg(color)),
        ("connected", cell(connected)),
        ("at", cell(or_none(node.control_plane.clone()))),
        ("seen", cell(seen)),
        ("applied", cell(revision(node.applied_revision))),
        ("since", cell(since(node.config_since_ms, now_ms))),
        ("target", cell(revision(node.target_revision))),
        ("pin", cell(or_none(node.pin.as_ref().map(|pin| pinned(pin, now_ms)).unwrap_or_default()))),
        ("in flight", cell(node.in_flight.to_string())),
        ("open breakers", cell(or_none(node.open_channels.join(", ")))),
        ("labels", cell(or_none(labels))),
        ("version", cell(&node.version)),
        ("boot", cell(or_none(node.boot_id.clone()))),
        ("data", cell(or_none(node.data_address.clone()))),
        ("ops", cell(or_none(node.ops_address.clone()))),
        ("schema", cell(node.schema.to_string())),
        ("features", cell(or_none(node.features.join(", ")))),
    ];
    let mut text = table(&["", ""], rows.into_iter().map(|(name, value)| vec![cell(name), value]));
    for (kind, findings) in [("refuses", &node.violations), ("warns", &node.warnings)] {
        for finding in findings {
            text += &format!("{kind}: {}\n", said(finding));
        }
    }
    text.trim_start_matches('\n').to_owned()
}

fn pinned(pin: &pb::node::Pin, now_ms: u64) -> String {
    let pb::node::Pin { revision, author, reason, pinned_at_ms } = pin;
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("revision {revision}, by {author} {}{why}", ago(now_ms, *pinned_at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn a_node_is_shown_with_all_that_is_known_of_it() {
        let node = pb::Node {
            id: "node-a".to_owned(),
            state: pb::NodeState::Incompatible.into(),
            connected: true,
            applied_revision: 42,
            target_revision: 43,
            config_since_ms: 700_000,
            last_seen_at_ms: 997_000,
            version: "0.1.0".to_owned(),
            labels: [("zone".to_owned(), "eu".to_owned())].into(),
            schema: 1,
            features: vec!["auth".to_owned(), "paths".to_owned()],
            pin: Some(pb::node::Pin {
                revision: 43,
                author: "ann".to_owned(),
                reason: "canary".to_owned(),
                pinned_at_ms: 940_000,
            }),
            violations: vec![pb::node::Finding { path: "features".into(), message: "lacks x".into() }],
            ..pb::Node::default()
        };
        let text = plain(&text(&node, 1_000_000));
        for line in [
            "node           node-a",
            "state          incompatible",
            "seen           3s ago",
            "since          5m ago",
            "target         43",
            "pin            revision 43, by ann 60s ago: canary",
            "open breakers  -",
            "labels         zone=eu",
            "features       auth, paths",
            "refuses: features: lacks x",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} is missing in\n{text}");
        }
    }
}
