//! Which channel made what: kept as often as it is reported, the newest making of an id first.

use sqlx::QueryBuilder;

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Db, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::rows::Binding;

statements! {
    FIND = "select channel, model, made_at_ms from binding where id = $1 and key_id = $2 and dialect = $3";
    FORGET = "delete from binding where made_at_ms < $1";
}

/// Rows of one insert.
const ROWS_AT_ONCE: usize = 250;

const KEEP: &str = "insert into binding (dialect, id, key_id, channel, model, made_at_ms) ";
const OR_REPLACE: &str = " on conflict (id, key_id, dialect) do update
    set channel = excluded.channel, model = excluded.model, made_at_ms = excluded.made_at_ms
    where binding.made_at_ms <= excluded.made_at_ms";

/// Keeps all of them or none. Each name stands once, and all writers have them in the same order.
pub async fn keep(pool: &Pool, bindings: &[Binding]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    for rows in bindings.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::<Db>::new(KEEP);
        insert.push_values(rows, |mut row, binding| {
            row.push_bind(&binding.dialect)
                .push_bind(&binding.id)
                .push_bind(&binding.key_id)
                .push_bind(&binding.channel)
                .push_bind(&binding.model)
                .push_bind(to_db(binding.made_at_ms));
        });
        insert.push(OR_REPLACE).build().persistent(false).execute(&mut *tx).await?;
    }
    tx.commit().await
}

pub async fn find(
    pool: &Pool,
    dialect: &str,
    id: &str,
    key_id: &str,
) -> Result<Option<Binding>, sqlx::Error> {
    let found: Option<(String, String, i64)> =
        pool.optional(query_as(FIND).bind(id).bind(key_id).bind(dialect)).await?;
    Ok(found.map(|(channel, model, made_at)| Binding {
        dialect: dialect.to_owned(),
        id: id.to_owned(),
        key_id: key_id.to_owned(),
        channel,
        model,
        made_at_ms: from_db(made_at),
    }))
}

/// Removes what was made before `before_ms`.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}
