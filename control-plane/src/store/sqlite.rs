//! The store on SQLite: one file, one connection that writes and checkpoints, a few that read.

use std::path::Path;
use std::time::Duration;

use common::backoff::full_jitter;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep};

use super::statement::Statement;
use super::{Pools, StoreError};
pub use queries::pool::Pool;

#[path = "queries.rs"]
pub mod queries;

/// The database that the queries beside this file are compiled for.
pub type Db = sqlx::Sqlite;

/// A deferred transaction that turns into a writer fails at once when another one writes.
pub const BEGIN: &str = "begin immediate";

/// Readers see one state of the file and lock nobody out.
pub const BEGIN_READING: &str = "begin";

/// As [`BEGIN`].
pub const BEGIN_MIGRATION: &str = BEGIN;

/// Nobody stands between here and the file: what is prepared once is there the next time.
pub const KEEPS_STATEMENTS: bool = true;

/// A transaction; one that is dropped is undone.
pub type Transaction = sqlx::Transaction<'static, Db>;

/// Begins a transaction.
pub async fn begin(pool: &sqlx::Pool<Db>, how: &'static str) -> Result<Transaction, sqlx::Error> {
    pool.begin_with(how).await
}

/// The writing transaction is the only one already.
pub const LOCK_MIGRATIONS: Statement = Statement::new("select 1");

/// As above.
pub const LOCK_COUNTS: Statement = Statement::new("select 1");

/// Which database this is.
pub const KIND: &str = "SQLite";

/// Its version, and how it is set up.
pub const EXAMINE: Statement = Statement::new("select sqlite_version(), 'one file'");

/// The database's clock.
pub const NOW_MS: Statement = Statement::new("select cast(unixepoch('subsec') * 1000 as integer)");

/// The first version without the fault that corrupts a database when two connections meet at a checkpoint.
const VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

const READERS: u32 = 4;

/// How long one waits for another who writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Who was refused while opening tries again within this time.
const OPEN_AGAIN: Duration = Duration::from_millis(50);
/// "Database is locked", of SQLite's result codes.
const SQLITE_BUSY: u32 = 5;

/// Opens the file, and makes it if it is not there.
pub async fn open(file: &Path) -> Result<Pools<Pool>, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // What is answered is kept, also when the power goes: nodes forget what was counted.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .disable_statement_logging();
    let write = connect(&options).await?;
    let (version,): (String,) = sqlx::query_as("select sqlite_version()").fetch_one(&write).await?;
    if !is_sound(&version) {
        return Err(StoreError::SqliteTooOld { version });
    }
    // Readers never checkpoint, so that the one writer does.
    let read_only = options.pragma("wal_autocheckpoint", "0").pragma("query_only", "on");
    let read = pool().max_connections(READERS).connect_lazy_with(read_only);
    Ok(Pools { write: Pool(write), read: Pool(read) })
}

/// A pool whose connections are not used again after a transaction that never ended. A full disk leaves one: SQLite itself
/// undoes the transaction, and the rollback that is sent afterwards fails, so that every later one would, too.
fn pool() -> SqlitePoolOptions {
    SqlitePoolOptions::new().after_release(|connection, _| {
        Box::pin(async move {
            // Behind what the drop of a transaction has queued.
            connection.ping().await?;
            Ok(!connection.is_in_transaction())
        })
    })
}

/// Opens the connection that writes. Of two who open a new file at once, the one that comes second to turn it into WAL
/// mode is refused without a wait: both hold a read lock then, so that SQLite leaves its busy timeout out.
async fn connect(options: &SqliteConnectOptions) -> Result<sqlx::Pool<Db>, sqlx::Error> {
    let give_up_at = Instant::now() + BUSY_TIMEOUT;
    loop {
        match pool().max_connections(1).connect_with(options.clone()).await {
            Err(error) if is_busy(&error) && Instant::now() < give_up_at => {
                sleep(full_jitter(0, OPEN_AGAIN, OPEN_AGAIN, fastrand::f64())).await;
            }
            opened => return opened,
        }
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    // The primary code stands in the lowest byte of an extended one.
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

fn is_sound(version: &str) -> bool {
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) >= VERSION_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_commit_outlives_the_power() {
        let dir = tempfile::tempdir().unwrap();
        let pools = open(&dir.path().join("sluice.db")).await.unwrap();
        let (synchronous,): (i64,) =
            sqlx::query_as("pragma synchronous").fetch_one(&pools.write.0).await.unwrap();
        assert_eq!(synchronous, 2, "full: the log is synced at each commit");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_many_who_open_a_new_file_at_once_none_is_refused() {
        for _ in 0..25 {
            let dir = tempfile::tempdir().unwrap();
            let mut opening = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let file = dir.path().join("sluice.db");
                opening.spawn(async move { open(&file).await.unwrap().write.0.close().await });
            }
            opening.join_all().await;
        }
    }

    #[test]
    fn fr_037_a_sqlite_with_the_wal_reset_fault_is_refused() {
        for (version, sound) in
            [("3.51.3", true), ("3.52.0", true), ("4.0", true), ("3.51.2", false), ("3.8.11", false)]
        {
            assert_eq!(is_sound(version), sound, "{version}");
        }
    }
}
