//! A copy of a SQLite database while it is in use, and the way back: all tables take the content of a backup in one
//! transaction, so that nobody has to stop. PostgreSQL has tools of its own for both.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use super::convert::{from_db, sha, to_db};
use super::entry::{Entry, LogHead};
use super::sqlite::queries::audit;
use super::{SCHEMA, Store, StoreError, sqlite};

/// Why there is no backup, or why it is not put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupFault {
    /// The data are not in SQLite.
    #[error("this control plane keeps its data in PostgreSQL: use pg_dump and pg_restore")]
    NotSqlite,
    /// The file is not what a control plane keeps.
    #[error("this is no backup of a control plane")]
    NotABackup,
    /// It is, and it is damaged.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// It was made by a program that keeps more than this one knows.
    #[error(
        "the backup was made by a newer version (its database has version {found}, this program knows {known})"
    )]
    Newer {
        /// Migrations in it.
        found: u64,
        /// Migrations of this program.
        known: u64,
    },
    /// What was sent is not what its end says.
    #[error("the backup did not come whole: {0}")]
    NotWhole(&'static str),
    /// A file could not be written or read.
    #[error("the copy cannot be written or read")]
    File(#[from] std::io::Error),
    /// The database itself failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for BackupFault {
    fn from(error: sqlx::Error) -> Self {
        BackupFault::Store(error.into())
    }
}

/// What a database holds after a backup was put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The epoch that begins with it.
    pub epoch: u64,
    /// The revision that is current now; 0 for none.
    pub revision: u64,
    /// Whether the audit log goes on as it was, because it holds all of the backup's.
    pub keeps_log: bool,
}

impl Store {
    /// Writes a copy into `file`, which is empty or not there yet. Writers go on meanwhile and are not in it.
    pub async fn copy_to(&self, file: &Path) -> Result<(), BackupFault> {
        let mut connection = self.own_connection()?.connect().await?;
        sqlx::query("vacuum into $1").bind(name_of(file)?).execute(&mut connection).await?;
        connection.close().await?;
        examine(file).await.map(drop)
    }

    /// Puts the content of a backup in the place of everything that is kept, and begins an epoch above both. The file is
    /// brought up to date first. The audit log is replaced only where it does not go on from the backup's; `entry` is
    /// what it says of this, given what came of it and how the log that was here ended. Where this fails nothing has
    /// changed.
    pub async fn put_back(
        &self,
        file: &Path,
        now_ms: u64,
        entry: impl FnOnce(&Restored, &LogHead) -> Entry,
    ) -> Result<Restored, BackupFault> {
        let options = self.own_connection()?;
        let (found, known) = (examine(file).await?, SCHEMA);
        if found > known {
            return Err(BackupFault::Newer { found, known });
        }
        let store = Store::Sqlite(sqlite::open(file).await?).migrated(now_ms).await?;
        store.close().await;
        let mut connection = options.connect().await?;
        sqlx::query("attach database $1 as backup").bind(name_of(file)?).execute(&mut connection).await?;
        let restored = replace_all(&mut connection, now_ms, entry).await?;
        connection.close().await?;
        Ok(restored)
    }

    /// How to open a connection that ends with what it is opened for, and with it whatever that left undone. It leaves
    /// checkpoints to the one that writes.
    fn own_connection(&self) -> Result<SqliteConnectOptions, BackupFault> {
        match self {
            Store::Sqlite(pools) => {
                let options = SqliteConnectOptions::clone(&pools.write.0.connect_options());
                Ok(options.create_if_missing(false).pragma("wal_autocheckpoint", "0"))
            }
            Store::Postgres(..) => Err(BackupFault::NotSqlite),
        }
    }
}

fn name_of(file: &Path) -> Result<&str, BackupFault> {
    file.to_str().ok_or_else(|| std::io::Error::other("the data folder's name is no text").into())
}

/// Checks every page of a copy. Returns the version of the tables in it.
async fn examine(file: &Path) -> Result<u64, BackupFault> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(false);
    let mut copy = options.connect().await.map_err(|_| BackupFault::NotABackup)?;
    let checked: Result<(String,), _> =
        sqlx::query_as("pragma integrity_check(1)").fetch_one(&mut copy).await;
    match checked {
        Ok((verdict,)) if verdict == "ok" => {}
        Ok((verdict,)) => return Err(BackupFault::Damaged(verdict)),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(NOT_A_DATABASE) => {
            return Err(BackupFault::NotABackup);
        }
        Err(error) => return Err(BackupFault::Damaged(error.to_string())),
    }
    let version: Result<(i64,), _> =
        sqlx::query_as("select max(version) from migration, plane where plane.id = 1")
            .fetch_one(&mut copy)
            .await;
    let (version,) = version.map_err(|_| BackupFault::NotABackup)?;
    copy.close().await?;
    Ok(from_db(version))
}

/// "File is not a database", of SQLite's result codes.
const NOT_A_DATABASE: &str = "26";

const TABLES: &str = "select name from main.sqlite_master
                      where type = 'table' and name not like 'sqlite_%' and name != 'migration' order by name";

/// Whether the log here holds the last entry of the backup's, and with it all that are before that.
const KEEPS_LOG: &str = "select count(*) from backup.audit_head as theirs
                         where theirs.seq = 0 or exists (
                           select 1 from main.audit as ours where ours.seq = theirs.seq and ours.sha256 = theirs.sha256)";

async fn replace_all(
    connection: &mut SqliteConnection,
    now_ms: u64,
    entry: impl FnOnce(&Restored, &LogHead) -> Entry,
) -> Result<Restored, sqlx::Error> {
    let mut tx = connection.begin_with(sqlite::BEGIN).await?;
    // Tables come in any order; what one says of another is looked at when all are there.
    sqlx::query("pragma defer_foreign_keys = on").execute(&mut *tx).await?;
    let (ours,): (i64,) = sqlx::query_as("select epoch from main.plane").fetch_one(&mut *tx).await?;
    // What is held in memory is told by the version of its list, which must be another one than any before.
    let versions: Vec<(String, i64)> =
        sqlx::query_as("select kind, version from main.part").fetch_all(&mut *tx).await?;
    let (seq, digest): (i64, Vec<u8>) =
        sqlx::query_as("select seq, sha256 from main.audit_head").fetch_one(&mut *tx).await?;
    let replaced = LogHead { seq: from_db(seq), sha256: sha(digest)? };
    let (continued,): (i64,) = sqlx::query_as(KEEPS_LOG).fetch_one(&mut *tx).await?;
    let keeps_log = continued > 0;
    let tables: Vec<(String,)> = sqlx::query_as(TABLES).fetch_all(&mut *tx).await?;
    for (table,) in tables {
        if keeps_log && (table == "audit" || table == "audit_head") {
            continue;
        }
        let columns: Vec<(String,)> =
            sqlx::query_as("select '\"' || name || '\"' from pragma_table_info($1, 'main')")
                .bind(&table)
                .fetch_all(&mut *tx)
                .await?;
        let columns = columns.into_iter().map(|(name,)| name).collect::<Vec<_>>().join(", ");
        for sql in [
            format!("delete from main.\"{table}\""),
            format!("insert into main.\"{table}\" ({columns}) select {columns} from backup.\"{table}\""),
        ] {
            // Names of our own tables and columns.
            sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await?;
        }
    }
    for (kind, ours) in versions {
        let sql = "update main.part set version = version + $2 where kind = $1";
        sqlx::query(sql).bind(kind).bind(ours).execute(&mut *tx).await?;
    }
    let (theirs,): (i64,) = sqlx::query_as("select epoch from main.plane").fetch_one(&mut *tx).await?;
    let epoch = to_db(now_ms).max(ours + 1).max(theirs + 1);
    sqlx::query("update main.plane set epoch = $1").bind(epoch).execute(&mut *tx).await?;
    let (revision,): (i64,) =
        sqlx::query_as("select coalesce(max(number), 0) from main.revision").fetch_one(&mut *tx).await?;
    let restored = Restored { epoch: from_db(epoch), revision: from_db(revision), keeps_log };
    audit::append(&mut tx, &entry(&restored, &replaced)).await?;
    tx.commit().await?;
    Ok(restored)
}
