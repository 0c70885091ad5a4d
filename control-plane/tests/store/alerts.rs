//! Alerts, what is to be told of them, and the beats of jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_plane::store::StoreError;
use control_plane::store::alerting::{Alert, Beat, Delivery, Group, Kind, Silence, Step, Told};

use crate::cases::entry;
use crate::{NOW, Place, lead};

fn alert(id: &str, resolved_at_ms: u64, told: Told) -> Alert {
    Alert {
        id: id.into(),
        kind: Kind::NodeLost,
        object: format!("node {id}"),
        summary: "it's lost".into(),
        raised_at_ms: NOW,
        gone_since_ms: 0,
        resolved_at_ms,
        told,
    }
}

fn delivery(notice: &str, next_at_ms: u64) -> Delivery {
    Delivery {
        notice: notice.into(),
        receiver: "ops".into(),
        kind: "node-lost".into(),
        body: "{}".into(),
        made_at_ms: NOW,
        tries: 0,
        next_at_ms,
        done_at_ms: 0,
        failure: String::new(),
    }
}

pub async fn what_is_still_to_be_said_of_alerts_is_kept_by_whoever_leads(place: Arc<Place>) {
    let store = place.open().await;
    let leader = lead(&store).await;
    let changed = vec![
        alert("a", 0, Told::Nothing),
        alert("b", NOW + 1, Told::Raised),
        alert("c", NOW + 1, Told::Over),
    ];
    let groups = BTreeMap::from([(Kind::NodeLost, Group { number: 1, told_at_ms: NOW })]);
    let step = Step { changed: changed.clone(), groups: groups.clone(), notices: vec![] };
    let deliveries = [delivery("n-1", NOW), delivery("n-2", NOW + 5)];
    assert!(matches!(store.keep_alerts(leader + 1, &step, &deliveries).await, Err(StoreError::Fenced)));
    assert_eq!(store.alerts(0).await.unwrap(), [], "nothing of it is kept");
    assert_eq!(store.deliveries_due(u64::MAX).await.unwrap(), []);
    store.keep_alerts(leader, &step, &deliveries).await.unwrap();

    let books = store.alert_books(NOW).await.unwrap();
    assert_eq!((&books.alerts[..], &books.groups), (&changed[..2], &groups));
    assert_eq!(store.alerts(NOW + 1).await.unwrap().len(), 3);
    assert_eq!(store.alerts(u64::MAX).await.unwrap(), changed[..1]);
    let over =
        Alert { gone_since_ms: NOW + 2, resolved_at_ms: NOW + 3, told: Told::Over, ..changed[0].clone() };
    let groups = BTreeMap::from([(Kind::NodeLost, Group { number: 2, told_at_ms: NOW + 3 })]);
    let step = Step { changed: vec![over], groups, notices: vec![] };
    store.keep_alerts(leader, &step, &[]).await.unwrap();
    let books = store.alert_books(NOW).await.unwrap();
    assert_eq!((books.alerts, books.groups[&Kind::NodeLost].number), (vec![changed[1].clone()], 2));

    assert_eq!(store.deliveries_due(NOW).await.unwrap(), deliveries[..1]);
    let failed =
        Delivery { tries: 1, next_at_ms: NOW + 9, failure: "answered 500".into(), ..deliveries[0].clone() };
    store.keep_deliveries(leader, std::slice::from_ref(&failed)).await.unwrap();
    assert_eq!(store.undelivered(NOW).await.unwrap(), std::slice::from_ref(&failed));
    let done = Delivery { tries: 2, done_at_ms: NOW + 9, failure: String::new(), ..failed };
    store.keep_deliveries(leader, &[done]).await.unwrap();
    assert_eq!(store.deliveries_due(NOW + 10).await.unwrap(), deliveries[1..]);
    assert_eq!(store.undelivered(NOW).await.unwrap(), []);

    store.forget_alerts(leader, NOW + 2).await.unwrap();
    let left: Vec<String> = store.alerts(0).await.unwrap().into_iter().map(|alert| alert.id).collect();
    assert_eq!(left, ["a"], "the others were over before");
    assert_eq!(store.deliveries_due(u64::MAX).await.unwrap(), []);
}

pub async fn a_silence_lasts_until_its_end_or_until_somebody_ends_it(place: Arc<Place>) {
    let store = place.open().await;
    let silence = |id: &str, kind, until_ms| Silence {
        id: id.into(),
        kind,
        object: String::new(),
        reason: "it's known".into(),
        created_by: "ann".into(),
        created_at_ms: NOW,
        until_ms,
    };
    let (short, long) = (silence("s1", None, NOW + 10), silence("s2", Some(Kind::MissedBeat), NOW + 20));
    for silence in [&short, &long] {
        store.silence_alerts(silence, &entry()).await.unwrap();
    }
    let lasting = async |now| store.alert_books(now).await.unwrap().silences;
    assert_eq!(lasting(NOW).await, [short, long.clone()]);
    assert_eq!(lasting(NOW + 10).await, [long]);
    let logged = store.log_head().await.unwrap().seq;
    let ended = store.unsilence_alerts("s2", NOW + 5, &entry()).await.unwrap().unwrap();
    assert_eq!((ended.id.as_str(), ended.until_ms), ("s2", NOW + 5));
    assert_eq!(store.unsilence_alerts("s2", NOW + 5, &entry()).await.unwrap(), None);
    assert_eq!(store.log_head().await.unwrap().seq, logged + 1, "what changes nothing is not logged");
}

pub async fn beats_grow_old_by_the_databases_clock_and_go_with_their_control_plane(place: Arc<Place>) {
    let store = place.open().await;
    let beat = |control_plane: &str, name: &str, job: &str| Beat {
        control_plane: control_plane.into(),
        name: name.into(),
        job: job.into(),
        written_ago_ms: 0,
        age_ms: 7,
        period_ms: 1000,
    };
    let jobs = async || {
        let beats = store.beats().await.unwrap();
        beats.into_iter().map(|beat| (beat.control_plane, beat.job, beat.age_ms)).collect::<Vec<_>>()
    };
    let row =
        |control_plane: &str, job: &str, age_ms: u64| (control_plane.to_owned(), job.to_owned(), age_ms);
    store.write_beats(&[beat("p1", "one", "head"), beat("p1", "one", "leader")]).await.unwrap();
    store.write_beats(&[beat("p2", "two", "head")]).await.unwrap();
    store.write_beats(&[Beat { age_ms: 9, ..beat("p2", "two", "head") }]).await.unwrap();
    assert_eq!(jobs().await, [row("p1", "head", 7), row("p1", "leader", 7), row("p2", "head", 9)]);
    place
        .execute("update job_beat set written_at_ms = written_at_ms - 5000 where control_plane = 'p1'")
        .await;
    let old = store.beats().await.unwrap();
    assert!((5000..60_000).contains(&old[0].written_ago_ms), "{old:?}");
    store.write_beats(&[beat("p3", "one", "head")]).await.unwrap();
    assert_eq!(jobs().await, [row("p3", "head", 7), row("p2", "head", 9)], "it has taken the place of p1");
    store.leave_beats("p3").await.unwrap();
    assert_eq!(jobs().await, [row("p2", "head", 9)]);

    store.note_mismatch("n1", NOW).await.unwrap();
    store.note_mismatch("n2", NOW + 1).await.unwrap();
    store.note_mismatch("n1", NOW + 2).await.unwrap();
    assert_eq!(store.mismatches(NOW + 1).await.unwrap(), ["n1", "n2"]);
    store.forget_mismatches(NOW + 2).await.unwrap();
    assert_eq!(store.mismatches(0).await.unwrap(), ["n1"]);
}
