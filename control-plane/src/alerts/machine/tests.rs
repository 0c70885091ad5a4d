use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const T0: u64 = 1_796_046_279_000;

fn finding(kind: Kind, object: &str) -> Finding {
    Finding { kind, object: object.to_owned(), summary: format!("{object} is wrong") }
}

/// Looks every five seconds.
struct Watch {
    books: Books,
    timing: Timing,
    now_ms: u64,
    ids: u64,
    told: Vec<(u64, Notice)>,
}

impl Watch {
    fn new() -> Self {
        Watch { books: Books::default(), timing: Timing::default(), now_ms: T0, ids: 0, told: vec![] }
    }

    fn look(&mut self, found: &[Finding]) -> Step {
        let ids = &mut self.ids;
        let step = step(&self.books, found, &self.timing, self.now_ms, || {
            *ids += 1;
            format!("a{ids}")
        });
        self.books = self.books.clone().after(&step);
        self.told.extend(step.notices.iter().map(|notice| ((self.now_ms - T0) / SECOND, notice.clone())));
        step
    }

    fn go(&mut self, for_ms: u64, found: &[Finding]) {
        let until = self.now_ms + for_ms;
        while self.now_ms < until {
            self.look(found);
            self.now_ms += 5 * SECOND;
        }
    }

    /// What was told in which second: what is so, and what is over.
    fn said(&self) -> Vec<(u64, Vec<&str>, Vec<&str>)> {
        fn objects(alerts: &[Alert]) -> Vec<&str> {
            alerts.iter().map(|alert| alert.object.as_str()).collect()
        }
        self.told.iter().map(|(at, told)| (*at, objects(&told.active), objects(&told.over))).collect()
    }
}

#[test]
fn alerts_of_one_kind_are_told_together_and_their_end_to_those_who_know_of_them() {
    let mut watch = Watch::new();
    let (a, b) = (finding(Kind::NodeLost, "a"), finding(Kind::NodeLost, "b"));
    watch.go(5 * SECOND, std::slice::from_ref(&a));
    watch.go(MINUTE, &[a, b]);
    watch.go(10 * MINUTE, &[]);
    assert_eq!(watch.said(), [(10, vec!["a", "b"], vec![]), (310, vec![], vec!["a", "b"])]);
    assert_eq!(watch.books.alerts, [], "nothing is left to say");
}

#[test]
fn a_storm_is_told_at_a_distance_and_what_goes_on_is_told_again_seldom() {
    let mut watch = Watch::new();
    let all: Vec<Finding> = (0..100).map(|n| finding(Kind::NodeLost, &format!("n{n}"))).collect();
    for count in 1..=100 {
        watch.go(30 * SECOND, &all[..count]);
    }
    let at: Vec<u64> = watch.said().iter().map(|told| told.0).collect();
    assert_eq!(at, [10, 310, 610, 910, 1210, 1510, 1810, 2110, 2410, 2710], "50 minutes");
    watch.told.clear();
    watch.go(9 * 60 * MINUTE, &all);
    let (told, hours) = (watch.said().len(), 9);
    assert_eq!(told, 1 + hours / 4, "the last ones, then every four hours");
    assert!(watch.told.iter().all(|(_, notice)| notice.active.len() == 100));
}

#[test]
fn what_comes_and_goes_is_one_alert_until_it_is_gone_for_long_enough() {
    let mut watch = Watch::new();
    let flapping = [finding(Kind::BreakerOpen, "c")];
    for _ in 0..20 {
        watch.go(MINUTE, &flapping);
        watch.go(MINUTE, &[]);
    }
    assert_eq!(watch.said(), [(10, vec!["c"], vec![])]);
    watch.go(2 * MINUTE, &[]);
    assert_eq!(watch.said().last(), Some(&(20 * 120 + 70, vec![], vec!["c"])));
    watch.go(MINUTE, &flapping);
    watch.go(6 * MINUTE, &flapping);
    assert_eq!(watch.ids, 2, "the next time is another alert");
}

#[test]
fn a_silence_keeps_quiet_of_what_it_covers_and_tells_of_it_when_it_ends() {
    let silence = |kind, object: &str, minutes| Silence {
        id: "s".to_owned(),
        kind,
        object: object.to_owned(),
        reason: String::new(),
        created_by: String::new(),
        created_at_ms: T0,
        until_ms: T0 + minutes * MINUTE,
    };
    let both = [finding(Kind::NodeLost, "a"), finding(Kind::NodeLost, "b")];
    for (silence, before, after) in [
        (silence(Some(Kind::NodeLost), "a", 10), vec!["b"], Some(vec!["a", "b"])),
        (silence(Some(Kind::NodeLost), "", 10), vec![], Some(vec!["a", "b"])),
        (silence(None, "", 10), vec![], Some(vec!["a", "b"])),
        (silence(Some(Kind::MissedBeat), "", 10), vec!["a", "b"], None),
    ] {
        let mut watch = Watch::new();
        watch.books.silences.push(silence.clone());
        watch.go(9 * MINUTE, &both);
        let told: Vec<&str> = watch.said().iter().flat_map(|told| told.1.clone()).collect();
        assert_eq!(told, before, "{silence:?}");
        watch.told.clear();
        watch.go(5 * MINUTE, &both);
        assert_eq!(watch.said().first().map(|told| told.1.clone()), after, "{silence:?}");
    }
    let mut watch = Watch::new();
    watch.books.silences.push(silence(None, "", 60));
    watch.go(MINUTE, &both);
    watch.go(20 * MINUTE, &[]);
    assert_eq!((watch.said(), &watch.books.alerts), (vec![], &vec![]), "nobody hears of it at all");
}

#[test]
fn what_was_told_is_told_to_be_over_also_while_it_is_silenced() {
    let mut watch = Watch::new();
    let a = [finding(Kind::ChannelSuspended, "a")];
    watch.go(MINUTE, &a);
    watch.books.silences.push(Silence {
        id: "s".to_owned(),
        kind: None,
        object: String::new(),
        reason: String::new(),
        created_by: String::new(),
        created_at_ms: T0,
        until_ms: u64::MAX,
    });
    watch.go(10 * MINUTE, &[]);
    assert_eq!(watch.said(), [(10, vec!["a"], vec![]), (310, vec![], vec!["a"])]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is found when, and whoever looks: a kind has its notices at a distance, all that goes on is told of in
    /// time, no end is told of what nobody was told, and once all is over nothing is left.
    #[test]
    fn nothing_is_lost_and_nobody_is_flooded(looks in prop::collection::vec(0u8..16, 1..200)) {
        let mut watch = Watch::new();
        let all: Vec<Finding> =
            ["a", "b"].map(|o| finding(Kind::NodeLost, o)).into_iter()
            .chain(["a", "b"].map(|o| finding(Kind::MissedBeat, o))).collect();
        for bits in looks {
            let found: Vec<Finding> =
                all.iter().enumerate().filter(|(n, _)| bits & (1 << n) != 0).map(|(_, f)| f.clone()).collect();
            watch.go(45 * SECOND, &found);
        }
        watch.go(20 * MINUTE, &[]);
        prop_assert_eq!(&watch.books.alerts, &vec![]);
        let mut ids = std::collections::BTreeSet::new();
        for kind in Kind::ALL {
            let of_kind: Vec<_> = watch.told.iter().filter(|(_, notice)| notice.kind == kind).collect();
            for pair in of_kind.windows(2) {
                prop_assert!(pair[1].0 - pair[0].0 >= watch.timing.interval.as_secs());
            }
            for (at, notice) in of_kind {
                prop_assert!(ids.insert(notice.id.clone()));
                for alert in &notice.active {
                    let waited = at * SECOND + T0 - alert.raised_at_ms;
                    prop_assert!(waited >= watch.timing.wait.as_millis() as u64 || notice.active.len() > 1);
                }
            }
        }
        // Every alert that ever was has been told to be over, once.
        let mut over: Vec<&str> =
            watch.told.iter().flat_map(|(_, notice)| &notice.over).map(|alert| alert.id.as_str()).collect();
        over.sort_unstable();
        let count = over.len();
        over.dedup();
        prop_assert_eq!((over.len(), over.len() as u64), (count, watch.ids));
    }
}
