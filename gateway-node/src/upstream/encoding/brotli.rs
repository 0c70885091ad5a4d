//! `br`. The window is at most 16 MiB, and taken as it fills.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Broken, Codec, Step};

/// Undoes brotli.
pub struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    is_over: bool,
}

impl Brotli {
    pub fn new() -> Self {
        // Strict: a window beyond the standard's is refused.
        let [bytes, words, codes] = std::array::from_fn(|_| StandardAlloc::default());
        Brotli { state: Box::new(BrotliState::new_strict(bytes, words, codes)), is_over: false }
    }
}

impl Codec for Brotli {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        if self.is_over {
            return Ok(Step { read: input.len(), written: 0 });
        }
        let (mut left, mut read, mut room, mut written, mut total) = (input.len(), 0, output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            input,
            &mut room,
            &mut written,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => return Err(Broken),
            BrotliResult::ResultSuccess => self.is_over = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Step { read, written })
    }

    fn is_complete(&self) -> bool {
        self.is_over
    }
}
