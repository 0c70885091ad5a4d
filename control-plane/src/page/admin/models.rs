//! `/admin/models` and one model: its chain for each dialect as the catalog has it, with costs, and who would serve it now on
//! which node.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use common::pb::admin as pb;
use pb::chain_service_server::ChainService as _;

use super::super::html::Html;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::serving::{self, Serving};
use super::{Desk, Visit};
use crate::error::Error;
use crate::nodes::NodeView;
use crate::plane::Plane;
use crate::revision;

/// So many nodes are named where several do the same; the others are counted.
const NAMED_MAX: usize = 8;
/// Nodes run few revisions at a time; of more than these the chains are not read.
const REVISIONS_MAX: usize = 4;

/// All models.
pub async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
) -> Result<Response, Fault> {
    let request = desk.request(&visit, "ChainService/ListChains", pb::ListChainsRequest {})?;
    let chains = desk.admin.list_chains(request).await?.into_inner().chains;
    let view = |html: &mut Html| {
        if chains.is_empty() {
            return html.leaf("p", &[], "The catalog has no models yet.");
        }
        let said = "What each chain is, cheapest first. Costs, and who would serve now, stand on the page of each model.";
        html.leaf("p", &[("class", "quiet")], said);
        let head = ["Model", "Dialect", "Chain", "Open breakers"];
        frame::table(html, "models-box", "Models", &head, |html| {
            for chain in &chains {
                row(html, chain);
            }
        });
    };
    Ok(frame::page(&visit, "Models", Updates::ByItself, view, |_| ()))
}

fn row(html: &mut Html, chain: &pb::Chain) {
    let channels: Vec<_> = chain.hops.iter().map(|hop| hop.channel.as_str()).collect();
    let open = chain.hops.iter().filter(|hop| !hop.open_on.is_empty());
    let open: Vec<_> = open.map(|hop| format!("{} on {}", hop.channel, named(&hop.open_on))).collect();
    html.node("tr", &[], |html| {
        html.node("th", &[("scope", "row")], |html| {
            let place = format!("/admin/models/{}", frame::encoded(&chain.model));
            html.leaf("a", &[("href", &place)], &chain.model);
        });
        html.leaf("td", &[], &chain.dialect);
        html.leaf(
            "td",
            &[],
            &if channels.is_empty() { "no route is enabled".to_owned() } else { channels.join(" → ") },
        );
        match open.is_empty() {
            true => html.leaf("td", &[("class", "none")], "none"),
            false => html.leaf("td", &[("class", "bad")], &open.join("; ")),
        }
    });
}

/// One model.
pub async fn one(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    Path(model): Path<String>,
) -> Result<Response, Fault> {
    let ask = pb::GetChainRequest { model: model.clone(), dialect: String::new() };
    let request = desk.request(&visit, "ChainService/GetChain", ask)?;
    let chains = desk.admin.get_chain(request).await?.into_inner().chains;
    let plane = &desk.admin.plane;
    let nodes = plane.nodes.list(plane.head.now().as_deref());
    let ran = Ran::read(plane, &nodes, &model, &chains).await?;
    let now_ms = plane.clock.now_ms();
    let view = |html: &mut Html| {
        let said = "The chain is the same on every node that runs the revision, and for every caller. Who would serve follows from it and \
                    from what each node said last, up to 15 s ago: breakers, cooldowns and suspensions are each node's own.";
        html.leaf("p", &[("class", "quiet")], said);
        for chain in &chains {
            frame::section(html, &chain.dialect, &format!("For {}", chain.dialect), |html| {
                hops(html, chain);
                let serving = |node| (node, ran.serving(node, chain, now_ms));
                now(html, chain, &serving::together(nodes.iter().map(serving)));
            });
        }
    };
    Ok(frame::page(&visit, &model, Updates::ByItself, view, |_| ()))
}

fn hops(html: &mut Html, chain: &pb::Chain) {
    if chain.hops.is_empty() {
        return html.leaf("p", &[], "No route of it is enabled.");
    }
    let (id, caption) =
        (format!("{}-chain", chain.dialect), format!("The chain of revision {}", chain.revision));
    let head = ["Hop", "Channel", "Upstream model", "Input $/M", "Output $/M", "Order"];
    frame::table(html, &id, &caption, &head, |html| {
        for (hop, number) in chain.hops.iter().zip(1..) {
            html.node("tr", &[], |html| {
                html.leaf("td", &[], &number.to_string());
                html.leaf("th", &[("scope", "row")], &hop.channel);
                for text in [&hop.upstream_model, &hop.input_cost, &hop.output_cost, &hop.order] {
                    html.leaf("td", &[], if text.is_empty() { "–" } else { text });
                }
            });
        }
    });
}

fn now(html: &mut Html, chain: &pb::Chain, all: &[(Serving, Vec<&str>)]) {
    if all.is_empty() {
        return html.leaf("p", &[], "No node was ever connected: nobody would serve it.");
    }
    let id = format!("{}-now", chain.dialect);
    let head = ["Nodes", "Revision", "Asked first", "Then", "Why"];
    frame::table(html, &id, "Who would serve now", &head, |html| {
        for (Serving { revision, by, then, why }, nodes) in all {
            html.node("tr", &[], |html| {
                html.leaf("th", &[("scope", "row")], &named(nodes));
                html.leaf("td", &[], &if *revision == 0 { "none".to_owned() } else { revision.to_string() });
                let class = match by {
                    serving::By::Channel(_) => "well",
                    serving::By::Away(_) => "none",
                    serving::By::Nobody | serving::By::NoChain | serving::By::NoCatalog => "bad",
                };
                html.leaf("td", &[("class", class)], &by.said());
                html.leaf("td", &[], &if then.is_empty() { "–".to_owned() } else { then.join(" → ") });
                html.leaf(
                    "td",
                    &[],
                    &if why.is_empty() { "nothing is out".to_owned() } else { why.join("; ") },
                );
            });
        }
    });
}

/// Some names, and how many more there are.
fn named<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED_MAX).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The chains of a model in the revisions that nodes run, by revision and dialect.
struct Ran(BTreeMap<(u64, String), Vec<String>>);

impl Ran {
    /// Those of the current revision are given; others are read.
    async fn read(
        plane: &Plane,
        nodes: &[NodeView],
        model: &str,
        chains: &[pb::Chain],
    ) -> Result<Self, Error> {
        let of = |chain: &pb::Chain| chain.hops.iter().map(|hop| hop.channel.clone()).collect();
        let mut ran: BTreeMap<_, _> =
            chains.iter().map(|chain| ((chain.revision, chain.dialect.clone()), of(chain))).collect();
        let current = chains.first().map_or(0, |chain| chain.revision);
        let mut others: Vec<u64> =
            nodes.iter().filter(|node| node.connected).map(|node| node.applied_revision).collect();
        others.retain(|revision| *revision != 0 && *revision != current);
        others.sort_unstable_by(|a, b| b.cmp(a));
        others.dedup();
        for number in others.into_iter().take(REVISIONS_MAX) {
            // Of a revision that is gone, or that this version cannot read, nobody knows the chain.
            let full = match revision::find(plane, number).await {
                Ok(full) => full,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let Ok(checked) = revision::read(full.document).await? else { continue };
            for chain in checked.catalog.chains(model) {
                let channels = chain.hops.into_iter().map(|hop| hop.channel.to_string()).collect();
                ran.insert((number, chain.dialect.to_string()), channels);
            }
        }
        Ok(Ran(ran))
    }

    fn serving(&self, node: &NodeView, chain: &pb::Chain, now_ms: u64) -> Serving {
        let channels = self.0.get(&(node.applied_revision, chain.dialect.clone()));
        serving::serving(node, &chain.model, channels.map_or(&[], Vec::as_slice), now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_are_counted() {
        let names: Vec<_> = (0..10).map(|number| format!("n{number}")).collect();
        assert_eq!(named(&names[..2]), "n0, n1");
        assert_eq!(named(&names), "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more");
    }
}
