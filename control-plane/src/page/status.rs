//! The status page: both rates of each model and channel side by side over three spans, what failed,
//! which breakers are open, and what each node runs. Written on the server, without any script.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html as Page, IntoResponse, Response};
use serde::Deserialize;

use super::api::said;
use super::html::Html;
use super::rates;
use crate::error::Error;
use crate::nodes::{self, Finding, NodeView};
use crate::observed::{Attempts, ChannelStatus, ModelStatus, Requests, Status, look};
use crate::plane::Plane;

/// The query string; a browser may bring anything else along.
#[derive(Debug, Default, Deserialize)]
pub struct Ask {
    /// Seconds after which the browser loads the page anew.
    refresh: Option<String>,
}

/// What the page shows.
#[derive(Debug)]
pub struct View {
    /// What was observed over each of the spans.
    pub spans: [Status; 3],
    /// The fleet.
    pub nodes: Vec<NodeRow>,
}

/// A node and why it does not run what it should.
#[derive(Debug)]
pub struct NodeRow {
    /// The node.
    pub node: NodeView,
    /// Why it refused.
    pub violations: Vec<Finding>,
}

/// Answers with the page.
pub async fn show(State(plane): State<Arc<Plane>>, ask: Result<Query<Ask>, QueryRejection>) -> Response {
    let refresh = ask
        .ok()
        .and_then(|Query(ask)| ask.refresh?.parse::<u16>().ok())
        .map(|seconds| seconds.clamp(5, 3600));
    match view(&plane).await {
        Ok(view) => Page(render(&view, refresh)).into_response(),
        Err(error) => {
            let (status, _, message) = said(&error);
            (status, Page(render_fault(status, &message))).into_response()
        }
    }
}

async fn view(plane: &Plane) -> Result<View, Error> {
    let span = |index: usize| look::status(plane, rates::SPANS[index].1, None);
    let spans = [span(0).await?, span(1).await?, span(2).await?];
    let wanted = plane.wanted()?;
    let rows = plane.nodes.list(Some(&wanted)).into_iter();
    let nodes = rows.map(|node| NodeRow { violations: node.violations(), node }).collect();
    Ok(View { spans, nodes })
}

/// The page as HTML; with `refresh` it loads itself anew after so many seconds.
pub fn render(view: &View, refresh: Option<u16>) -> String {
    Html::document(
        |html| head(html, refresh),
        |html| {
            html.node("header", &[], |html| summary(html, view, refresh));
            html.node("main", &[], |html| {
                open_breakers(html, view);
                models(html, view);
                channels(html, view);
                nodes_table(html, view);
            });
            html.node("footer", &[], |html| footer(html, view));
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
}

fn summary(html: &mut Html, view: &View, refresh: Option<u16>) {
    let day = day(view);
    html.leaf("h1", &[], "Sluice");
    html.node("dl", &[("class", "summary")], |html| {
        let revision = if day.revision == 0 { "none yet".to_owned() } else { day.revision.to_string() };
        let age = day.data_age().map_or("no data".to_owned(), |age| format!("{} old", span(age)));
        let nodes = format!("{} of {} connected", day.nodes_connected, day.nodes_known);
        let rollout = day.rollout.clone().map(|rollout| ("Rollout", rollout));
        let told = [("Revision", revision), ("Nodes", nodes), ("Newest data", age)];
        for (name, value) in told.into_iter().chain(rollout) {
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
        None => html.node("p", &[("class", "quiet")], |html| {
            html.leaf("a", &[("href", "/?refresh=15")], "Load this page anew every 15 s");
        }),
    }
}

fn open_breakers(html: &mut Html, view: &View) {
    section(html, "breakers", "Open breakers", |html| {
        let open: Vec<_> = day(view).channels.iter().filter(|channel| !channel.open_on.is_empty()).collect();
        if open.is_empty() {
            return html.leaf("p", &[], "No breaker is open.");
        }
        html.node("ul", &[], |html| {
            for channel in open {
                html.node("li", &[], |html| {
                    html.leaf("strong", &[("class", "bad")], &channel.channel);
                    html.text(&format!(" is open on {}", channel.open_on.join(", ")));
                });
            }
        });
    });
}

fn models(html: &mut Html, view: &View) {
    section(html, "models", "Models", |html| {
        html.leaf(
            "p",
            &[("class", "quiet")],
            "What callers saw (requests), beside what the channels did for it (attempts).",
        );
        let day = day(view);
        if day.models.iter().all(|model| model.model.is_empty()) {
            html.leaf("p", &[], "The catalog has no models yet.");
        }
        for model in day.models.iter().filter(|model| !model.model.is_empty()) {
            rates::table(html, &model.model, |html| {
                rates::row(html, "requests", "callers saw", "row-total", |span| {
                    rates::request_cell(find_model(view, span, &model.model))
                });
                for channel in &model.channels {
                    rates::row(html, &channel.channel, "attempts", "", |span| {
                        let model = find_model(view, span, &model.model);
                        rates::attempt_cell(model.and_then(|model| find(&model.channels, &channel.channel)))
                    });
                }
            });
            if let Some(apart) = apart(model.requests) {
                html.leaf("p", &[("class", "quiet")], &apart);
            }
        }
        let unknown = day.models.iter().filter(|model| model.model.is_empty());
        let unknown: u64 = unknown.map(|model| model.requests.refused).sum();
        if unknown > 0 {
            let text = format!("In the last 24 h {unknown} were refused before their model was known.");
            html.leaf("p", &[("class", "quiet")], &text);
        }
    });
}

fn channels(html: &mut Html, view: &View) {
    section(html, "channels", "Channels", |html| {
        let day = day(view);
        if day.channels.is_empty() {
            return html.leaf("p", &[], "The catalog has no channels in a chain yet.");
        }
        rates::table(html, "Attempts on each channel, of all models", |html| {
            for channel in &day.channels {
                let state = if channel.open_on.is_empty() { "breaker closed" } else { "breaker open" };
                rates::row(html, &channel.channel, state, "", |span| {
                    rates::attempt_cell(find(&view.spans[span].channels, &channel.channel))
                });
            }
        });
        html.leaf("h3", &[], "What failed in the last 24 h");
        html.node("dl", &[("class", "classes")], |html| {
            for channel in &day.channels {
                html.node("div", &[], |html| {
                    html.leaf("dt", &[], &channel.channel);
                    html.leaf("dd", &[], &classes(&channel.attempts));
                });
            }
        });
    });
}

fn nodes_table(html: &mut Html, view: &View) {
    section(html, "nodes", "Nodes", |html| {
        if view.nodes.is_empty() {
            return html.leaf("p", &[], "No node was ever connected.");
        }
        rates::scrolling(html, "Nodes", |html| {
            html.node("table", &[], |html| {
                html.leaf("caption", &[], "What each node runs");
                html.node("thead", &[], |html| {
                    html.node("tr", &[], |html| {
                        for name in ["Node", "State", "Revision", "Open breakers", "In flight", "Last seen"] {
                            html.leaf("th", &[("scope", "col")], name);
                        }
                        if has_several_control_planes(view) {
                            html.leaf("th", &[("scope", "col")], "Control plane");
                        }
                    });
                });
                html.node("tbody", &[], |html| {
                    let is_told = has_several_control_planes(view);
                    view.nodes.iter().for_each(|row| node(html, row, day(view).at_ms, is_told));
                });
            });
        });
        let refusals = view
            .nodes
            .iter()
            .flat_map(|row| row.violations.iter().cloned().map(move |f| (row, "refuses", f)));
        let warnings =
            view.nodes.iter().flat_map(|row| row.node.warnings().into_iter().map(move |f| (row, "warns", f)));
        let said: Vec<_> = refusals.chain(warnings).collect();
        if !said.is_empty() {
            html.node("ul", &[], |html| {
                for (row, verb, Finding { path, message }) in said {
                    html.leaf("li", &[], &format!("{} {verb}: {path}: {message}", row.node.id));
                }
            });
        }
    });
}

/// Of one control plane nobody asks.
fn has_several_control_planes(view: &View) -> bool {
    let mut names = view.nodes.iter().map(|row| &row.node.control_plane).filter(|name| !name.is_empty());
    names.next().is_some_and(|first| names.any(|name| name != first))
}

fn node(html: &mut Html, row: &NodeRow, now_ms: u64, is_control_plane_told: bool) {
    let node = &row.node;
    let (state, class) = state(node.state);
    let revision = match (node.applied_revision, node.target_revision) {
        (applied, target) if applied == target => applied.to_string(),
        (0, target) => format!("none, should run {target}"),
        (applied, target) => format!("{applied}, should run {target}"),
    };
    let open = if node.facts.open_channels.is_empty() {
        "none".to_owned()
    } else {
        node.facts.open_channels.join(", ")
    };
    let seen = span(Duration::from_millis(now_ms.saturating_sub(node.last_seen_at_ms)));
    html.node("tr", &[], |html| {
        html.leaf("th", &[("scope", "row")], &node.id);
        html.leaf("td", &[("class", class)], state);
        for text in [revision, open, node.facts.in_flight.to_string(), format!("{seen} ago")] {
            html.leaf("td", &[], &text);
        }
        if is_control_plane_told {
            html.leaf("td", &[], if node.control_plane.is_empty() { "none" } else { &node.control_plane });
        }
    });
}

fn footer(html: &mut Html, view: &View) {
    let at = i64::try_from(day(view).at_ms / 1000).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_second(at).map_or_else(|_| "now".to_owned(), |at| at.to_string());
    html.node("p", &[("class", "quiet")], |html| {
        html.text(&format!("As of {at}. The same as "));
        html.leaf("a", &[("href", "/api/v1/status")], "JSON");
        html.text(". Success of attempts: ok / (ok + failed); ");
        html.text("of requests: served / (served + exhausted + cut).");
    });
}

fn section(html: &mut Html, id: &'static str, title: &str, inside: impl FnOnce(&mut Html)) {
    html.node("section", &[("aria-labelledby", id)], |html| {
        html.leaf("h2", &[("id", id)], title);
        inside(html);
    });
}

/// What is in no rate, in words.
fn apart(requests: Requests) -> Option<String> {
    let Requests { bad_request, canceled, refused, exhausted, cut, .. } = requests;
    let counts = [
        (exhausted, "exhausted"),
        (cut, "cut"),
        (bad_request, "bad requests"),
        (canceled, "canceled by callers"),
        (refused, "refused by us"),
    ];
    let said: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!said.is_empty()).then(|| format!("In the last 24 h: {}.", said.join(", ")))
}

fn classes(attempts: &Attempts) -> String {
    let said: Vec<_> = attempts.classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
    match (said.is_empty(), attempts.ok) {
        (true, 0) => "no data".to_owned(),
        (true, _) => "nothing".to_owned(),
        (false, _) => said.join(", "),
    }
}

/// The widest span: every model and channel of the others is in it too.
fn day(view: &View) -> &Status {
    let [_, _, day] = &view.spans;
    day
}

fn find_model<'a>(view: &'a View, span: usize, name: &str) -> Option<&'a ModelStatus> {
    view.spans.get(span)?.models.iter().find(|model| model.model == name)
}

fn find<'a>(channels: &'a [ChannelStatus], name: &str) -> Option<&'a ChannelStatus> {
    channels.iter().find(|channel| channel.channel == name)
}

fn state(state: nodes::State) -> (&'static str, &'static str) {
    let class = match state {
        nodes::State::InSync => "well",
        nodes::State::Behind => "fair",
        nodes::State::Drained => "none",
        nodes::State::Rejected
        | nodes::State::Quarantined
        | nodes::State::Incompatible
        | nodes::State::Stale
        | nodes::State::Lost => "bad",
    };
    (state.as_str(), class)
}

/// A time span in its largest unit.
fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
