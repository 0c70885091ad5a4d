//! The targets on their corpus: every input that is kept in `tests/fuzz/corpus`, and as many changed ones as take a
//! few seconds. The same ones each time.

mod mutate;

use std::path::PathBuf;
use std::time::Duration;

use super::{TARGETS, Target, gate, head};
use crate::dialect::operation;
use mutate::Mutator;

/// How many changed inputs each target gets.
const MUTATIONS: usize = 600;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(name)
}

/// The kept inputs, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(name)).unwrap_or_else(|e| panic!("no corpus of {name}: {e}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Runs one input, and shows it where the property does not hold.
fn run(target: &Target, input: &[u8]) {
    struct Shown<'a>(&'a str, &'a [u8]);
    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                println!("{} fails for {:?}", self.0, self.1.escape_ascii().to_string());
            }
        }
    }
    let _shown = Shown(target.name, input);
    (target.run)(input);
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let mut folders: Vec<_> =
        folder("").read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let mut names: Vec<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    folders.sort();
    names.sort();
    assert_eq!(folders, names);
    let mut tested = TESTED.to_vec();
    tested.sort_unstable();
    assert_eq!(tested, names);
}

/// Every kept input, and changed ones.
fn holds(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = corpus(target.name);
    seeds.iter().for_each(|seed| run(target, seed));
    let mut mutator = Mutator::new(&seeds);
    for _ in 0..MUTATIONS {
        run(target, &mutator.next());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        mod the_properties_hold_for {
            $(
                #[test]
                fn $name() {
                    super::holds(stringify!($name));
                }
            )*
        }
        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! { sse elements scan google_scan multipart decode gate frames classify echo names journal made keep }

#[test]
fn every_kept_body_is_read_in_one_piece_and_in_many_cuts() {
    // Where the bytes stand that name the cuts, and where a bit that must not matter to them.
    let heads = [("sse", 0..3, None), ("elements", 0..3, None), ("decode", 1..3, None)];
    let frames = ("frames", 2..4, Some((1, 8)));
    for (name, places, bit) in heads.into_iter().chain([frames, ("gate", 4..6, Some((1, 16)))]) {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        for seed in corpus(name) {
            for cuts in 0..24 {
                let mut input = seed.clone();
                let Some(head) = input.get_mut(places.clone()) else { continue };
                head.fill(b'a' + cuts);
                run(target, &input);
                if let Some((at, bit)) = bit {
                    input[at] = (input[at].wrapping_sub(b'a') ^ bit).wrapping_add(b'a');
                    run(target, &input);
                }
            }
        }
    }
}

#[test]
fn every_operation_takes_every_kept_body() {
    let target = TARGETS.iter().find(|target| target.name == "gate").unwrap();
    for seed in corpus("gate") {
        let Some((_, body)) = head::<{ gate::HEAD }>(&seed) else { continue };
        for which in 0..operation::all().count() {
            for flags in 0..16 {
                let letters = [which as u8, flags, 0, 3].map(|n| n + b'a');
                run(target, &[&letters, &b"qrs\n"[..], body].concat());
            }
        }
    }
}

#[test]
fn what_comes_by_the_megabyte_takes_time_in_proportion() {
    // A square of a megabyte would take hours; no machine is slow enough to fail this otherwise.
    const MOST: Duration = Duration::from_secs(20);
    std::thread::scope(|scope| {
        for target in TARGETS {
            scope.spawn(|| {
                for seed in corpus(target.name) {
                    let rest = seed.get(gate::HEAD..).filter(|rest| !rest.is_empty()).unwrap_or(&seed);
                    let large =
                        [&seed[..seed.len() - rest.len()], &rest.repeat(1 + 200_000 / rest.len())].concat();
                    let started = tokio::time::Instant::now();
                    run(target, &large);
                    assert!(
                        started.elapsed() < MOST,
                        "{}: {:?}",
                        target.name,
                        seed.escape_ascii().to_string()
                    );
                }
            });
        }
    });
}
