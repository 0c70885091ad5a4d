//! `sluice audit`: what was changed and by whom, and whether the log still says what was written.

use serde::Serialize;
use serde_json::value::RawValue;

use common::clock::Clock;
use common::pb::admin as pb;
use common::snapshot::hex;

use crate::args::{AuditArgs, AuditCommand, ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, plural, table, time};

/// A value in a table is cut here; the JSON has all of it.
const SHOWN_CHARS_MAX: usize = 60;

#[derive(Serialize)]
struct ListJson<'a> {
    entries: Vec<EntryJson<'a>>,
}

#[derive(Serialize)]
struct EntryJson<'a> {
    number: u64,
    at_ms: i64,
    actor: &'a str,
    role: &'a str,
    credential: &'a str,
    origin: &'a str,
    action: &'a str,
    object: &'a str,
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
    revision: Option<u64>,
    sha256: &'a str,
}

#[derive(Serialize)]
struct VerifiedJson<'a> {
    entries: u64,
    sha256: &'a str,
    broken: Option<BrokenJson<'a>>,
}

#[derive(Serialize)]
struct BrokenJson<'a> {
    number: u64,
    reason: &'a str,
}

/// Runs a command of the group.
pub async fn run(command: AuditCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let from = match &command {
        AuditCommand::Verify { from: Some(text) } => Some(place(text)?),
        _ => None,
    };
    let conn = &Connection::open(connect).await?;
    match command {
        AuditCommand::List(args) => list(args, conn, output).await,
        AuditCommand::Verify { .. } => verify(from, conn, output).await,
    }
}

async fn list(args: AuditArgs, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let now_ms = Clock::system().now_ms();
    let since = args.since.map_or(0, |age| u128::from(now_ms).saturating_sub(age.as_millis()));
    let request = pb::ListEntriesRequest {
        limit: args.limit,
        before: args.before.unwrap_or(0),
        since_ms: i64::try_from(since).unwrap_or(i64::MAX),
        actor: args.actor,
        action: args.action,
    };
    let answer = conn.answer(conn.audit().list_entries(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        output.json(&ListJson { entries: answer.entries.iter().map(entry_json).collect() })?;
    } else if answer.entries.is_empty() {
        output.text("no entries\n")?;
    } else {
        output.text(&entries_table(&answer.entries))?;
    }
    Ok(Exit::Done)
}

/// Walks the log from an entry, call by call, each over some thousand entries.
async fn verify(
    mut from: Option<pb::LogPlace>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let (through, broken) = loop {
        let request = pb::VerifyLogRequest { from: from.take() };
        let answer = conn.answer(conn.audit().verify_log(request)).await.map_err(|s| conn.fault(&s))?;
        let (through, head) = (answer.through.unwrap_or_default(), answer.head.unwrap_or_default());
        if answer.broken.is_some() || through.seq >= head.seq {
            break (through, answer.broken);
        }
        from = Some(through);
    };
    let sha256 = hex(&through.sha256);
    let exit = if broken.is_some() { Exit::Different } else { Exit::Done };
    if output.format() == Format::Json {
        let broken = broken.as_ref().map(|one| BrokenJson { number: one.seq, reason: &one.reason });
        output.json(&VerifiedJson { entries: through.seq, sha256: &sha256, broken })?;
        return Ok(exit);
    }
    match broken {
        None => {
            let entries = plural(usize::try_from(through.seq).unwrap_or(usize::MAX), "entry", "entries");
            output.text(&format!("{entries}, unbroken; the newest is {}:{sha256}\n", through.seq))?;
        }
        Some(pb::BrokenEntry { seq, reason }) => {
            output.text(&format!("entry {seq} cannot be relied on: {}\n", clean(&reason)))?;
            output.note(&format!("the entries before it are right, up to {}:{sha256}", through.seq))?;
        }
    }
    Ok(exit)
}

fn place(text: &str) -> Result<pb::LogPlace, Fault> {
    let bytes = |hex: &str| -> Option<Vec<u8>> {
        let is_digest = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| {
            (0..64).step_by(2).filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
        })
    };
    let parsed = text
        .split_once(':')
        .and_then(|(seq, sha256)| Some(pb::LogPlace { seq: seq.parse().ok()?, sha256: bytes(sha256)? }));
    parsed.ok_or_else(|| {
        Fault::error(format!("\"{text}\" is no entry's number and digest"))
            .help("give NUMBER:SHA256 as `sluice audit verify` prints it")
    })
}

fn entries_table(entries: &[pb::Entry]) -> String {
    let rows = entries.iter().map(|entry| {
        vec![
            cell(entry.seq.to_string()),
            cell(time(entry.at_ms)),
            cell(&entry.actor),
            cell(if entry.origin.is_empty() { "-" } else { &entry.origin }),
            cell(&entry.action),
            cell(&entry.object),
            cell(shown(entry.before.as_deref())),
            cell(shown(entry.after.as_deref())),
        ]
    });
    table(&[">NUMBER", "AT", "ACTOR", "FROM", "ACTION", "OBJECT", "BEFORE", "AFTER"], rows)
}

fn shown(value: Option<&str>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    match value.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_owned(),
    }
}

fn entry_json(entry: &pb::Entry) -> EntryJson<'_> {
    let raw = |text: &Option<String>| text.clone().and_then(|text| RawValue::from_string(text).ok());
    EntryJson {
        number: entry.seq,
        at_ms: entry.at_ms,
        actor: &entry.actor,
        role: &entry.role,
        credential: &entry.credential,
        origin: &entry.origin,
        action: &entry.action,
        object: &entry.object,
        before: raw(&entry.before),
        after: raw(&entry.after),
        revision: (entry.revision > 0).then_some(entry.revision),
        sha256: &entry.sha256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    fn entry() -> pb::Entry {
        pb::Entry {
            seq: 7,
            at_ms: 1_796_046_279_000,
            actor: "ann".to_owned(),
            origin: "192.0.2.7:4711".to_owned(),
            action: "key.create".to_owned(),
            object: "key-1".to_owned(),
            after: Some("{\"name\":\"app\"}".to_owned()),
            ..pb::Entry::default()
        }
    }

    #[test]
    fn a_list_says_who_did_what_to_what_and_what_it_was_before() {
        let want = "\
NUMBER  AT                    ACTOR  FROM            ACTION      OBJECT  BEFORE  AFTER
     7  2026-11-30T13:44:39Z  ann    192.0.2.7:4711  key.create  key-1   -       {\"name\":\"app\"}
";
        assert_eq!(plain(&entries_table(&[entry()])), want);
        let json = serde_json::to_value(entry_json(&entry())).unwrap();
        assert_eq!(json["after"]["name"], "app");
        assert_eq!(
            (&json["before"], &json["revision"]),
            (&serde_json::Value::Null, &serde_json::Value::Null)
        );
    }

    #[test]
    fn a_long_value_is_cut_for_people_alone() {
        let long = "ü".repeat(SHOWN_CHARS_MAX + 1);
        assert_eq!(shown(Some(&long)).chars().count(), SHOWN_CHARS_MAX + 1);
        assert!(shown(Some(&long)).ends_with('…'));
        assert_eq!(shown(Some("short")), "short");
    }

    #[test]
    fn a_place_is_a_number_and_a_whole_digest() {
        let digest = "0a".repeat(32);
        let parsed = place(&format!("7:{digest}")).unwrap();
        assert_eq!((parsed.seq, parsed.sha256), (7, vec![10; 32]));
        for text in ["", "7", "7:", "7:0a", &format!("x:{digest}"), &format!("7:{}", "zz".repeat(32))] {
            assert!(place(text).unwrap_err().help.unwrap().contains("NUMBER:SHA256"), "{text}");
        }
    }
}
