//! The only way to stdout and stderr: tables for people, JSON for programs, faults with advice.
//! Colours reach a terminal only. Text that came over the wire cannot steer the terminal.

use std::io::{self, IsTerminal as _, Write};

use comfy_table::{Cell, CellAlignment, Table, presets};
use owo_colors::OwoColorize as _;
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::args::Format;
use crate::fault::{Exit, Fault};

/// Where results and faults go.
pub struct Output {
    format: Format,
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    is_terminal: bool,
}

impl Output {
    /// Stdout and stderr of the process.
    pub fn standard(format: Format) -> Self {
        Output {
            format,
            out: Box::new(anstream::stdout()),
            err: Box::new(anstream::stderr()),
            is_terminal: io::stdout().is_terminal(),
        }
    }

    /// What the result should look like.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Writes the result as people read it.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// Writes the result as programs read it: one line.
    pub fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let line = json_line(value)?;
        self.bytes(line.as_bytes())
    }

    /// Makes room for the next state of a watch: over the last one on a terminal, else below it.
    pub fn next_frame(&mut self) -> io::Result<()> {
        if self.format == Format::Table {
            self.text(if self.is_terminal { "\x1b[H\x1b[2J\x1b[3J" } else { "\n" })?;
        }
        Ok(())
    }

    /// Says something beside the result.
    pub fn note(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "{}", clean(line))
    }

    /// Reports a fault and answers with what to end. A stderr that is gone is nobody's loss.
    pub fn fault(&mut self, fault: &Fault) -> Exit {
        let _ = self.err.write_all(fault_text(fault).as_bytes());
        fault.exit
    }
}

/// A table without lines: a header, then a row for each item.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling();
    table.set_header(
        header
            .iter()
            .map(|name| Cell::new(name.trim_start_matches('>')).add_attribute(comfy_table::Attribute::Dim)),
    );
    for row in rows {
        table.add_row(row);
    }
    for (column, name) in table.column_iter_mut().zip(header) {
        column.set_padding((0, 2));
        if name.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| trim_blanks(&line) + "\n").collect()
}

/// Without blanks at the end, also those in front of the codes that end a colour.
fn trim_blanks(line: &str) -> String {
    let mut rest = line.trim_end();
    let mut codes = String::new();
    while let Some(at) = rest
        .rfind('\x1b')
        .filter(|at| rest.ends_with('m') && rest[*at..].find('m') == Some(rest.len() - at - 1))
    {
        codes.insert_str(0, &rest[at..]);
        rest = rest[..at].trim_end();
    }
    rest.to_owned() + &codes
}

/// A cell with text of the wire.
pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell::new(clean(text.as_ref()))
}

/// Text of the wire without what could steer a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A time of the wire as people read it.
pub fn time(at_ms: i64) -> String {
    let shown = jiff::Timestamp::from_second(at_ms.div_euclid(1000)).map(|at| at.to_string());
    shown.unwrap_or_else(|_| at_ms.to_string())
}

/// How long ago something was, in its largest unit.
pub fn ago(now_ms: u64, at_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(u64::try_from(at_ms).unwrap_or(0)) / 1000;
    match seconds {
        0..=119 => format!("{seconds}s ago"),
        120..=7199 => format!("{}m ago", seconds / 60),
        7200..=172_799 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// "1 node", "2 nodes".
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn fault_text(fault: &Fault) -> String {
    let mut text = String::new();
    for line in &fault.lines {
        text += &format!("{}\n", clean(line));
    }
    if !fault.message.is_empty() {
        text += &format!("{} {}\n", "error:".red().bold(), clean(&fault.message));
    }
    if let Some(help) = &fault.help {
        text += &format!("{} {}\n", "help:".cyan().bold(), clean(help));
    }
    text
}

fn json_line<T: Serialize>(value: &T) -> io::Result<String> {
    let mut line = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut line, Spaced))?;
    line.push(b'\n');
    String::from_utf8(line).map_err(io::Error::other)
}

/// One line, with a space after `:` and `,`.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
pub use captured::{Captured, plain};

#[cfg(test)]
mod captured {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// What a command wrote.
    #[derive(Clone, Default)]
    pub struct Captured {
        out: Pipe,
        err: Pipe,
    }

    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Captured {
        /// An output that is no terminal, and what it will have written.
        pub fn new(format: Format) -> (Output, Captured) {
            let captured = Captured::default();
            let out = anstream::StripStream::new(Box::new(captured.out.clone()) as Box<dyn Write>);
            let err = anstream::StripStream::new(Box::new(captured.err.clone()) as Box<dyn Write>);
            (Output { format, out: Box::new(out), err: Box::new(err), is_terminal: false }, captured)
        }

        pub fn out(&self) -> String {
            String::from_utf8(self.out.0.lock().unwrap().clone()).unwrap()
        }

        pub fn err(&self) -> String {
            String::from_utf8(self.err.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// Text as it looks where there are no colours.
    pub fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_carries_no_trailing_blanks() {
        let rows = [vec![cell("a"), cell("10")], vec![cell("longer"), cell("5")]];
        assert_eq!(plain(&table(&["NAME", ">COUNT"], rows)), "NAME    COUNT\na          10\nlonger      5\n");
    }

    #[test]
    fn text_of_the_wire_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }

    #[test]
    fn a_fault_shows_its_lines_then_the_message_then_the_advice() {
        let fault = Fault::error("bad").lines(vec!["f:1: x".to_owned()]).help("mend it");
        assert_eq!(plain(&fault_text(&fault)), "f:1: x\nerror: bad\nhelp: mend it\n");
        assert_eq!(fault_text(&Fault::error("")), "");
    }

    #[test]
    fn json_is_one_line_with_blanks() {
        let value = serde_json::json!({"revision": 42, "list": [1, "a"]});
        assert_eq!(json_line(&value).unwrap(), "{\"list\": [1, \"a\"], \"revision\": 42}\n");
    }

    #[test]
    fn times_are_utc_and_ages_in_their_largest_unit() {
        assert_eq!(time(1_796_046_279_500), "2026-11-30T13:44:39Z");
        let now = 1_000_000_000;
        let ages = [0, 119, 120, 7200, 172_800].map(|s: i64| ago(now, 1_000_000_000 - s * 1000));
        assert_eq!(ages, ["0s ago", "119s ago", "2m ago", "2h ago", "2d ago"]);
        assert_eq!(ago(5, 10), "0s ago");
    }
}
