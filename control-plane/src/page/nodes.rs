//! The nodes on the page: what each runs, and why it does not run what it should. Pure.

use std::time::Duration;

use super::html::Html;
use super::view::{NodeRow, View};
use super::words;
use crate::nodes::{self, Finding};

/// The table of nodes, and what they say.
pub fn table(html: &mut Html, view: &View) {
    if view.nodes.is_empty() {
        return html.leaf("p", &[], "No node was ever connected.");
    }
    let is_told = has_several_control_planes(view);
    scrolling(html, "Nodes", |html| {
        html.node("table", &[("class", "nodes")], |html| {
            html.leaf("caption", &[], "What each node runs");
            html.node("thead", &[], |html| {
                html.node("tr", &[], |html| {
                    for name in ["Node", "State", "Revision", "Open breakers", "In flight", "Last seen"] {
                        html.leaf("th", &[("scope", "col")], name);
                    }
                    if is_told {
                        html.leaf("th", &[("scope", "col")], "Control plane");
                    }
                });
            });
            html.node("tbody", &[], |html| {
                view.nodes.iter().for_each(|row| node(html, row, view.day().at_ms, is_told));
            });
        });
    });
    let refusals =
        view.nodes.iter().flat_map(|row| row.violations.iter().cloned().map(move |f| (row, "refuses", f)));
    let warnings =
        view.nodes.iter().flat_map(|row| row.node.warnings().into_iter().map(move |f| (row, "warns", f)));
    let said: Vec<_> = refusals.chain(warnings).collect();
    if !said.is_empty() {
        html.node("ul", &[], |html| {
            for (row, verb, Finding { path, message }) in said {
                html.leaf("li", &[], &format!("{} {verb}: {path}: {message}", row.node.id));
            }
        });
    }
}

/// Something that may be wider than a phone; the keyboard reaches it too. A group, not a landmark: nobody would find the
/// sections among them.
fn scrolling(html: &mut Html, label: &str, inside: impl FnOnce(&mut Html)) {
    html.node(
        "div",
        &[
            ("class", "scroll"),
            ("id", "nodes-box"),
            ("role", "group"),
            ("aria-label", label),
            ("tabindex", "0"),
        ],
        inside,
    );
}

/// Of one control plane nobody asks.
fn has_several_control_planes(view: &View) -> bool {
    let mut names = view.nodes.iter().map(|row| &row.node.control_plane).filter(|name| !name.is_empty());
    names.next().is_some_and(|first| names.any(|name| name != first))
}

fn node(html: &mut Html, row: &NodeRow, now_ms: u64, is_control_plane_told: bool) {
    let node = &row.node;
    let revision = match (node.applied_revision, node.target_revision) {
        (applied, target) if applied == target => applied.to_string(),
        (0, target) => format!("none, should run {target}"),
        (applied, target) => format!("{applied}, should run {target}"),
    };
    let open = if node.facts.open_channels.is_empty() {
        "none".to_owned()
    } else {
        node.facts.open_channels.join(", ")
    };
    let seen = words::span(Duration::from_millis(now_ms.saturating_sub(node.last_seen_at_ms)));
    html.node("tr", &[], |html| {
        html.leaf("th", &[("scope", "row")], &node.id);
        html.leaf("td", &[("class", class(node.state))], node.state.as_str());
        for text in [revision, open, node.facts.in_flight.to_string(), format!("{seen} ago")] {
            html.leaf("td", &[], &text);
        }
        if is_control_plane_told {
            html.leaf("td", &[], if node.control_plane.is_empty() { "none" } else { &node.control_plane });
        }
    });
}

fn class(state: nodes::State) -> &'static str {
    match state {
        nodes::State::InSync => "well",
        nodes::State::Behind => "fair",
        nodes::State::Drained => "none",
        nodes::State::Rejected
        | nodes::State::Quarantined
        | nodes::State::Incompatible
        | nodes::State::Stale
        | nodes::State::Lost => "bad",
    }
}
