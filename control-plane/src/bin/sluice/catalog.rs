//! `sluice catalog`: validate, apply, get, history. Faults of a document stand each on a line of their
//! own, `FILE:LINE: path: message`, as compilers write them.

use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::{FieldViolation, StatusExt as _};

use common::limits::CATALOG_BYTES_MAX;
use common::pb::admin as pb;

use crate::args::{CatalogCommand, ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, plural, table, time};

/// A document and what to call it in messages.
struct Document {
    name: String,
    bytes: Vec<u8>,
}

#[derive(Serialize)]
struct ValidatedJson<'a> {
    faults: Vec<FindingJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    path: &'a str,
    line: u32,
    message: &'a str,
}

#[derive(Serialize)]
struct AppliedJson {
    revision: u64,
}

#[derive(Serialize)]
struct RevisionJson<'a> {
    revision: u64,
    sha256: &'a str,
    author: &'a str,
    message: &'a str,
    created_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a str>,
}

#[derive(Serialize)]
struct HistoryJson<'a> {
    revisions: Vec<RevisionJson<'a>>,
}

/// Runs a command of the group. A document is read before the control plane is called, so that a wrong
/// file name is not hidden behind an absent server.
pub async fn run(command: CatalogCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    match command {
        CatalogCommand::Validate { file } => {
            let document = read(&file)?;
            validate(document, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Apply { file, expect, message } => {
            let document = read(&file)?;
            apply(document, expect, message, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Get { revision } => get(revision, &Connection::open(connect).await?, output).await,
        CatalogCommand::History { limit, before } => {
            history(limit, before, &Connection::open(connect).await?, output).await
        }
    }
}

async fn validate(document: Document, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let Document { name, bytes } = document;
    let request = pb::ValidateCatalogRequest { document: bytes };
    let answer = conn.answer(conn.catalog().validate_catalog(request)).await.map_err(|s| conn.fault(&s))?;
    let is_valid = answer.faults.is_empty();
    if output.format() == Format::Json {
        output.json(&ValidatedJson {
            faults: findings(&answer.faults),
            warnings: findings(&answer.warnings),
        })?;
        return Ok(if is_valid { Exit::Done } else { Exit::Error });
    }
    warn(&name, &answer.warnings, output)?;
    if !is_valid {
        return Err(faulty(
            &name,
            &answer.faults,
            "nothing was changed; mend the document and check it again",
        ));
    }
    output.text(&format!("{name} is valid{}\n", with_warnings(&answer.warnings)))?;
    Ok(Exit::Done)
}

async fn apply(
    document: Document,
    expect: Option<u64>,
    message: String,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let Document { name, bytes } = document;
    let request = pb::ApplyCatalogRequest { document: bytes.clone(), expected_revision: expect, message };
    let answer = match conn.answer(conn.catalog().apply_catalog(request)).await {
        Ok(answer) => answer,
        Err(status) => return Err(not_applied(&status, &name, bytes, expect, conn).await),
    };
    let revision = answer.revision.unwrap_or_default();
    warn(&name, &answer.warnings, output)?;
    if output.format() == Format::Json {
        output.json(&AppliedJson { revision: revision.number })?;
    } else if answer.changed {
        output.text(&format!("applied {name} as revision {}\n", revision.number))?;
    } else {
        output.text(&format!("no change: {name} is revision {} already\n", revision.number))?;
    }
    Ok(Exit::Done)
}

/// Why an apply was refused. The details of an error have to fit into a header, so the document is
/// checked once more to have all its faults, each with its line.
async fn not_applied(
    status: &Status,
    name: &str,
    bytes: Vec<u8>,
    expect: Option<u64>,
    conn: &Connection,
) -> Fault {
    match status.code() {
        Code::Aborted => conflict(status, expect),
        Code::InvalidArgument if !violations(status).is_empty() => {
            let request = pb::ValidateCatalogRequest { document: bytes };
            match conn.answer(conn.catalog().validate_catalog(request)).await {
                Ok(checked) if !checked.faults.is_empty() => faulty(name, &checked.faults, NOT_KEPT),
                _ => unlocated(status, name),
            }
        }
        _ => conn.fault(status),
    }
}

const NOT_KEPT: &str = "nothing was applied; mend the document and apply it again";

fn conflict(status: &Status, expect: Option<u64>) -> Fault {
    let current = status.get_details_error_info().and_then(|info| info.metadata.get("revision").cloned());
    match (current, expect) {
        (Some(current), Some(expect)) => Fault::error(format!(
            "the catalog is at revision {current} by now, not at {expect}; nothing was applied"
        ))
        .help(format!(
            "see what came between by `sluice catalog history` and `sluice catalog get {current}`, bring it \
                     into your document, then apply it with --expect {current}"
        )),
        _ => Fault::error(status.message()),
    }
}

fn unlocated(status: &Status, name: &str) -> Fault {
    let found = violations(status);
    let count = found.len();
    let lines = found.into_iter().map(|v| format!("{name}: {}: {}", v.field, v.description)).collect();
    Fault::error(format!("{name} has {}", plural(count, "fault", "faults"))).lines(lines).help(NOT_KEPT)
}

fn violations(status: &Status) -> Vec<FieldViolation> {
    status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default()
}

fn faulty(name: &str, faults: &[pb::Finding], help: &str) -> Fault {
    let lines = faults.iter().map(|fault| located(name, "", fault)).collect();
    Fault::error(format!("{name} has {}", plural(faults.len(), "fault", "faults"))).lines(lines).help(help)
}

fn located(name: &str, kind: &str, finding: &pb::Finding) -> String {
    let pb::Finding { path, line, message } = finding;
    let mut text = name.to_owned();
    if *line > 0 {
        text += &format!(":{line}");
    }
    text += &format!(": {kind}");
    if !path.is_empty() {
        text += &format!("{path}: ");
    }
    text + message
}

fn warn(name: &str, warnings: &[pb::Finding], output: &mut Output) -> std::io::Result<()> {
    warnings.iter().try_for_each(|warning| output.note(&located(name, "warning: ", warning)))
}

fn with_warnings(warnings: &[pb::Finding]) -> String {
    match warnings.len() {
        0 => String::new(),
        count => format!(", with {}", plural(count, "warning", "warnings")),
    }
}

fn findings(findings: &[pb::Finding]) -> Vec<FindingJson<'_>> {
    findings.iter().map(|f| FindingJson { path: &f.path, line: f.line, message: &f.message }).collect()
}

async fn get(revision: Option<u64>, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::GetCatalogRequest { revision: revision.unwrap_or(0) };
    let answer = match conn.answer(conn.catalog().get_catalog(request)).await {
        Ok(answer) => answer,
        Err(status) if revision.is_none() && status.code() == Code::NotFound => {
            return Err(Fault::error("no catalog was applied yet")
                .exit(Exit::Different)
                .help("write one and apply it by `sluice catalog apply -f FILE`"));
        }
        Err(status) => return Err(conn.fault(&status)),
    };
    if output.format() == Format::Json {
        let document = String::from_utf8_lossy(&answer.document);
        output.json(&revision_json(&answer.revision.unwrap_or_default(), Some(&document)))?;
    } else {
        output.bytes(&answer.document)?;
    }
    Ok(Exit::Done)
}

async fn history(
    limit: u32,
    before: Option<u64>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let request = pb::ListRevisionsRequest { limit, before: before.unwrap_or(0) };
    let answer = conn.answer(conn.catalog().list_revisions(request)).await.map_err(|s| conn.fault(&s))?;
    if output.format() == Format::Json {
        let revisions = answer.revisions.iter().map(|revision| revision_json(revision, None)).collect();
        output.json(&HistoryJson { revisions })?;
    } else if answer.revisions.is_empty() {
        output.text("no revisions\n")?;
    } else {
        output.text(&history_table(&answer.revisions))?;
    }
    Ok(Exit::Done)
}

fn history_table(revisions: &[pb::Revision]) -> String {
    let rows = revisions.iter().map(|revision| {
        let sha256 = revision.sha256.get(..12).unwrap_or(&revision.sha256);
        vec![
            cell(revision.number.to_string()),
            cell(time(revision.created_at_ms)),
            cell(&revision.author),
            cell(sha256),
            cell(&revision.message),
        ]
    });
    table(&[">REVISION", "CREATED", "AUTHOR", "SHA256", "MESSAGE"], rows)
}

fn revision_json<'a>(revision: &'a pb::Revision, document: Option<&'a str>) -> RevisionJson<'a> {
    RevisionJson {
        revision: revision.number,
        sha256: &revision.sha256,
        author: &revision.author,
        message: &revision.message,
        created_at_ms: revision.created_at_ms,
        document,
    }
}

fn read(path: &Path) -> Result<Document, Fault> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let limit = CATALOG_BYTES_MAX as u64 + 1;
    let reading = if is_stdin {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    reading.map_err(|cause| Fault::error(format!("cannot read {name}: {cause}")))?;
    if bytes.len() > CATALOG_BYTES_MAX {
        return Err(Fault::error(format!(
            "{name} is larger than a catalog may be ({CATALOG_BYTES_MAX} bytes)"
        )));
    }
    Ok(Document { name, bytes })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;
    use crate::output::plain;

    fn finding(path: &str, line: u32, message: &str) -> pb::Finding {
        pb::Finding { path: path.to_owned(), line, message: message.to_owned() }
    }

    #[test]
    fn each_fault_has_a_line_of_its_own_that_editors_understand() {
        let faults = [
            finding("models.gpt-4o.routes[1].channel", 12, "no such channel \"opnai\""),
            finding("", 0, "the document is empty"),
        ];
        let fault = faulty("catalog.toml", &faults, "mend it");
        let lines = [
            "catalog.toml:12: models.gpt-4o.routes[1].channel: no such channel \"opnai\"",
            "catalog.toml: the document is empty",
        ];
        assert_eq!(fault.lines, lines);
        assert_eq!(fault.message, "catalog.toml has 2 faults");
        assert_eq!(fault.exit, Exit::Error);
    }

    #[test]
    fn a_warning_says_that_it_is_one() {
        assert_eq!(located("f", "warning: ", &finding("a.b", 3, "odd")), "f:3: warning: a.b: odd");
    }

    #[test]
    fn a_conflict_names_the_current_revision_and_how_to_go_on() {
        let metadata = HashMap::from([("revision".to_owned(), "43".to_owned())]);
        let details = ErrorDetails::with_error_info("REVISION_CONFLICT", "sluice", metadata);
        let status = Status::with_error_details(Code::Aborted, "expected 41", details);
        let fault = conflict(&status, Some(41));
        assert_eq!(fault.message, "the catalog is at revision 43 by now, not at 41; nothing was applied");
        assert!(fault.help.unwrap().contains("--expect 43"));
        assert_eq!(conflict(&Status::aborted("expected 41"), Some(41)).message, "expected 41");
    }

    #[test]
    fn a_history_shows_number_time_author_digest_and_message() {
        let revision = pb::Revision {
            number: 42,
            sha256: "0123456789abcdef".to_owned(),
            author: "admin".to_owned(),
            message: "cheaper".to_owned(),
            created_at_ms: 1_796_046_279_000,
        };
        let shown = plain(&history_table(std::slice::from_ref(&revision)));
        let want = "\
REVISION  CREATED               AUTHOR  SHA256        MESSAGE
      42  2026-11-30T13:44:39Z  admin   0123456789ab  cheaper
";
        assert_eq!(shown, want);
        let json = serde_json::to_value(revision_json(&revision, None)).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["author", "created_at_ms", "message", "revision", "sha256"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let fault = read(Path::new("/no/such/catalog.toml")).err().unwrap();
        assert!(fault.message.starts_with("cannot read /no/such/catalog.toml: "), "{}", fault.message);
    }

    #[test]
    fn a_file_above_the_limit_is_refused_before_it_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge.toml");
        std::fs::write(&path, vec![b'#'; CATALOG_BYTES_MAX + 1]).unwrap();
        assert!(read(&path).err().unwrap().message.contains("larger than a catalog may be"));
    }
}
