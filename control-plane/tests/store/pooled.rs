//! What a pooler between the store and a PostgreSQL cannot do, and what becomes of calls that are given up.

use std::sync::Arc;
use std::time::Duration;

use control_plane::store::{Store, StoreError};
use tokio::time::{Instant, sleep, timeout};

use crate::bouncer::Bouncer;
use crate::cases::{entry, key};
use crate::database::Postgres;
use crate::{NOW, Place};

/// Nothing that is awaited here takes this long.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn fr_035_a_pooler_in_statement_mode_is_refused_with_what_to_do() {
    let cluster = Postgres::lend().unwrap();
    let url = cluster.create(&format!("by_statement_{}", std::process::id())).unwrap();
    let pooler = Bouncer::start(&cluster, "statement").unwrap();
    let refused = Store::open_postgres(&pooler.through(&url).unwrap(), None, NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::Statements), "{refused:?}");
    assert!(!refused.is_away(), "waiting for it helps nobody");
}

#[tokio::test]
async fn fr_035_whoever_listens_through_a_pooler_in_transaction_mode_is_told_that_nothing_is_heard() {
    let cluster = Postgres::lend().unwrap();
    let url = cluster.create(&format!("deaf_{}", std::process::id())).unwrap();
    let pooler = Bouncer::start(&cluster, "transaction").unwrap();
    let through = pooler.through(&url).unwrap();
    let stores = [
        Store::open_postgres(&through, None, NOW).await.unwrap(),
        Store::open_postgres(&through, None, NOW).await.unwrap(),
    ];
    for store in &stores {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let store = store.clone();
            calls.spawn(async move { store.announce().await });
        }
        let heard = store.listen().await;
        assert!(matches!(heard, Err(StoreError::Deaf)), "{heard:?}");
        // Nobody else is told what only the one who listens expects.
        for announced in calls.join_all().await {
            announced.unwrap();
        }
        store.announce().await.unwrap();
    }
    let elsewhere = cluster.create(&format!("elsewhere_{}", std::process::id())).unwrap();
    let store = Store::open_postgres(&through, Some(&elsewhere), NOW).await.unwrap();
    assert!(matches!(store.listen().await, Err(StoreError::Deaf)), "that is another database");
    let store = Store::open_postgres(&through, Some(&url), NOW).await.unwrap();
    assert!(store.listen().await.unwrap().is_some());
}

pub async fn fr_033_a_call_that_is_given_up_leaves_no_transaction_open(place: Arc<Place>) {
    let store = place.open().await;
    for n in 0..300u64 {
        // Cut off at every point of a call: before, while and after it begins its transaction.
        let within = Duration::from_micros(n * 10);
        let _ = timeout(within, store.insert_key(&key(&format!("cut-{n}")), &entry())).await;
        let _ = timeout(within, store.heads()).await;
    }
    let begun = Instant::now();
    while place.open_transactions().await > 0 {
        assert!(begun.elapsed() < SOON, "a transaction stays open");
        sleep(Duration::from_millis(20)).await;
    }
    store.insert_key(&key("last"), &entry()).await.unwrap();
    let (_, keys) = place.open().await.keys().await.unwrap();
    assert!(keys.iter().any(|key| key.id == "last"), "it is kept");
    let log = store.log_head().await.unwrap();
    assert_eq!(log.seq, keys.len() as u64, "each key that is kept has its entry, and no other has one");
}
