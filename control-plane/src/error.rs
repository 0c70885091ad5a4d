//! What can go wrong for somebody who asks. `grpc/status.rs` says it in gRPC's words.

use common::catalog::Fault;

use crate::secrets::keyring::OpenFault;
use crate::store::StoreError;
use crate::store::backup::BackupFault;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog has faults; these are all of them.
    #[error("the catalog has {} faults", .0.len())]
    Catalog(Vec<Fault>),
    /// A field of the request is not what it must be.
    #[error("{field}: {message}")]
    Argument {
        /// The request's field.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Somebody else was faster: the current revision is another one than the author believes.
    #[error("expected revision {expected}, but the current one is {current}")]
    Conflict {
        /// What the author believes to be current.
        expected: u64,
        /// What is.
        current: u64,
    },
    /// The idempotency key names a change that was made already, and it was another one.
    #[error("the idempotency key was used already, for revision {revision} with another document")]
    KeyTaken {
        /// What was made under it.
        revision: u64,
    },
    /// Who asks may not have it.
    #[error("{0}")]
    Denied(String),
    /// It is asked for at a time or of somebody of whom it cannot be had.
    #[error("{0}")]
    Unfit(String),
    /// There is no such thing.
    #[error("no such {what}: {name}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Something that is served needs it.
    #[error("the {what} {name} is used by {by}")]
    InUse {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// Who needs it.
        by: String,
    },
    /// A secret cannot be opened.
    #[error(transparent)]
    Secret(#[from] OpenFault),
    /// What was shown proves nothing.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// It is known who asks, and it is not for them.
    #[error("{0}")]
    Forbidden(&'static str),
    /// This control plane is not set up for it.
    #[error("{0}")]
    Precondition(&'static str),
    /// The store is away or failed.
    #[error("the database is not available at the moment: nodes serve on meanwhile; try again")]
    Store(#[from] StoreError),
    /// There is no backup, or it cannot be put back.
    #[error(transparent)]
    Backup(#[from] BackupFault),
    /// Others were faster, again and again.
    #[error("too many changes at the same time; try again")]
    Busy,
    /// Nothing was read from the store yet.
    #[error("the control plane is not ready yet")]
    NotReady,
    /// Something that cannot be is.
    #[error("{0}")]
    Broken(&'static str),
}
