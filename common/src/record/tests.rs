use super::*;

fn hop(channel: &str) -> pb::RecordHop {
    pb::RecordHop {
        channel: channel.to_owned(),
        upstream_model: "m".to_owned(),
        credential: channel.bytes().next().map(u32::from),
        ..Default::default()
    }
}

fn out(channel: &str, why: &str, until_us: Option<u64>) -> pb::RecordHop {
    pb::RecordHop { out: why.to_owned(), out_until_us: until_us, ..hop(channel) }
}

fn attempt(hop: u32, class: &str, ended_us: u64) -> pb::RecordAttempt {
    let reason = if class == "ok" { "" } else { "plain" };
    pb::RecordAttempt {
        hop,
        ended_us,
        class: class.to_owned(),
        reason: reason.to_owned(),
        ..Default::default()
    }
}

fn record(
    chain: Vec<pb::RecordHop>,
    attempts: Vec<pb::RecordAttempt>,
    outcome: &str,
    code: &str,
    status: u32,
) -> pb::Record {
    pb::Record {
        chain,
        attempts,
        outcome: outcome.to_owned(),
        code: code.to_owned(),
        status,
        ..Default::default()
    }
}

fn fates(course: &Course) -> Vec<Fate> {
    course.steps.iter().map(|step| step.fate.clone()).collect()
}

fn failed(class: &str) -> Fate {
    Fate::Failed(class.to_owned())
}

#[tokio::test]
async fn what_was_decided_follows_again_from_what_was_seen() {
    let three = || vec![hop("a"), hop("b"), hop("c")];
    let canceled = |committed_us| pb::Record {
        committed_us,
        ..record(three(), vec![attempt(0, "canceled", 1)], "canceled", "", 0)
    };
    let table = [
        record(three(), vec![attempt(0, "ok", 1)], "served", "", 200),
        record(three(), vec![attempt(0, "connect", 1), attempt(1, "ok", 2)], "served", "", 200),
        record(three(), vec![attempt(0, "overloaded", 1), attempt(1, "cut", 2)], "cut", "", 200),
        record(
            three(),
            vec![attempt(0, "connect", 1), attempt(1, "overloaded", 2), attempt(2, "credential", 3)],
            "exhausted",
            "upstream_overloaded",
            503,
        ),
        record(three(), vec![attempt(0, "bad_request", 1)], "bad_request", "invalid_request", 400),
        record(
            vec![out("a", "breaker_open", Some(9)), hop("b")],
            vec![attempt(1, "ok", 2)],
            "served",
            "",
            200,
        ),
        record(
            vec![out("a", "cooling_down", Some(9)), out("b", "cooling_down", Some(5))],
            vec![],
            "exhausted",
            "no_available_channel",
            429,
        ),
        record(
            vec![out("a", "no_credential", None), out("b", "suspended", None)],
            vec![],
            "exhausted",
            "no_available_channel",
            503,
        ),
        canceled(None),
        canceled(Some(1)),
        record(vec![], vec![], "model_not_found", "model_not_found", 404),
    ];
    for record in table {
        let (was, again) = (recorded(&record), again(&record, Instant::now()).unwrap());
        assert_eq!(was, again, "{record:?}");
    }
}

#[tokio::test]
async fn a_hop_that_shows_a_refused_credential_is_passed_over_again() {
    let second = pb::RecordHop { credential: hop("a").credential, ..hop("b") };
    let chain = vec![hop("a"), second, hop("c")];
    let record = record(chain, vec![attempt(0, "credential", 1), attempt(2, "ok", 2)], "served", "", 200);
    let again = again(&record, Instant::now()).unwrap();
    assert_eq!(fates(&again), [failed("credential"), Fate::PassedOver, Fate::Answered]);
    assert_eq!(again, recorded(&record));
}

#[tokio::test]
async fn time_counts_as_it_was_recorded() {
    let minutes = |n: u64| n * 60_000_000;
    for (ended_us, asked) in [(minutes(4), 2), (minutes(5), 1)] {
        let attempts = vec![attempt(0, "timeout", ended_us), attempt(1, "ok", ended_us + 1)];
        let record = record(vec![hop("a"), hop("b")], attempts, "served", "", 200);
        assert_eq!(again(&record, Instant::now()).unwrap().steps.len(), asked);
    }
}

#[tokio::test]
async fn a_decision_that_does_not_follow_is_seen() {
    let chain = || vec![hop("a"), hop("b")];
    let wrong = [
        // A bad request went on.
        record(chain(), vec![attempt(0, "bad_request", 1), attempt(1, "ok", 2)], "served", "", 200),
        // It gave up after the first.
        record(chain(), vec![attempt(0, "connect", 1)], "exhausted", "upstream_unavailable", 503),
        // It began with the second.
        record(chain(), vec![attempt(1, "ok", 1)], "served", "", 200),
        // It said something else.
        record(
            chain(),
            vec![attempt(0, "connect", 1), attempt(1, "timeout", 2)],
            "exhausted",
            "upstream_error",
            502,
        ),
        // A submission was repeated in doubt.
        pb::Record {
            is_submission: true,
            ..record(chain(), vec![attempt(0, "connect", 1), attempt(1, "ok", 2)], "served", "", 200)
        },
    ];
    for record in wrong {
        assert_ne!(again(&record, Instant::now()).unwrap(), recorded(&record), "{record:?}");
    }
}

#[tokio::test]
async fn over_another_chain_it_ends_where_nothing_is_known() {
    let attempts = vec![attempt(0, "connect", 1), attempt(1, "ok", 2)];
    let record = record(vec![hop("a"), hop("b"), hop("c")], attempts, "served", "", 200);
    let table = [
        (vec![hop("b"), hop("a")], vec![Fate::Answered], End::Answered),
        (vec![hop("a"), hop("c")], vec![failed("connect"), Fate::Unknown], End::Unknown),
        (vec![hop("new")], vec![Fate::Unknown], End::Unknown),
        (
            vec![hop("a")],
            vec![failed("connect")],
            End::Refused { code: "upstream_unavailable".to_owned(), status: 503 },
        ),
        (
            vec![pb::RecordHop { upstream_model: "other".to_owned(), ..hop("a") }],
            vec![Fate::Unknown],
            End::Unknown,
        ),
    ];
    for (chain, expected, end) in table {
        let course = over(&record, &chain, Instant::now()).unwrap();
        assert_eq!((fates(&course), course.end), (expected, end), "{chain:?}");
    }
}

#[tokio::test]
async fn what_a_newer_node_wrote_is_no_walk_of_ours() {
    let strange = record(vec![hop("a")], vec![attempt(0, "tired", 1)], "exhausted", "", 503);
    assert!(again(&strange, Instant::now()).unwrap_err().to_string().contains("\"tired\""));
    let strange = record(vec![out("a", "asleep", None)], vec![], "exhausted", "", 503);
    assert!(again(&strange, Instant::now()).unwrap_err().to_string().contains("\"asleep\""));
}
