//! What the store keeps of the nodes as they were last seen, and of the control planes that see them.

use std::time::Duration;

use super::rows::{Node, Replica};
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};

/// A control plane that was not heard of for so long leaves no trace.
const REPLICAS_KEPT: Duration = Duration::from_secs(60);

impl Store {
    /// Keeps what the control plane of this process, `writer`, knows of some nodes. What another one knows better stays.
    pub async fn upsert_nodes(&self, writer: &str, nodes: &[Node]) -> Result<(), StoreError> {
        call!(self.write, nodes::upsert(writer, nodes));
        Ok(())
    }

    /// Notes that nodes were cloned, by id, with what is known of it.
    pub async fn note_cloned(&self, cloned: &[(String, String)]) -> Result<(), StoreError> {
        call!(self.write, nodes::note_cloned(cloned));
        Ok(())
    }

    /// Moves with everything that is written of nodes.
    pub async fn nodes_version(&self) -> Result<u64, StoreError> {
        Ok(call!(self.read, nodes::version()))
    }

    /// Every node that was ever seen, by id.
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.nodes_since(0).await
    }

    /// Nodes of which something was written with this version or a later one, by id.
    pub async fn nodes_since(&self, version: u64) -> Result<Vec<Node>, StoreError> {
        Ok(call!(self.read, nodes::list(version)))
    }

    /// Removes nodes that were last heard of before `before_ms`, as the leader of this epoch.
    pub async fn forget_nodes(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, nodes::forget(leader, before_ms))
    }

    /// Says that this control plane lives, and returns all that were heard of within a minute.
    pub async fn beat(&self, own: &Replica) -> Result<Vec<Replica>, StoreError> {
        Ok(call!(self.write, replicas::beat(own, REPLICAS_KEPT.as_millis() as u64)))
    }

    /// Says that it ends.
    pub async fn leave(&self, id: &str) -> Result<(), StoreError> {
        call!(self.write, replicas::leave(id));
        Ok(())
    }
}
