//! Sealed secrets.

use std::sync::Arc;

use control_plane::store::rows::SealedSecret;

use crate::cases::entry;
use crate::{NOW, Place};

fn secret(name: &str, version: u64) -> SealedSecret {
    SealedSecret {
        name: name.into(),
        version,
        key_id: "0123".into(),
        sealed: vec![0, 255, version as u8],
        created_at_ms: NOW,
        created_by: "ann".into(),
        changed_at_ms: NOW + version,
        changed_by: "bob".into(),
    }
}

pub async fn a_secret_is_set_over_the_version_that_was_seen_and_comes_back_as_it_was(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.secrets().await.unwrap(), (1, vec![]));
    assert!(store.set_secrets(1, 2, &[secret("b", 2)], &entry()).await.unwrap());
    assert!(store.set_secrets(2, 3, &[secret("a", 3)], &entry()).await.unwrap());
    assert_eq!(store.secrets().await.unwrap(), (3, vec![secret("a", 3), secret("b", 2)]));
    assert_eq!(store.heads().await.unwrap().secrets, 3);
    let again = SealedSecret { created_at_ms: 1, created_by: "eve".into(), ..secret("b", 4) };
    assert!(store.set_secrets(3, 4, &[again], &entry()).await.unwrap());
    let (_, kept) = store.secrets().await.unwrap();
    assert_eq!(kept, [secret("a", 3), secret("b", 4)], "who made it, and when, stays");
    assert!(!store.set_secrets(3, 4, &[secret("b", 4)], &entry()).await.unwrap(), "somebody was faster");
    assert_eq!(store.secrets().await.unwrap().1, kept);
    assert!(store.set_secrets(4, 5, &[secret("a", 5), secret("b", 5)], &entry()).await.unwrap());
    assert_eq!(store.secrets().await.unwrap().1.iter().filter(|kept| kept.version == 5).count(), 2);
}

pub async fn of_many_who_set_over_the_same_version_one_does(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    let mut setting = tokio::task::JoinSet::new();
    for n in 0..12 {
        let store = stores[n % 2].clone();
        setting.spawn(async move { store.set_secrets(1, 2, &[secret("a", 2)], &entry()).await.unwrap() });
    }
    assert_eq!(setting.join_all().await.into_iter().filter(|won| *won).count(), 1);
    let log = stores[0].log_head().await.unwrap();
    assert_eq!(log.seq, 1, "what is not done leaves no entry");
}

pub async fn a_secret_is_deleted_over_the_version_that_was_seen(place: Arc<Place>) {
    let store = place.open().await;
    assert!(store.set_secrets(1, 2, &[secret("a", 2), secret("b", 2)], &entry()).await.unwrap());
    assert!(!store.delete_secret(1, 2, "a", &entry()).await.unwrap(), "another version");
    assert!(!store.delete_secret(2, 3, "c", &entry()).await.unwrap(), "no such secret");
    assert_eq!(store.heads().await.unwrap().secrets, 2, "what failed moves nothing");
    assert!(store.delete_secret(2, 3, "a", &entry()).await.unwrap());
    assert_eq!(store.secrets().await.unwrap(), (3, vec![secret("b", 2)]));
    assert_eq!(store.log_head().await.unwrap().seq, 2);
}
