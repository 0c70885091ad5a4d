//! Secrets go to nodes that show a certificate of their own and know them, all at once, whatever the rollout does.

use common::feature;
use common::hpke::OpeningKey;

use super::*;
use crate::secrets::keyring::Keyring;
use crate::store::rows::SealedSecret;

/// A list that can be opened, or that no key here opens.
fn held(version: u64, names: &[&str], opens: bool) -> Held {
    let dir = tempfile::tempdir().unwrap();
    crate::folder::write(dir.path(), "key", &"5a".repeat(32), 0o600).unwrap();
    let ring = Keyring::load(&[dir.path().join("key")]).unwrap();
    let rows = names.iter().map(|name| {
        let (key_id, sealed) =
            ring.seal(name, version, &common::secret::Secret::parse("x").unwrap()).unwrap();
        SealedSecret { name: (*name).to_owned(), version, key_id, sealed, ..SealedSecret::default() }
    });
    Held::of(version, rows.collect(), if opens { &ring } else { &EMPTY })
}

static EMPTY: std::sync::LazyLock<Keyring> = std::sync::LazyLock::new(Keyring::default);

fn with(base: &Wanted, secrets: Held) -> Arc<Wanted> {
    let target = Target { secrets, ..base.target.clone() };
    Arc::new(Wanted { target, current: None, base: None, rollout: None, pins: Arc::default() })
}

fn knowing(applied: Option<pb::Target>) -> pb::Hello {
    pb::Hello { features: vec![feature::SECRETS.to_owned()], ..hello(applied) }
}

fn certified(wanted: Arc<Wanted>, hello: pb::Hello) -> (Node, Vec<Action>) {
    let pair = rcgen::KeyPair::generate().unwrap();
    let recipient = OpeningKey::of_pkcs8(&pair.serialize_der()).map(|key| key.recipient());
    let origin = Origin { node_id: Some("n1".into()), labels: Default::default(), recipient };
    let mut node = Node::new(wanted);
    node.session = node.session.known_as(origin);
    let mut actions = node.on(Event::Heard(Heard::Hello(hello)));
    actions.drain(..2);
    (node, actions)
}

fn running(wanted: &Wanted, secrets: Option<Part>) -> pb::Target {
    pb::Target { secrets: secrets.map(Into::into), ..target(wanted) }
}

fn sealed(actions: &[Action]) -> (&pb::ConfigUpdate, &Held) {
    let [Action::Seal(update, held)] = actions else { panic!("{actions:?}") };
    (update, held)
}

#[tokio::test(start_paused = true)]
async fn a_certified_node_gets_them_with_everything_else_and_again_when_they_change() {
    let w = with(&wanted(7, 3, 2), held(2, &["a"], true));
    let (mut node, actions) = certified(w.clone(), knowing(None));
    let (update, first) = sealed(&actions);
    assert_eq!(first.part, w.target.secrets.part);
    assert_eq!(update.target, Some(running(&w, Some(first.part))));
    assert!(!update.catalog_zstd.is_empty() && update.secrets_sealed.is_empty(), "sealed by who sends it");
    let acked = node.on(ack(1, pb::AckResult::Applied, running(&w, Some(first.part))));
    assert_eq!(acked, [Action::Acknowledged(Ack::Applied, 3)]);
    let next = with(&w, held(3, &["a"], true));
    let actions = node.on(Event::Wanted(next.clone()));
    let (update, second) = sealed(&actions);
    assert_eq!(second.part, next.target.secrets.part);
    assert!(update.catalog_zstd.is_empty() && update.keys_zstd.is_empty(), "nothing else goes along");
}

#[tokio::test(start_paused = true)]
async fn nobody_else_gets_them_and_what_a_node_has_stays() {
    let w = with(&wanted(7, 3, 2), held(2, &["a"], true));
    let (_, actions) = Node::greeted(w.clone(), knowing(None));
    assert_eq!(update(&actions).target.as_ref().unwrap().secrets, None, "in clear, or with a shared token");
    let old = pb::Hello { features: vec![], ..knowing(None) };
    let (_, actions) = certified(w.clone(), old);
    assert_eq!(update(&actions).target.as_ref().unwrap().secrets, None, "of a version that knows none");
    let has = Part { version: 1, sha256: [9; 32] };
    let (_, actions) = Node::greeted(w.clone(), knowing(Some(running(&w, Some(has)))));
    let up_to_date = pb::UpToDate { target: Some(running(&w, Some(has))) };
    assert_eq!(actions, [Action::Send(Said::UpToDate(up_to_date))]);
    let unopened = with(&w, held(2, &["a"], false));
    let (_, actions) = certified(unopened, knowing(Some(running(&w, Some(has)))));
    assert!(
        matches!(actions[..], [Action::Send(Said::UpToDate(_))]),
        "half of them would be worse: {actions:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_goes_only_to_who_holds_another_one() {
    let w = wanted(7, 3, 2);
    let (_, actions) = certified(w.clone(), knowing(Some(running(&w, None))));
    assert!(matches!(actions[..], [Action::Send(Said::UpToDate(_))]), "{actions:?}");
    let has = Part { version: 0, sha256: [9; 32] };
    let (_, actions) = certified(w.clone(), knowing(Some(running(&w, Some(has)))));
    assert_eq!(sealed(&actions).1.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_the_node_cannot_open_is_not_sent_to_it_again() {
    let w = with(&wanted(7, 3, 2), held(2, &["a"], true));
    let (mut node, actions) = certified(w.clone(), knowing(Some(running(&w, None))));
    let part = sealed(&actions).1.part;
    let rejection = pb::Rejection { kind: pb::PartKind::Secrets.into(), ..rejection(part, "does not open") };
    let actions = node.on(Event::Heard(Heard::Ack(pb::ConfigAck {
        update_id: 1,
        result: pb::AckResult::Rejected.into(),
        applied: Some(running(&w, None)),
        rejected: vec![rejection],
        warnings: vec![],
    })));
    assert_eq!(actions, [Action::Acknowledged(Ack::Rejected, 3)]);
    assert_eq!(node.session.facts().rejected[0].part, part);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_replaces_the_warnings_of_a_node_that_says_them_there() {
    let w = wanted(7, 3, 2);
    let (mut node, _) = Node::greeted(w.clone(), hello(Some(target(&w))));
    let beat =
        |warnings| Event::Heard(Heard::Heartbeat(pb::NodeHeartbeat { warnings, ..Default::default() }));
    let violation = pb::Violation { path: "channels[0].credential".into(), message: "is empty".into() };
    node.on(beat(Some(pb::Warnings { violations: vec![violation] })));
    assert_eq!(node.session.facts().warnings.len(), 1);
    node.on(beat(None));
    assert_eq!(node.session.facts().warnings.len(), 1, "an older node does not say");
    node.on(beat(Some(pb::Warnings::default())));
    assert_eq!(node.session.facts().warnings, []);
}
