//! One target of `gateway_node::fuzz`, named by SLUICE_FUZZ_TARGET, under libFuzzer. An input that takes far longer
//! than others of its length is a fault as well: work must grow with the bytes and not with their square.
#![no_main]

use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gateway_node::fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

/// How much longer than usual an input may take for its length.
const SLOWER_MAX: u32 = 100;

/// Below this a machine with other work to do can be to blame.
const SLOW: Duration = Duration::from_millis(100);

/// The same where a short input stands for hundreds of kilobytes.
const SLOW_SWOLLEN: Duration = Duration::from_secs(5);

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("SLUICE_FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    *target.unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        panic!("SLUICE_FUZZ_TARGET is {name:?} and must be one of {}", names.join(", "))
    })
});

static USUAL: Mutex<Usual> = Mutex::new(Usual { recent: Vec::new(), at: 0, median: Duration::MAX });

/// The time that a hundred bytes take: the median of the last runs.
struct Usual {
    recent: Vec<Duration>,
    at: usize,
    median: Duration,
}

impl Usual {
    fn note(&mut self, took: Duration) -> Duration {
        const KEPT: usize = 1_001;
        if self.recent.len() < KEPT {
            self.recent.push(took);
        } else {
            self.recent[self.at] = took;
        }
        self.at = (self.at + 1) % KEPT;
        if self.at == 0 {
            let mut sorted = self.recent.clone();
            sorted.sort_unstable();
            self.median = sorted[KEPT / 2];
        }
        self.median
    }
}

fn timed(input: &[u8]) -> Duration {
    let started = Instant::now();
    (TARGET.run)(input);
    started.elapsed()
}

fuzz_target!(|input: &[u8]| {
    let hundreds = u32::try_from(input.len() / 100 + 1).unwrap_or(u32::MAX);
    let took = timed(input);
    let Ok(mut usual) = USUAL.lock() else { return };
    let median = usual.note(took / hundreds);
    let least = if TARGET.swells { SLOW_SWOLLEN } else { SLOW };
    let most = median.saturating_mul(hundreds).saturating_mul(SLOWER_MAX).max(least);
    // Once may be the machine; five times is the input.
    let is_slow = took > most && (0..5).all(|_| timed(input) > most);
    assert!(!is_slow, "{} bytes take {took:?}, where {:?} per hundred are usual", input.len(), median);
});
