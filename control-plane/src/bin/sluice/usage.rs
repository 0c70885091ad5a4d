//! `sluice usage`: what client keys used, and what it comes to.

use serde::Serialize;

use common::clock::Clock;
use common::day;
use common::money::Amount;
use common::pb::admin as pb;

use crate::args::{By, ConnectArgs, Format, UsageArgs};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, table};

#[derive(Serialize)]
struct UsageJson<'a> {
    from: String,
    to: String,
    usage: Vec<RowJson<'a>>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    requests: u64,
    served: u64,
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    searches: u64,
    audio_ms: u64,
    cost_usd: String,
    price_usd: String,
    unpriced: u64,
}

/// Prints what was used.
pub async fn run(args: UsageArgs, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let (first_day, last_day) = day::span(args.from, args.to, Clock::system().now_ms());
    let request = pb::ListUsageRequest {
        first_day,
        last_day,
        key: args.key,
        model: args.model,
        by_day: args.by.contains(&By::Day),
        by_key: args.by.contains(&By::Key),
        by_model: args.by.contains(&By::Model),
    };
    let conn = &Connection::open(connect).await?;
    let answer = conn.answer(conn.requests().list_usage(request)).await;
    let usage = answer.map_err(|s| conn.fault(&s))?.usage;
    match output.format() {
        Format::Json => output.json(&UsageJson {
            from: day::shown(first_day),
            to: day::shown(last_day),
            usage: usage.iter().map(json).collect(),
        })?,
        Format::Table if usage.is_empty() => output.text("nothing was used in this time\n")?,
        Format::Table => output.text(&usage_table(&usage))?,
    }
    Ok(Exit::Done)
}

fn usage_table(usage: &[pb::Usage]) -> String {
    let said =
        |text: &Option<String>| text.clone().map(|text| if text.is_empty() { "-".to_owned() } else { text });
    let first = usage.first();
    let mut header = Vec::new();
    header.extend(first.and_then(|row| row.day).map(|_| "DAY"));
    header.extend(first.and_then(|row| row.key.as_ref()).map(|_| "KEY"));
    header.extend(first.and_then(|row| row.model.as_ref()).map(|_| "MODEL"));
    header.extend([
        ">REQUESTS",
        ">SERVED",
        ">INPUT",
        ">CACHED",
        ">OUTPUT",
        ">COST USD",
        ">PRICE USD",
        ">UNPRICED",
    ]);
    let rows = usage.iter().map(|row| {
        let by = [row.day.map(day::shown), said(&row.key), said(&row.model)];
        let numbers =
            [row.requests, row.served, row.input, row.cached_input, row.output].map(|n| n.to_string());
        let sums = [row.cost_pico_usd, row.price_pico_usd].map(|pico| Amount::from_pico(pico).to_string());
        let all = by.into_iter().flatten().chain(numbers).chain(sums).chain([row.unpriced.to_string()]);
        all.map(cell).collect::<Vec<_>>()
    });
    table(&header, rows)
}

fn json(row: &pb::Usage) -> RowJson<'_> {
    RowJson {
        day: row.day.map(day::shown),
        key: row.key.as_deref(),
        model: row.model.as_deref(),
        requests: row.requests,
        served: row.served,
        input_tokens: row.input,
        cached_input_tokens: row.cached_input,
        output_tokens: row.output,
        searches: row.searches,
        audio_ms: row.audio_ms,
        cost_usd: Amount::from_pico(row.cost_pico_usd).to_string(),
        price_usd: Amount::from_pico(row.price_pico_usd).to_string(),
        unpriced: row.unpriced,
    }
}
