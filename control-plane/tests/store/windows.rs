//! Counters: each window counts exactly once.

use std::sync::Arc;

use common::window::{Counts, Totals};
use control_plane::store::Store;
use control_plane::store::rows::{Claim, Claimed, FirstByteRow};
use proptest::prelude::{Strategy, any};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::{NOW, Place, lead};

/// Times in these tests are small, so that buckets are easy to see.
const S: u64 = 1000;

fn counts(ok: u64, failed: u64) -> Counts {
    let mut counts = Counts::default();
    for (class, count) in [("ok", ok), ("timeout", failed)] {
        if count > 0 {
            counts.attempts.insert(("m".into(), "c".into(), class.into()), count);
        }
    }
    if ok > 0 {
        counts.requests.insert(("m".into(), "served".into()), ok);
        counts.first_bytes.insert(("m".into(), String::new(), 330), ok);
    }
    counts
}

fn claim(boot: &str, seq: u64) -> Claim {
    Claim {
        node_id: "n".into(),
        boot_id: boot.into(),
        first_seq: seq,
        last_seq: seq,
        from_ms: (seq - 1) * 10 * S,
        until_ms: seq * 10 * S,
        counts: counts(2, 1),
        totals: Some(Totals {
            attempts: 3 * seq,
            attempts_ok: 2 * seq,
            requests: 2 * seq,
            requests_served: 2 * seq,
        }),
        acknowledged_through: seq - 1,
    }
}

const COUNTED: Claimed = Claimed::Counted { mismatch: None, rebased: false };

/// Times to the first byte, of every request.
async fn times(store: &Store) -> u64 {
    store.first_bytes(0, None).await.unwrap().iter().map(|row| row.count).sum()
}

/// Sums of attempts that were good, of those that failed, of requests that were served.
async fn sums(store: &Store) -> (u64, u64, u64) {
    let counted = store.windows(0, u64::MAX, None).await.unwrap();
    let attempts =
        |ok: bool| counted.attempts.iter().filter(|row| (row.class == "ok") == ok).map(|row| row.count).sum();
    (attempts(true), attempts(false), counted.requests.iter().map(|row| row.count).sum())
}

pub async fn a_window_counts_once_and_its_reply_may_be_lost(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.claim(&claim("b", 1)).await.unwrap(), COUNTED);
    for _ in 0..3 {
        assert_eq!(store.claim(&claim("b", 1)).await.unwrap(), Claimed::Duplicate { through: 1 });
    }
    assert_eq!(store.claim(&claim("b", 2)).await.unwrap(), COUNTED);
    assert_eq!(store.claim(&claim("b", 1)).await.unwrap(), Claimed::Duplicate { through: 2 });
    assert_eq!(sums(&store).await, (4, 2, 4));
}

pub async fn fr_039_a_window_that_cannot_be_added_is_not_claimed_either(place: Arc<Place>) {
    let store = place.open().await;
    // Requests are added last: by then the window is claimed and its attempts are added.
    place.execute("alter table request_count rename to moved").await;
    assert!(store.claim(&claim("b", 1)).await.is_err());
    place.execute("alter table moved rename to request_count").await;
    assert_eq!(sums(&store).await, (0, 0, 0));
    assert_eq!(store.claim(&claim("b", 1)).await.unwrap(), COUNTED);
    assert_eq!(sums(&store).await, (2, 1, 2));
}

pub async fn fr_041_boots_are_told_apart_by_their_id_alone(place: Arc<Place>) {
    let store = place.open().await;
    for boot in ["b1", "b2"] {
        for seq in 1..=3 {
            assert_eq!(store.claim(&claim(boot, seq)).await.unwrap(), COUNTED);
        }
    }
    // The older boot's last windows come late, after the newer one's.
    assert_eq!(store.claim(&claim("b1", 4)).await.unwrap(), COUNTED);
    assert_eq!(sums(&store).await, (14, 7, 14));
}

pub async fn of_many_who_report_the_same_window_one_counts(place: Arc<Place>) {
    let stores = [place.open().await, place.open().await];
    let mut reporting = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = stores[n % 2].clone();
        reporting.spawn(async move { store.claim(&claim("b", 1)).await.unwrap() });
    }
    let claimed = reporting.join_all().await;
    assert_eq!(claimed.iter().filter(|claimed| **claimed == COUNTED).count(), 1);
    assert_eq!(sums(&stores[0]).await, (2, 1, 2));
}

pub async fn a_clock_that_goes_back_does_not_make_the_newest_data_older(place: Arc<Place>) {
    let store = place.open().await;
    store.claim(&Claim { until_ms: 90 * S, ..claim("b", 1) }).await.unwrap();
    store.claim(&Claim { until_ms: 30 * S, ..claim("b", 2) }).await.unwrap();
    store.claim(&Claim { until_ms: 40 * S, acknowledged_through: 8, ..claim("b", 9) }).await.unwrap();
    assert_eq!(store.windows(0, 1, None).await.unwrap().until_ms, 90 * S);
}

pub async fn a_window_that_does_not_follow_counts_nothing(place: Arc<Place>) {
    let store = place.open().await;
    let early = Claim { acknowledged_through: 0, ..claim("b", 2) };
    assert_eq!(store.claim(&early).await.unwrap(), Claimed::OutOfOrder { through: 0 });
    store.claim(&claim("b", 1)).await.unwrap();
    // Half of it was counted under another window.
    let overlapping = Claim { last_seq: 3, ..claim("b", 1) };
    assert_eq!(store.claim(&overlapping).await.unwrap(), Claimed::OutOfOrder { through: 1 });
    assert_eq!(sums(&store).await, (2, 1, 2));
}

pub async fn a_restored_database_goes_on_from_what_the_node_knows(place: Arc<Place>) {
    let store = place.open().await;
    store.claim(&claim("b", 1)).await.unwrap();
    // Windows 2 to 8 were counted in the database that was lost.
    let rebased = Claimed::Counted { mismatch: None, rebased: true };
    assert_eq!(store.claim(&claim("b", 9)).await.unwrap(), rebased);
    assert_eq!(store.claim(&claim("b", 9)).await.unwrap(), Claimed::Duplicate { through: 9 });
    assert_eq!(store.claim(&claim("b", 10)).await.unwrap(), COUNTED, "the totals agree again");
    assert_eq!(sums(&store).await, (6, 3, 6));
}

pub async fn running_totals_that_differ_are_told_and_change_nothing(place: Arc<Place>) {
    let store = place.open().await;
    let mut wrong = claim("b", 1);
    wrong.totals = Some(Totals { attempts: 4, ..wrong.counts.totals() });
    let mismatch = Claimed::Counted { mismatch: Some(wrong.counts.totals()), rebased: false };
    assert_eq!(store.claim(&wrong).await.unwrap(), mismatch);
    assert_eq!(sums(&store).await, (2, 1, 2));
    let none = Claim { totals: None, ..claim("b", 2) };
    assert_eq!(store.claim(&none).await.unwrap(), COUNTED);
}

pub async fn counters_are_read_by_time_model_and_step(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.windows(0, 1, None).await.unwrap(), Default::default());
    for seq in 1..=12 {
        store.claim(&claim("b", seq)).await.unwrap();
    }
    let mut other = Claim { node_id: "n2".into(), totals: None, ..claim("b", 1) };
    other.counts = Counts::default();
    other.counts.requests.insert(("other".into(), "exhausted".into()), 7);
    store.claim(&other).await.unwrap();

    let by_ten = store.windows(0, 10 * S, Some("m")).await.unwrap();
    let starts: Vec<u64> = by_ten.requests.iter().map(|row| row.at_ms).collect();
    assert_eq!(starts, (0..12).map(|n| n * 10 * S).collect::<Vec<_>>());
    assert_eq!(by_ten.until_ms, 120 * S);

    let by_minute = store.windows(60 * S, 60 * S, None).await.unwrap();
    let row = &by_minute.requests[0];
    assert_eq!((by_minute.requests.len(), row.at_ms, row.count), (1, 60 * S, 12));

    let one = store.windows(0, u64::MAX, None).await.unwrap();
    let rows: Vec<_> =
        one.requests.iter().map(|r| (r.at_ms, r.model.as_str(), r.outcome.as_str(), r.count)).collect();
    assert_eq!(rows, [(0, "m", "served", 24), (0, "other", "exhausted", 7)]);
    assert!(store.windows(120 * S, 1, None).await.unwrap().requests.is_empty());
}

pub async fn a_window_of_another_class_or_a_very_large_count_is_kept_as_it_is(place: Arc<Place>) {
    let store = place.open().await;
    let mut of_tomorrow = Claim { totals: None, until_ms: NOW, ..claim("b", 1) };
    of_tomorrow.counts = Counts::default();
    of_tomorrow.counts.attempts.insert(("mödel\n'".into(), "c".into(), "of_tomorrow".into()), 1 << 47);
    store.claim(&of_tomorrow).await.unwrap();
    let row = &store.windows(0, u64::MAX, None).await.unwrap().attempts[0];
    assert_eq!((row.model.as_str(), row.class.as_str(), row.count), ("mödel\n'", "of_tomorrow", 1 << 47));
}

pub async fn a_window_of_thousands_of_rows_is_kept_whole(place: Arc<Place>) {
    let store = place.open().await;
    let mut large = Claim { totals: None, ..claim("b", 1) };
    large.counts = Counts::default();
    for n in 0..1_001 {
        let model = format!("m{n:04}");
        large.counts.attempts.insert((model.clone(), "c".into(), "ok".into()), n + 1);
        large.counts.requests.insert((model, "served".into()), n + 1);
    }
    for boot in ["b", "c"] {
        let claimed = store.claim(&Claim { boot_id: boot.into(), ..large.clone() }).await.unwrap();
        assert_eq!(claimed, COUNTED);
    }
    let counted = store.windows(0, 1, None).await.unwrap();
    let attempts: Vec<u64> = counted.attempts.iter().map(|row| row.count).collect();
    let requests: Vec<u64> = counted.requests.iter().map(|row| row.count).collect();
    let want: Vec<u64> = (1..=1_001).map(|n| 2 * n).collect();
    assert!(attempts == want && requests == want);
}

pub async fn older_counters_are_rolled_up_without_losing_any_and_twice_changes_nothing(place: Arc<Place>) {
    let store = place.open().await;
    for seq in 1..=30 {
        store.claim(&claim("b", seq)).await.unwrap();
    }
    let before = sums(&store).await;
    for _ in 0..2 {
        store.roll_up(lead(&store).await, 185 * S, 60 * S).await.unwrap();
        let rolled = store.windows(0, 1, None).await.unwrap();
        let starts: Vec<u64> = rolled.requests.iter().map(|row| row.at_ms / S).collect();
        let kept = (18..30).map(|n| n * 10);
        assert_eq!(starts, [0, 60, 120].into_iter().chain(kept).collect::<Vec<_>>());
        assert_eq!(rolled.requests[1].count, 12);
        assert_eq!(sums(&store).await, before);
    }
    // A window that comes late into a minute that is rolled up already joins it at the next run.
    store.claim(&Claim { boot_id: "late".into(), until_ms: 30 * S, ..claim("b", 1) }).await.unwrap();
    store.roll_up(lead(&store).await, 185 * S, 60 * S).await.unwrap();
    let rolled = store.windows(0, 1, None).await.unwrap();
    assert_eq!((rolled.requests[0].at_ms, rolled.requests[0].count), (0, 14));
    assert_eq!(sums(&store).await, (62, 31, 62));
}

pub async fn nothing_is_lost_when_windows_come_during_a_rollup(place: Arc<Place>) {
    let store = place.open().await;
    let mut working = tokio::task::JoinSet::new();
    for boot in 0..4 {
        let store = store.clone();
        working.spawn(async move {
            for seq in 1..=20 {
                let claim = Claim { boot_id: format!("b{boot}"), ..claim("", seq) };
                assert_eq!(store.claim(&claim).await.unwrap(), COUNTED);
            }
        });
    }
    let (rolling, leader) = (store.clone(), lead(&store).await);
    working.spawn(async move {
        for _ in 0..20 {
            rolling.roll_up(leader, 3600 * S, 60 * S).await.unwrap();
        }
    });
    working.join_all().await;
    assert_eq!((sums(&store).await, times(&store).await), ((160, 80, 160), 160));
}

pub async fn times_to_the_first_byte_come_with_their_window_and_are_put_together_and_forgotten(
    place: Arc<Place>,
) {
    let store = place.open().await;
    for seq in 1..=12 {
        let mut claim = claim("b", seq);
        claim.counts.first_bytes.insert(("m".into(), "c".into(), 56), 1);
        claim.counts.first_bytes.insert(("n".into(), "c".into(), 820_000), seq);
        assert_eq!(store.claim(&claim).await.unwrap(), COUNTED);
        assert_eq!(store.claim(&claim).await.unwrap(), Claimed::Duplicate { through: seq });
    }
    let row = |model: &str, channel: &str, bound_ms, count| FirstByteRow {
        model: model.into(),
        channel: channel.into(),
        bound_ms,
        count,
    };
    let of_m = |n: u64| [row("m", "", 330, 2 * n), row("m", "c", 56, n)];
    for _ in 0..2 {
        assert_eq!(store.first_bytes(0, Some("m")).await.unwrap(), of_m(12));
        assert_eq!(store.first_bytes(60 * S, Some("m")).await.unwrap(), of_m(6));
        store.roll_up(lead(&store).await, 125 * S, 60 * S).await.unwrap();
    }
    assert_eq!(store.first_bytes(0, None).await.unwrap()[2..], [row("n", "c", 820_000, 78)]);
    store.forget_first_bytes(lead(&store).await, 60 * S).await.unwrap();
    assert_eq!(store.first_bytes(0, Some("m")).await.unwrap(), of_m(6));
    assert_eq!(sums(&store).await, (24, 12, 24), "other counters stay");
}

pub async fn forgotten_counters_are_gone_and_others_stay(place: Arc<Place>) {
    let store = place.open().await;
    for seq in 1..=4 {
        store.claim(&claim("b", seq)).await.unwrap();
    }
    store.forget(lead(&store).await, 20 * S).await.unwrap();
    assert_eq!(sums(&store).await, (4, 2, 4));
    assert_eq!(store.claim(&claim("b", 1)).await.unwrap(), Claimed::Duplicate { through: 4 });
}

/// Property: whatever is sent again, in whatever order, every window counts once.
pub async fn any_order_of_retries_gives_the_same_sums(place: Arc<Place>) {
    let store = place.open().await;
    let mut runner = TestRunner::deterministic();
    let attempts = proptest::collection::vec((1u64..=6, 0usize..3), 1..40);
    let strategy = (attempts, any::<bool>());
    for run in 0..12 {
        let (order, in_order_first) = strategy.new_tree(&mut runner).unwrap().current();
        let before = sums(&store).await;
        let boots = ["x", "y", "z"].map(|boot| format!("{boot}{run}"));
        let mut sent: Vec<(u64, usize)> = order;
        if in_order_first {
            sent.splice(0..0, (1..=3).map(|seq| (seq, 0)));
        }
        // At the end everything is sent in order, as a node does that got no reply.
        sent.extend((1..=6).flat_map(|seq| (0..3).map(move |boot| (seq, boot))));
        for (seq, boot) in sent {
            let claim = Claim { boot_id: boots[boot].clone(), acknowledged_through: 0, ..claim("", seq) };
            store.claim(&claim).await.unwrap();
        }
        let after = sums(&store).await;
        assert_eq!(after, (before.0 + 36, before.1 + 18, before.2 + 36), "run {run}");
    }
}
