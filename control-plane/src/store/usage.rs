//! What client keys used by day: counted with the records that it comes in, once each.

use std::collections::BTreeMap;

use sqlx::QueryBuilder;

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, Db, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::{KeptRecord, UsageFilter, Used, UsedBy};

statements! {
    LIST = "select case when $5 = 1 then day end, case when $6 = 1 then key_id end, case when $7 = 1 then model end,
                   cast(sum(requests) as bigint), cast(sum(served) as bigint), cast(sum(input) as bigint),
                   cast(sum(cached_input) as bigint), cast(sum(output) as bigint), cast(sum(searches) as bigint),
                   cast(sum(audio_ms) as bigint), cast(sum(cost) as bigint), cast(sum(price) as bigint),
                   cast(sum(unpriced) as bigint)
            from key_usage
            where day >= $1 and day <= $2 and (cast($3 as text) is null or key_id = $3)
              and (cast($4 as text) is null or model = $4)
            group by 1, 2, 3 order by 1, 2, 3 limit 10000";
    FORGET = "delete from key_usage where day < $1";
}

/// Rows of one insert.
const ROWS_AT_ONCE: usize = 100;

const ADD: &str =
    "insert into key_usage (day, key_id, model, requests, served, input, cached_input, output, searches,
    audio_ms, cost, price, unpriced) ";
const ADD_TO: &str = " on conflict (day, key_id, model) do update set
    requests = key_usage.requests + excluded.requests, served = key_usage.served + excluded.served,
    input = key_usage.input + excluded.input, cached_input = key_usage.cached_input + excluded.cached_input,
    output = key_usage.output + excluded.output, searches = key_usage.searches + excluded.searches,
    audio_ms = key_usage.audio_ms + excluded.audio_ms, cost = key_usage.cost + excluded.cost,
    price = key_usage.price + excluded.price, unpriced = key_usage.unpriced + excluded.unpriced";

/// Adds requests that were not counted before, in the order of their keys, so that two uploads take their row locks in
/// the same order.
pub async fn add<'a>(
    tx: &mut Connection,
    rows: impl Iterator<Item = &'a KeptRecord>,
) -> Result<(), sqlx::Error> {
    let mut sums: BTreeMap<&(u32, String, String), Used> = BTreeMap::new();
    for row in rows {
        sums.entry(&row.used_by).or_default().add(&row.used);
    }
    let sums: Vec<_> = sums.into_iter().collect();
    for sums in sums.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(ADD);
        insert.push_values(sums, |mut values, ((day, key, model), used)| {
            values
                .push_bind(i64::from(*day))
                .push_bind(key)
                .push_bind(model)
                .push_bind(to_db(used.requests))
                .push_bind(to_db(used.served))
                .push_bind(to_db(used.input))
                .push_bind(to_db(used.cached_input))
                .push_bind(to_db(used.output))
                .push_bind(to_db(used.searches))
                .push_bind(to_db(used.audio_ms))
                .push_bind(to_db(used.cost))
                .push_bind(to_db(used.price))
                .push_bind(to_db(used.unpriced));
        });
        insert.push(ADD_TO).build().persistent(false).execute(&mut *tx).await?;
    }
    Ok(())
}

/// What was used, by day, key and model as far as these are told apart.
pub async fn list(pool: &Pool, filter: &UsageFilter) -> Result<Vec<(UsedBy, Used)>, sqlx::Error> {
    let listed = query_as(LIST)
        .bind(i64::from(filter.first_day))
        .bind(i64::from(filter.last_day))
        .bind(&filter.key)
        .bind(&filter.model)
        .bind(i64::from(filter.by_day))
        .bind(i64::from(filter.by_key))
        .bind(i64::from(filter.by_model));
    let rows: Vec<Columns> = pool.all(listed).await?;
    Ok(rows.into_iter().map(|Columns(by, used)| (by, used)).collect())
}

/// Removes what was used before a day, if `leader` still leads.
pub async fn forget(pool: &Pool, leader: u64, before_day: u32) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET).bind(i64::from(before_day)).execute(&mut *tx).await?;
    tx.commit().await
}

struct Columns(UsedBy, Used);

impl<'r> sqlx::FromRow<'r, <Db as sqlx::Database>::Row> for Columns {
    fn from_row(row: &'r <Db as sqlx::Database>::Row) -> Result<Self, sqlx::Error> {
        use sqlx::Row as _;
        let day: Option<i64> = row.try_get(0)?;
        let by = UsedBy {
            day: day.map(|day| u32::try_from(day).unwrap_or(u32::MAX)),
            key: row.try_get(1)?,
            model: row.try_get(2)?,
        };
        let number = |at: usize| row.try_get::<i64, usize>(at).map(from_db);
        let used = Used {
            requests: number(3)?,
            served: number(4)?,
            input: number(5)?,
            cached_input: number(6)?,
            output: number(7)?,
            searches: number(8)?,
            audio_ms: number(9)?,
            cost: number(10)?,
            price: number(11)?,
            unpriced: number(12)?,
        };
        Ok(Columns(by, used))
    }
}
