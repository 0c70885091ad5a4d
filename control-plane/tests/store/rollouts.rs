//! Rollouts, and what they are judged by.

use std::sync::Arc;

use control_plane::store::StoreError;
use control_plane::store::rows::{By, Claim, Rollout};

use crate::cases::{entry, node, revision};
use crate::{NOW, Place, lead};

pub fn rollout(revision: u64) -> Rollout {
    Rollout { revision, base: 1, version: 1, is_under_way: true, body: r#"{"state":"running"}"#.into() }
}

pub async fn a_revision_comes_with_its_rollout_and_ends_the_one_before(place: Arc<Place>) {
    let store = place.open().await;
    assert!(store.insert_revision(&revision(1), &rollout(1), None, &entry()).await.unwrap());
    assert_eq!(store.rollout(1).await.unwrap(), Some(rollout(1)));
    assert_eq!(store.rollout(2).await.unwrap(), None);
    assert_eq!(store.heads().await.unwrap().rollout, 1);

    let over = Rollout { is_under_way: false, body: "superseded".into(), ..rollout(1) };
    assert!(store.insert_revision(&revision(2), &rollout(2), Some(&over), &entry()).await.unwrap());
    assert_eq!(store.rollout(1).await.unwrap(), Some(Rollout { version: 2, ..over }));
    let heads = store.heads().await.unwrap();
    assert_eq!((heads.revision, heads.rollout), (2, 1), "the newest one counts");
}

pub async fn of_many_who_change_a_rollout_one_does(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    stores[0].insert_revision(&revision(1), &rollout(1), None, &entry()).await.unwrap();
    let leader = lead(&stores[0]).await;
    let mut changing = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = stores[n % 2].clone();
        let changed = Rollout { body: format!("{n}"), ..rollout(1) };
        changing.spawn(async move { store.update_rollout(&changed, By::Leader(leader)).await.unwrap() });
    }
    let won = changing.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
    assert_eq!(stores[0].heads().await.unwrap().rollout, 2);
    let newest = Rollout { version: 2, ..rollout(1) };
    let over = stores[0].update_rollout(&newest, By::Leader(leader + 1)).await;
    assert!(matches!(over, Err(StoreError::Fenced)), "{over:?}");
}

pub async fn a_rollout_that_has_changed_meanwhile_is_not_ended(place: Arc<Place>) {
    let store = place.open().await;
    store.insert_revision(&revision(1), &rollout(1), None, &entry()).await.unwrap();
    assert!(store.update_rollout(&rollout(1), By::Operator(&entry())).await.unwrap());
    let over = Rollout { is_under_way: false, ..rollout(1) };
    assert!(!store.insert_revision(&revision(2), &rollout(2), Some(&over), &entry()).await.unwrap());
    assert_eq!(store.heads().await.unwrap().revision, 1, "nothing of it is kept");
    assert_eq!(store.rollout(2).await.unwrap(), None);
}

pub async fn what_a_rollout_goes_back_to_is_not_pruned(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=6 {
        let base = if number == 6 { 2 } else { 1 };
        let rollout = Rollout { base, is_under_way: number == 6, ..rollout(number) };
        assert!(store.insert_revision(&revision(number), &rollout, None, &entry()).await.unwrap());
    }
    store.upsert_nodes("p1", &[node("a", 1, false)]).await.unwrap();
    assert_eq!(store.prune_revisions(lead(&store).await, 5).await.unwrap(), 2);
    let kept: Vec<u64> =
        store.revisions(u64::MAX, 10).await.unwrap().iter().map(|revision| revision.number).collect();
    assert_eq!(kept, [6, 5, 4, 2], "a node runs 4");
    assert_eq!(store.rollout(3).await.unwrap(), None);
    assert!(store.rollout(4).await.unwrap().is_some());
}

pub async fn requests_are_counted_by_node_model_and_time_with_their_window_and_then_forgotten(
    place: Arc<Place>,
) {
    let store = place.open().await;
    let claim = |node: &str, seq: u64| {
        let ends = [("m", "served", 5), ("m", "cut", 1), ("m", "exhausted", 2), ("n", "served", 1)];
        let others = [("m", "canceled", 9), ("m", "bad_request", 9), ("o", "model_not_found", 9)];
        let requests = ends.into_iter().chain(others);
        let requests = requests.map(|(model, end, count)| ((model.to_owned(), end.to_owned()), count));
        Claim {
            node_id: node.into(),
            boot_id: "boot".into(),
            first_seq: seq,
            last_seq: seq,
            from_ms: NOW + (seq - 1) * 10_000,
            until_ms: NOW + seq * 10_000,
            counts: common::window::Counts { requests: requests.collect(), ..Default::default() },
            totals: None,
            acknowledged_through: seq - 1,
        }
    };
    for (node, seq) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("a", 2)] {
        store.claim(&claim(node, seq)).await.unwrap();
    }
    let counted = async |from: u64, until: u64| -> Vec<(String, String, u64, u64)> {
        let counts = store.node_counts(NOW + from, NOW + until).await.unwrap();
        counts.into_iter().map(|c| (c.node, c.model, c.tally.served, c.tally.failed)).collect()
    };
    let row = |node: &str, model: &str, served, failed| (node.to_owned(), model.to_owned(), served, failed);
    let all = [row("a", "m", 15, 9), row("a", "n", 3, 0), row("b", "m", 5, 3), row("b", "n", 1, 0)];
    assert_eq!(counted(0, 1_000_000).await, all, "what was sent again counts once");
    assert_eq!(counted(10_000, 20_000).await, [row("a", "m", 5, 3), row("a", "n", 1, 0)]);
    store.forget_node_counts(lead(&store).await, NOW + 20_000).await.unwrap();
    assert_eq!(counted(0, 1_000_000).await, [row("a", "m", 5, 3), row("a", "n", 1, 0)]);
}
