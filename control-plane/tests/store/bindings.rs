//! Which channel made what: kept as often as it is reported, found by its whole name, forgotten by age.

use std::sync::Arc;

use control_plane::store::Store;
use control_plane::store::rows::Binding;

use crate::{NOW, Place, lead};

fn binding(id: &str, channel: &str, made_at_ms: u64) -> Binding {
    Binding {
        dialect: "openai-videos".into(),
        id: id.into(),
        key_id: "k".into(),
        channel: channel.into(),
        model: "sora".into(),
        made_at_ms,
    }
}

async fn channel(store: &Store, id: &str) -> Option<String> {
    store.binding("openai-videos", id, "k").await.unwrap().map(|found| found.channel)
}

pub async fn a_binding_is_found_by_its_whole_name_as_it_was_reported(place: Arc<Place>) {
    let store = place.open().await;
    let ours = binding("video_'1'_ü", "a", NOW);
    let anonymous = Binding { key_id: String::new(), channel: "b".into(), ..ours.clone() };
    store.keep_bindings(&[ours.clone(), anonymous.clone()]).await.unwrap();
    assert_eq!(store.binding("openai-videos", &ours.id, "k").await.unwrap(), Some(ours.clone()));
    assert_eq!(store.binding("openai-videos", &ours.id, "").await.unwrap(), Some(anonymous));
    for (dialect, id, key) in [
        ("openai-videos", ours.id.as_str(), "other"),
        ("openai-responses", ours.id.as_str(), "k"),
        ("openai-videos", "VIDEO", "k"),
    ] {
        assert_eq!(store.binding(dialect, id, key).await.unwrap(), None);
    }
    store.close().await;
    assert_eq!(channel(&place.open().await, &ours.id).await.as_deref(), Some("a"), "also by another process");
}

pub async fn a_report_that_comes_again_or_late_changes_nothing_and_a_newer_making_counts(place: Arc<Place>) {
    let store = place.open().await;
    for (reported, expected) in [
        (binding("v", "a", NOW), "a"),
        (binding("v", "a", NOW), "a"),
        (binding("v", "b", NOW + 5), "b"),
        (binding("v", "a", NOW), "b"),
    ] {
        store.keep_bindings(&[reported]).await.unwrap();
        assert_eq!(channel(&store, "v").await.as_deref(), Some(expected));
    }
}

pub async fn a_report_of_a_thousand_is_kept_whole_whoever_reports_the_same(place: Arc<Place>) {
    let store = place.open().await;
    let all: Vec<_> = (0..1000).map(|n| binding(&format!("v{n:04}"), "a", NOW)).collect();
    let mut reporting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, all) = (store.clone(), all.clone());
        reporting.spawn(async move { store.keep_bindings(&all).await.unwrap() });
    }
    reporting.join_all().await;
    for id in ["v0000", "v0249", "v0250", "v0999"] {
        assert_eq!(channel(&store, id).await.as_deref(), Some("a"), "{id}");
    }
}

pub async fn old_bindings_are_forgotten_and_younger_ones_stay(place: Arc<Place>) {
    let store = place.open().await;
    store.keep_bindings(&[binding("old", "a", NOW - 1), binding("young", "a", NOW)]).await.unwrap();
    for _ in 0..2 {
        store.forget_bindings(lead(&store).await, NOW).await.unwrap();
        assert_eq!((channel(&store, "old").await, channel(&store, "young").await.is_some()), (None, true));
    }
}
