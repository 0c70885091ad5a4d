//! The store on PostgreSQL, which several control planes may share.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};

use super::{Pools, StoreError};

#[expect(clippy::duplicate_mod, reason = "one text of queries, compiled for each database")]
#[path = "queries.rs"]
pub mod queries;

/// The database that the queries beside this file are compiled for.
pub type Db = sqlx::Postgres;

/// Read committed; claims are single conditional statements.
pub const BEGIN: &str = "begin";

/// Replicas that start together migrate one after the other. The lock ends with its transaction, so it
/// also holds through a pool that shares connections between transactions.
pub const LOCK_MIGRATIONS: &str = "select 1 from pg_advisory_xact_lock(5426837163)";

/// Nothing is counted between the reading and the removing of a rollup.
pub const LOCK_COUNTS: &str = "lock table attempt_count, request_count in share row exclusive mode";

/// Which database this is.
pub const KIND: &str = "PostgreSQL";

/// Its version, and how it is set up.
pub const EXAMINE: &str = "select current_setting('server_version'),
    case when pg_is_in_recovery() then 'in recovery' else 'primary' end
    || case when current_setting('transaction_read_only') = 'on' then ', read only' else '' end
    || case when current_setting('fsync') = 'off' then ', fsync off' else '' end
    || case when current_setting('synchronous_commit') = 'off' then ', synchronous_commit off' else '' end";

/// The database's clock.
pub const NOW_MS: &str = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";

/// What changes are announced by.
const NEWS: &str = "sluice_head";
const ANNOUNCE: &str = "select pg_notify($1, '')";

const CONNECTIONS: u32 = 10;

/// Connects to the database that the URL names.
pub async fn open(url: &str) -> Result<Pools<Db>, StoreError> {
    let options =
        PgConnectOptions::from_str(url)?.application_name("sluice-control-plane").disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(options)
        .await?;
    Ok(Pools { write: pool.clone(), read: pool })
}

/// Tells who listens that something changed.
pub async fn announce(pools: &Pools<Db>) -> Result<(), sqlx::Error> {
    sqlx::query(ANNOUNCE).bind(NEWS).execute(&pools.write).await.map(drop)
}

/// A connection of its own on which changes are announced.
#[derive(Debug)]
pub struct News(PgListener);

/// Begins to listen.
pub async fn listen(pools: &Pools<Db>) -> Result<News, sqlx::Error> {
    let options = PgConnectOptions::clone(&pools.write.connect_options());
    let own = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen(NEWS).await?;
    Ok(News(listener))
}

impl News {
    /// Resolves when something changed. What changed while the connection was away is not told.
    pub async fn heard(&mut self) -> Result<(), sqlx::Error> {
        self.0.recv().await.map(drop)
    }
}
