//! Both rates by table and by property.

use proptest::prelude::*;

use super::*;
use crate::store::rows::{AttemptRow, FirstByteRow, RequestRow};
use common::class::FailureClass;

const HOUR: Duration = Duration::from_secs(3600);

fn attempt(model: &str, channel: &str, class: &str, count: u64) -> AttemptRow {
    AttemptRow { at_ms: 0, model: model.into(), channel: channel.into(), class: class.into(), count }
}

fn request(model: &str, outcome: &str, count: u64) -> RequestRow {
    RequestRow { at_ms: 0, model: model.into(), outcome: outcome.into(), count }
}

fn first_byte(model: &str, channel: &str, bound_ms: u32, count: u64) -> FirstByteRow {
    FirstByteRow { model: model.into(), channel: channel.into(), bound_ms, count }
}

fn fleet() -> Fleet {
    Fleet {
        revision: 42,
        models: BTreeMap::from([("gpt-4o".into(), vec!["reseller".into(), "direct".into()])]),
        open_on: BTreeMap::from([("reseller".into(), vec!["node-a".into()])]),
        nodes_connected: 1,
        nodes_known: 2,
        rollout: None,
    }
}

fn status(counted: &Counted) -> Status {
    Status::of(counted, &fleet(), 100_000, HOUR, None)
}

#[test]
fn a_channel_fails_and_callers_hardly_see_it() {
    let counted = Counted {
        attempts: vec![
            attempt("gpt-4o", "reseller", "ok", 96),
            attempt("gpt-4o", "reseller", "overloaded", 3),
            attempt("gpt-4o", "reseller", "connect", 1),
            attempt("gpt-4o", "reseller", "canceled", 5),
            attempt("gpt-4o", "direct", "ok", 4),
        ],
        requests: vec![request("gpt-4o", "served", 100), request("gpt-4o", "canceled", 5)],
        first_bytes: vec![
            first_byte("gpt-4o", "", 470, 98),
            first_byte("gpt-4o", "", 820, 2),
            first_byte("gpt-4o", "reseller", 330, 96),
            first_byte("gpt-4o", "direct", 470, 4),
        ],
        until_ms: 92_000,
    };
    let status = status(&counted);
    let model = &status.models[0];
    assert_eq!(model.success_rate, Some(1.0));
    assert_eq!(model.requests, Requests { served: 100, canceled: 5, ..Requests::default() });
    let reseller = &model.channels[0];
    assert_eq!((reseller.channel.as_str(), reseller.success_rate), ("reseller", Some(0.96)));
    assert_eq!((reseller.attempts.ok, reseller.attempts.failed, reseller.attempts.neutral), (96, 4, 5));
    assert_eq!(reseller.attempts.classes["overloaded"], 3);
    assert_eq!(reseller.open_on, ["node-a"]);
    let shown =
        |seen: Option<Percentiles>| seen.map(|seen| (seen.count, seen.p50_ms, seen.p95_ms, seen.p99_ms));
    assert_eq!(shown(model.first_byte), Some((100, 470, 470, 820)));
    assert_eq!(shown(reseller.first_byte), Some((96, 330, 330, 330)));
    assert_eq!(shown(status.channels[0].first_byte), Some((4, 470, 470, 470)));
    assert_eq!(status.data_age(), Some(Duration::from_secs(8)));
}

#[test]
fn no_data_is_not_100_percent() {
    let status = status(&Counted::default());
    assert_eq!((status.models.len(), status.models[0].success_rate), (1, None));
    let channels: Vec<_> =
        status.models[0].channels.iter().map(|c| (c.channel.as_str(), c.success_rate)).collect();
    assert_eq!(channels, [("reseller", None), ("direct", None)]);
    assert_eq!((status.data_until_ms, status.data_age()), (None, None));
    assert_eq!(percent(0, 0), None);
}

#[test]
fn our_own_refusals_and_neutral_ends_are_in_neither_side_of_a_rate() {
    let refusals =
        ["invalid_api_key", "insufficient_balance", "model_not_found", "request_too_large", "no_config"];
    let mut requests: Vec<_> = refusals.map(|code| request("gpt-4o", code, 1)).into();
    requests.extend([request("gpt-4o", "bad_request", 2), request("gpt-4o", "a_code_of_tomorrow", 1)]);
    let only_neutral = status(&Counted { requests: requests.clone(), ..Counted::default() });
    assert_eq!(only_neutral.models[0].success_rate, None);
    assert_eq!(only_neutral.models[0].requests.refused, 6);
    requests.extend([
        request("gpt-4o", "served", 1),
        request("gpt-4o", "exhausted", 1),
        request("gpt-4o", "cut", 2),
    ]);
    assert_eq!(status(&Counted { requests, ..Counted::default() }).models[0].success_rate, Some(0.25));
}

#[test]
fn every_class_but_two_fails_an_attempt_and_so_does_one_that_is_not_known() {
    for class in FailureClass::ALL.map(FailureClass::as_str).into_iter().chain(["class_of_tomorrow"]) {
        let mut attempts = Attempts::default();
        attempts.add(class, 1);
        let is_neutral = matches!(class, "bad_request" | "canceled");
        assert_eq!(
            (attempts.neutral, attempts.failed),
            (u64::from(is_neutral), u64::from(!is_neutral)),
            "{class}"
        );
        assert_eq!(attempts.classes[class], 1);
    }
}

#[test]
fn one_model_is_shown_alone_with_the_attempts_made_for_it() {
    let counted = Counted {
        attempts: vec![attempt("gpt-4o", "direct", "ok", 1), attempt("old", "direct", "ok", 7)],
        requests: vec![request("gpt-4o", "served", 1), request("old", "served", 7)],
        first_bytes: vec![],
        until_ms: 1,
    };
    let all = status(&counted);
    assert_eq!(all.models.iter().map(|m| m.model.as_str()).collect::<Vec<_>>(), ["gpt-4o", "old"]);
    assert_eq!(all.channels.iter().find(|c| c.channel == "direct").unwrap().attempts.ok, 8);
    let old = Status::of(&counted, &fleet(), 100_000, HOUR, Some("old"));
    assert_eq!((old.models.len(), old.channels.len(), old.channels[0].attempts.ok), (1, 1, 7));
}

#[test]
fn a_channel_that_left_the_chain_is_shown_after_it() {
    let attempts = vec![attempt("gpt-4o", "aaa", "ok", 1), attempt("gpt-4o", "direct", "ok", 1)];
    let status = status(&Counted { attempts, ..Counted::default() });
    let order: Vec<_> = status.models[0].channels.iter().map(|c| c.channel.as_str()).collect();
    assert_eq!(order, ["reseller", "direct", "aaa"]);
}

#[test]
fn time_alone_is_no_news() {
    let counted = Counted { requests: vec![request("gpt-4o", "served", 1)], ..Counted::default() };
    let later = Status::of(&counted, &fleet(), 200_000, HOUR, None);
    assert!(status(&counted).says_the_same_as(&later));
    assert!(!status(&Counted::default()).says_the_same_as(&later));
}

#[test]
fn the_json_has_the_counts_beside_the_rate_and_null_for_no_data() {
    let json = serde_json::to_value(status(&Counted::default())).unwrap();
    let want = serde_json::json!({
        "at_ms": 100_000, "window_seconds": 3600, "revision": 42, "data_until_ms": null,
        "nodes_connected": 1, "nodes_known": 2, "rollout": null,
        "models": [{
            "model": "gpt-4o", "success_rate": null, "served": 0, "exhausted": 0, "cut": 0, "bad_request": 0,
            "canceled": 0, "refused": 0, "first_byte": null,
            "channels": [
                {"channel": "reseller", "success_rate": null, "ok": 0, "failed": 0, "neutral": 0, "classes": {},
                 "first_byte": null,                  "open_on": ["node-a"]},
                {"channel": "direct", "success_rate": null, "ok": 0, "failed": 0, "neutral": 0, "classes": {},
                 "first_byte": null,                  "open_on": []},
            ],
        }],
        "channels": [
            {"channel": "direct", "success_rate": null, "ok": 0, "failed": 0, "neutral": 0, "classes": {},
                 "first_byte": null,              "open_on": []},
            {"channel": "reseller", "success_rate": null, "ok": 0, "failed": 0, "neutral": 0, "classes": {},
                 "first_byte": null,              "open_on": ["node-a"]},
        ],
    });
    assert_eq!(json, want);
}

#[test]
fn a_percentage_never_rounds_a_failure_away() {
    let table = [
        (1, 0, "100 %"),
        (0, 1, "0 %"),
        (999_999, 1, "99.99 %"),
        (1, 999_999, "<0.01 %"),
        (96, 4, "96.00 %"),
        (2, 1, "66.66 %"),
        (u64::MAX, u64::MAX, "50.00 %"),
    ];
    for (good, bad, shown) in table {
        assert_eq!(percent(good, bad).as_deref(), Some(shown));
    }
}

#[test]
fn a_span_is_never_shorter_than_asked_for() {
    let bucket = Duration::from_secs(10);
    assert_eq!(since_ms(3_605_000, HOUR, bucket), 0);
    assert_eq!(since_ms(3_610_000, HOUR, bucket), 10_000);
    assert_eq!(since_ms(5, HOUR, bucket), 0);
}

fn counts() -> impl Strategy<Value = Counted> {
    let models = prop::sample::select(vec!["gpt-4o", "old", ""]);
    let channels = prop::sample::select(vec!["reseller", "direct", "gone"]);
    let ends: Vec<&str> =
        FailureClass::ALL.map(FailureClass::as_str).into_iter().chain(["ok", "new"]).collect();
    let outcomes = vec!["served", "exhausted", "cut", "bad_request", "canceled", "no_config", "new"];
    let attempts = (models.clone(), channels, prop::sample::select(ends), 0..1_000_000_u64)
        .prop_map(|(model, channel, end, count)| attempt(model, channel, end, count));
    let requests = (models, prop::sample::select(outcomes), 0..1_000_000_u64)
        .prop_map(|(model, outcome, count)| request(model, outcome, count));
    (prop::collection::vec(attempts, 0..40), prop::collection::vec(requests, 0..40), 0..200_000_u64).prop_map(
        |(attempts, requests, until_ms)| Counted { attempts, requests, first_bytes: vec![], until_ms },
    )
}

fn sum(attempts: &Attempts) -> u64 {
    attempts.ok + attempts.failed + attempts.neutral
}

proptest! {
    #[test]
    fn every_count_is_shown_once_and_every_rate_is_a_share(counted in counts()) {
        let status = status(&counted);
        let attempts: u64 = counted.attempts.iter().map(|row| row.count).sum();
        let requests: u64 = counted.requests.iter().map(|row| row.count).sum();
        let by_model = status.models.iter().flat_map(|m| &m.channels).map(|c| sum(&c.attempts)).sum::<u64>();
        prop_assert_eq!(by_model, attempts);
        prop_assert_eq!(status.channels.iter().map(|c| sum(&c.attempts)).sum::<u64>(), attempts);
        let outcomes = |r: &Requests| r.served + r.exhausted + r.cut + r.bad_request + r.canceled + r.refused;
        prop_assert_eq!(status.models.iter().map(|m| outcomes(&m.requests)).sum::<u64>(), requests);

        for channel in status.channels.iter().chain(status.models.iter().flat_map(|m| &m.channels)) {
            let classes: u64 = channel.attempts.classes.values().sum();
            prop_assert_eq!(classes, channel.attempts.failed + channel.attempts.neutral);
            let has_data = channel.attempts.ok + channel.attempts.failed > 0;
            prop_assert_eq!(channel.success_rate.is_some(), has_data);
            prop_assert!(channel.success_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
        }
        for model in &status.models {
            let has_data = model.requests.served + model.requests.failed() > 0;
            prop_assert_eq!(model.success_rate.is_some(), has_data);
            prop_assert!(model.success_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
        }
    }

    #[test]
    fn the_percentage_is_100_only_without_a_failure(good in 0..u64::MAX / 2, bad in 1..u64::MAX / 2) {
        prop_assert_ne!(percent(good, bad).unwrap(), "100 %");
        prop_assert_eq!(percent(good.max(1), 0).unwrap(), "100 %");
    }

    #[test]
    fn adding_rows_in_another_order_changes_nothing(counted in counts()) {
        let mut turned = counted.clone();
        turned.attempts.reverse();
        turned.requests.reverse();
        prop_assert_eq!(status(&counted), status(&turned));
    }
}
