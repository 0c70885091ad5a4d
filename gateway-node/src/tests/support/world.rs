//! What a node in a test stands on: the folder of its counters, and dialing that does not come about, in the words of
//! the parts of the real connector.

use std::error::Error;
use std::io;

/// What keeps a connection from coming about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    Refused,
    /// Its name does not resolve.
    Unresolved,
    /// The TLS handshake fails.
    Untrusted,
    /// Nothing comes back.
    Silent,
}

impl Unreachable {
    /// The error that dialing ends with, if it ends.
    pub async fn error(self) -> Box<dyn Error + Send + Sync> {
        match self {
            Unreachable::Refused => io::Error::from(io::ErrorKind::ConnectionRefused).into(),
            Unreachable::Unresolved => "dns error".into(),
            Unreachable::Untrusted => io::Error::other(rustls::Error::DecryptError).into(),
            Unreachable::Silent => std::future::pending().await,
        }
    }
}

/// A folder in memory where there is one: what is written durably need not wait for a disk.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
