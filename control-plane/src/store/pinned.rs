//! What the store keeps of nodes that stay on a revision.

use super::entry::Entry;
use super::rows::Pin;
use super::{Store, StoreError, postgres, soon, sqlite};

impl Store {
    /// Keeps a node on a revision, in the place of an earlier pin. Returns false where there is no such revision.
    pub async fn pin(&self, pin: &Pin, entry: &Entry) -> Result<bool, StoreError> {
        Ok(call!(self.write, pins::pin(pin, entry)))
    }

    /// Ends a node's pin. Returns false, and logs nothing, where it has none.
    pub async fn unpin(&self, node_id: &str, entry: &Entry) -> Result<bool, StoreError> {
        Ok(call!(self.write, pins::unpin(node_id, entry)))
    }

    /// Every pin, by node, and the version of this list.
    pub async fn pins(&self) -> Result<(u64, Vec<Pin>), StoreError> {
        Ok(call!(self.read, pins::list()))
    }
}
