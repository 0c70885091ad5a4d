//! `/admin/requests`: records of requests, searched as `sluice requests list` does, with their failures by channel and class.
//! One of them is `requests/one.rs`'s matter.

mod ask;
pub mod one;
mod timeline;

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use common::pb::admin as pb;
use common::record::words::seconds;
use pb::request_service_server::RequestService as _;

use super::super::html::Html;
use super::fault::Fault;
use super::frame::{self, Updates};
use super::{Desk, Visit, moment};
use ask::Ask;

/// So many requests stand on one page.
const LISTED: u32 = 50;

/// The search and what it finds.
pub async fn list(
    State(desk): State<Arc<Desk>>,
    Extension(visit): Extension<Visit>,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(ask) = ask.map_err(|fault| Fault::invalid(fault.body_text()))?;
    if let Some(id) = ask.id() {
        return Ok(super::see(&place(id)));
    }
    let filter = ask.filter(desk.admin.plane.clock.now_ms()).map_err(Fault::invalid)?;
    let wanted =
        pb::ListRequestsRequest { filter: Some(filter.clone()), limit: LISTED, before: ask.before.clone() };
    let request = desk.request(&visit, "RequestService/ListRequests", wanted)?;
    let requests = desk.admin.list_requests(request).await?.into_inner().requests;
    let wanted = pb::CountFailuresRequest { filter: Some(filter) };
    let request = desk.request(&visit, "RequestService/CountFailures", wanted)?;
    let failures = desk.admin.count_failures(request).await?.into_inner().failures;
    let view = |html: &mut Html| {
        ask.form(html);
        found(html, &requests);
        if let Some(last) = requests.last().filter(|_| requests.len() == LISTED as usize) {
            let place = ask.older_than(&last.request_id);
            html.node("p", &[], |html| html.leaf("a", &[("href", &place)], "Older requests"));
        }
        failed(html, &failures);
    };
    Ok(frame::page(&visit, "Requests", Updates::Never, view, |_| ()))
}

/// Where one request is shown.
fn place(id: &str) -> String {
    format!("/admin/requests/{}", frame::encoded(id))
}

fn found(html: &mut Html, requests: &[pb::RequestSummary]) {
    if requests.is_empty() {
        return html.leaf("p", &[], "There are no such requests.");
    }
    let head = ["Request", "Began", "Model", "Channel", "Attempts", "Outcome", "Status", "Took", "Node"];
    frame::table(html, "requests-box", "Requests, the newest first", &head, |html| {
        for request in requests {
            html.node("tr", &[], |html| {
                html.node("th", &[("scope", "row")], |html| {
                    html.leaf("a", &[("href", &place(&request.request_id))], &request.request_id);
                });
                let began = moment(request.began_at_ms);
                for text in [&began, known(&request.model), known(&request.channel)] {
                    html.leaf("td", &[], text);
                }
                html.leaf("td", &[], &request.attempts.to_string());
                let class = match request.outcome.as_str() {
                    "served" => "well",
                    "bad_request" | "canceled" => "none",
                    _ => "bad",
                };
                html.leaf("td", &[("class", class)], &request.outcome);
                html.leaf(
                    "td",
                    &[],
                    &if request.status == 0 { "–".to_owned() } else { request.status.to_string() },
                );
                html.leaf("td", &[("class", "time")], &seconds(request.duration_us));
                html.leaf("td", &[], &request.node);
            });
        }
    });
}

fn known(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn failed(html: &mut Html, failures: &[pb::FailureCount]) {
    if failures.is_empty() {
        return html.leaf("p", &[], "No attempt of such requests failed.");
    }
    let head = ["Channel", "Class", "Attempts", "Served all the same"];
    frame::table(html, "failures-box", "What failed on the way, most first", &head, |html| {
        for pb::FailureCount { channel, class, attempts, cured } in failures {
            html.node("tr", &[], |html| {
                html.leaf("th", &[("scope", "row")], known(channel));
                for text in [class.clone(), attempts.to_string(), cured.to_string()] {
                    html.leaf("td", &[], &text);
                }
            });
        }
    });
}
