//! What a node says of itself, what follows from it, and how the store keeps it. Pure.

use common::feature::{self, Features, Needs};
use common::label::Labels;
use common::pb::fleet as pb;
use serde::{Deserialize, Serialize};

use super::State;
use crate::revision::encoded::Part;
use crate::store::rows;

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its process.
    pub boot_id: String,
    /// Its program's version.
    pub version: String,
    /// By what operators choose it.
    pub labels: Labels,
    /// The highest schema of snapshots that it knows; 0 for a node that did not say.
    pub schema: u32,
    /// The features that it knows.
    pub features: Features,
    /// Whether it shows a certificate of its own, and one that can be sealed for.
    pub is_certified: bool,
    /// Where callers reach it.
    pub data_address: String,
    /// Where operators reach it.
    pub ops_address: String,
    /// What it runs.
    pub applied: Applied,
    /// Contents that it refused.
    pub rejected: Vec<Rejected>,
    /// Contents that it put aside after it died on them.
    pub quarantined: Vec<Quarantined>,
    /// What works but wants a person.
    pub warnings: Vec<Finding>,
    /// Channels with an open breaker.
    pub open_channels: Vec<String>,
    /// What is out for another reason.
    pub pauses: Vec<Pause>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Whether it left on purpose.
    pub drained: bool,
}

/// What a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    /// The epoch that the versions belong to.
    pub epoch: u64,
    /// The catalog that it serves.
    pub catalog: Option<Part>,
    /// The key list that it knows.
    pub keys: Option<Part>,
    /// The secrets that it holds.
    pub secrets: Option<Part>,
}

impl Applied {
    /// Whether this content is among it.
    pub fn runs(&self, part: Part) -> bool {
        [self.catalog, self.keys, self.secrets].contains(&Some(part))
    }
}

impl From<Applied> for pb::Target {
    fn from(applied: Applied) -> Self {
        pb::Target {
            epoch: applied.epoch,
            catalog: applied.catalog.map(Into::into),
            keys: applied.keys.map(Into::into),
            live: None,
            secrets: applied.secrets.map(Into::into),
        }
    }
}

/// A content that a node refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The content.
    pub part: Part,
    /// Why.
    pub violations: Vec<Finding>,
}

/// A content that a node put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The content.
    pub part: Part,
    /// How often the process died on it.
    pub crashes: u32,
}

/// What is wrong and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// In the words of the snapshot.
    pub path: String,
    /// In words for people.
    pub message: String,
}

/// A channel, or its route of one model, that is out on a node for another reason than an open breaker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pause {
    /// The channel.
    pub channel: String,
    /// The model; empty where all of the channel is out.
    pub model: String,
    /// What of it, in words for people.
    pub what: String,
    /// The class of the failure that led to it; may be empty.
    pub class: String,
    /// When it began, by the node's clock; 0 where it is not known.
    pub since_ms: u64,
    /// When it ends, or when the first request may try.
    pub until_ms: u64,
}

/// How the store keeps what has no column of its own.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Findings {
    config_since_ms: u64,
    labels: Labels,
    schema: u32,
    features: Features,
    is_certified: bool,
    applied: Applied,
    rejected: Vec<Rejected>,
    quarantined: Vec<Quarantined>,
    warnings: Vec<Finding>,
    open_channels: Vec<String>,
    pauses: Vec<Pause>,
    in_flight: u64,
}

impl Facts {
    /// What the store remembers of a node. What cannot be read is forgotten: the node will say it again.
    pub fn from_row(row: &rows::Node) -> Self {
        let findings: Findings = serde_json::from_str(&row.findings).unwrap_or_default();
        Facts {
            boot_id: row.boot_id.clone(),
            version: row.version.clone(),
            labels: findings.labels,
            schema: findings.schema,
            features: findings.features,
            is_certified: findings.is_certified,
            data_address: row.data_address.clone(),
            ops_address: row.ops_address.clone(),
            applied: findings.applied,
            rejected: findings.rejected,
            quarantined: findings.quarantined,
            warnings: findings.warnings,
            open_channels: findings.open_channels,
            pauses: findings.pauses,
            in_flight: findings.in_flight,
            drained: row.drained,
        }
    }

    /// The other way.
    pub fn to_row(&self, id: &str, last_seen_at_ms: u64, config_since_ms: u64) -> rows::Node {
        let findings = Findings {
            config_since_ms,
            labels: self.labels.clone(),
            schema: self.schema,
            features: self.features.clone(),
            is_certified: self.is_certified,
            applied: self.applied,
            rejected: self.rejected.clone(),
            quarantined: self.quarantined.clone(),
            warnings: self.warnings.clone(),
            open_channels: self.open_channels.clone(),
            pauses: self.pauses.clone(),
            in_flight: self.in_flight,
        };
        rows::Node {
            id: id.to_owned(),
            boot_id: self.boot_id.clone(),
            version: self.version.clone(),
            data_address: self.data_address.clone(),
            ops_address: self.ops_address.clone(),
            applied_epoch: self.applied.epoch,
            applied_revision: self.applied.catalog.map_or(0, |part| part.version),
            findings: serde_json::to_string(&findings).unwrap_or_default(),
            drained: self.drained,
            last_seen_at_ms,
            ..rows::Node::default()
        }
    }

    /// What it lacks to serve a content as it is meant, by name. What it did not say is not held against it.
    pub fn lacks(&self, needs: &Needs) -> Vec<String> {
        if self.schema == 0 { Vec::new() } else { needs.lacking(self.schema, &self.features) }
    }

    /// Whether secrets are sent to it.
    pub fn takes_secrets(&self) -> bool {
        self.is_certified && self.features.contains(feature::SECRETS)
    }

    /// Why a node does not take a content that it was given, if it does not.
    pub fn refusal(&self, part: Part) -> Option<String> {
        if let Some(quarantined) = self.quarantined.iter().find(|quarantined| quarantined.part == part) {
            return Some(format!("put it aside: its process died on it {} times", quarantined.crashes));
        }
        let rejected = self.rejected.iter().find(|rejected| rejected.part == part)?;
        let why = rejected.violations.first();
        Some(why.map_or_else(
            || "refused it".to_owned(),
            |finding| match finding.path.as_str() {
                "" => format!("refused it: {}", finding.message),
                path => format!("refused it: {path}: {}", finding.message),
            },
        ))
    }

    /// Whether more changed than how many requests are in flight.
    pub fn is_worth_keeping(&self, newer: &Facts) -> bool {
        let lasting = |facts: &Facts| Facts { in_flight: 0, ..facts.clone() };
        lasting(self) != lasting(newer)
    }
}

/// Since when the catalog that a node runs is known to run there; 0 where the store does not say.
pub fn config_since_ms(row: &rows::Node) -> u64 {
    serde_json::from_str::<Findings>(&row.findings).map_or(0, |findings| findings.config_since_ms)
}

/// The state that follows from what a node says of itself, from what it should run, and from whether it lacks something
/// for that.
pub fn state(
    facts: &Facts,
    is_connected: bool,
    is_lost: bool,
    aim: Option<&Applied>,
    is_lacking: bool,
) -> State {
    if !is_connected && facts.drained {
        return State::Drained;
    }
    if is_lost {
        return State::Lost;
    }
    let Some(aim) = aim else { return State::Behind };
    if facts.applied == *aim {
        State::InSync
    } else if facts.rejected.iter().any(|rejected| aim.runs(rejected.part)) {
        State::Rejected
    } else if facts.quarantined.iter().any(|quarantined| aim.runs(quarantined.part)) {
        State::Quarantined
    } else if is_lacking {
        State::Incompatible
    } else {
        State::Behind
    }
}
