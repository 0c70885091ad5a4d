//! `sluice requests`: which requests there were, why one went where it went, and whether it would again.

mod bars;
mod replay;
mod timeline;

use serde::Serialize;

use common::clock::Clock;
use common::pb::admin as pb;
use common::record::words::seconds;

use crate::args::{ConnectArgs, FilterArgs, Format, RequestsCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, table, time};

#[derive(Serialize)]
struct ListJson<'a> {
    requests: Vec<RequestJson<'a>>,
}

#[derive(Serialize)]
struct RequestJson<'a> {
    request_id: &'a str,
    node: &'a str,
    began_at_ms: i64,
    model: &'a str,
    dialect: &'a str,
    key: &'a str,
    channel: &'a str,
    outcome: &'a str,
    status: u32,
    attempts: u32,
    duration_us: u64,
}

#[derive(Serialize)]
struct FailuresJson<'a> {
    failures: Vec<FailureJson<'a>>,
}

#[derive(Serialize)]
struct FailureJson<'a> {
    channel: &'a str,
    class: &'a str,
    attempts: u64,
    cured: u64,
}

/// Runs a command of the group.
pub async fn run(
    command: RequestsCommand,
    connect: &ConnectArgs,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    match command {
        RequestsCommand::List { filter, limit, before } => {
            let filter = Some(wanted(filter));
            let request = pb::ListRequestsRequest { filter, limit, before };
            let answer = conn.answer(conn.requests().list_requests(request)).await;
            list(&answer.map_err(|s| conn.fault(&s))?.requests, output)
        }
        RequestsCommand::Failures { filter } => {
            let request = pb::CountFailuresRequest { filter: Some(wanted(filter)) };
            let answer = conn.answer(conn.requests().count_failures(request)).await;
            failures(&answer.map_err(|s| conn.fault(&s))?.failures, output)
        }
        RequestsCommand::Show { id } => {
            let request = pb::GetRequestRequest { id };
            let answer = conn.answer(conn.requests().get_request(request)).await;
            timeline::show(&answer.map_err(|s| conn.fault(&s))?, output)
        }
        RequestsCommand::Replay { id, revision } => {
            let request = pb::ReplayRequestRequest { id, revision: revision.unwrap_or(0) };
            let answer = conn.answer(conn.requests().replay_request(request)).await;
            replay::show(&answer.map_err(|s| conn.fault(&s))?, output)
        }
    }
}

fn wanted(args: FilterArgs) -> pb::RequestFilter {
    let now_ms = u128::from(Clock::system().now_ms());
    let since_ms = args.since.map_or(0, |age| now_ms.saturating_sub(age.as_millis()));
    let slower_than_ms = args.slower_than.map_or(0, |time| time.as_millis());
    pb::RequestFilter {
        since_ms: i64::try_from(since_ms).unwrap_or(i64::MAX),
        until_ms: 0,
        model: args.model,
        channel: args.channel,
        class: args.class,
        node: args.node,
        key: args.key,
        outcome: args.outcome,
        status: args.status.unwrap_or(0),
        attempts_min: args.min_hops.unwrap_or(0),
        slower_than_ms: u64::try_from(slower_than_ms).unwrap_or(u64::MAX),
    }
}

fn list(requests: &[pb::RequestSummary], output: &mut Output) -> Result<Exit, Fault> {
    if output.format() == Format::Json {
        output.json(&ListJson { requests: requests.iter().map(request_json).collect() })?;
    } else if requests.is_empty() {
        output.text("no such requests\n")?;
    } else {
        output.text(&requests_table(requests))?;
    }
    Ok(Exit::Done)
}

fn requests_table(requests: &[pb::RequestSummary]) -> String {
    let rows = requests.iter().map(|request| {
        vec![
            cell(&request.request_id),
            cell(time(request.began_at_ms)),
            cell(said(&request.model)),
            cell(said(&request.channel)),
            cell(request.attempts.to_string()),
            cell(&request.outcome),
            cell(if request.status == 0 { "-".to_owned() } else { request.status.to_string() }),
            cell(seconds(request.duration_us)),
            cell(&request.node),
        ]
    });
    let header = ["ID", "BEGAN", "MODEL", "CHANNEL", ">ATTEMPTS", "OUTCOME", ">STATUS", ">TOOK", "NODE"];
    table(&header, rows)
}

fn failures(counts: &[pb::FailureCount], output: &mut Output) -> Result<Exit, Fault> {
    if output.format() == Format::Json {
        output.json(&FailuresJson { failures: counts.iter().map(failure_json).collect() })?;
    } else if counts.is_empty() {
        output.text("no failed attempts\n")?;
    } else {
        output.text(&failures_table(counts))?;
    }
    Ok(Exit::Done)
}

fn failures_table(counts: &[pb::FailureCount]) -> String {
    let rows = counts.iter().map(|count| {
        vec![
            cell(said(&count.channel)),
            cell(&count.class),
            cell(count.attempts.to_string()),
            cell(count.cured.to_string()),
        ]
    });
    table(&["CHANNEL", "CLASS", ">ATTEMPTS", ">SERVED ALL THE SAME"], rows)
}

fn failure_json(count: &pb::FailureCount) -> FailureJson<'_> {
    let pb::FailureCount { channel, class, attempts, cured } = count;
    FailureJson { channel, class, attempts: *attempts, cured: *cured }
}

fn request_json(request: &pb::RequestSummary) -> RequestJson<'_> {
    RequestJson {
        request_id: &request.request_id,
        node: &request.node,
        began_at_ms: request.began_at_ms,
        model: &request.model,
        dialect: &request.dialect,
        key: &request.key,
        channel: &request.channel,
        outcome: &request.outcome,
        status: request.status,
        attempts: request.attempts,
        duration_us: request.duration_us,
    }
}

fn said(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn a_list_says_where_each_went_and_how_it_ended() {
        let request = pb::RequestSummary {
            request_id: "id-1".to_owned(),
            node: "node-a".to_owned(),
            began_at_ms: 1_796_046_279_000,
            model: "gpt-4o".to_owned(),
            channel: "direct".to_owned(),
            outcome: "served".to_owned(),
            status: 200,
            attempts: 2,
            duration_us: 4_250_999,
            ..pb::RequestSummary::default()
        };
        let gone = pb::RequestSummary { outcome: "canceled".to_owned(), ..pb::RequestSummary::default() };
        let want = "\
ID    BEGAN                 MODEL   CHANNEL  ATTEMPTS  OUTCOME   STATUS     TOOK  NODE
id-1  2026-11-30T13:44:39Z  gpt-4o  direct          2  served       200  4.250 s  node-a
      1970-01-01T00:00:00Z  -       -               0  canceled       -  0.000 s
";
        assert_eq!(plain(&requests_table(&[request, gone])), want);
    }

    #[test]
    fn failures_stand_beside_how_many_callers_did_not_notice() {
        let count = pb::FailureCount {
            channel: "reseller".to_owned(),
            class: "overloaded".to_owned(),
            attempts: 41,
            cured: 40,
        };
        let want = "\
CHANNEL   CLASS       ATTEMPTS  SERVED ALL THE SAME
reseller  overloaded        41                   40
";
        assert_eq!(plain(&failures_table(&[count])), want);
    }
}
