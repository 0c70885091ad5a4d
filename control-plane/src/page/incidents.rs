//! Incidents on the page, as JSON and as an Atom feed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::Serialize;

use super::api::refused;
use super::html::Html;
use super::sees::Sees;
use super::view::{View, Views};
use super::words;
use crate::observed::incidents::Incident;
use crate::observed::percent;

/// So many stand on the page.
const SHOWN_MAX: usize = 20;
/// What is kept by the hour may still be put together with its neighbours: a feed tells a thing once.
const FEED_PRECISION_SECONDS_MAX: u64 = 5 * 60;

#[derive(Serialize)]
struct Told {
    at_ms: u64,
    incidents: Vec<Incident>,
}

/// Answers with the incidents as JSON.
pub async fn json(State(views): State<Arc<Views>>, Extension(sees): Extension<Sees>) -> Response {
    match views.look().await {
        Ok(view) => {
            let incidents = view.past.incidents.iter().map(|incident| sees.incident(incident)).collect();
            Json(Told { at_ms: view.day().at_ms, incidents }).into_response()
        }
        Err(error) => refused(&error),
    }
}

/// Answers with the incidents as a feed.
pub async fn feed(State(views): State<Arc<Views>>, Extension(sees): Extension<Sees>) -> Response {
    match views.look().await {
        Ok(view) => {
            ([(CONTENT_TYPE, "application/atom+xml; charset=utf-8")], atom(&view, sees)).into_response()
        }
        Err(error) => refused(&error),
    }
}

/// The section of the page.
pub fn section(html: &mut Html, view: &View, sees: Sees) {
    if view.past.incidents.is_empty() {
        return html.leaf("p", &[], "None was observed in the last 7 days.");
    }
    html.node("ul", &[("class", "incidents")], |html| {
        for incident in view.past.incidents.iter().take(SHOWN_MAX) {
            html.node("li", &[("class", if incident.ended_ms.is_none() { "now" } else { "over" })], |html| {
                html.leaf("strong", &[], &incident.model);
                html.text(" ");
                html.leaf("span", &[], &when(incident));
                html.leaf("p", &[], &seen(incident));
                if sees.has_channels() && !incident.causes.is_empty() {
                    html.leaf("p", &[("class", "quiet")], &causes(incident));
                }
            });
        }
    });
    if view.past.incidents.len() > SHOWN_MAX {
        let more = format!("{} more are in the JSON.", view.past.incidents.len() - SHOWN_MAX);
        html.leaf("p", &[("class", "quiet")], &more);
    }
}

fn when(incident: &Incident) -> String {
    let began = words::minute(incident.began_ms);
    match incident.ended_ms {
        None => format!("since {began}, goes on"),
        Some(ended_ms) => {
            let length = words::span(Duration::from_millis(ended_ms.saturating_sub(incident.began_ms)));
            format!("from {began} to {}, {length}", words::minute(ended_ms))
        }
    }
}

fn seen(incident: &Incident) -> String {
    let requests = &incident.requests;
    let rate = percent(requests.served, requests.failed()).unwrap_or_else(|| "no data".to_owned());
    let how = [(requests.exhausted, "exhausted"), (requests.cut, "cut")];
    let how: Vec<_> = how.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let (served, failed) = (requests.served, requests.failed());
    format!("Callers saw {rate}: {served} served, {failed} failed ({}).", how.join(", "))
}

fn causes(incident: &Incident) -> String {
    let said =
        incident.causes.iter().map(|cause| format!("{} {} {}", cause.channel, cause.class, cause.count));
    format!("What failed most: {}.", said.collect::<Vec<_>>().join(", "))
}

fn atom(view: &View, sees: Sees) -> String {
    let told = || view.past.incidents.iter().filter(|i| i.precision_seconds <= FEED_PRECISION_SECONDS_MAX);
    let updated = told().map(|incident| updated_ms(incident, view)).max();
    Html::xml("feed", &[("xmlns", "http://www.w3.org/2005/Atom")], |xml| {
        xml.leaf("id", &[], "urn:sluice:incidents");
        xml.leaf("title", &[], "Sluice: incidents");
        xml.leaf("updated", &[], &words::stamp(updated.unwrap_or(view.day().at_ms)));
        xml.node("author", &[], |xml| xml.leaf("name", &[], "Sluice"));
        xml.leaf("link", &[("rel", "self"), ("href", "/incidents.atom")], "");
        xml.leaf("link", &[("rel", "alternate"), ("href", "/#incidents")], "");
        for incident in told() {
            xml.node("entry", &[], |xml| {
                let model = words::hex(&incident.model);
                xml.leaf("id", &[], &format!("urn:sluice:incident:{}:{model}", incident.began_ms));
                xml.leaf("title", &[], &format!("{}: {}", incident.model, when(incident)));
                xml.leaf("published", &[], &words::stamp(incident.began_ms));
                xml.leaf("updated", &[], &words::stamp(updated_ms(incident, view)));
                xml.leaf("link", &[("rel", "alternate"), ("href", "/#incidents")], "");
                let mut text = seen(incident);
                if sees.has_channels() && !incident.causes.is_empty() {
                    text = format!("{text} {}", causes(incident));
                }
                xml.leaf("summary", &[], &text);
            });
        }
    })
}

/// What goes on is news whenever it is read.
fn updated_ms(incident: &Incident, view: &View) -> u64 {
    incident.ended_ms.unwrap_or(view.day().at_ms)
}
