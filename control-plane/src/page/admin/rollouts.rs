//! `/admin/rollouts`: how the newest revision reaches the fleet, and the orders about it: pause, resume, abort.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use common::pb::admin as pb;
use pb::catalog_service_server::CatalogService as _;
use pb::rollout_service_server::RolloutService as _;
use tonic::Code;

use super::super::html::Html;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::{Desk, Fields, Visit, moment, see};
use crate::access::Role;

const HERE: &str = "/admin/rollouts";
/// So many rollouts before the newest are listed.
const EARLIER: u32 = 10;

/// The rollout that is under way, or the last one, and those before.
pub async fn show(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
) -> Result<Response, Fault> {
    let newest = find(&desk, &visit, 0).await?;
    let mut earlier = Vec::new();
    if let Some(newest) = &newest {
        let ask = pb::ListRevisionsRequest { limit: EARLIER, before: newest.revision };
        let request = desk.request(&visit, "CatalogService/ListRevisions", ask)?;
        for revision in desk.admin.list_revisions(request).await?.into_inner().revisions {
            earlier.extend(find(&desk, &visit, revision.number).await?);
        }
    }
    let view = |html: &mut Html| match &newest {
        None => html.leaf("p", &[], "No revision was applied yet."),
        Some(rollout) => {
            summary(html, rollout);
            stages(html, rollout);
            before(html, &earlier);
        }
    };
    let acts = |html: &mut Html| {
        if let Some(rollout) = newest.as_ref().filter(|rollout| is_under_way(rollout)) {
            orders(html, &visit, rollout);
        }
    };
    Ok(frame::page(&visit, "Rollouts", Updates::ByItself, view, acts))
}

/// The rollout of a revision (0: the newest); none where an earlier version of the program applied it, and before the first.
async fn find(desk: &Desk, visit: &Visit, revision: u64) -> Result<Option<pb::Rollout>, Fault> {
    let request = desk.request(visit, "RolloutService/GetRollout", pb::GetRolloutRequest { revision })?;
    match desk.admin.get_rollout(request).await {
        Ok(answer) => Ok(answer.into_inner().rollout),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}

/// An operator pauses it: no further stage is opened until it is resumed.
pub async fn pause(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let ask = pb::PauseRolloutRequest { reason: reason(&fields) };
    let request = desk.request(&visit, "RolloutService/PauseRollout", ask)?;
    desk.admin.pause_rollout(request).await?;
    Ok(see(HERE))
}

/// An operator lets it go on.
pub async fn resume(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
) -> Result<Response, Fault> {
    let request = desk.request(&visit, "RolloutService/ResumeRollout", pb::ResumeRolloutRequest {})?;
    desk.admin.resume_rollout(request).await?;
    Ok(see(HERE))
}

/// An operator goes back.
pub async fn abort(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let ask = pb::AbortRolloutRequest { reason: reason(&fields) };
    let request = desk.request(&visit, "RolloutService/AbortRollout", ask)?;
    desk.admin.abort_rollout(request).await?;
    Ok(see(HERE))
}

fn reason(fields: &Fields) -> String {
    fields.get("reason").map(|reason| reason.trim().to_owned()).unwrap_or_default()
}

fn is_under_way(rollout: &pb::Rollout) -> bool {
    matches!(rollout.state(), pb::RolloutState::Running | pb::RolloutState::Paused)
}

fn state(rollout: &pb::Rollout) -> (&'static str, &'static str) {
    match rollout.state() {
        pb::RolloutState::Running => ("running", "fair"),
        pb::RolloutState::Paused => ("paused", "bad"),
        pb::RolloutState::Done => ("done", "well"),
        pb::RolloutState::Undone => ("undone", "bad"),
        pb::RolloutState::Aborted => ("aborted", "bad"),
        pb::RolloutState::Superseded => ("superseded", "none"),
        pb::RolloutState::Unspecified => ("unknown", "none"),
    }
}

fn summary(html: &mut Html, rollout: &pb::Rollout) {
    let strategy = match rollout.strategy() {
        pb::RolloutStrategy::Immediate => "all nodes at once".to_owned(),
        _ => format!("{}, watched for {} s each", rollout.stages.join(", "), rollout.bake_ms / 1000),
    };
    let replaced = |by: u64| if by == 0 { String::new() } else { format!("by revision {by}") };
    let base = if rollout.base == 0 { "none".to_owned() } else { format!("revision {}", rollout.base) };
    frame::facts(
        html,
        [
            ("Revision", rollout.revision.to_string()),
            ("State", state(rollout).0.to_owned()),
            ("Since", moment(rollout.since_ms)),
            ("Why", rollout.reason.clone()),
            ("Waits for", rollout.waits_for.clone()),
            ("Stages", strategy),
            ("Open", format!("{} of {}", rollout.open, rollout.stages.len())),
            ("Goes back to", base),
            ("Replaced", replaced(rollout.replaced_by)),
            ("Begun", moment(rollout.begun_at_ms)),
        ],
    );
    html.node("p", &[], |html| {
        let place = format!("/admin/catalog/{}", rollout.revision);
        html.leaf("a", &[("href", &place)], "The document");
        if rollout.base != 0 && rollout.base != rollout.revision {
            html.text(" · ");
            let place = format!("/admin/catalog/diff?from={}&to={}", rollout.base, rollout.revision);
            html.leaf("a", &[("href", &place)], &format!("What it changes since revision {}", rollout.base));
        }
    });
}

fn stages(html: &mut Html, rollout: &pb::Rollout) {
    if rollout.members.is_empty() && rollout.left_out.is_empty() {
        return html.leaf("p", &[], "No node was chosen for a stage: every node gets it.");
    }
    frame::table(
        html,
        "members-box",
        "Nodes of the open stages",
        &["Node", "Stage", "Acknowledged"],
        |html| {
            for member in &rollout.members {
                let (said, class) = match (member.acknowledged_at_ms, member.excused) {
                    (0, true) => ("lost: it goes on without it".to_owned(), "none"),
                    (0, false) => ("not yet".to_owned(), "fair"),
                    (at_ms, _) => (moment(at_ms), "well"),
                };
                html.node("tr", &[], |html| {
                    html.leaf("th", &[("scope", "row")], &member.node_id);
                    html.leaf("td", &[], &member.stage.to_string());
                    html.leaf("td", &[("class", class)], &said);
                });
            }
            for node in &rollout.left_out {
                html.node("tr", &[], |html| {
                    html.leaf("th", &[("scope", "row")], &node.node_id);
                    html.leaf("td", &[("class", "none")], "none");
                    html.leaf("td", &[("class", "none")], &format!("pinned to revision {}", node.revision));
                });
            }
        },
    );
}

fn before(html: &mut Html, earlier: &[pb::Rollout]) {
    if earlier.is_empty() {
        return;
    }
    let head = ["Revision", "State", "Since", "Why"];
    frame::table(html, "earlier-box", "The rollouts before", &head, |html| {
        for rollout in earlier {
            let (name, class) = state(rollout);
            html.node("tr", &[], |html| {
                html.node("th", &[("scope", "row")], |html| {
                    let place = format!("/admin/catalog/{}", rollout.revision);
                    html.leaf("a", &[("href", &place)], &rollout.revision.to_string());
                });
                html.leaf("td", &[("class", class)], name);
                html.leaf("td", &[], &moment(rollout.since_ms));
                html.leaf(
                    "td",
                    &[("class", "long")],
                    if rollout.reason.is_empty() { "–" } else { &rollout.reason },
                );
            });
        }
    });
}

/// What can be done about it; to who may not do it, nothing is offered.
fn orders(html: &mut Html, visit: &Visit, rollout: &pb::Rollout) {
    if visit.caller().role < Role::Operator {
        return html.leaf(
            "p",
            &[("class", "quiet")],
            "To pause, resume or abort it needs the role operator.",
        );
    }
    frame::section(html, "orders", "Orders", |html| {
        if rollout.state() == pb::RolloutState::Paused {
            frame::form(html, visit, "/admin/rollouts/resume", "ask", |html| {
                html.leaf("button", &[("type", "submit")], "Resume");
            });
        } else {
            order(html, visit, "pause", "Why it is paused", "Pause");
        }
        order(html, visit, "abort", "Why it is aborted", "Abort");
        let said = format!(
            "An abort makes the document of revision {} a new revision, for all nodes at once.",
            rollout.base
        );
        html.leaf("p", &[("class", "quiet")], &said);
    });
}

fn order(html: &mut Html, visit: &Visit, name: &'static str, label: &str, button: &str) {
    let action = format!("{HERE}/{name}");
    frame::form(html, visit, &action, "ask", |html| {
        html.node("p", &[], |html| {
            html.leaf("label", &[("for", name)], label);
            html.void("input", &[("id", name), ("name", "reason"), ("maxlength", "1000")]);
        });
        html.leaf("button", &[("type", "submit")], button);
    });
}
