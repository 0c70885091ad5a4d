//! Alerts, their silences, and what is to be told to whom. What follows from what is the matter of `crate::alerts`.

use super::leader::fence;
use super::pool::{Pool, query, query_as};
use super::{Connection, audit, statements};
use crate::alerts::{Alert, Books, Delivery, Group, Kind, Silence, Step, Told};
use crate::store::convert::{from_db, to_db};
use crate::store::entry::Entry;

statements! {
    OPEN = "select id, kind, object, summary, raised_at_ms, gone_since_ms, resolved_at_ms, told from alert
            where resolved_at_ms = 0 or told <> 2 order by raised_at_ms, id";
    LIST = "select id, kind, object, summary, raised_at_ms, gone_since_ms, resolved_at_ms, told from alert
            where resolved_at_ms = 0 or resolved_at_ms >= $1 order by raised_at_ms desc, id limit $2";
    GROUPS = "select kind, number, told_at_ms from alert_group";
    SILENCES = "select id, kind, object, reason, created_by, created_at_ms, until_ms from alert_silence
                where until_ms > $1 order by until_ms, id";
    KEEP = "insert into alert (id, kind, object, summary, raised_at_ms, gone_since_ms, resolved_at_ms, told)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            on conflict (id) do update set summary = excluded.summary, gone_since_ms = excluded.gone_since_ms,
              resolved_at_ms = excluded.resolved_at_ms, told = excluded.told";
    KEEP_GROUP = "insert into alert_group (kind, number, told_at_ms) values ($1, $2, $3)
                  on conflict (kind) do update set number = excluded.number, told_at_ms = excluded.told_at_ms";
    KEEP_DELIVERY = "insert into alert_delivery
                       (notice, receiver, kind, body, made_at_ms, tries, next_at_ms, done_at_ms, failure)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                     on conflict (notice, receiver) do update set tries = excluded.tries,
                       next_at_ms = excluded.next_at_ms, done_at_ms = excluded.done_at_ms, failure = excluded.failure";
    DUE = "select notice, receiver, kind, body, made_at_ms, tries, next_at_ms, done_at_ms, failure
           from alert_delivery where done_at_ms = 0 and next_at_ms <= $1 order by made_at_ms, notice, receiver limit $2";
    UNDELIVERED = "select notice, receiver, kind, body, made_at_ms, tries, next_at_ms, done_at_ms, failure
                   from alert_delivery where failure <> '' and made_at_ms >= $1
                   order by made_at_ms desc, notice, receiver limit $2";
    SILENCE = "insert into alert_silence (id, kind, object, reason, created_by, created_at_ms, until_ms)
               values ($1, $2, $3, $4, $5, $6, $7)";
    UNSILENCE = "update alert_silence set until_ms = $2 where id = $1 and until_ms > $2
                 returning id, kind, object, reason, created_by, created_at_ms, until_ms";
    FORGET = "delete from alert where resolved_at_ms > 0 and resolved_at_ms < $1";
    FORGET_SILENCES = "delete from alert_silence where until_ms < $1";
    FORGET_DELIVERIES = "delete from alert_delivery where made_at_ms < $1";
}

/// Most rows of one list.
const ROWS_MAX: i64 = 1000;

type AlertRow = (String, String, String, String, i64, i64, i64, i64);
type SilenceRow = (String, String, String, String, String, i64, i64);
type DeliveryRow = (String, String, String, String, i64, i64, i64, i64, String);

/// What is open, and what silences there are.
pub async fn books(pool: &Pool, now_ms: u64) -> Result<Books, sqlx::Error> {
    let mut tx = pool.begin_reading().await?;
    let alerts: Vec<AlertRow> = query_as(OPEN).fetch_all(&mut *tx).await?;
    let groups: Vec<(String, i64, i64)> = query_as(GROUPS).fetch_all(&mut *tx).await?;
    let silences: Vec<SilenceRow> = query_as(SILENCES).bind(to_db(now_ms)).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    let group = |(kind, number, told_at): (String, i64, i64)| {
        Some((Kind::named(&kind)?, Group { number: from_db(number), told_at_ms: from_db(told_at) }))
    };
    Ok(Books {
        alerts: alerts.into_iter().filter_map(alert).collect(),
        groups: groups.into_iter().filter_map(group).collect(),
        silences: silences.into_iter().filter_map(silence).collect(),
    })
}

/// Alerts that are so, and those that were over since then, newest first.
pub async fn list(pool: &Pool, since_ms: u64) -> Result<Vec<Alert>, sqlx::Error> {
    let rows: Vec<AlertRow> = pool.all(query_as(LIST).bind(to_db(since_ms)).bind(ROWS_MAX)).await?;
    Ok(rows.into_iter().filter_map(alert).collect())
}

/// Keeps what a step led to, with what is to be told, as the leader of this epoch: all of it or nothing.
pub async fn keep(pool: &Pool, leader: u64, step: &Step, deliveries: &[Delivery]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    for alert in &step.changed {
        query(KEEP)
            .bind(&alert.id)
            .bind(alert.kind.as_str())
            .bind(&alert.object)
            .bind(&alert.summary)
            .bind(to_db(alert.raised_at_ms))
            .bind(to_db(alert.gone_since_ms))
            .bind(to_db(alert.resolved_at_ms))
            .bind(told_to_db(alert.told))
            .execute(&mut *tx)
            .await?;
    }
    for (kind, group) in &step.groups {
        let kept = query(KEEP_GROUP).bind(kind.as_str()).bind(to_db(group.number));
        kept.bind(to_db(group.told_at_ms)).execute(&mut *tx).await?;
    }
    for delivery in deliveries {
        keep_delivery(&mut tx, delivery).await?;
    }
    tx.commit().await
}

async fn keep_delivery(tx: &mut Connection, delivery: &Delivery) -> Result<(), sqlx::Error> {
    query(KEEP_DELIVERY)
        .bind(&delivery.notice)
        .bind(&delivery.receiver)
        .bind(&delivery.kind)
        .bind(&delivery.body)
        .bind(to_db(delivery.made_at_ms))
        .bind(to_db(delivery.tries))
        .bind(to_db(delivery.next_at_ms))
        .bind(to_db(delivery.done_at_ms))
        .bind(&delivery.failure)
        .execute(tx)
        .await
        .map(drop)
}

/// What is to be told by now, the oldest first.
pub async fn due(pool: &Pool, now_ms: u64) -> Result<Vec<Delivery>, sqlx::Error> {
    let rows: Vec<DeliveryRow> = pool.all(query_as(DUE).bind(to_db(now_ms)).bind(ROWS_MAX)).await?;
    Ok(rows.into_iter().map(delivery).collect())
}

/// What was made since then and could not be told at once, newest first.
pub async fn undelivered(pool: &Pool, since_ms: u64) -> Result<Vec<Delivery>, sqlx::Error> {
    let rows: Vec<DeliveryRow> = pool.all(query_as(UNDELIVERED).bind(to_db(since_ms)).bind(100_i64)).await?;
    Ok(rows.into_iter().map(delivery).collect())
}

/// Keeps a silence.
pub async fn silence_for(pool: &Pool, new: &Silence, entry: &Entry) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    query(SILENCE)
        .bind(&new.id)
        .bind(new.kind.map_or("", Kind::as_str))
        .bind(&new.object)
        .bind(&new.reason)
        .bind(&new.created_by)
        .bind(to_db(new.created_at_ms))
        .bind(to_db(new.until_ms))
        .execute(&mut *tx)
        .await?;
    audit::append(&mut tx, entry).await?;
    tx.commit().await
}

/// Ends a silence. Returns it; nothing, and logs nothing, where there is none that lasts.
pub async fn unsilence(
    pool: &Pool,
    id: &str,
    now_ms: u64,
    entry: &Entry,
) -> Result<Option<Silence>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let ended: Option<SilenceRow> =
        query_as(UNSILENCE).bind(id).bind(to_db(now_ms)).fetch_optional(&mut *tx).await?;
    let Some(ended) = ended.and_then(silence) else {
        tx.rollback().await?;
        return Ok(None);
    };
    audit::append(&mut tx, entry).await?;
    tx.commit().await?;
    Ok(Some(ended))
}

/// Removes what was over, ended or made before `before_ms`.
pub async fn forget(pool: &Pool, leader: u64, before_ms: u64) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    fence(&mut tx, leader).await?;
    for statement in [FORGET, FORGET_SILENCES, FORGET_DELIVERIES] {
        query(statement).bind(to_db(before_ms)).execute(&mut *tx).await?;
    }
    tx.commit().await
}

fn told_to_db(told: Told) -> i64 {
    match told {
        Told::Nothing => 0,
        Told::Raised => 1,
        Told::Over => 2,
    }
}

/// None for a kind that only a newer version knows: that one takes care of it.
fn alert((id, kind, object, summary, raised_at, gone, resolved, told): AlertRow) -> Option<Alert> {
    Some(Alert {
        id,
        kind: Kind::named(&kind)?,
        object,
        summary,
        raised_at_ms: from_db(raised_at),
        gone_since_ms: from_db(gone),
        resolved_at_ms: from_db(resolved),
        told: match told {
            0 => Told::Nothing,
            1 => Told::Raised,
            _ => Told::Over,
        },
    })
}

fn silence((id, kind, object, reason, created_by, created_at, until): SilenceRow) -> Option<Silence> {
    Some(Silence {
        id,
        kind: if kind.is_empty() { None } else { Some(Kind::named(&kind)?) },
        object,
        reason,
        created_by,
        created_at_ms: from_db(created_at),
        until_ms: from_db(until),
    })
}

fn delivery(
    (notice, receiver, kind, body, made_at, tries, next_at, done_at, failure): DeliveryRow,
) -> Delivery {
    Delivery {
        notice,
        receiver,
        kind,
        body,
        made_at_ms: from_db(made_at),
        tries: from_db(tries),
        next_at_ms: from_db(next_at),
        done_at_ms: from_db(done_at),
        failure,
    }
}
