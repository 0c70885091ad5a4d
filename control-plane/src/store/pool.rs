//! The way to the connections. A statement runs in a transaction and leaves nothing behind on its connection, so that a
//! pooler that hands out connections by transaction (pgbouncer) may stand between here and the database: no session
//! outlives a transaction there, and what is prepared in one connection is unknown, or something else, in the next.

use sqlx::{Database, FromRow};

use super::super::{BEGIN, BEGIN_MIGRATION, BEGIN_READING, Db, KEEPS_STATEMENTS, Transaction, begin};
use crate::store::statement::Statement;

type Arguments = <Db as Database>::Arguments;
type Query<'q> = sqlx::query::Query<'q, Db, Arguments>;
type QueryAs<'q, T> = sqlx::query::QueryAs<'q, Db, T, Arguments>;

/// A statement of which the values are to be bound.
pub fn query<'q>(statement: Statement) -> Query<'q> {
    sqlx::query(statement.sql()).persistent(KEEPS_STATEMENTS)
}

/// The same, with rows of this type as its answer.
pub fn query_as<'q, T>(statement: Statement) -> QueryAs<'q, T>
where
    T: for<'r> FromRow<'r, <Db as Database>::Row>,
{
    sqlx::query_as(statement.sql()).persistent(KEEPS_STATEMENTS)
}

/// Connections, which are used by transactions alone.
#[derive(Debug, Clone)]
pub struct Pool(pub sqlx::Pool<Db>);

impl Pool {
    /// Begins a transaction that writes.
    pub async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        begin(&self.0, BEGIN).await
    }

    /// Begins a transaction that changes the tables themselves.
    pub async fn begin_migration(&self) -> Result<Transaction, sqlx::Error> {
        begin(&self.0, BEGIN_MIGRATION).await
    }

    /// Begins a transaction of several statements that read. It is to be committed as well.
    pub async fn begin_reading(&self) -> Result<Transaction, sqlx::Error> {
        begin(&self.0, BEGIN_READING).await
    }

    /// Runs one statement that writes. Returns how many rows it has changed.
    pub async fn run(&self, query: Query<'_>) -> Result<u64, sqlx::Error> {
        let mut tx = self.begin().await?;
        let changed = query.execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(changed)
    }

    /// Reads the one row of a statement.
    pub async fn one<T>(&self, query: QueryAs<'_, T>) -> Result<T, sqlx::Error>
    where
        T: for<'r> FromRow<'r, <Db as Database>::Row> + Send + Unpin,
    {
        self.optional(query).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Reads the row of a statement, if there is one.
    pub async fn optional<T>(&self, query: QueryAs<'_, T>) -> Result<Option<T>, sqlx::Error>
    where
        T: for<'r> FromRow<'r, <Db as Database>::Row> + Send + Unpin,
    {
        let mut tx = self.begin_reading().await?;
        let row = query.fetch_optional(&mut *tx).await?;
        tx.commit().await?;
        Ok(row)
    }

    /// Reads every row of a statement.
    pub async fn all<T>(&self, query: QueryAs<'_, T>) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> FromRow<'r, <Db as Database>::Row> + Send + Unpin,
    {
        let mut tx = self.begin_reading().await?;
        let rows = query.fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(rows)
    }
}
