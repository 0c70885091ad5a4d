//! What a snapshot asks of the node that serves it, by name. A node skips the fields of a later version that it does
//! not know, so what changes how requests are served has a name here: a snapshot lists what it needs, a node says in its
//! Hello what it knows, and a node that lacks something is not given that snapshot. Pure.

use std::collections::BTreeSet;

use prost::Message;

use crate::dialect::Dialect;
use crate::limits::SNAPSHOT_SCHEMA;
use crate::pb::fleet as pb;

/// Names of features.
pub type Features = BTreeSet<String>;

/// A channel says how its credential is shown.
const AUTH: &str = "auth";
/// A channel says where its operations lie.
const PATHS: &str = "paths";
/// A channel says what its errors mean.
const OVERRIDES: &str = "overrides";
/// Rate limits of a channel are the account's.
const LIMITS_CHANNEL: &str = "limits-channel";
/// Streams are asked for their usage.
const INCLUDE_USAGE: &str = "include-usage";
/// A channel has an authority of its own.
const TLS_CA: &str = "tls-ca";
/// A stream is held to its end.
const GATE_COMPLETE: &str = "gate-complete";
/// A route says how much it takes.
const CONTEXT_WINDOW: &str = "context-window";

/// A channel names a secret of the control plane. Who knows it takes the secrets that it is sent, too.
pub const SECRETS: &str = "secrets";
/// Not of snapshots: the node says what it would make of a catalog.
pub const PROBE: &str = "probe";
/// Not of snapshots: the node leaves when it is told to.
pub const LEAVE: &str = "leave";
/// Not of snapshots: the node ends its quarantines when it is told to.
pub const RETRY: &str = "retry";

/// Every feature that nodes of this version know, the dialects among them.
pub fn known() -> Features {
    let own = [
        AUTH,
        PATHS,
        OVERRIDES,
        LIMITS_CHANNEL,
        INCLUDE_USAGE,
        TLS_CA,
        GATE_COMPLETE,
        CONTEXT_WINDOW,
        SECRETS,
    ];
    let protocol = [PROBE, LEAVE, RETRY];
    own.into_iter().chain(protocol).map(str::to_owned).chain(Dialect::ALL.map(of_dialect)).collect()
}

fn of_dialect(dialect: Dialect) -> String {
    dialect_feature(dialect.as_str())
}

fn dialect_feature(name: &str) -> String {
    format!("dialect-{name}")
}

/// What a snapshot needs.
pub fn needed(snapshot: &pb::Snapshot) -> Features {
    let mut needed = Features::new();
    for channel in &snapshot.channels {
        needed.extend(channel.dialects.iter().map(|name| dialect_feature(name)));
        let own = [
            (AUTH, channel.auth.is_some()),
            (PATHS, !channel.paths.is_empty()),
            (OVERRIDES, !channel.overrides.is_empty()),
            (LIMITS_CHANNEL, channel.limits() == pb::Limits::Channel),
            (INCLUDE_USAGE, channel.include_usage),
            (TLS_CA, !channel.tls_ca_file.is_empty()),
            (SECRETS, channel.credential.starts_with("secret:")),
        ];
        needed.extend(own.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name.to_owned()));
    }
    let chains = snapshot.models.iter().flat_map(|model| &model.chains);
    for route in chains.flat_map(|chain| &chain.routes) {
        let holds = route.gate.as_ref().is_some_and(|gate| gate.until() == pb::GateUntil::Complete);
        let own = [(GATE_COMPLETE, holds), (CONTEXT_WINDOW, route.context_window > 0)];
        needed.extend(own.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name.to_owned()));
    }
    needed
}

/// What a content needs of a node, as the content itself says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The lowest schema that reads it.
    pub schema: u32,
    /// The features that it uses.
    pub features: Features,
}

/// The fields of a `Snapshot` that say it; the others are skipped.
#[derive(Clone, PartialEq, Message)]
struct Head {
    #[prost(uint32, tag = "4")]
    schema: u32,
    #[prost(string, repeated, tag = "5")]
    features: Vec<String>,
}

impl Needs {
    /// Those of an encoded snapshot. One of before features were named needs none.
    pub fn of(encoded: &[u8]) -> Result<Self, prost::DecodeError> {
        let Head { schema, features } = Head::decode(encoded)?;
        Ok(Needs { schema, features: features.into_iter().collect() })
    }

    /// What a node of a schema and of some features lacks, in words.
    pub fn lacking(&self, schema: u32, known: &Features) -> Vec<String> {
        let schema = (self.schema > schema).then(|| format!("schema {}", self.schema));
        schema.into_iter().chain(self.features.difference(known).cloned()).collect()
    }
}

/// What of a snapshot this version of a node does not know.
pub fn unknown(snapshot: &pb::Snapshot) -> Vec<pb::Violation> {
    let known = known();
    let schema = (snapshot.schema > SNAPSHOT_SCHEMA).then(|| pb::Violation {
        path: "schema".to_owned(),
        message: format!("{} is higher than {SNAPSHOT_SCHEMA}, which this node knows", snapshot.schema),
    });
    let features = snapshot.features.iter().enumerate();
    let unknown = features.filter(|(_, name)| !known.contains(*name)).map(|(index, name)| pb::Violation {
        path: format!("features[{index}]"),
        message: format!("{name:?} is not known to this version of the node"),
    });
    schema.into_iter().chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(names: &[&str]) -> Features {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn snapshot(channel: pb::Channel, route: pb::Route) -> pb::Snapshot {
        let chain = pb::Chain { routes: vec![route], ..Default::default() };
        let model = pb::Model { chains: vec![chain], ..Default::default() };
        pb::Snapshot { channels: vec![channel], models: vec![model], ..Default::default() }
    }

    #[test]
    fn a_snapshot_needs_what_it_uses_and_each_of_it_is_known() {
        let plain = pb::Channel { dialects: vec!["openai-chat".into()], ..Default::default() };
        let route = pb::Route::default();
        let only_the_dialect = features(&["dialect-openai-chat"]);
        assert_eq!(needed(&snapshot(plain.clone(), route.clone())), only_the_dialect);
        let gate = pb::Gate { timeout_ms: 1, until: pb::GateUntil::Complete.into() };
        let uses = [
            ("auth", pb::Channel { auth: Some(pb::Auth::default()), ..plain.clone() }, route.clone()),
            ("paths", pb::Channel { paths: vec![pb::Path::default()], ..plain.clone() }, route.clone()),
            (
                "overrides",
                pb::Channel { overrides: vec![pb::Override::default()], ..plain.clone() },
                route.clone(),
            ),
            (
                "limits-channel",
                pb::Channel { limits: pb::Limits::Channel.into(), ..plain.clone() },
                route.clone(),
            ),
            ("include-usage", pb::Channel { include_usage: true, ..plain.clone() }, route.clone()),
            ("tls-ca", pb::Channel { tls_ca_file: "f".into(), ..plain.clone() }, route.clone()),
            ("gate-complete", plain.clone(), pb::Route { gate: Some(gate), ..route.clone() }),
            ("context-window", plain.clone(), pb::Route { context_window: 1, ..route.clone() }),
        ];
        for (name, channel, route) in uses {
            assert_eq!(needed(&snapshot(channel, route)), features(&["dialect-openai-chat", name]), "{name}");
            assert!(known().contains(name), "{name}");
        }
        let secret = pb::Channel { credential: "secret:a".into(), ..plain };
        assert_eq!(needed(&snapshot(secret, route)), features(&["dialect-openai-chat", "secrets"]));
        assert!(known().contains("secrets"));
        for dialect in Dialect::ALL {
            assert!(known().contains(&format!("dialect-{dialect}")), "{dialect}");
        }
    }

    #[test]
    fn what_a_node_lacks_is_told_by_name() {
        let needs = Needs { schema: 2, features: features(&["a", "b"]) };
        assert_eq!(needs.lacking(2, &features(&["a", "b", "c"])), Vec::<String>::new());
        assert_eq!(needs.lacking(1, &features(&["a"])), ["schema 2", "b"]);
        let encoded =
            pb::Snapshot { schema: 2, features: vec!["a".into(), "b".into()], ..Default::default() };
        assert_eq!(Needs::of(&encoded.encode_to_vec()).unwrap(), needs);
        let before = pb::Snapshot { revision: 7, ..snapshot(Default::default(), Default::default()) };
        assert_eq!(Needs::of(&before.encode_to_vec()).unwrap(), Needs::default());
    }

    #[test]
    fn a_snapshot_of_a_later_version_is_told_apart_by_what_it_needs() {
        let mut snapshot = pb::Snapshot { schema: SNAPSHOT_SCHEMA, ..Default::default() };
        snapshot.features = vec!["auth".into(), "telepathy".into()];
        let [one] = &unknown(&snapshot)[..] else { panic!("{:?}", unknown(&snapshot)) };
        assert_eq!(one.path, "features[1]");
        snapshot.schema += 1;
        assert_eq!(unknown(&snapshot)[0].path, "schema");
        assert_eq!(unknown(&pb::Snapshot::default()), []);
    }
}
