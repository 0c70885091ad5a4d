//! `sluice alerts`: list, test, silence, unsilence.

use std::time::Duration;

use serde::Serialize;

use common::clock::Clock;
use common::pb::admin as pb;

use crate::args::{AlertsCommand, ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

#[derive(Serialize)]
struct ListJson<'a> {
    alerts: Vec<AlertJson<'a>>,
    silences: Vec<SilenceJson<'a>>,
    undelivered: Vec<UndeliveredJson<'a>>,
    receivers: &'a [String],
}

#[derive(Serialize)]
struct AlertJson<'a> {
    id: &'a str,
    kind: &'a str,
    object: &'a str,
    summary: &'a str,
    raised_at_ms: i64,
    resolved_at_ms: Option<i64>,
    told: bool,
    silenced: bool,
    runbook: &'a str,
}

#[derive(Serialize)]
struct SilenceJson<'a> {
    id: &'a str,
    kind: Option<&'a str>,
    object: Option<&'a str>,
    reason: &'a str,
    created_by: &'a str,
    created_at_ms: i64,
    until_ms: i64,
}

#[derive(Serialize)]
struct UndeliveredJson<'a> {
    notice: &'a str,
    receiver: &'a str,
    kind: &'a str,
    failure: &'a str,
    tries: u64,
    made_at_ms: i64,
    next_try_at_ms: Option<i64>,
}

#[derive(Serialize)]
struct TestedJson<'a> {
    receivers: Vec<ReceiverJson<'a>>,
}

#[derive(Serialize)]
struct ReceiverJson<'a> {
    name: &'a str,
    failure: Option<&'a str>,
}

/// Runs a command of the group.
pub async fn run(command: AlertsCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        AlertsCommand::List { since } => list(since, conn, output).await,
        AlertsCommand::Test => test(conn, output).await,
        AlertsCommand::Silence { kind, object, length, reason } => {
            let kind = if kind == "all" { String::new() } else { kind };
            let (object, for_seconds) = (object.unwrap_or_default(), length.as_secs());
            let request = pb::SilenceAlertsRequest { kind, object, for_seconds, reason };
            let answer = conn.answer(conn.alerts().silence_alerts(request)).await;
            let silence = answer.map_err(|s| conn.fault(&s))?.silence.unwrap_or_default();
            told(&silence, &format!("until {}", time(silence.until_ms)), output)
        }
        AlertsCommand::Unsilence { id } => {
            let request = pb::UnsilenceAlertsRequest { id };
            let answer = conn.answer(conn.alerts().unsilence_alerts(request)).await;
            let silence = answer.map_err(|s| conn.fault(&s))?.silence.unwrap_or_default();
            told(&silence, "has ended", output)
        }
    }
}

async fn list(since: Option<Duration>, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let ago = |ago: Duration| u128::from(Clock::system().now_ms()).saturating_sub(ago.as_millis());
    let since_ms = i64::try_from(since.map_or(0, ago)).unwrap_or(i64::MAX);
    let request = pb::ListAlertsRequest { since_ms };
    let answer = conn.answer(conn.alerts().list_alerts(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&list_json(&answer))?;
    } else {
        output.text(&list_text(&answer))?;
        if answer.receivers.is_empty() {
            output.note("nobody is told of alerts: give the control planes an --alerts-file")?;
        }
    }
    Ok(Exit::Done)
}

async fn test(conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let answer = conn.answer(conn.alerts().test_alerts(pb::TestAlertsRequest {})).await;
    let receivers = answer.map_err(|s| conn.fault(&s))?.receivers;
    if receivers.is_empty() {
        let fault = Fault::error("there is no receiver to be tested");
        return Err(fault.help("give the control planes an --alerts-file with [[webhooks]] in it"));
    }
    let failed = receivers.iter().any(|receiver| !receiver.failure.is_empty());
    if output.format() == Format::Json {
        let receivers = receivers.iter().map(|receiver| ReceiverJson {
            name: &receiver.name,
            failure: Some(receiver.failure.as_str()).filter(|failure| !failure.is_empty()),
        });
        output.json(&TestedJson { receivers: receivers.collect() })?;
    } else {
        let rows = receivers.iter().map(|receiver| {
            let said = if receiver.failure.is_empty() { "took it" } else { &receiver.failure };
            vec![cell(&receiver.name), cell(said)]
        });
        output.text(&table(&["RECEIVER", "TEST"], rows))?;
    }
    Ok(if failed { Exit::Different } else { Exit::Done })
}

fn told(silence: &pb::Silence, said: &str, output: &mut Output) -> Result<Exit, Fault> {
    if output.format() == Format::Json {
        output.json(&silence_json(silence))?;
    } else {
        output.text(&format!("silence {} of {} {said}\n", clean(&silence.id), clean(&of(silence))))?;
    }
    Ok(Exit::Done)
}

/// What a silence is of, in words.
fn of(silence: &pb::Silence) -> String {
    let kind = if silence.kind.is_empty() { "all" } else { &silence.kind };
    if silence.object.is_empty() { kind.to_owned() } else { format!("{kind} {}", silence.object) }
}

fn list_text(answer: &pb::ListAlertsResponse) -> String {
    if answer.alerts.is_empty() && answer.silences.is_empty() && answer.undelivered.is_empty() {
        return "no alerts\n".to_owned();
    }
    let mut parts = Vec::new();
    if !answer.alerts.is_empty() {
        let rows = answer.alerts.iter().map(|alert| {
            let state = match (alert.resolved_at_ms, alert.silenced) {
                (0, false) => "firing".to_owned(),
                (0, true) => "silenced".to_owned(),
                (at, _) => format!("over {}", time(at)),
            };
            let cells = [&alert.kind, &state, &time(alert.raised_at_ms), &alert.object];
            let cells = cells.into_iter().chain([&alert.summary, &alert.runbook]);
            cells.map(cell).collect()
        });
        parts.push(table(&["KIND", "STATE", "SINCE", "OBJECT", "WHAT", "RUNBOOK"], rows));
    }
    if !answer.silences.is_empty() {
        let rows = answer.silences.iter().map(|silence| {
            let cells = [&silence.id, &of(silence), &time(silence.until_ms), &silence.created_by];
            cells.into_iter().chain([&silence.reason]).map(cell).collect()
        });
        parts.push(table(&["SILENCE", "OF", "UNTIL", "BY", "REASON"], rows));
    }
    if !answer.undelivered.is_empty() {
        let rows = answer.undelivered.iter().map(|one| {
            let next = match one.next_try_at_ms {
                0 => "given up".to_owned(),
                at => time(at),
            };
            let cells = [&one.notice, &one.receiver, &one.failure, &one.tries.to_string()];
            cells.into_iter().chain([&next]).map(cell).collect()
        });
        parts.push(table(&["NOT TAKEN", "RECEIVER", "WHY", "TRIES", "NEXT TRY"], rows));
    }
    parts.join("\n")
}

fn list_json(answer: &pb::ListAlertsResponse) -> ListJson<'_> {
    let some = |at: i64| Some(at).filter(|at| *at > 0);
    let alerts = answer.alerts.iter().map(|alert| AlertJson {
        id: &alert.id,
        kind: &alert.kind,
        object: &alert.object,
        summary: &alert.summary,
        raised_at_ms: alert.raised_at_ms,
        resolved_at_ms: some(alert.resolved_at_ms),
        told: alert.told,
        silenced: alert.silenced,
        runbook: &alert.runbook,
    });
    let undelivered = answer.undelivered.iter().map(|one| UndeliveredJson {
        notice: &one.notice,
        receiver: &one.receiver,
        kind: &one.kind,
        failure: &one.failure,
        tries: one.tries,
        made_at_ms: one.made_at_ms,
        next_try_at_ms: some(one.next_try_at_ms),
    });
    ListJson {
        alerts: alerts.collect(),
        silences: answer.silences.iter().map(silence_json).collect(),
        undelivered: undelivered.collect(),
        receivers: &answer.receivers,
    }
}

fn silence_json(silence: &pb::Silence) -> SilenceJson<'_> {
    fn some(text: &str) -> Option<&str> {
        Some(text).filter(|text| !text.is_empty())
    }
    SilenceJson {
        id: &silence.id,
        kind: some(&silence.kind),
        object: some(&silence.object),
        reason: &silence.reason,
        created_by: &silence.created_by,
        created_at_ms: silence.created_at_ms,
        until_ms: silence.until_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn a_list_says_what_is_wrong_what_is_silenced_and_what_was_not_taken() {
        let at = 1_796_046_279_000;
        let alert = pb::Alert {
            kind: "node-lost".to_owned(),
            object: "n1".to_owned(),
            summary: "node n1 is lost".to_owned(),
            raised_at_ms: at,
            runbook: "r/node-lost.md".to_owned(),
            ..pb::Alert::default()
        };
        let answer = pb::ListAlertsResponse {
            alerts: vec![
                alert.clone(),
                pb::Alert { silenced: true, object: "n2".to_owned(), ..alert.clone() },
                pb::Alert { resolved_at_ms: at, object: "n3".to_owned(), ..alert },
            ],
            silences: vec![pb::Silence {
                id: "s1".to_owned(),
                object: "n2".to_owned(),
                created_by: "ann".to_owned(),
                until_ms: at,
                ..pb::Silence::default()
            }],
            undelivered: vec![pb::Undelivered {
                notice: "node-lost-1-1".to_owned(),
                receiver: "ops".to_owned(),
                failure: "answered 500".to_owned(),
                tries: 12,
                ..pb::Undelivered::default()
            }],
            receivers: vec!["ops".to_owned()],
        };
        let want = "\
KIND       STATE                      SINCE                 OBJECT  WHAT             RUNBOOK
node-lost  firing                     2026-11-30T13:44:39Z  n1      node n1 is lost  r/node-lost.md
node-lost  silenced                   2026-11-30T13:44:39Z  n2      node n1 is lost  r/node-lost.md
node-lost  over 2026-11-30T13:44:39Z  2026-11-30T13:44:39Z  n3      node n1 is lost  r/node-lost.md

SILENCE  OF      UNTIL                 BY   REASON
s1       all n2  2026-11-30T13:44:39Z  ann

NOT TAKEN      RECEIVER  WHY           TRIES  NEXT TRY
node-lost-1-1  ops       answered 500  12     given up
";
        assert_eq!(plain(&list_text(&answer)), want);
        let json = serde_json::to_value(list_json(&answer)).unwrap();
        assert_eq!(json["alerts"][0]["resolved_at_ms"], serde_json::Value::Null);
        assert_eq!(json["silences"][0]["kind"], serde_json::Value::Null);
        assert_eq!(list_text(&pb::ListAlertsResponse::default()), "no alerts\n");
    }
}
