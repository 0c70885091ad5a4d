use std::time::Duration;

use common::catalog::rollout::Plan;

use super::*;
use crate::nodes::{Facts, Pause};
use crate::rollout::{Pause as Why, State as RolloutState, Strategy};

const NOW_MS: u64 = 1_796_046_279_000;
const MISSED: Duration = Duration::from_secs(120);

fn node(id: &str, state: State, facts: Facts) -> NodeView {
    let is_connected = state == State::InSync;
    NodeView { state, ..NodeView::of(id, facts, is_connected, false, None, NOW_MS - 60_000) }
}

fn paused(id: &str, pauses: &[(&str, &str, &str, &str)]) -> NodeView {
    let pauses = pauses.iter().map(|(channel, model, what, class)| Pause {
        channel: (*channel).to_owned(),
        model: (*model).to_owned(),
        what: (*what).to_owned(),
        class: (*class).to_owned(),
        since_ms: 0,
        until_ms: NOW_MS,
    });
    node(id, State::InSync, Facts { pauses: pauses.collect(), ..Facts::default() })
}

fn open(id: &str, channels: &[&str]) -> NodeView {
    let open_channels = channels.iter().map(|channel| (*channel).to_owned()).collect();
    node(id, State::InSync, Facts { open_channels, ..Facts::default() })
}

fn said(seen: &Seen<'_>) -> Vec<(&'static str, String)> {
    find(seen, MISSED, NOW_MS).into_iter().map(|found| (found.kind.as_str(), found.object)).collect()
}

fn of_nodes(nodes: &[NodeView]) -> Vec<(&'static str, String)> {
    said(&Seen { nodes, ..Seen::default() })
}

fn list(found: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    found.iter().map(|(kind, object)| (*kind, (*object).to_owned())).collect()
}

#[test]
fn br_042_what_is_suspended_is_told_by_its_reason_once_for_all_nodes() {
    let pauses = [
        ("a", "", "credential suspended", "credential"),
        ("b", "", "suspended", "balance"),
        ("c", "m", "suspended", "misconfigured"),
        ("d", "", "cooling down", "rate_limited"),
    ];
    let nodes = [paused("n1", &pauses), paused("n2", &pauses[..1])];
    let want = [("credential-disabled", "a"), ("balance-exhausted", "b"), ("channel-suspended", "c for m")];
    assert_eq!(of_nodes(&nodes), list(&want));
    let found = find(&Seen { nodes: &nodes, ..Seen::default() }, MISSED, NOW_MS);
    assert_eq!(found[0].summary, "the credential of channel a is refused, or cannot be read, on n1, n2");
    assert_eq!(found[2].summary, "channel c for m is suspended (misconfigured) on n1");
}

#[test]
fn a_breaker_is_told_of_where_it_is_open_on_more_than_half_of_the_nodes() {
    for (nodes, found) in [
        (vec![open("n1", &["a"])], vec![("breaker-open", "a")]),
        (vec![open("n1", &["a"]), open("n2", &[])], vec![]),
        (
            vec![open("n1", &["a", "b"]), open("n2", &["a"]), open("n3", &["b"])],
            vec![("breaker-open", "a"), ("breaker-open", "b")],
        ),
        (vec![node("n1", State::Drained, open("n1", &["a"]).facts)], vec![]),
        (vec![], vec![]),
    ] {
        assert_eq!(of_nodes(&nodes), list(&found), "{nodes:?}");
    }
}

#[test]
fn a_node_is_lost_that_did_not_say_goodbye_and_is_expected_back() {
    let seen_ago = |hours: u64| NodeView {
        last_seen_at_ms: NOW_MS - hours * 60 * 60 * 1000,
        ..node("n1", State::Lost, Facts::default())
    };
    assert_eq!(of_nodes(&[seen_ago(23)]), list(&[("node-lost", "n1")]));
    assert_eq!(of_nodes(&[seen_ago(25)]), []);
    assert_eq!(of_nodes(&[node("n1", State::Drained, Facts::default())]), []);
}

#[test]
fn a_rollout_is_halted_that_stopped_or_went_back_by_itself() {
    let rollout = |revision, state, reason: &str| Rollout {
        state,
        reason: reason.to_owned(),
        ..Rollout::begin(revision, 1, Strategy::Staged, &Plan::default(), NOW_MS)
    };
    let found = |newest: &Rollout, before: Option<&Rollout>| {
        said(&Seen { rollout: Some(newest), before, ..Seen::default() })
    };
    let halted = list(&[("rollout-halted", "revision 2")]);
    for why in [Why::Lost, Why::Nobody, Why::Stuck] {
        assert_eq!(found(&rollout(2, RolloutState::Paused(why), ""), None), halted);
    }
    assert_eq!(found(&rollout(2, RolloutState::Paused(Why::Operator), ""), None), []);
    assert_eq!(found(&rollout(2, RolloutState::Running, ""), None), []);
    let undone = rollout(2, RolloutState::Undone(3), "node n1 refused it");
    assert_eq!(found(&rollout(3, RolloutState::Done, ""), Some(&undone)), halted);
    assert_eq!(found(&rollout(4, RolloutState::Running, ""), Some(&undone)), [], "a newer revision");
    let aborted = rollout(2, RolloutState::Aborted(3), "");
    assert_eq!(found(&rollout(3, RolloutState::Done, ""), Some(&aborted)), [], "by an operator");
    let long_ago = Rollout { since_ms: NOW_MS - 25 * 60 * 60 * 1000, ..undone };
    assert_eq!(found(&rollout(3, RolloutState::Done, ""), Some(&long_ago)), []);
}

#[test]
fn a_job_that_is_late_is_told_of_and_of_a_silent_control_plane_all_jobs_at_once() {
    let beat = |name: &str, job: &str, written: u64, age: u64, period: u64| Beat {
        control_plane: format!("id of {name}"),
        name: name.to_owned(),
        job: job.to_owned(),
        written_ago_ms: written * 1000,
        age_ms: age * 1000,
        period_ms: period * 1000,
    };
    for (beats, found) in [
        (vec![beat("p1", "head", 5, 100, 2), beat("p1", "rollup", 5, 400, 300)], vec![]),
        (
            vec![beat("p1", "head", 5, 118, 2), beat("p1", "rollup", 5, 416, 300)],
            vec![("missed-beat", "head at p1"), ("missed-beat", "rollup at p1")],
        ),
        (
            vec![beat("p1", "head", 121, 1, 2), beat("p1", "nodes", 121, 1, 1), beat("p2", "head", 1, 1, 2)],
            vec![("missed-beat", "p1")],
        ),
        (vec![beat("p1", "head", 2 * 60 * 60, 1, 2)], vec![]),
    ] {
        assert_eq!(said(&Seen { beats: &beats, ..Seen::default() }), list(&found), "{beats:?}");
    }
}

#[test]
fn what_others_say_is_cut_and_holds_no_line_breaks() {
    assert_eq!(short("a\nb\u{7}c"), "a b c");
    let long = short(&"ä".repeat(500));
    assert_eq!((long.chars().count(), long.ends_with('…')), (WORDS_MAX + 1, true));
    assert_eq!(names(["a", "b", "c", "d", "e", "f", "g"].into_iter()), "a, b, c, d, e and 2 more");
}
