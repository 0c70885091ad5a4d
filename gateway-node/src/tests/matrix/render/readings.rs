//! What callers read, byte for byte: errors in each dialect's shape, and streams that were cut.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::faults::Fault;
use super::super::forms::FORMS;
use super::super::outcome::{Ending, Outcome};
use super::super::{Cell, Place, sets};

pub fn write(text: &mut String, faults: &[Fault], cells: &[Cell]) {
    text.push_str(
        "\n## What callers read\n\nIn each dialect its own words. `REQUEST-ID` stands for our id of the request.\n",
    );
    for (id, place, title) in [
        ("500", Place::Every, "All three channels answer 500"),
        ("429-retry-after", Place::Alone, "The only channel is throttled for 7 s"),
        ("400-invalid", Place::Middle, "The second channel finds the request at fault"),
    ] {
        let _ = writeln!(text, "\n### {title}");
        let mut messages: Vec<(String, BTreeSet<usize>)> = Vec::new();
        for cell in cells.iter().filter(|cell| faults[cell.fault].id == id && cell.place == place) {
            let message = message(&cell.seen);
            match messages.iter_mut().find(|(known, _)| *known == message) {
                Some((_, forms)) => drop(forms.insert(cell.form)),
                None => messages.push((message, BTreeSet::from([cell.form]))),
            }
        }
        for (message, forms) in messages {
            let _ = writeln!(text, "\nIn {}:\n\n```http\n{message}```", sets::named(&forms));
        }
    }
    text.push_str(
        "\n### A stream is cut\n\nWhat was sent stays as it was. An event that is half there is closed, so that the error frame is \
         read on its own.\n",
    );
    for cell in cells.iter().filter(|cell| cell.place == Place::Alone && !FORMS[cell.form].is_held) {
        let place = match faults[cell.fault].id.as_str() {
            "E-21" => "behind content",
            // How an event is closed is shown once.
            "cut-inside" if cell.form == 0 => "inside an event",
            _ => continue,
        };
        let (dialect, name) = (FORMS[cell.form].dialect, FORMS[cell.form].name);
        let end = if cell.seen.ending == Ending::Aborted { ", and the connection is aborted" } else { "" };
        let body = cell.seen.body.replace("\r\n", "\n");
        let _ = writeln!(text, "\n{dialect}, {name}, cut {place}{end}:\n\n```text\n{}\n```", body.trim_end());
    }
}

fn message(seen: &Outcome) -> String {
    let mut text = format!("HTTP/1.1 {}\n", seen.status);
    for (name, value) in &seen.headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    text + "\n" + &seen.body + "\n"
}
