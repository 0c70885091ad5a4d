//! Who the nodes are: which have a certificate, with which key, and which are revoked. A copy of the store's list is in
//! memory, so that nodes are recognised while the database is away; every control plane looks for changes all the time.

pub mod authority;
pub mod enrolment;
pub mod rotation;
pub mod tokens;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use authority::Authorities;
use common::label::Labels;
use common::snapshot::Sha;
use tokio::sync::watch;

use crate::store::rows::NodeIdentity;
use crate::store::{Store, StoreError};

/// What a certificate that proved its key is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It speaks for its node.
    Live,
    /// Its node is revoked.
    Revoked,
    /// Its node is not known here, or has enrolled with another key since.
    Unknown,
}

/// The identities that are known.
#[derive(Debug, Default)]
pub struct Identities {
    known: Mutex<Known>,
    /// Grows with every change.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of the store's list; 0: it was never read.
    version: u64,
    by_node: HashMap<String, NodeIdentity>,
}

impl Identities {
    /// Reads the store's list, if it has changed since.
    pub async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let version = store.identities_version().await?;
        if self.lock().version == version {
            return Ok(());
        }
        // Read after its version: a change between the two is read now and once more.
        let list = store.identities().await?;
        let by_node = list.into_iter().map(|identity| (identity.node_id.clone(), identity)).collect();
        *self.lock() = Known { version, by_node };
        self.changed.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// What this key is worth for this node.
    pub fn standing(&self, node_id: &str, key_sha256: &Sha) -> Standing {
        match self.lock().by_node.get(node_id) {
            Some(identity) if identity.revoked_at_ms.is_some() => Standing::Revoked,
            Some(identity) if identity.key_sha256 == key_sha256 => Standing::Live,
            Some(_) | None => Standing::Unknown,
        }
    }

    /// Whether it enrolled, or was revoked.
    pub fn is_known(&self, node_id: &str) -> bool {
        self.lock().by_node.contains_key(node_id)
    }

    /// Resolves when nobody may speak for this node any more.
    pub async fn revoked(&self, node_id: &str) {
        let mut changes = self.subscribe();
        while !self.is_revoked(node_id) {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Whether nobody may speak for this node.
    pub fn is_revoked(&self, node_id: &str) -> bool {
        self.lock().by_node.get(node_id).is_some_and(|identity| identity.revoked_at_ms.is_some())
    }

    /// What the token of its enrolment labels a node.
    pub fn labels(&self, node_id: &str) -> Labels {
        let labels = self.lock().by_node.get(node_id).map(|identity| identity.labels.clone());
        labels.map(|json| read_labels(&json)).unwrap_or_default()
    }

    /// Tells of every change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Labels as the store keeps them.
pub fn read_labels(json: &str) -> Labels {
    serde_json::from_str(json).unwrap_or_default()
}

/// What the services know of identities: shared by all of them.
#[derive(Debug, Default)]
pub struct Identity {
    /// Who is enrolled.
    pub nodes: Identities,
    /// What signs certificates; `None`: this control plane gives none.
    pub authority: Option<Arc<Authorities>>,
    /// Grows with every change of the authorities.
    changed: watch::Sender<u64>,
}

impl Identity {
    /// Nobody is known yet.
    pub fn new(authority: Option<Arc<Authorities>>) -> Self {
        Identity { authority, ..Identity::default() }
    }

    /// Digest of the authorities; empty without any.
    pub fn authorities_sha256(&self) -> Vec<u8> {
        self.authority.as_ref().map(|authority| authority.now().sha256().to_vec()).unwrap_or_default()
    }

    /// Tells of every change of the authorities.
    pub fn authority_changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The authorities have changed.
    pub fn tell_authority(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }
}
