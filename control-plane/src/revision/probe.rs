//! What some real nodes say of a catalog before it is published: they build it beside what they serve and let it go.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::encoded::Encoded;
use crate::nodes::{Order, Probed};
use crate::plane::Plane;

/// A node has this long to answer.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// A node and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedNode {
    /// Its id.
    pub node_id: String,
    /// Of its program.
    pub version: String,
    /// Its words.
    pub probed: Probed,
}

/// Asks up to this many connected nodes that lack nothing that the catalog needs.
pub async fn probe(plane: &Plane, content: &Encoded, count: usize) -> Vec<ProbedNode> {
    if count == 0 {
        return Vec::new();
    }
    let mut able = plane.nodes.able(&content.needs);
    fastrand::shuffle(&mut able);
    let deadline = Instant::now() + PROBE_WITHIN;
    // All are asked before the first is waited for.
    let asked: Vec<_> = choose(able, count)
        .into_iter()
        .map(|(node_id, version)| {
            let (tx, rx) = oneshot::channel();
            let sent = plane.nodes.order(&node_id, Order::Probe(content.clone(), tx));
            (node_id, version, sent.map(|()| rx))
        })
        .collect();
    let mut said = Vec::with_capacity(asked.len());
    for (node_id, version, rx) in asked {
        let not_tried = |why: String| Probed { not_tried: why, ..Probed::default() };
        let probed = match rx {
            Err(error) => not_tried(error.to_string()),
            Ok(rx) => match timeout_at(deadline, rx).await {
                Ok(Ok(probed)) => probed,
                Ok(Err(_)) => not_tried("its stream ended before it answered".to_owned()),
                Err(_) => not_tried(format!("it did not answer within {} s", PROBE_WITHIN.as_secs())),
            },
        };
        said.push(ProbedNode { node_id, version, probed });
    }
    said.sort_by(|a, b| a.node_id.cmp(&b.node_id));
    said
}

/// Some of the nodes (id and version), of as many versions as there are.
fn choose(nodes: Vec<(String, String)>, count: usize) -> Vec<(String, String)> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut ranked: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            let of_its_version = taken.entry(node.1.clone()).or_default();
            *of_its_version += 1;
            (*of_its_version, node)
        })
        .collect();
    // Stable: the first of each version, then the second of each, and so on.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().take(count).map(|(_, node)| node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_every_version_are_asked_first() {
        let node = |id: &str, version: &str| (id.to_owned(), version.to_owned());
        let nodes = vec![node("a", "1"), node("b", "1"), node("c", "1"), node("d", "2")];
        assert_eq!(choose(nodes.clone(), 2), [node("a", "1"), node("d", "2")]);
        assert_eq!(choose(nodes.clone(), 3), [node("a", "1"), node("d", "2"), node("b", "1")]);
        assert_eq!(choose(nodes, 9).len(), 4);
    }
}
