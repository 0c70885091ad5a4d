//! Where the time of a request went, drawn: a lane for each attempt, all on the same scale, each phase in a tone and a height of
//! its own. Pure.

use common::pb::fleet;
use common::record::words::{Phase, Phases, seconds};

use super::super::super::html::Html;

/// The whole time.
const WIDTH: u64 = 1000;

/// A lane for each attempt; nothing where nobody was asked.
pub fn draw(html: &mut Html, record: &fleet::Record) {
    if record.attempts.is_empty() {
        return;
    }
    html.node("ul", &[("class", "lanes")], |html| {
        for attempt in &record.attempts {
            let channel = record.chain.get(attempt.hop as usize).map_or("", |hop| hop.channel.as_str());
            html.node("li", &[], |html| {
                html.leaf("span", &[], &format!("{} {channel}", attempt.hop + 1));
                lane(html, channel, &Phases::of(attempt, record.ended_us), record.ended_us);
            });
        }
    });
    let key = "Low: waits for headers. Half: the answer is held. High: it is passed on. The whole width is the whole time, ";
    html.leaf("p", &[("class", "quiet")], &format!("{key}{}.", seconds(record.ended_us)));
}

fn lane(html: &mut Html, channel: &str, phases: &Phases, total_us: u64) {
    let said: Vec<_> =
        stretches(phases).into_iter().map(|(phase, from, to)| words(phase, from, to)).collect();
    let label = format!("{channel}: {}", said.join(", "));
    let view = format!("0 0 {WIDTH} 20");
    let attributes = [
        ("class", "lane"),
        ("role", "img"),
        ("aria-label", label.as_str()),
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
    ];
    html.node("svg", &attributes, |html| {
        for (phase, from_us, to_us) in stretches(phases) {
            let at = |us: u64| us.saturating_mul(WIDTH).checked_div(total_us).unwrap_or(0).min(WIDTH);
            // What took no time at all is seen nevertheless.
            let x = at(from_us).min(WIDTH - 2);
            let width = (at(to_us) - at(from_us).min(at(to_us))).max(2);
            let (class, tall) = match phase {
                Phase::Waits => ("waits", 6),
                Phase::Held => ("held", 12),
                Phase::PassedOn => ("passed", 20),
            };
            let (x, width) = (x.to_string(), width.to_string());
            let (y, height) = ((20 - tall).to_string(), tall.to_string());
            let attributes = [("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)];
            html.node("rect", &attributes, |html| html.leaf("title", &[], &words(phase, from_us, to_us)));
        }
    });
}

fn stretches(phases: &Phases) -> Vec<(Phase, u64, u64)> {
    let Phases { began_us, headers_us, decided_us, ended_us, last } = *phases;
    let waits = (Phase::Waits, began_us, headers_us);
    let held = (Phase::Held, headers_us, decided_us);
    let passed = (Phase::PassedOn, decided_us, ended_us);
    match last {
        Phase::Waits => vec![waits],
        Phase::Held => vec![waits, held],
        Phase::PassedOn => vec![waits, held, passed],
    }
}

fn words(phase: Phase, from_us: u64, to_us: u64) -> String {
    let what = match phase {
        Phase::Waits => "waits for headers",
        Phase::Held => "is held",
        Phase::PassedOn => "is passed on",
    };
    format!("{what} from {} to {}", seconds(from_us), seconds(to_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rects(attempt: fleet::RecordAttempt, ended_us: u64) -> Vec<(String, u64, u64)> {
        let hop = fleet::RecordHop { channel: "a".to_owned(), ..Default::default() };
        let record =
            fleet::Record { chain: vec![hop], attempts: vec![attempt], ended_us, ..Default::default() };
        let html = Html::part(|html| draw(html, &record));
        let of = |rect: &str, name: &str| {
            let (_, rest) = rect.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let rects = html.split("<rect").skip(1);
        let number = |rect: &str, name: &str| of(rect, name).parse().unwrap();
        rects.map(|rect| (of(rect, "class"), number(rect, "x"), number(rect, "width"))).collect()
    }

    #[test]
    fn each_phase_is_as_long_as_it_took() {
        let attempt = |began_us, headers_us, decisive_us, ended_us, gate: &str| fleet::RecordAttempt {
            began_us,
            headers_us,
            decisive_us,
            ended_us,
            gate: gate.to_owned(),
            ..Default::default()
        };
        for (attempt, ended_us, expected) in [
            (
                attempt(0, Some(25), Some(50), 100, "content"),
                100,
                &[("waits", 0, 250), ("held", 250, 250), ("passed", 500, 500)][..],
            ),
            (attempt(50, None, None, 100, ""), 100, &[("waits", 500, 500)]),
            (attempt(0, Some(40), Some(60), 60, "drop"), 100, &[("waits", 0, 400), ("held", 400, 200)]),
            (
                attempt(0, Some(0), Some(0), 0, "whole"),
                0,
                &[("waits", 0, 2), ("held", 0, 2), ("passed", 0, 2)],
            ),
            (attempt(90, None, None, u64::MAX, ""), 100, &[("waits", 900, 100)]),
            (attempt(200, Some(150), None, 100, ""), 100, &[("waits", 998, 2), ("held", 998, 2)]),
        ] {
            let drawn = rects(attempt.clone(), ended_us);
            let drawn: Vec<_> = drawn.iter().map(|(class, x, width)| (class.as_str(), *x, *width)).collect();
            assert_eq!(drawn, expected, "{attempt:?}");
        }
    }

    #[test]
    fn nothing_is_drawn_where_nobody_was_asked() {
        assert_eq!(Html::part(|html| draw(html, &fleet::Record::default())), "");
    }
}
