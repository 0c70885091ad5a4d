//! The secrets as a process holds them: sealed as they are kept, and whether it could open them. They are opened for the
//! moment in which they are sealed for a node.

use std::sync::Arc;

use common::hpke::{HpkeFault, Recipient};
use common::pb::fleet as pb;
use common::sealed::{self, Secrets};
use common::snapshot::digest;

use super::keyring::{Keyring, OpenFault};
use crate::revision::encoded::Part;
use crate::store::rows::SealedSecret;

/// The list of secrets of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The version of the list, and a digest of what is kept sealed: it says nothing of the values.
    pub part: Part,
    rows: Arc<[SealedSecret]>,
    fault: Option<OpenFault>,
}

/// Why there is nothing to send to a node.
#[derive(Debug, thiserror::Error)]
pub enum SealFault {
    /// What is kept does not open.
    #[error(transparent)]
    Open(#[from] OpenFault),
    /// It cannot be sealed for this node.
    #[error("the secrets cannot be sealed for the node's key")]
    Seal(#[from] HpkeFault),
}

impl Held {
    /// The list as it is kept. Each value is opened once, so that it is known whether all of them can be.
    pub fn of(version: u64, rows: Vec<SealedSecret>, keyring: &Keyring) -> Self {
        let mut all = Vec::new();
        for row in &rows {
            for bytes in [row.name.as_bytes(), &row.version.to_be_bytes(), &row.sealed] {
                // A length before each, so that no two lists give the same bytes.
                all.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
                all.extend_from_slice(bytes);
            }
        }
        let fault = rows.iter().find_map(|row| keyring.open(row).err());
        Held { part: Part { version, sha256: digest(&all) }, rows: rows.into(), fault }
    }

    /// An empty list.
    #[cfg(test)]
    pub fn none() -> Self {
        Held::of(1, Vec::new(), &Keyring::default())
    }

    /// Why not all of them can be opened here. Nothing is sent then: without one of them, its channels would be out.
    pub fn fault(&self) -> Option<&OpenFault> {
        self.fault.as_ref()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many another key than this one has sealed.
    pub fn sealed_otherwise(&self, key_id: &str) -> usize {
        self.rows.iter().filter(|row| row.key_id != key_id).count()
    }

    /// Seals all of them for one node.
    pub fn seal_for(
        &self,
        keyring: &Keyring,
        to: &Recipient,
        node_id: &str,
    ) -> Result<pb::SealedSecrets, SealFault> {
        let opened = self.rows.iter().map(|row| Ok((row.name.clone(), keyring.open(row)?)));
        let secrets: Secrets = opened.collect::<Result<_, OpenFault>>()?;
        Ok(sealed::seal(to, node_id, self.part.version, &self.part.sha256, &secrets)?)
    }
}
