//! Changes inputs as a fuzzer does, but the same way in each run.

use fastrand::Rng;

/// What formats are made of.
const WORDS: [&str; 32] = [
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "data: ",
    "data:",
    "event: ",
    "event: error\n",
    ": ",
    "[DONE]",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0022",
    "\\ud83d",
    "null",
    "true",
    "\"error\":",
    "\"model\":\"m\"",
    "\"choices\":",
    "\"finish_reason\":\"stop\"",
    "\"type\":\"error\"",
    "\"stream\":true",
    "sk-Secret123",
    "--b\r\n",
    "%2",
];

/// Makes new inputs of kept ones.
pub(super) struct Mutator<'s> {
    seeds: &'s [Vec<u8>],
    rng: Rng,
}

impl<'s> Mutator<'s> {
    pub(super) fn new(seeds: &'s [Vec<u8>]) -> Self {
        assert!(!seeds.is_empty());
        Mutator { seeds, rng: Rng::with_seed(7) }
    }

    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..=self.rng.usize(..4) {
            self.change(&mut input);
        }
        input
    }

    fn seed(&mut self) -> &'s [u8] {
        &self.seeds[self.rng.usize(..self.seeds.len())]
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (start, end) = (self.rng.usize(..=input.len()), self.rng.usize(..=input.len()));
        let range = start.min(end)..start.max(end);
        match self.rng.u8(..9) {
            0 => {
                let byte = self.rng.u8(..);
                input.insert(start, byte);
            }
            1 => {
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= 1 << self.rng.u8(..8);
                }
            }
            2 => {
                input.drain(range.start..range.end.min(range.start + 16));
            }
            3 => {
                let copy = input[range].to_vec();
                input.splice(start..start, copy);
            }
            4 => input.truncate(range.end),
            5 => {
                let other = self.seed();
                let from = self.rng.usize(..=other.len());
                input.truncate(start);
                input.extend_from_slice(&other[from..]);
            }
            6 => {
                let head = input.len().min(8);
                if head > 0 {
                    let at = self.rng.usize(..head);
                    input[at] = self.rng.u8(..);
                }
            }
            _ => {
                let word = WORDS[self.rng.usize(..WORDS.len())];
                input.splice(start..start, word.bytes());
            }
        }
    }
}
