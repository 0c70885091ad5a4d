//! Backups of a control plane that runs: a copy is made and checked beside the database, and goes away with whoever
//! asked for it; a backup that comes back is checked before it replaces anything, and the fleet is told.

use std::path::{Path, PathBuf};

use common::snapshot::hex;
use serde_json::{Value, json};

use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
pub use crate::store::backup::{BackupFault, Restored};
use crate::store::entry::LogHead;

/// What copies in the data folder are called. None of them outlives the process for long: a start removes them.
pub const PREFIX: &str = "copy-";

/// A file in the data folder that goes away with this.
#[derive(Debug)]
pub struct Copy(PathBuf);

impl Copy {
    /// A new, empty file that only its owner reads.
    pub fn new(dir: &Path) -> Result<Self, BackupFault> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = dir.join(format!("{PREFIX}{}", uuid::Uuid::now_v7()));
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Copy(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SQLite keeps files of its own beside one that it has open.
        for beside in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.0.clone().into_os_string();
            path.push(beside);
            drop(std::fs::remove_file(path));
        }
    }
}

/// Removes what copies a killed process left behind. The data folder must be held.
pub fn clean(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes a copy of everything that is kept. It changes nothing, and is told all the same: whoever has it knows all.
pub async fn create(plane: &Plane, caller: &Caller) -> Result<Copy, Error> {
    let copy = Copy::new(&plane.store.folder()?)?;
    plane.store.copy_to(copy.path()).await?;
    plane.store.note(&plane.entry(caller, "backup.create", "")).await?;
    Ok(copy)
}

/// Where a backup that comes in is to be written.
pub fn receive(plane: &Plane) -> Result<Copy, Error> {
    Ok(Copy::new(&plane.store.folder()?)?)
}

/// Puts a backup in the place of everything that is kept; nodes obey it.
pub async fn restore(plane: &Plane, copy: &Copy, caller: &Caller) -> Result<Restored, Error> {
    let entry = |restored: &Restored, replaced: &LogHead| {
        let Restored { epoch, revision, keeps_log } = restored;
        let after = json!({"epoch": epoch, "revision": revision});
        let sha256 = hex(&replaced.sha256);
        let before =
            if *keeps_log { Value::Null } else { json!({"log_entries": replaced.seq, "log_sha256": sha256}) };
        plane.entry(caller, "backup.restore", epoch.to_string()).with(&before, &after)
    };
    let restored = plane.store.put_back(copy.path(), plane.clock.now_ms(), entry).await?;
    let Restored { epoch, revision, .. } = restored;
    let author = &caller.name;
    tracing::info!(epoch, revision, author, "a backup was restored: revision {revision} in epoch {epoch}");
    plane.tell().await;
    Ok(restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;
    use crate::access::known::Found;
    use crate::access::tokens::{self, New};
    use crate::observed::fixture::{CATALOG, Fixture};
    use crate::revision::{Apply, apply};

    fn dearer() -> String {
        CATALOG.replace("output = \"8.00\"", "output = \"9.00\"")
    }

    fn files(plane: &Plane) -> Vec<String> {
        let entries = std::fs::read_dir(plane.store.folder().unwrap()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.starts_with(PREFIX));
        names
    }

    #[tokio::test]
    async fn what_was_kept_comes_back_and_begins_an_epoch_that_nodes_obey() {
        let (fixture, caller) = (Fixture::with_catalog().await, Caller::bootstrap());
        let plane = &fixture.plane;
        let key = crate::keys::create(plane, &caller, "app").await.unwrap().key;
        fixture.count(1, 0, &[("direct", "ok", 3)], &[("served", 3)]).await;
        let copy = create(plane, &Caller::bootstrap()).await.unwrap();
        let before = plane.wanted().unwrap().target.epoch;
        apply(plane, Apply::of(dearer(), caller.clone())).await.unwrap();
        crate::keys::revoke(plane, &caller, &key.id).await.unwrap();
        fixture.count(2, 0, &[("direct", "ok", 4)], &[("served", 4)]).await;

        let restored = restore(plane, &copy, &Caller::bootstrap()).await.unwrap();
        assert_eq!(restored.revision, 1);
        let wanted = plane.wanted().unwrap();
        assert!(wanted.target.epoch > before, "nodes take what is older than what they run");
        assert_eq!((wanted.target.epoch, wanted.revision()), (restored.epoch, 1));
        let keys = crate::keys::list(plane).await.unwrap();
        assert_eq!((keys.len(), keys[0].revoked_at_ms), (1, None));
        let counted = plane.store.windows(0, u64::MAX, None).await.unwrap();
        assert_eq!(counted.requests.iter().map(|row| row.count).sum::<u64>(), 3);
        let next = apply(plane, Apply::of(dearer(), caller.clone())).await.unwrap();
        assert_eq!(next.revision.number, 2, "and everything goes on from there");
        let walked = crate::audit::walk(plane, None).await.unwrap();
        assert_eq!(
            (walked.broken, walked.through.seq),
            (None, 7),
            "no entry of the log is lost; the copy and the restore are in it"
        );
        drop(copy);
        assert_eq!(files(plane), Vec::<String>::new(), "a copy goes away with whoever asked for it");
    }

    #[tokio::test]
    async fn a_token_that_was_made_after_the_backup_is_none_any_more_also_in_memory() {
        let (fixture, caller) = (Fixture::with_catalog().await, Caller::bootstrap());
        let plane = &fixture.plane;
        let copy = create(plane, &caller).await.unwrap();
        let new = |name| New { name, role: Role::Viewer, ttl: None };
        let lost = tokens::create(plane, &caller, new("lost")).await.unwrap().secret;
        let known = async |secret: &str| {
            plane.access.refresh(&plane.store).await.unwrap();
            plane.access.find(&plane.store, secret.as_bytes(), plane.clock.now_ms()).await.unwrap()
        };
        assert!(matches!(known(&lost).await, Found::Valid(_)));
        restore(plane, &copy, &caller).await.unwrap();
        // As many changes as before: their number alone does not tell one list from the other.
        let next = tokens::create(plane, &caller, new("next")).await.unwrap().secret;
        assert!(matches!(known(&next).await, Found::Valid(_)));
        assert_eq!(known(&lost).await, Found::Unknown);
    }

    #[tokio::test]
    async fn a_log_that_the_backup_does_not_go_on_from_gives_way_to_its_own_and_is_told() {
        let lost = Fixture::with_catalog().await;
        let backup = create(&lost.plane, &Caller::bootstrap()).await.unwrap();
        let fixture = Fixture::unread().await;
        let plane = &fixture.plane;
        crate::keys::create(plane, &Caller::bootstrap(), "app").await.unwrap();
        restore(plane, &backup, &Caller::bootstrap()).await.unwrap();
        let walked = crate::audit::walk(plane, None).await.unwrap();
        assert_eq!(
            (walked.broken, walked.through.seq),
            (None, 2),
            "that of the backup, and what was done now"
        );
        let ask = crate::store::entry::Ask { before: u64::MAX, limit: 1, ..Default::default() };
        let log = plane.store.log(&ask).await.unwrap();
        assert_eq!(log[0].entry.action, "backup.restore");
        let before = log[0].entry.before.as_deref().unwrap();
        assert!(before.starts_with("{\"log_entries\":1,"), "{before}");
    }

    #[tokio::test]
    async fn what_is_no_backup_is_refused_and_changes_nothing() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let whole = create(plane, &Caller::bootstrap()).await.unwrap();
        let bytes = std::fs::read(whole.path()).unwrap();
        let refused = async |bytes: &[u8]| {
            let copy = receive(plane).unwrap();
            std::fs::write(copy.path(), bytes).unwrap();
            match restore(plane, &copy, &Caller::bootstrap()).await {
                Err(Error::Backup(fault)) => fault,
                other => panic!("{other:?}"),
            }
        };
        assert!(matches!(refused(b"").await, BackupFault::NotABackup));
        assert!(matches!(
            refused(&b"no database, and longer than its head ".repeat(40)).await,
            BackupFault::NotABackup
        ));
        let mut torn = bytes.clone();
        torn.truncate(bytes.len() / 2);
        assert!(matches!(refused(&torn).await, BackupFault::Damaged(_)), "a half of it");
        let mut changed = bytes.clone();
        let middle = changed.len() / 2 / 4096 * 4096;
        changed[middle..middle + 4096].fill(0xa5);
        assert!(matches!(refused(&changed).await, BackupFault::Damaged(_)), "a page of rubbish");

        fixture.execute("insert into migration (version, at_ms) values (9999, 1)").await;
        let newer = create(plane, &Caller::bootstrap()).await.unwrap();
        fixture.execute("delete from migration where version = 9999").await;
        let fault = refused(&std::fs::read(newer.path()).unwrap()).await;
        assert!(matches!(fault, BackupFault::Newer { found: 9999, .. }), "{fault}");
        assert_eq!(plane.store.heads().await.unwrap().epoch, plane.wanted().unwrap().target.epoch);
        drop((whole, newer));
        assert_eq!(files(plane), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let fixture = Fixture::with_catalog().await;
        let folder = fixture.plane.store.folder().unwrap();
        std::mem::forget(create(&fixture.plane, &Caller::bootstrap()).await.unwrap());
        assert_eq!(files(&fixture.plane).len(), 1);
        clean(&folder).unwrap();
        assert_eq!(files(&fixture.plane), Vec::<String>::new());
        assert!(folder.join("sluice.db").exists());
    }
}
