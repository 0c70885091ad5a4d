//! The audit log: appended to in the transactions of the changes that it tells of.

use super::pool::{Pool, query, query_as};
use super::{Connection, Db, statements};
use crate::store::convert::{from_db, sha, to_db};
use crate::store::entry::{Ask, BEFORE_ALL, Entry, Kept, LogHead};

statements! {
    MAKE = "insert into audit_head (id, seq, sha256) values (1, 0, $1) on conflict (id) do nothing";
    // Whoever comes next waits here until this transaction has ended, and goes on from what it left.
    CLAIM = "update audit_head set seq = seq + 1 where id = 1 returning seq, sha256";
    INSERT = "insert into audit
                (seq, at_ms, actor, role, credential, origin, action, object, before_value, after_value, revision,
                 sha256)
              values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    CLOSE = "update audit_head set sha256 = $1 where id = 1";
    HEAD = "select seq, sha256 from audit_head where id = 1";
    LIST = "select seq, at_ms, actor, role, credential, origin, action, object, before_value, after_value, revision,
                   sha256
            from audit
            where seq < $1 and at_ms >= $2 and (cast($3 as text) = '' or actor = $3)
              and substr(action, 1, length(cast($4 as text))) = $4
            order by seq desc limit $5";
    WALK = "select seq, at_ms, actor, role, credential, origin, action, object, before_value, after_value, revision,
                   sha256
            from audit where seq > $1 and seq <= $2 order by seq limit $3";
}

#[derive(Debug)]
struct Columns {
    seq: i64,
    at_ms: i64,
    texts: [String; 6],
    before: Option<String>,
    after: Option<String>,
    revision: i64,
    sha256: Vec<u8>,
}

impl<'r> sqlx::FromRow<'r, <Db as sqlx::Database>::Row> for Columns {
    fn from_row(row: &'r <Db as sqlx::Database>::Row) -> Result<Self, sqlx::Error> {
        use sqlx::Row as _;
        let text = |at: usize| row.try_get::<String, usize>(at);
        Ok(Columns {
            seq: row.try_get(0)?,
            at_ms: row.try_get(1)?,
            texts: [text(2)?, text(3)?, text(4)?, text(5)?, text(6)?, text(7)?],
            before: row.try_get(8)?,
            after: row.try_get(9)?,
            revision: row.try_get(10)?,
            sha256: row.try_get(11)?,
        })
    }
}

fn kept(columns: Columns) -> Kept {
    let Columns { seq, at_ms, texts, before, after, revision, sha256 } = columns;
    let [actor, role, credential, origin, action, object] = texts;
    let (at_ms, revision) = (from_db(at_ms), from_db(revision));
    let entry = Entry { at_ms, actor, role, credential, origin, action, object, before, after, revision };
    // Where somebody cut a digest short, it is no digest of any entry.
    Kept { seq: from_db(seq), entry, sha256: sha(sha256).unwrap_or(BEFORE_ALL) }
}

/// Gives a new database an empty log.
pub async fn make(pool: &Pool) -> Result<(), sqlx::Error> {
    pool.run(query(MAKE).bind(&BEFORE_ALL[..])).await.map(drop)
}

/// Appends an entry, to be kept if the transaction is. To be called last in it: from here on other changes wait for
/// its end. Returns the entry's number.
pub async fn append(tx: &mut Connection, entry: &Entry) -> Result<u64, sqlx::Error> {
    let (seq, previous): (i64, Vec<u8>) = query_as(CLAIM).fetch_one(&mut *tx).await?;
    let sha256 = entry.sha256(from_db(seq), &sha(previous)?);
    query(INSERT)
        .bind(seq)
        .bind(to_db(entry.at_ms))
        .bind(&entry.actor)
        .bind(&entry.role)
        .bind(&entry.credential)
        .bind(&entry.origin)
        .bind(&entry.action)
        .bind(&entry.object)
        .bind(&entry.before)
        .bind(&entry.after)
        .bind(to_db(entry.revision))
        .bind(&sha256[..])
        .execute(&mut *tx)
        .await?;
    query(CLOSE).bind(&sha256[..]).execute(&mut *tx).await?;
    Ok(from_db(seq))
}

/// The end of the log.
pub async fn head(pool: &Pool) -> Result<LogHead, sqlx::Error> {
    let (seq, digest): (i64, Vec<u8>) = pool.one(query_as(HEAD)).await?;
    Ok(LogHead { seq: from_db(seq), sha256: sha(digest)? })
}

/// The entries that are asked for, newest first.
pub async fn list(pool: &Pool, ask: &Ask) -> Result<Vec<Kept>, sqlx::Error> {
    let list = query_as(LIST)
        .bind(to_db(ask.before))
        .bind(to_db(ask.since_ms))
        .bind(&ask.actor)
        .bind(&ask.action)
        .bind(i64::from(ask.limit));
    let rows: Vec<Columns> = pool.all(list).await?;
    Ok(rows.into_iter().map(kept).collect())
}

/// Entries after one and through another, oldest first.
pub async fn walk(pool: &Pool, after: u64, through: u64, limit: u32) -> Result<Vec<Kept>, sqlx::Error> {
    let walk = query_as(WALK).bind(to_db(after)).bind(to_db(through)).bind(i64::from(limit));
    let rows: Vec<Columns> = pool.all(walk).await?;
    Ok(rows.into_iter().map(kept).collect())
}
