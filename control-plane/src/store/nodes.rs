//! Nodes as they were last seen.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::statements;
use crate::store::convert::{from_db, to_db};
use crate::store::rows::Node;

statements! {
    // A row that another replica wrote later stays.
    UPSERT = "insert into node (id, boot_id, version, data_address, ops_address, applied_epoch,
                applied_revision, findings, drained, last_seen_at_ms)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
              on conflict (id) do update set boot_id = excluded.boot_id, version = excluded.version,
                data_address = excluded.data_address, ops_address = excluded.ops_address,
                applied_epoch = excluded.applied_epoch, applied_revision = excluded.applied_revision,
                findings = excluded.findings, drained = excluded.drained,
                last_seen_at_ms = excluded.last_seen_at_ms
              where node.last_seen_at_ms <= excluded.last_seen_at_ms";
    FORGET = "delete from node where last_seen_at_ms < $1";
    LIST = "select id, boot_id, version, data_address, ops_address, applied_epoch, applied_revision,
              findings, drained, last_seen_at_ms from node order by id";
}

/// Keeps what is known of some nodes, in one transaction.
pub async fn upsert(pool: &Pool, nodes: &[Node]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    for node in nodes {
        query(UPSERT)
            .bind(&node.id)
            .bind(&node.boot_id)
            .bind(&node.version)
            .bind(&node.data_address)
            .bind(&node.ops_address)
            .bind(to_db(node.applied_epoch))
            .bind(to_db(node.applied_revision))
            .bind(&node.findings)
            .bind(node.drained)
            .bind(to_db(node.last_seen_at_ms))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}

/// Removes nodes that were last heard of before `before_ms`.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}

pub async fn list(pool: &Pool) -> Result<Vec<Node>, sqlx::Error> {
    type Row = (String, String, String, String, String, i64, i64, String, bool, i64);
    let rows: Vec<Row> = pool.all(query_as(LIST)).await?;
    let node = |row: Row| Node {
        id: row.0,
        boot_id: row.1,
        version: row.2,
        data_address: row.3,
        ops_address: row.4,
        applied_epoch: from_db(row.5),
        applied_revision: from_db(row.6),
        findings: row.7,
        drained: row.8,
        last_seen_at_ms: from_db(row.9),
    };
    Ok(rows.into_iter().map(node).collect())
}
