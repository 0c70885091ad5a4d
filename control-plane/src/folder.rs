//! The data folder: held by one process at a time, with the two tokens and `listen.json` in it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::keys::random_text;

/// A token that people have thought of is this long at least.
pub const TOKEN_CHARS_MIN: usize = 16;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderFault {
    /// Another process holds it.
    #[error("the data folder {} is in use by another control plane", .0.display())]
    InUse(PathBuf),
    /// A file could not be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A token that would let everybody in.
    #[error("the token file {} is empty; remove it to have a new one made", .0.display())]
    EmptyToken(PathBuf),
    /// A token that somebody could guess.
    #[error("the token in {} has less than {TOKEN_CHARS_MIN} characters", .0.display())]
    ShortToken(PathBuf),
}

/// Reads a token that the settings name the file of.
pub fn given_token(path: &Path) -> Result<String, FolderFault> {
    let path = path.to_owned();
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().len() < TOKEN_CHARS_MIN => Err(FolderFault::ShortToken(path)),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(FolderFault::Io { path, source }),
    }
}

/// The data folder, locked until this is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is not there, and locks it.
    pub fn open(path: &Path) -> Result<Self, FolderFault> {
        let fault = |path: &Path, source| FolderFault::Io { path: path.to_owned(), source };
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| fault(path, source))?;
        let file = path.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&file);
        let lock = lock.map_err(|source| fault(&file, source))?;
        match lock.try_lock() {
            Ok(()) => {
                crate::backup::clean(path).map_err(|source| fault(path, source))?;
                Ok(Folder { path: path.to_owned(), _lock: lock })
            }
            Err(std::fs::TryLockError::WouldBlock) => Err(FolderFault::InUse(path.to_owned())),
            Err(std::fs::TryLockError::Error(source)) => Err(fault(&file, source)),
        }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a token, and makes it at the first start. Its path is logged, its text never.
    pub fn token(&self, name: &str) -> Result<String, FolderFault> {
        let path = self.path.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => Err(FolderFault::EmptyToken(path)),
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = random_text();
                self.write(name, &format!("{text}\n"))?;
                tracing::info!(path = %path.display(), "token made: {}", path.display());
                Ok(text)
            }
            Err(source) => Err(FolderFault::Io { path, source }),
        }
    }

    /// Writes a file whole or not at all, for the owner's eyes only.
    pub fn write(&self, name: &str, content: &str) -> Result<(), FolderFault> {
        write(&self.path, name, content, 0o600)
    }

    /// Removes a file that an earlier process left.
    pub fn remove(&self, name: &str) -> Result<(), FolderFault> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FolderFault::Io { path, source }),
            _ => Ok(()),
        }
    }
}

/// Writes a file of a folder whole or not at all, with this mode.
pub fn write(folder: &Path, name: &str, content: &str, mode: u32) -> Result<(), FolderFault> {
    let path = folder.join(name);
    let new = folder.join(format!("{name}.new"));
    let write = || {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(&new)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| FolderFault::Io { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let first = Folder::open(&path).unwrap().token("admin.token").unwrap();
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.token("admin.token").unwrap(), first);
        assert_ne!(folder.token("node.token").unwrap(), first);
        let mode = std::fs::metadata(path.join("admin.token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_process_at_a_time_holds_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let held = Folder::open(dir.path()).unwrap();
        assert!(matches!(Folder::open(dir.path()), Err(FolderFault::InUse(_))));
        drop(held);
        assert!(Folder::open(dir.path()).is_ok());
    }

    #[test]
    fn a_token_that_is_given_is_read_and_must_not_be_guessed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(matches!(given_token(&path), Err(FolderFault::Io { .. })));
        std::fs::write(&path, "  short \n").unwrap();
        assert!(matches!(given_token(&path), Err(FolderFault::ShortToken(_))));
        std::fs::write(&path, "  a-token-of-some-length \n").unwrap();
        assert_eq!(given_token(&path).unwrap(), "a-token-of-some-length");
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("admin.token"), "\n").unwrap();
        assert!(matches!(
            Folder::open(dir.path()).unwrap().token("admin.token"),
            Err(FolderFault::EmptyToken(_))
        ));
    }
}
