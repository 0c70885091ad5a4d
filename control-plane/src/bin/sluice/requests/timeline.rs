//! `sluice requests show`: one request along its time.

use serde::Serialize;

use common::money::Amount;
use common::pb::{admin as pb, fleet};
use common::record::words;

use super::bars::bars;
use crate::args::Format;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table, time};

#[derive(Serialize)]
struct ShownJson<'a> {
    request_id: &'a str,
    client_request_id: Option<&'a str>,
    node: &'a str,
    boot_id: &'a str,
    began_at_ms: u64,
    epoch: u64,
    revision: u64,
    model: &'a str,
    dialect: &'a str,
    operation: &'a str,
    key: Option<&'a str>,
    stream: bool,
    chain: Vec<HopJson<'a>>,
    attempts: Vec<AttemptJson<'a>>,
    outcome: &'a str,
    status: u32,
    code: Option<&'a str>,
    committed_us: Option<u64>,
    ended_us: u64,
    request_bytes: u64,
    answer_bytes: u64,
    usage: Option<UsageJson>,
    cost_usd: Option<String>,
    price_usd: Option<String>,
}

#[derive(Serialize)]
struct HopJson<'a> {
    channel: &'a str,
    upstream_model: &'a str,
    out: Option<&'a str>,
    out_until_us: Option<u64>,
}

#[derive(Serialize)]
struct AttemptJson<'a> {
    channel: &'a str,
    class: &'a str,
    reason: Option<&'a str>,
    status: u32,
    gate: Option<&'a str>,
    was_stale: bool,
    upstream_request_id: Option<&'a str>,
    began_us: u64,
    headers_us: Option<u64>,
    first_byte_us: Option<u64>,
    decisive_us: Option<u64>,
    ended_us: u64,
}

#[derive(Serialize)]
struct UsageJson {
    input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
    searches: u64,
    audio_ms: u64,
}

/// Prints one request.
pub fn show(answer: &pb::GetRequestResponse, output: &mut Output) -> Result<Exit, Fault> {
    let record = answer.record.clone().unwrap_or_default();
    match output.format() {
        Format::Json => output.json(&json(answer, &record))?,
        Format::Table => output.text(&text(answer, &record))?,
    }
    Ok(Exit::Done)
}

fn text(answer: &pb::GetRequestResponse, record: &fleet::Record) -> String {
    let node = &answer.node;
    let at = time(i64::try_from(record.began_at_ms).unwrap_or(i64::MAX));
    let mut text = format!("request {} on {}, {at}\n", clean(&record.request_id), clean(node));
    if !record.client_request_id.is_empty() {
        text += &format!("the caller calls it {}\n", clean(&record.client_request_id));
    }
    for line in [Some(words::asked(record)), Some(words::answered(record)), words::used(answer, record)] {
        text += &line.map(|line| format!("{}\n", clean(&line))).unwrap_or_default();
    }
    if !record.chain.is_empty() {
        text += "\n";
        text += &hops_table(record);
    }
    if !record.attempts.is_empty() {
        text += "\n";
        text += &bars(record);
    }
    text
}

/// A row for each hop: why it was not asked, or when what came.
fn hops_table(record: &fleet::Record) -> String {
    let rows = record.chain.iter().enumerate().map(|(index, hop)| {
        let attempt = record.attempts.iter().find(|attempt| attempt.hop as usize == index);
        let at = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), words::seconds);
        let times: [Option<u64>; 5] = match attempt {
            Some(a) => [Some(a.began_us), a.headers_us, a.first_byte_us, a.decisive_us, Some(a.ended_us)],
            None => [None; 5],
        };
        let mut row = vec![
            cell((index + 1).to_string()),
            cell(&hop.channel),
            cell(&hop.upstream_model),
            cell(words::became(hop, attempt)),
        ];
        row.extend(times.map(|time| cell(at(time))));
        row
    });
    let header = [
        ">HOP",
        "CHANNEL",
        "UPSTREAM MODEL",
        "RESULT",
        ">ASKED",
        ">HEADERS",
        ">FIRST BYTE",
        ">DECIDED",
        ">ENDED",
    ];
    table(&header, rows)
}

fn json<'a>(answer: &'a pb::GetRequestResponse, record: &'a fleet::Record) -> ShownJson<'a> {
    let usd = |pico: Option<u64>| pico.map(|pico| Amount::from_pico(pico).to_string());
    let channel = |hop: u32| record.chain.get(hop as usize).map_or("", |hop| hop.channel.as_str());
    let hops = record.chain.iter().map(|hop| HopJson {
        channel: &hop.channel,
        upstream_model: &hop.upstream_model,
        out: some(&hop.out),
        out_until_us: hop.out_until_us,
    });
    let attempts = record.attempts.iter().map(|attempt| AttemptJson {
        channel: channel(attempt.hop),
        class: &attempt.class,
        reason: some(&attempt.reason),
        status: attempt.status,
        gate: some(&attempt.gate),
        was_stale: attempt.was_stale,
        upstream_request_id: some(&attempt.upstream_request_id),
        began_us: attempt.began_us,
        headers_us: attempt.headers_us,
        first_byte_us: attempt.first_byte_us,
        decisive_us: attempt.decisive_us,
        ended_us: attempt.ended_us,
    });
    let usage = record.usage.as_ref().map(|usage| {
        let fleet::RecordUsage { input, cached_input, cache_write, output, reasoning, searches, audio_ms } =
            *usage;
        UsageJson { input, cached_input, cache_write, output, reasoning, searches, audio_ms }
    });
    ShownJson {
        request_id: &record.request_id,
        client_request_id: some(&record.client_request_id),
        node: &answer.node,
        boot_id: &record.boot_id,
        began_at_ms: record.began_at_ms,
        epoch: record.epoch,
        revision: record.revision,
        model: &record.model,
        dialect: &record.dialect,
        operation: &record.operation,
        key: some(&record.key_id),
        stream: record.is_stream,
        chain: hops.collect(),
        attempts: attempts.collect(),
        outcome: &record.outcome,
        status: record.status,
        code: some(&record.code),
        committed_us: record.committed_us,
        ended_us: record.ended_us,
        request_bytes: record.request_bytes,
        answer_bytes: record.answer_bytes,
        usage,
        cost_usd: usd(answer.cost_pico_usd),
        price_usd: usd(answer.price_pico_usd),
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    fn record() -> fleet::Record {
        let hop = |channel: &str| fleet::RecordHop {
            channel: channel.to_owned(),
            upstream_model: "m".to_owned(),
            ..Default::default()
        };
        let out =
            fleet::RecordHop { out: "breaker_open".to_owned(), out_until_us: Some(42_000_000), ..hop("a") };
        let failed = fleet::RecordAttempt {
            hop: 1,
            began_us: 1000,
            headers_us: Some(2_001_000),
            ended_us: 2_001_000,
            class: "overloaded".to_owned(),
            reason: "plain".to_owned(),
            status: 503,
            ..Default::default()
        };
        let served = fleet::RecordAttempt {
            hop: 2,
            began_us: 2_001_000,
            headers_us: Some(3_000_000),
            first_byte_us: Some(3_000_000),
            decisive_us: Some(3_100_000),
            ended_us: 4_000_000,
            class: "ok".to_owned(),
            status: 200,
            gate: "content".to_owned(),
            ..Default::default()
        };
        fleet::Record {
            request_id: "id-1".to_owned(),
            began_at_ms: 1_796_046_279_000,
            revision: 42,
            model: "gpt-4o".to_owned(),
            operation: "/v1/chat/completions".to_owned(),
            key_id: "key-1".to_owned(),
            is_stream: true,
            chain: vec![out, hop("b"), hop("c")],
            attempts: vec![failed, served],
            outcome: "served".to_owned(),
            status: 200,
            committed_us: Some(3_100_000),
            ended_us: 4_000_000,
            usage: Some(fleet::RecordUsage { input: 7, output: 9, ..Default::default() }),
            ..Default::default()
        }
    }

    fn answer() -> pb::GetRequestResponse {
        let cost_pico_usd = Some(1_234_500_000);
        pb::GetRequestResponse { node: "node-a".to_owned(), cost_pico_usd, ..Default::default() }
    }

    #[test]
    fn where_its_time_went_and_why_is_seen_at_a_glance() {
        let want = "\
request id-1 on node-a, 2026-11-30T13:44:39Z
asked /v1/chat/completions for a stream of gpt-4o, with key key-1; revision 42
served, status 200 after 4.000 s; the answer began after 3.100 s
used 7 tokens of input and 9 of output; it cost us 0.0012345 USD

HOP  CHANNEL  UPSTREAM MODEL  RESULT                                    ASKED  HEADERS  FIRST BYTE  DECIDED    ENDED
  1  a        m               not asked: breaker_open for 42.000 s more        -        -           -        -        -
  2  b        m               overloaded, status 503                     0.001 s  2.001 s           -        -  2.001 s
  3  c        m               ok, status 200, gate: content              2.001 s  3.000 s     3.000 s  3.100 s  4.000 s

- waits for headers   = held   # passed on
  2  b  |------------------------------=                             |
  3  c  |                              ---------------=##############|
";
        let squeezed = |text: &str| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&plain(&text(&answer(), &record()))), squeezed(want));
        let (answer, record) = (answer(), record());
        let json = serde_json::to_value(json(&answer, &record)).unwrap();
        assert_eq!(
            (&json["attempts"][1]["channel"], &json["chain"][0]["out"]),
            (&"c".into(), &"breaker_open".into())
        );
        assert_eq!((&json["usage"]["input"], &json["cost_usd"]), (&7.into(), &"0.0012345".into()));
        assert_eq!(json["price_usd"], serde_json::Value::Null);
    }
}
