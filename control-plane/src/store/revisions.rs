//! Catalog revisions.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{audit, rollouts, statements};
use crate::store::convert::{from_db, sha, to_db};
use crate::store::entry::Entry;
use crate::store::rows::{FullRevision, Revision, Rollout};

statements! {
    // The program numbers them: one above the newest that it saw. Two that saw the same meet at the
    // primary key, and one of them looks again.
    INSERT = "insert into revision
                (number, sha256, document, snapshot_sha256, snapshot_zstd, author, message, created_at_ms,
                 idempotency_key)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    FULL = "select number, sha256, author, message, created_at_ms, document, snapshot_sha256, snapshot_zstd,
                   idempotency_key
            from revision where number = $1";
    BY_KEY = "select number, sha256, author, message, created_at_ms from revision where idempotency_key = $1";
    // What some node runs, or ran when it was last seen, stays whatever its age, and so does what one is pinned to and
    // what a rollout goes back to.
    PRUNE = "delete from revision where number < $1
             and not exists (select 1 from node where node.applied_revision = revision.number)
             and not exists (select 1 from node_pin where node_pin.revision = revision.number)
             and not exists (select 1 from rollout where rollout.is_under_way and rollout.base = revision.number)";
    PRUNE_ROLLOUTS = "delete from rollout where revision < $1
             and not exists (select 1 from revision where revision.number = rollout.revision)";
    LIST = "select number, sha256, author, message, created_at_ms from revision
            where number < $1 order by number desc limit $2";
}

type Columns = (i64, Vec<u8>, String, String, i64);

fn revision((number, sha256, author, message, at): Columns) -> Result<Revision, sqlx::Error> {
    let (number, created_at_ms) = (from_db(number), from_db(at));
    Ok(Revision { number, sha256: sha(sha256)?, author, message, created_at_ms })
}

/// Keeps a revision with its rollout and what is logged of it, and ends the one that was under way, if number and idempotency key are free and
/// that one has not changed. Returns whether it is so.
pub async fn insert(
    pool: &Pool,
    new: &FullRevision,
    rollout: &Rollout,
    over: Option<&Rollout>,
    entry: &Entry,
) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let inserted = query(INSERT)
        .bind(to_db(new.revision.number))
        .bind(&new.revision.sha256[..])
        .bind(&new.document[..])
        .bind(&new.snapshot_sha256[..])
        .bind(&new.snapshot_zstd[..])
        .bind(&new.revision.author)
        .bind(&new.revision.message)
        .bind(to_db(new.revision.created_at_ms))
        .bind(&new.idempotency_key)
        .execute(&mut *tx)
        .await;
    match inserted {
        Ok(_) => {}
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            tx.rollback().await?;
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    rollouts::insert(&mut tx, rollout).await?;
    if let Some(over) = over
        && !rollouts::update_in(&mut tx, over).await?
    {
        tx.rollback().await?;
        return Ok(false);
    }
    audit::append(&mut tx, entry).await?;
    tx.commit().await?;
    Ok(true)
}

pub async fn full(pool: &Pool, number: u64) -> Result<Option<FullRevision>, sqlx::Error> {
    type Row = (i64, Vec<u8>, String, String, i64, Vec<u8>, Vec<u8>, Vec<u8>, Option<String>);
    let row: Option<Row> = pool.optional(query_as(FULL).bind(to_db(number))).await?;
    let Some((number, digest, author, message, at, document, snapshot_sha256, snapshot, key)) = row else {
        return Ok(None);
    };
    Ok(Some(FullRevision {
        revision: revision((number, digest, author, message, at))?,
        document: document.into(),
        snapshot_sha256: sha(snapshot_sha256)?,
        snapshot_zstd: snapshot.into(),
        idempotency_key: key,
    }))
}

pub async fn by_key(pool: &Pool, key: &str) -> Result<Option<Revision>, sqlx::Error> {
    let row: Option<Columns> = pool.optional(query_as(BY_KEY).bind(key)).await?;
    row.map(revision).transpose()
}

/// Removes the revisions below `number` that no node runs and no rollout needs. Returns how many there were.
pub async fn prune(pool: &Pool, leader: u64, number: u64) -> Result<u64, sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    let pruned = query(PRUNE).bind(to_db(number)).execute(&mut *tx).await?.rows_affected();
    query(PRUNE_ROLLOUTS).bind(to_db(number)).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(pruned)
}

/// Newest first, below `before`.
pub async fn list(pool: &Pool, before: u64, limit: u32) -> Result<Vec<Revision>, sqlx::Error> {
    let rows: Vec<Columns> = pool.all(query_as(LIST).bind(to_db(before)).bind(i64::from(limit))).await?;
    rows.into_iter().map(revision).collect()
}
