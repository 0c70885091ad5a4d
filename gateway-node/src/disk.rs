//! Where a node keeps files that outlive its process: folders of the machine, or, in tests, files in
//! memory that a process can be taken away from between any two steps. Every call blocks.

#[cfg(test)]
pub mod simulated;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::journal::file;

/// The files of a node.
#[derive(Debug, Clone, Default)]
pub enum Disk {
    /// Of the machine.
    #[default]
    Machine,
    /// In memory.
    #[cfg(test)]
    Simulated(simulated::Disk),
}

/// Does the same on either.
macro_rules! on {
    ($disk:expr, $machine:expr, $simulated:ident($($argument:expr),*)) => {
        match $disk {
            Disk::Machine => $machine,
            #[cfg(test)]
            Disk::Simulated(disk) => disk.$simulated($($argument),*),
        }
    };
}

impl Disk {
    /// Makes a folder, unless it is there.
    pub fn make_folder(&self, dir: &Path) -> io::Result<()> {
        on!(self, std::fs::create_dir_all(dir), make_folder())
    }

    /// The files of a folder.
    pub fn files(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        on!(self, std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect(), files(dir))
    }

    /// All bytes of a file.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        on!(self, std::fs::read(path), read(path))
    }

    /// Whether there is such a file.
    pub fn has(&self, path: &Path) -> bool {
        on!(self, path.exists(), has(path))
    }

    /// Writes a file durably: as `half`, synced, renamed.
    pub fn write(&self, path: &Path, half: &Path, bytes: &[u8]) -> io::Result<()> {
        on!(self, write(path, half, bytes), write(path, half, bytes))
    }

    /// Gives a file another name, in the place of what had it.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        on!(self, std::fs::rename(from, to), rename(from, to))
    }

    /// Gives a file a second name.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        on!(self, std::fs::hard_link(from, to), link(from, to))
    }

    /// Removes a file.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        on!(self, std::fs::remove_file(path), remove(path))
    }

    /// Makes the names in a folder durable.
    pub fn sync(&self, dir: &Path) -> io::Result<()> {
        on!(self, File::open(dir)?.sync_all(), sync())
    }

    /// Creates a file that is only appended to.
    pub fn create(&self, path: &Path) -> io::Result<Appended> {
        on!(self, file::create(path).map(Appended::Machine), create(path))
    }
}

fn write(path: &Path, half: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(half)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(half, path)?;
    path.parent().map_or(Ok(()), |dir| Disk::Machine.sync(dir))
}

/// A file that is appended to by many at once.
#[derive(Debug)]
pub enum Appended {
    /// Of the machine.
    Machine(File),
    /// In memory.
    #[cfg(test)]
    Simulated(simulated::Disk, PathBuf),
}

impl Appended {
    /// Appends all of it at once.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Appended::Machine(file) => file::append(file, bytes),
            #[cfg(test)]
            Appended::Simulated(disk, path) => disk.append(path, bytes),
        }
    }
}
