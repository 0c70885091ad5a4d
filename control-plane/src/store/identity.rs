//! Tokens for enrolment and the nodes that have enrolled.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{audit, statements};
use crate::store::convert::{from_db, to_db};
use crate::store::entry::Entry;
use crate::store::rows::{Enrol, Enrolled, EnrolmentToken, NodeIdentity};

statements! {
    BUMP = "update part set version = version + 1 where kind = 'identities'";
    VERSION = "select version from part where kind = 'identities'";
    INSERT_TOKEN = "insert into enrolment_token (id, sha256, labels, uses_max, uses, created_at_ms, expires_at_ms)
                    values ($1, $2, $3, $4, 0, $5, $6)";
    TOKENS = "select id, labels, uses_max, uses, created_at_ms, expires_at_ms, revoked_at_ms
              from enrolment_token order by created_at_ms, id";
    TOKEN = "select id, labels, uses_max, uses, created_at_ms, expires_at_ms, revoked_at_ms
             from enrolment_token where id = $1";
    REVOKE_TOKEN = "update enrolment_token set revoked_at_ms = $2 where id = $1 and revoked_at_ms is null";
    FORGET_TOKENS = "delete from enrolment_token where expires_at_ms < $1";
    // No row means that it is no token, is over, or was used up.
    USE_TOKEN = "update enrolment_token set uses = uses + 1
                 where sha256 = $1 and uses < uses_max and expires_at_ms > $2 and revoked_at_ms is null
                 returning id, labels, created_at_ms";
    // A node that was revoked comes back with a token that was made afterwards alone.
    ENROL = "insert into node_identity (node_id, key_sha256, authority_sha256, serial, token_id, labels,
               enrolled_at_ms, issued_at_ms, expires_at_ms)
             values ($1, $2, $3, $4, $5, $6, $7, $7, $8)
             on conflict (node_id) do update set key_sha256 = excluded.key_sha256,
               authority_sha256 = excluded.authority_sha256, serial = excluded.serial,
               token_id = excluded.token_id, labels = excluded.labels,
               enrolled_at_ms = excluded.enrolled_at_ms, issued_at_ms = excluded.issued_at_ms,
               expires_at_ms = excluded.expires_at_ms, revoked_at_ms = null
             where node_identity.revoked_at_ms is null or node_identity.revoked_at_ms < $9";
    RENEW = "update node_identity set authority_sha256 = $3, serial = $4, issued_at_ms = $5, expires_at_ms = $6
             where node_id = $1 and key_sha256 = $2 and revoked_at_ms is null";
    REVOKE = "insert into node_identity (node_id, key_sha256, authority_sha256, serial, token_id, labels,
                enrolled_at_ms, issued_at_ms, expires_at_ms, revoked_at_ms)
              values ($1, $3, $3, '', '', '{}', 0, 0, 0, $2)
              on conflict (node_id) do update set revoked_at_ms = excluded.revoked_at_ms
              where node_identity.revoked_at_ms is null";
    LIST = "select node_id, key_sha256, authority_sha256, serial, token_id, labels, enrolled_at_ms, issued_at_ms,
              expires_at_ms, revoked_at_ms from node_identity order by node_id";
}

type TokenColumns = (String, String, i64, i64, i64, i64, Option<i64>);
type Columns = (String, Vec<u8>, Vec<u8>, String, String, String, i64, i64, i64, Option<i64>);

fn token(row: TokenColumns) -> EnrolmentToken {
    let (id, labels, uses_max, uses, created, expires, revoked) = row;
    EnrolmentToken {
        id,
        labels,
        uses_max: from_db(uses_max),
        uses: from_db(uses),
        created_at_ms: from_db(created),
        expires_at_ms: from_db(expires),
        revoked_at_ms: revoked.map(from_db),
    }
}

/// Keeps a new token.
pub async fn insert_token(
    pool: &Pool,
    token: &EnrolmentToken,
    sha256: &[u8],
    entry: &Entry,
) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    query(INSERT_TOKEN)
        .bind(&token.id)
        .bind(sha256)
        .bind(&token.labels)
        .bind(to_db(token.uses_max))
        .bind(to_db(token.created_at_ms))
        .bind(to_db(token.expires_at_ms))
        .execute(&mut *tx)
        .await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await
}

/// Every token, oldest first.
pub async fn tokens(pool: &Pool) -> Result<Vec<EnrolmentToken>, sqlx::Error> {
    let rows: Vec<TokenColumns> = pool.all(query_as(TOKENS)).await?;
    Ok(rows.into_iter().map(token).collect())
}

/// Revokes a token; one that was revoked before stays as it is. Returns it, if there is one.
pub async fn revoke_token(
    pool: &Pool,
    id: &str,
    now_ms: u64,
    entry: &Entry,
) -> Result<Option<EnrolmentToken>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let revoked = query(REVOKE_TOKEN).bind(id).bind(to_db(now_ms)).execute(&mut *tx).await?;
    let row: Option<TokenColumns> = query_as(TOKEN).bind(id).fetch_optional(&mut *tx).await?;
    if revoked.rows_affected() == 1 {
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await?;
    Ok(row.map(token))
}

/// Removes tokens that were over before `before_ms`.
pub async fn forget_tokens(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    query(FORGET_TOKENS).bind(to_db(before_ms)).execute(&mut *tx).await?;
    tx.commit().await
}

/// Uses a token and keeps the node's identity, both or neither.
pub async fn enrol(pool: &Pool, enrol: &Enrol, entry: &Entry) -> Result<Enrolled, sqlx::Error> {
    let mut tx = pool.begin().await?;
    // The shared token is older than any revocation.
    let (mut token_id, mut labels, mut made_at) = (String::new(), "{}".to_owned(), 0);
    if let Some(token_sha256) = &enrol.token_sha256 {
        let used: Option<(String, String, i64)> = query_as(USE_TOKEN)
            .bind(&token_sha256[..])
            .bind(to_db(enrol.issued_at_ms))
            .fetch_optional(&mut *tx)
            .await?;
        let Some(used) = used else {
            tx.rollback().await?;
            return Ok(Enrolled::NoToken);
        };
        (token_id, labels, made_at) = used;
    }
    let kept = query(ENROL)
        .bind(&enrol.node_id)
        .bind(&enrol.key_sha256[..])
        .bind(&enrol.authority_sha256[..])
        .bind(&enrol.serial)
        .bind(&token_id)
        .bind(&labels)
        .bind(to_db(enrol.issued_at_ms))
        .bind(to_db(enrol.expires_at_ms))
        .bind(made_at)
        .execute(&mut *tx)
        .await?;
    if kept.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(Enrolled::Revoked);
    }
    query(BUMP).execute(&mut *tx).await?;
    let entry = Entry { credential: shown(&token_id).to_owned(), ..entry.clone() };
    audit::append(&mut tx, &entry).await?;
    tx.commit().await?;
    Ok(Enrolled::Kept { token_id })
}

/// The name of a token; without an id it is the one that all nodes share.
fn shown(token_id: &str) -> &str {
    if token_id.is_empty() { "node.token" } else { token_id }
}

/// Keeps a newer certificate of the same key. Returns false if that key is not the node's, or it is revoked.
pub async fn renew(pool: &Pool, renewed: &Enrol) -> Result<bool, sqlx::Error> {
    let renew = query(RENEW)
        .bind(&renewed.node_id)
        .bind(&renewed.key_sha256[..])
        .bind(&renewed.authority_sha256[..])
        .bind(&renewed.serial)
        .bind(to_db(renewed.issued_at_ms))
        .bind(to_db(renewed.expires_at_ms));
    Ok(pool.run(renew).await? == 1)
}

/// Revokes a node, whether it has a certificate or not; one that was revoked before stays as it is.
pub async fn revoke(pool: &Pool, node_id: &str, now_ms: u64, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    let none: &[u8] = &[];
    let revoked = query(REVOKE).bind(node_id).bind(to_db(now_ms)).bind(none).execute(&mut *tx).await?;
    if revoked.rows_affected() == 1 {
        query(BUMP).execute(&mut *tx).await?;
        audit::append(&mut tx, entry).await?;
    }
    tx.commit().await
}

/// Tells of a change that is made outside of the database.
pub async fn note(pool: &Pool, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await
}

/// The version of the list: it moves when a node enrols or is revoked.
pub async fn version(pool: &Pool) -> Result<u64, sqlx::Error> {
    let (version,): (i64,) = pool.one(query_as(VERSION)).await?;
    Ok(from_db(version))
}

/// Every identity, by node.
pub async fn list(pool: &Pool) -> Result<Vec<NodeIdentity>, sqlx::Error> {
    let rows: Vec<Columns> = pool.all(query_as(LIST)).await?;
    let identity = |row: Columns| NodeIdentity {
        node_id: row.0,
        key_sha256: row.1,
        authority_sha256: row.2,
        serial: row.3,
        token_id: row.4,
        labels: row.5,
        enrolled_at_ms: from_db(row.6),
        issued_at_ms: from_db(row.7),
        expires_at_ms: from_db(row.8),
        revoked_at_ms: row.9.map(from_db),
    };
    Ok(rows.into_iter().map(identity).collect())
}
