//! Tests of what the demo shows.

use std::path::Path;
use std::time::Duration;

use common::pb::admin;
use serde_json::json;
use tokio::time::Instant;

use super::look::{Look, Out, out_on};
use super::picture::{Break, Picture, Story};
use super::traffic::{Counts, Seen};
use super::view;

fn look() -> Look {
    let hop = |channel: &str, order: &str| admin::Hop {
        channel: channel.to_owned(),
        order: order.to_owned(),
        ..admin::Hop::default()
    };
    let mut look = Look {
        chains: vec![admin::Chain {
            model: "m".to_owned(),
            dialect: "openai-chat".to_owned(),
            revision: 3,
            hops: vec![hop("a", "1.5"), hop("b", "2")],
        }],
        asked: vec!["node-1".to_owned(), "node-2".to_owned()],
        ..Look::default()
    };
    let out = Out { why: "breaker_open".to_owned(), seconds_left: Some(4.2) };
    look.out.insert(("node-2".to_owned(), "a".to_owned()), out);
    look
}

fn picture<'a>(look: &'a Look, story: &'a Story) -> Picture<'a> {
    let mut seen = Seen::default();
    seen.models.insert("m".to_owned(), Counts { served: 1999, exhausted: 1, cut: 0, other: 0 });
    seen.recent.insert(("m".to_owned(), "b".to_owned()), 7);
    Picture {
        uptime: Duration::from_secs(65),
        left: None,
        look,
        seen,
        providers: &[],
        chosen: 0,
        story,
        dir: Path::new("/tmp/x"),
        is_paused: false,
    }
}

#[tokio::test]
async fn a_block_shows_order_breakers_with_seconds_left_and_both_kinds_of_numbers() {
    let (look, story) = (look(), Story::new(Instant::now()));
    let text = view::block(&picture(&look, &story));
    assert!(text.contains("1:05  m           a 1.5 (0) > b 2 (7)"), "{text}");
    assert!(text.contains("requests seen 1999/1/0 99.95 %, counted no data"), "{text}");
    assert!(text.contains("a closed/open 4.2 s"), "{text}");
    assert!(text.contains("counted nothing yet"), "{text}");
}

#[tokio::test]
async fn what_was_not_observed_is_not_shown_as_success() {
    let story = Story::new(Instant::now());
    let mut look = look();
    look.status = Some(admin::Status {
        models: vec![admin::ModelStatus { model: "m".to_owned(), ..admin::ModelStatus::default() }],
        channels: vec![admin::ChannelStatus { channel: "a".to_owned(), ..admin::ChannelStatus::default() }],
        ..admin::Status::default()
    });
    let text = view::block(&picture(&look, &story));
    assert!(!text.contains("100 %") && text.contains("a closed/open 4.2 s (no data)"));
}

#[tokio::test]
async fn the_page_has_the_same_height_whatever_the_news() {
    let look = look();
    let (quiet, mut loud) = (Story::new(Instant::now()), Story::new(Instant::now()));
    (0..99).for_each(|n| loud.tell(format!("news {n}")));
    assert_eq!(view::page(&picture(&look, &quiet)).len(), view::page(&picture(&look, &loud)).len());
}

#[tokio::test]
async fn a_breaker_that_opens_or_closes_is_news() {
    let mut story = Story::new(Instant::now());
    let open = look();
    story.note(&Look::default(), &open);
    story.note(&open, &open);
    story.note(&open, &Look::default());
    let news = story.take_news();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news[0].ends_with("node-2 takes a out: breaker open, for 4.2 s"), "{news:?}");
    assert!(news[1].ends_with("node-2 takes a in again"), "{news:?}");
}

#[test]
fn the_page_of_a_node_tells_which_channels_are_out() {
    let page = json!({"models": [{"model": "m", "chains": [{"dialect": "openai-chat", "routes": [
        {"channel": "a", "state": "breaker_open", "seconds_left": 3.5},
        {"channel": "b", "state": "available", "seconds_left": null},
    ]}]}]});
    let out: Vec<_> = out_on(&page).collect();
    assert_eq!(out, [("a".to_owned(), Out { why: "breaker_open".to_owned(), seconds_left: Some(3.5) })]);
    assert_eq!(out_on(&json!({})).count(), 0);
}

#[test]
fn each_way_to_break_has_a_key_of_its_own() {
    for what in Break::ALL {
        assert_eq!(Break::of_key(what.key().0), Some(what));
    }
    assert!(Break::ALL.iter().all(|what| !"pq?123".contains(what.key().0)));
}
