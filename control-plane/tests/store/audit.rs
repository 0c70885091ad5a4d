//! The audit log: each change with its entry, one chain however many write, nothing of what was not done.

use std::sync::Arc;

use common::snapshot::Sha;
use control_plane::store::Store;
use control_plane::store::entry::{Ask, BEFORE_ALL, Entry, Kept, LogHead};
use control_plane::store::rows::{AdminToken, Key};

use crate::{NOW, Place};

fn entry(action: &str, object: &str) -> Entry {
    Entry {
        at_ms: NOW,
        actor: "ann".into(),
        action: action.into(),
        object: object.into(),
        ..Entry::default()
    }
}

fn key(id: &str) -> Key {
    let sha256 = common::snapshot::digest(id.as_bytes());
    Key { id: id.into(), name: id.into(), sha256, created_at_ms: NOW, revoked_at_ms: None }
}

async fn log(store: &Store, ask: Ask) -> Vec<u64> {
    let ask = Ask { before: if ask.before == 0 { u64::MAX } else { ask.before }, limit: 100, ..ask };
    store.log(&ask).await.unwrap().into_iter().map(|kept| kept.seq).collect()
}

/// The digest at the end of a chain that is whole.
fn end_of(chain: &[Kept]) -> LogHead {
    let (mut previous, mut seq): (Sha, u64) = (BEFORE_ALL, 0);
    for kept in chain {
        assert_eq!(kept.seq, seq + 1);
        assert_eq!(kept.sha256, kept.entry.sha256(kept.seq, &previous), "entry {}", kept.seq);
        (previous, seq) = (kept.sha256, kept.seq);
    }
    LogHead { seq, sha256: previous }
}

pub async fn of_many_who_change_something_each_leaves_one_entry_in_one_chain(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await, place.open().await];
    let mut changing = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = stores[n % 3].clone();
        changing.spawn(async move {
            let id = format!("k{n:02}");
            store.insert_key(&key(&id), &entry("key.create", &id)).await.unwrap();
        });
    }
    changing.join_all().await;
    let chain = stores[0].walk_log(0, u64::MAX, 1000).await.unwrap();
    assert_eq!(chain.len(), 60);
    assert_eq!(end_of(&chain), stores[1].log_head().await.unwrap());
    let mut objects: Vec<_> = chain.iter().map(|kept| kept.entry.object.clone()).collect();
    objects.sort();
    assert!(objects.iter().enumerate().all(|(n, id)| *id == format!("k{n:02}")), "{objects:?}");
    let page = stores[2].walk_log(10, 20, 5).await.unwrap();
    assert_eq!(page.iter().map(|kept| kept.seq).collect::<Vec<_>>(), [11, 12, 13, 14, 15]);
}

pub async fn what_is_not_done_leaves_no_entry(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.log_head().await.unwrap(), LogHead { seq: 0, sha256: BEFORE_ALL });
    store.insert_key(&key("a"), &entry("key.create", "a")).await.unwrap();
    assert!(store.insert_key(&key("a"), &entry("key.create", "a")).await.is_err());
    store.revoke_key("nobody", NOW, &entry("key.revoke", "nobody")).await.unwrap();
    store.revoke_key("a", NOW, &entry("key.revoke", "a")).await.unwrap();
    store.revoke_key("a", NOW, &entry("key.revoke", "a")).await.unwrap();
    let chain = store.walk_log(0, u64::MAX, 100).await.unwrap();
    assert_eq!(end_of(&chain), store.log_head().await.unwrap());
    let actions: Vec<_> = chain.iter().map(|kept| kept.entry.action.as_str()).collect();
    assert_eq!(actions, ["key.create", "key.revoke"]);
    place.open().await;
    assert_eq!(store.log_head().await.unwrap().seq, 2, "another start makes no new log");
}

pub async fn a_change_whose_entry_cannot_be_kept_is_not_made(place: Arc<Place>) {
    let store = place.open().await;
    place.execute("delete from audit_head").await;
    assert!(store.insert_key(&key("a"), &entry("key.create", "a")).await.is_err());
    assert_eq!(store.keys().await.unwrap(), (1, vec![]));
}

pub async fn entries_come_back_as_they_were_written_and_are_found_by_what_they_say(place: Arc<Place>) {
    let store = place.open().await;
    let said = Entry {
        at_ms: NOW + 5,
        actor: "bob 'ü'".into(),
        role: "operator".into(),
        credential: "tok-1".into(),
        origin: "[2001:db8::1]:4711".into(),
        action: "key.create".into(),
        object: "a".into(),
        before: None,
        after: Some("{\"name\":\"a\"}".into()),
        revision: 7,
    };
    store.insert_key(&key("a"), &said).await.unwrap();
    store.insert_key(&key("b"), &entry("keyring", "b")).await.unwrap();
    store.revoke_key("a", NOW, &entry("key.revoke", "a")).await.unwrap();
    let ask = Ask { before: 2, limit: 1, ..Ask::default() };
    assert_eq!(store.log(&ask).await.unwrap()[0].entry, said);
    let of = |actor: &str, action: &str| Ask { actor: actor.into(), action: action.into(), ..Ask::default() };
    for (ask, expected) in [
        (of("", ""), vec![3, 2, 1]),
        (of("bob 'ü'", ""), vec![1]),
        (of("", "key."), vec![3, 1]),
        (of("", "key"), vec![3, 2, 1]),
        (of("ann", "key.revoke"), vec![3]),
        (of("", "%"), vec![]),
        (Ask { since_ms: NOW + 1, ..Ask::default() }, vec![1]),
        (Ask { before: 3, ..Ask::default() }, vec![2, 1]),
    ] {
        assert_eq!(log(&store, ask.clone()).await, expected, "{ask:?}");
    }
}

pub async fn tokens_of_operators_come_back_and_each_change_moves_their_version(place: Arc<Place>) {
    let store = place.open().await;
    let version = store.access_version().await.unwrap();
    let token = AdminToken {
        id: "tok-1".into(),
        name: "ci 'ü'".into(),
        role: "operator".into(),
        sha256: [7; 32],
        created_at_ms: NOW,
        created_by: "admin".into(),
        expires_at_ms: Some(NOW + 9),
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    let endless = AdminToken {
        id: "tok-2".into(),
        sha256: [8; 32],
        created_at_ms: NOW + 1,
        expires_at_ms: None,
        ..token.clone()
    };
    for one in [&endless, &token] {
        store.insert_admin_token(one, &entry("access.create", &one.id)).await.unwrap();
    }
    assert_eq!(store.admin_tokens().await.unwrap(), [token.clone(), endless.clone()]);
    let same = AdminToken { id: "tok-3".into(), ..token.clone() };
    assert!(store.insert_admin_token(&same, &entry("access.create", "tok-3")).await.is_err());
    let used = [("tok-1".to_owned(), NOW + 60), ("tok-0".to_owned(), NOW)];
    store.admin_tokens_used(&used).await.unwrap();
    store.admin_tokens_used(&[("tok-1".to_owned(), NOW)]).await.unwrap();
    assert_eq!(store.access_version().await.unwrap(), version + 2, "a use is no change");
    for at in [NOW + 3, NOW + 4] {
        let revoked = store.revoke_admin_token("tok-1", at, &entry("access.revoke", "tok-1")).await.unwrap();
        let seen =
            AdminToken { revoked_at_ms: Some(NOW + 3), last_used_at_ms: Some(NOW + 60), ..token.clone() };
        assert_eq!(revoked, Some(seen));
    }
    assert_eq!(store.revoke_admin_token("tok-0", NOW, &entry("x", "y")).await.unwrap(), None);
    assert_eq!(store.access_version().await.unwrap(), version + 3);
    assert_eq!(store.log_head().await.unwrap().seq, 3);
}
