//! Walking the tree of a document: where one stands, what a table holds under a key, and the faults
//! met on the way. A value of the wrong kind is a fault once, and from then on as if absent. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::SecretUse;
use super::fault::{Fault, did_you_mean};
use super::keys::{Keys, Level, Standing};
use super::read::{Item, Node, Value, path_to};
use crate::money::Price;

/// Suggestions cost a comparison with every name there is; after this many faults there are none.
const SUGGESTIONS_MAX: u32 = 100;
/// The longest duration that a catalog may give.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What was found wrong so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
    /// Secrets that the document names.
    pub secrets: Vec<SecretUse>,
    /// Those that there are; none where nobody asks whether they are there.
    known_secrets: Option<BTreeSet<String>>,
    suggestions: u32,
}

impl Report {
    /// Nothing was found yet; secrets must be among these, if they are given.
    pub fn knowing(secrets: Option<&BTreeSet<String>>) -> Self {
        Report { known_secrets: secrets.cloned(), ..Report::default() }
    }

    /// A secret is named here.
    pub fn secret(&mut self, at: &Place, name: &str) {
        if let Some(known) = self.known_secrets.take() {
            if !known.contains(name) {
                let message = format!("no such secret {name:?}: set it by `sluice secret set {name}`");
                self.unknown(at, message, name, known.iter().map(String::as_str));
            }
            self.known_secrets = Some(known);
        }
        let (line, path) = (at.line, at.path.clone());
        self.secrets.push(SecretUse { name: name.to_owned(), line, path });
    }

    pub fn fault(&mut self, at: &Place, message: impl Into<String>) {
        self.faults.push(Fault { line: at.line, path: at.path.clone(), message: message.into() });
    }

    pub fn warn(&mut self, at: &Place, message: impl Into<String>) {
        self.warnings.push(Fault { line: at.line, path: at.path.clone(), message: message.into() });
    }

    /// A fault about a name that is none of `names`.
    pub fn unknown<'a>(
        &mut self,
        at: &Place,
        message: String,
        name: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) {
        self.suggestions += 1;
        let meant = if self.suggestions > SUGGESTIONS_MAX { None } else { did_you_mean(name, names) };
        match meant {
            Some(meant) => self.fault(at, format!("{message}; did you mean \"{meant}\"?")),
            None => self.fault(at, message),
        }
    }
}

/// A place in the document.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub path: String,
    pub line: u32,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Site<'d> {
    pub place: Place,
    pub node: &'d Node,
}

impl<'d> Site<'d> {
    /// The table that stands here, with any names for keys.
    pub fn entries(&self, report: &mut Report) -> Option<Table<'d>> {
        match &self.node.value {
            Value::Table(items) => Some(Table { place: self.place.clone(), items }),
            _ => self.wrong_kind("a table", report),
        }
    }

    /// The table that stands here; a key that is not of `keys` is a fault.
    pub fn table(&self, keys: &Keys, report: &mut Report) -> Option<Table<'d>> {
        let table = self.entries(report)?;
        let mut is_one = true;
        for (key, item) in table.items {
            is_one &= table.check_key(keys, key, item, report);
        }
        is_one.then_some(table)
    }

    /// The list that stands here.
    pub fn list(&self, report: &mut Report) -> Option<Vec<Site<'d>>> {
        let Value::List(nodes) = &self.node.value else { return self.wrong_kind("a list", report) };
        let place = |i: usize, line| Place { path: format!("{}[{i}]", self.place.path), line };
        Some(nodes.iter().enumerate().map(|(i, node)| Site { place: place(i, node.line), node }).collect())
    }

    /// The string that stands here.
    pub fn text(&self, report: &mut Report) -> Option<&'d str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_kind("a string", report),
        }
    }

    /// The price that stands here, as a number or as a string.
    pub fn price(&self, report: &mut Report) -> Option<Price> {
        let (Value::Text(text) | Value::Number(text)) = &self.node.value else {
            return self.wrong_kind("a decimal number or a string with one", report);
        };
        text.parse()
            .map_err(|fault: crate::money::PriceFault| report.fault(&self.place, fault.to_string()))
            .ok()
    }

    /// The duration that stands here: from 1 ms to a day.
    pub fn duration(&self, report: &mut Report) -> Option<Duration> {
        let text = match &self.node.value {
            Value::Text(text) => text,
            Value::Number(_) => {
                return self.refuse("needs a unit, such as \"30s\", \"5m\" or \"250ms\"", report);
            }
            _ => return self.wrong_kind("a duration, such as \"30s\"", report),
        };
        if text.trim_start().starts_with('-') {
            return self.refuse("must not be negative", report);
        }
        match humantime::parse_duration(text) {
            Ok(Duration::ZERO) => self.refuse("must be above zero", report),
            Ok(duration) if duration > DURATION_MAX => {
                self.refuse("is too long: at most a day (\"24h\")", report)
            }
            Ok(duration) if duration.subsec_nanos() % 1_000_000 != 0 => {
                self.refuse("is too precise: milliseconds are the smallest unit", report)
            }
            Ok(duration) => Some(duration),
            Err(_) => self.refuse("must be a duration, such as \"30s\", \"5m\" or \"250ms\"", report),
        }
    }

    /// The whole number above zero that stands here.
    pub fn count(&self, max: u64, report: &mut Report) -> Option<u64> {
        let Value::Number(text) = &self.node.value else {
            return self.wrong_kind("a whole number", report);
        };
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return self.refuse("must be a whole number", report);
        }
        match digits.parse::<u64>() {
            Ok(0) => self.refuse("must be above zero", report),
            Ok(_) if text.starts_with('-') => self.refuse("must not be negative", report),
            Ok(count) if count <= max => Some(count),
            _ => self.refuse(format!("is too large: at most {max}"), report),
        }
    }

    /// Reports a fault here; there is no value then.
    pub fn refuse<T>(&self, message: impl Into<String>, report: &mut Report) -> Option<T> {
        report.fault(&self.place, message);
        None
    }

    fn wrong_kind<T>(&self, wanted: &str, report: &mut Report) -> Option<T> {
        self.refuse(format!("must be {wanted}, not {}", self.node.value.kind()), report)
    }
}

/// A table and its place.
#[derive(Debug, Clone)]
pub(super) struct Table<'d> {
    pub place: Place,
    items: &'d BTreeMap<String, Item>,
}

impl<'d> Table<'d> {
    /// The value under a key. Its line is the value's, save for tables: those begin at their key.
    pub fn site(&self, key: &str) -> Option<Site<'d>> {
        self.items.get(key).map(|item| self.site_of(key, item))
    }

    /// As [`Table::site`]; a fault when nothing stands there.
    pub fn required(&self, key: &str, report: &mut Report) -> Option<Site<'d>> {
        let site = self.site(key);
        if site.is_none() {
            report
                .fault(&Place { path: path_to(&self.place.path, key), line: self.place.line }, "is missing");
        }
        site
    }

    /// Every key and its value.
    pub fn sites(&self) -> impl Iterator<Item = (&'d str, Site<'d>)> {
        self.items.iter().map(|(key, item)| (key.as_str(), self.site_of(key, item)))
    }

    /// The boolean under a key; `default` when there is none.
    pub fn flag(&self, key: &str, default: bool, report: &mut Report) -> bool {
        let Some(site) = self.site(key) else { return default };
        match site.node.value {
            Value::Bool(is) => is,
            _ => site.wrong_kind("true or false", report).unwrap_or(default),
        }
    }

    fn site_of(&self, key: &str, item: &'d Item) -> Site<'d> {
        let line = if matches!(item.node.value, Value::Table(_)) { item.line } else { item.node.line };
        Site { place: Place { path: path_to(&self.place.path, key), line }, node: &item.node }
    }

    /// Returns false when this is not the table that it seems: its name was cut at a dot.
    fn check_key(&self, keys: &Keys, key: &str, item: &'d Item, report: &mut Report) -> bool {
        let at = Place { path: path_to(&self.place.path, key), line: item.line };
        match keys.standing(key) {
            Standing::Now => {}
            Standing::Later => report.fault(&at, format!("this version does not have \"{key}\" yet")),
            Standing::Elsewhere(levels) => {
                let levels: Vec<&str> = levels.iter().copied().map(Level::as_str).collect();
                let levels = levels.join(" and ");
                report.fault(&at, format!("\"{key}\" may stand in {levels} only, not in {}", keys.what));
            }
            Standing::Unknown => {
                if let Some(rest) = cut_at_a_dot(keys, key, item) {
                    let (table, name) = self.place.path.split_once('.').unwrap_or(("", &self.place.path));
                    let message = format!(
                        "no such key in {}; a name with a dot in it must be quoted: [{table}.\"{name}.{rest}\"]",
                        keys.what
                    );
                    report.fault(&at, message);
                    return false;
                }
                let message = format!("no such key in {}", keys.what);
                report.unknown(&at, message, key, keys.names());
            }
        }
        true
    }
}

/// What follows the dot when `[models.gpt-4.1]` stands for `[models."gpt-4.1"]`: the table under an
/// unknown key is itself one of these.
fn cut_at_a_dot(keys: &Keys, key: &str, item: &Item) -> Option<String> {
    keys.level?;
    let (mut rest, mut node) = (key.to_owned(), &item.node);
    loop {
        let Value::Table(items) = &node.value else { return None };
        if items.keys().any(|key| keys.now.contains(&key.as_str())) {
            return Some(rest);
        }
        let mut only = items.iter();
        let (Some((key, item)), None) = (only.next(), only.next()) else { return None };
        rest = format!("{rest}.{key}");
        node = &item.node;
    }
}
