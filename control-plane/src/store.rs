//! What is kept: one store over SQLite or PostgreSQL, with the same statements on both. Each method is
//! one statement or one transaction; rules about what may be kept are their callers' matter. A method that makes an
//! operator's change takes the [`Entry`] that the audit log keeps of it, in the same transaction.
//!
//! `queries.rs` beside this file is compiled twice, by `sqlite.rs` and by `postgres.rs`.

pub mod backup;
mod convert;
pub mod entry;
mod fault;
mod postgres;
pub mod rows;
mod sqlite;
mod statement;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use entry::{Ask, Entry, Kept, LogHead};
pub use fault::StoreError;
pub use postgres::News;
use rows::{Binding, By, Database, FullRevision, Heads, Revision, Rollout};

/// Every migration, in order; each is run once, all that are missing in one transaction.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_catalog.sql"),
    include_str!("../migrations/0002_fleet.sql"),
    include_str!("../migrations/0003_bindings.sql"),
    include_str!("../migrations/0004_idempotency.sql"),
    include_str!("../migrations/0005_rollout.sql"),
    include_str!("../migrations/0006_access.sql"),
    include_str!("../migrations/0007_identity.sql"),
    include_str!("../migrations/0008_leader.sql"),
    include_str!("../migrations/0009_secrets.sql"),
    include_str!("../migrations/0010_replicas.sql"),
    include_str!("../migrations/0011_pins.sql"),
    include_str!("../migrations/0012_records.sql"),
    include_str!("../migrations/0013_first_bytes.sql"),
    include_str!("../migrations/0014_usage.sql"),
    include_str!("../migrations/0015_alerts.sql"),
];

/// The version of the tables that this program knows.
pub const SCHEMA: u64 = MIGRATIONS.len() as u64;

/// Counters are kept by ten seconds first.
const BUCKET_MS: u64 = common::limits::WINDOW_LENGTH.as_millis() as u64;
/// Counters this old are kept by the minute, …
pub const BY_MINUTE_AFTER: Duration = Duration::from_secs(2 * 60 * 60);
/// … this old by the hour, …
pub const BY_HOUR_AFTER: Duration = Duration::from_secs(2 * DAY_SECONDS);
/// … and then no more: a status page shows 90 days.
pub const COUNTERS_KEPT: Duration = Duration::from_secs(100 * DAY_SECONDS);
/// Times to the first byte are many numbers, and of use while they are fresh.
pub const FIRST_BYTES_KEPT: Duration = Duration::from_secs(8 * DAY_SECONDS);
/// What is known of a boot outlives its counters, so that the last of its windows, sent again, is known
/// to be counted.
pub const BOOTS_KEPT: Duration = Duration::from_secs(110 * DAY_SECONDS);
/// What client keys used by day is kept so long.
pub const USAGE_KEPT: Duration = Duration::from_secs(400 * DAY_SECONDS);
/// So many revisions are kept, the newest ones, besides those that some node runs.
pub const REVISIONS_KEPT: u64 = 1000;
/// Counts by node are kept this long: what a rollout is judged by, and what its nodes did before it.
pub const NODE_COUNTS_KEPT: Duration = Duration::from_secs(15 * 60);
/// A node that was not heard of for so long is forgotten.
pub const NODES_KEPT: Duration = COUNTERS_KEPT;
/// What was wrong is shown for so long after it was over.
pub const ALERTS_KEPT: Duration = Duration::from_secs(30 * DAY_SECONDS);
/// A token that is over is shown for as long.
pub const TOKENS_KEPT: Duration = Duration::from_secs(30 * DAY_SECONDS);
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A database that has not answered by then is away. Nodes wait two seconds longer for the answer to a
/// report.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);
/// What goes over many rows may take longer, but not for ever: the answer of a server that went away without a word
/// never comes.
const DONE_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Connections for writing and for reading. PostgreSQL has one pool for both.
#[derive(Debug, Clone)]
pub struct Pools<P> {
    write: P,
    read: P,
}

/// The store. Clones share the same connections.
#[derive(Debug, Clone)]
pub enum Store {
    /// One file in the data folder.
    Sqlite(Pools<sqlite::Pool>),
    /// A server that several control planes may share, and where changes are heard of.
    Postgres(Pools<postgres::Pool>, postgres::Ear),
}

/// Calls the same function of the database in use, however long it takes.
macro_rules! work {
    ($store:ident.$pool:ident, $file:ident::$function:ident($($argument:expr),*)) => {
        match $store {
            Store::Sqlite(pools) => sqlite::queries::$file::$function(&pools.$pool, $($argument),*).await,
            Store::Postgres(pools, _) => postgres::queries::$file::$function(&pools.$pool, $($argument),*).await,
        }
    };
}

/// The same, for what goes over many rows, by the clock.
macro_rules! toil {
    ($($call:tt)+) => {
        fenced(within(DONE_WITHIN, async { work!($($call)+) }).await)
    };
}

/// The same, for those who wait for the answer.
macro_rules! call {
    ($($call:tt)+) => {
        soon(async { work!($($call)+) }).await?
    };
}

/// What is cut off here is undone: the transaction is never committed.
fn soon<T, E: Into<StoreError>>(
    answer: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, StoreError>> {
    within(ANSWERS_WITHIN, answer)
}

fn within<T, E: Into<StoreError>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, StoreError>> {
    // On the heap, so that not each caller's future has room for it twice.
    let answer = Box::pin(answer);
    async move {
        let answer = tokio::time::timeout(limit, answer).await;
        answer.map_err(|_elapsed| StoreError::Silent(limit))?.map_err(Into::into)
    }
}

/// What a write under an epoch of the leader came to.
fn fenced<T>(written: Result<T, StoreError>) -> Result<T, StoreError> {
    written.map_err(|error| match error {
        StoreError::Database(sqlx::Error::RowNotFound) => StoreError::Fenced,
        error => error,
    })
}

pub mod alerting;
mod client_keys;
mod counters;
mod fleet;
mod identities;
mod operators;
mod pinned;
mod requests;
mod sealed;
mod times;

impl Store {
    /// Opens the file `sluice.db` of a data folder, and brings it up to date.
    pub async fn open_sqlite(data_dir: &Path, now_ms: u64) -> Result<Self, StoreError> {
        Store::Sqlite(sqlite::open(&data_dir.join("sluice.db")).await?).migrated(now_ms).await
    }

    /// Connects to a PostgreSQL, and brings it up to date. Changes are heard at `listen_url`, if it is given: the same
    /// database, with no pooler between that hands out connections by transaction.
    pub async fn open_postgres(url: &str, listen_url: Option<&str>, now_ms: u64) -> Result<Self, StoreError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(StoreError::UnknownUrl);
        }
        let ear = postgres::Ear::at(listen_url.unwrap_or(url))?;
        Store::Postgres(postgres::open(url).await?, ear).migrated(now_ms).await
    }

    async fn migrated(self, now_ms: u64) -> Result<Self, StoreError> {
        let store = &self;
        work!(store.write, migrate::run(convert::to_db(now_ms)))?;
        call!(store.write, plane::make(now_ms));
        call!(store.write, audit::make());
        Ok(self)
    }

    /// The data folder that the database lies in.
    pub fn folder(&self) -> Result<PathBuf, backup::BackupFault> {
        match self {
            Store::Sqlite(pools) => {
                let options = pools.write.0.connect_options();
                Ok(options.get_filename().parent().unwrap_or(Path::new(".")).to_owned())
            }
            Store::Postgres(..) => Err(backup::BackupFault::NotSqlite),
        }
    }

    /// Closes every connection; SQLite writes its log back into the file.
    pub async fn close(&self) {
        match self {
            Store::Sqlite(pools) => {
                pools.read.0.close().await;
                pools.write.0.close().await;
            }
            Store::Postgres(pools, _) => pools.write.0.close().await,
        }
    }

    /// Which contents are wanted now.
    pub async fn heads(&self) -> Result<Heads, StoreError> {
        Ok(call!(self.read, plane::heads()))
    }

    /// Ends the epoch `over` and begins `next`, unless somebody else has begun another one since.
    pub async fn begin_epoch(&self, over: u64, next: u64, entry: &Entry) -> Result<(), StoreError> {
        call!(self.write, plane::begin_epoch(over, next, entry));
        Ok(())
    }

    /// Keeps a revision whose number is one above the newest that the caller saw, with its rollout and what is logged
    /// of it, and ends the rollout `over` that was under way. Returns false if another one has taken the number or the idempotency key
    /// since, or if that rollout has changed.
    pub async fn insert_revision(
        &self,
        new: &FullRevision,
        rollout: &Rollout,
        over: Option<&Rollout>,
        entry: &Entry,
    ) -> Result<bool, StoreError> {
        Ok(call!(self.write, revisions::insert(new, rollout, over, entry)))
    }

    /// The rollout of a revision.
    pub async fn rollout(&self, revision: u64) -> Result<Option<Rollout>, StoreError> {
        Ok(call!(self.read, rollouts::find(revision)))
    }

    /// Changes a rollout over the version that it carries. Returns false if somebody else was faster.
    pub async fn update_rollout(&self, changed: &Rollout, by: By<'_>) -> Result<bool, StoreError> {
        fenced(soon(async { work!(self.write, rollouts::update(changed, by)) }).await)
    }

    /// A revision with its document.
    pub async fn revision(&self, number: u64) -> Result<Option<FullRevision>, StoreError> {
        Ok(call!(self.read, revisions::full(number)))
    }

    /// The revision that was made by the change of this name.
    pub async fn revision_by_key(&self, key: &str) -> Result<Option<Revision>, StoreError> {
        Ok(call!(self.read, revisions::by_key(key)))
    }

    /// Removes the revisions below `number` that no node runs and no rollout needs, as the leader of this epoch. Returns how many there were.
    pub async fn prune_revisions(&self, leader: u64, number: u64) -> Result<u64, StoreError> {
        toil!(self.write, revisions::prune(leader, number))
    }

    /// Revisions below `before`, newest first.
    pub async fn revisions(&self, before: u64, limit: u32) -> Result<Vec<Revision>, StoreError> {
        Ok(call!(self.read, revisions::list(before, limit)))
    }

    /// The end of the audit log.
    pub async fn log_head(&self) -> Result<LogHead, StoreError> {
        Ok(call!(self.read, audit::head()))
    }

    /// Entries of the audit log, newest first.
    pub async fn log(&self, ask: &Ask) -> Result<Vec<Kept>, StoreError> {
        Ok(call!(self.read, audit::list(ask)))
    }

    /// Entries of the audit log after one and through another, oldest first.
    pub async fn walk_log(&self, after: u64, through: u64, limit: u32) -> Result<Vec<Kept>, StoreError> {
        Ok(call!(self.read, audit::walk(after, through, limit)))
    }

    /// Asks the database how it is.
    pub async fn examine(&self) -> Result<Database, StoreError> {
        Ok(call!(self.write, examine::examine()))
    }

    /// Tells other processes that something changed. Nobody hears of it over SQLite, which one process has for itself.
    pub async fn announce(&self) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(_) => Ok(()),
            Store::Postgres(pools, _) => soon(postgres::announce(pools)).await,
        }
    }

    /// Listens for changes of other processes; none where there can be no others. Fails where nothing would be heard.
    pub async fn listen(&self) -> Result<Option<News>, StoreError> {
        match self {
            Store::Sqlite(_) => Ok(None),
            Store::Postgres(pools, ear) => soon(postgres::listen(pools, ear)).await.map(Some),
        }
    }

    /// Takes or renews the lease of the leader. Returns its epoch; none when another one holds it.
    pub async fn claim_leader(&self, holder: &str, lease: Duration) -> Result<Option<u64>, StoreError> {
        Ok(call!(self.write, leader::claim(holder, lease.as_millis() as u64)))
    }

    /// Gives the lease back.
    pub async fn resign_leader(&self, holder: &str, epoch: u64) -> Result<(), StoreError> {
        call!(self.write, leader::resign(holder, epoch));
        Ok(())
    }

    /// Keeps which channel made what, all of it or none. Each name stands once; an older making of a name changes
    /// nothing.
    pub async fn keep_bindings(&self, bindings: &[Binding]) -> Result<(), StoreError> {
        call!(self.write, bindings::keep(bindings));
        Ok(())
    }

    /// Which channel made what a key calls by this id.
    pub async fn binding(
        &self,
        dialect: &str,
        id: &str,
        key_id: &str,
    ) -> Result<Option<Binding>, StoreError> {
        Ok(call!(self.read, bindings::find(dialect, id, key_id)))
    }

    /// Removes bindings of what was made before `before_ms`, likewise.
    pub async fn forget_bindings(&self, leader: u64, before_ms: u64) -> Result<(), StoreError> {
        toil!(self.write, bindings::forget(leader, before_ms))
    }

    /// Prepares every statement, to see that the database in use takes them all.
    #[doc(hidden)]
    pub async fn prepare_all(&self) -> Result<usize, (String, StoreError)> {
        use sqlx::{Executor as _, SqlSafeStr as _};
        let mut count = 0;
        macro_rules! prepare {
            ($pools:ident, $database:ident) => {
                for sql in $database::queries::all() {
                    let prepared = (&$pools.write.0).prepare(sql.sql().into_sql_str()).await;
                    prepared.map_err(|error| (sql.sql().to_owned(), error.into()))?;
                    count += 1;
                }
            };
        }
        match self {
            Store::Sqlite(pools) => prepare!(pools, sqlite),
            Store::Postgres(pools, _) => prepare!(pools, postgres),
        }
        Ok(count)
    }
}
