//! What the database says of itself, for whoever looks what is wrong.

use sqlx::Pool;

use super::{Db, EXAMINE, KIND, NOW_MS, statements};
use crate::store::convert::from_db;
use crate::store::rows::{Database, Lease};

statements! {
    VERSION = "select coalesce(max(version), 0) from migration";
    LEASE = "select holder, epoch, until_ms from leader where id = 1";
}

/// Asks the database.
pub async fn examine(pool: &Pool<Db>) -> Result<Database, sqlx::Error> {
    // First alone, so that nothing else is in the time that it takes.
    let (now_ms,): (i64,) = sqlx::query_as(NOW_MS).fetch_one(pool).await?;
    let (version, setup): (String, String) = sqlx::query_as(EXAMINE).fetch_one(pool).await?;
    let (schema,): (i64,) = sqlx::query_as(VERSION).fetch_one(pool).await?;
    let (holder, epoch, until_ms): (String, i64, i64) = sqlx::query_as(LEASE).fetch_one(pool).await?;
    let lease = Lease { holder, epoch: from_db(epoch), until_ms: from_db(until_ms) };
    Ok(Database { kind: KIND, version, setup, now_ms: from_db(now_ms), schema: from_db(schema), lease })
}
