//! Revisions, keys, nodes, migrations.

use std::sync::Arc;

use control_plane::store::Store;
use control_plane::store::entry::Entry;
use control_plane::store::rows::{FullRevision, Heads, Key, Node, Revision, Rollout};

use crate::rollouts::rollout;
use crate::{NOW, Place, lead};

pub fn revision(number: u64) -> FullRevision {
    FullRevision {
        revision: Revision {
            number,
            sha256: [number as u8; 32],
            author: "admin".into(),
            message: format!("the {number}th, with 'quotes' and ünïcode"),
            created_at_ms: NOW + number,
        },
        document: format!("# {number}\n\0\u{1}").into_bytes().into(),
        snapshot_sha256: [0xff; 32],
        snapshot_zstd: vec![0, 255, 1, 254].into(),
        idempotency_key: None,
    }
}

pub fn key(id: &str) -> Key {
    let sha256 = common::snapshot::digest(id.as_bytes());
    Key { id: id.into(), name: id.into(), sha256, created_at_ms: NOW, revoked_at_ms: None }
}

pub fn entry() -> Entry {
    Entry { at_ms: NOW, actor: "admin".into(), action: "test".into(), ..Entry::default() }
}

pub async fn every_statement_is_taken(store: &Store) {
    match store.prepare_all().await {
        Ok(count) => assert!(count >= 27, "{count}"),
        Err((sql, error)) => panic!("{sql}\n{error:?}"),
    }
}

pub async fn migrations_are_safe_to_run_twice_and_by_many_at_once(place: Arc<Place>) {
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let place = place.clone();
        opening.spawn(async move { place.open().await });
    }
    let stores = opening.join_all().await;
    let heads = stores[0].heads().await.unwrap();
    for store in &stores {
        assert_eq!(store.heads().await.unwrap(), heads);
        store.close().await;
    }
    assert_eq!(place.open().await.heads().await.unwrap(), heads);
}

pub async fn the_epoch_is_given_once(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(
        store.heads().await.unwrap(),
        Heads { epoch: NOW, revision: 0, keys: 1, rollout: 0, secrets: 1, pins: 1 }
    );
}

pub async fn revisions_are_numbered_without_gaps_and_a_taken_number_is_refused(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=3 {
        assert!(store.insert_revision(&revision(number), &rollout(number), None, &entry()).await.unwrap());
    }
    assert!(!store.insert_revision(&revision(2), &rollout(2), None, &entry()).await.unwrap());
    assert_eq!(store.heads().await.unwrap().revision, 3);
}

pub async fn of_many_who_make_the_same_revision_one_wins(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    let mut making = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = stores[n % 2].clone();
        making.spawn(async move {
            store.insert_revision(&revision(1), &rollout(1), None, &entry()).await.unwrap()
        });
    }
    let won = making.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
}

pub async fn an_idempotency_key_belongs_to_one_revision(place: Arc<Place>) {
    let store = place.open().await;
    let under = |number, key: &str| FullRevision { idempotency_key: Some(key.into()), ..revision(number) };
    assert!(store.insert_revision(&under(1, "a"), &rollout(1), None, &entry()).await.unwrap());
    assert!(!store.insert_revision(&under(2, "a"), &rollout(2), None, &entry()).await.unwrap());
    assert!(store.insert_revision(&under(2, "b"), &rollout(2), None, &entry()).await.unwrap());
    assert!(store.insert_revision(&revision(3), &rollout(3), None, &entry()).await.unwrap());
    assert!(
        store.insert_revision(&revision(4), &rollout(4), None, &entry()).await.unwrap(),
        "many have none"
    );
    assert_eq!(store.revision_by_key("b").await.unwrap(), Some(revision(2).revision));
    assert_eq!(store.revision_by_key("c").await.unwrap(), None);
}

pub async fn old_revisions_are_removed_but_not_what_a_node_runs(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=6 {
        assert!(
            store
                .insert_revision(
                    &revision(number),
                    &Rollout { is_under_way: false, ..rollout(number) },
                    None,
                    &entry()
                )
                .await
                .unwrap()
        );
    }
    store.upsert_nodes("p1", &[Node { applied_revision: 2, ..node("a", 1, false) }]).await.unwrap();
    assert_eq!(store.prune_revisions(lead(&store).await, 5).await.unwrap(), 3);
    let kept: Vec<u64> =
        store.revisions(u64::MAX, 10).await.unwrap().iter().map(|revision| revision.number).collect();
    assert_eq!(kept, [6, 5, 2]);
    assert_eq!(store.heads().await.unwrap().revision, 6);
}

pub async fn revisions_are_listed_newest_first_and_by_page(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=5 {
        store.insert_revision(&revision(number), &rollout(number), None, &entry()).await.unwrap();
    }
    let numbers = async |before, limit| -> Vec<u64> {
        store.revisions(before, limit).await.unwrap().into_iter().map(|r| r.number).collect()
    };
    assert_eq!(numbers(u64::MAX, 2).await, [5, 4]);
    assert_eq!(numbers(4, 10).await, [3, 2, 1]);
    assert_eq!(store.revisions(2, 1).await.unwrap(), [revision(1).revision]);
}

pub async fn fr_045_documents_and_snapshots_come_back_byte_by_byte(place: Arc<Place>) {
    let store = place.open().await;
    let put = revision(1);
    store.insert_revision(&put, &rollout(1), None, &entry()).await.unwrap();
    let got = store.revision(1).await.unwrap().unwrap();
    assert_eq!((got.revision, got.document), (put.revision, put.document));
    assert_eq!((got.snapshot_sha256, got.snapshot_zstd), (put.snapshot_sha256, put.snapshot_zstd));
    assert!(store.revision(2).await.unwrap().is_none());
}

pub async fn each_change_of_the_keys_moves_their_version_by_one(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.keys().await.unwrap(), (1, vec![]));
    store.insert_key(&key("b"), &entry()).await.unwrap();
    store.insert_key(&key("a"), &entry()).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), (3, vec![key("a"), key("b")]));
    assert!(store.insert_key(&key("a"), &entry()).await.is_err(), "ids are taken once");
    assert_eq!(store.heads().await.unwrap().keys, 3, "what failed moves nothing");
}

pub async fn a_key_is_revoked_once_and_an_unknown_one_is_none(place: Arc<Place>) {
    let store = place.open().await;
    store.insert_key(&key("a"), &entry()).await.unwrap();
    let revoked = store.revoke_key("a", NOW + 1, &entry()).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at_ms, Some(NOW + 1));
    let again = store.revoke_key("a", NOW + 2, &entry()).await.unwrap().unwrap();
    assert_eq!(again, revoked);
    assert_eq!(store.revoke_key("b", NOW, &entry()).await.unwrap(), None);
    assert_eq!(store.heads().await.unwrap().keys, 3);
}

pub fn node(id: &str, seen: u64, drained: bool) -> Node {
    Node {
        id: id.into(),
        boot_id: "b".into(),
        version: "0.1".into(),
        data_address: "127.0.0.1:8080".into(),
        ops_address: "127.0.0.1:9090".into(),
        applied_epoch: NOW,
        applied_revision: 4,
        findings: r#"{"rejected":[]}"#.into(),
        drained,
        last_seen_at_ms: seen,
        control_plane: Some(String::new()),
        ..Node::default()
    }
}

/// Every node as it was written.
pub async fn written(store: &Store) -> Vec<Node> {
    let nodes = store.nodes().await.unwrap().into_iter();
    nodes.map(|node| Node { list_version: 0, ..node }).collect()
}

pub async fn nodes_are_kept_and_a_late_writer_does_not_take_them_back(place: Arc<Place>) {
    let store = place.open().await;
    store.upsert_nodes("p1", &[node("b", 5, false), node("a", 5, false)]).await.unwrap();
    store.upsert_nodes("p1", &[node("a", 6, true)]).await.unwrap();
    store.upsert_nodes("p1", &[node("a", 4, false)]).await.unwrap();
    assert_eq!(written(&store).await, [node("a", 6, true), node("b", 5, false)]);
}
