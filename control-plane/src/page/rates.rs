//! Rates as they are shown: for each model or channel a line with its name, a cell for each span with the rate and its
//! counts, or that there is no data, and its bars over time. Pure.

use super::bars::{Bar, strip};
use super::html::{Attributes, Html};
use super::view::SPANS;
use crate::observed::{ChannelStatus, ModelStatus, percent};

/// A share of failures below one in a thousand is well, below one in a hundred wants a look.
const WELL: f64 = 0.999;
const FAIR: f64 = 0.99;

/// How good a rate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Hardly anything failed.
    Well,
    /// It wants a look.
    Fair,
    /// It was bad.
    Bad,
}

impl Tone {
    /// Its class in the style sheet.
    pub fn as_str(self) -> &'static str {
        match self {
            Tone::Well => "well",
            Tone::Fair => "fair",
            Tone::Bad => "bad",
        }
    }
}

/// How good a rate is, if there is one.
pub fn tone(rate: Option<f64>) -> Option<Tone> {
    Some(match rate? {
        rate if rate >= WELL => Tone::Well,
        rate if rate >= FAIR => Tone::Fair,
        _ => Tone::Bad,
    })
}

/// A table with a column for each span.
pub fn table(html: &mut Html, caption: &str, rows: impl FnOnce(&mut Html)) {
    html.node("table", &[("class", "rates")], |html| {
        html.leaf("caption", &[], caption);
        html.node("thead", &[], |html| {
            html.node("tr", &[], |html| {
                SPANS.iter().for_each(|(name, _)| html.leaf("th", &[("scope", "col")], name));
            });
        });
        rows(html);
    });
}

/// What a row of a table is of.
pub struct Row<'a> {
    /// The model or channel.
    pub name: &'a str,
    /// What the rate is of.
    pub kind: &'a str,
    /// How long the first byte took.
    pub first_byte: Option<String>,
    /// Its class in the style sheet; may be empty.
    pub class: &'a str,
}

/// A name, its rates over each span, its bars over the last hours and days.
pub fn row(
    html: &mut Html,
    row: &Row<'_>,
    cell: impl Fn(usize) -> Cell,
    hours: impl IntoIterator<Item = Bar>,
    days: impl IntoIterator<Item = Bar>,
) {
    let Row { name, kind, first_byte, class } = row;
    let columns = SPANS.len().to_string();
    let attributes: Attributes<'_> = if class.is_empty() { &[] } else { &[("class", class)] };
    html.node("tbody", attributes, |html| {
        html.node("tr", &[("class", "of")], |html| {
            html.node("th", &[("scope", "rowgroup"), ("colspan", &columns)], |html| {
                html.leaf("strong", &[], name);
                html.text(" ");
                html.leaf("small", &[], kind);
                if let Some(first_byte) = first_byte {
                    html.text(" ");
                    html.leaf("small", &[("class", "times")], first_byte);
                }
            });
        });
        html.node("tr", &[], |html| {
            for span in 0..SPANS.len() {
                let Cell { rate, shown, counts } = cell(span);
                html.node("td", &[("class", tone(rate).map_or("none", Tone::as_str))], |html| {
                    html.leaf("span", &[("class", "rate")], shown.as_deref().unwrap_or("no data"));
                    if shown.is_some() {
                        html.text(" ");
                        html.leaf("small", &[], &counts);
                    }
                });
            }
        });
        html.node("tr", &[("class", "strips")], |html| {
            html.node("td", &[("colspan", &columns)], |html| {
                html.node("div", &[], |html| {
                    html.node("div", &[], |html| {
                        strip(html, &format!("{name} by hour, last 24 h"), 3600, hours);
                        html.leaf("small", &[("aria-hidden", "true")], "24 h, by hour");
                    });
                    html.node("div", &[], |html| {
                        strip(html, &format!("{name} by day, last 90 d"), 86_400, days);
                        html.leaf("small", &[("aria-hidden", "true")], "90 d, by day");
                    });
                });
            });
        });
    });
}

/// A rate and the counts behind it.
pub struct Cell {
    rate: Option<f64>,
    shown: Option<String>,
    counts: String,
}

/// What callers saw.
pub fn request_cell(model: Option<&ModelStatus>) -> Cell {
    let requests = model.map(|model| model.requests).unwrap_or_default();
    let counts = format!("{} served, {} failed", requests.served, requests.failed());
    let shown = percent(requests.served, requests.failed());
    Cell { rate: requests.success_rate(), shown, counts }
}

/// What a channel did.
pub fn attempt_cell(channel: Option<&ChannelStatus>) -> Cell {
    let (ok, failed) = channel.map_or((0, 0), |channel| (channel.attempts.ok, channel.attempts.failed));
    let rate = channel.and_then(|channel| channel.attempts.success_rate());
    Cell { rate, shown: percent(ok, failed), counts: format!("{ok} ok, {failed} failed") }
}
