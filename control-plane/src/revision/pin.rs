//! Nodes that an operator keeps on a revision: what that revision holds for them, and what may be pinned. A pinned node
//! takes part in no rollout of another revision.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::check_text;
use super::encoded::{Encoded, Part};
use super::head::{Wanted, content_of};
use crate::access::Caller;
use crate::error::Error;
use crate::nodes::NodeView;
use crate::plane::Plane;
use crate::store::Store;
use crate::store::rows;

/// Longest reason of a pin.
const REASON_BYTES_MAX: usize = 1024;

/// Every pin, and what it is of.
#[derive(Debug, Default)]
pub struct Pins {
    /// Of the list in the store.
    pub version: u64,
    of: HashMap<String, Pinned>,
    contents: BTreeMap<u64, Encoded>,
}

/// A pinned node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// What it runs.
    pub part: Part,
    /// As it was ordered.
    pub pin: rows::Pin,
}

impl Pins {
    /// Reads them; contents that are held already are not read again.
    pub(super) async fn read(store: &Store, known: Option<&Wanted>) -> Result<Self, Error> {
        let (version, rows) = store.pins().await?;
        let mut pins = Pins { version, ..Pins::default() };
        for pin in rows {
            let content = match pins.contents.get(&pin.revision) {
                Some(content) => Some(content.clone()),
                None => content_of(store, pin.revision, known).await?,
            };
            let Some(content) = content else {
                let rows::Pin { node_id, revision, .. } = &pin;
                tracing::error!(
                    node.id = node_id,
                    revision,
                    "node {node_id} is pinned to revision {revision}, which is not there: the pin counts for nothing"
                );
                continue;
            };
            let part = content.part;
            pins.contents.insert(pin.revision, content);
            pins.of.insert(pin.node_id.clone(), Pinned { part, pin });
        }
        Ok(pins)
    }

    /// Of this node, if it is pinned.
    pub fn of(&self, node: &str) -> Option<&Pinned> {
        self.of.get(node)
    }

    /// What nodes are pinned to.
    pub fn contents(&self) -> impl Iterator<Item = &Encoded> {
        self.contents.values()
    }

    /// The nodes that a rollout of this content leaves out: those that are pinned to another one, by id.
    pub fn left_out_of(&self, content: Option<Part>) -> BTreeMap<&str, u64> {
        let others = self.of.iter().filter(|(_, pinned)| Some(pinned.part) != content);
        others.map(|(id, pinned)| (id.as_str(), pinned.part.version)).collect()
    }
}

/// Keeps a node on a revision until it is unpinned.
pub async fn pin(
    plane: &Plane,
    caller: &Caller,
    node: &str,
    revision: u64,
    reason: &str,
) -> Result<(), Error> {
    check_text("reason", reason, REASON_BYTES_MAX)?;
    plane.head.refresh(&plane.store).await?;
    let wanted = plane.wanted()?;
    let view = find(plane, &wanted, node)?;
    let unknown = || Error::NotFound { what: "revision", name: revision.to_string() };
    let content = content_of(&plane.store, revision, Some(&wanted)).await?.ok_or_else(unknown)?;
    if let Some(why) = unfit(&view, wanted.target.epoch, &content) {
        return Err(Error::Unfit(format!("node {node} {why}")));
    }
    let before = wanted.pins.of(node).map_or(Value::Null, |pinned| told(&pinned.pin));
    let pin = rows::Pin {
        node_id: node.to_owned(),
        revision,
        author: caller.name.clone(),
        reason: reason.to_owned(),
        pinned_at_ms: plane.clock.now_ms(),
    };
    let entry = plane.entry(caller, "node.pin", node).with(&before, &told(&pin));
    if !plane.store.pin(&pin, &entry).await? {
        return Err(unknown());
    }
    tracing::info!(
        node.id = node,
        revision,
        by = caller.name,
        "node {node} is pinned to revision {revision}"
    );
    plane.tell().await;
    Ok(())
}

/// Lets a node follow the fleet again. Returns the revision that it was pinned to; 0 when it was not.
pub async fn unpin(plane: &Plane, caller: &Caller, node: &str) -> Result<u64, Error> {
    plane.head.refresh(&plane.store).await?;
    let wanted = plane.wanted()?;
    // A pin may outlive what is known of its node.
    let Some(pinned) = wanted.pins.of(node) else {
        return find(plane, &wanted, node).map(|_| 0);
    };
    let entry = plane.entry(caller, "node.unpin", node).with(&told(&pinned.pin), &Value::Null);
    if !plane.store.unpin(node, &entry).await? {
        return Ok(0);
    }
    let revision = pinned.pin.revision;
    tracing::info!(node.id = node, revision, by = caller.name, "node {node} is not pinned any more");
    plane.tell().await;
    Ok(revision)
}

fn find(plane: &Plane, wanted: &Wanted, node: &str) -> Result<NodeView, Error> {
    let found = plane.nodes.list(Some(wanted)).into_iter().find(|view| view.id == node);
    found.ok_or_else(|| Error::NotFound { what: "node", name: node.to_owned() })
}

/// Why a node cannot be kept on a content, if it cannot.
fn unfit(node: &NodeView, epoch: u64, content: &Encoded) -> Option<String> {
    let (part, revision) = (content.part, content.part.version);
    let applied = node.facts.applied.catalog.filter(|_| node.facts.applied.epoch == epoch);
    if let Some(applied) = applied.filter(|applied| applied.version > revision) {
        let runs = applied.version;
        return Some(format!(
            "runs revision {runs} already, and no node goes back to a lower number: make the document of revision \
             {revision} a new one by `sluice catalog rollback {revision}`, or pin the node to what it runs"
        ));
    }
    if let Some(why) = node.facts.refusal(part) {
        return Some(format!("{why}; it is not sent there again (`sluice nodes retry` ends a quarantine)"));
    }
    let lacks = node.facts.lacks(&content.needs);
    (!lacks.is_empty()).then(|| {
        let (version, lacks) = (&node.facts.version, lacks.join(", "));
        format!("is of version {version}, which lacks {lacks}, and revision {revision} needs that; update the node")
    })
}

fn told(pin: &rows::Pin) -> Value {
    json!({ "revision": pin.revision, "reason": pin.reason })
}

#[cfg(test)]
mod tests;
