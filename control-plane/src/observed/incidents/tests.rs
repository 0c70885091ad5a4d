//! Incidents by table: what is one, when it began and ended, what callers saw.

use super::*;
use crate::store::rows::{AttemptRow, RequestRow};

const MIN: u64 = 60_000;
const STEP: u64 = 5 * MIN;

/// (minute, served, failed) of the model `m`.
type Seen = (u64, u64, u64);
/// (began, ended, served, failed) of an incident, in minutes.
type Told = (u64, Option<u64>, u64, u64);

fn counted(seen: &[Seen]) -> Counted {
    let rows = seen.iter().flat_map(|(minute, served, failed)| {
        [("served", *served), ("exhausted", *failed)].map(|(outcome, count)| RequestRow {
            at_ms: minute * MIN,
            model: "m".into(),
            outcome: outcome.into(),
            count,
        })
    });
    Counted { requests: rows.filter(|row| row.count > 0).collect(), ..Counted::default() }
}

fn of(counted: &Counted, now_minute: u64) -> Vec<Incident> {
    incidents(&[Part { counted, from_ms: 0, until_ms: u64::MAX, step_ms: STEP }], now_minute * MIN)
}

#[test]
fn an_incident_is_what_callers_saw_from_its_first_bad_moment_to_its_last() {
    // (what was seen, now, what is told)
    let table: &[(&[Seen], u64, &[Told])] = &[
        (&[], 100, &[]),
        // Every moment good enough, however often something failed.
        (&[(0, 990, 10), (5, 9900, 100)], 100, &[]),
        // A bad one between good ones.
        (&[(0, 100, 0), (5, 50, 50), (10, 100, 0)], 100, &[(5, Some(10), 50, 50)]),
        // Two failures are no incident, three are.
        (&[(0, 0, 2)], 100, &[]),
        (&[(0, 0, 3)], 100, &[(0, Some(5), 0, 3)]),
        (&[(0, 0, 2), (10, 0, 1)], 100, &[(0, Some(15), 0, 3)]),
        // What was good in between is part of what callers saw; what was silent is not.
        (&[(0, 0, 9), (5, 100, 0), (15, 10, 10)], 100, &[(0, Some(20), 110, 19)]),
        // A quarter of an hour later it is another one.
        (&[(0, 0, 9), (19, 0, 7)], 100, &[(0, Some(20), 0, 16)]),
        (&[(0, 0, 9), (20, 0, 7)], 100, &[(20, Some(25), 0, 7), (0, Some(5), 0, 9)]),
        // It goes on until a quarter of an hour without a bad moment has passed.
        (&[(5, 0, 9)], 7, &[(5, None, 0, 9)]),
        (&[(5, 0, 9)], 24, &[(5, None, 0, 9)]),
        (&[(5, 0, 9)], 25, &[(5, Some(10), 0, 9)]),
    ];
    for (seen, now, want) in table {
        let found = of(&counted(seen), *now);
        let found: Vec<_> = found
            .iter()
            .map(|i| {
                (i.began_ms / MIN, i.ended_ms.map(|ms| ms / MIN), i.requests.served, i.requests.failed())
            })
            .collect();
        assert_eq!(&found, want, "{seen:?} at {now}");
    }
}

#[test]
fn what_failed_most_is_named_and_what_counts_neither_way_is_not() {
    let attempt = |channel: &str, class: &str, count| AttemptRow {
        at_ms: 0,
        model: "m".into(),
        channel: channel.into(),
        class: class.into(),
        count,
    };
    let counted = Counted {
        attempts: vec![
            attempt("a", "ok", 100),
            attempt("a", "canceled", 90),
            attempt("a", "timeout", 3),
            attempt("a", "overloaded", 8),
            attempt("b", "of_tomorrow", 5),
            attempt("b", "connect", 1),
        ],
        ..counted(&[(0, 1, 4)])
    };
    let [incident] = &of(&counted, 100)[..] else { panic!("not one") };
    let causes: Vec<_> =
        incident.causes.iter().map(|cause| (&*cause.channel, &*cause.class, cause.count)).collect();
    assert_eq!(causes, [("a", "overloaded", 8), ("b", "of_tomorrow", 5), ("a", "timeout", 3)]);
    assert_eq!(incident.success_rate, Some(0.2));
}

#[test]
fn counts_by_the_hour_and_by_five_minutes_are_put_together_at_their_border() {
    let (hours, minutes) =
        (counted(&[(0, 100, 0), (60, 50, 50), (120, 0, 99)]), counted(&[(60, 0, 99), (120, 0, 7)]));
    let border_ms = 120 * MIN;
    let parts = [
        Part { counted: &hours, from_ms: 0, until_ms: border_ms, step_ms: 60 * MIN },
        Part { counted: &minutes, from_ms: border_ms, until_ms: u64::MAX, step_ms: STEP },
    ];
    let found = incidents(&parts, 1000 * MIN);
    let [incident] = &found[..] else { panic!("{found:?}") };
    assert_eq!((incident.began_ms / MIN, incident.ended_ms.map(|ms| ms / MIN)), (60, Some(125)));
    assert_eq!((incident.requests.served, incident.requests.failed()), (50, 57), "no row counts twice");
    assert_eq!(incident.precision_seconds, 3600);
}

#[test]
fn models_do_not_mix_and_what_has_no_model_has_no_incident() {
    let mut counted = counted(&[(0, 0, 9)]);
    for model in ["other", ""] {
        let row = RequestRow { model: model.into(), ..counted.requests[0].clone() };
        counted.requests.push(row);
    }
    let found = of(&counted, 100);
    assert_eq!(found.iter().map(|incident| incident.model.as_str()).collect::<Vec<_>>(), ["m", "other"]);
}
