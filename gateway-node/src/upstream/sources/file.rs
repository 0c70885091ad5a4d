//! One file with a credential: what was seen of it, and the last good content.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use common::secret::{SECRET_BYTES_MAX, Secret};
use zeroize::Zeroizing;

use super::Found;

/// What tells one content from another without reading it. A link counts as what it leads to, so that a folder that is
/// swapped under it (as Kubernetes does) is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let meta = std::fs::metadata(path)?;
        Ok(Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

/// A file that is looked at again and again.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Of what was read last; none while it could not be read.
    stamp: Option<Stamp>,
    /// The last content that was a credential.
    good: Option<Secret>,
    fault: Option<String>,
}

impl Watched {
    /// Whether the file is the one that was read last.
    pub(super) fn is_as_seen(&self, path: &Path) -> bool {
        self.stamp.is_some() && Stamp::of(path).ok() == self.stamp
    }

    /// Reads the file. Returns whether it has another credential now, or another fault.
    pub(super) fn look(&mut self, path: &Path) -> bool {
        // Before the content: what is written in between is another stamp the next time.
        self.stamp = Stamp::of(path).ok();
        let (read, fault) = match read(path) {
            Ok(secret) => (Some(secret), None),
            Err(fault) => (None, Some(fault)),
        };
        let is_other = fault != self.fault || (read.is_some() && read != self.good);
        self.fault = fault;
        self.good = read.or(self.good.take());
        is_other
    }

    /// What there is now.
    pub(super) fn found(&self, path: &str) -> Found {
        let fault = self.fault.as_ref().map(|fault| format!("the file {path} {fault}"));
        Found { secret: self.good.clone(), fault }
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    use std::io::Read as _;
    // So much at most, whatever lies there, and nothing of it is left behind by a buffer that grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * SECRET_BYTES_MAX));
    let file = std::fs::File::open(path)
        .and_then(|file| file.take(2 * SECRET_BYTES_MAX as u64 - 1).read_to_end(&mut bytes));
    file.map_err(|error| format!("cannot be read on this node: {error}"))?;
    Secret::parse_bytes(&bytes).map_err(|unusable| unusable.to_string())
}
