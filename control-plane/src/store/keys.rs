//! Client keys and the version of their list.

use common::snapshot::Sha;

use super::pool::{Pool, query, query_as};
use super::{audit, statements};
use crate::store::convert::{from_db, sha, to_db};
use crate::store::entry::Entry;
use crate::store::rows::Key;

statements! {
    BUMP = "update part set version = version + 1 where kind = 'keys'";
    INSERT = "insert into client_key (id, name, sha256, created_at_ms) values ($1, $2, $3, $4)";
    REVOKE = "update client_key set revoked_at_ms = $2 where id = $1 and revoked_at_ms is null";
    ONE = "select id, name, sha256, created_at_ms, revoked_at_ms from client_key where id = $1";
    VALID = "select id from client_key where sha256 = $1 and revoked_at_ms is null";
    // One statement, so that the version belongs to the list.
    LIST = "select p.version, k.id, k.name, k.sha256, k.created_at_ms, k.revoked_at_ms
            from part p left join client_key k on true where p.kind = 'keys' order by k.id";
}

type Columns = (String, String, Vec<u8>, i64, Option<i64>);

fn key((id, name, digest, created, revoked): Columns) -> Result<Key, sqlx::Error> {
    let (created_at_ms, revoked_at_ms) = (from_db(created), revoked.map(from_db));
    Ok(Key { id, name, sha256: sha(digest)?, created_at_ms, revoked_at_ms })
}

/// Keeps a key and moves the version, together.
pub async fn insert(pool: &Pool, key: &Key, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    query(BUMP).execute(&mut *tx).await?;
    query(INSERT)
        .bind(&key.id)
        .bind(&key.name)
        .bind(&key.sha256[..])
        .bind(to_db(key.created_at_ms))
        .execute(&mut *tx)
        .await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await
}

/// Revokes a key that is valid, and moves the version; one that was revoked before stays as it is.
/// Returns the key, if there is one.
pub async fn revoke(pool: &Pool, id: &str, now_ms: u64, entry: &Entry) -> Result<Option<Key>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let revoked = query(REVOKE).bind(id).bind(to_db(now_ms)).execute(&mut *tx).await?;
    let row: Option<Columns> = query_as(ONE).bind(id).fetch_optional(&mut *tx).await?;
    if revoked.rows_affected() == 1 {
        query(BUMP).execute(&mut *tx).await?;
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await?;
    row.map(key).transpose()
}

/// The id of the valid key with this digest.
pub async fn valid(pool: &Pool, sha256: &Sha) -> Result<Option<String>, sqlx::Error> {
    let found: Option<(String,)> = pool.optional(query_as(VALID).bind(&sha256[..])).await?;
    Ok(found.map(|(id,)| id))
}

/// Every key that ever was, by id, and the version of this list.
pub async fn list(pool: &Pool) -> Result<(u64, Vec<Key>), sqlx::Error> {
    type Row = (i64, Option<String>, Option<String>, Option<Vec<u8>>, Option<i64>, Option<i64>);
    let rows: Vec<Row> = pool.all(query_as(LIST)).await?;
    let version = rows.first().map_or(0, |row| from_db(row.0));
    let keys = rows.into_iter().filter_map(|(_, id, name, digest, created, revoked)| {
        Some(key((id?, name?, digest?, created?, revoked)))
    });
    Ok((version, keys.collect::<Result<_, _>>()?))
}
