//! Bars over time: one for each step, as tall as it is bad, so that colour is not the only sign, and nothing but a grey
//! line where nothing was observed. The whole is said in words too, each bar by its title. Pure.

use super::html::Html;
use super::rates::{Tone, tone};
use super::words;
use crate::observed::percent;
use crate::observed::series::{AttemptPoint, RequestPoint};

const HEIGHT: usize = 20;

/// A step: how many were good and how many were not.
pub struct Bar {
    at_ms: u64,
    good: u64,
    bad: u64,
    /// What they are called.
    words: [&'static str; 2],
}

impl From<&RequestPoint> for Bar {
    fn from(point: &RequestPoint) -> Self {
        let (good, bad) = (point.requests.served, point.requests.failed());
        Bar { at_ms: point.at_ms, good, bad, words: ["served", "failed"] }
    }
}

impl From<&AttemptPoint> for Bar {
    fn from(point: &AttemptPoint) -> Self {
        let (good, bad) = (point.attempts.ok, point.attempts.failed);
        Bar { at_ms: point.at_ms, good, bad, words: ["ok", "failed"] }
    }
}

impl Bar {
    fn rate(&self) -> Option<f64> {
        let all = self.good + self.bad;
        (all > 0).then(|| self.good as f64 / all as f64)
    }

    fn said(&self, step_seconds: u64) -> String {
        let Bar { at_ms, good, bad, words: [ok, failed] } = self;
        let when = words::step(*at_ms, step_seconds);
        match percent(*good, *bad) {
            Some(rate) => format!("{when}: {rate}, {good} {ok}, {bad} {failed}"),
            None => format!("{when}: no data"),
        }
    }
}

/// The bars of a thing; `name` says what they are of, over which time.
pub fn strip(html: &mut Html, name: &str, step_seconds: u64, bars: impl IntoIterator<Item = Bar>) {
    let bars: Vec<Bar> = bars.into_iter().collect();
    let (width, height) = (bars.len().to_string(), HEIGHT.to_string());
    let label = format!("{name}: {}", summary(&bars, step_seconds));
    let view = format!("0 0 {width} {height}");
    let attributes = [
        ("class", "bars"),
        ("role", "img"),
        ("aria-label", label.as_str()),
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
    ];
    html.node("svg", &attributes, |html| {
        let line = [("class", "none"), ("x", "0"), ("y", "18"), ("width", width.as_str()), ("height", "2")];
        html.node("rect", &line, |_| {});
        for (place, bar) in bars.iter().enumerate() {
            let Some(tone) = tone(bar.rate()) else { continue };
            let tall = match tone {
                Tone::Well => 12,
                Tone::Fair => 16,
                Tone::Bad => HEIGHT,
            };
            let (x, y, tall) = (format!("{place}.1"), (HEIGHT - tall).to_string(), tall.to_string());
            let attributes =
                [("class", tone.as_str()), ("x", x.as_str()), ("y", &y), ("width", "0.8"), ("height", &tall)];
            html.node("rect", &attributes, |html| {
                html.leaf("title", &[], &bar.said(step_seconds));
            });
        }
    });
}

/// What the bars show, for those who do not see them.
fn summary(bars: &[Bar], step_seconds: u64) -> String {
    let seen: Vec<&Bar> = bars.iter().filter(|bar| bar.rate().is_some()).collect();
    let failing: Vec<&&Bar> = seen.iter().filter(|bar| bar.bad > 0).collect();
    let unit = if step_seconds >= 86_400 { "days" } else { "hours" };
    let (all, without) = (bars.len(), bars.len() - seen.len());
    let rate = |bar: &Bar| bar.rate().unwrap_or(1.0);
    let worst = failing.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    match worst {
        _ if seen.is_empty() => "no data".to_owned(),
        None => format!("nothing failed; {without} of {all} {unit} without data"),
        Some(worst) => {
            let (failing, worst) = (failing.len(), worst.said(step_seconds));
            format!("failures in {failing} of {all} {unit}, {without} without data; worst {worst}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn bars(counts: &[(u64, u64)]) -> Vec<Bar> {
        let bar = |(hour, (good, bad)): (u64, &(u64, u64))| Bar {
            at_ms: hour * HOUR,
            good: *good,
            bad: *bad,
            words: ["served", "failed"],
        };
        (0..).zip(counts).map(bar).collect()
    }

    #[test]
    fn what_the_bars_show_is_said() {
        for (counts, said) in [
            (&[(0, 0), (0, 0)][..], "no data"),
            (&[(0, 0), (7, 0)], "nothing failed; 1 of 2 hours without data"),
            (
                &[(1, 1), (3, 1), (0, 0)],
                "failures in 2 of 3 hours, 1 without data; worst 1970-01-01 00:00 UTC: 50.00 %, 1 served, 1 failed",
            ),
        ] {
            assert_eq!(summary(&bars(counts), 3600), said);
        }
    }

    #[test]
    fn a_bar_is_as_tall_as_it_is_bad_and_there_is_none_where_nothing_was_seen() {
        let html = Html::part(|html| strip(html, "m", 3600, bars(&[(0, 0), (1, 0), (995, 5), (1, 1)])));
        let tall = |class: &str| {
            html.split("<rect ").find(|rect| rect.starts_with(&format!("class=\"{class}\""))).unwrap()
        };
        assert!(tall("well").contains("x=\"1.1\" y=\"8\" width=\"0.8\" height=\"12\""), "{html}");
        assert!(tall("fair").contains("height=\"16\"") && tall("bad").contains("height=\"20\""), "{html}");
        assert_eq!(html.matches("<title>").count(), 3, "{html}");
    }
}
