//! Records of requests: each once, found by what it is searched by, counted by channel and class, forgotten by age.

use std::sync::Arc;

use control_plane::store::Store;
use control_plane::store::rows::{
    FailureCount, Filter, KeptRecord, RequestSummary, UsageFilter, Used, UsedBy,
};

use crate::{NOW, Place, lead};

/// Every request.
fn any() -> Filter {
    Filter {
        since_ms: 0,
        until_ms: i64::MAX as u64,
        model: String::new(),
        node: String::new(),
        key: String::new(),
        outcome: String::new(),
        status: 0,
        attempts_min: 0,
        slower_than_us: 0,
        channel: String::new(),
        class: String::new(),
    }
}

/// The request number `n`, which asked these channels with these ends.
fn record(n: u64, attempts: &[(&str, &str)]) -> KeptRecord {
    let last = attempts.last();
    let is_served = last.is_some_and(|(_, class)| *class == "ok");
    KeptRecord {
        summary: RequestSummary {
            request_id: id(n),
            node: format!("node-{}", n % 2),
            began_at_ms: NOW + n,
            model: "gpt-4o".to_owned(),
            dialect: "openai-chat".to_owned(),
            key: "k'1".to_owned(),
            channel: last.map_or("", |(channel, _)| channel).to_owned(),
            outcome: if is_served { "served" } else { "exhausted" }.to_owned(),
            status: if is_served { 200 } else { 502 },
            attempts: attempts.len() as u32,
            duration_us: n * 1000,
        },
        client_request_id: format!("mine-{n}"),
        attempts: attempts.iter().map(|(channel, class)| ((*channel).into(), (*class).into())).collect(),
        record: vec![0, 255, n as u8],
        is_kept: true,
        cost: Some(n),
        price: None,
        used: Used {
            requests: 1,
            served: is_served.into(),
            input: 10,
            output: n,
            price: 3,
            ..Used::default()
        },
        used_by: ((n / 100) as u32, "k'1".to_owned(), "gpt-4o".to_owned()),
    }
}

fn id(n: u64) -> String {
    format!("01890a5d-ac96-7000-8000-{n:012}")
}

async fn numbers(store: &Store, filter: Filter, before: &str, limit: u32) -> Vec<u64> {
    let listed = store.requests(&filter, before, limit).await.unwrap();
    listed.iter().map(|summary| summary.began_at_ms - NOW).collect()
}

async fn mixed(store: &Store) {
    let rows = [
        record(1, &[("a", "ok")]),
        record(2, &[("a", "overloaded"), ("b", "ok")]),
        record(3, &[("a", "overloaded"), ("b", "connect"), ("c", "timeout")]),
        record(4, &[("b", "connect"), ("c", "ok")]),
        record(5, &[]),
    ];
    store.keep_records(&rows).await.unwrap();
}

pub async fn a_record_is_kept_once_however_often_and_by_whomever_it_is_brought(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    let rows: Vec<_> = (0..250).map(|n| record(n, &[("a", "overloaded"), ("b", "ok")])).collect();
    let mut bringing = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (store, mut rows) = (stores[n % 2].clone(), rows.clone());
        if n % 2 == 1 {
            rows.iter_mut().for_each(|row| row.record.push(1));
        }
        // Some are not kept, and counted once all the same.
        rows.iter_mut()
            .filter(|row| row.summary.began_at_ms.is_multiple_of(5))
            .for_each(|row| row.is_kept = false);
        bringing.spawn(async move { store.keep_records(&rows).await });
    }
    bringing.join_all().await.into_iter().for_each(Result::unwrap);
    let left_out = (NOW..NOW + 250).filter(|at| at.is_multiple_of(5)).count() as u64;
    assert_eq!(stores[0].requests(&any(), "", 1000).await.unwrap().len() as u64, 250 - left_out);
    let counted = stores[1].failures(&any()).await.unwrap();
    assert_eq!(counted.iter().map(|count| count.attempts).collect::<Vec<_>>(), [250 - left_out]);
    let seven = (7..12).find(|n| !(NOW + n).is_multiple_of(5)).unwrap();
    let found = stores[0].record(&id(seven), None).await.unwrap().unwrap();
    assert_eq!(&found.record[..3], &[0, 255, seven as u8][..]);
    assert_eq!((found.node, found.cost, found.price), (format!("node-{}", seven % 2), Some(seven), None));
    let sum = |from: u64, to: u64| Used {
        requests: to - from,
        served: to - from,
        input: 10 * (to - from),
        output: (from..to).sum(),
        price: 3 * (to - from),
        ..Used::default()
    };
    let days: Vec<_> = used(&stores[1], UsageFilter { by_day: true, ..ever() }).await;
    let day = |day| UsedBy { day: Some(day), ..UsedBy::default() };
    let wanted = [(day(0), sum(0, 100)), (day(1), sum(100, 200)), (day(2), sum(200, 250))];
    assert_eq!(days, wanted, "each is counted once, kept or not");
}

pub async fn a_request_is_found_by_our_id_or_the_newest_with_the_callers(place: Arc<Place>) {
    let store = place.open().await;
    mixed(&store).await;
    let again = KeptRecord { client_request_id: "mine-1".to_owned(), ..record(9, &[("a", "ok")]) };
    store.keep_records(&[again]).await.unwrap();
    for (id, expected) in [(id(1), Some(1)), ("mine-1".to_owned(), Some(9)), ("mine-77".to_owned(), None)] {
        for (key, is_theirs) in [(None, true), (Some("k'1"), true), (Some("k"), false), (Some(""), false)] {
            let found = store.record(&id, key).await.unwrap();
            assert_eq!(found.map(|found| found.record[2]), expected.filter(|_| is_theirs), "{id} {key:?}");
        }
    }
}

fn ever() -> UsageFilter {
    UsageFilter { last_day: u32::MAX, ..UsageFilter::default() }
}

async fn used(store: &Store, filter: UsageFilter) -> Vec<(UsedBy, Used)> {
    store.usage(&filter).await.unwrap()
}

pub async fn what_was_used_is_told_apart_as_asked_and_kept_longer_than_records(place: Arc<Place>) {
    let store = place.open().await;
    let by = |n, key: &str, model: &str| KeptRecord {
        used_by: (n as u32, key.to_owned(), model.to_owned()),
        ..record(n, &[("a", "ok")])
    };
    let rows = [by(1, "k1", "m1"), by(2, "k1", "m2"), by(3, "k2", "m1"), by(4, "", "")];
    store.keep_records(&rows).await.unwrap();
    store.keep_records(&rows[..2]).await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    let outputs = async |filter: UsageFilter| {
        let used = used(&store, filter).await;
        used.into_iter().map(|(by, used)| (by.key, by.model, used.output)).collect::<Vec<_>>()
    };
    for (filter, expected) in [
        (ever(), vec![(None, None, 10)]),
        (
            UsageFilter { by_key: true, ..ever() },
            vec![(text(""), None, 4), (text("k1"), None, 3), (text("k2"), None, 3)],
        ),
        (
            UsageFilter { by_model: true, ..ever() },
            vec![(None, text(""), 4), (None, text("m1"), 4), (None, text("m2"), 2)],
        ),
        (
            UsageFilter { key: text("k1"), by_model: true, ..ever() },
            vec![(None, text("m1"), 1), (None, text("m2"), 2)],
        ),
        (UsageFilter { model: text("m1"), ..ever() }, vec![(None, None, 4)]),
        (UsageFilter { first_day: 2, last_day: 3, ..ever() }, vec![(None, None, 5)]),
        (UsageFilter { key: text("nobody"), by_day: true, ..ever() }, vec![]),
    ] {
        assert_eq!(outputs(filter.clone()).await, expected, "{filter:?}");
    }
    let leader = lead(&store).await;
    store.forget_records(leader, NOW + 100).await.unwrap();
    assert_eq!(outputs(ever()).await, [(None, None, 10)], "records go before what is counted of them");
    store.forget_usage(leader, 3).await.unwrap();
    assert_eq!(outputs(ever()).await, [(None, None, 7)]);
    assert!(store.forget_usage(leader + 1, 9).await.is_err(), "who does not lead forgets nothing");
}

pub async fn requests_are_listed_newest_first_by_every_filter_and_by_page(place: Arc<Place>) {
    let store = place.open().await;
    mixed(&store).await;
    let text = |text: &str| text.to_owned();
    for (filter, expected) in [
        (any(), vec![5, 4, 3, 2, 1]),
        (Filter { since_ms: NOW + 2, until_ms: NOW + 4, ..any() }, vec![3, 2]),
        (Filter { model: text("gpt-4o"), ..any() }, vec![5, 4, 3, 2, 1]),
        (Filter { model: text("gpt-4"), ..any() }, vec![]),
        (Filter { node: text("node-1"), ..any() }, vec![5, 3, 1]),
        (Filter { key: text("k'1"), outcome: text("exhausted"), ..any() }, vec![5, 3]),
        (Filter { status: 502, ..any() }, vec![5, 3]),
        (Filter { attempts_min: 2, ..any() }, vec![4, 3, 2]),
        (Filter { slower_than_us: 4_000, ..any() }, vec![5, 4]),
        (Filter { channel: text("a"), ..any() }, vec![3, 2, 1]),
        (Filter { class: text("connect"), ..any() }, vec![4, 3]),
        (Filter { channel: text("a"), class: text("connect"), ..any() }, vec![]),
        (Filter { channel: text("b"), class: text("connect"), outcome: text("served"), ..any() }, vec![4]),
    ] {
        assert_eq!(numbers(&store, filter.clone(), "", 50).await, expected, "{filter:?}");
    }
    assert_eq!(numbers(&store, any(), "", 2).await, [5, 4]);
    assert_eq!(numbers(&store, any(), &id(4), 2).await, [3, 2]);
    assert!(numbers(&store, any(), &id(1), 2).await.is_empty());
    let listed = store.requests(&any(), &id(4), 1).await.unwrap();
    assert_eq!(listed, [record(3, &[("a", "overloaded"), ("b", "connect"), ("c", "timeout")]).summary]);
}

pub async fn failed_attempts_are_counted_with_how_many_callers_did_not_notice(place: Arc<Place>) {
    let store = place.open().await;
    mixed(&store).await;
    let count = |channel: &str, class: &str, attempts, cured| FailureCount {
        channel: channel.into(),
        class: class.into(),
        attempts,
        cured,
    };
    let all = [count("a", "overloaded", 2, 1), count("b", "connect", 2, 1), count("c", "timeout", 1, 0)];
    assert_eq!(store.failures(&any()).await.unwrap(), all);
    let of_b = Filter { channel: "b".into(), node: "node-0".into(), ..any() };
    assert_eq!(store.failures(&of_b).await.unwrap(), [count("b", "connect", 1, 1)]);
}

pub async fn old_records_are_forgotten_a_batch_at_a_time(place: Arc<Place>) {
    let store = place.open().await;
    for from in [0, 2000, 4000] {
        let rows: Vec<_> = (from..from + 2000).map(|n| record(n, &[("a", "overloaded")])).collect();
        store.keep_records(&rows).await.unwrap();
    }
    let leader = lead(&store).await;
    let all = async || {
        let counted = store.failures(&any()).await.unwrap();
        counted.iter().map(|count| count.attempts).sum::<u64>()
    };
    let before = NOW + 5_900;
    assert!(store.forget_records(leader, before).await.unwrap(), "there is more than one batch");
    assert_eq!(all().await, 999);
    assert!(!store.forget_records(leader, before).await.unwrap());
    assert_eq!(all().await, 100);
    assert_eq!(numbers(&store, any(), "", 1000).await.last(), Some(&5_900));
    assert!(
        store.forget_records(leader + 1, NOW + 9_000).await.is_err(),
        "who does not lead forgets nothing"
    );
    assert_eq!(all().await, 100);
}
