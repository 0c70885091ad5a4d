//! The tables of rates: a row for each model or channel, a column for each span, and in each cell the
//! rate, its counts, or that there is no data. Pure.

use std::time::Duration;

use super::html::{Attributes, Html};
use crate::observed::{ChannelStatus, ModelStatus, percent};

/// How far back the columns go.
pub const SPANS: [(&str, Duration); 3] = [
    ("5 min", Duration::from_secs(5 * 60)),
    ("1 h", Duration::from_secs(60 * 60)),
    ("24 h", Duration::from_secs(24 * 60 * 60)),
];
/// A share of failures below one in a thousand is well, below one in a hundred wants a look.
const WELL: f64 = 0.999;
const FAIR: f64 = 0.99;

/// A table with a column for each span.
pub fn table(html: &mut Html, caption: &str, rows: impl FnOnce(&mut Html)) {
    scrolling(html, caption, |html| {
        html.node("table", &[("class", "rates")], |html| {
            html.leaf("caption", &[], caption);
            html.node("thead", &[], |html| {
                html.node("tr", &[], |html| {
                    html.leaf("th", &[("scope", "col")], "Success in the last");
                    SPANS.iter().for_each(|(name, _)| html.leaf("th", &[("scope", "col")], name));
                });
            });
            html.node("tbody", &[], rows);
        });
    });
}

/// A row; `class` may be empty, `cell` makes the cell of each span.
pub fn row(html: &mut Html, name: &str, kind: &str, class: &str, cell: impl Fn(usize) -> Cell) {
    let attributes: Attributes<'_> = if class.is_empty() { &[] } else { &[("class", class)] };
    html.node("tr", attributes, |html| {
        html.node("th", &[("scope", "row")], |html| {
            html.text(name);
            html.leaf("small", &[], kind);
        });
        for span in 0..SPANS.len() {
            let Cell { rate, shown, counts } = cell(span);
            html.node("td", &[("class", tone(rate))], |html| {
                html.leaf("span", &[("class", "rate")], shown.as_deref().unwrap_or("no data"));
                if shown.is_some() {
                    html.leaf("small", &[], &counts);
                }
            });
        }
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

/// Something that may be wider than a phone; the keyboard reaches it too. A group, not a landmark: with a landmark for
/// each table nobody finds the sections among them.
pub fn scrolling(html: &mut Html, label: &str, inside: impl FnOnce(&mut Html)) {
    html.node(
        "div",
        &[("class", "scroll"), ("role", "group"), ("aria-label", label), ("tabindex", "0")],
        inside,
    );
}

fn tone(rate: Option<f64>) -> &'static str {
    match rate {
        None => "none",
        Some(rate) if rate >= WELL => "well",
        Some(rate) if rate >= FAIR => "fair",
        Some(_) => "bad",
    }
}
