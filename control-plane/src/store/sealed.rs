//! What the store keeps of secrets: nothing that it could read.

use super::entry::Entry;
use super::rows::SealedSecret;
use super::{Store, StoreError, postgres, soon, sqlite};

impl Store {
    /// Every secret, by name, and the version of this list.
    pub async fn secrets(&self) -> Result<(u64, Vec<SealedSecret>), StoreError> {
        Ok(call!(self.read, secrets::list()))
    }

    /// Keeps secrets in place of those of the same names, and moves the version of the list from `seen` to `next`.
    /// Returns false if somebody else has moved it since.
    pub async fn set_secrets(
        &self,
        seen: u64,
        next: u64,
        secrets: &[SealedSecret],
        entry: &Entry,
    ) -> Result<bool, StoreError> {
        Ok(call!(self.write, secrets::set(seen, next, secrets, entry)))
    }

    /// Removes a secret, likewise.
    pub async fn delete_secret(
        &self,
        seen: u64,
        next: u64,
        name: &str,
        entry: &Entry,
    ) -> Result<bool, StoreError> {
        Ok(call!(self.write, secrets::delete(seen, next, name, entry)))
    }
}
