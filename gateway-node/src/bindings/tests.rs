use common::dialect::Dialect;
use common::id::KeyId;

use super::*;

const NOW: u64 = 1_796_046_279_000;

struct Place {
    dir: tempfile::TempDir,
    clock: Clock,
}

impl Place {
    fn new() -> Self {
        Place { dir: tempfile::tempdir().unwrap(), clock: Clock::manual(NOW) }
    }

    fn open(&self) -> Bindings {
        Bindings::open(self.dir.path(), self.clock.clone()).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("bindings")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn name(id: &str) -> Name {
    Name { dialect: Dialect::OpenaiResponses, id: id.into(), key: KeyId::from("k") }
}

fn bind(bindings: &Bindings, id: &str, channel: &str) {
    bindings.bind(name(id), channel.into(), "m".into());
}

fn channel(bindings: &Bindings, id: &str) -> Option<String> {
    bindings.find(&name(id)).map(|binding| binding.channel.to_string())
}

fn waiting(bindings: &Bindings) -> Vec<String> {
    bindings.waiting(usize::MAX).into_iter().map(|(_, binding)| binding.name.id.to_string()).collect()
}

#[test]
fn what_was_bound_is_there_after_a_kill_and_is_reported_by_the_next_boot() {
    let place = Place::new();
    let bindings = place.open();
    bind(&bindings, "told", "a");
    bind(&bindings, "untold", "b");
    let told = bindings.waiting(1)[0].0;
    bindings.reported(vec![told]);
    // Nothing is closed or written at its end: what a killed process leaves is what it had appended.
    std::mem::forget(bindings);
    let bindings = place.open();
    assert_eq!(channel(&bindings, "told").as_deref(), Some("a"));
    assert_eq!(channel(&bindings, "untold").as_deref(), Some("b"));
    assert_eq!(waiting(&bindings), ["untold"]);
    assert_eq!(bindings.counts(), (2, 1));
}

#[test]
fn in_a_new_epoch_everything_is_reported_again_also_by_the_next_boot_and_once() {
    let place = Place::new();
    let bindings = place.open();
    bindings.begin_epoch(1);
    bind(&bindings, "x", "a");
    bind(&bindings, "y", "a");
    let report = |bindings: &Bindings, max| {
        bindings.reported(bindings.waiting(max).into_iter().map(|(seq, _)| seq).collect());
    };
    report(&bindings, 9);
    bindings.begin_epoch(1);
    assert_eq!(waiting(&bindings), [] as [String; 0]);
    bindings.begin_epoch(2);
    assert_eq!(waiting(&bindings), ["x", "y"]);
    report(&bindings, 1);
    std::mem::forget(bindings);
    let bindings = place.open();
    assert_eq!(waiting(&bindings), ["y"], "what was reported before counts no more, what was since does");
    for round in 0..DEAD_FRAMES_MIN + 10 {
        bind(&bindings, "z", &round.to_string());
    }
    report(&bindings, 9);
    bindings.compact().unwrap();
    drop(bindings);
    let bindings = place.open();
    bindings.begin_epoch(2);
    assert_eq!((waiting(&bindings).len(), bindings.counts().0), (0, 3), "written anew it says the same");
    bindings.begin_epoch(3);
    assert_eq!(waiting(&bindings), ["x", "y", "z"]);
}

#[test]
fn a_journal_whose_end_is_torn_off_is_read_up_to_there_and_written_on() {
    let place = Place::new();
    let bindings = place.open();
    bind(&bindings, "x", "a");
    bind(&bindings, "y", "a");
    drop(bindings);
    let path = place.dir.path().join("bindings/1.journal");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let bindings = place.open();
    assert_eq!((channel(&bindings, "x").is_some(), channel(&bindings, "y")), (true, None));
    bind(&bindings, "y", "b");
    drop(bindings);
    assert_eq!(channel(&place.open(), "y").as_deref(), Some("b"));
}

#[test]
fn a_journal_of_what_was_forgotten_or_said_twice_is_written_anew_and_loses_nothing() {
    let place = Place::new();
    let bindings = place.open();
    for round in 0..DEAD_FRAMES_MIN + 10 {
        bind(&bindings, "again", &round.to_string());
    }
    bind(&bindings, "told", "a");
    let told = bindings.waiting(9).into_iter().find(|(_, binding)| &*binding.name.id == "told").unwrap().0;
    bindings.reported(vec![told]);
    bindings.compact().unwrap();
    assert_eq!(place.files(), ["1.journal", "2.journal"]);
    let length = std::fs::metadata(place.dir.path().join("bindings/1.journal")).unwrap().len();
    assert!(length < 1000, "{length} bytes for two bindings");
    bind(&bindings, "after", "c");
    bindings.compact().unwrap();
    assert_eq!(place.files().len(), 2, "nothing to do");
    drop(bindings);
    let bindings = place.open();
    let last = (DEAD_FRAMES_MIN + 9).to_string();
    assert_eq!(channel(&bindings, "again"), Some(last));
    assert_eq!(channel(&bindings, "told").as_deref(), Some("a"));
    assert_eq!(channel(&bindings, "after").as_deref(), Some("c"));
    assert_eq!(waiting(&bindings), ["again", "after"]);
}

#[test]
fn bindings_that_are_made_while_the_journal_is_written_anew_are_all_there_afterwards() {
    let place = Place::new();
    let bindings = place.open();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let bindings = bindings.clone();
            scope.spawn(move || {
                for n in 0..3_000 {
                    bind(&bindings, &format!("{writer}-{}", n % 50), "a");
                    bind(&bindings, &format!("{writer}-only-{n}"), "a");
                }
            });
        }
        for step in 1..=20 {
            while bindings.counts().0 < step * 600 {
                std::thread::yield_now();
            }
            bindings.compact().unwrap();
        }
    });
    let known = bindings.counts();
    assert_eq!(known, (4 * 3_050, 4 * 3_050));
    drop(bindings);
    assert_eq!(place.open().counts(), known);
}

#[test]
fn a_full_disk_costs_no_binding_as_long_as_the_process_lives() {
    let place = Place::new();
    let bindings = place.open();
    bindings.0.open.store(Arc::new(Segment::broken(place.dir.path(), 1)));
    bind(&bindings, "x", "a");
    assert_eq!(channel(&bindings, "x").as_deref(), Some("a"));
    assert_eq!((waiting(&bindings), bindings.write_failures()), (vec!["x".to_owned()], 1));
}

#[test]
fn what_is_learned_is_known_and_not_reported_again() {
    let place = Place::new();
    let bindings = place.open();
    let learned = Binding { name: name("x"), channel: "a".into(), model: "m".into(), made_at_ms: NOW };
    bindings.learn(learned);
    assert_eq!((channel(&bindings, "x").as_deref(), bindings.counts()), (Some("a"), (1, 0)));
}
