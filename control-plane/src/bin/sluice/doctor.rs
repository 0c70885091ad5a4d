//! `sluice doctor`: what is wrong and what to do about it.

use std::collections::BTreeSet;

use serde::Serialize;

use common::clock::Clock;
use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table};

#[derive(Serialize)]
struct DoctorJson<'a> {
    checks: Vec<CheckJson<'a>>,
}

#[derive(Serialize)]
struct CheckJson<'a> {
    name: &'a str,
    verdict: &'static str,
    message: &'a str,
    advice: Option<&'a str>,
}

/// Has the control plane examined. Ends with 1 when there is a fault; warnings are no fault.
pub async fn run(connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = Connection::open(connect).await?;
    let at_ms = i64::try_from(Clock::system().now_ms()).unwrap_or(i64::MAX);
    let request = pb::ExamineRequest { at_ms };
    let answer = conn.answer(conn.doctor().examine(request)).await.map_err(|s| conn.fault(&s))?;
    print(&answer.checks, output)
}

fn print(checks: &[pb::Check], output: &mut Output) -> Result<Exit, Fault> {
    if output.format() == Format::Json {
        output.json(&DoctorJson { checks: checks.iter().map(check_json).collect() })?;
    } else {
        output.text(&text(checks))?;
    }
    let is_well = checks.iter().all(|check| check.verdict() != pb::Verdict::Fault);
    Ok(if is_well { Exit::Done } else { Exit::Different })
}

fn text(checks: &[pb::Check]) -> String {
    let rows = checks.iter().map(|check| {
        let (verdict, color) = verdict(check.verdict());
        vec![cell(verdict).fg(color), cell(&check.name), cell(&check.message)]
    });
    let mut text = table(&["VERDICT", "CHECK", "FOUND"], rows);
    // One fault may be found in several places: what to do about it is said once.
    let mut advised = BTreeSet::new();
    for check in checks.iter().filter(|check| !check.advice.is_empty()) {
        if advised.insert((&check.name, &check.advice)) {
            text += &format!("{}: {}\n", clean(&check.name), clean(&check.advice));
        }
    }
    text
}

fn check_json(check: &pb::Check) -> CheckJson<'_> {
    let advice = Some(check.advice.as_str()).filter(|advice| !advice.is_empty());
    CheckJson { name: &check.name, verdict: verdict(check.verdict()).0, message: &check.message, advice }
}

fn verdict(verdict: pb::Verdict) -> (&'static str, comfy_table::Color) {
    match verdict {
        pb::Verdict::Ok => ("ok", comfy_table::Color::Green),
        pb::Verdict::Warning => ("warning", comfy_table::Color::Yellow),
        pb::Verdict::Fault => ("fault", comfy_table::Color::Red),
        pb::Verdict::Unspecified => ("unknown", comfy_table::Color::Yellow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Captured;

    fn check(verdict: pb::Verdict, advice: &str) -> pb::Check {
        let (name, message) = ("jobs".to_owned(), "found".to_owned());
        pb::Check { name, verdict: verdict.into(), message, advice: advice.to_owned() }
    }

    #[test]
    fn only_a_fault_ends_with_another_code_and_advice_stands_below() {
        let (well, warned) = (check(pb::Verdict::Ok, ""), check(pb::Verdict::Warning, "mend it"));
        let (mut output, captured) = Captured::new(Format::Table);
        assert_eq!(print(&[well.clone(), warned.clone()], &mut output).unwrap(), Exit::Done);
        let want = "VERDICT  CHECK  FOUND\nok       jobs   found\nwarning  jobs   found\njobs: mend it\n";
        assert_eq!(crate::output::plain(&captured.out()), want);
        let (mut output, captured) = Captured::new(Format::Json);
        let fault = check(pb::Verdict::Fault, "mend it");
        assert_eq!(print(&[well, fault], &mut output).unwrap(), Exit::Different);
        let json: serde_json::Value = serde_json::from_str(&captured.out()).unwrap();
        assert_eq!(json["checks"][0]["advice"], serde_json::Value::Null);
        assert_eq!(json["checks"][1]["verdict"], "fault");
    }
}
