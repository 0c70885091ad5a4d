//! Who would serve a model now, on each node, and why not those before: the chain of the revision that the node runs, beside
//! what it said of itself last. Nothing else is known here: how many requests a channel has room for, and whether a route is
//! being tried this moment, the node alone knows. Pure.

use std::collections::BTreeMap;

use super::super::{out, words};
use crate::nodes::{Facts, NodeView, Pause};

/// What a node would do with a request for a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serving {
    /// The revision that it runs.
    pub revision: u64,
    /// Who would be asked.
    pub by: By,
    /// Who would be asked after that.
    pub then: Vec<String>,
    /// Who would not be asked, and why; and what is to be known of those who would.
    pub why: Vec<String>,
}

/// Who would be asked first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// This channel.
    Channel(String),
    /// Every channel is out: callers are refused at once.
    Nobody,
    /// Its revision has no such model, or none that speaks the dialect.
    NoChain,
    /// It runs no revision at all.
    NoCatalog,
    /// It is not here: its state.
    Away(&'static str),
}

impl By {
    /// In words for people.
    pub fn said(&self) -> String {
        match self {
            By::Channel(channel) => channel.clone(),
            By::Nobody => "nobody: callers get no_available_channel".to_owned(),
            By::NoChain => "nobody: its revision has no such chain".to_owned(),
            By::NoCatalog => "nobody: it runs no revision yet".to_owned(),
            By::Away(state) => format!("it is not connected ({state})"),
        }
    }
}

/// What a node would do; `chain` are the channels of the chain that it runs, in order.
pub fn serving(node: &NodeView, model: &str, chain: &[String], now_ms: u64) -> Serving {
    let mut serving =
        Serving { revision: node.applied_revision, by: By::Nobody, then: Vec::new(), why: Vec::new() };
    if !node.connected {
        return Serving { by: By::Away(node.state.as_str()), ..serving };
    }
    if node.applied_revision == 0 {
        return Serving { by: By::NoCatalog, ..serving };
    }
    if node.facts.drained {
        serving.why.push("the node is leaving and takes no new requests".to_owned());
    }
    if chain.is_empty() {
        return Serving { by: By::NoChain, ..serving };
    }
    let mut asked = Vec::new();
    for channel in chain {
        match stand(&node.facts, channel, model, now_ms) {
            Stand::Out(why) => serving.why.push(format!("{channel} is out: {why}")),
            Stand::In(note) => {
                asked.push(channel.clone());
                serving.why.extend(note.map(|note| format!("{channel}: {note}")));
            }
        }
    }
    let mut asked = asked.into_iter();
    serving.by = asked.next().map_or(By::Nobody, By::Channel);
    Serving { then: asked.collect(), ..serving }
}

/// Nodes that would do the same, together.
pub fn together<'a>(all: impl IntoIterator<Item = (&'a NodeView, Serving)>) -> Vec<(Serving, Vec<&'a str>)> {
    let mut nodes: BTreeMap<Serving, Vec<&str>> = BTreeMap::new();
    for (node, serving) in all {
        nodes.entry(serving).or_default().push(&node.id);
    }
    nodes.into_iter().collect()
}

enum Stand {
    Out(String),
    /// With something that is to be known.
    In(Option<String>),
}

fn stand(facts: &Facts, channel: &str, model: &str, now_ms: u64) -> Stand {
    if facts.open_channels.iter().any(|open| open == channel) {
        return Stand::Out("its breaker is open".to_owned());
    }
    let is_of = |pause: &&Pause| pause.channel == channel && (pause.model.is_empty() || pause.model == model);
    let mut note = None;
    for pause in facts.pauses.iter().filter(is_of) {
        let Pause { what, class, since_ms, until_ms, .. } = pause;
        if *until_ms > now_ms {
            return Stand::Out(format!("{what}{}", out::time(what, class, *since_ms, *until_ms)));
        }
        if out::is_suspension(what) {
            let due = words::moment(*until_ms);
            note = Some(format!("{what} ({class}), and one request at a time may try it since {due}"));
        }
    }
    let path = format!("channels.{channel}.");
    let warning = facts.warnings.iter().find(|warning| {
        let quoted = format!("channel {channel}: ");
        warning.path.starts_with(&path) || warning.message.starts_with(&quoted)
    });
    match warning {
        // In the words of the node, which knows what it shows instead.
        Some(warning) if warning.message.ends_with("it is out on this node") => {
            Stand::Out(warning.message.clone())
        }
        Some(warning) => Stand::In(Some(warning.message.clone())),
        None => Stand::In(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{Finding, State};

    const NOW_MS: u64 = 1_000_000;

    fn node(facts: Facts) -> NodeView {
        let view = NodeView::of("node-a", facts, true, false, None, NOW_MS);
        NodeView { applied_revision: 7, state: State::InSync, ..view }
    }

    fn pause(channel: &str, model: &str, what: &str, until_ms: u64) -> Pause {
        Pause {
            channel: channel.to_owned(),
            model: model.to_owned(),
            what: what.to_owned(),
            class: "balance".to_owned(),
            since_ms: 0,
            until_ms,
        }
    }

    fn chain() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_first_that_is_not_out_serves_and_the_reasons_of_the_others_are_told() {
        let open = |name: &str| vec![name.to_owned()];
        let warning = |message: &str| Finding {
            path: "channels[0].credential".to_owned(),
            message: message.to_owned(),
        };
        for (facts, by, then, why) in [
            (Facts::default(), "a", "b c", ""),
            (
                Facts { open_channels: open("a"), ..Facts::default() },
                "b",
                "c",
                "a is out: its breaker is open",
            ),
            (Facts { open_channels: open("x"), ..Facts::default() }, "a", "b c", ""),
            (
                Facts { pauses: vec![pause("b", "", "suspended", NOW_MS + 1000)], ..Facts::default() },
                "a",
                "c",
                "b is out: suspended (balance), next try at 1970-01-01 00:16:41 UTC",
            ),
            (
                Facts { pauses: vec![pause("a", "m", "cooling down", NOW_MS + 1000)], ..Facts::default() },
                "b",
                "c",
                "a is out: cooling down (balance) until 1970-01-01 00:16:41 UTC",
            ),
            (
                Facts { pauses: vec![pause("a", "other", "suspended", NOW_MS + 1000)], ..Facts::default() },
                "a",
                "b c",
                "",
            ),
            (
                Facts { pauses: vec![pause("a", "", "cooling down", NOW_MS)], ..Facts::default() },
                "a",
                "b c",
                "",
            ),
            (
                Facts { pauses: vec![pause("a", "", "suspended", NOW_MS)], ..Facts::default() },
                "a",
                "b c",
                "a: suspended (balance), and one request at a time may try it since 1970-01-01 00:16:40 UTC",
            ),
            (
                Facts {
                    warnings: vec![warning("channel a: KEY is not set; it is out on this node")],
                    ..Facts::default()
                },
                "b",
                "c",
                "a is out: channel a: KEY is not set; it is out on this node",
            ),
            (
                Facts {
                    warnings: vec![warning("channel a: gone; it goes on with the last credential")],
                    ..Facts::default()
                },
                "a",
                "b c",
                "a: channel a: gone; it goes on with the last credential",
            ),
            (
                Facts { drained: true, ..Facts::default() },
                "a",
                "b c",
                "the node is leaving and takes no new requests",
            ),
        ] {
            let seen = serving(&node(facts.clone()), "m", &chain(), NOW_MS);
            let shown = (seen.by, seen.then.join(" "), seen.why.join("; "));
            assert_eq!(shown, (By::Channel(by.to_owned()), then.to_owned(), why.to_owned()), "{facts:?}");
        }
    }

    #[test]
    fn where_nobody_would_serve_it_is_said_why() {
        let all = Facts { open_channels: chain(), ..Facts::default() };
        let seen = serving(&node(all), "m", &chain(), NOW_MS);
        assert_eq!((seen.by, seen.why.len()), (By::Nobody, 3));
        assert_eq!(serving(&node(Facts::default()), "m", &[], NOW_MS).by, By::NoChain);
        let away = NodeView { connected: false, state: State::Lost, ..node(Facts::default()) };
        assert_eq!(serving(&away, "m", &chain(), NOW_MS).by, By::Away("lost"));
        let new = NodeView { applied_revision: 0, ..node(Facts::default()) };
        assert_eq!(serving(&new, "m", &chain(), NOW_MS).by, By::NoCatalog);
    }

    #[test]
    fn nodes_that_would_do_the_same_stand_together() {
        let (a, b) = (node(Facts::default()), NodeView { id: "node-b".to_owned(), ..node(Facts::default()) });
        let c = NodeView { id: "node-c".to_owned(), applied_revision: 6, ..node(Facts::default()) };
        let all = [&a, &b, &c].map(|node| (node, serving(node, "m", &chain(), NOW_MS)));
        let nodes: Vec<_> = together(all).into_iter().map(|(of, nodes)| (of.revision, nodes)).collect();
        assert_eq!(nodes, [(6, vec!["node-c"]), (7, vec!["node-a", "node-b"])]);
    }
}
