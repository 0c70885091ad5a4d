//! Several control planes over one database: the lease of the leader, and the news of changes.

use std::sync::Arc;
use std::time::Duration;

use control_plane::store::StoreError;
use tokio::time::{Instant, sleep, timeout};

use crate::Place;

const LONG: Duration = Duration::from_secs(60);
/// Nothing that is awaited here takes this long.
const SOON: Duration = Duration::from_secs(20);

pub async fn fr_031_of_many_who_ask_one_leads_and_renews_under_the_same_epoch(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = stores[n % 2].clone();
        asking.spawn(async move { (n, store.claim_leader(&format!("p{n}"), LONG).await.unwrap()) });
    }
    let answers = asking.join_all().await;
    let leaders: Vec<_> = answers.into_iter().filter(|(_, epoch)| epoch.is_some()).collect();
    let [(leader, Some(1))] = leaders[..] else { panic!("{leaders:?}") };
    let renewed = stores[0].claim_leader(&format!("p{leader}"), LONG).await.unwrap();
    assert_eq!(renewed, Some(1));
    assert_eq!(stores[1].claim_leader("another", LONG).await.unwrap(), None);
}

pub async fn fr_033_a_lease_that_is_not_renewed_ends_by_the_clock_of_the_database(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.claim_leader("dead", Duration::from_millis(300)).await.unwrap(), Some(1));
    let begun = Instant::now();
    let epoch = loop {
        if let Some(epoch) = store.claim_leader("next", LONG).await.unwrap() {
            break epoch;
        }
        assert!(begun.elapsed() < SOON, "the lease never ends");
        sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(epoch, 2);
    assert_eq!(store.claim_leader("dead", LONG).await.unwrap(), None, "whoever comes back is a follower");
}

pub async fn fr_031_what_is_written_under_an_epoch_that_is_over_is_refused_and_changes_nothing(
    place: Arc<Place>,
) {
    let store = place.open().await;
    let old = store.claim_leader("stopped", Duration::ZERO).await.unwrap().unwrap();
    let new = store.claim_leader("next", LONG).await.unwrap().unwrap();
    for written in [
        store.roll_up(old, 0, 1).await,
        store.forget(old, 0).await,
        store.forget_boots(old, 0).await,
        store.forget_nodes(old, 0).await,
        store.forget_bindings(old, 0).await,
        store.prune_revisions(old, 0).await.map(drop),
    ] {
        assert!(matches!(written, Err(StoreError::Fenced)), "{written:?}");
    }
    store.roll_up(new, 0, 1).await.unwrap();
}

pub async fn a_lease_that_is_given_back_is_free_at_once_and_only_by_its_holder(place: Arc<Place>) {
    let store = place.open().await;
    let epoch = store.claim_leader("a", LONG).await.unwrap().unwrap();
    store.resign_leader("b", epoch).await.unwrap();
    store.resign_leader("a", epoch + 1).await.unwrap();
    assert_eq!(store.claim_leader("b", LONG).await.unwrap(), None);
    store.resign_leader("a", epoch).await.unwrap();
    assert_eq!(store.claim_leader("b", LONG).await.unwrap(), Some(epoch + 1));
}

pub async fn a_change_is_announced_to_every_other_process(place: Arc<Place>) {
    let (one, other) = (place.open().await, place.open().await);
    let Some(mut news) = other.listen().await.unwrap() else {
        assert!(matches!(*place, Place::Folder(_)), "one process alone opens a folder");
        return one.announce().await.unwrap();
    };
    for _ in 0..2 {
        one.announce().await.unwrap();
        timeout(SOON, news.heard()).await.unwrap().unwrap();
    }
}
