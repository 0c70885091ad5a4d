//! Times to the first byte, as counts by their bounds: added with the window that they came in, put together and
//! removed like the other counters.

use sqlx::QueryBuilder;

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, Db, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::{Claim, FirstByteRow};

statements! {
    COUNTED = "select model, channel, bound_ms, cast(sum(count) as bigint) from first_byte_count
               where at_ms >= $1 and (cast($2 as text) is null or model = $2)
               group by 1, 2, 3 order by 1, 2, 3";
    ROLL = "insert into first_byte_count (at_ms, model, channel, bound_ms, count)
            select at_ms / $2 * $2, model, channel, bound_ms, cast(sum(count) as bigint)
            from first_byte_count where at_ms < $1 and at_ms % $2 <> 0 group by 1, 2, 3, 4
            on conflict (at_ms, model, channel, bound_ms)
            do update set count = first_byte_count.count + excluded.count";
    DROP_ROLLED = "delete from first_byte_count where at_ms < $1 and at_ms % $2 <> 0";
    FORGET = "delete from first_byte_count where at_ms < $1";
}

/// What puts old counts together, in this order; the counts are locked by then.
pub const ROLL_UP: [super::Statement; 2] = [ROLL, DROP_ROLLED];

/// Rows of one insert.
const ROWS_AT_ONCE: usize = 250;

const ADD: &str = "insert into first_byte_count (at_ms, model, channel, bound_ms, count) ";
const ADD_TO: &str = " on conflict (at_ms, model, channel, bound_ms)
                       do update set count = first_byte_count.count + excluded.count";

/// Adds the times of a window that is being claimed, in the order of their keys, so that two windows take their row
/// locks in the same order.
pub async fn add(tx: &mut Connection, claim: &Claim, at: i64) -> Result<(), sqlx::Error> {
    let rows: Vec<_> = claim.counts.first_bytes.iter().collect();
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(ADD);
        insert.push_values(rows, |mut row, ((model, channel, bound_ms), count)| {
            row.push_bind(at)
                .push_bind(model)
                .push_bind(channel)
                .push_bind(i64::from(*bound_ms))
                .push_bind(to_db(**count));
        });
        insert.push(ADD_TO).build().persistent(false).execute(&mut *tx).await?;
    }
    Ok(())
}

pub async fn counted(
    pool: &Pool,
    since_ms: u64,
    model: Option<&str>,
) -> Result<Vec<FirstByteRow>, sqlx::Error> {
    let rows: Vec<(String, String, i64, i64)> =
        pool.all(query_as(COUNTED).bind(to_db(since_ms)).bind(model)).await?;
    let row = |(model, channel, bound_ms, count)| FirstByteRow {
        model,
        channel,
        bound_ms: u32::try_from(bound_ms).unwrap_or(u32::MAX),
        count: from_db(count),
    };
    Ok(rows.into_iter().map(row).collect())
}

/// Removes times older than `before_ms`.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}
