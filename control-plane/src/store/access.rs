//! Tokens of operators and the version of their list.

use super::pool::{Pool, query, query_as};
use super::{audit, statements};
use crate::store::convert::{from_db, sha, to_db};
use crate::store::entry::Entry;
use crate::store::rows::AdminToken;

statements! {
    BUMP = "update part set version = version + 1 where kind = 'access'";
    INSERT = "insert into admin_token (id, name, role, sha256, created_at_ms, created_by, expires_at_ms)
              values ($1, $2, $3, $4, $5, $6, $7)";
    REVOKE = "update admin_token set revoked_at_ms = $2 where id = $1 and revoked_at_ms is null";
    // The version belongs to what is read after it, or to something older, which is read again.
    VERSION = "select version from part where kind = 'access'";
    ONE = "select id, name, role, sha256, created_at_ms, created_by, expires_at_ms, revoked_at_ms, last_used_at_ms
           from admin_token where id = $1";
    LIST = "select id, name, role, sha256, created_at_ms, created_by, expires_at_ms, revoked_at_ms, last_used_at_ms
            from admin_token order by created_at_ms, id";
    USED = "update admin_token set last_used_at_ms = $2
            where id = $1 and (last_used_at_ms is null or last_used_at_ms < $2)";
}

type Columns = (String, String, String, Vec<u8>, i64, String, Option<i64>, Option<i64>, Option<i64>);

fn token(columns: Columns) -> Result<AdminToken, sqlx::Error> {
    let (id, name, role, digest, created, created_by, expires, revoked, used) = columns;
    Ok(AdminToken {
        id,
        name,
        role,
        sha256: sha(digest)?,
        created_at_ms: from_db(created),
        created_by,
        expires_at_ms: expires.map(from_db),
        revoked_at_ms: revoked.map(from_db),
        last_used_at_ms: used.map(from_db),
    })
}

/// Keeps a token and moves the version, together.
pub async fn insert(pool: &Pool, new: &AdminToken, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    query(BUMP).execute(&mut *tx).await?;
    query(INSERT)
        .bind(&new.id)
        .bind(&new.name)
        .bind(&new.role)
        .bind(&new.sha256[..])
        .bind(to_db(new.created_at_ms))
        .bind(&new.created_by)
        .bind(new.expires_at_ms.map(to_db))
        .execute(&mut *tx)
        .await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await
}

/// Revokes a token that is not revoked, and moves the version. Returns the token, if there is one.
pub async fn revoke(
    pool: &Pool,
    id: &str,
    now_ms: u64,
    entry: &Entry,
) -> Result<Option<AdminToken>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let revoked = query(REVOKE).bind(id).bind(to_db(now_ms)).execute(&mut *tx).await?;
    let row: Option<Columns> = query_as(ONE).bind(id).fetch_optional(&mut *tx).await?;
    if revoked.rows_affected() == 1 {
        query(BUMP).execute(&mut *tx).await?;
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await?;
    row.map(token).transpose()
}

/// The version of the list.
pub async fn version(pool: &Pool) -> Result<u64, sqlx::Error> {
    let (version,): (i64,) = pool.one(query_as(VERSION)).await?;
    Ok(from_db(version))
}

/// Every token that ever was, oldest first.
pub async fn list(pool: &Pool) -> Result<Vec<AdminToken>, sqlx::Error> {
    let rows: Vec<Columns> = pool.all(query_as(LIST)).await?;
    rows.into_iter().map(token).collect()
}

/// Notes when tokens were last used. An older time changes nothing.
pub async fn used(pool: &Pool, uses: &[(String, u64)]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    for (id, at_ms) in uses {
        query(USED).bind(id).bind(to_db(*at_ms)).execute(&mut *tx).await?;
    }
    tx.commit().await
}
