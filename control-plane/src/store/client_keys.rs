//! The store's keys of applications.

use common::snapshot::Sha;

use super::entry::Entry;
use super::rows::Key;
use super::{Store, StoreError, postgres, soon, sqlite};

impl Store {
    /// Keeps a new key, and moves the version of the list.
    pub async fn insert_key(&self, key: &Key, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, keys::insert(key, entry));
        Ok(())
    }

    /// Revokes a key that is valid, and moves the version. Returns the key, if there is one. Nothing is logged where
    /// nothing changes.
    pub async fn revoke_key(&self, id: &str, now_ms: u64, entry: &Entry) -> Result<Option<Key>, StoreError> {
        Ok(call!(self.write, keys::revoke(id, now_ms, entry)))
    }

    /// Every key that ever was, by id, and the version of this list.
    pub async fn keys(&self) -> Result<(u64, Vec<Key>), StoreError> {
        Ok(call!(self.read, keys::list()))
    }

    /// The id of the valid client key with this digest.
    pub async fn valid_key(&self, sha256: &Sha) -> Result<Option<String>, StoreError> {
        Ok(call!(self.read, keys::valid(sha256)))
    }
}
