//! How the periodic jobs of the control planes do, by the database's clock; and which nodes counted otherwise than this
//! database, as long as that is news.

use super::pool::{Pool, query, query_as};
use super::{NOW_MS, statements};
use crate::alerts::Beat;
use crate::store::convert::{from_db, to_db};

statements! {
    BEAT = "insert into job_beat (control_plane, job, name, written_at_ms, age_ms, period_ms)
            values ($1, $2, $3, $4, $5, $6)
            on conflict (control_plane, job) do update set written_at_ms = excluded.written_at_ms,
              age_ms = excluded.age_ms, period_ms = excluded.period_ms";
    // Whoever takes the name of a control plane has taken its place.
    REPLACE = "delete from job_beat where name = $1 and control_plane <> $2";
    LIST = "select control_plane, name, job, written_at_ms, age_ms, period_ms from job_beat
            order by name, job";
    LEAVE = "delete from job_beat where control_plane = $1";
    FORGET = "delete from job_beat where written_at_ms < $1";
    MISMATCH = "insert into counter_mismatch (node_id, at_ms) values ($1, $2)
                on conflict (node_id) do update set at_ms = excluded.at_ms";
    MISMATCHES = "select node_id from counter_mismatch where at_ms >= $1 order by node_id";
    FORGET_MISMATCHES = "delete from counter_mismatch where at_ms < $1";
}

/// Writes how the jobs of a control plane do; what was written more than `kept_ms` ago goes.
pub async fn write(pool: &Pool, beats: &[Beat], kept_ms: u64) -> Result<(), sqlx::Error> {
    let (now_ms,): (i64,) = pool.one(query_as(NOW_MS)).await?;
    let mut tx = pool.begin().await?;
    for beat in beats {
        query(BEAT)
            .bind(&beat.control_plane)
            .bind(&beat.job)
            .bind(&beat.name)
            .bind(now_ms)
            .bind(to_db(beat.age_ms))
            .bind(to_db(beat.period_ms))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    if let Some(beat) = beats.first() {
        // Not in one transaction with the rows above: two that remove each other's would wait for each other.
        pool.run(query(REPLACE).bind(&beat.name).bind(&beat.control_plane)).await?;
    }
    pool.run(query(FORGET).bind(now_ms - to_db(kept_ms))).await.map(drop)
}

/// How all jobs do.
pub async fn list(pool: &Pool) -> Result<Vec<Beat>, sqlx::Error> {
    let (now_ms,): (i64,) = pool.one(query_as(NOW_MS)).await?;
    type Row = (String, String, String, i64, i64, i64);
    let rows: Vec<Row> = pool.all(query_as(LIST)).await?;
    let beat = |(control_plane, name, job, written, age, period): Row| Beat {
        control_plane,
        name,
        job,
        written_ago_ms: from_db((now_ms - written).max(0)),
        age_ms: from_db(age),
        period_ms: from_db(period),
    };
    Ok(rows.into_iter().map(beat).collect())
}

/// A control plane ends.
pub async fn leave(pool: &Pool, id: &str) -> Result<(), sqlx::Error> {
    pool.run(query(LEAVE).bind(id)).await.map(drop)
}

/// A node counted otherwise.
pub async fn mismatch(pool: &Pool, node_id: &str, at_ms: u64) -> Result<(), sqlx::Error> {
    pool.run(query(MISMATCH).bind(node_id).bind(to_db(at_ms))).await.map(drop)
}

/// Nodes that counted otherwise since then.
pub async fn mismatches(pool: &Pool, since_ms: u64) -> Result<Vec<String>, sqlx::Error> {
    let rows: Vec<(String,)> = pool.all(query_as(MISMATCHES).bind(to_db(since_ms))).await?;
    Ok(rows.into_iter().map(|(node,)| node).collect())
}

/// Removes what is no news.
pub async fn forget_mismatches(pool: &Pool, before_ms: u64) -> Result<(), sqlx::Error> {
    pool.run(query(FORGET_MISMATCHES).bind(to_db(before_ms))).await.map(drop)
}
