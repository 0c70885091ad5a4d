//! The store on PostgreSQL, which several control planes may share, also behind a pooler that hands out connections by
//! transaction.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, raw_sql};
use tokio::time::timeout;

use super::statement::Statement;
use super::{Pools, StoreError};
pub use queries::pool::Pool;
use queries::pool::query;

#[expect(clippy::duplicate_mod, reason = "one text of queries, compiled for each database")]
#[path = "queries.rs"]
pub mod queries;

/// The database that the queries beside this file are compiled for.
pub type Db = sqlx::Postgres;

/// Read committed; claims are single conditional statements. The server ends by itself what a connection left behind that
/// broke without a word: no client waits longer, and what such a session has locked, or waits for, would hold up
/// everybody else until the server's kernel gives its connection up, which takes hours.
pub const BEGIN: &str =
    "begin; set local idle_in_transaction_session_timeout = '10s'; set local lock_timeout = '8s'";

/// As above.
pub const BEGIN_READING: &str = "begin read only; set local idle_in_transaction_session_timeout = '10s'";

/// For a migration, which waits for another one as long as it takes.
pub const BEGIN_MIGRATION: &str = "begin";

/// Behind a pooler a statement that is kept belongs to a session that somebody else has the next time. Parsing it again
/// takes one more round trip.
pub const KEEPS_STATEMENTS: bool = false;

/// Replicas that start together migrate one after the other. The lock ends with its transaction, so it
/// also holds through a pool that shares connections between transactions.
pub const LOCK_MIGRATIONS: Statement = Statement::new("select 1 from pg_advisory_xact_lock(5426837163)");

/// Nothing is counted between the reading and the removing of a rollup.
pub const LOCK_COUNTS: Statement =
    Statement::new("lock table attempt_count, request_count, first_byte_count in share row exclusive mode");

/// Which database this is.
pub const KIND: &str = "PostgreSQL";

/// Its version, and how it is set up. The transaction that asks is read only itself.
pub const EXAMINE: Statement = Statement::new(
    "select current_setting('server_version'),
    case when pg_is_in_recovery() then 'in recovery' else 'primary' end
    || case when current_setting('default_transaction_read_only') = 'on' then ', read only' else '' end
    || case when current_setting('fsync') = 'off' then ', fsync off' else '' end
    || case when current_setting('synchronous_commit') = 'off' then ', synchronous_commit off' else '' end",
);

/// The database's clock.
pub const NOW_MS: Statement =
    Statement::new("select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)");

/// What changes are announced by.
const NEWS: &str = "sluice_head";
const ANNOUNCE: Statement = Statement::new("select pg_notify($1, '')");
/// What is announced is heard at once, or never.
const HEARD_WITHIN: Duration = Duration::from_secs(4);
/// So often it is looked whether a session is still the same.
const LOOKS: usize = 5;

const CONNECTIONS: u32 = 10;
/// A connection that is given back has answered by then, or it is closed: the last call on it was perhaps cut off because
/// its server went away without a word, and waiting for that one would take the connection's place for ever.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(2);

/// Reads a URL. Poolers take only settings that they can put onto a connection for each transaction.
fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url)?;
    Ok(options.application_name("sluice-control-plane").extra_float_digits(None).disable_statement_logging())
}

/// Connects to the database that the URL names.
pub async fn open(url: &str) -> Result<Pools<Pool>, StoreError> {
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(5))
        .after_release(|connection, _| {
            Box::pin(async move {
                let answered = timeout(GIVEN_BACK_WITHIN, connection.ping()).await;
                answered.map_or(Err(sqlx::Error::PoolTimedOut), |answered| answered.map(|()| true))
            })
        })
        .connect_with(options(url)?)
        .await?;
    Ok(Pools { write: Pool(pool.clone()), read: Pool(pool) })
}

/// Where changes are heard of.
#[derive(Clone)]
pub struct Ear(Box<PgConnectOptions>);

impl Ear {
    /// Reads a URL.
    pub fn at(url: &str) -> Result<Self, StoreError> {
        Ok(Ear(Box::new(options(url)?)))
    }
}

/// Without what opens the database.
impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ear")
    }
}

/// A transaction. One that is dropped before its end takes its connection with it, and so it is undone. A connection
/// that was given up while it began a transaction would be lent to the next one in the middle of it: sqlx 0.9 does not
/// know of that transaction yet (transact-rs/sqlx#4393).
#[derive(Debug)]
pub struct Transaction {
    connection: PoolConnection<Db>,
    has_ended: bool,
}

/// Begins a transaction.
pub async fn begin(pool: &sqlx::Pool<Db>, how: &'static str) -> Result<Transaction, sqlx::Error> {
    let connection = pool.acquire().await?;
    let mut tx = Transaction { connection, has_ended: false };
    raw_sql(how).execute(&mut *tx).await?;
    Ok(tx)
}

impl Transaction {
    /// Keeps what was done.
    pub async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.end("commit").await
    }

    /// Undoes what was done.
    pub async fn rollback(mut self) -> Result<(), sqlx::Error> {
        self.end("rollback").await
    }

    async fn end(&mut self, how: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(how).execute(&mut *self.connection).await?;
        self.has_ended = true;
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

/// Tells who listens that something changed.
pub async fn announce(pools: &Pools<Pool>) -> Result<(), sqlx::Error> {
    pools.write.run(query(ANNOUNCE).bind(NEWS)).await.map(drop)
}

/// A connection of its own on which changes are announced.
#[derive(Debug)]
pub struct News(PgListener);

/// Begins to listen, if what is announced is heard then.
pub async fn listen(pools: &Pools<Pool>, ear: &Ear) -> Result<News, StoreError> {
    if !keeps_sessions(&ear.0).await? {
        return Err(StoreError::Deaf);
    }
    let own = PgPoolOptions::new().max_connections(1).connect_with(PgConnectOptions::clone(&ear.0)).await?;
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen(NEWS).await?;
    announce(pools).await?;
    timeout(HEARD_WITHIN, listener.recv()).await.map_err(|_elapsed| StoreError::Deaf)??;
    Ok(News(listener))
}

/// Whether a session outlives its transaction on the way to the database. Through a pooler that lends connections out by
/// transaction it must not be tried to listen: the one that lent a connection before gets nothing, and whoever is lent it
/// afterwards gets messages that it does not expect.
async fn keeps_sessions(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let (mut ours, mut other) = (options.connect().await?, options.connect().await?);
    let session = session_of(&mut ours).await?;
    let mut is_kept = true;
    for _ in 0..LOOKS {
        // A pooler lends out what was given back last, or each in turn: the other one gets ours, or we get another.
        raw_sql(BEGIN).execute(&mut other).await?;
        is_kept &= session_of(&mut other).await? != session;
        raw_sql("commit").execute(&mut other).await?;
        is_kept &= session_of(&mut ours).await? == session;
    }
    ours.close().await?;
    other.close().await?;
    Ok(is_kept)
}

async fn session_of(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    raw_sql("select pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}

impl News {
    /// Resolves when something changed. What changed while the connection was away is not told.
    pub async fn heard(&mut self) -> Result<(), sqlx::Error> {
        self.0.recv().await.map(drop)
    }
}
