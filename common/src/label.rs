//! Labels of nodes: `name=value`, by which operators choose some of a fleet. Pure.

use std::collections::BTreeMap;

use crate::limits::LABELS_MAX;

/// Longest name.
const NAME_BYTES_MAX: usize = 63;
/// Longest value.
const VALUE_BYTES_MAX: usize = 63;

/// What a node calls itself, by name.
pub type Labels = BTreeMap<String, String>;

/// Why something is no label, or no set of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelFault {
    /// There is no `=`.
    #[error("{0:?} is no label; write name=value")]
    NoValue(String),
    /// The name has another shape.
    #[error("{0:?} is no name of a label: 1 to 63 letters, digits and any of -_./, a letter or digit first")]
    Name(String),
    /// The value has another shape.
    #[error("{value:?} is no value of the label {name}: up to 63 letters, digits and any of -_./:")]
    Value {
        /// Of the label.
        name: String,
        /// What it should be.
        value: String,
    },
    /// Two values for one name.
    #[error("the label {0} has two values")]
    Twice(String),
    /// More than [`LABELS_MAX`].
    #[error("{0} labels; a node has at most {LABELS_MAX}")]
    TooMany(usize),
}

/// Reads `name=value`, white space around it aside.
pub fn parse(text: &str) -> Result<(String, String), LabelFault> {
    let text = text.trim();
    let (name, value) = text.split_once('=').ok_or_else(|| LabelFault::NoValue(text.to_owned()))?;
    check(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether a name and a value have the shape of a label.
pub fn check(name: &str, value: &str) -> Result<(), LabelFault> {
    let is_sane = |c: char, more: &str| c.is_ascii_alphanumeric() || more.contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > NAME_BYTES_MAX || !name.chars().all(|c| is_sane(c, "-_./")) {
        return Err(LabelFault::Name(name.to_owned()));
    }
    if value.len() > VALUE_BYTES_MAX || !value.chars().all(|c| is_sane(c, "-_./:")) {
        return Err(LabelFault::Value { name: name.to_owned(), value: value.to_owned() });
    }
    Ok(())
}

/// All labels of a node, each checked; a name that stands twice with one value stands once.
pub fn collect(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Labels, LabelFault> {
    let mut labels = Labels::new();
    for (name, value) in pairs {
        check(&name, &value)?;
        if labels.get(&name).is_some_and(|known| *known != value) {
            return Err(LabelFault::Twice(name));
        }
        labels.insert(name, value);
    }
    if labels.len() > LABELS_MAX {
        return Err(LabelFault::TooMany(labels.len()));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_and_a_value() {
        let label = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse(" zone=eu-1a "), label("zone", "eu-1a"));
        assert_eq!(parse("example.com/tier=gold:1"), label("example.com/tier", "gold:1"));
        assert_eq!(parse("canary="), label("canary", ""));
        assert_eq!(parse("canary"), Err(LabelFault::NoValue("canary".into())));
        for name in ["", "-a", "a b", "ä", &"n".repeat(64)] {
            assert_eq!(parse(&format!("{name}=v")), Err(LabelFault::Name(name.into())), "{name:?}");
        }
        for value in ["a b", "a=b", "a,b", &"v".repeat(64)] {
            assert!(matches!(parse(&format!("n={value}")), Err(LabelFault::Value { .. })), "{value:?}");
        }
    }

    #[test]
    fn a_node_has_few_labels_and_one_value_for_each_name() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let same = collect([pair("a", "1"), pair("b", "2"), pair("a", "1")]);
        assert_eq!(same, Ok(Labels::from([pair("a", "1"), pair("b", "2")])));
        assert_eq!(collect([pair("a", "1"), pair("a", "2")]), Err(LabelFault::Twice("a".into())));
        let many = |n: usize| collect((0..n).map(|i| pair(&format!("l{i}"), "")));
        assert!(many(LABELS_MAX).is_ok());
        assert_eq!(many(LABELS_MAX + 1), Err(LabelFault::TooMany(LABELS_MAX + 1)));
    }
}
