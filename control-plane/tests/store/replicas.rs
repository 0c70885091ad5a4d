//! Several control planes over one database: the lease of the leader, and the news of changes.

use std::sync::Arc;
use std::time::Duration;

use control_plane::store::StoreError;
use control_plane::store::rows::{Node, Replica};
use tokio::time::{Instant, sleep, timeout};

use crate::Place;
use crate::cases::{node, written};

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
    let [(leader, Some(first))] = leaders[..] else { panic!("{leaders:?}") };
    let renewed = stores[0].claim_leader(&format!("p{leader}"), LONG).await.unwrap();
    assert_eq!(renewed, Some(first));
    assert_eq!(stores[1].claim_leader("another", LONG).await.unwrap(), None);
}

pub async fn fr_033_a_lease_that_is_not_renewed_ends_by_the_clock_of_the_database(place: Arc<Place>) {
    let store = place.open().await;
    let first = store.claim_leader("dead", Duration::from_millis(300)).await.unwrap().unwrap();
    let begun = Instant::now();
    let epoch = loop {
        if let Some(epoch) = store.claim_leader("next", LONG).await.unwrap() {
            break epoch;
        }
        assert!(begun.elapsed() < SOON, "the lease never ends");
        sleep(Duration::from_millis(10)).await;
    };
    assert!(epoch > first, "{epoch} after {first}");
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
    assert!(store.claim_leader("b", LONG).await.unwrap() > Some(epoch));
}

pub async fn fr_033_a_lease_from_before_the_clock_of_the_database_went_back_holds_up_nobody(
    place: Arc<Place>,
) {
    let store = place.open().await;
    let far = store.claim_leader("before", LONG * 60).await.unwrap().unwrap();
    let next = store.claim_leader("next", LONG).await.unwrap();
    assert!(next > Some(far), "what ends later than any lease can is none");
    assert_eq!(store.claim_leader("before", LONG).await.unwrap(), None);
}

pub async fn fr_031_who_read_the_clock_before_the_leader_did_takes_no_lease_from_it(place: Arc<Place>) {
    let store = place.open().await;
    store.claim_leader("leader", LONG).await.unwrap().unwrap();
    // A lease that is shorter ends as much before the leader's as that of a reading that is older.
    let late = store.claim_leader("late", LONG - Duration::from_secs(5)).await.unwrap();
    assert_eq!(late, None);
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

/// A node whose stream is at this control plane since then.
fn streaming(plane: &str, since_ms: u64) -> Node {
    Node { control_plane: Some(plane.to_owned()), streaming_since_ms: since_ms, ..node("n", since_ms, false) }
}

fn replica(id: &str) -> Replica {
    let (name, version) = (format!("{id}:7444"), "0.1.0".to_owned());
    Replica { id: id.to_owned(), name, version, started_at_ms: 5, silent_ms: 0 }
}

pub async fn a_node_is_written_by_the_control_plane_that_its_stream_went_to_last(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["a", "b"] {
        store.beat(&replica(id)).await.unwrap();
    }
    let gone = |seen| node("n", seen, false);
    // Who writes what, and who has the node then.
    for (writer, row, holder) in [
        ("a", streaming("a", 10), "a"),
        ("b", gone(99), "a"),
        ("b", streaming("b", 20), "b"),
        // A half-open stream is no reason to take the node back, and its end none to say that it is away.
        ("a", streaming("a", 10), "b"),
        ("a", gone(99), "b"),
        ("b", gone(30), ""),
        ("a", gone(29), ""),
        ("a", streaming("a", 10), "a"),
    ] {
        store.upsert_nodes(writer, std::slice::from_ref(&row)).await.unwrap();
        let [found] = &written(&store).await[..] else { panic!("there is one") };
        assert_eq!(found.control_plane.as_deref(), Some(holder), "after {writer} wrote {row:?}");
        assert!(found.last_seen_at_ms != 29 && found.last_seen_at_ms != 99, "{found:?}");
    }
    // Of one that is not there any more everybody takes over, whatever its clock said.
    store.leave("a").await.unwrap();
    store.upsert_nodes("b", &[streaming("b", 1)]).await.unwrap();
    assert_eq!(written(&store).await, [streaming("b", 1)]);
}

pub async fn what_is_written_of_nodes_is_read_once_by_its_version(place: Arc<Place>) {
    let (one, other) = (place.open().await, place.open().await);
    let before = other.nodes_version().await.unwrap();
    one.upsert_nodes("a", &[node("m", 1, false), node("n", 1, false)]).await.unwrap();
    let version = other.nodes_version().await.unwrap();
    assert_eq!(other.nodes_since(before + 1).await.unwrap().len(), 2);
    one.note_cloned(&[("n".to_owned(), "{}".to_owned())]).await.unwrap();
    let news = other.nodes_since(version + 1).await.unwrap();
    let told: Vec<_> = news.iter().map(|node| (node.id.as_str(), node.cloned.as_deref())).collect();
    assert_eq!(told, [("n", Some("{}"))]);
    let newest = other.nodes_version().await.unwrap();
    assert_eq!((newest, other.nodes_since(newest + 1).await.unwrap()), (version + 1, vec![]));
}

pub async fn control_planes_hear_of_each_other_by_the_clock_of_the_database(place: Arc<Place>) {
    let (one, other) = (place.open().await, place.open().await);
    one.beat(&replica("a")).await.unwrap();
    sleep(Duration::from_millis(60)).await;
    let found = other.beat(&replica("b")).await.unwrap();
    let silent: Vec<_> = found.iter().map(|replica| (replica.id.as_str(), replica.silent_ms)).collect();
    let [("a", silent_ms), ("b", 0)] = silent[..] else { panic!("{silent:?}") };
    assert!((50..SOON.as_millis() as u64).contains(&silent_ms), "{silent_ms}");
    assert_eq!(found[1], replica("b"));
    one.leave("a").await.unwrap();
    let found = other.beat(&replica("b")).await.unwrap();
    assert_eq!(found, [replica("b")]);
}
