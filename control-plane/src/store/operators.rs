//! The store's tokens of operators.

use super::entry::Entry;
use super::rows::AdminToken;
use super::{Store, StoreError, postgres, soon, sqlite};

impl Store {
    /// Keeps a new token of an operator, and moves the version of their list.
    pub async fn insert_admin_token(&self, token: &AdminToken, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, access::insert(token, entry));
        Ok(())
    }

    /// Revokes a token that is not revoked, and moves the version. Returns the token, if there is one.
    pub async fn revoke_admin_token(
        &self,
        id: &str,
        now_ms: u64,
        entry: &Entry,
    ) -> Result<Option<AdminToken>, StoreError> {
        Ok(call!(self.write, access::revoke(id, now_ms, entry)))
    }

    /// The version of the list of tokens.
    pub async fn access_version(&self) -> Result<u64, StoreError> {
        Ok(call!(self.read, access::version()))
    }

    /// Every token that ever was, oldest first.
    pub async fn admin_tokens(&self) -> Result<Vec<AdminToken>, StoreError> {
        Ok(call!(self.read, access::list()))
    }

    /// Notes when tokens were last used.
    pub async fn admin_tokens_used(&self, uses: &[(String, u64)]) -> Result<(), StoreError> {
        call!(self.write, access::used(uses));
        Ok(())
    }
}
