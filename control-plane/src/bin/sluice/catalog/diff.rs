//! `sluice catalog diff`, and how changes between two catalogs are shown.

use serde::Serialize;

use common::pb::admin as pb;
use pb::diff_catalog_request::To;

use super::document::{Document, FindingJson, findings, warn};
use crate::args::Format;
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, plural, table};

#[derive(Serialize)]
struct DiffJson<'a> {
    from: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    changes: Vec<ChangeJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
}

/// A change, for programs: `null` where there is no value on that side.
#[derive(Serialize)]
pub struct ChangeJson<'a> {
    path: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

/// Compares two revisions, or one with a document. Ends with 1 when they mean different things.
pub async fn diff(
    from: Option<u64>,
    to: Option<u64>,
    document: Option<Document>,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let (name, bytes) = document.map_or_else(Default::default, |one| (one.name, Some(one.bytes)));
    let to = bytes.clone().map(To::Document).or(to.map(To::Revision));
    let request = pb::DiffCatalogRequest { from: from.unwrap_or(0), to };
    let answer = match (conn.answer(conn.catalog().diff_catalog(request)).await, bytes) {
        (Ok(answer), _) => answer,
        (Err(status), Some(bytes)) if !super::violations(&status).is_empty() => {
            return Err(super::refused(&status, &name, bytes, conn).await.help("mend the document"));
        }
        (Err(status), _) => return Err(conn.fault(&status)),
    };
    let exit = if answer.changes.is_empty() { Exit::Done } else { Exit::Different };
    if output.format() == Format::Json {
        let (changes, warnings) = (changes_json(&answer.changes), findings(&answer.warnings));
        let to = (answer.to > 0).then_some(answer.to);
        output.json(&DiffJson { from: answer.from, to, changes, warnings })?;
        return Ok(exit);
    }
    warn(&name, &answer.warnings, output)?;
    let name = if answer.to > 0 { format!("revision {}", answer.to) } else { name };
    let from =
        if answer.from > 0 { format!("revision {}", answer.from) } else { "no catalog at all".to_owned() };
    if answer.changes.is_empty() {
        output.text(&format!("no difference between {from} and {name}\n"))?;
    } else {
        let count = plural(answer.changes.len(), "change", "changes");
        output.text(&format!("{}{count} from {from} to {name}\n", changed(&answer.changes)))?;
    }
    Ok(exit)
}

/// Changes as people read them: a line for each, `+` for what is new, `-` for what is gone.
pub fn changed(changes: &[pb::Change]) -> String {
    let rows = changes.iter().map(|change| {
        let none = "-".to_owned();
        let sign = match (&change.before, &change.after) {
            (None, _) => "+",
            (_, None) => "-",
            _ => "~",
        };
        let value = |value: &Option<String>| cell(value.as_ref().unwrap_or(&none));
        vec![cell(sign), cell(&change.path), value(&change.before), value(&change.after)]
    });
    if changes.is_empty() { String::new() } else { table(&["", "PATH", "BEFORE", "AFTER"], rows) }
}

/// Changes as programs read them.
pub fn changes_json(changes: &[pb::Change]) -> Vec<ChangeJson<'_>> {
    changes.iter().map(ChangeJson::of).collect()
}

impl<'a> ChangeJson<'a> {
    fn of(change: &'a pb::Change) -> Self {
        let pb::Change { path, before, after } = change;
        ChangeJson { path, before: before.as_deref(), after: after.as_deref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn what_is_new_gone_and_other_is_told_apart() {
        let change = |path: &str, before: Option<&str>, after: Option<&str>| pb::Change {
            path: path.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: after.map(ToOwned::to_owned),
        };
        let changes = [
            change("channels.a.base_url", None, Some("https://a")),
            change("models.m.routes[a].cost.input", Some("1.00"), Some("2.00")),
            change("policy.breaker.failures", Some("3"), None),
        ];
        let want = [
            "   PATH                           BEFORE  AFTER",
            "+  channels.a.base_url            -       https://a",
            "~  models.m.routes[a].cost.input  1.00    2.00",
            "-  policy.breaker.failures        3       -",
        ];
        assert_eq!(plain(&changed(&changes)).lines().collect::<Vec<_>>(), want);
        assert_eq!(changed(&[]), "");
    }
}
