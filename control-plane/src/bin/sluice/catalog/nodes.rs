//! What nodes say of a revision before it is theirs: which of them lack what it needs.

use std::io;

use serde::Serialize;

use common::pb::admin as pb;

use crate::args::Format;
use crate::output::{Output, cell, plural, table};

/// A node that is not given a revision, for programs.
#[derive(Serialize)]
pub struct IncompatibleJson<'a> {
    node: &'a str,
    version: &'a str,
    lacks: &'a [String],
}

/// Nodes that are not given a revision, for programs.
pub fn incompatible_json(nodes: &[pb::IncompatibleNode]) -> Vec<IncompatibleJson<'_>> {
    nodes.iter().map(IncompatibleJson::of).collect()
}

impl<'a> IncompatibleJson<'a> {
    fn of(node: &'a pb::IncompatibleNode) -> Self {
        IncompatibleJson { node: &node.node_id, version: &node.version, lacks: &node.lacks }
    }
}

/// Warns of nodes that are not given a revision.
pub fn warn_incompatible(nodes: &[pb::IncompatibleNode], output: &mut Output) -> io::Result<()> {
    if nodes.is_empty() || output.format() == Format::Json {
        return Ok(());
    }
    output.text(&incompatible(nodes))
}

fn incompatible(nodes: &[pb::IncompatibleNode]) -> String {
    let rows =
        nodes.iter().map(|node| vec![cell(&node.node_id), cell(&node.version), cell(node.lacks.join(", "))]);
    let count = plural(nodes.len(), "node lacks", "nodes lack");
    format!(
        "{count} what this needs, and {} what {} until updated:\n{}",
        if nodes.len() == 1 { "serves" } else { "serve" },
        if nodes.len() == 1 { "it has" } else { "they have" },
        table(&["NODE", "VERSION", "LACKS"], rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn a_node_that_lacks_something_is_named_with_what_it_lacks() {
        let lacks = vec!["gate-complete".to_owned(), "tls-ca".to_owned()];
        let node = pb::IncompatibleNode { node_id: "node-a".into(), version: "0.0.9".into(), lacks };
        let want = "\
1 node lacks what this needs, and serves what it has until updated:
NODE    VERSION  LACKS
node-a  0.0.9    gate-complete, tls-ca
";
        assert_eq!(plain(&incompatible(&[node])), want);
    }
}
