//! Sealed secrets and the version of their list. What is in them is not known here.

use super::pool::{Pool, query, query_as};
use super::{Connection, audit, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::entry::Entry;
use crate::store::rows::SealedSecret;

statements! {
    // A value is sealed with the version that it will have: who was overtaken seals it anew.
    BUMP = "update part set version = $2 where kind = 'secrets' and version = $1";
    SET = "insert into secret
             (name, version, key_id, sealed, created_at_ms, created_by, changed_at_ms, changed_by)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           on conflict (name) do update set version = excluded.version, key_id = excluded.key_id,
             sealed = excluded.sealed, changed_at_ms = excluded.changed_at_ms, changed_by = excluded.changed_by";
    DELETE = "delete from secret where name = $1";
    // One statement, so that the version belongs to the list.
    LIST = "select p.version, s.name, s.version, s.key_id, s.sealed, s.created_at_ms, s.created_by, s.changed_at_ms,
                   s.changed_by
            from part p left join secret s on true where p.kind = 'secrets' order by s.name";
}

/// Keeps these values, in place of those of the same names, and moves the version from the one that the caller saw.
/// Returns false if it was another one by then.
pub async fn set(
    pool: &Pool,
    seen: u64,
    next: u64,
    secrets: &[SealedSecret],
    entry: &Entry,
) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    if !bump(&mut tx, seen, next).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    for secret in secrets {
        query(SET)
            .bind(&secret.name)
            .bind(to_db(secret.version))
            .bind(&secret.key_id)
            .bind(&secret.sealed)
            .bind(to_db(secret.created_at_ms))
            .bind(&secret.created_by)
            .bind(to_db(secret.changed_at_ms))
            .bind(&secret.changed_by)
            .execute(&mut *tx)
            .await?;
    }
    audit::append(&mut tx, entry).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes a value and moves the version. Returns false if the version was another one by then.
pub async fn delete(
    pool: &Pool,
    seen: u64,
    next: u64,
    name: &str,
    entry: &Entry,
) -> Result<bool, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let is_first = bump(&mut tx, seen, next).await?;
    if !is_first || query(DELETE).bind(name).execute(&mut *tx).await?.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(false);
    }
    audit::append(&mut tx, entry).await?;
    tx.commit().await?;
    Ok(true)
}

async fn bump(tx: &mut Connection, seen: u64, next: u64) -> Result<bool, sqlx::Error> {
    let bumped = query(BUMP).bind(to_db(seen)).bind(to_db(next)).execute(tx).await?;
    Ok(bumped.rows_affected() == 1)
}

/// Every secret, by name, and the version of this list.
pub async fn list(pool: &Pool) -> Result<(u64, Vec<SealedSecret>), sqlx::Error> {
    type Row = (
        i64,
        Option<String>,
        Option<i64>,
        Option<String>,
        Option<Vec<u8>>,
        Option<i64>,
        Option<String>,
        Option<i64>,
        Option<String>,
    );
    let rows: Vec<Row> = pool.all(query_as(LIST)).await?;
    let version = rows.first().map_or(0, |row| from_db(row.0));
    let secret = |row: Row| {
        Some(SealedSecret {
            name: row.1?,
            version: from_db(row.2?),
            key_id: row.3?,
            sealed: row.4?,
            created_at_ms: from_db(row.5?),
            created_by: row.6?,
            changed_at_ms: from_db(row.7?),
            changed_by: row.8?,
        })
    };
    Ok((version, rows.into_iter().filter_map(secret).collect()))
}
