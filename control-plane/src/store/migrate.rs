//! Brings the tables up to date in one transaction, whoever else does the same at that moment.

use sqlx::AssertSqlSafe;

use super::pool::{Pool, query, query_as};
use super::{LOCK_MIGRATIONS, statements};
use crate::store::MIGRATIONS;

statements! {
    MAKE = "create table if not exists migration (version bigint primary key, at_ms bigint not null)";
    READ = "select coalesce(max(version), 0) from migration";
    NOTE = "insert into migration (version, at_ms) values ($1, $2)";
}

/// Runs what is missing. A database of a newer program is left as it is: migrations are safe for the
/// version before them.
pub async fn run(pool: &Pool, now_ms: i64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin_migration().await?;
    query(LOCK_MIGRATIONS).execute(&mut *tx).await?;
    query(MAKE).execute(&mut *tx).await?;
    let (version,): (i64,) = query_as(READ).fetch_one(&mut *tx).await?;
    for (number, sql) in (1i64..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        sqlx::raw_sql(AssertSqlSafe(*sql)).execute(&mut *tx).await?;
        query(NOTE).bind(number).bind(now_ms).execute(&mut *tx).await?;
        tracing::info!(migration = number, "database migrated to version {number}");
    }
    tx.commit().await
}
