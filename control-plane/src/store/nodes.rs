//! Nodes as they were last seen.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{pins, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::Node;

statements! {
    // Who writes waits for the one before, so that rows of a version are there when it is read.
    BUMP = "update part set version = version + 1 where kind = 'nodes' returning version";
    VERSION = "select version from part where kind = 'nodes'";
    // A node is written by the control plane at which its stream is, and by the next one that it went to. Who has lost
    // its stream, or has an older one that is half open, does not take it back; nor one that is late.
    UPSERT = "insert into node (id, boot_id, version, data_address, ops_address, applied_epoch,
                applied_revision, findings, drained, last_seen_at_ms, control_plane, streaming_since_ms, list_version)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
              on conflict (id) do update set boot_id = excluded.boot_id, version = excluded.version,
                data_address = excluded.data_address, ops_address = excluded.ops_address,
                applied_epoch = excluded.applied_epoch, applied_revision = excluded.applied_revision,
                findings = excluded.findings, drained = excluded.drained,
                last_seen_at_ms = excluded.last_seen_at_ms, control_plane = excluded.control_plane,
                streaming_since_ms = excluded.streaming_since_ms, list_version = excluded.list_version
              where case
                when node.control_plane = $14 then true
                when excluded.control_plane = $14 then coalesce(node.control_plane, '') = ''
                  or node.streaming_since_ms <= excluded.streaming_since_ms
                  or not exists (select 1 from control_plane c where c.id = node.control_plane)
                else coalesce(node.control_plane, '') = '' and node.last_seen_at_ms <= excluded.last_seen_at_ms
              end";
    CLONED = "update node set cloned = $2, list_version = $3 where id = $1";
    FORGET = "delete from node where last_seen_at_ms < $1";
    LIST = "select id, boot_id, version, data_address, ops_address, applied_epoch, applied_revision,
              findings, drained, last_seen_at_ms, control_plane,
              coalesce(streaming_since_ms, 0) as streaming_since_ms, cloned,
              coalesce(list_version, 0) as list_version
            from node where coalesce(list_version, 0) >= $1 order by id";
}

/// Keeps what the control plane of this process knows of some nodes, in one transaction.
pub async fn upsert(pool: &Pool, writer: &str, nodes: &[Node]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    let (version,): (i64,) = query_as(BUMP).fetch_one(&mut *tx).await?;
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
            .bind(&node.control_plane)
            .bind(to_db(node.streaming_since_ms))
            .bind(version)
            .bind(writer)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}

/// Notes which nodes were cloned.
pub async fn note_cloned(pool: &Pool, cloned: &[(String, String)]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    let (version,): (i64,) = query_as(BUMP).fetch_one(&mut *tx).await?;
    for (id, boots) in cloned {
        query(CLONED).bind(id).bind(boots).bind(version).execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Removes nodes that were last heard of before `before_ms`, and their pins.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    pins::forget(&mut tx, before_ms).await?;
    query(FORGET).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}

/// The version of the list.
pub async fn version(pool: &Pool) -> Result<u64, sqlx::Error> {
    let (version,): (i64,) = pool.one(query_as(VERSION)).await?;
    Ok(from_db(version))
}

/// Nodes that were written with this version of the list or a later one; 0 for all.
pub async fn list(pool: &Pool, since: u64) -> Result<Vec<Node>, sqlx::Error> {
    type Row = (
        String,
        String,
        String,
        String,
        String,
        i64,
        i64,
        String,
        bool,
        i64,
        Option<String>,
        i64,
        Option<String>,
        i64,
    );
    let rows: Vec<Row> = pool.all(query_as(LIST).bind(to_db(since))).await?;
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
        control_plane: row.10,
        streaming_since_ms: from_db(row.11),
        cloned: row.12,
        list_version: from_db(row.13),
    };
    Ok(rows.into_iter().map(node).collect())
}
