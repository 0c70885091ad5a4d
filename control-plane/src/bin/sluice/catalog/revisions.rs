//! Revisions that there are: `sluice catalog get`, `show` and `history`.

use serde::Serialize;
use tonic::Code;

use common::pb::admin as pb;

use super::diff::{ChangeJson, changed, changes_json};
use crate::args::Format;
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, plural, table, time};

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
struct ShownJson<'a> {
    #[serde(flatten)]
    revision: RevisionJson<'a>,
    before: u64,
    changes: Vec<ChangeJson<'a>>,
}

#[derive(Serialize)]
struct HistoryJson<'a> {
    revisions: Vec<RevisionJson<'a>>,
}

/// Prints the document of a revision.
pub async fn get(revision: Option<u64>, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::GetCatalogRequest { revision: revision.unwrap_or(0) };
    let answer = match conn.answer(conn.catalog().get_catalog(request)).await {
        Ok(answer) => answer,
        Err(status) if revision.is_none() && status.code() == Code::NotFound => return Err(none_yet()),
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

/// Shows who made a revision, why, and what changed with it.
pub async fn show(revision: Option<u64>, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let request = pb::GetCatalogRequest { revision: revision.unwrap_or(0) };
    let found = match conn.answer(conn.catalog().get_catalog(request)).await {
        Ok(answer) => answer.revision.unwrap_or_default(),
        Err(status) if revision.is_none() && status.code() == Code::NotFound => return Err(none_yet()),
        Err(status) => return Err(conn.fault(&status)),
    };
    let before = found.number.saturating_sub(1);
    let changes = if before == 0 {
        vec![]
    } else {
        let to = Some(pb::diff_catalog_request::To::Revision(found.number));
        let request = pb::DiffCatalogRequest { from: before, to };
        conn.answer(conn.catalog().diff_catalog(request)).await.map_err(|s| conn.fault(&s))?.changes
    };
    if output.format() == Format::Json {
        let (revision, changes) = (revision_json(&found, None), changes_json(&changes));
        output.json(&ShownJson { revision, before, changes })?;
    } else {
        output.text(&head(&found))?;
        let count = plural(changes.len(), "change", "changes");
        output.text(&match before {
            0 => "the first revision\n".to_owned(),
            _ => format!("{count} against revision {before}\n{}", changed(&changes)),
        })?;
    }
    Ok(Exit::Done)
}

fn head(revision: &pb::Revision) -> String {
    let pb::Revision { number, sha256, author, message, created_at_ms } = revision;
    let (author, message) = (clean(author), clean(message));
    let at = time(*created_at_ms);
    let message = if message.is_empty() { String::new() } else { format!("{message}\n") };
    format!("revision {number}  {at}  by {author}  sha256 {sha256}\n{message}")
}

/// Lists revisions, newest first.
pub async fn history(
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

fn none_yet() -> Fault {
    Fault::error("no catalog was applied yet")
        .exit(Exit::Different)
        .help("write one and apply it by `sluice catalog apply -f FILE`")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

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
}
