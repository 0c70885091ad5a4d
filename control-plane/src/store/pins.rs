//! Nodes that are kept on a revision, and the version of their list.

use super::super::Transaction;
use super::pool::{Pool, query, query_as};
use super::{Connection, audit, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::entry::Entry;
use crate::store::rows::Pin;

statements! {
    BUMP = "update part set version = version + 1 where kind = 'pins'";
    // Only of a revision that is there: it may have been removed since the caller looked.
    PIN = "insert into node_pin (node_id, revision, author, reason, pinned_at_ms)
           select $1, number, $3, $4, $5 from revision where number = $2
           on conflict (node_id) do update set revision = excluded.revision, author = excluded.author,
             reason = excluded.reason, pinned_at_ms = excluded.pinned_at_ms";
    UNPIN = "delete from node_pin where node_id = $1";
    FORGET = "delete from node_pin where node_id in (select id from node where last_seen_at_ms < $1)";
    // One statement, so that the version belongs to the list.
    LIST = "select p.version, n.node_id, n.revision, n.author, n.reason, n.pinned_at_ms
            from part p left join node_pin n on true where p.kind = 'pins' order by n.node_id";
}

/// Keeps a pin in the place of an earlier one, and moves the version. Returns false where its revision is not there.
pub async fn pin(pool: &Pool, pin: &Pin, entry: &Entry) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let pinned = query(PIN)
        .bind(&pin.node_id)
        .bind(to_db(pin.revision))
        .bind(&pin.author)
        .bind(&pin.reason)
        .bind(to_db(pin.pinned_at_ms))
        .execute(&mut *tx)
        .await?;
    close(tx, pinned.rows_affected(), entry).await
}

/// Removes a node's pin, and moves the version. Returns whether there was one.
pub async fn unpin(pool: &Pool, node_id: &str, entry: &Entry) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let unpinned = query(UNPIN).bind(node_id).execute(&mut *tx).await?;
    close(tx, unpinned.rows_affected(), entry).await
}

/// Keeps a change of the pins with its entry, and moves the version; nothing where nothing has changed.
async fn close(mut tx: Transaction, changed: u64, entry: &Entry) -> Result<bool, sqlx::Error> {
    if changed == 0 {
        tx.rollback().await?;
        return Ok(false);
    }
    query(BUMP).execute(&mut *tx).await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes the pins of nodes that were last heard of before `before_ms`, in the transaction that forgets those.
pub async fn forget(tx: &mut Connection, before_ms: u64) -> Result<(), sqlx::Error> {
    if query(FORGET).bind(to_db(before_ms)).execute(&mut *tx).await?.rows_affected() > 0 {
        query(BUMP).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Every pin, by node, and the version of this list.
pub async fn list(pool: &Pool) -> Result<(u64, Vec<Pin>), sqlx::Error> {
    type Row = (i64, Option<String>, Option<i64>, Option<String>, Option<String>, Option<i64>);
    let rows: Vec<Row> = pool.all(query_as(LIST)).await?;
    let version = rows.first().map_or(0, |row| from_db(row.0));
    let pins = rows.into_iter().filter_map(|(_, node_id, revision, author, reason, at)| {
        Some(Pin {
            node_id: node_id?,
            revision: from_db(revision?),
            author: author?,
            reason: reason?,
            pinned_at_ms: from_db(at?),
        })
    });
    Ok((version, pins.collect()))
}
