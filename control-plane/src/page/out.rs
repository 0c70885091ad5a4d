//! What is out now: open breakers, suspensions with their reason and since when, cooldowns; each once, with the nodes on
//! which it is so. Pure.

use std::collections::BTreeMap;

use super::html::Html;
use super::view::View;
use super::words;
use crate::nodes::Pause;

/// The section of the page.
pub fn section(html: &mut Html, view: &View) {
    let open: Vec<_> = view.day().channels.iter().filter(|channel| !channel.open_on.is_empty()).collect();
    let pauses = together(view.nodes.iter().flat_map(|row| {
        let pauses = row.node.facts.pauses.iter();
        pauses.map(|pause| (row.node.id.as_str(), pause))
    }));
    if open.is_empty() && pauses.is_empty() {
        return html.leaf("p", &[], "No breaker is open, and nothing is suspended or cools down.");
    }
    html.node("ul", &[], |html| {
        for channel in open {
            html.node("li", &[], |html| {
                html.leaf("strong", &[("class", "bad")], &channel.channel);
                html.text(&format!(" is open on {}", channel.open_on.join(", ")));
            });
        }
        for (What { channel, model, what, class }, how) in &pauses {
            html.node("li", &[], |html| {
                let tone = if is_suspension(what) { "bad" } else { "fair" };
                html.leaf("strong", &[("class", tone)], channel);
                html.text(&said(model, what, class, how));
            });
        }
    });
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct What<'a> {
    channel: &'a str,
    model: &'a str,
    what: &'a str,
    class: &'a str,
}

/// Over all nodes on which something is out.
#[derive(Debug, Default, PartialEq, Eq)]
struct How<'a> {
    /// The earliest beginning that is known; 0 where none is.
    since_ms: u64,
    /// The latest end.
    until_ms: u64,
    nodes: Vec<&'a str>,
}

fn together<'a>(pauses: impl Iterator<Item = (&'a str, &'a Pause)>) -> BTreeMap<What<'a>, How<'a>> {
    let mut all: BTreeMap<What<'a>, How<'a>> = BTreeMap::new();
    for (node, Pause { channel, model, what, class, since_ms, until_ms }) in pauses {
        let how = all.entry(What { channel, model, what, class }).or_default();
        how.since_ms = match (how.since_ms, *since_ms) {
            (0, since) | (since, 0) => since,
            (one, other) => one.min(other),
        };
        how.until_ms = how.until_ms.max(*until_ms);
        how.nodes.push(node);
    }
    all
}

fn said(model: &str, what: &str, class: &str, how: &How<'_>) -> String {
    let mut said = format!(" {what}");
    if !model.is_empty() {
        said += &format!(" for {model}");
    }
    said + &time(what, class, how.since_ms, how.until_ms) + &format!(", on {}", how.nodes.join(", "))
}

/// Why something is paused, since when and until when.
pub fn time(what: &str, class: &str, since_ms: u64, until_ms: u64) -> String {
    let mut said = String::new();
    if !class.is_empty() {
        said += &format!(" ({class})");
    }
    if since_ms > 0 {
        said += &format!(" since {}", words::moment(since_ms));
    }
    let until = words::moment(until_ms);
    said + &if is_suspension(what) { format!(", next try at {until}") } else { format!(" until {until}") }
}

/// Whether what is paused comes back by a request that tries it, and not by time alone.
pub fn is_suspension(what: &str) -> bool {
    what.contains("suspended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_on_several_nodes_is_said_once_with_its_earliest_beginning() {
        let pause = |since_ms, until_ms| Pause {
            channel: "direct".to_owned(),
            model: String::new(),
            what: "credential suspended".to_owned(),
            class: "credential".to_owned(),
            since_ms,
            until_ms,
        };
        let (one, other, third) = (pause(0, 70_000), pause(20_000, 60_000), pause(10_000, 50_000));
        let all = together([("a", &one), ("b", &other), ("c", &third)].into_iter());
        let [(what, how)] = &all.iter().collect::<Vec<_>>()[..] else { panic!("{all:?}") };
        assert_eq!((how.since_ms, how.until_ms, how.nodes.join(" ")), (10_000, 70_000, "a b c".to_owned()));
        assert_eq!(
            said(what.model, what.what, what.class, how),
            " credential suspended (credential) since 1970-01-01 00:00:10 UTC, next try at 1970-01-01 00:01:10 UTC, on a, b, c"
        );
        let cooling = How { since_ms: 0, until_ms: 5000, nodes: vec!["a"] };
        assert_eq!(
            said("m", "cooling down", "rate_limited", &cooling),
            " cooling down for m (rate_limited) until 1970-01-01 00:00:05 UTC, on a"
        );
    }
}
