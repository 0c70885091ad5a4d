//! Secrets and files with credentials: what a channel shows follows them, without a new revision.

use common::certificate::node_uri;
use common::hpke::OpeningKey;
use common::sealed::{self, Secrets};
use common::secret::Secret;

use super::*;

/// A node with a certificate, as one that has enrolled.
fn enrolled() -> Node {
    let node = Node::new();
    enrol(&node.certificates);
    node
}

fn enrol(certificates: &Certificates) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.subject_alt_names = vec![rcgen::SanType::URI(node_uri("n1").try_into().unwrap())];
    let certificate_pem = params.self_signed(&key).unwrap().pem();
    let given = pb::NodeCertificate { authorities_pem: certificate_pem.clone(), certificate_pem };
    certificates.keep(&key, given).unwrap();
}

/// A catalog whose one channel has this credential.
fn naming(revision: u64, credential: &str) -> pb::Snapshot {
    let mut snapshot = snapshot(revision);
    snapshot.channels[0].credential = credential.into();
    snapshot
}

fn sealed_for(key: &OpeningKey, version: u64, value: &str) -> (pb::Part, Bytes) {
    let secrets = Secrets::from([("s".to_owned(), Secret::parse(value).unwrap())]);
    let sha256 = [version as u8; 32];
    let sealed = sealed::seal(&key.recipient(), "n1", version, &sha256, &secrets).unwrap();
    (pb::Part { version, sha256: sha256.to_vec() }, sealed.encode_to_vec().into())
}

impl Node {
    /// An update with the secret `s`, sealed for this node, beside a catalog if there is one.
    fn giving(&self, version: u64, value: &str, catalog: Option<&pb::Snapshot>) -> pb::ConfigUpdate {
        let (key, _) = self.certificates.opening_key().unwrap();
        with(update(1, catalog, None), sealed_for(&key, version, value))
    }

    /// What the channel shows, and what is wrong with that.
    fn shown(&self) -> (Option<String>, Option<String>) {
        let table = self.gateway.tables.load().unwrap();
        let channel = table.channels().next().unwrap();
        let header = channel.credential.header(crate::upstream::credential::Auth::Bearer);
        let value = header.map(|(_, value)| value.to_str().unwrap().replace("Bearer ", ""));
        (value, channel.credential_fault.clone())
    }

    fn secrets_version(&self) -> Option<u64> {
        self.applier.applied().secrets.map(|part| part.version)
    }
}

fn with(mut update: pb::ConfigUpdate, (part, sealed): (pb::Part, Bytes)) -> pb::ConfigUpdate {
    update.secrets_sealed = sealed;
    update.target.as_mut().unwrap().secrets = Some(part);
    update
}

fn applied(taken: &Taken) {
    assert_eq!(taken.ack.result(), pb::AckResult::Applied, "{taken:?}");
}

#[test]
fn a_catalog_finds_the_secret_that_came_with_it_and_a_changed_one_is_shown_without_a_revision() {
    let node = enrolled();
    let taken = node.applier.take(&node.giving(2, "sk-1", Some(&naming(1, "secret:s"))));
    applied(&taken);
    assert_eq!(taken.ack.warnings, []);
    assert_eq!(taken.ack.applied.unwrap().secrets.unwrap().version, 2);
    assert_eq!(node.shown(), (Some("sk-1".to_owned()), None));
    let in_flight = node.gateway.tables.load().unwrap();
    applied(&node.applier.take(&node.giving(3, "sk-2", None)));
    assert_eq!(node.shown().0.as_deref(), Some("sk-2"));
    assert_eq!(node.revision(), Some(1));
    let old = in_flight.channels().next().unwrap().credential.fingerprint();
    assert_ne!(old, node.gateway.tables.load().unwrap().channels().next().unwrap().credential.fingerprint());
    applied(&node.applier.take(&update(1, Some(&naming(2, "secret:s")), None)));
    assert_eq!(node.shown().0.as_deref(), Some("sk-2"), "a new revision goes on with what there is");
}

#[test]
fn secrets_outlive_a_restart_sealed_and_only_the_last_of_them_is_kept() {
    let node = enrolled();
    node.applier.take(&node.giving(2, "sk-first-value", Some(&naming(1, "secret:s"))));
    node.applier.take(&node.giving(3, "sk-second-value", None));
    let node = node.restarted();
    assert_eq!(node.shown(), (Some("sk-second-value".to_owned()), None), "without the control plane");
    assert_eq!(node.secrets_version(), Some(3));
    let mut files = vec![node.dir.path().to_owned()];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        seen += usize::from(path.to_string_lossy().contains("secrets."));
        for value in ["sk-first-value", "sk-second-value"] {
            assert!(!bytes.windows(value.len()).any(|part| part == value.as_bytes()), "{}", path.display());
        }
    }
    assert_eq!(seen, 1, "one file of secrets");
}

#[test]
fn what_is_sealed_for_another_key_is_refused_and_may_come_again() {
    let node = enrolled();
    node.applier.take(&node.giving(2, "sk-1", Some(&naming(1, "secret:s"))));
    let other = OpeningKey::of_pkcs8(&rcgen::KeyPair::generate().unwrap().serialize_der()).unwrap();
    let foreign = with(update(1, None, None), sealed_for(&other, 3, "sk-2"));
    let taken = node.applier.take(&foreign);
    assert_eq!(taken.ack.result(), pb::AckResult::Rejected);
    assert!(!taken.is_worth_a_retry);
    let [rejected] = &taken.ack.rejected[..] else { panic!("{taken:?}") };
    assert_eq!((rejected.kind(), rejected.violations.len()), (pb::PartKind::Secrets, 1));
    assert_eq!(
        (node.shown().0.as_deref(), node.secrets_version()),
        (Some("sk-1"), Some(2)),
        "it keeps what it has"
    );
    assert_eq!(node.applier.refused(), [], "the next one may be good");
    applied(&node.applier.take(&node.giving(3, "sk-2", None)));
    assert_eq!(node.shown().0.as_deref(), Some("sk-2"));
    let mut mislabelled = node.giving(5, "sk-3", None);
    mislabelled.target.as_mut().unwrap().secrets.as_mut().unwrap().sha256 = vec![9; 32];
    assert_eq!(node.applier.take(&mislabelled).ack.result(), pb::AckResult::Rejected);
    let older = node.applier.take(&node.giving(1, "sk-0", None));
    assert_eq!(older.ack.result(), pb::AckResult::Rejected, "inside an epoch nothing goes back");
}

#[test]
fn a_node_without_its_secret_says_what_it_lacks_and_serves_the_rest() {
    let node = Node::new();
    let taken = node.applier.take(&update(1, Some(&naming(1, "secret:s")), None));
    applied(&taken);
    let [warning] = &taken.ack.warnings[..] else { panic!("{taken:?}") };
    assert_eq!(warning.path, "channels[0].credential");
    assert!(
        warning.message.contains("mutual TLS") && warning.message.contains("out on this node"),
        "{warning:?}"
    );
    assert_eq!(node.shown().0, None);
    assert_eq!(node.applier.warnings(), taken.ack.warnings);
}

#[test]
fn a_node_with_another_key_wants_its_secrets_anew_and_starts_without_those_that_it_cannot_open() {
    let node = enrolled();
    node.applier.take(&node.giving(2, "sk-1", Some(&naming(1, "secret:s"))));
    enrol(&node.certificates);
    assert_eq!(node.shown().0.as_deref(), Some("sk-1"), "what it holds is good");
    assert_eq!(node.secrets_version(), None, "and would be gone after a restart");
    let node = node.restarted();
    assert_eq!((node.revision(), node.shown().0), (Some(1), None));
    assert_eq!(node.secrets_version(), None);
}

#[test]
fn a_file_that_changes_is_shown_at_the_next_look_and_one_that_vanishes_keeps_the_last() {
    let node = Node::new();
    let path = node.dir.path().join("key");
    std::fs::write(&path, "sk-1").unwrap();
    let named = naming(1, &format!("file:{}", path.display()));
    assert_eq!(node.applier.take(&update(1, Some(&named), None)).ack.warnings, []);
    let first = node.gateway.tables.load().unwrap();
    node.applier.look_at_credentials();
    assert!(Arc::ptr_eq(&first, &node.gateway.tables.load().unwrap()), "nothing is built for nothing");

    std::fs::write(&path, "sk-22").unwrap();
    node.applier.look_at_credentials();
    assert_eq!(node.shown(), (Some("sk-22".to_owned()), None));
    assert!(node.gateway.metrics.render().contains("sluice_credential_changes_total 1"));

    std::fs::remove_file(&path).unwrap();
    node.applier.look_at_credentials();
    let (shown, fault) = node.shown();
    assert_eq!(shown.as_deref(), Some("sk-22"));
    assert!(fault.unwrap().contains("cannot be read"));
    let [warning] = &node.applier.warnings()[..] else { panic!("{:?}", node.applier.warnings()) };
    assert!(warning.message.contains("goes on with the last credential"), "{warning:?}");

    std::fs::write(&path, "sk-22").unwrap();
    node.applier.look_at_credentials();
    assert_eq!((node.shown().1, node.applier.warnings()), (None, vec![]));
    assert!(node.gateway.metrics.render().contains("sluice_credential_changes_total 1"), "the same again");
}

#[test]
fn a_channel_whose_credential_did_not_change_keeps_its_state_when_another_ones_does() {
    let node = Node::new();
    let path = node.dir.path().join("key");
    std::fs::write(&path, "sk-1").unwrap();
    let mut two = naming(1, &format!("file:{}", path.display()));
    two.channels.push(pb::Channel { id: "b".into(), ..snapshot(1).channels[0].clone() });
    node.applier.take(&update(1, Some(&two), None));
    let states = || -> Vec<_> {
        node.gateway.tables.load().unwrap().channels().map(|channel| channel.state.clone()).collect()
    };
    let before = states();
    std::fs::write(&path, "sk-22").unwrap();
    node.applier.look_at_credentials();
    let after = states();
    assert!(!Arc::ptr_eq(&before[0], &after[0]), "another credential begins fresh");
    assert!(Arc::ptr_eq(&before[1], &after[1]));
}
