//! `/admin/nodes` and one node: what each runs, what it should run and why it does not, and what is out there now.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use common::pb::admin as pb;
use pb::node_service_server::NodeService as _;

use super::super::html::Html;
use super::super::out;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::{Desk, Visit, moment};
use crate::nodes::NodeView;

/// All nodes.
pub async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
) -> Result<Response, Fault> {
    let ask = pb::ListNodesRequest { labels: HashMap::new() };
    let request = desk.request(&visit, "NodeService/ListNodes", ask)?;
    let nodes = desk.admin.list_nodes(request).await?.into_inner().nodes;
    let view = |html: &mut Html| {
        if nodes.is_empty() {
            return html.leaf("p", &[], "No node was ever connected.");
        }
        let head =
            ["Node", "State", "Runs", "Should run", "Open breakers", "In flight", "Version", "Last seen"];
        frame::table(html, "nodes-box", "Nodes", &head, |html| nodes.iter().for_each(|node| row(html, node)));
    };
    Ok(frame::page(&visit, "Nodes", Updates::ByItself, view, |_| ()))
}

fn row(html: &mut Html, node: &pb::Node) {
    let (state, class) = state(node);
    html.node("tr", &[], |html| {
        html.node("th", &[("scope", "row")], |html| {
            html.leaf("a", &[("href", &format!("/admin/nodes/{}", frame::encoded(&node.id)))], &node.id);
        });
        html.leaf("td", &[("class", class)], state);
        let open =
            if node.open_channels.is_empty() { "none".to_owned() } else { node.open_channels.join(", ") };
        for text in [
            revision(node.applied_revision),
            revision(node.target_revision),
            open,
            node.in_flight.to_string(),
            node.version.clone(),
            moment(node.last_seen_at_ms),
        ] {
            html.leaf("td", &[], &text);
        }
    });
}

/// One node.
pub async fn one(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    Path(id): Path<String>,
) -> Result<Response, Fault> {
    let request = desk.request(&visit, "NodeService/GetNode", pb::GetNodeRequest { id })?;
    let node = desk.admin.get_node(request).await?.into_inner().node.unwrap_or_default();
    // What is paused there is told to people alone, and has no place in the admin protocol.
    let plane = &desk.admin.plane;
    let seen = plane.nodes.list(plane.head.now().as_deref()).into_iter().find(|seen| seen.id == node.id);
    let view = |html: &mut Html| {
        summary(html, &node);
        for (id, title, found, none) in [
            (
                "violations",
                "Why it does not run what it should",
                &node.violations,
                "Nothing keeps it from that.",
            ),
            ("warnings", "What works and wants somebody", &node.warnings, "Nothing."),
        ] {
            frame::section(html, id, title, |html| findings(html, found, none));
        }
        frame::section(html, "out", "Out now", |html| outs(html, &node, seen.as_ref()));
    };
    Ok(frame::page(&visit, &node.id, Updates::ByItself, view, |_| ()))
}

fn summary(html: &mut Html, node: &pb::Node) {
    let mut labels: Vec<_> = node.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.sort();
    let pin = node.pin.as_ref().map(|pin| {
        let why = if pin.reason.is_empty() { String::new() } else { format!(": {}", pin.reason) };
        format!("to revision {} by {}{why}", pin.revision, pin.author)
    });
    let since = |at_ms: i64| if at_ms == 0 { String::new() } else { moment(at_ms) };
    frame::facts(
        html,
        [
            ("State", state(node).0.to_owned()),
            ("Runs", revision(node.applied_revision)),
            ("Since", since(node.config_since_ms)),
            ("Should run", revision(node.target_revision)),
            ("Pinned", pin.unwrap_or_default()),
            ("In flight", node.in_flight.to_string()),
            ("Version", node.version.clone()),
            ("Labels", labels.join(", ")),
            ("Callers reach it at", node.data_address.clone()),
            ("Operators reach it at", node.ops_address.clone()),
            ("Control plane", node.control_plane.clone()),
            ("Connected since", since(node.streaming_since_ms)),
            ("Last seen", moment(node.last_seen_at_ms)),
            ("Boot", node.boot_id.clone()),
        ],
    );
}

fn findings(html: &mut Html, found: &[pb::node::Finding], none: &str) {
    if found.is_empty() {
        return html.leaf("p", &[], none);
    }
    html.node("ul", &[], |html| {
        for pb::node::Finding { path, message } in found {
            html.leaf(
                "li",
                &[],
                &if path.is_empty() { message.clone() } else { format!("{path}: {message}") },
            );
        }
    });
}

fn outs(html: &mut Html, node: &pb::Node, seen: Option<&NodeView>) {
    let pauses = seen.map_or(&[][..], |seen| &seen.facts.pauses);
    if node.open_channels.is_empty() && pauses.is_empty() {
        return html.leaf("p", &[], "No breaker is open, and nothing is suspended or cools down.");
    }
    html.node("ul", &[], |html| {
        for channel in &node.open_channels {
            html.leaf("li", &[], &format!("{channel}: its breaker is open"));
        }
        for pause in pauses {
            let of = if pause.model.is_empty() { String::new() } else { format!(" for {}", pause.model) };
            let time = out::time(&pause.what, &pause.class, pause.since_ms, pause.until_ms);
            html.leaf("li", &[], &format!("{}{of}: {}{time}", pause.channel, pause.what));
        }
    });
}

fn state(node: &pb::Node) -> (&'static str, &'static str) {
    match node.state() {
        pb::NodeState::InSync => ("in sync", "well"),
        pb::NodeState::Behind => ("behind", "fair"),
        pb::NodeState::Rejected => ("rejected", "bad"),
        pb::NodeState::Quarantined => ("quarantined", "bad"),
        pb::NodeState::Drained => ("drained", "none"),
        pb::NodeState::Lost => ("lost", "bad"),
        pb::NodeState::Incompatible => ("incompatible", "bad"),
        pb::NodeState::Stale => ("stale", "bad"),
        pb::NodeState::Unspecified => ("unknown", "none"),
    }
}

fn revision(number: u64) -> String {
    if number == 0 { "none".to_owned() } else { number.to_string() }
}
