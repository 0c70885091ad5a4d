use super::checks::*;
use super::*;
use crate::nodes::Facts;
use crate::observed::fixture::Fixture;
use crate::secrets::held::Held;
use crate::store::rows::{Lease, Replica};
use crate::store::{SCHEMA, StoreError};

const HOUR: Duration = Duration::from_secs(3600);

fn lease(epoch: u64, until_ms: u64) -> Lease {
    Lease { holder: "p".to_owned(), epoch, until_ms }
}

fn database_with(setup: &str) -> Database {
    let (version, setup) = ("15.8".to_owned(), setup.to_owned());
    Database { kind: "PostgreSQL", version, setup, now_ms: 0, schema: 1, lease: lease(1, 1) }
}

#[test]
fn a_database_that_cannot_do_its_work_is_named_with_what_to_do() {
    let fast = Duration::from_millis(3);
    for (setup, took, verdict) in [
        ("primary", fast, Verdict::Ok),
        ("in recovery", fast, Verdict::Fault),
        ("primary, read only", fast, Verdict::Fault),
        ("primary, fsync off", fast, Verdict::Warning),
        ("primary, synchronous_commit off", fast, Verdict::Warning),
        ("primary", Duration::from_millis(101), Verdict::Warning),
    ] {
        let check = database(&database_with(setup), took);
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert!(check.message.contains("PostgreSQL 15.8") && check.message.contains(setup), "{check:?}");
        assert_eq!(check.advice.is_empty(), verdict == Verdict::Ok, "{check:?}");
    }
    assert_eq!(away(&StoreError::Silent(Duration::from_secs(8))).verdict, Verdict::Fault);
    assert_ne!(
        away(&StoreError::Silent(Duration::from_secs(8))).advice,
        away(&StoreError::Statements).advice
    );
    assert_eq!((changes(true).verdict, changes(false).verdict), (Verdict::Ok, Verdict::Warning));
    assert_eq!((schema(SCHEMA).verdict, schema(SCHEMA + 1).verdict), (Verdict::Ok, Verdict::Warning));
}

#[test]
fn clocks_are_compared_but_for_the_time_that_the_answer_took() {
    for (theirs, within, verdict) in [
        (100_000, 0, Verdict::Ok),
        (101_000, 0, Verdict::Ok),
        (101_001, 0, Verdict::Warning),
        (98_999, 0, Verdict::Warning),
        (104_000, 5_000, Verdict::Ok),
        (130_001, 0, Verdict::Fault),
        (69_999, 0, Verdict::Fault),
        (0, 0, Verdict::Fault),
    ] {
        let check = clock("clock", theirs, 100_000, Duration::from_millis(within));
        assert_eq!(check.verdict, verdict, "{theirs} within {within}: {check:?}");
    }
    assert_eq!(clock("c", 98_000, 100_000, Duration::ZERO).message, "2s behind the one here");
}

#[test]
fn a_fleet_without_a_leader_and_a_job_that_stands_still_are_told() {
    let named = Replica { id: "p".to_owned(), name: "one:7444".to_owned(), ..Replica::default() };
    assert_eq!(leader(&lease(7, 100), &[named], 99).message, "one:7444 leads, in epoch 7");
    assert_eq!(leader(&lease(7, 100), &[], 99).message, "p leads, in epoch 7");
    assert_eq!(leader(&lease(7, 100), &[], 100).verdict, Verdict::Warning);
    let second = Duration::from_secs(1);
    assert_eq!(jobs([("a", second, Some(second * 5)), ("b", HOUR, Some(HOUR))]).message, "all 2 run");
    let standing = jobs([("a", second, Some(second * 6)), ("b", HOUR, None), ("c", HOUR, Some(second))]);
    assert_eq!(
        (standing.verdict, standing.message.as_str()),
        (Verdict::Fault, "did not succeed for a while: a, b")
    );
}

#[test]
fn control_planes_are_named_and_those_of_another_version_are_told() {
    let named = |id: &str, version: &str| Replica {
        id: id.to_owned(),
        name: format!("{id}:7444"),
        version: version.to_owned(),
        ..Replica::default()
    };
    let alike = replicas(&[named("a", "0.2.0"), named("b", "0.2.7")], "a");
    assert_eq!(
        (alike.verdict, alike.message.as_str()),
        (Verdict::Ok, "2 over this database (a:7444, b:7444)")
    );
    let apart = replicas(&[named("a", "0.2.0"), named("b", "0.3.0")], "a");
    assert!(
        apart.verdict == Verdict::Warning && apart.message.ends_with("of versions 0.2.0, 0.3.0"),
        "{apart:?}"
    );
}

#[test]
fn certificates_are_named_long_before_they_end_and_listeners_in_clear_off_this_machine() {
    let days = |days: u64| days * 24 * 3600 * 1000;
    let own = Certificate::Own { life: HOUR * 24 * 8 };
    let at = |address: &str, shows| Listening { name: "fleet", address: address.parse().unwrap(), shows };
    for (shows, expires, verdict, said) in [
        (Certificate::Given, days(100), Verdict::Ok, "it holds for 90 days"),
        (Certificate::Given, days(23), Verdict::Warning, "it expires in 13 days"),
        (Certificate::Given, days(10), Verdict::Fault, "it has expired"),
        (Certificate::Given, 1, Verdict::Fault, "it has expired"),
        (own, days(12), Verdict::Ok, "it holds for 2 days, and renews itself"),
        (own, days(12) - 1, Verdict::Warning, "it expires in 47 hours"),
        (own, days(10) + 3_660_000, Verdict::Warning, "it expires in 61 minutes"),
    ] {
        let check = certificate(&at("192.0.2.1:1", shows), expires, days(10));
        assert_eq!((check.verdict, check.message), (verdict, format!("fleet: {said}")));
    }
    for (address, shows, verdict) in [
        ("127.0.0.1:1", Certificate::None, Verdict::Ok),
        ("[::ffff:127.0.0.1]:1", Certificate::None, Verdict::Ok),
        ("192.0.2.1:1", Certificate::Given, Verdict::Ok),
        ("192.0.2.1:1", Certificate::None, Verdict::Warning),
    ] {
        assert_eq!(listener(&at(address, shows)).verdict, verdict, "{address}");
    }
}

#[tokio::test]
async fn a_control_plane_is_examined_as_it_is() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    let facts = |version: &str| Facts { version: version.to_owned(), ..Facts::default() };
    let _behind = plane.nodes.connect("behind", facts(env!("CARGO_PKG_VERSION")));
    let _ancient = plane.nodes.connect("ancient", facts("7.0.0"));
    plane.leader.claim(&plane.store).await.unwrap();
    let found = examine(plane, Some(plane.clock.now_ms())).await.unwrap();
    let verdict = |name: &str| found.iter().find(|check| check.name == name).map(|check| check.verdict);
    assert_eq!(verdict("database"), Some(Verdict::Ok), "{found:?}");
    assert_eq!(verdict("leader"), Some(Verdict::Ok), "{found:?}");
    assert_eq!(verdict("clock of the caller"), Some(Verdict::Ok));
    assert_eq!(
        verdict("clock of the database"),
        Some(Verdict::Fault),
        "the clock of this fixture stands still"
    );
    assert_eq!(verdict("jobs"), Some(Verdict::Fault), "none has run");
    let nodes = found.iter().find(|check| check.name == "nodes").unwrap();
    assert_eq!((nodes.verdict, nodes.message.as_str()), (Verdict::Warning, "2 behind (ancient, behind)"));
    let versions = found.iter().find(|check| check.name == "versions").unwrap();
    assert!(versions.verdict == Verdict::Warning && versions.message.ends_with(": ancient"), "{versions:?}");
}

#[tokio::test]
async fn secrets_that_cannot_be_opened_are_a_fault_that_names_the_key() {
    use crate::access::Caller;
    use crate::secrets::keyring::Keyring;
    use common::secret::Secret;

    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    let value = Secret::parse("sk-hidden").unwrap();
    crate::secrets::set(plane, &Caller::bootstrap(), "a", &value).await.unwrap();
    let held = plane.wanted().unwrap().target.secrets.clone();
    let own = plane.keyring.sealing_id().unwrap();
    assert_eq!(secrets(&held, Some(own)).message, format!("1 secret, sealed with key {own}"));
    assert_eq!(secrets(&held, Some("other")).verdict, Verdict::Warning);
    let (version, rows) = plane.store.secrets().await.unwrap();
    let without = secrets(&Held::of(version, rows, &Keyring::default()), None);
    assert_eq!(without.verdict, Verdict::Fault);
    assert!(without.message.contains(own), "{without:?}");
    let none = secrets(&Held::of(1, vec![], &Keyring::default()), None);
    assert_eq!(none.verdict, Verdict::Ok);
}
