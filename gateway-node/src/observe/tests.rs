//! Every count survives whatever happens to the process, and counts once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::class::FailureClass;
use common::first_byte::FirstByte;
use common::window::{Counts, Totals};
use proptest::prelude::*;

use super::*;

/// The other end: what a control plane would have counted, per boot.
#[derive(Debug, Default)]
struct Counted {
    through: BTreeMap<String, u64>,
    totals: BTreeMap<String, Totals>,
    counts: Counts,
}

impl Counted {
    /// As the control plane does it: iff the window follows the last claimed one.
    fn take(&mut self, report: &pb::ReportRequest) -> u64 {
        let window = Window::from(report.window.clone().unwrap());
        let through = self.through.entry(report.boot_id.clone()).or_default();
        if window.first_seq == *through + 1 {
            *through = window.last_seq;
            let totals = self.totals.entry(report.boot_id.clone()).or_default();
            *totals = *totals + window.counts.totals();
            assert_eq!(Totals::from(report.totals.unwrap()), *totals, "audit of {}", report.boot_id);
            self.counts.merge(window.counts);
        } else {
            assert!(window.last_seq <= *through, "a gap before {window:?}");
        }
        *through
    }
}

struct World {
    dir: tempfile::TempDir,
    clock: Clock,
    boots: u32,
    observer: Observer,
    recorded: Counts,
    counted: Counted,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_000_000);
        let observer = Observer::open(dir.path(), BootId::from("boot-000"), clock.clone()).unwrap();
        let (recorded, counted) = (Counts::default(), Counted::default());
        World { dir, clock, boots: 0, observer, recorded, counted }
    }

    fn record(&mut self, kind: u8) {
        let model = ["m", "n"][usize::from(kind % 2)];
        let end =
            if kind.is_multiple_of(3) { AttemptEnd::Ok } else { AttemptEnd::Failed(FailureClass::Timeout) };
        let outcome = if kind.is_multiple_of(5) { RequestOutcome::Exhausted } else { RequestOutcome::Served };
        let request = (!kind.is_multiple_of(7)).then_some(outcome);
        let time = |ms| (request.is_some() && end == AttemptEnd::Ok).then(|| Duration::from_millis(ms));
        let first_byte = FirstByte { of_request: time(320 + u64::from(kind)), of_attempt: time(40) };
        self.observer.record(model, Some(("a", end)), request, first_byte);
        if let Some((of_request, of_attempt)) = first_byte.of_request.zip(first_byte.of_attempt) {
            self.recorded.add_first_byte(model, "", of_request);
            self.recorded.add_first_byte(model, "a", of_attempt);
        }
        self.recorded.add_attempt(model, "a", end);
        if let Some(outcome) = request {
            self.recorded.add_request(model, outcome);
        }
    }

    /// The process is killed and started again: no seal, no farewell.
    fn crash(&mut self) {
        self.boots += 1;
        let boot = BootId::from(format!("boot-{:03}", self.boots));
        self.observer = Observer::open(self.dir.path(), boot, self.clock.clone()).unwrap();
    }

    fn report(&mut self, is_answer_lost: bool) {
        for boot in self.observer.boots() {
            let Some(report) = self.observer.next(&boot).unwrap() else { continue };
            let through = self.counted.take(&report);
            if !is_answer_lost {
                self.observer.claimed(&boot, through).unwrap();
            }
        }
    }

    fn segments(&self) -> Vec<PathBuf> {
        files(&self.dir.path().join("journal"))
    }

    fn settle(&mut self) {
        self.observer.seal().unwrap();
        for _ in 0..1000 {
            if self.observer.spooled() == 0 {
                break;
            }
            self.report(false);
        }
        assert_eq!(self.counted.counts, self.recorded);
        assert_eq!(self.observer.oldest_window_age(), Duration::ZERO);
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[derive(Debug, Clone)]
enum Step {
    Record(u8),
    Seal,
    Wait(u64),
    Away(bool),
    Report {
        is_answer_lost: bool,
    },
    Crash,
    /// Killed in the middle of an append.
    CrashTorn(usize),
    /// Killed after the window was spooled and before its segment was removed.
    CrashInSeal,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any::<u8>().prop_map(Step::Record),
        4 => Just(Step::Seal),
        2 => (0..200_000u64).prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Away),
        3 => any::<bool>().prop_map(|is_answer_lost| Step::Report { is_answer_lost }),
        1 => Just(Step::Crash),
        1 => (1..40usize).prop_map(Step::CrashTorn),
        1 => Just(Step::CrashInSeal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_every_count_is_counted_exactly_once(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Record(kind) => world.record(kind),
                Step::Seal => world.observer.seal().unwrap(),
                Step::Wait(ms) => world.clock.set_ms(world.clock.now_ms() + ms),
                Step::Away(is_away) => world.observer.set_away(is_away),
                Step::Report { is_answer_lost } => world.report(is_answer_lost),
                Step::Crash => world.crash(),
                Step::CrashTorn(cut) => {
                    let open = world.segments().pop().unwrap();
                    let mut bytes = std::fs::read(&open).unwrap();
                    let torn: Vec<u8> = b"\xa5SJ1\x50\0\0\0".iter().copied().cycle().take(cut).collect();
                    bytes.extend_from_slice(&torn);
                    std::fs::write(&open, bytes).unwrap();
                    world.crash();
                }
                Step::CrashInSeal => {
                    let kept: Vec<_> =
                        world.segments().into_iter().map(|p| (std::fs::read(&p).unwrap(), p)).collect();
                    world.observer.seal().unwrap();
                    for (bytes, path) in kept {
                        std::fs::write(path, bytes).unwrap();
                    }
                    world.crash();
                }
            }
        }
        world.settle();
    }
}

#[test]
fn a_window_that_was_sent_is_never_merged_and_one_that_was_not_is() {
    let mut world = World::new();
    for _ in 0..3 {
        world.record(1);
        world.observer.seal().unwrap();
    }
    assert_eq!(world.observer.spooled(), 1, "three windows of one bucket are one");
    world.report(true);
    world.record(1);
    world.observer.seal().unwrap();
    assert_eq!(world.observer.spooled(), 2, "the sent one is closed");
    world.settle();
}

#[test]
fn windows_are_kept_apart_while_the_control_plane_is_there() {
    let mut world = World::new();
    world.observer.set_away(false);
    for _ in 0..3 {
        world.record(1);
        world.observer.seal().unwrap();
    }
    assert_eq!(world.observer.spooled(), 3);
    world.settle();
}

#[test]
fn a_killed_boot_is_reported_under_its_own_id_and_continues_its_totals() {
    let mut world = World::new();
    world.record(3);
    world.observer.seal().unwrap();
    world.report(false);
    world.record(3);
    world.crash();
    world.record(3);
    assert_eq!(world.observer.boots(), [BootId::from("boot-000")]);
    let report = world.observer.next(&BootId::from("boot-000")).unwrap().unwrap();
    assert_eq!(report.window.as_ref().map(|w| (w.first_seq, w.last_seq)), Some((2, 2)));
    assert_eq!(report.totals.map(|t| t.attempts), Some(2));
    assert_eq!(report.acknowledged_through, 1);
    world.settle();
}

#[test]
fn nothing_is_left_on_disk_of_a_boot_that_is_over_and_counted() {
    let mut world = World::new();
    world.record(1);
    world.crash();
    world.settle();
    assert_eq!(files(&world.dir.path().join("spool")), Vec::<PathBuf>::new());
    assert_eq!(world.segments().len(), 1, "the open one");
}

#[test]
fn fr_003_a_corrupt_window_is_put_aside_and_the_start_succeeds() {
    let mut world = World::new();
    world.record(1);
    world.observer.seal().unwrap();
    let window = files(&world.dir.path().join("spool")).remove(0);
    let mut bytes = std::fs::read(&window).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&window, bytes).unwrap();
    world.crash();
    assert_eq!(world.observer.spooled(), 0);
    assert!(window.with_extension("corrupt").exists());
}

#[test]
fn counts_that_cannot_be_written_are_kept_until_they_are_spooled() {
    let mut world = World::new();
    // A pipe whose reader is gone refuses every write.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let broken = Segment::with_file(&world.dir.path().join("journal"), &BootId::from("boot-000"), 2, writer);
    let before = world.observer.0.open.swap(Arc::new(broken));
    assert!(before.is_empty());
    world.record(1);
    world.record(2);
    assert_eq!(world.observer.write_failures(), 2);
    world.settle();
}

#[test]
fn a_start_on_a_full_disk_succeeds_and_the_counts_of_earlier_runs_follow_later() {
    let mut world = World::new();
    world.record(1);
    // A folder in the place of its half-written copy makes writing the window fail, also for root.
    let obstacle = world.dir.path().join("spool/boot-000-1.tmp");
    std::fs::create_dir(&obstacle).unwrap();
    world.crash();
    world.record(2);
    assert!(world.observer.seal().is_err());
    std::fs::remove_dir(obstacle).unwrap();
    world.settle();
}

#[test]
fn a_seal_waits_for_a_writer_that_holds_the_segment() {
    let mut world = World::new();
    world.record(1);
    let writer = world.observer.0.open.load_full();
    let sealing = std::thread::spawn({
        let observer = world.observer.clone();
        move || observer.seal()
    });
    while Arc::ptr_eq(&writer, &world.observer.0.open.load_full()) {
        std::thread::yield_now();
    }
    writer.record(0, "m", Some(("a", AttemptEnd::Ok)), None, FirstByte::default()).unwrap();
    world.recorded.add_attempt("m", "a", AttemptEnd::Ok);
    drop(writer);
    sealing.join().unwrap().unwrap();
    world.settle();
}

#[test]
fn concurrent_appends_stay_whole() {
    let world = World::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let (end, served) = (Some(("a", AttemptEnd::Ok)), Some(RequestOutcome::Served));
                    world.observer.record("m", end, served, FirstByte::default());
                }
            });
        }
        for _ in 0..10 {
            world.observer.seal().unwrap();
        }
    });
    let mut world = world;
    for _ in 0..4000 {
        world.recorded.add_attempt("m", "a", AttemptEnd::Ok);
        world.recorded.add_request("m", RequestOutcome::Served);
    }
    world.settle();
}

#[test]
fn counts_that_could_not_be_recovered_at_the_start_follow_those_that_were_counted_meanwhile() {
    let mut world = World::new();
    world.record(1);
    world.observer.seal().unwrap(); // window 1 of boot-000 is in the spool
    world.clock.set_ms(1_000_000 + 600_000); // another bucket: nothing is merged
    world.record(2); // its open segment 2
    let obstacle = world.dir.path().join("spool/boot-000-2.tmp");
    std::fs::create_dir(&obstacle).unwrap(); // a full disk at the next start
    world.crash();
    world.report(false); // window 1 is counted while segment 2 still waits in the journal
    std::fs::remove_dir(obstacle).unwrap();
    world.record(3);
    world.settle();
}

#[test]
fn counts_that_were_recovered_late_are_shown_and_reported_without_new_traffic() {
    let mut world = World::new();
    world.record(1);
    let obstacle = world.dir.path().join("spool/boot-000-1.tmp");
    std::fs::create_dir(&obstacle).unwrap();
    world.crash();
    assert_eq!(world.observer.spooled(), 0);
    std::fs::remove_dir(obstacle).unwrap();
    world.observer.seal().unwrap();
    assert_eq!(world.observer.spooled(), 1);
    world.settle();
}
