//! The `[rollout]` table → a [`Plan`].

use std::time::Duration;

use crate::catalog::keys::ROLLOUT;
use crate::catalog::rollout::{Plan, Stage};
use crate::catalog::site::{Report, Site, Table};

/// Each stage is a pause; more of them are a mistake.
const STAGES_MAX: usize = 20;

/// Reads the table of the top level; what it leaves out is as by default.
pub(super) fn plan(top: &Table<'_>, report: &mut Report) -> Plan {
    let mut plan = Plan::default();
    let Some(table) = top.site("rollout").and_then(|site| site.table(&ROLLOUT, report)) else { return plan };
    if let Some(stages) = table.site("stages").and_then(|site| stages(&site, report)) {
        plan.stages = stages;
    }
    if let Some(bake) = table.site("bake").and_then(|site| bake(&site, report)) {
        plan.bake = bake;
    }
    plan
}

fn stages(site: &Site<'_>, report: &mut Report) -> Option<Vec<Stage>> {
    let sites = site.list(report)?;
    if sites.len() > STAGES_MAX {
        return site.refuse(format!("has too many stages: at most {STAGES_MAX}"), report);
    }
    let faults = report.faults.len();
    let mut stages = Vec::new();
    for (i, stage) in sites.iter().enumerate() {
        let Some(text) = stage.text(report) else { continue };
        match text.parse() {
            Ok(Stage::ALL) if i + 1 < sites.len() => {
                report.fault(&stage.place, "\"100%\" is the whole fleet: no stage can follow it");
            }
            Ok(stage) => stages.push(stage),
            Err(refused) => report.fault(&stage.place, refused.to_string()),
        }
    }
    if report.faults.len() == faults && stages.last() != Some(&Stage::ALL) {
        return site.refuse("must end with \"100%\": nodes of no stage would never get the revision", report);
    }
    Some(stages)
}

/// A duration; none at all is one too.
fn bake(site: &Site<'_>, report: &mut Report) -> Option<Duration> {
    let mut unheard = Report::default();
    let is_zero =
        site.text(&mut unheard).is_some_and(|text| humantime::parse_duration(text) == Ok(Duration::ZERO));
    if is_zero { Some(Duration::ZERO) } else { site.duration(report) }
}
