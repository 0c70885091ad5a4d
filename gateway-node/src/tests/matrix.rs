//! The fault matrix: every fault, in every form of every dialect, at every place of the chain, through the whole path.
//! Each cell is foretold by an oracle that is written from the design, and the document that people read,
//! `tests/fault-matrix.md`, is written from what was observed.

mod faults;
mod forms;
mod frames;
mod oracle;
mod outcome;
mod play;
mod render;
mod says;
mod sets;
mod windows;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use faults::{Fault, Play};
use forms::{FORMS, Form};
use outcome::Outcome;

/// Where in the chain a fault stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The chain has no other channel.
    Alone,
    /// Before two healthy ones.
    First,
    /// Behind one that failed, before a healthy one.
    Middle,
    /// Behind two that failed.
    Last,
    /// On all three.
    Every,
}

impl Place {
    const ALL: [Place; 5] = [Place::Alone, Place::First, Place::Middle, Place::Last, Place::Every];

    /// The channels of the chain; `None` where the fault is not played there.
    fn channels(self, form: &Form, fault: &Fault, busy: &Fault) -> Option<Vec<Play>> {
        let (a, b, c) = ("a", "b", "c");
        let one = |who| fault.play(form, who);
        let busy = |who| busy.play(form, who);
        let well = |who| Some(Play::healthy(form, who));
        let plays = match self {
            // Where one channel alone may answer it is the first or the last of the chain.
            Place::Last if form.way.is_bound() => vec![well(a), well(b), Some(one(c)?.made_it())],
            Place::Alone if form.way.is_bound() => vec![Some(one(a)?.made_it())],
            Place::First if form.way.is_bound() => vec![Some(one(a)?.made_it()), well(b), well(c)],
            Place::Middle | Place::Every if form.way.is_bound() => return None,
            Place::Alone => vec![one(a)],
            Place::First => vec![one(a), well(b), well(c)],
            Place::Middle => vec![busy(a), one(b), well(c)],
            Place::Last => vec![busy(a), busy(b), one(c)],
            Place::Every => vec![one(a), one(b), one(c)],
        };
        let plays: Vec<Play> = plays.into_iter().collect::<Option<_>>()?;
        // A request that warms the pool is answered by the first.
        let is_twice = plays.iter().filter(|play| play.is_warm).count() > 1;
        // Megabytes pass in the same way wherever they come from.
        let is_spared = plays.iter().any(Play::is_large) && !matches!(self, Place::Alone | Place::Middle);
        (!is_twice && !is_spared).then_some(plays)
    }
}

/// One cell that was played.
pub struct Cell {
    pub form: usize,
    pub fault: usize,
    pub place: Place,
    pub seen: Outcome,
}

/// Plays all cells of a form; what is not as the oracle says goes to `wrong`.
fn play_form(form: usize, faults: &[Fault], wrong: &Mutex<Vec<String>>) -> Vec<Cell> {
    let busy = faults.iter().find(|fault| fault.id == "503").expect("a plain 503 is a fault");
    let mut cells = Vec::new();
    let is_for = |(_, fault): &(usize, &Fault)| fault.is_for(&FORMS[form]);
    for (index, fault) in faults.iter().enumerate().filter(is_for) {
        for place in Place::ALL {
            let Some(plays) = place.channels(&FORMS[form], fault, busy) else { continue };
            let expected = oracle::expected(&FORMS[form], &plays);
            let mut seen = play::play(&FORMS[form], &plays);
            if plays.iter().any(Play::is_large)
                && expected.body.starts_with(&seen.body)
                && !seen.body.is_empty()
            {
                // What is on its way when a connection is aborted may be lost.
                seen.body.clone_from(&expected.body);
            }
            let differs = expected.differs(&seen);
            if !differs.is_empty() {
                let Form { dialect, name, .. } = FORMS[form];
                let place = format!("{dialect} {name}, {} ({}), {place:?}", fault.id, fault.what);
                wrong.lock().unwrap().push(format!("{place}\n    {}", differs.join("\n    ")));
            }
            if plays.iter().any(Play::is_large) {
                seen.body.clear();
            }
            cells.push(Cell { form, fault: index, place, seen });
        }
    }
    cells
}

/// Where the document is kept.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fault-matrix.md");

/// Plays every form, as many at once as the machine has processors.
fn play_all(faults: &[Fault], wrong: &Mutex<Vec<String>>) -> Vec<Cell> {
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(form) =
                    Some(next.fetch_add(1, Ordering::AcqRel)).filter(|form| *form < FORMS.len())
                {
                    let played = play_form(form, faults, wrong);
                    cells.lock().unwrap().extend(played);
                }
            });
        }
    });
    let mut cells = cells.into_inner().unwrap();
    cells.sort_by_key(|cell| (cell.form, cell.fault, cell.place));
    cells
}

#[test]
fn every_fault_does_what_the_design_says_and_the_document_shows_it() {
    let (faults, wrong) = (faults::all(), Mutex::default());
    let cells = play_all(&faults, &wrong);
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        wrong.is_empty(),
        "{} of {} cells are not as the design says:\n{shown}",
        wrong.len(),
        cells.len()
    );
    let document = render::document(&faults, &cells);
    let kept = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    if kept != document {
        std::fs::write(DOCUMENT, document).unwrap();
        panic!(
            "tests/fault-matrix.md was not what is observed; it is now: look at what changed, and commit it"
        );
    }
}
