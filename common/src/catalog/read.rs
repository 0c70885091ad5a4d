//! Bytes → a tree of values that know their line, from TOML or JSON alike. What the values mean is
//! `check`'s matter. Numbers keep their text, so that prices never pass through floating point. Pure.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;

/// Tables and lists inside each other; a catalog needs six.
const DEPTH_MAX: u32 = 32;
/// What is not TOML at all can be faulty in every line; so many tell that.
const SYNTAX_FAULTS_MAX: usize = 100;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// From 1.
    pub line: u32,
    pub value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// As it is written, a leading plus and TOML's underscores left out.
    Number(String),
    Bool(bool),
    List(Vec<Node>),
    Table(BTreeMap<String, Item>),
    /// What no key takes; in words.
    Other(&'static str),
}

/// A value in a table.
#[derive(Debug)]
pub(super) struct Item {
    /// The line of the key.
    pub line: u32,
    pub node: Node,
}

impl Value {
    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }
}

/// The path of a key in a table. A key that is not bare in TOML is quoted.
pub(super) fn path_to(table: &str, key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match (table, is_bare) {
        ("", true) => key.to_owned(),
        ("", false) => format!("{key:?}"),
        (_, true) => format!("{table}.{key}"),
        (_, false) => format!("{table}.{key:?}"),
    }
}

/// Reads a document. A document that begins with `{` is JSON, for no TOML does.
pub(super) fn read(document: &[u8]) -> Result<Node, Vec<Fault>> {
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let text = std::str::from_utf8(document).map_err(|error| {
        let line = Lines::of(document).at(error.valid_up_to());
        vec![syntax(line, "the document is not UTF-8".to_owned())]
    })?;
    let lines = Lines::of(document);
    if text.trim_start().starts_with('{') { read_json(text, &lines) } else { read_toml(text, &lines) }
}

fn syntax(line: u32, message: String) -> Fault {
    Fault { line, path: String::new(), message }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(document: &[u8]) -> Self {
        let ends = document.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Lines(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// The line of an offset, from 1.
    fn at(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

fn read_toml(text: &str, lines: &Lines) -> Result<Node, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    // One mistake often draws several complaints about the same line; the first is the telling one.
    let mut faults: BTreeMap<u32, Fault> = BTreeMap::new();
    for error in errors {
        let line = lines.at(error.span().map_or(text.len(), |span| span.start));
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        faults.entry(line).or_insert_with(|| syntax(line, format!("not valid TOML: {message}")));
    }
    if !faults.is_empty() {
        return Err(faults.into_values().take(SYNTAX_FAULTS_MAX).collect());
    }
    toml_table(table.get_ref(), 1, lines, 0).map_err(|fault| vec![fault])
}

fn toml_table(table: &DeTable<'_>, line: u32, lines: &Lines, depth: u32) -> Result<Node, Fault> {
    let mut items = BTreeMap::new();
    for (key, value) in table {
        let node = toml_value(value, lines, depth + 1)?;
        items.insert(key.get_ref().to_string(), Item { line: lines.at(key.span().start), node });
    }
    Ok(Node { line, value: Value::Table(items) })
}

fn toml_value(value: &Spanned<DeValue<'_>>, lines: &Lines, depth: u32) -> Result<Node, Fault> {
    let line = lines.at(value.span().start);
    if depth > DEPTH_MAX {
        return Err(too_deep(line));
    }
    let number = |text: String| Value::Number(text.strip_prefix('+').map_or(text.clone(), str::to_owned));
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => number(integer.to_string()),
        DeValue::Float(float) => number(float.to_string()),
        DeValue::Boolean(is) => Value::Bool(*is),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(list) => {
            let nodes = list.iter().map(|value| toml_value(value, lines, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return toml_table(table, line, lines, depth),
    };
    Ok(Node { line, value })
}

fn too_deep(line: u32) -> Fault {
    syntax(line, format!("tables and lists lie more than {DEPTH_MAX} deep in each other"))
}

fn read_json(text: &str, lines: &Lines) -> Result<Node, Vec<Fault>> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
        let message = error.to_string();
        let what = message.split(" at line ").next().unwrap_or_default();
        vec![syntax(line, format!("not valid JSON: {what}"))]
    })?;
    let mut json = Json { text, lines, faults: Vec::new() };
    let node = json.value(raw, "", 0);
    if json.faults.is_empty() { Ok(node) } else { Err(json.faults) }
}

struct Json<'a> {
    text: &'a str,
    lines: &'a Lines,
    faults: Vec<Fault>,
}

impl Json<'_> {
    fn value(&mut self, raw: &RawValue, path: &str, depth: u32) -> Node {
        let json = raw.get();
        // The slice lies in the document: the difference of the addresses is its offset.
        let offset = (json.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let line = self.lines.at(offset);
        if depth > DEPTH_MAX {
            self.faults.push(too_deep(line));
            return Node { line, value: Value::Other("too deep") };
        }
        // The whole document is valid JSON by now; what can fail are escapes that stand for no text.
        let value = match json.as_bytes().first() {
            Some(b'{') => self.table(json, line, path, depth),
            Some(b'[') => {
                let list: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                let nodes = list.iter().enumerate();
                Value::List(
                    nodes.map(|(i, raw)| self.value(raw, &format!("{path}[{i}]"), depth + 1)).collect(),
                )
            }
            Some(b'"') => match serde_json::from_str(json) {
                Ok(text) => Value::Text(text),
                Err(_) => self.half_a_pair(line, path),
            },
            Some(b't' | b'f') => Value::Bool(json == "true"),
            Some(b'n') => Value::Other("null"),
            _ => Value::Number(json.to_owned()),
        };
        Node { line, value }
    }

    fn half_a_pair(&mut self, line: u32, path: &str) -> Value {
        let message = "not valid JSON: a string holds half of a surrogate pair".to_owned();
        self.faults.push(Fault { line, path: path.to_owned(), message });
        Value::Other("not a string")
    }

    fn table(&mut self, json: &str, line: u32, path: &str, depth: u32) -> Value {
        let Ok(entries) = serde_json::Deserializer::from_str(json).deserialize_map(Entries) else {
            return self.half_a_pair(line, path);
        };
        let mut items = BTreeMap::new();
        for (key, raw) in entries {
            let path = path_to(path, &key);
            let node = self.value(raw, &path, depth + 1);
            let line = node.line;
            if items.insert(key, Item { line, node }).is_some() {
                let message = "the key stands twice in its table".to_owned();
                self.faults.push(Fault { line, path, message });
            }
        }
        Value::Table(items)
    }
}

/// Collects the entries of an object as they stand, keys that stand twice too.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(document: &[u8]) -> Vec<String> {
        read(document).unwrap_err().iter().map(Fault::to_string).collect()
    }

    /// `path = value @ line of key/line of value`, for every leaf.
    fn leaves(node: &Node, path: &str, key_line: u32, out: &mut Vec<String>) {
        match &node.value {
            Value::Table(items) => {
                items.iter().for_each(|(k, item)| leaves(&item.node, &path_to(path, k), item.line, out));
            }
            Value::List(list) => {
                list.iter().enumerate().for_each(|(i, n)| leaves(n, &format!("{path}[{i}]"), n.line, out));
            }
            Value::Text(text) => out.push(format!("{path} = {text:?} @ {key_line}/{}", node.line)),
            Value::Number(text) => out.push(format!("{path} = {text} @ {key_line}/{}", node.line)),
            Value::Bool(is) => out.push(format!("{path} = {is} @ {key_line}/{}", node.line)),
            Value::Other(kind) => out.push(format!("{path} = {kind} @ {key_line}/{}", node.line)),
        }
    }

    fn tree(document: &str) -> Vec<String> {
        let mut out = Vec::new();
        leaves(&read(document.as_bytes()).unwrap(), "", 0, &mut out);
        out
    }

    #[test]
    fn every_value_of_a_toml_document_knows_its_line() {
        let document = "# first\n[models.\"gpt-4.1\"]\na = 1_000\nb = [\n  { c = +2.50 },\n  { c = \"x\" },\n]\n\
                        [[models.m.routes]]\nd = true\n[[models.m.routes]]\nd = 2024-01-01\n";
        let expected = [
            "models.\"gpt-4.1\".a = 1000 @ 3/3",
            "models.\"gpt-4.1\".b[0].c = 2.50 @ 5/5",
            "models.\"gpt-4.1\".b[1].c = \"x\" @ 6/6",
            "models.m.routes[0].d = true @ 9/9",
            "models.m.routes[1].d = a date or time @ 11/11",
        ];
        assert_eq!(tree(document), expected);
    }

    #[test]
    fn every_value_of_a_json_document_knows_its_line() {
        let document = "\u{feff}\n{\n \"a\": {\"b c\": 2.500},\n \"d\": [1,\n  \"\\u0078\", null, false]\n}";
        let expected = [
            "a.\"b c\" = 2.500 @ 3/3",
            "d[0] = 1 @ 4/4",
            "d[1] = \"x\" @ 5/5",
            "d[2] = null @ 5/5",
            "d[3] = false @ 5/5",
        ];
        assert_eq!(tree(document), expected);
    }

    #[test]
    fn every_syntax_fault_of_a_toml_document_is_located() {
        let found = faults(b"a = 1\nb = \nc = 2\nd = [1\ne = 3\n");
        assert!(found.len() >= 2, "{found:?}");
        assert!(found[0].starts_with("not valid TOML: ") && found[0].ends_with("(line 2)"), "{found:?}");
        let twice = faults(b"[channels.a]\nx = 1\n[channels.a]\n");
        assert!(twice[0].contains("duplicate key") && twice[0].ends_with("(line 3)"), "{twice:?}");
    }

    #[test]
    fn what_is_not_toml_at_all_is_not_complained_about_line_by_line_for_ever() {
        assert_eq!(faults("= x\n".repeat(1000).as_bytes()).len(), SYNTAX_FAULTS_MAX);
    }

    #[test]
    fn syntax_faults_of_a_json_document_and_keys_that_stand_twice_are_located() {
        let found = faults(b"{\n \"a\": 1,\n \"b\": }\n");
        assert_eq!(found, ["not valid JSON: expected value (line 3)"]);
        let twice = faults(b"{\"a\": {\n\"b\": 1,\n\"b\": 2}}");
        assert_eq!(twice, ["a.b: the key stands twice in its table (line 3)"]);
    }

    #[test]
    fn half_a_surrogate_pair_is_a_fault_in_a_value_and_in_a_key() {
        for document in ["{\"a\":\n\"\\ud800\"}", "{\"a\":\n{\"\\ud800\": 1}}"] {
            let expected = ["a: not valid JSON: a string holds half of a surrogate pair (line 2)"];
            assert_eq!(faults(document.as_bytes()), expected);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_a_fault_with_a_line() {
        assert_eq!(faults(b"a = 1\nb = \"\xff\"\n"), ["the document is not UTF-8 (line 2)"]);
    }

    #[test]
    fn a_document_nested_without_end_is_refused_and_kills_nobody() {
        for (open, close) in [("{\"a\":", ""), ("{\"a\":[", ""), ("a = [", "]"), ("a = {b=", "}")] {
            let deep = open.to_owned() + &"[".repeat(100_000) + &"]".repeat(100_000) + close;
            assert!(!faults(deep.as_bytes()).is_empty());
        }
        let deep = "{\"a\":".to_owned() + &"[".repeat(100_000) + &"]".repeat(100_000) + "}";
        assert_eq!(faults(deep.as_bytes()).len(), 1);
        let tables = "[".to_owned() + &"a.".repeat(50_000) + "a]\n";
        assert!(!faults(tables.as_bytes()).is_empty());
    }
}
