//! Counters: each window counts exactly once, claimed and added in one transaction.

use std::collections::BTreeMap;

use common::window::{RequestOutcome, Totals};
use sqlx::QueryBuilder;

use super::first_bytes::{self, ROLL_UP};
use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, Db, LOCK_COUNTS, statements};
use crate::rollout::Tally;
use crate::store::convert::{from_db, to_db};
use crate::store::rows::{AttemptRow, Claim, Claimed, Counted, RequestRow};

statements! {
    MAKE_BOOT = "insert into boot (node_id, boot_id, last_seq, attempts, attempts_ok, requests,
                   requests_served, until_ms)
                 values ($1, $2, 0, 0, 0, 0, 0, 0) on conflict (node_id, boot_id) do nothing";
    CLAIM = "update boot set last_seq = $4, attempts = attempts + $5, attempts_ok = attempts_ok + $6,
               requests = requests + $7, requests_served = requests_served + $8,
               until_ms = case when until_ms < $9 then $9 else until_ms end
             where node_id = $1 and boot_id = $2 and last_seq = $3 - 1
             returning attempts, attempts_ok, requests, requests_served";
    // The node was told that the windows before this one are counted, and this database lost them.
    REBASE = "update boot set last_seq = $4, attempts = $5, attempts_ok = $6, requests = $7,
                requests_served = $8, until_ms = case when until_ms < $9 then $9 else until_ms end
              where node_id = $1 and boot_id = $2 and last_seq < $3 - 1";
    LAST = "select last_seq from boot where node_id = $1 and boot_id = $2";
    ATTEMPTS = "select at_ms / $2 * $2, model, channel, class, cast(sum(count) as bigint) from attempt_count
                where at_ms >= $1 and (cast($3 as text) is null or model = $3)
                group by 1, 2, 3, 4 order by 1, 2, 3, 4";
    REQUESTS = "select at_ms / $2 * $2, model, outcome, cast(sum(count) as bigint) from request_count
                where at_ms >= $1 and (cast($3 as text) is null or model = $3)
                group by 1, 2, 3 order by 1, 2, 3";
    UNTIL = "select coalesce(max(until_ms), 0) from boot";
    ROLL_ATTEMPTS = "insert into attempt_count (at_ms, model, channel, class, count)
                     select at_ms / $2 * $2, model, channel, class, cast(sum(count) as bigint)
                     from attempt_count where at_ms < $1 and at_ms % $2 <> 0 group by 1, 2, 3, 4
                     on conflict (at_ms, model, channel, class)
                     do update set count = attempt_count.count + excluded.count";
    DROP_ROLLED_ATTEMPTS = "delete from attempt_count where at_ms < $1 and at_ms % $2 <> 0";
    ROLL_REQUESTS = "insert into request_count (at_ms, model, outcome, count)
                     select at_ms / $2 * $2, model, outcome, cast(sum(count) as bigint)
                     from request_count where at_ms < $1 and at_ms % $2 <> 0 group by 1, 2, 3
                     on conflict (at_ms, model, outcome)
                     do update set count = request_count.count + excluded.count";
    DROP_ROLLED_REQUESTS = "delete from request_count where at_ms < $1 and at_ms % $2 <> 0";
    FORGET_ATTEMPTS = "delete from attempt_count where at_ms < $1";
    FORGET_REQUESTS = "delete from request_count where at_ms < $1";
    FORGET_BOOTS = "delete from boot where until_ms < $1";
}

/// Rows of one insert: a window of thousands takes tens of round trips and not thousands.
const ROWS_AT_ONCE: usize = 250;

const ADD_ATTEMPTS: &str = "insert into attempt_count (at_ms, model, channel, class, count) ";
const ADD_TO_ATTEMPTS: &str = " on conflict (at_ms, model, channel, class)
                               do update set count = attempt_count.count + excluded.count";
const ADD_NODE_COUNTS: &str = "insert into node_count (at_ms, node_id, model, served, failed) ";
const ADD_TO_NODE_COUNTS: &str = " on conflict (at_ms, node_id, model) do update
                                  set served = node_count.served + excluded.served,
                                      failed = node_count.failed + excluded.failed";
const ADD_REQUESTS: &str = "insert into request_count (at_ms, model, outcome, count) ";
const ADD_TO_REQUESTS: &str = " on conflict (at_ms, model, outcome)
                               do update set count = request_count.count + excluded.count";

/// Counts a window if it follows the last counted one of its boot. Nothing is kept of a window that
/// is not counted whole.
pub async fn claim(pool: &Pool, claim: &Claim, bucket_ms: u64) -> Result<Claimed, sqlx::Error> {
    let mut tx = pool.begin().await?;
    query(MAKE_BOOT).bind(&claim.node_id).bind(&claim.boot_id).execute(&mut *tx).await?;
    let claimed = match claim_next(&mut tx, claim).await? {
        Some(sums) => {
            let mismatch = claim.totals.filter(|totals| *totals != sums).map(|_| sums);
            Claimed::Counted { mismatch, rebased: false }
        }
        None if claim.acknowledged_through == claim.first_seq - 1 && rebase(&mut tx, claim).await? => {
            Claimed::Counted { mismatch: None, rebased: true }
        }
        None => {
            let last: (i64,) =
                query_as(LAST).bind(&claim.node_id).bind(&claim.boot_id).fetch_one(&mut *tx).await?;
            let through = from_db(last.0);
            tx.rollback().await?;
            return Ok(if claim.last_seq <= through {
                Claimed::Duplicate { through }
            } else {
                Claimed::OutOfOrder { through }
            });
        }
    };
    add(&mut tx, claim, bucket_ms).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn claim_next(tx: &mut Connection, claim: &Claim) -> Result<Option<Totals>, sqlx::Error> {
    let sums = claim.counts.totals();
    let row: Option<(i64, i64, i64, i64)> = query_as(CLAIM)
        .bind(&claim.node_id)
        .bind(&claim.boot_id)
        .bind(to_db(claim.first_seq))
        .bind(to_db(claim.last_seq))
        .bind(to_db(sums.attempts))
        .bind(to_db(sums.attempts_ok))
        .bind(to_db(sums.requests))
        .bind(to_db(sums.requests_served))
        .bind(to_db(claim.until_ms))
        .fetch_optional(&mut *tx)
        .await?;
    Ok(row.map(|(attempts, attempts_ok, requests, served)| Totals {
        attempts: from_db(attempts),
        attempts_ok: from_db(attempts_ok),
        requests: from_db(requests),
        requests_served: from_db(served),
    }))
}

async fn rebase(tx: &mut Connection, claim: &Claim) -> Result<bool, sqlx::Error> {
    let sums = claim.totals.unwrap_or_else(|| claim.counts.totals());
    let rebased = query(REBASE)
        .bind(&claim.node_id)
        .bind(&claim.boot_id)
        .bind(to_db(claim.first_seq))
        .bind(to_db(claim.last_seq))
        .bind(to_db(sums.attempts))
        .bind(to_db(sums.attempts_ok))
        .bind(to_db(sums.requests))
        .bind(to_db(sums.requests_served))
        .bind(to_db(claim.until_ms))
        .execute(&mut *tx)
        .await?;
    Ok(rebased.rows_affected() == 1)
}

async fn add(tx: &mut Connection, claim: &Claim, bucket_ms: u64) -> Result<(), sqlx::Error> {
    // A window belongs to the bucket in which it ended. The maps are sorted, so that two windows take
    // their row locks in the same order.
    let at = to_db(claim.until_ms.saturating_sub(1) / bucket_ms * bucket_ms);
    let attempts: Vec<_> = claim.counts.attempts.iter().collect();
    for rows in attempts.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(ADD_ATTEMPTS);
        insert.push_values(rows, |mut row, ((model, channel, class), count)| {
            row.push_bind(at).push_bind(model).push_bind(channel).push_bind(class).push_bind(to_db(**count));
        });
        insert.push(ADD_TO_ATTEMPTS).build().persistent(false).execute(&mut *tx).await?;
    }
    let requests: Vec<_> = claim.counts.requests.iter().collect();
    for rows in requests.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(ADD_REQUESTS);
        insert.push_values(rows, |mut row, ((model, outcome), count)| {
            row.push_bind(at).push_bind(model).push_bind(outcome).push_bind(to_db(**count));
        });
        insert.push(ADD_TO_REQUESTS).build().persistent(false).execute(&mut *tx).await?;
    }
    first_bytes::add(tx, claim, at).await?;
    add_by_node(tx, claim).await
}

/// Adds what rollouts are judged by: requests that were served or failed, under the beginning of their window.
async fn add_by_node(tx: &mut Connection, claim: &Claim) -> Result<(), sqlx::Error> {
    let mut by_model: BTreeMap<&str, Tally> = BTreeMap::new();
    for ((model, outcome), count) in &claim.counts.requests {
        let counted = match RequestOutcome::parse(outcome) {
            Some(RequestOutcome::Served) => Tally { served: *count, failed: 0 },
            Some(RequestOutcome::Exhausted | RequestOutcome::Cut) => Tally { served: 0, failed: *count },
            Some(RequestOutcome::BadRequest | RequestOutcome::Canceled | RequestOutcome::Refused(_))
            | None => {
                continue;
            }
        };
        *by_model.entry(model).or_default() += counted;
    }
    let rows: Vec<(&str, Tally)> = by_model.into_iter().collect();
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(ADD_NODE_COUNTS);
        insert.push_values(rows, |mut row, (model, tally)| {
            row.push_bind(to_db(claim.from_ms))
                .push_bind(&claim.node_id)
                .push_bind(*model)
                .push_bind(to_db(tally.served))
                .push_bind(to_db(tally.failed));
        });
        insert.push(ADD_TO_NODE_COUNTS).build().persistent(false).execute(&mut *tx).await?;
    }
    Ok(())
}

pub async fn counted(
    pool: &Pool,
    since_ms: u64,
    step_ms: u64,
    model: Option<&str>,
) -> Result<Counted, sqlx::Error> {
    let (since, step) = (to_db(since_ms), to_db(step_ms).max(1));
    let mut tx = pool.begin_reading().await?;
    let attempts: Vec<(i64, String, String, String, i64)> =
        query_as(ATTEMPTS).bind(since).bind(step).bind(model).fetch_all(&mut *tx).await?;
    let requests: Vec<(i64, String, String, i64)> =
        query_as(REQUESTS).bind(since).bind(step).bind(model).fetch_all(&mut *tx).await?;
    let (until,): (i64,) = query_as(UNTIL).fetch_one(&mut *tx).await?;
    tx.commit().await?;
    let attempt = |(at, model, channel, class, count)| AttemptRow {
        at_ms: from_db(at),
        model,
        channel,
        class,
        count: from_db(count),
    };
    let request = |(at, model, outcome, count)| RequestRow {
        at_ms: from_db(at),
        model,
        outcome,
        count: from_db(count),
    };
    Ok(Counted {
        attempts: attempts.into_iter().map(attempt).collect(),
        requests: requests.into_iter().map(request).collect(),
        first_bytes: vec![],
        until_ms: from_db(until),
    })
}

/// Puts counters older than `before_ms` together into buckets of `bucket_ms`. A second run changes nothing.
pub async fn roll_up(pool: &Pool, leader: u64, before_ms: u64, bucket_ms: u64) -> Result<(), sqlx::Error> {
    // The bucket of the border itself is left whole.
    let before = to_db(before_ms / bucket_ms * bucket_ms);
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(LOCK_COUNTS).execute(&mut *tx).await?;
    let of_counts = [ROLL_ATTEMPTS, DROP_ROLLED_ATTEMPTS, ROLL_REQUESTS, DROP_ROLLED_REQUESTS];
    for sql in of_counts.into_iter().chain(ROLL_UP) {
        query(sql).bind(before).bind(to_db(bucket_ms)).execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Removes counters older than `before_ms`.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    for sql in [FORGET_ATTEMPTS, FORGET_REQUESTS] {
        query(sql).bind(to_db(before_ms)).execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Removes boots whose newest window ended before `before_ms`.
pub async fn forget_boots(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET_BOOTS).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}
