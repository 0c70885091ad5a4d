//! What a node is asked over its open stream, beside what it should run: what an operator orders, and what it would
//! say of a catalog.

use tokio::sync::{mpsc, oneshot};

use super::{Finding, Nodes};
use crate::error::Error;
use crate::revision::encoded::Encoded;

/// What is asked of a node.
#[derive(Debug)]
pub enum Order {
    /// Leave in order, and say in its log why.
    Leave(String),
    /// End the quarantines.
    Retry,
    /// Say what would become of this catalog.
    Probe(Encoded, oneshot::Sender<Probed>),
}

/// What a node says of a catalog that it tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probed {
    /// Why it would refuse it; none when it would take it.
    pub violations: Vec<Finding>,
    /// What would work but want a person.
    pub warnings: Vec<Finding>,
    /// Why it did not try; empty when it did.
    pub not_tried: String,
}

impl Order {
    /// What a node must know to understand it.
    fn feature(&self) -> &'static str {
        match self {
            Order::Leave(_) => common::feature::LEAVE,
            Order::Retry => common::feature::RETRY,
            Order::Probe(..) => common::feature::PROBE,
        }
    }
}

impl Nodes {
    /// Revisions that a node put aside.
    pub fn quarantined(&self, id: &str) -> Result<Vec<u64>, Error> {
        let nodes = self.lock();
        let entry = nodes.get(id).ok_or_else(|| Error::NotFound { what: "node", name: id.to_owned() })?;
        Ok(entry.facts.quarantined.iter().map(|quarantined| quarantined.part.version).collect())
    }

    /// Asks a node, if its stream is open here and it understands.
    pub fn order(&self, id: &str, order: Order) -> Result<(), Error> {
        let orders = self.orders(id, &order)?;
        // A few wait at most; who is not read from is about to be lost.
        orders.try_send(order).map_err(|_| Error::Busy)
    }

    /// Whether a node can be asked that now.
    pub fn can_take(&self, id: &str, order: &Order) -> Result<(), Error> {
        self.orders(id, order).map(drop)
    }

    fn orders(&self, id: &str, order: &Order) -> Result<mpsc::Sender<Order>, Error> {
        let nodes = self.lock();
        let entry = nodes.get(id).ok_or_else(|| Error::NotFound { what: "node", name: id.to_owned() })?;
        let unfit = |message: String| Err(Error::Unfit(message));
        let Some(stream) = &entry.stream else {
            return unfit(match entry.place.as_ref().filter(|place| place.is_alive) {
                Some(place) => {
                    format!("node {id} is connected to the control plane {}: ask that one", place.name)
                }
                None => format!("node {id} is not connected; see `sluice nodes list`"),
            });
        };
        if !entry.facts.features.contains(order.feature()) {
            let version = &entry.facts.version;
            return unfit(format!(
                "version {version} of node {id} does not understand that; update the node"
            ));
        }
        Ok(stream.orders.clone())
    }
}
