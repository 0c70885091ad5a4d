//! Writes the document from what was observed: equal cells are told together, and nothing is said that was not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use common::class::FailureClass as F;
use common::code::Code;
use serde_json::Value;

use super::faults::{Ends, Fault, Phase, Quirk};
use super::forms::{FORMS, Form, THING, Way};
use super::oracle::{Effect, Next, TABLE};
use super::outcome::{Ending, Mark, Outcome};
use super::sets;
use super::{Cell, Place};

mod elsewhere;
mod readings;

const INTRODUCTION: &str = include_str!("introduction.md");

/// The document.
pub fn document(faults: &[Fault], cells: &[Cell]) -> String {
    let mut text = INTRODUCTION
        .replace("{cells}", &cells.len().to_string())
        .replace("{faults}", &faults.len().to_string())
        .replace("{forms}", &FORMS.len().to_string());
    classes(&mut text);
    for part in &PARTS {
        places(&mut text, part, faults, cells);
    }
    each(&mut text, faults, cells);
    readings::write(&mut text, faults, cells);
    coverage(&mut text, cells);
    elsewhere::write(&mut text);
    text
}

/// A part of the forms, and where faults were played in it.
struct Part {
    is_in: fn(Way) -> bool,
    introduction: &'static str,
    columns: &'static [(Place, &'static str)],
}

const PARTS: [Part; 3] = [
    Part {
        is_in: |way| way == Way::Chain,
        introduction: "\n## Where the fault stands\n\nThe chain is `a`, `b`, `c`. Behind each result stand the requests that the three got: \
                       `1 1 0` means that `a` and `b` were asked once and `c` was not.\n\n",
        columns: &[
            (Place::Alone, "the only channel"),
            (Place::First, "first of three"),
            (Place::Middle, "second, behind a 503"),
            (Place::Last, "last, behind two"),
            (Place::Every, "all three"),
        ],
    },
    Part {
        is_in: |way| way == Way::Submission,
        introduction: "\n## What begins work that goes on\n\n`POST /v1/videos` goes to the next channel only where it is certain that nobody has taken \
                       it: no connection came about, or a 401, 402, 403, 404, 429 or 503 came with an error of the \
                       dialect. Whatever else happens may have begun one: no other channel is asked, and the caller is \
                       told not to ask again (`x-should-retry: false`), unless the request itself is at fault.\n\n",
        columns: &[
            (Place::Alone, "the only channel"),
            (Place::First, "first of three"),
            (Place::Middle, "second, behind a 503"),
            (Place::Last, "last, behind two"),
            (Place::Every, "all three"),
        ],
    },
    Part {
        is_in: Way::is_bound,
        introduction: "\n## What one channel alone can answer\n\nA stored response or a video is known to the channel that made it, here one with the \
                       fault. No other is asked, whatever happens. That the thing is not there, or not in a state for what was asked, is \
                       an answer, and does nothing to the channel.\n\n",
        columns: &[
            (Place::Alone, "the only channel made it"),
            (Place::First, "the first of three made it"),
            (Place::Last, "the last of three made it"),
        ],
    },
];

fn line(text: &mut String, columns: &[String]) {
    let _ = writeln!(text, "| {} |", columns.join(" | "));
}

fn head(text: &mut String, columns: &[&str]) {
    line(text, &columns.iter().map(|&column| column.to_owned()).collect::<Vec<_>>());
    line(text, &columns.iter().map(|_| "---".to_owned()).collect::<Vec<_>>());
}

fn classes(text: &mut String) {
    text.push_str("\n## The classes\n\nWhatever goes wrong has one of these classes, and the class alone decides what follows.\n\n");
    head(text, &["class", "what it is", "the request", "the channel", "the caller, if it was the last"]);
    for row in TABLE {
        let next = match row.next {
            Next::Hop => "goes to the next channel",
            Next::HopIfYoung => "goes to the next channel, unless it is older than 300 s",
            Next::Return => "is answered at once",
            Next::Stop => "ends",
        };
        let effect = match row.effect {
            Effect::Nothing => "–",
            Effect::Counted => "one failure in the breaker's window",
            Effect::Cooldown => "the route cools down, as long as the upstream asks (1 to 60 s, else 15 s)",
            Effect::Credential => "the credential is suspended for 60 s",
            Effect::Channel => "is suspended for 60 s",
            Effect::Route => "the route is suspended for 60 s",
        };
        let sees = match row.class {
            F::BadRequest => "the status as it is, in the caller's dialect".to_owned(),
            F::Canceled => "nothing; it has left".to_owned(),
            F::Cut => format!("the dialect's error frame, `{}`", row.code),
            _ => format!("{} `{}`", row.status, row.code),
        };
        let columns = [format!("`{}`", row.class), row.signals.into(), next.into(), effect.into(), sees];
        line(text, &columns);
    }
}

/// What the oracle was told of a fault in a form: its class, and what that alone does not say.
fn kind(fault: &Fault, form: &Form) -> (usize, String) {
    let play = fault.play(form, "a").expect("it was played");
    let (class, note) = match play.ends {
        Ends::Served { .. } => return (0, "no fault".into()),
        Ends::Failed(failed) => {
            let failed = super::oracle::of_thing(form, &failed);
            let is_untaken = form.way == Way::Submission && failed.is_untaken;
            let note = match failed.quirk {
                Quirk::None if is_untaken => ", taken by nobody",
                Quirk::None => "",
                Quirk::SingleRequest => ", by this request alone",
                Quirk::Unshaped => ", not in the dialect's shape",
                Quirk::OfThing => ", as it is about the thing",
            };
            (failed.class, note)
        }
        Ends::Broken { .. } => (F::Cut, ""),
        Ends::Left { .. } => (F::Canceled, ""),
    };
    let order = TABLE.iter().position(|row| row.class == class).unwrap_or_default() + 1;
    (order, format!("`{class}`{note}"))
}

/// What callers were told where, and after which requests.
type Told = BTreeMap<(Place, String), BTreeSet<String>>;

fn places(text: &mut String, part: &Part, faults: &[Fault], cells: &[Cell]) {
    text.push_str(part.introduction);
    let names = part.columns.iter().map(|(_, name)| *name);
    head(text, &std::iter::once("class").chain(names).collect::<Vec<_>>());
    let mut by_kind: BTreeMap<(usize, String), Told> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| (part.is_in)(FORMS[cell.form].way)) {
        let told = by_kind.entry(kind(&faults[cell.fault], &FORMS[cell.form])).or_default();
        told.entry((cell.place, self::told(cell, false))).or_default().insert(calls(&cell.seen));
    }
    for ((_, kind), told) in by_kind {
        let column = |place| {
            let here = told.iter().filter(|((at, _), _)| *at == place);
            let lines = here.map(|((_, told), calls)| format!("{told} · {}", either(calls)));
            let lines = lines.collect::<Vec<_>>();
            if lines.is_empty() { "–".to_owned() } else { lines.join("<br>") }
        };
        let mut columns = vec![kind];
        columns.extend(part.columns.iter().map(|(place, _)| column(*place)));
        line(text, &columns);
    }
}

fn either(texts: &BTreeSet<String>) -> String {
    texts.iter().map(String::as_str).collect::<Vec<_>>().join(" or ")
}

fn calls(seen: &Outcome) -> String {
    seen.calls.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// What the caller got, in words; `in_full` with what differs from fault to fault of one class.
fn told(cell: &Cell, in_full: bool) -> String {
    let seen = &cell.seen;
    let late =
        if in_full && !seen.took.is_zero() { format!("after {}: ", time(seen.took)) } else { String::new() };
    if seen.ending == Ending::Left {
        return "it has left".into();
    }
    if seen.requests.contains_key("served") {
        return format!("{late}`{}`'s answer", seen.headers["x-sluice-channel"]);
    }
    if seen.requests.contains_key("cut") {
        let who = &seen.headers["x-sluice-channel"];
        let end = match seen.ending {
            Ending::Aborted => "the connection is aborted",
            _ if seen.body.contains("upstream_stream_error") => "our error frame",
            _ => "its own error frame",
        };
        return format!("{late}`{who}`'s bytes, then {end}");
    }
    let retry = match (seen.headers.get("retry-after-ms"), seen.headers.get("x-should-retry")) {
        (Some(ms), _) if in_full => {
            format!(", `retry-after` {}", time(Duration::from_millis(ms.parse().unwrap_or_default())))
        }
        (Some(_), _) => ", `retry-after`".into(),
        (None, Some(_)) => ", `x-should-retry: false`".into(),
        (None, None) => String::new(),
    };
    let said = code(&seen.body, FORMS[cell.form].speech == super::says::Speech::Google);
    let is_ours = seen.body.contains(&format!("\"message\":\"{}\"", Code::InvalidRequest.text()))
        || seen.body.contains("or it was not made with this key");
    if seen.requests.contains_key("bad_request") && !is_ours {
        let status = if in_full { seen.status.to_string() } else { "its status".into() };
        return format!("{late}{status}, in the upstream's words");
    }
    let is_status_told = in_full || !seen.requests.contains_key("bad_request");
    let status = if is_status_told { seen.status.to_string() } else { "its status".into() };
    format!("{late}{status} `{said}`{retry}")
}

fn code(body: &str, is_google: bool) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let code = if is_google { &body["error"]["details"][0]["reason"] } else { &body["error"]["code"] };
    code.as_str().unwrap_or_default().to_owned()
}

fn time(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn mark(mark: Mark) -> String {
    match mark {
        Mark::Nothing => "–".into(),
        Mark::Failures(1) => "one failure".into(),
        Mark::Failures(n) => format!("{n} failures"),
        Mark::Cooldown(length) => format!("route cools down {}", time(length)),
        Mark::Credential(length) => format!("credential suspended {}", time(length)),
        Mark::Channel(length) => format!("suspended {}", time(length)),
        Mark::Route(length) => format!("route suspended {}", time(length)),
    }
}

fn each(text: &mut String, faults: &[Fault], cells: &[Cell]) {
    text.push_str(
        "\n## Every fault\n\nAs it is where the chain has no other channel, so that the caller sees what it leads to. Each was also played at \
         the other places, with the results of the table above.\n",
    );
    for (phase, title) in [
        (Phase::None, "What is no fault"),
        (Phase::Transport, "Before the response headers"),
        (Phase::Status, "A status that is no success"),
        (Phase::Held, "Under a 200, before commit"),
        (Phase::Committed, "Under a 200, after commit"),
        (Phase::Caller, "The caller leaves"),
    ] {
        let _ = writeln!(text, "\n### {title}\n");
        head(text, &["fault", "what the upstream does", "class", "the channel", "the caller", "played in"]);
        let mut rows: Vec<([String; 5], Vec<&str>)> = Vec::new();
        for (index, fault) in faults.iter().enumerate().filter(|(_, fault)| fault.phase == phase) {
            for row in rows_of(index, fault, cells) {
                match rows.iter_mut().find(|(known, _)| *known == row) {
                    Some((_, ids)) => ids.push(&fault.id),
                    None => rows.push((row, vec![&fault.id])),
                }
            }
        }
        for (row, ids) in rows {
            let ids = ids.into_iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" ");
            line(text, &[&[ids][..], &row].concat());
        }
    }
}

/// What a fault leads to where there is no other channel: one row where that is the same in all forms.
fn rows_of(index: usize, fault: &Fault, cells: &[Cell]) -> Vec<[String; 5]> {
    let mut rows: BTreeMap<[String; 3], BTreeSet<usize>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.fault == index && cell.place == Place::Alone) {
        let (_, kind) = kind(fault, &FORMS[cell.form]);
        let row = [kind, mark(cell.seen.marks[0]), told(cell, true)];
        rows.entry(row).or_default().insert(cell.form);
    }
    let what = if fault.what.is_empty() { "that status alone" } else { &fault.what };
    let rows = rows.into_iter();
    rows.map(|([kind, mark, told], forms)| [what.to_owned(), kind, mark, told, sets::named(&forms)]).collect()
}

fn coverage(text: &mut String, cells: &[Cell]) {
    text.push_str("\n## What was played\n\nCells by what the attempt with the fault was counted as.\n\n");
    let classes: Vec<String> =
        std::iter::once("ok".to_owned()).chain(TABLE.iter().map(|row| row.class.to_string())).collect();
    let mut columns = vec!["form", "path"];
    columns.extend(classes.iter().map(String::as_str));
    head(text, &columns);
    for (index, form) in FORMS.iter().enumerate() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.form == index) {
            let who = match cell.place {
                Place::Alone | Place::First | Place::Every => "a ",
                Place::Middle => "b ",
                Place::Last => "c ",
            };
            let class = cell.seen.attempts.keys().find_map(|counted| counted.strip_prefix(who));
            *counts.entry(class.unwrap_or_default()).or_default() += 1;
        }
        let path = form.path.replace("MODEL", "{model}").replace(THING, "{id}");
        let path =
            if form.method == "POST" { format!("`{path}`") } else { format!("`{} {path}`", form.method) };
        let mut columns = vec![format!("{}, {}", form.dialect, form.name), path];
        columns.extend(
            classes.iter().map(|class| counts.get(class.as_str()).copied().unwrap_or_default().to_string()),
        );
        line(text, &columns);
    }
}
