//! `sluice rollout`: where the way of a revision through the fleet stands, and an operator's hand on it.

use std::time::Duration;

use comfy_table::Color;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format, RolloutCommand};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, plural, table, time};

/// A wait looks this often.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct RolloutJson<'a> {
    revision: u64,
    base: u64,
    strategy: &'static str,
    state: &'static str,
    reason: &'a str,
    stages: &'a [String],
    open: u32,
    bake_ms: u64,
    waits_for: &'a str,
    replaced_by: Option<u64>,
    members: Vec<MemberJson<'a>>,
    left_out: Vec<LeftOutJson<'a>>,
    begun_at_ms: i64,
    since_ms: i64,
}

#[derive(Serialize)]
struct MemberJson<'a> {
    node: &'a str,
    stage: u32,
    acknowledged_at_ms: Option<i64>,
    excused: bool,
}

#[derive(Serialize)]
struct LeftOutJson<'a> {
    node: &'a str,
    pinned_revision: u64,
}

/// Runs a command of the group.
pub async fn run(command: RolloutCommand, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = &Connection::open(connect).await?;
    let rollout = match command {
        RolloutCommand::Status { revision, wait } => {
            let found = get(revision.unwrap_or(0), conn).await.map_err(|s| conn.fault(&s))?;
            let is_awaited = wait.wait && exit(found.state()).is_none();
            let rollout =
                if is_awaited { through(found.revision, wait.within, conn, output).await? } else { found };
            print(&rollout, output)?;
            return Ok(exit(rollout.state()).unwrap_or(Exit::Done));
        }
        RolloutCommand::Pause { reason } => {
            let call = conn.answer(conn.rollouts().pause_rollout(pb::PauseRolloutRequest { reason })).await;
            call.map_err(|s| conn.fault(&s))?.rollout
        }
        RolloutCommand::Resume => {
            let call = conn.answer(conn.rollouts().resume_rollout(pb::ResumeRolloutRequest {})).await;
            call.map_err(|s| conn.fault(&s))?.rollout
        }
        RolloutCommand::Abort { reason } => {
            let call = conn.answer(conn.rollouts().abort_rollout(pb::AbortRolloutRequest { reason })).await;
            call.map_err(|s| conn.fault(&s))?.rollout
        }
    };
    print(&rollout.ok_or_else(|| Fault::error("no rollout in the answer"))?, output)?;
    Ok(Exit::Done)
}

async fn get(revision: u64, conn: &Connection) -> Result<pb::Rollout, Status> {
    let answer = conn.answer(conn.rollouts().get_rollout(pb::GetRolloutRequest { revision })).await?;
    answer.rollout.ok_or_else(|| Status::internal("no rollout in the answer"))
}

/// Waits for the end of a rollout, or for a pause, and says how it goes on meanwhile. A control plane that is away for
/// a while is waited for too.
pub async fn through(
    revision: u64,
    within: Duration,
    conn: &Connection,
    output: &mut Output,
) -> Result<pb::Rollout, Fault> {
    let give_up_at = Instant::now() + within;
    let mut said = String::new();
    let mut waits_for = String::new();
    loop {
        match get(revision, conn).await {
            Ok(rollout) => {
                let stands = head(&rollout);
                if stands != said {
                    output.note(&stands)?;
                    said = stands;
                }
                if exit(rollout.state()).is_some() {
                    return Ok(rollout);
                }
                waits_for = rollout.waits_for;
            }
            Err(status) if is_passing(&status) => {
                "the control plane does not answer".clone_into(&mut waits_for)
            }
            Err(status) => return Err(conn.fault(&status)),
        }
        if Instant::now() >= give_up_at {
            let within = humantime::format_duration(within);
            let message =
                format!("the rollout of revision {revision} is not through after {within}: {waits_for}");
            let help = "it goes on; see where it stands by `sluice rollout status`, or end it by `sluice rollout abort`";
            return Err(Fault::error(message).exit(Exit::Timeout).help(help));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The end of a wait, as a fault where the revision did not reach the fleet.
pub fn verdict(rollout: &pb::Rollout) -> Result<Exit, Fault> {
    let pb::Rollout { revision, reason, replaced_by, .. } = rollout;
    let said = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match exit(rollout.state()) {
        None | Some(Exit::Done) => Ok(Exit::Done),
        Some(end) => {
            let state = named(rollout.state());
            let message = format!("the rollout of revision {revision} is {state}{said}");
            let help = match replaced_by {
                0 => "see `sluice rollout status`; `resume` lets it go on, `abort` ends it".to_owned(),
                by => format!("nodes run revision {by}, or are on their way to it"),
            };
            Err(Fault::error(message).exit(end).help(help))
        }
    }
}

/// With what a command ends that waits for it; none while it goes on.
fn exit(state: pb::RolloutState) -> Option<Exit> {
    match state {
        pb::RolloutState::Unspecified | pb::RolloutState::Running => None,
        pb::RolloutState::Done => Some(Exit::Done),
        pb::RolloutState::Paused
        | pb::RolloutState::Undone
        | pb::RolloutState::Aborted
        | pb::RolloutState::Superseded => Some(Exit::Halted),
    }
}

/// Whether an answer may be another one in a moment.
fn is_passing(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Cancelled)
}

fn print(rollout: &pb::Rollout, output: &mut Output) -> Result<(), Fault> {
    if output.format() == Format::Json {
        output.json(&json(rollout))?;
    } else {
        output.text(&text(rollout))?;
    }
    Ok(())
}

fn text(rollout: &pb::Rollout) -> String {
    let mut text = head(rollout) + "\n";
    let pb::Rollout { base, reason, waits_for, replaced_by, stages, bake_ms, .. } = rollout;
    if rollout.strategy() == pb::RolloutStrategy::Staged {
        let bake = humantime::format_duration(Duration::from_millis(*bake_ms));
        text += &format!("stages: {}, watched for {bake} each\n", clean(&stages.join(" → ")));
        text += &format!("other nodes run: revision {base}\n");
    }
    if *replaced_by > 0 {
        text += &format!("replaced by: revision {replaced_by}\n");
    }
    let waits_for = if waits_for == reason { "" } else { waits_for };
    for (name, said) in
        [("why", reason.as_str()), ("now", waits_for)].iter().filter(|(_, said)| !said.is_empty())
    {
        text += &format!("{name}: {}\n", clean(said));
    }
    let left_out: Vec<String> =
        rollout.left_out.iter().map(|one| format!("{} (pinned to {})", one.node_id, one.revision)).collect();
    if !left_out.is_empty() {
        text += &format!("left out: {}\n", clean(&left_out.join(", ")));
    }
    let rows = rollout.members.iter().map(|member| {
        let runs = match (member.acknowledged_at_ms, member.excused) {
            (_, true) => cell("lost, left out").fg(Color::Yellow),
            (0, false) => cell("not yet").fg(Color::Yellow),
            (at, false) => cell(time(at)).fg(Color::Green),
        };
        vec![cell(member.stage.to_string()), cell(&member.node_id), runs]
    });
    if !rollout.members.is_empty() {
        text += &table(&[">STAGE", "NODE", "RUNS IT SINCE"], rows);
    }
    text
}

/// Where it stands, in a line.
fn head(rollout: &pb::Rollout) -> String {
    let pb::Rollout { revision, stages, open, members, .. } = rollout;
    let state = named(rollout.state());
    if rollout.strategy() == pb::RolloutStrategy::Immediate {
        return format!("revision {revision}: {state}, all nodes at once");
    }
    let run = members.iter().filter(|member| member.acknowledged_at_ms > 0).count();
    let nodes = plural(members.len(), "node", "nodes");
    format!("revision {revision}: {state}, stage {open} of {}, {run} of {nodes} run it", stages.len())
}

fn named(state: pb::RolloutState) -> &'static str {
    match state {
        pb::RolloutState::Unspecified => "unknown",
        pb::RolloutState::Running => "running",
        pb::RolloutState::Paused => "paused",
        pb::RolloutState::Done => "done",
        pb::RolloutState::Undone => "undone",
        pb::RolloutState::Aborted => "aborted",
        pb::RolloutState::Superseded => "superseded",
    }
}

fn json(rollout: &pb::Rollout) -> RolloutJson<'_> {
    RolloutJson {
        revision: rollout.revision,
        base: rollout.base,
        strategy: match rollout.strategy() {
            pb::RolloutStrategy::Immediate => "immediate",
            pb::RolloutStrategy::Staged | pb::RolloutStrategy::Unspecified => "staged",
        },
        state: named(rollout.state()),
        reason: &rollout.reason,
        stages: &rollout.stages,
        open: rollout.open,
        bake_ms: rollout.bake_ms,
        waits_for: &rollout.waits_for,
        replaced_by: (rollout.replaced_by > 0).then_some(rollout.replaced_by),
        members: rollout
            .members
            .iter()
            .map(|one| MemberJson {
                node: &one.node_id,
                stage: one.stage,
                acknowledged_at_ms: Some(one.acknowledged_at_ms).filter(|at| *at > 0),
                excused: one.excused,
            })
            .collect(),
        left_out: rollout
            .left_out
            .iter()
            .map(|one| LeftOutJson { node: &one.node_id, pinned_revision: one.revision })
            .collect(),
        begun_at_ms: rollout.begun_at_ms,
        since_ms: rollout.since_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    fn rollout(state: pb::RolloutState) -> pb::Rollout {
        let member = |id: &str, at| pb::rollout::Member {
            node_id: id.to_owned(),
            stage: 1,
            acknowledged_at_ms: at,
            excused: false,
        };
        pb::Rollout {
            revision: 42,
            base: 41,
            strategy: pb::RolloutStrategy::Staged.into(),
            state: state.into(),
            stages: ["1", "25%", "100%"].map(ToOwned::to_owned).to_vec(),
            open: 1,
            bake_ms: 60_000,
            members: vec![member("node-a", 1_796_046_279_000), member("node-b", 0)],
            waits_for: "waits for node-b".to_owned(),
            left_out: vec![pb::rollout::LeftOut { node_id: "node-c".to_owned(), revision: 40 }],
            ..pb::Rollout::default()
        }
    }

    #[test]
    fn a_rollout_under_way_is_shown_with_what_it_waits_for_and_who_has_it() {
        let want = "\
revision 42: running, stage 1 of 3, 1 of 2 nodes run it
stages: 1 → 25% → 100%, watched for 1m each
other nodes run: revision 41
now: waits for node-b
left out: node-c (pinned to 40)
STAGE  NODE    RUNS IT SINCE
    1  node-a  2026-11-30T13:44:39Z
    1  node-b  not yet
";
        assert_eq!(plain(&text(&rollout(pb::RolloutState::Running))), want);
    }

    #[test]
    fn what_halts_ends_with_3_and_says_why() {
        for (state, code) in [
            (pb::RolloutState::Running, 0),
            (pb::RolloutState::Done, 0),
            (pb::RolloutState::Paused, 3),
            (pb::RolloutState::Undone, 3),
            (pb::RolloutState::Aborted, 3),
            (pb::RolloutState::Superseded, 3),
        ] {
            let rollout = pb::Rollout { reason: "node-a refused it".to_owned(), ..rollout(state) };
            match verdict(&rollout) {
                Ok(exit) => assert_eq!((exit.code(), code), (0, 0), "{state:?}"),
                Err(fault) => {
                    assert_eq!(fault.exit.code(), code, "{state:?}");
                    assert!(fault.message.ends_with(": node-a refused it"), "{}", fault.message);
                }
            }
        }
    }

    #[test]
    fn the_json_has_every_member_and_null_for_what_is_not() {
        let json = serde_json::to_value(json(&rollout(pb::RolloutState::Running))).unwrap();
        assert_eq!(json["members"][1]["acknowledged_at_ms"], serde_json::Value::Null);
        assert_eq!(json["left_out"], serde_json::json!([{"node": "node-c", "pinned_revision": 40}]));
        assert_eq!((&json["state"], &json["replaced_by"]), (&"running".into(), &serde_json::Value::Null));
    }
}
