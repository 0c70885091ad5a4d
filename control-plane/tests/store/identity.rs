//! Tokens for enrolment, and who enrolled.

use std::sync::Arc;

use common::snapshot::digest;
use control_plane::store::Store;
use control_plane::store::entry::Entry;
use control_plane::store::rows::{Enrol, Enrolled, EnrolmentToken};

use crate::{NOW, Place, lead};

async fn token(store: &Store, id: &str, uses_max: u64, created_at_ms: u64) {
    let token = EnrolmentToken {
        id: id.into(),
        labels: r#"{"zone":"eu"}"#.into(),
        uses_max,
        uses: 0,
        created_at_ms,
        expires_at_ms: NOW + 1000,
        revoked_at_ms: None,
    };
    store.insert_token(&token, &digest(id.as_bytes()), &Entry::default()).await.unwrap();
}

fn enrol(node: &str, token: Option<&str>, at_ms: u64) -> Enrol {
    Enrol {
        node_id: node.into(),
        token_sha256: token.map(|token| digest(token.as_bytes())),
        key_sha256: digest(node.as_bytes()),
        authority_sha256: [7; 32],
        serial: "01ab".into(),
        issued_at_ms: at_ms,
        expires_at_ms: at_ms + 10,
    }
}

fn kept(token: &str) -> Enrolled {
    Enrolled::Kept { token_id: token.into() }
}

pub async fn of_many_who_race_for_a_token_as_many_enrol_as_it_says(place: Arc<Place>) {
    let store = place.open().await;
    token(&store, "t", 5, NOW).await;
    let mut racing = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        racing.spawn(async move {
            store.enrol(&enrol(&format!("n{n}"), Some("t"), NOW), &Entry::default()).await.unwrap()
        });
    }
    let ends = racing.join_all().await;
    assert_eq!(ends.iter().filter(|end| **end == kept("t")).count(), 5);
    assert_eq!(ends.iter().filter(|end| **end == Enrolled::NoToken).count(), 15);
    let tokens = store.tokens().await.unwrap();
    assert_eq!((tokens[0].uses, store.identities().await.unwrap().len()), (5, 5));
    assert_eq!(store.identities().await.unwrap()[0].labels, r#"{"zone":"eu"}"#);
}

pub async fn a_revoked_node_is_kept_out_until_a_token_that_is_newer(place: Arc<Place>) {
    let store = place.open().await;
    token(&store, "old", 9, NOW).await;
    assert_eq!(store.enrol(&enrol("n", Some("old"), NOW), &Entry::default()).await.unwrap(), kept("old"));
    store.revoke_identity("n", NOW + 1, &Entry::default()).await.unwrap();
    store.revoke_identity("n", NOW + 2, &Entry::default()).await.unwrap();
    store.revoke_identity("never seen", NOW + 1, &Entry::default()).await.unwrap();
    for token in [Some("old"), None] {
        for node in ["n", "never seen"] {
            assert_eq!(
                store.enrol(&enrol(node, token, NOW + 3), &Entry::default()).await.unwrap(),
                Enrolled::Revoked
            );
        }
    }
    assert!(!store.renew_identity(&enrol("n", None, NOW + 3)).await.unwrap());
    assert_eq!(store.tokens().await.unwrap()[0].uses, 1, "what was refused used nothing");
    let listed = store.identities().await.unwrap();
    assert_eq!(listed.iter().map(|i| i.revoked_at_ms).collect::<Vec<_>>(), [Some(NOW + 1); 2]);
    token(&store, "new", 1, NOW + 2).await;
    assert_eq!(store.enrol(&enrol("n", Some("new"), NOW + 3), &Entry::default()).await.unwrap(), kept("new"));
    let again = store.identities().await.unwrap();
    assert!(again.iter().any(|identity| identity.node_id == "n" && identity.revoked_at_ms.is_none()));
    let over = store.enrol(&enrol("n2", Some("old"), NOW + 1000), &Entry::default()).await.unwrap();
    assert_eq!(over, Enrolled::NoToken, "its time is over");
    assert!(
        store.revoke_token("old", NOW + 4, &Entry::default()).await.unwrap().unwrap().revoked_at_ms.is_some()
    );
    assert_eq!(
        store.enrol(&enrol("n3", Some("old"), NOW), &Entry::default()).await.unwrap(),
        Enrolled::NoToken
    );
    assert_eq!(store.revoke_token("none", NOW, &Entry::default()).await.unwrap(), None);
    store.forget_tokens(lead(&store).await, NOW + 1001).await.unwrap();
    assert!(store.tokens().await.unwrap().is_empty());
}

pub async fn only_the_key_of_a_node_renews_its_certificate(place: Arc<Place>) {
    let store = place.open().await;
    assert!(!store.renew_identity(&enrol("n", None, NOW)).await.unwrap(), "it never enrolled");
    store.enrol(&enrol("n", None, NOW), &Entry::default()).await.unwrap();
    let renewed = Enrol { serial: "02".into(), ..enrol("n", None, NOW + 5) };
    assert!(store.renew_identity(&renewed).await.unwrap());
    let other = Enrol { key_sha256: [9; 32], ..renewed };
    assert!(!store.renew_identity(&other).await.unwrap());
    let listed = store.identities().await.unwrap();
    let identity = &listed[0];
    assert_eq!((identity.serial.as_str(), identity.token_id.as_str()), ("02", ""));
    assert_eq!(
        (identity.enrolled_at_ms, identity.issued_at_ms, identity.expires_at_ms),
        (NOW, NOW + 5, NOW + 15)
    );
}

pub async fn the_version_moves_with_every_enrolment_and_revocation(place: Arc<Place>) {
    let store = place.open().await;
    let first = store.identities_version().await.unwrap();
    store.enrol(&enrol("n", None, NOW), &Entry::default()).await.unwrap();
    store.revoke_identity("n", NOW, &Entry::default()).await.unwrap();
    assert_eq!(store.identities_version().await.unwrap(), first + 2);
    store.enrol(&enrol("n", None, NOW), &Entry::default()).await.unwrap();
    assert_eq!(store.identities_version().await.unwrap(), first + 2, "it was refused");
}
