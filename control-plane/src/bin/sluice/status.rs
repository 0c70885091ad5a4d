//! `sluice status`: what callers saw and what channels did, side by side, over a window.

use comfy_table::{Cell, Color};
use tonic::Streaming;

use common::first_byte::Percentiles;
use common::pb::admin as pb;
use control_plane::observed::{Attempts, ChannelStatus, ModelStatus, Requests, Status, percent};

use crate::args::{ConnectArgs, Format, StatusArgs};
use crate::call::Connection;
use crate::chain::breaker;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table};

/// Runs the command.
pub async fn run(wanted: StatusArgs, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    let StatusArgs { window, model, watch } = wanted;
    let (window_seconds, model) = (window.as_secs(), model.unwrap_or_default());
    let mut client = conn.status();
    if watch {
        let call = client.watch_status(pb::WatchStatusRequest { window_seconds, model });
        let stream = conn.answer(call).await.map_err(|s| conn.fault(&s))?;
        return follow(stream, conn, output).await;
    }
    let call = client.get_status(pb::GetStatusRequest { window_seconds, model });
    let answer = conn.answer(call).await.map_err(|s| conn.fault(&s))?;
    print(answer.status, output)?;
    Ok(Exit::Done)
}

async fn follow(
    mut stream: Streaming<pb::WatchStatusResponse>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let mut news = Some(conn.first(&mut stream).await?);
    while let Some(pb::WatchStatusResponse { status }) = news {
        output.next_frame()?;
        print(status, output)?;
        news = conn.next(&mut stream).await?;
    }
    Ok(Exit::Done)
}

fn print(status: Option<pb::Status>, output: &mut Output) -> Result<(), Fault> {
    let status = read(status.unwrap_or_default());
    if output.format() == Format::Json {
        output.json(&status)?;
    } else {
        output.text(&text(&status))?;
    }
    Ok(())
}

fn text(status: &Status) -> String {
    let window = humantime::format_duration(std::time::Duration::from_secs(status.window_seconds));
    let age = match status.data_age() {
        Some(age) => format!("newest data {}s old", age.as_secs()),
        None => "no data was ever reported".to_owned(),
    };
    let mut text = format!(
        "last {window}  revision {}  nodes {} of {} connected  {age}\n",
        status.revision, status.nodes_connected, status.nodes_known
    );
    if let Some(rollout) = &status.rollout {
        text += &format!("rollout: {}\n", clean(rollout));
    }
    if status.models.is_empty() {
        return text + "no models\n";
    }
    let header =
        ["MODEL", ">SUCCESS", ">SERVED", ">EXHAUSTED", ">CUT", ">BAD REQUEST", ">CANCELED", ">REFUSED"];
    text += "\nrequests: what callers saw\n";
    text += &table(&header, status.models.iter().map(request_row));
    let rows = status.models.iter().flat_map(|m| m.channels.iter().map(|c| attempt_row(&m.model, c)));
    let header = ["MODEL", "CHANNEL", ">SUCCESS", ">OK", ">FAILED", ">NEUTRAL", "ENDINGS", "BREAKER"];
    text += "\nattempts: what channels did\n";
    text + &table(&header, rows)
}

fn request_row(model: &ModelStatus) -> Vec<Cell> {
    let counts = &model.requests;
    let mut row = vec![cell(name(&model.model)), success(counts.served, counts.failed())];
    let Requests { served, exhausted, cut, bad_request, canceled, refused } = *counts;
    row.extend([served, exhausted, cut, bad_request, canceled, refused].map(|count| cell(count.to_string())));
    row
}

fn attempt_row(model: &str, status: &ChannelStatus) -> Vec<Cell> {
    let Attempts { ok, failed, neutral, classes } = &status.attempts;
    let endings: Vec<_> = classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
    vec![
        cell(name(model)),
        cell(&status.channel),
        success(*ok, *failed),
        cell(ok.to_string()),
        cell(failed.to_string()),
        cell(neutral.to_string()),
        cell(if endings.is_empty() { "-".to_owned() } else { endings.join(", ") }),
        breaker(&status.open_on),
    ]
}

fn name(model: &str) -> &str {
    if model.is_empty() { "(unknown)" } else { model }
}

fn success(good: u64, bad: u64) -> Cell {
    match percent(good, bad) {
        Some(shown) if bad == 0 => cell(shown).fg(Color::Green),
        Some(shown) => cell(shown).fg(Color::Yellow),
        None => cell("no data"),
    }
}

/// From the wire into the one form that is shown everywhere.
fn read(status: pb::Status) -> Status {
    Status {
        at_ms: at(status.at_ms),
        window_seconds: status.window_seconds,
        revision: status.revision,
        data_until_ms: (status.data_until_ms > 0).then(|| at(status.data_until_ms)),
        nodes_connected: status.nodes_connected,
        nodes_known: status.nodes_known,
        rollout: Some(status.rollout).filter(|said| !said.is_empty()),
        models: status.models.into_iter().map(read_model).collect(),
        channels: status.channels.into_iter().map(read_channel).collect(),
    }
}

fn read_model(model: pb::ModelStatus) -> ModelStatus {
    let pb::ModelStatus {
        model,
        served,
        exhausted,
        cut,
        bad_request,
        canceled,
        refused,
        success_rate,
        channels,
        first_byte,
    } = model;
    ModelStatus {
        model,
        success_rate,
        requests: Requests { served, exhausted, cut, bad_request, canceled, refused },
        first_byte: first_byte.map(read_first_byte),
        channels: channels.into_iter().map(read_channel).collect(),
    }
}

fn read_channel(channel: pb::ChannelStatus) -> ChannelStatus {
    let pb::ChannelStatus { channel, ok, failed, neutral, success_rate, classes, open_on, first_byte } =
        channel;
    let classes = classes.into_iter().map(|c| (c.class, c.count)).collect();
    let attempts = Attempts { ok, failed, neutral, classes };
    ChannelStatus { channel, success_rate, attempts, first_byte: first_byte.map(read_first_byte), open_on }
}

fn read_first_byte(seen: pb::FirstByte) -> Percentiles {
    let pb::FirstByte { count, p50_ms, p95_ms, p99_ms } = seen;
    Percentiles { count, p50_ms, p95_ms, p99_ms }
}

fn at(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    fn status() -> pb::Status {
        let reseller = pb::ChannelStatus {
            channel: "reseller".to_owned(),
            ok: 96,
            failed: 4,
            neutral: 1,
            success_rate: Some(0.96),
            classes: vec![
                pb::ClassCount { class: "canceled".to_owned(), count: 1 },
                pb::ClassCount { class: "overloaded".to_owned(), count: 4 },
            ],
            open_on: vec!["node-a".to_owned()],
            first_byte: Some(pb::FirstByte { count: 96, p50_ms: 330, p95_ms: 470, p99_ms: 820 }),
        };
        let direct = pb::ChannelStatus { channel: "direct".to_owned(), ..pb::ChannelStatus::default() };
        let channels = vec![reseller, direct];
        let models = vec![pb::ModelStatus {
            model: "gpt-4o".to_owned(),
            served: 9_999,
            exhausted: 1,
            refused: 2,
            success_rate: Some(0.9999),
            channels: channels.clone(),
            ..pb::ModelStatus::default()
        }];
        pb::Status {
            at_ms: 100_000,
            window_seconds: 3600,
            revision: 42,
            data_until_ms: 92_000,
            models,
            channels,
            nodes_connected: 1,
            nodes_known: 2,
            rollout: String::new(),
        }
    }

    #[test]
    fn both_rates_stand_side_by_side_with_their_counts_and_the_age_of_the_data() {
        let want = "\
last 1h  revision 42  nodes 1 of 2 connected  newest data 8s old

requests: what callers saw
MODEL   SUCCESS  SERVED  EXHAUSTED  CUT  BAD REQUEST  CANCELED  REFUSED
gpt-4o  99.99 %    9999          1    0            0         0        2

attempts: what channels did
MODEL   CHANNEL   SUCCESS  OK  FAILED  NEUTRAL  ENDINGS                   BREAKER
gpt-4o  reseller  96.00 %  96       4        1  canceled 1, overloaded 4  open on node-a
gpt-4o  direct    no data   0       0        0  -                         closed
";
        assert_eq!(plain(&text(&read(status()))), want);
    }

    #[test]
    fn the_json_is_that_of_the_api_of_the_status_page() {
        let (mut output, captured) = Captured::new(Format::Json);
        print(Some(status()), &mut output).unwrap();
        let json: serde_json::Value = serde_json::from_str(&captured.out()).unwrap();
        assert_eq!(json, serde_json::to_value(read(status())).unwrap());
        assert_eq!(
            json["models"][0]["channels"][0]["classes"],
            serde_json::json!({"canceled": 1, "overloaded": 4})
        );
        let [first, second] = [0, 1].map(|n| &json["models"][0]["channels"][n]);
        assert_eq!(
            (&second["success_rate"], &second["first_byte"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
        assert_eq!(
            first["first_byte"],
            serde_json::json!({"count": 96, "p50_ms": 330, "p95_ms": 470, "p99_ms": 820})
        );
    }

    #[test]
    fn a_fleet_that_never_reported_says_so() {
        let shown = plain(&text(&read(pb::Status { window_seconds: 300, ..pb::Status::default() })));
        assert!(
            shown.starts_with("last 5m  revision 0  nodes 0 of 0 connected  no data was ever reported\n"),
            "{shown}"
        );
    }
}
