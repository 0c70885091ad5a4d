//! `/admin/requests/ID`: one request along its time, why it went where it went, and whether it would again.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use common::pb::{admin as pb, fleet};
use common::record::words::{self, seconds};
use pb::request_service_server::RequestService as _;
use serde::Deserialize;

use super::super::super::html::Html;
use super::super::fault::Fault;
use super::super::frame::{self, Updates};
use super::super::{Desk, Visit};
use super::{known, place, timeline};
use crate::page::words::moment;

/// The query string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ask {
    /// Over the chain of which revision it is decided again; empty for the recorded one.
    revision: String,
}

/// One request.
pub async fn show(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    Path(id): Path<String>,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(Ask { revision }) = ask.map_err(|fault| Fault::invalid(fault.body_text()))?;
    let revision = match revision.trim() {
        "" => 0,
        text => text.parse().map_err(|_| Fault::invalid(format!("revision: \"{text}\" is no number")))?,
    };
    let request = desk.request(&visit, "RequestService/GetRequest", pb::GetRequestRequest { id })?;
    let mut found = desk.admin.get_request(request).await?.into_inner();
    let record = found.record.take().unwrap_or_default();
    let wanted = pb::ReplayRequestRequest { id: record.request_id.clone(), revision };
    let request = desk.request(&visit, "RequestService/ReplayRequest", wanted)?;
    // A revision that is gone, or a record of a newer node: what was is shown all the same.
    let replay = desk.admin.replay_request(request).await;
    let replay = replay.map(tonic::Response::into_inner).map_err(|status| status.message().to_owned());
    let view = |html: &mut Html| {
        summary(html, &found, &record);
        frame::section(html, "way", "Where its time went", |html| {
            timeline::draw(html, &record);
            hops(html, &record);
        });
        frame::section(html, "replay", "Decided again", |html| {
            match &replay {
                Ok(replay) => replayed(html, replay),
                Err(why) => {
                    html.leaf("p", &[("role", "alert")], &format!("It cannot be decided again: {why}."))
                }
            }
            let action = place(&record.request_id);
            html.node("form", &[("action", &action), ("class", "ask")], |html| {
                html.node("p", &[], |html| {
                    html.leaf("label", &[("for", "revision")], "Over the chain of revision");
                    let value = if revision == 0 { String::new() } else { revision.to_string() };
                    let number = [("type", "number"), ("min", "1"), ("id", "revision"), ("name", "revision")];
                    html.void("input", &[&number[..], &[("value", &value)]].concat());
                });
                html.leaf("button", &[("type", "submit")], "Decide again");
            });
        });
    };
    Ok(frame::page(&visit, "Request", Updates::Never, view, |_| ()))
}

fn summary(html: &mut Html, found: &pb::GetRequestResponse, record: &fleet::Record) {
    let bytes = format!("{} of the request, {} of the answer", record.request_bytes, record.answer_bytes);
    let facts = [
        ("Request", record.request_id.clone()),
        ("The caller calls it", record.client_request_id.clone()),
        ("Node", found.node.clone()),
        ("Began", moment(record.began_at_ms)),
        ("Dialect", record.dialect.clone()),
        ("Bytes", bytes),
    ];
    frame::facts(html, facts);
    html.leaf("p", &[], &format!("It {}.", words::asked(record)));
    html.leaf("p", &[], &format!("{}.", words::answered(record)));
    if let Some(used) = words::used(found, record) {
        html.leaf("p", &[], &format!("It {used}."));
    }
}

fn hops(html: &mut Html, record: &fleet::Record) {
    if record.chain.is_empty() {
        return html.leaf("p", &[], "No channel was considered.");
    }
    let head =
        ["Hop", "Channel", "Upstream model", "Result", "Asked", "Headers", "First byte", "Decided", "Ended"];
    frame::table(html, "hops-box", "What became of each hop", &head, |html| {
        for (index, hop) in record.chain.iter().enumerate() {
            let attempt = record.attempts.iter().find(|attempt| attempt.hop as usize == index);
            let times = match attempt {
                Some(a) => [Some(a.began_us), a.headers_us, a.first_byte_us, a.decisive_us, Some(a.ended_us)],
                None => [None; 5],
            };
            html.node("tr", &[], |html| {
                html.leaf("td", &[], &(index + 1).to_string());
                html.leaf("th", &[("scope", "row")], &hop.channel);
                html.leaf("td", &[], known(&hop.upstream_model));
                let mut became = words::became(hop, attempt);
                if let Some(id) = attempt.map(|a| &a.upstream_request_id).filter(|id| !id.is_empty()) {
                    became += &format!("; the upstream calls it {id}");
                }
                html.leaf("td", &[], &became);
                for time in times {
                    html.leaf("td", &[("class", "time")], &time.map_or("–".to_owned(), seconds));
                }
            });
        }
    });
}

fn replayed(html: &mut Html, replay: &pb::ReplayRequestResponse) {
    let revision = replay.revision;
    if replay.is_same {
        let said = format!("The same is decided again, over the chain of revision {revision}.");
        html.leaf("p", &[("class", "well")], &said);
    } else {
        let said = format!("Something else is decided, over the chain of revision {revision}.");
        html.leaf("p", &[("class", "fair")], &said);
        course(html, "was-box", "As it was", replay.was.as_ref());
    }
    course(html, "again-box", "Decided again", replay.again.as_ref());
}

fn course(html: &mut Html, id: &str, caption: &str, course: Option<&pb::Course>) {
    let Some(course) = course else { return };
    if !course.steps.is_empty() {
        frame::table(html, id, caption, &["Hop", "Channel", "Upstream model", "Result"], |html| {
            for (step, number) in course.steps.iter().zip(1..) {
                html.node("tr", &[], |html| {
                    html.leaf("td", &[], &number.to_string());
                    html.leaf("th", &[("scope", "row")], &step.channel);
                    html.leaf("td", &[], known(&step.upstream_model));
                    html.leaf("td", &[], &words::fate(step));
                });
            }
        });
    }
    html.leaf("p", &[], &format!("{caption}: {}.", words::end(course)));
}
