//! What the store keeps of the nodes' identities and of the tokens by which they enrol.

use super::entry::Entry;
use super::rows::{Enrol, Enrolled, EnrolmentToken, NodeIdentity};
use super::{DONE_WITHIN, Store, StoreError, fenced, postgres, soon, sqlite, within};

impl Store {
    /// Keeps a new token for enrolment, by its digest.
    pub async fn insert_token(
        &self,
        token: &EnrolmentToken,
        sha256: &[u8; 32],
        entry: &Entry,
    ) -> Result<(), StoreError> {
        call!(self.write, identity::insert_token(token, sha256, entry));
        Ok(())
    }

    /// Every token for enrolment, oldest first.
    pub async fn tokens(&self) -> Result<Vec<EnrolmentToken>, StoreError> {
        Ok(call!(self.read, identity::tokens()))
    }

    /// Revokes a token that is not revoked. Returns the token, if there is one.
    pub async fn revoke_token(
        &self,
        id: &str,
        now_ms: u64,
        entry: &Entry,
    ) -> Result<Option<EnrolmentToken>, StoreError> {
        Ok(call!(self.write, identity::revoke_token(id, now_ms, entry)))
    }

    /// Removes tokens that were over before `before_ms`.
    pub async fn forget_tokens(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, identity::forget_tokens(leader, before_ms))
    }

    /// Uses a token and keeps the identity of the node that showed it, both or neither.
    pub async fn enrol(&self, enrol: &Enrol, entry: &Entry) -> Result<Enrolled, StoreError> {
        Ok(call!(self.write, identity::enrol(enrol, entry)))
    }

    /// Keeps a newer certificate for a node's key. Returns false where that is not its key, or it is revoked.
    pub async fn renew_identity(&self, renewed: &Enrol) -> Result<bool, StoreError> {
        Ok(call!(self.write, identity::renew(renewed)))
    }

    /// Revokes a node, whether it ever enrolled or not.
    pub async fn revoke_identity(&self, node_id: &str, now_ms: u64, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, identity::revoke(node_id, now_ms, entry));
        Ok(())
    }

    /// Tells of a change that is made outside of the database.
    pub async fn note(&self, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, identity::note(entry));
        Ok(())
    }

    /// Moves with every enrolment and revocation.
    pub async fn identities_version(&self) -> Result<u64, StoreError> {
        Ok(call!(self.read, identity::version()))
    }

    /// Every node that enrolled or is revoked, by id.
    pub async fn identities(&self) -> Result<Vec<NodeIdentity>, StoreError> {
        Ok(call!(self.read, identity::list()))
    }
}
