//! Rollouts, and what they are judged by.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, audit, statements};
use crate::rollout::{NodeCount, Tally};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::{By, Rollout};

statements! {
    // A row that is there already is that of a revision which a restored database has lost.
    INSERT = "insert into rollout (revision, base, version, is_under_way, body) values ($1, $2, $3, $4, $5)
              on conflict (revision) do update set base = excluded.base, version = excluded.version,
                is_under_way = excluded.is_under_way, body = excluded.body";
    // Over the version that was read: of several who change it at once, one does.
    UPDATE = "update rollout set base = $3, is_under_way = $4, body = $5, version = version + 1
              where revision = $1 and version = $2";
    FIND = "select base, version, is_under_way, body from rollout where revision = $1";
    COUNTS = "select node_id, model, cast(sum(served) as bigint), cast(sum(failed) as bigint) from node_count
              where at_ms >= $1 and at_ms < $2 group by 1, 2 order by 1, 2";
    FORGET_COUNTS = "delete from node_count where at_ms < $1";
}

/// Keeps a new rollout, in the transaction that makes its revision.
pub async fn insert(tx: &mut Connection, new: &Rollout) -> Result<(), sqlx::Error> {
    query(INSERT)
        .bind(to_db(new.revision))
        .bind(to_db(new.base))
        .bind(to_db(new.version))
        .bind(new.is_under_way)
        .bind(&new.body)
        .execute(&mut *tx)
        .await
        .map(drop)
}

/// Changes a rollout, if it still is what it was when it was read. Returns whether it was.
pub async fn update_in(tx: &mut Connection, changed: &Rollout) -> Result<bool, sqlx::Error> {
    let updated = query(UPDATE)
        .bind(to_db(changed.revision))
        .bind(to_db(changed.version))
        .bind(to_db(changed.base))
        .bind(changed.is_under_way)
        .bind(&changed.body)
        .execute(&mut *tx)
        .await?;
    Ok(updated.rows_affected() == 1)
}

/// The same, by itself: with what is logged of it, or under the leader's epoch.
pub async fn update(pool: &Pool, changed: &Rollout, by: By<'_>) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    if let By::Leader(epoch) = by {
        fence(&mut tx, epoch).await?;
    }
    if !update_in(&mut tx, changed).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    if let By::Operator(entry) = by {
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await?;
    Ok(true)
}

pub async fn find(pool: &Pool, revision: u64) -> Result<Option<Rollout>, sqlx::Error> {
    let row: Option<(i64, i64, bool, String)> = pool.optional(query_as(FIND).bind(to_db(revision))).await?;
    Ok(row.map(|(base, version, is_under_way, body)| Rollout {
        revision,
        base: from_db(base),
        version: from_db(version),
        is_under_way,
        body,
    }))
}

/// Requests by node and model, in the windows that began from `since_ms` to before `until_ms`.
pub async fn counts(pool: &Pool, since_ms: u64, until_ms: u64) -> Result<Vec<NodeCount>, sqlx::Error> {
    let rows: Vec<(String, String, i64, i64)> =
        pool.all(query_as(COUNTS).bind(to_db(since_ms)).bind(to_db(until_ms))).await?;
    let count = |(node, model, served, failed)| NodeCount {
        node,
        model,
        tally: Tally { served: from_db(served), failed: from_db(failed) },
    };
    Ok(rows.into_iter().map(count).collect())
}

/// Removes the counts of windows that began before `before_ms`.
pub async fn forget_counts(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET_COUNTS).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}
