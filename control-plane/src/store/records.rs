//! Records of requests: kept and counted once however often they come, found by what is searched by, forgotten by age.

use std::collections::HashSet;

use sqlx::QueryBuilder;

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, Db, statements, usage};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::{FailureCount, Filter, FoundRecord, KeptRecord, RequestSummary};

statements! {
    LIST = "select request_id, node_id, began_at_ms, model, dialect, key_id, channel, outcome, status, attempts,
                   duration_us
            from request_record r
            where began_at_ms >= $1 and began_at_ms < $2
              and (cast($3 as text) = '' or model = $3)
              and (cast($4 as text) = '' or node_id = $4)
              and (cast($5 as text) = '' or key_id = $5)
              and (cast($6 as text) = '' or outcome = $6)
              and (cast($7 as bigint) = 0 or status = $7)
              and attempts >= $8 and duration_us >= $9
              and ((cast($10 as text) = '' and cast($11 as text) = '')
                or exists (select 1 from request_attempt a where a.request_id = r.request_id
                             and (cast($10 as text) = '' or a.channel = $10)
                             and (cast($11 as text) = '' or a.class = $11)))
              and (cast($12 as text) = '' or request_id < $12)
            order by request_id desc limit $13";
    FAILURES = "select a.channel, a.class, count(*),
                       sum(case when r.outcome = 'served' then 1 else 0 end)
                from request_attempt a join request_record r on r.request_id = a.request_id
                where a.began_at_ms >= $1 and a.began_at_ms < $2 and a.class <> 'ok'
                  and (cast($3 as text) = '' or r.model = $3)
                  and (cast($4 as text) = '' or r.node_id = $4)
                  and (cast($5 as text) = '' or r.key_id = $5)
                  and (cast($6 as text) = '' or r.outcome = $6)
                  and (cast($7 as bigint) = 0 or r.status = $7)
                  and r.attempts >= $8 and r.duration_us >= $9
                  and (cast($10 as text) = '' or a.channel = $10)
                  and (cast($11 as text) = '' or a.class = $11)
                group by a.channel, a.class order by 3 desc, 1, 2 limit $12";
    FIND = "select node_id, record, cost, price from request_record
            where request_id = $1 and (cast($2 as text) is null or key_id = $2)";
    FIND_CALLERS = "select node_id, record, cost, price from request_record
                    where client_request_id = $1 and (cast($2 as text) is null or key_id = $2)
                    order by request_id desc limit 1";
    OLDEST = "select began_at_ms from request_record where began_at_ms < $1
              order by began_at_ms limit 1 offset $2";
    FORGET = "delete from request_record where began_at_ms < $1";
    FORGET_ATTEMPTS = "delete from request_attempt where began_at_ms < $1";
    FORGET_LEFT_OUT = "delete from request_left_out where began_at_ms < $1";
}

/// Rows of one insert.
const ROWS_AT_ONCE: usize = 100;
const FAILURES_MAX: i64 = 1000;
/// Records that go in one transaction.
const FORGOTTEN_AT_ONCE: i64 = 5_000;

const KEEP: &str =
    "insert into request_record (request_id, client_request_id, node_id, began_at_ms, model, dialect,
    key_id, channel, outcome, status, attempts, duration_us, record, cost, price) ";
const KEEP_ATTEMPTS: &str = "insert into request_attempt (request_id, number, began_at_ms, channel, class) ";
const LEAVE_OUT: &str = "insert into request_left_out (request_id, began_at_ms) ";
const ONCE: &str = " on conflict do nothing";
const ONCE_SAYING_WHICH: &str = " on conflict do nothing returning request_id";

/// Keeps all of them that are to be kept, and counts all, or does none of it. Those that came before are left as they are.
pub async fn keep(pool: &Pool, rows: &[KeptRecord]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    let mut new = HashSet::new();
    let (kept, left_out): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_kept);
    for rows in kept.chunks(ROWS_AT_ONCE) {
        new.extend(keep_records(&mut tx, rows).await?);
        keep_attempts(&mut tx, rows).await?;
    }
    for rows in left_out.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(LEAVE_OUT);
        insert.push_values(rows, |mut values, row| {
            values.push_bind(&row.summary.request_id).push_bind(to_db(row.summary.began_at_ms));
        });
        new.extend(said_new(&mut tx, insert).await?);
    }
    // One that came twice in an upload is new once.
    let counted = rows.iter().filter(|row| new.remove(&row.summary.request_id));
    usage::add(&mut tx, counted).await?;
    tx.commit().await
}

/// Keeps those that are not there. Returns their ids.
async fn keep_records(tx: &mut Connection, rows: &[&KeptRecord]) -> Result<Vec<String>, sqlx::Error> {
    let mut insert = QueryBuilder::<Db>::new(KEEP);
    insert.push_values(rows, |mut values, row| {
        let summary = &row.summary;
        values
            .push_bind(&summary.request_id)
            .push_bind(&row.client_request_id)
            .push_bind(&summary.node)
            .push_bind(to_db(summary.began_at_ms))
            .push_bind(&summary.model)
            .push_bind(&summary.dialect)
            .push_bind(&summary.key)
            .push_bind(&summary.channel)
            .push_bind(&summary.outcome)
            .push_bind(i64::from(summary.status))
            .push_bind(i64::from(summary.attempts))
            .push_bind(to_db(summary.duration_us))
            .push_bind(&row.record[..])
            .push_bind(row.cost.map(to_db))
            .push_bind(row.price.map(to_db));
    });
    said_new(tx, insert).await
}

async fn keep_attempts(tx: &mut Connection, rows: &[&KeptRecord]) -> Result<(), sqlx::Error> {
    let attempts: Vec<_> = rows
        .iter()
        .flat_map(|row| (0_i64..).zip(&row.attempts).map(move |(number, attempt)| (row, number, attempt)))
        .collect();
    for attempts in attempts.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(KEEP_ATTEMPTS);
        insert.push_values(attempts, |mut values, (row, number, (channel, class))| {
            values
                .push_bind(&row.summary.request_id)
                .push_bind(*number)
                .push_bind(to_db(row.summary.began_at_ms))
                .push_bind(channel)
                .push_bind(class);
        });
        insert.push(ONCE).build().persistent(false).execute(&mut *tx).await?;
    }
    Ok(())
}

async fn said_new(tx: &mut Connection, mut insert: QueryBuilder<Db>) -> Result<Vec<String>, sqlx::Error> {
    insert.push(ONCE_SAYING_WHICH).build_query_scalar().persistent(false).fetch_all(tx).await
}

/// Requests that pass a filter, newest first.
pub async fn list(
    pool: &Pool,
    filter: &Filter,
    before: &str,
    limit: u32,
) -> Result<Vec<RequestSummary>, sqlx::Error> {
    let listed = query_as(LIST)
        .bind(to_db(filter.since_ms))
        .bind(to_db(filter.until_ms))
        .bind(&filter.model)
        .bind(&filter.node)
        .bind(&filter.key)
        .bind(&filter.outcome)
        .bind(i64::from(filter.status))
        .bind(i64::from(filter.attempts_min))
        .bind(to_db(filter.slower_than_us))
        .bind(&filter.channel)
        .bind(&filter.class)
        .bind(before)
        .bind(i64::from(limit));
    let rows: Vec<Columns> = pool.all(listed).await?;
    Ok(rows.into_iter().map(|Columns(summary)| summary).collect())
}

/// Failed attempts of the requests that pass a filter, by channel and class, most first.
pub async fn failures(pool: &Pool, filter: &Filter) -> Result<Vec<FailureCount>, sqlx::Error> {
    let counted = query_as(FAILURES)
        .bind(to_db(filter.since_ms))
        .bind(to_db(filter.until_ms))
        .bind(&filter.model)
        .bind(&filter.node)
        .bind(&filter.key)
        .bind(&filter.outcome)
        .bind(i64::from(filter.status))
        .bind(i64::from(filter.attempts_min))
        .bind(to_db(filter.slower_than_us))
        .bind(&filter.channel)
        .bind(&filter.class)
        .bind(FAILURES_MAX);
    let rows: Vec<(String, String, i64, i64)> = pool.all(counted).await?;
    let count = |(channel, class, attempts, cured)| FailureCount {
        channel,
        class,
        attempts: from_db(attempts),
        cured: from_db(cured),
    };
    Ok(rows.into_iter().map(count).collect())
}

/// The record of a request, by our id or the caller's own; of this key, where one is given.
pub async fn find(pool: &Pool, id: &str, key: Option<&str>) -> Result<Option<FoundRecord>, sqlx::Error> {
    type Columns = (String, Vec<u8>, Option<i64>, Option<i64>);
    let mut found: Option<Columns> = pool.optional(query_as(FIND).bind(id).bind(key)).await?;
    if found.is_none() {
        found = pool.optional(query_as(FIND_CALLERS).bind(id).bind(key)).await?;
    }
    Ok(found.map(|(node, record, cost, price)| FoundRecord {
        node,
        record,
        cost: cost.map(from_db),
        price: price.map(from_db),
    }))
}

/// Removes what began before `before_ms`, about [`FORGOTTEN_AT_ONCE`] of it. Returns whether there is more.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    let last = query_as(OLDEST).bind(to_db(before_ms)).bind(FORGOTTEN_AT_ONCE);
    let last: Option<(i64,)> = last.fetch_optional(&mut *tx).await?;
    // The last of a batch goes as well, with all that began in its millisecond.
    let until_ms = last.map_or(to_db(before_ms), |(last_ms,)| last_ms + 1);
    for statement in [FORGET_ATTEMPTS, FORGET_LEFT_OUT, FORGET] {
        query(statement).bind(until_ms).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(last.is_some())
}

struct Columns(RequestSummary);

impl<'r> sqlx::FromRow<'r, <Db as sqlx::Database>::Row> for Columns {
    fn from_row(row: &'r <Db as sqlx::Database>::Row) -> Result<Self, sqlx::Error> {
        use sqlx::Row as _;
        let small = |at: usize| row.try_get::<i64, usize>(at).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Ok(Columns(RequestSummary {
            request_id: row.try_get(0)?,
            node: row.try_get(1)?,
            began_at_ms: from_db(row.try_get(2)?),
            model: row.try_get(3)?,
            dialect: row.try_get(4)?,
            key: row.try_get(5)?,
            channel: row.try_get(6)?,
            outcome: row.try_get(7)?,
            status: small(8)?,
            attempts: small(9)?,
            duration_us: from_db(row.try_get(10)?),
        }))
    }
}
