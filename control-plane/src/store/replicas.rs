//! The control planes that share the database. Times are the database's own, so that their clocks do not matter.

use super::pool::{Pool, query, query_as};
use super::{NOW_MS, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::Replica;

statements! {
    BEAT = "insert into control_plane (id, name, version, started_at_ms, seen_at_ms)
            values ($1, $2, $3, $4, $5)
            on conflict (id) do update set seen_at_ms = excluded.seen_at_ms";
    LIST = "select id, name, version, started_at_ms, seen_at_ms from control_plane order by name, id";
    LEAVE = "delete from control_plane where id = $1";
    FORGET = "delete from control_plane where seen_at_ms < $1";
}

/// Says that a control plane lives, and returns all that were heard of within `kept_ms`.
pub async fn beat(pool: &Pool, own: &Replica, kept_ms: u64) -> Result<Vec<Replica>, sqlx::Error> {
    let (now_ms,): (i64,) = pool.one(query_as(NOW_MS)).await?;
    let beat = query(BEAT).bind(&own.id).bind(&own.name).bind(&own.version);
    pool.run(beat.bind(to_db(own.started_at_ms)).bind(now_ms)).await?;
    let rows: Vec<(String, String, String, i64, i64)> = pool.all(query_as(LIST)).await?;
    let replica = |(id, name, version, started, seen): (String, String, String, i64, i64)| Replica {
        id,
        name,
        version,
        started_at_ms: from_db(started),
        silent_ms: from_db((now_ms - seen).max(0)),
    };
    let (found, gone): (Vec<Replica>, Vec<Replica>) =
        rows.into_iter().map(replica).partition(|replica| replica.silent_ms <= kept_ms);
    if !gone.is_empty() {
        // Not in one transaction with the row above: two that remove each other's would wait for each other.
        pool.run(query(FORGET).bind(now_ms - to_db(kept_ms))).await?;
    }
    Ok(found)
}

/// A control plane ends.
pub async fn leave(pool: &Pool, id: &str) -> Result<(), sqlx::Error> {
    pool.run(query(LEAVE).bind(id)).await.map(drop)
}
