//! What the database says of itself, for whoever looks what is wrong.

use super::pool::{Pool, query_as};
use super::{EXAMINE, KIND, NOW_MS, statements};
use crate::store::convert::from_db;
use crate::store::rows::{Database, Lease};

statements! {
    VERSION = "select coalesce(max(version), 0) from migration";
    LEASE = "select holder, epoch, until_ms from leader where id = 1";
}

/// Asks the database.
pub async fn examine(pool: &Pool) -> Result<Database, sqlx::Error> {
    let mut tx = pool.begin_reading().await?;
    // First alone, so that nothing else is in the time that it takes.
    let (now_ms,): (i64,) = query_as(NOW_MS).fetch_one(&mut *tx).await?;
    let (version, setup): (String, String) = query_as(EXAMINE).fetch_one(&mut *tx).await?;
    let (schema,): (i64,) = query_as(VERSION).fetch_one(&mut *tx).await?;
    let (holder, epoch, until_ms): (String, i64, i64) = query_as(LEASE).fetch_one(&mut *tx).await?;
    tx.commit().await?;
    let lease = Lease { holder, epoch: from_db(epoch), until_ms: from_db(until_ms) };
    Ok(Database { kind: KIND, version, setup, now_ms: from_db(now_ms), schema: from_db(schema), lease })
}
