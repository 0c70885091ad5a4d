//! `sluice catalog`: what each command of the group asks for, and what makes a revision: validate, apply,
//! rollback. What only reads is the files' beside this one.

mod diff;
mod document;
mod nodes;
mod revisions;

use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::{FieldViolation, StatusExt as _};

use common::pb::admin as pb;

use crate::args::{ApplyArgs, CatalogCommand, ConnectArgs, Format, RollbackArgs, Strategy, WaitArgs};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, plural};
use crate::rollout;
use diff::{ChangeJson, changed, changes_json};
use document::{Document, FindingJson, faulty, findings, read, warn, with_warnings};
use nodes::{
    IncompatibleJson, ProbeJson, incompatible_json, is_refused, probed, probes_json, warn_incompatible,
};

#[derive(Serialize)]
struct ValidatedJson<'a> {
    faults: Vec<FindingJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct AppliedJson {
    revision: u64,
}

#[derive(Serialize)]
struct DryRunJson<'a> {
    revision: u64,
    changed: bool,
    changes: Vec<ChangeJson<'a>>,
    incompatible: Vec<IncompatibleJson<'a>>,
    probes: Vec<ProbeJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
}

/// Runs a command of the group. A document is read before the control plane is called, so that a wrong
/// file name is not hidden behind an absent server.
pub async fn run(command: CatalogCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    match command {
        CatalogCommand::Validate { file } => {
            let document = read(&file)?;
            validate(document, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Apply(args) => {
            let document = read(&args.file)?;
            apply(document, args, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Rollback(args) => rollback(args, &Connection::open(connect).await?, output).await,
        CatalogCommand::Diff { from, to, file } => {
            let document = file.map(|file| read(&file)).transpose()?;
            diff::diff(from, to, document, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Get { revision } => {
            revisions::get(revision, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::Show { revision } => {
            revisions::show(revision, &Connection::open(connect).await?, output).await
        }
        CatalogCommand::History { limit, before } => {
            revisions::history(limit, before, &Connection::open(connect).await?, output).await
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
        let help = "nothing was changed; mend the document and check it again";
        return Err(faulty(&name, &answer.faults).help(help));
    }
    output.text(&format!("{name} is valid{}\n", with_warnings(&answer.warnings)))?;
    Ok(Exit::Done)
}

async fn apply(
    document: Document,
    args: ApplyArgs,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let Document { name, bytes } = document;
    let expect = args.expect;
    let request = pb::ApplyCatalogRequest {
        document: bytes.clone(),
        expected_revision: expect,
        message: args.message,
        dry_run: args.dry_run,
        idempotency_key: args.idempotency_key,
        strategy: strategy(args.reach.strategy).into(),
        reason: args.reach.reason,
        probe: args.probe.unwrap_or(0),
    };
    let answer = match conn.answer(conn.catalog().apply_catalog(request)).await {
        Ok(answer) => answer,
        Err(status) => return Err(not_applied(&status, &name, bytes, expect, conn).await),
    };
    let number = answer.revision.unwrap_or_default().number;
    let exit = if is_refused(&answer.probes) { Exit::Error } else { Exit::Done };
    if args.dry_run && output.format() == Format::Json {
        let (changes, warnings) = (changes_json(&answer.changes), findings(&answer.warnings));
        let incompatible = incompatible_json(&answer.incompatible);
        let (changed, probes) = (answer.changed, probes_json(&answer.probes));
        output.json(&DryRunJson { revision: number, changed, changes, incompatible, probes, warnings })?;
        return Ok(exit);
    }
    warn(&name, &answer.warnings, output)?;
    warn_incompatible(&answer.incompatible, output)?;
    if output.format() == Format::Json {
        output.json(&AppliedJson { revision: number })?;
    } else if !answer.changed {
        output.text(&format!("no change: {name} is revision {number} already\n"))?;
    } else if args.dry_run {
        output.text(&changed(&answer.changes))?;
        if let Some(asked) = args.probe {
            output.text(&probed(&answer.probes, asked))?;
        }
        let changes = plural(answer.changes.len(), "change", "changes");
        output.text(&format!("{name} would be revision {number}, with {changes}; nothing was applied\n"))?;
    } else {
        output.text(&format!("applied {name} as revision {number}\n"))?;
    }
    if args.dry_run { Ok(exit) } else { reached(number, args.reach.wait, conn, output).await }
}

fn strategy(asked: Strategy) -> pb::RolloutStrategy {
    match asked {
        Strategy::Staged => pb::RolloutStrategy::Staged,
        Strategy::Immediate => pb::RolloutStrategy::Immediate,
    }
}

/// Waits for the fleet, where that is wished for.
async fn reached(
    revision: u64,
    wait: WaitArgs,
    conn: &Connection,
    output: &mut Output,
) -> Result<Exit, Fault> {
    if !wait.wait {
        return Ok(Exit::Done);
    }
    let rollout = rollout::through(revision, wait.within, conn, output).await?;
    rollout::verdict(&rollout)
}

async fn rollback(args: RollbackArgs, conn: &Connection, output: &mut Output) -> Result<Exit, Fault> {
    let RollbackArgs { revision, expect, message, idempotency_key, reach } = args;
    let request = pb::RollbackCatalogRequest {
        revision,
        expected_revision: expect,
        message,
        idempotency_key,
        strategy: strategy(reach.strategy).into(),
        reason: reach.reason,
    };
    let name = format!("revision {revision}");
    let answer = match conn.answer(conn.catalog().rollback_catalog(request)).await {
        Ok(answer) => answer,
        Err(status) => match status.code() {
            Code::Aborted => return Err(conflict(&status, expect)),
            Code::InvalidArgument if !violations(&status).is_empty() => {
                return Err(unreadable(&status, &name).help(NOT_KEPT));
            }
            _ => return Err(conn.fault(&status)),
        },
    };
    let number = answer.revision.unwrap_or_default().number;
    warn(&name, &answer.warnings, output)?;
    warn_incompatible(&answer.incompatible, output)?;
    if output.format() == Format::Json {
        output.json(&AppliedJson { revision: number })?;
    } else if answer.changed {
        output.text(&changed(&answer.changes))?;
        output.text(&format!("went back to {name}: its document is revision {number} now\n"))?;
    } else {
        output.text(&format!("no change: the document of {name} is current already\n"))?;
    }
    reached(number, reach.wait, conn, output).await
}

/// Why an apply was refused.
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
            refused(status, name, bytes, conn).await.help(NOT_KEPT)
        }
        _ => conn.fault(status),
    }
}

/// What is wrong with a document that was refused. The details of an error have to fit into a header, so
/// the document is checked once more to have all its faults, each with its line.
async fn refused(status: &Status, name: &str, bytes: Vec<u8>, conn: &Connection) -> Fault {
    let request = pb::ValidateCatalogRequest { document: bytes };
    match conn.answer(conn.catalog().validate_catalog(request)).await {
        Ok(checked) if !checked.faults.is_empty() => faulty(name, &checked.faults),
        _ => unreadable(status, name),
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

/// What the details of an error say of a document's faults.
fn unreadable(status: &Status, name: &str) -> Fault {
    let found = violations(status);
    let count = found.len();
    let lines = found.into_iter().map(|v| format!("{name}: {}: {}", v.field, v.description)).collect();
    Fault::error(format!("{name} has {}", plural(count, "fault", "faults"))).lines(lines)
}

fn violations(status: &Status) -> Vec<FieldViolation> {
    status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

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
}
