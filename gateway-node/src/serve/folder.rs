//! The data folder: one process at a time, the node's id, `listen.json`.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use common::id::NodeId;
use common::listen::listen_json;

use super::Addresses;

/// A folder that this process has for itself until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Holds the lock; the kernel gives it back however the process ends.
    _lock: File,
}

impl Folder {
    /// Creates the folder if need be and locks it. What an earlier run said of its listeners is gone
    /// when this returns.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let lock = File::options().create(true).append(true).open(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let folder = Folder { path: path.to_path_buf(), _lock: lock };
        folder.remove_listen();
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The id in the folder; made the first time.
    pub(super) fn node_id(&self) -> io::Result<NodeId> {
        let path = self.path.join("node.id");
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let id = uuid::Uuid::new_v4().to_string();
        self.write("node.id", &format!("{id}\n"))?;
        Ok(id.into())
    }

    /// Says where the listeners stand, for scripts.
    pub(super) fn write_listen(&self, addresses: Addresses) -> io::Result<()> {
        self.write("listen.json", &listen_json(&[("data", addresses.data), ("ops", addresses.ops)]))
    }

    /// There are no listeners any more.
    pub(super) fn remove_listen(&self) {
        if let Err(error) = std::fs::remove_file(self.path.join("listen.json"))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "a stale listen.json cannot be removed");
        }
    }

    /// Readers see the whole file or none.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let half = self.path.join(format!("{name}.tmp"));
        std::fs::write(&half, text)?;
        std::fs::rename(half, self.path.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_for_one_process_and_keeps_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let id = folder.node_id().unwrap();
        assert!(Folder::open(dir.path()).unwrap_err().to_string().contains("another process"));
        drop(folder);
        assert_eq!(Folder::open(dir.path()).unwrap().node_id().unwrap(), id);
    }

    #[test]
    fn what_an_earlier_run_said_of_its_listeners_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let at = "127.0.0.1:1".parse().unwrap();
        Folder::open(dir.path()).unwrap().write_listen(Addresses { data: at, ops: at }).unwrap();
        assert!(dir.path().join("listen.json").exists());
        let folder = Folder::open(dir.path()).unwrap();
        assert!(!dir.path().join("listen.json").exists());
        drop(folder);
    }
}
