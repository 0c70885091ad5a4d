//! Files in memory that outlive the process that wrote them. Each change is one step; before any of them the process can
//! be made to die, so that every later call fails and what was written stays as it is. A write that is cut leaves half of
//! what it wrote, under the name that half-written files have.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Appended;

/// The disk of one node. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Steps that the process still does; none for all.
    left: Option<u32>,
    is_dead: bool,
}

impl Content {
    /// Does a step, unless the process is gone.
    fn step(&mut self) -> io::Result<()> {
        self.alive()?;
        match &mut self.left {
            None => Ok(()),
            Some(0) => {
                self.is_dead = true;
                self.alive()
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the process is gone")) } else { Ok(()) }
    }

    fn take(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.remove(path).ok_or_else(|| absent(path))
    }
}

fn absent(path: &Path) -> io::Error {
    io::Error::new(ErrorKind::NotFound, format!("{} is not there", path.display()))
}

impl Disk {
    /// The process dies before the next step but this many.
    pub fn die_after(&self, steps: u32) {
        self.lock().left = Some(steps);
    }

    /// Whether the process has died; nothing that it does from then on is kept.
    pub fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Another process has the disk now.
    pub fn revive(&self) {
        let mut content = self.lock();
        content.left = None;
        content.is_dead = false;
    }

    pub(super) fn make_folder(&self) -> io::Result<()> {
        self.lock().alive()
    }

    pub(super) fn files(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let content = self.lock();
        content.alive()?;
        Ok(content.files.keys().filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let content = self.lock();
        content.alive()?;
        content.files.get(path).cloned().ok_or_else(|| absent(path))
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.lock().files.contains_key(path)
    }

    pub(super) fn write(&self, path: &Path, half: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.lock();
        content.step()?;
        content.files.insert(half.to_owned(), bytes[..bytes.len() / 2].to_owned());
        content.step()?;
        content.files.insert(half.to_owned(), bytes.to_owned());
        content.step()?;
        let whole = content.take(half)?;
        content.files.insert(path.to_owned(), whole);
        Ok(())
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut content = self.lock();
        content.step()?;
        let moved = content.take(from)?;
        content.files.insert(to.to_owned(), moved);
        Ok(())
    }

    pub(super) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut content = self.lock();
        content.step()?;
        let linked = content.files.get(from).cloned().ok_or_else(|| absent(from))?;
        content.files.insert(to.to_owned(), linked);
        Ok(())
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut content = self.lock();
        content.step()?;
        content.take(path).map(drop)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.lock().alive()
    }

    pub(super) fn create(&self, path: &Path) -> io::Result<Appended> {
        let mut content = self.lock();
        content.step()?;
        if content.files.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        content.files.insert(path.to_owned(), Vec::new());
        Ok(Appended::Simulated(self.clone(), path.to_owned()))
    }

    pub(super) fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.lock();
        content.step()?;
        content.files.get_mut(path).ok_or_else(|| absent(path))?.extend_from_slice(bytes);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_did_before_it_died_stays_and_nothing_after_it() {
        let (path, half) = (Path::new("d/a"), Path::new("d/a.tmp"));
        let left = |steps: u32| {
            let disk = Disk::default();
            disk.write(path, half, b"old!").unwrap();
            disk.die_after(steps);
            let is_written = disk.write(path, half, b"new!").is_ok();
            assert_eq!(disk.is_dead(), !is_written);
            assert_eq!(disk.read(path).is_ok(), is_written, "nothing is done after it");
            disk.revive();
            let read = |path| disk.read(path).ok().map(|bytes| String::from_utf8(bytes).unwrap());
            (read(path).unwrap(), read(half))
        };
        assert_eq!(left(0), ("old!".into(), None));
        assert_eq!(left(1), ("old!".into(), Some("ne".into())));
        assert_eq!(left(2), ("old!".into(), Some("new!".into())));
        assert_eq!(left(3), ("new!".into(), None));
    }
}
