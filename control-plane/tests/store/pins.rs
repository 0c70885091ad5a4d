//! Nodes that are kept on a revision.

use std::sync::Arc;

use control_plane::store::rows::{Pin, Rollout};

use crate::cases::{entry, node, revision};
use crate::rollouts::rollout;
use crate::{NOW, Place, lead};

fn pin(node_id: &str, revision: u64) -> Pin {
    let (author, reason) = ("ann".to_owned(), "canary".to_owned());
    Pin { node_id: node_id.to_owned(), revision, author, reason, pinned_at_ms: NOW }
}

pub async fn a_pin_takes_the_place_of_an_earlier_one_and_moves_the_version(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=2 {
        store.insert_revision(&revision(number), &rollout(number), None, &entry()).await.unwrap();
    }
    let (version, pins) = store.pins().await.unwrap();
    assert_eq!(pins, []);
    assert!(!store.pin(&pin("a", 3), &entry()).await.unwrap(), "there is no such revision");
    assert_eq!(store.pins().await.unwrap(), (version, vec![]));
    let logged = store.log_head().await.unwrap().seq;
    assert!(store.pin(&pin("b", 1), &entry()).await.unwrap());
    assert!(store.pin(&pin("a", 1), &entry()).await.unwrap());
    assert!(store.pin(&pin("a", 2), &entry()).await.unwrap());
    assert_eq!(store.pins().await.unwrap(), (version + 3, vec![pin("a", 2), pin("b", 1)]));
    assert_eq!(store.heads().await.unwrap().pins, version + 3);
    assert!(store.unpin("a", &entry()).await.unwrap());
    assert!(!store.unpin("a", &entry()).await.unwrap());
    assert_eq!(store.pins().await.unwrap(), (version + 4, vec![pin("b", 1)]));
    assert_eq!(store.log_head().await.unwrap().seq, logged + 4, "what changes nothing is not logged");
}

pub async fn what_a_node_is_pinned_to_is_not_pruned_and_pins_go_with_their_nodes(place: Arc<Place>) {
    let store = place.open().await;
    for number in 1..=4 {
        let rollout = Rollout { is_under_way: false, ..rollout(number) };
        store.insert_revision(&revision(number), &rollout, None, &entry()).await.unwrap();
    }
    store.upsert_nodes("a control plane", &[node("old", 4, false), node("new", 9, false)]).await.unwrap();
    store.pin(&pin("old", 1), &entry()).await.unwrap();
    store.pin(&pin("unknown", 2), &entry()).await.unwrap();
    let leader = lead(&store).await;
    assert_eq!(store.prune_revisions(leader, 4).await.unwrap(), 1);
    assert!(store.revision(1).await.unwrap().is_some());
    let before = store.heads().await.unwrap().pins;
    store.forget_nodes(leader, 5).await.unwrap();
    assert_eq!(store.pins().await.unwrap(), (before + 1, vec![pin("unknown", 2)]));
    assert_eq!(store.prune_revisions(leader, 4).await.unwrap(), 1);
    assert!(store.revision(2).await.unwrap().is_some());
}
