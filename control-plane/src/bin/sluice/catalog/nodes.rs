//! What nodes say of a revision before it is theirs: which of them lack what it needs, and what those say that tried it.

use std::io;

use serde::Serialize;

use common::pb::admin as pb;

use super::document::{FindingJson, findings};
use crate::args::Format;
use crate::output::{Output, cell, clean, plural, table};

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

/// What a node said that tried a document, for programs.
#[derive(Serialize)]
pub struct ProbeJson<'a> {
    node: &'a str,
    version: &'a str,
    result: &'static str,
    violations: Vec<FindingJson<'a>>,
    warnings: Vec<FindingJson<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    not_tried: &'a str,
}

impl<'a> ProbeJson<'a> {
    fn of(probe: &'a pb::NodeProbe) -> Self {
        ProbeJson {
            node: &probe.node_id,
            version: &probe.version,
            result: result(probe),
            violations: findings(&probe.violations),
            warnings: findings(&probe.warnings),
            not_tried: &probe.not_tried,
        }
    }
}

/// What the nodes said that tried a document, for programs.
pub fn probes_json(probes: &[pb::NodeProbe]) -> Vec<ProbeJson<'_>> {
    probes.iter().map(ProbeJson::of).collect()
}

/// Whether some node would refuse it.
pub fn is_refused(probes: &[pb::NodeProbe]) -> bool {
    probes.iter().any(|probe| !probe.violations.is_empty())
}

fn result(probe: &pb::NodeProbe) -> &'static str {
    if !probe.not_tried.is_empty() {
        "not_tried"
    } else if probe.violations.is_empty() {
        "accepted"
    } else {
        "refused"
    }
}

/// What the nodes said of which `asked` were to be asked, as people read it.
pub fn probed(probes: &[pb::NodeProbe], asked: u32) -> String {
    let rows =
        probes.iter().map(|probe| vec![cell(&probe.node_id), cell(&probe.version), cell(result(probe))]);
    let mut text = if probes.is_empty() { String::new() } else { table(&["NODE", "VERSION", "PROBE"], rows) };
    for probe in probes {
        let node = clean(&probe.node_id);
        for (kind, findings) in [("refuses", &probe.violations), ("warns", &probe.warnings)] {
            for finding in findings {
                let path = clean(&finding.path);
                let colon = if path.is_empty() { "" } else { ": " };
                text += &format!("{node} {kind}: {path}{colon}{}\n", clean(&finding.message));
            }
        }
        if !probe.not_tried.is_empty() {
            text += &format!("{node} did not try it: {}\n", clean(&probe.not_tried));
        }
    }
    if probes.len() < asked as usize {
        text += &format!("{} of {asked} nodes could be asked\n", probes.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::plain;

    #[test]
    fn what_each_node_says_of_a_document_is_told_with_its_reasons() {
        let violation = pb::Finding { path: "channels[0].tls.ca".into(), line: 0, message: "no file".into() };
        let well = pb::NodeProbe { node_id: "a".into(), version: "1".into(), ..Default::default() };
        let refusing = pb::NodeProbe { node_id: "b".into(), violations: vec![violation], ..well.clone() };
        let silent = pb::NodeProbe { node_id: "c".into(), not_tried: "too late".into(), ..well.clone() };
        let probes = [well, refusing, silent];
        let want = "\
NODE  VERSION  PROBE
a     1        accepted
b     1        refused
c     1        not_tried
b refuses: channels[0].tls.ca: no file
c did not try it: too late
3 of 4 nodes could be asked
";
        assert_eq!(plain(&probed(&probes, 4)), want);
        assert!(is_refused(&probes) && !is_refused(&probes[..1]) && !is_refused(&probes[2..]));
        assert_eq!(probed(&[], 1), "0 of 1 nodes could be asked\n");
    }

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
