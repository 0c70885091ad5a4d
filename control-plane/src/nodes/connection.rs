//! An open stream of a node, as the stream itself holds it: what it hears from this side, and what it says of the node.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Entry, Facts, Nodes, Order, PERSIST_SEEN_MS};

/// An open stream of a node. Dropping it marks the node as not connected, unless a newer stream took over.
#[derive(Debug)]
pub struct Connection {
    pub(super) nodes: Arc<Nodes>,
    pub(super) id: String,
    /// Cancelled when a newer stream of the same node takes over.
    pub(super) replaced: CancellationToken,
    pub(super) orders: mpsc::Receiver<Order>,
}

/// What a stream hears from this side.
#[derive(Debug)]
pub enum Call {
    /// A newer stream of the same node took over.
    Replaced,
    /// The node is asked for something.
    Order(Order),
}

impl Connection {
    /// The node's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until the stream is asked for something. Nothing is lost when it is dropped.
    pub async fn called(&mut self) -> Call {
        tokio::select! {
            biased;
            () = self.replaced.cancelled() => Call::Replaced,
            Some(order) = self.orders.recv() => Call::Order(order),
        }
    }

    /// The node was heard of; these are the facts now.
    pub fn record(&self, facts: &Facts) {
        let now = self.nodes.clock.now_ms();
        let is_visible = self.with_entry(|entry| {
            let is_visible = entry.facts != *facts;
            entry.is_dirty |= entry.facts.is_worth_keeping(facts)
                || now.saturating_sub(entry.persisted_seen_at_ms) >= PERSIST_SEEN_MS;
            entry.last_seen_at_ms = now;
            if entry.facts.applied.catalog != facts.applied.catalog {
                entry.config_since_ms = now;
            }
            if is_visible {
                entry.facts = facts.clone();
            }
            is_visible
        });
        if is_visible == Some(true) {
            self.nodes.tell();
        }
    }

    /// Does something to the node's entry while this stream is its stream.
    fn with_entry<T>(&self, act: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut nodes = self.nodes.lock();
        if self.replaced.is_cancelled() {
            return None;
        }
        nodes.get_mut(&self.id).map(act)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let closed = self.with_entry(|entry| {
            entry.stream = None;
            entry.is_dirty = true;
        });
        if closed.is_some() {
            tracing::info!(node.id = self.id, "the stream of node {} ended", self.id);
            self.nodes.tell();
        }
    }
}
