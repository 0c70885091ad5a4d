//! A value of an enum that this version does not know is a violation, never a default: in every field of a snapshot
//! that has one, as the descriptor of `snapshot.proto` lists them.

use prost_types::field_descriptor_proto::Type;

use super::*;

type Set = fn(&mut pb::Snapshot, i32);

fn auth(snapshot: &mut pb::Snapshot, place: i32) {
    let channel = &mut snapshot.channels[0];
    channel.auth = Some(pb::Auth { place, name: "x".into(), prefix: String::new() });
}

fn limits(snapshot: &mut pb::Snapshot, limits: i32) {
    snapshot.channels[0].limits = limits;
}

fn until(snapshot: &mut pb::Snapshot, until: i32) {
    snapshot.models[0].chains[0].routes[0].gate = Some(pb::Gate { timeout_ms: 1000, until });
}

/// Each field with how it is set, where it is found, and whether nothing is a value of it.
const FIELDS: [(&str, Set, &str, bool); 3] = [
    ("Auth.place", auth, "channels[0].auth", false),
    ("Channel.limits", limits, "channels[0].limits", true),
    ("Gate.until", until, "models[0].chains[0].routes[0].gate.until", false),
];

fn fields_of_the_descriptor() -> Vec<String> {
    let set = prost_types::FileDescriptorSet::decode(common::pb::FILE_DESCRIPTOR_SET).unwrap();
    let file = set.file.iter().find(|file| file.name().ends_with("fleet/v1/snapshot.proto")).unwrap();
    let mut fields: Vec<String> = file
        .message_type
        .iter()
        .inspect(|message| assert!(message.nested_type.is_empty(), "look into {} as well", message.name()))
        .flat_map(|message| message.field.iter().map(move |field| (message, field)))
        .filter(|(_, field)| field.r#type() == Type::Enum)
        .map(|(message, field)| format!("{}.{}", message.name(), field.name()))
        .collect();
    fields.sort();
    fields
}

#[test]
fn every_enum_of_a_snapshot_is_known_or_a_violation_that_says_where() {
    assert_eq!(FIELDS.map(|(name, ..)| name).to_vec(), fields_of_the_descriptor());
    for (name, set, path, may_be_nothing) in FIELDS {
        for value in [99, -1, 0] {
            let node = Node::new();
            let mut snapshot = snapshot(1);
            set(&mut snapshot, value);
            let ack = node.applier.take(&update(1, Some(&snapshot), None)).ack;
            let is_lawful = value == 0 && may_be_nothing;
            assert_eq!(ack.result() == pb::AckResult::Applied, is_lawful, "{name} = {value}: {ack:?}");
            assert_eq!(node.revision(), is_lawful.then_some(1), "{name} = {value}");
            if !is_lawful {
                let violations = &ack.rejected[0].violations;
                assert!(violations.iter().any(|v| v.path == path), "{name} = {value}: {violations:?}");
            }
        }
    }
}

#[test]
fn a_snapshot_that_needs_what_this_version_does_not_know_is_refused_by_name() {
    let node = Node::new();
    let needs = pb::Snapshot { features: vec!["auth".into(), "telepathy".into()], ..snapshot(1) };
    let ack = node.applier.take(&update(1, Some(&needs), None)).ack;
    assert_eq!(ack.rejected[0].violations[0].path, "features[1]");
    let higher = pb::Snapshot { schema: common::limits::SNAPSHOT_SCHEMA + 1, ..snapshot(1) };
    let ack = node.applier.take(&update(1, Some(&higher), None)).ack;
    assert_eq!(ack.rejected[0].violations[0].path, "schema");
    assert_eq!(node.revision(), None);
}
