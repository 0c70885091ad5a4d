//! Where credentials come from: the environment, files, the secrets of the control plane. Files are looked at again and
//! again, and what was once good in one is shown on for as long as the file is not: a credential that is being replaced is
//! no reason to send nothing. Off the path of requests, which have their credential in the table.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use common::sealed::Secrets;
use common::secret::Secret;

use file::Watched;

/// What there is for a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The credential; perhaps the last good one.
    pub secret: Option<Secret>,
    /// What is wrong, in words that hold nothing of it.
    pub fault: Option<String>,
}

impl Found {
    fn good(secret: Secret) -> Self {
        Found { secret: Some(secret), fault: None }
    }

    fn none(fault: impl Into<String>) -> Self {
        Found { secret: None, fault: Some(fault.into()) }
    }
}

/// The sources of this node.
#[derive(Debug, Default)]
pub struct Sources {
    files: Mutex<BTreeMap<PathBuf, Watched>>,
    /// Somebody who wanted to know a credential found another one, and nobody has looked since.
    is_touched: AtomicBool,
    secrets: ArcSwap<Secrets>,
}

impl Sources {
    /// The credential that a reference of the catalog names. A file is read.
    pub fn find(&self, reference: &str) -> Found {
        match reference.split_once(':') {
            // The environment of a process does not change while it runs.
            Some(("env", name)) => match std::env::var(name) {
                Err(_) => Found::none(format!("the environment variable {name} is not set on this node")),
                Ok(text) => Secret::parse(&text).map_or_else(
                    |unusable| Found::none(format!("what {reference} gives {unusable}")),
                    Found::good,
                ),
            },
            Some(("file", path)) => {
                let mut files = lock(&self.files);
                let is_known = files.contains_key(Path::new(path));
                let file = files.entry(PathBuf::from(path)).or_default();
                let is_other = file.look(Path::new(path));
                self.is_touched.fetch_or(is_known && is_other, Ordering::Relaxed);
                file.found(path)
            }
            Some(("secret", name)) => match self.secrets.load().get(name) {
                Some(secret) => Found::good(secret.clone()),
                None => Found::none(format!(
                    "the control plane gave this node no secret {name:?}; it gives them over mutual TLS alone, to nodes \
                     with a certificate of their own"
                )),
            },
            _ => Found::none("this version resolves env:NAME, file:PATH and secret:NAME only"),
        }
    }

    /// Takes the secrets of the control plane, in place of those before.
    pub fn give(&self, secrets: Secrets) {
        self.secrets.store(Arc::new(secrets));
    }

    /// Looks at every file that is in use, and reads those that changed. Returns whether one has another credential now,
    /// or another fault.
    pub fn look(&self) -> bool {
        let mut files = lock(&self.files);
        let mut is_changed = false;
        for (path, file) in files.iter_mut() {
            is_changed |= !file.is_as_seen(path) && file.look(path);
        }
        self.is_touched.swap(false, Ordering::Relaxed) || is_changed
    }

    /// Forgets files that none of these references names.
    pub fn retain<'a>(&self, references: impl Iterator<Item = &'a str>) {
        let used: Vec<&Path> =
            references.filter_map(|one| one.strip_prefix("file:")).map(Path::new).collect();
        lock(&self.files).retain(|path, _| used.contains(&path.as_path()));
    }
}

// A poisoned lock is taken over: the state behind it is whole after each call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
