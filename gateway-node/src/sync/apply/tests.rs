//! An update is taken or refused, and either way the node serves.

use std::path::Path;

use common::clock::Clock;
use common::id::BootId;
use common::snapshot::{digest, pack};
use prost::Message as _;

use super::*;
use crate::api::Settings;
use crate::bindings::{Bindings, Lookup, Told};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::records::Records;
use crate::upstream::Connections;

mod enums;
mod secrets;

struct Node {
    dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    certificates: Arc<Certificates>,
    applier: Applier,
}

fn gateway(dir: &Path) -> Arc<Gateway> {
    let clock = Clock::manual(1);
    let boot = BootId::from(uuid::Uuid::now_v7().to_string());
    let observer = Observer::open(dir, boot, clock.clone()).unwrap();
    let (records, _) = Records::open(dir).unwrap();
    let bindings = Bindings::open(dir, clock.clone()).unwrap();
    let lookup = Lookup::new(Arc::new(|_| Box::pin(std::future::ready(Told::Unclear))));
    let connections = Connections::new();
    let observed = (observer, records);
    Gateway::new(Settings::default(), observed, (bindings, lookup), Metrics::new(), connections, clock)
}

impl Node {
    fn new() -> Self {
        Node::on(tempfile::tempdir().unwrap())
    }

    fn on(dir: tempfile::TempDir) -> Self {
        let gateway = gateway(dir.path());
        let certificates = Arc::new(Certificates::open(dir.path(), "n1").unwrap());
        let keep = Keep::open(&dir.path().join("s"), "1").unwrap();
        let applier = Applier::new(gateway.clone(), certificates.clone(), keep);
        applier.start().unwrap();
        Node { dir, gateway, certificates, applier }
    }

    fn restarted(self) -> Self {
        self.applier.end();
        Node::on(self.dir)
    }

    fn revision(&self) -> Option<u64> {
        self.gateway.tables.load().map(|table| table.revision)
    }
}

fn snapshot(revision: u64) -> pb::Snapshot {
    let timeouts = pb::Timeouts { connect_ms: 1000, headers_ms: 1000, idle_ms: 1000 };
    let route = pb::Route {
        channel: "a".into(),
        upstream_model: "m1".into(),
        gate: Some(pb::Gate { timeout_ms: 1000, until: pb::GateUntil::Content.into() }),
        timeouts: Some(timeouts),
        context_window: 0,
    };
    let chain = pb::Chain { dialect: "openai-chat".into(), routes: vec![route] };
    let channel = pb::Channel {
        id: "a".into(),
        dialects: vec!["openai-chat".into()],
        base_url: "http://127.0.0.1:9/v1".into(),
        breaker: Some(pb::Breaker { failures: 3, window_ms: 1000, cooldown_ms: 1000 }),
        ..Default::default()
    };
    let model = pb::Model { name: "m".into(), chains: vec![chain] };
    pb::Snapshot { revision, channels: vec![channel], models: vec![model], ..Default::default() }
}

fn keys(version: u64) -> pb::KeySet {
    pb::KeySet { version, keys_exist: true, keys: vec![] }
}

fn part(version: u64, message: &impl prost::Message) -> (pb::Part, Bytes) {
    let encoded = message.encode_to_vec();
    let part = pb::Part { version, sha256: digest(&encoded).to_vec() };
    (part, pack(&encoded).unwrap().into())
}

fn update(epoch: u64, catalog: Option<&pb::Snapshot>, keys: Option<&pb::KeySet>) -> pb::ConfigUpdate {
    let catalog = catalog.map(|snapshot| part(snapshot.revision, snapshot));
    let keys = keys.map(|keys| part(keys.version, keys));
    let target = pb::Target {
        epoch,
        catalog: catalog.as_ref().map(|(part, _)| part.clone()),
        keys: keys.as_ref().map(|(part, _)| part.clone()),
        live: None,
        secrets: None,
    };
    pb::ConfigUpdate {
        update_id: 5,
        target: Some(target),
        catalog_zstd: catalog.map(|(_, packed)| packed).unwrap_or_default(),
        keys_zstd: keys.map(|(_, packed)| packed).unwrap_or_default(),
        secrets_sealed: Bytes::new(),
    }
}

fn faulty(revision: u64) -> pb::Snapshot {
    let mut snapshot = snapshot(revision);
    snapshot.channels[0].base_url = "no address".into();
    snapshot.models[0].chains[0].routes[0].channel = "nowhere".into();
    snapshot
}

#[test]
fn both_parts_of_an_update_are_served_and_kept() {
    let node = Node::new();
    assert_eq!(node.revision(), None);
    let taken = node.applier.take(&update(1, Some(&snapshot(1)), Some(&keys(4))));
    assert_eq!(taken.ack.result(), pb::AckResult::Applied);
    assert_eq!(taken.ack.update_id, 5);
    let applied = taken.ack.applied.unwrap();
    assert_eq!((applied.epoch, applied.catalog.unwrap().version, applied.keys.unwrap().version), (1, 1, 4));
    let node = node.restarted();
    assert_eq!(node.revision(), Some(1));
    assert_eq!(node.applier.applied().keys.unwrap().version, 4);
}

#[test]
fn a_part_that_is_not_sent_stays_as_it_is() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), Some(&keys(1))));
    let ack = node.applier.take(&update(1, None, Some(&keys(2)))).ack;
    let applied = ack.applied.unwrap();
    assert_eq!((applied.catalog.unwrap().version, applied.keys.unwrap().version), (1, 2));
    assert_eq!(node.revision(), Some(1));
}

#[test]
fn a_faulty_catalog_is_refused_with_every_violation_and_the_node_serves_on() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    let ack = node.applier.take(&update(1, Some(&faulty(2)), None)).ack;
    assert_eq!(ack.result(), pb::AckResult::Rejected);
    let rejection = &ack.rejected[0];
    assert_eq!((rejection.kind(), rejection.part.as_ref().unwrap().version), (pb::PartKind::Catalog, 2));
    let paths: Vec<_> = rejection.violations.iter().map(|v| v.path.as_str()).collect();
    assert!(paths.contains(&"channels[0].base_url"), "{paths:?}");
    assert_eq!(ack.applied.unwrap().catalog.unwrap().version, 1);
    assert_eq!(node.revision(), Some(1));
    assert_eq!(node.restarted().revision(), Some(1));
}

#[test]
fn an_unknown_enum_value_is_a_violation() {
    let node = Node::new();
    let mut newer = snapshot(1);
    newer.models[0].chains[0].routes[0].gate.as_mut().unwrap().until = 77;
    let ack = node.applier.take(&update(1, Some(&newer), None)).ack;
    assert_eq!(ack.result(), pb::AckResult::Rejected);
    assert!(ack.rejected[0].violations[0].path.contains("gate.until"), "{:?}", ack.rejected);
}

#[test]
fn a_refused_content_is_remembered_and_said_in_the_next_hello() {
    let node = Node::new();
    let first = node.applier.take(&update(1, Some(&faulty(2)), None)).ack;
    let again = node.applier.take(&update(1, Some(&faulty(2)), None)).ack;
    assert_eq!(first.rejected, again.rejected);
    assert_eq!(node.applier.refused(), first.rejected);
}

#[test]
fn a_faulty_catalog_does_not_hold_back_a_revoked_key() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), Some(&keys(1))));
    let ack = node.applier.take(&update(1, Some(&faulty(2)), Some(&keys(2)))).ack;
    assert_eq!((ack.result(), ack.rejected.len()), (pb::AckResult::Rejected, 1));
    let applied = ack.applied.unwrap();
    assert_eq!((applied.catalog.unwrap().version, applied.keys.unwrap().version), (1, 2));
}

#[test]
fn fr_011_a_lower_revision_of_the_same_epoch_is_refused_and_a_higher_epoch_is_obeyed() {
    let node = Node::new();
    node.applier.take(&update(5, Some(&snapshot(42)), Some(&keys(9))));
    for (epoch, revision) in [(5, 41), (4, 43)] {
        let ack = node.applier.take(&update(epoch, Some(&snapshot(revision)), None)).ack;
        assert_eq!(ack.result(), pb::AckResult::Rejected, "epoch {epoch} revision {revision}");
        assert_eq!(node.revision(), Some(42));
    }
    let stale_keys = node.applier.take(&update(5, None, Some(&keys(8)))).ack;
    assert_eq!(stale_keys.result(), pb::AckResult::Rejected);
    assert_eq!(node.applier.refused(), [], "the contents may be good another time");
    let ack = node.applier.take(&update(6, Some(&snapshot(3)), Some(&keys(1)))).ack;
    assert_eq!((ack.result(), node.revision()), (pb::AckResult::Applied, Some(3)));
    assert_eq!(node.restarted().applier.applied().epoch, 6);
}

#[test]
fn what_is_not_what_its_digest_or_its_envelope_says_is_refused() {
    let node = Node::new();
    let mut other_digest = update(1, Some(&snapshot(1)), None);
    other_digest.target.as_mut().unwrap().catalog.as_mut().unwrap().sha256[0] ^= 1;
    let mut other_version = update(1, Some(&snapshot(1)), None);
    other_version.target.as_mut().unwrap().catalog.as_mut().unwrap().version = 2;
    let mut no_target = update(1, Some(&snapshot(1)), None);
    no_target.target = None;
    let (part, packed) = part(1, &"no snapshot".to_owned());
    let mut no_snapshot = update(1, Some(&snapshot(1)), None);
    no_snapshot.target.as_mut().unwrap().catalog = Some(part);
    no_snapshot.catalog_zstd = packed;
    for update in [other_digest, other_version, no_target, no_snapshot] {
        assert_eq!(node.applier.take(&update).ack.result(), pb::AckResult::Rejected, "{update:?}");
        assert_eq!(node.revision(), None);
    }
    assert_eq!(node.applier.take(&update(1, Some(&snapshot(1)), None)).ack.result(), pb::AckResult::Applied);
}

#[test]
fn fr_001_what_cannot_be_kept_is_not_served() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    // A folder in its place makes writing the candidate fail, also for root.
    std::fs::create_dir_all(node.dir.path().join("s/catalog.candidate.tmp")).unwrap();
    let taken = node.applier.take(&update(1, Some(&snapshot(2)), None));
    assert!(taken.is_worth_a_retry);
    assert_eq!((taken.ack.result(), node.revision()), (pb::AckResult::Rejected, Some(1)));
    assert_eq!(node.applier.refused(), [], "the content is not at fault");
    std::fs::remove_dir(node.dir.path().join("s/catalog.candidate.tmp")).unwrap();
    assert_eq!(node.applier.take(&update(1, Some(&snapshot(2)), None)).ack.result(), pb::AckResult::Applied);
}

#[test]
fn fr_003_a_kept_catalog_that_this_version_cannot_use_gives_way_to_the_one_before() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    let keep = Keep::open(&node.dir.path().join("s"), "1").unwrap();
    let unusable = Kept::new(1, 2, faulty(2).encode_to_vec());
    keep.candidate(Kind::Catalog, &unusable).unwrap();
    keep.promote(Kind::Catalog).unwrap();
    assert_eq!(node.restarted().revision(), Some(1));
}

#[test]
fn a_quarantined_catalog_is_not_taken_again() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    node.applier.take(&update(1, Some(&snapshot(2)), None));
    // Killed twice: no intended end.
    let node = Node::on(Node::on(node.dir).dir);
    assert_eq!(node.revision(), Some(1));
    assert_eq!(node.applier.quarantined()[0].part.as_ref().unwrap().version, 2);
    let ack = node.applier.take(&update(1, Some(&snapshot(2)), None)).ack;
    assert_eq!(ack.result(), pb::AckResult::Rejected);
    assert_eq!(node.applier.take(&update(1, Some(&snapshot(3)), None)).ack.result(), pb::AckResult::Applied);
}

#[test]
fn an_update_that_broke_the_taking_is_refused_for_good() {
    let node = Node::new();
    let update = update(1, Some(&snapshot(1)), None);
    let ack = node.applier.broke_down(update.update_id, update.target.clone()).ack;
    assert_eq!((ack.result(), ack.rejected.len()), (pb::AckResult::Rejected, 1));
    assert_eq!(node.applier.take(&update).ack.result(), pb::AckResult::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_is_served_for_a_minute_is_cleared_of_suspicion() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    node.applier.take(&update(1, Some(&snapshot(2)), None));
    let dir = node.dir;
    let applier = Arc::new(node.applier);
    let stop = CancellationToken::new();
    let settling = applier.clone().settle(stop.clone());
    let waiting = async {
        let is_fresh =
            || std::fs::read_to_string(dir.path().join("s/marks.json")).unwrap().contains("\"fresh\":{");
        tokio::time::sleep(QUARANTINE_WITHIN - std::time::Duration::from_millis(1)).await;
        assert!(is_fresh());
        for _ in 0..10_000 {
            if !is_fresh() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(!is_fresh());
        stop.cancel();
    };
    tokio::join!(settling, waiting);
}

fn probe(snapshot: &pb::Snapshot) -> pb::ProbeRequest {
    let (part, catalog_zstd) = part(snapshot.revision, snapshot);
    pb::ProbeRequest { probe_id: 3, catalog: Some(part), catalog_zstd }
}

#[test]
fn a_probe_says_what_would_become_of_a_catalog_and_changes_nothing() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), Some(&keys(1))));
    let (applied, metrics) = (node.applier.applied(), node.gateway.metrics.render());
    let mut other = snapshot(2);
    other.channels[0].credential = "env:SLUICE_TEST_NO_SUCH_VARIABLE".into();
    other.channels[0].id = "b".into();
    other.models[0].chains[0].routes[0].channel = "b".into();
    let good = node.applier.probe(&probe(&other));
    assert_eq!((good.probe_id, good.violations.len(), good.warnings.len()), (3, 0, 1), "{good:?}");
    let bad = node.applier.probe(&probe(&faulty(3)));
    assert!(bad.violations.iter().any(|v| v.path == "channels[0].base_url"), "{bad:?}");
    let torn = pb::ProbeRequest { catalog_zstd: Bytes::from_static(b"x"), ..probe(&snapshot(4)) };
    assert_eq!(node.applier.probe(&torn).violations.len(), 1);

    assert_eq!((node.applier.applied(), node.revision()), (applied, Some(1)));
    assert_eq!(node.gateway.metrics.render(), metrics);
    assert_eq!(node.applier.refused(), [], "a refused probe is no refused update");
    // It is taken like any other when it is sent.
    assert_eq!(node.applier.take(&update(1, Some(&other), None)).ack.result(), pb::AckResult::Applied);
}

#[test]
fn what_was_put_aside_is_taken_again_after_a_retry() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    let mut node = node.restarted();
    node.applier.take(&update(1, Some(&snapshot(2)), None));
    for _ in 0..common::limits::QUARANTINE_CRASHES {
        // As after a crash: without the marks of an intended end.
        node = Node::on(node.dir);
    }
    assert_eq!(node.applier.quarantined().len(), 1);
    assert_eq!(node.revision(), Some(1));
    let refused = node.applier.take(&update(1, Some(&snapshot(2)), None)).ack;
    assert_eq!(refused.result(), pb::AckResult::Rejected);
    assert_eq!(node.applier.probe(&probe(&snapshot(2))).violations.len(), 1);
    node.applier.forgive();
    assert_eq!((node.applier.quarantined(), node.applier.refused()), (vec![], vec![]));
    let taken = node.applier.take(&update(1, Some(&snapshot(2)), None)).ack;
    assert_eq!((taken.result(), node.revision()), (pb::AckResult::Applied, Some(2)));
}

#[test]
fn what_was_refused_for_good_is_known_after_a_restart_and_not_to_another_binary() {
    let node = Node::new();
    node.applier.take(&update(1, Some(&snapshot(1)), None));
    node.applier.take(&update(1, Some(&faulty(2)), None));
    let refused = node.applier.refused();
    assert_eq!(refused.len(), 1);
    let node = Node::on(node.dir);
    assert_eq!(node.applier.refused(), refused, "also where it was killed");
    let ack = node.applier.take(&update(1, Some(&faulty(2)), None)).ack;
    assert_eq!((ack.result(), node.applier.refused()), (pb::AckResult::Rejected, refused));
    let keep = Keep::open(&node.dir.path().join("s"), "2").unwrap();
    assert_eq!(Applier::new(node.gateway.clone(), node.certificates.clone(), keep).refused(), []);
}

#[test]
fn what_is_left_of_an_epoch_that_is_over_is_served_and_is_nothing_of_the_new_one() {
    let node = Node::new();
    node.applier.take(&update(5, Some(&snapshot(3)), Some(&keys(1))));
    node.applier.take(&update(6, Some(&faulty(1)), Some(&keys(1))));
    let applied = node.applier.applied();
    assert_eq!((applied.epoch, applied.catalog, node.revision()), (6, None, Some(3)));
    assert!(applied.keys.is_some());
}
