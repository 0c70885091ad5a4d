//! The identity of the database and the versions that are wanted now.

use super::pool::{Pool, query, query_as};
use super::{audit, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::entry::Entry;
use crate::store::rows::Heads;

statements! {
    MAKE = "insert into plane (id, epoch, created_at_ms) values (1, $1, $1) on conflict (id) do nothing";
    BEGIN_EPOCH = "update plane set epoch = $2 where id = 1 and epoch = $1";
    HEADS = "select p.epoch, (select coalesce(max(number), 0) from revision), k.version,
               coalesce((select r.version from rollout r where r.revision = (select max(number) from revision)), 0),
               s.version, n.version
             from plane p, part k, part s, part n
             where p.id = 1 and k.kind = 'keys' and s.kind = 'secrets' and n.kind = 'pins'";
}

/// Gives a new database its epoch. The time of its making is higher than the epoch of any database before it.
pub async fn make(pool: &Pool, now_ms: u64) -> Result<(), sqlx::Error> {
    pool.run(query(MAKE).bind(to_db(now_ms))).await.map(drop)
}

/// Ends an epoch, if it is not over already.
pub async fn begin_epoch(pool: &Pool, over: u64, next: u64, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    let begun = query(BEGIN_EPOCH).bind(to_db(over)).bind(to_db(next)).execute(&mut *tx).await?;
    if begun.rows_affected() == 1 {
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await
}

pub async fn heads(pool: &Pool) -> Result<Heads, sqlx::Error> {
    let row: (i64, i64, i64, i64, i64, i64) = pool.one(query_as(HEADS)).await?;
    let (epoch, revision, keys, rollout, secrets, pins) = row;
    Ok(Heads {
        epoch: from_db(epoch),
        revision: from_db(revision),
        keys: from_db(keys),
        rollout: from_db(rollout),
        secrets: from_db(secrets),
        pins: from_db(pins),
    })
}
