//! The status page: both rates of each model and channel side by side over five spans and as bars, how long the first byte
//! took, what failed, which breakers are open, and what each node runs. Written on the server, whole without any script.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html as Page, IntoResponse, Response};
use serde::Deserialize;

use super::api::said;
use super::bars::Bar;
use super::html::Html;
use super::rates::{self, Row};
use super::sees::Sees;
use super::view::{View, Views};
use super::{incidents, nodes, out, words};
use crate::observed::series::{ChannelSeries, ModelSeries};

/// The query string; a browser may bring anything else along.
#[derive(Debug, Default, Deserialize)]
pub struct Ask {
    /// Seconds after which the browser loads the page anew.
    refresh: Option<String>,
}

/// Answers with the page.
pub async fn show(
    State(views): State<Arc<Views>>,
    Extension(sees): Extension<Sees>,
    headers: HeaderMap,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Response {
    let refresh = ask
        .ok()
        .and_then(|Query(ask)| ask.refresh?.parse::<u16>().ok())
        .map(|seconds| seconds.clamp(5, 3600));
    match views.look().await {
        Ok(view) => {
            // Who asks again for the same view gets nothing of it again.
            let tag = format!("\"{}-{sees:?}-{}\"", view.day().at_ms, refresh.unwrap_or(0));
            if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
                return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
            }
            ([(ETAG, tag)], Page(render(&view, sees, refresh))).into_response()
        }
        Err(error) => {
            let (status, _, message) = said(&error);
            (status, Page(render_fault(status, &message))).into_response()
        }
    }
}

/// The page as HTML; with `refresh` it loads itself anew after so many seconds.
fn render(view: &View, sees: Sees, refresh: Option<u16>) -> String {
    Html::document(
        |html| head(html, refresh),
        |html| {
            html.node("header", &[], |html| summary(html, view, sees, refresh));
            html.node("main", &[("id", "view")], |html| {
                if sees.is_operator() {
                    section(html, "out", "Out now", |html| out::section(html, view));
                }
                section(html, "incidents", "Incidents", |html| incidents::section(html, view, sees));
                section(html, "models", "Models", |html| models(html, view, sees));
                if sees.is_operator() {
                    section(html, "channels", "Channels", |html| channels(html, view));
                    section(html, "nodes", "Nodes", |html| nodes::table(html, view));
                }
            });
            html.node("footer", &[("id", "foot")], |html| footer(html, view, sees));
        },
    )
}

fn render_fault(status: StatusCode, message: &str) -> String {
    Html::document(
        |html| head(html, None),
        |html| {
            html.node("main", &[], |html| {
                html.leaf("h1", &[], "Sluice");
                html.leaf("p", &[("role", "alert")], &format!("No status: {message}."));
                html.leaf("p", &[("class", "quiet")], &format!("HTTP {}", status.as_u16()));
            });
        },
    )
}

fn head(html: &mut Html, refresh: Option<u16>) {
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    if let Some(seconds) = refresh {
        html.void("meta", &[("http-equiv", "refresh"), ("content", &seconds.to_string())]);
    }
    html.leaf("title", &[], "Sluice status");
    html.void("link", &[("rel", "stylesheet"), ("href", "/assets/sluice.css")]);
    html.void("link", &[("rel", "icon"), ("href", "/assets/sluice.svg")]);
    let feed = [
        ("rel", "alternate"),
        ("type", "application/atom+xml"),
        ("title", "Incidents"),
        ("href", "/incidents.atom"),
    ];
    html.void("link", &feed);
    if refresh.is_none() {
        html.leaf("script", &[("src", "/assets/live.js"), ("defer", "")], "");
    }
}

fn summary(html: &mut Html, view: &View, sees: Sees, refresh: Option<u16>) {
    let day = view.day();
    html.leaf("h1", &[], "Sluice");
    html.node("dl", &[("class", "summary"), ("id", "summary")], |html| {
        let revision = if day.revision == 0 { "none yet".to_owned() } else { day.revision.to_string() };
        let age = day.data_age().map_or("no data".to_owned(), |age| format!("{} old", words::span(age)));
        let nodes = format!("{} of {} connected", day.nodes_connected, day.nodes_known);
        let rollout = day.rollout.clone().map(|rollout| ("Rollout", rollout));
        let of_fleet = [("Revision", revision), ("Nodes", nodes)].into_iter();
        let told = of_fleet.filter(|_| sees.is_operator()).chain([("Newest data", age)]);
        for (name, value) in told.chain(rollout.filter(|_| sees.is_operator())) {
            html.node("div", &[], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[], &value);
            });
        }
    });
    match refresh {
        Some(seconds) => html.node("p", &[("class", "quiet")], |html| {
            html.text(&format!("This page loads itself anew every {seconds} s. "));
            html.leaf("a", &[("href", "/")], "Stop that");
        }),
        // The script says something else here.
        None => html.node("p", &[("class", "quiet"), ("id", "live"), ("role", "status")], |html| {
            html.leaf("a", &[("href", "/?refresh=15")], "Load this page anew every 15 s");
        }),
    }
}

fn models(html: &mut Html, view: &View, sees: Sees) {
    html.leaf(
        "p",
        &[("class", "quiet")],
        "What callers saw (requests), and what the channels did for it (attempts) where they are shown. Each bar is an hour of the last \
         24, or a day of the last 90. The taller, the worse: low where at most one in a thousand failed, higher up to one \
         in a hundred, full above that; a grey line is no data. Times to the first byte are of the last 24 h, each at most that long.",
    );
    if view.models().is_empty() {
        html.leaf("p", &[], "The catalog has no models yet.");
    }
    for model in view.models() {
        rates::table(html, model, |html| {
            let (hours, days) =
                (series(&view.past.hours.models, model), series(&view.past.days.models, model));
            let bars = |model: Option<&ModelSeries>| -> Vec<Bar> {
                model.map(|model| model.points.iter().map(Bar::from).collect()).unwrap_or_default()
            };
            let first_byte = words::first_byte(view.model(2, model).and_then(|seen| seen.first_byte));
            let row = Row { name: "requests", kind: "callers saw", first_byte, class: "row-total" };
            rates::row(
                html,
                &row,
                |span| rates::request_cell(view.model(span, model)),
                bars(hours),
                bars(days),
            );
            for channel in view.channels_of(model).into_iter().filter(|_| sees.has_channels()) {
                let first_byte = view.channel_of(2, model, channel).and_then(|seen| seen.first_byte);
                let first_byte = words::first_byte(first_byte);
                rates::row(
                    html,
                    &Row { name: channel, kind: "attempts", first_byte, class: "" },
                    |span| rates::attempt_cell(view.channel_of(span, model, channel)),
                    channel_bars(hours.map(|model| model.channels.as_slice()), channel),
                    channel_bars(days.map(|model| model.channels.as_slice()), channel),
                );
            }
        });
        if let Some(apart) = view.model(2, model).and_then(|day| words::apart(day.requests)) {
            html.leaf("p", &[("class", "quiet")], &apart);
        }
    }
    let unknown: u64 = view.model(2, "").map_or(0, |unknown| unknown.requests.refused);
    if unknown > 0 {
        let text = format!("In the last 24 h {unknown} were refused before their model was known.");
        html.leaf("p", &[("class", "quiet")], &text);
    }
}

fn channels(html: &mut Html, view: &View) {
    if view.channels().is_empty() {
        return html.leaf("p", &[], "The catalog has no channels in a chain yet.");
    }
    rates::table(html, "Attempts on each channel, of all models", |html| {
        for channel in view.channels() {
            let is_open = view.channel(2, channel).is_some_and(|now| !now.open_on.is_empty());
            let kind = if !is_open { "breaker closed" } else { "breaker open" };
            let first_byte = words::first_byte(view.channel(2, channel).and_then(|seen| seen.first_byte));
            rates::row(
                html,
                &Row { name: channel, kind, first_byte, class: "" },
                |span| rates::attempt_cell(view.channel(span, channel)),
                channel_bars(Some(&view.past.hours.channels), channel),
                channel_bars(Some(&view.past.days.channels), channel),
            );
        }
    });
    html.leaf("h3", &[], "What failed in the last 24 h");
    html.node("dl", &[("class", "classes")], |html| {
        for channel in &view.day().channels {
            html.node("div", &[], |html| {
                html.leaf("dt", &[], &channel.channel);
                html.leaf("dd", &[], &words::classes(&channel.attempts));
            });
        }
    });
}

fn series<'a>(models: &'a [ModelSeries], name: &str) -> Option<&'a ModelSeries> {
    models.iter().find(|model| model.model == name)
}

fn channel_bars(channels: Option<&[ChannelSeries]>, name: &str) -> Vec<Bar> {
    let found = channels.and_then(|channels| channels.iter().find(|channel| channel.channel == name));
    found.map(|channel| channel.points.iter().map(Bar::from).collect()).unwrap_or_default()
}

fn footer(html: &mut Html, view: &View, sees: Sees) {
    html.node("p", &[("class", "quiet")], |html| {
        html.text(&format!("As of {}. The same as JSON: ", words::moment(view.day().at_ms)));
        html.leaf("a", &[("href", "/api/v1/status")], "status");
        html.text(" and ");
        html.leaf("a", &[("href", "/api/v1/series")], "series");
        html.text(", ");
        html.leaf("a", &[("href", "/api/v1/incidents")], "incidents");
        html.text("; incidents also as an ");
        html.leaf("a", &[("href", "/incidents.atom")], "Atom feed");
        html.text(". Success of attempts: ok / (ok + failed); ");
        html.text("of requests: served / (served + exhausted + cut).");
        html.text(" ");
        if sees.is_operator() {
            html.leaf("a", &[("href", "/admin")], "Admin pages");
        } else {
            html.leaf("a", &[("href", "/operator")], "For operators");
        }
    });
}

fn section(html: &mut Html, id: &'static str, title: &str, inside: impl FnOnce(&mut Html)) {
    html.node("section", &[("aria-labelledby", id)], |html| {
        html.leaf("h2", &[("id", id)], title);
        inside(html);
    });
}
