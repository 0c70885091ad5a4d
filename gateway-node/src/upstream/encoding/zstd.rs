//! `zstd`: frames one after the other, with a window of at most 8 MiB, as RFC 9659 has it for this use.

use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::{Broken, Codec, Step};

const WINDOW_LOG_MAX: u32 = 23;

/// Undoes zstd.
pub struct Zstd {
    state: Decoder<'static>,
    /// A frame is complete; another one may follow.
    is_between: bool,
    /// Behind the last frame.
    is_over: bool,
}

impl Zstd {
    pub fn new() -> Result<Self, Broken> {
        let mut state = Decoder::new().map_err(|_| Broken)?;
        state.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(|_| Broken)?;
        Ok(Zstd { state, is_between: false, is_over: false })
    }
}

impl Codec for Zstd {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        if self.is_over {
            return Ok(Step { read: input.len(), written: 0 });
        }
        if self.is_between && input.is_empty() {
            return Ok(Step::default());
        }
        match self.state.run_on_buffers(input, output) {
            Ok(status) => {
                self.is_between = status.remaining == 0;
                Ok(Step { read: status.bytes_read, written: status.bytes_written })
            }
            // What follows a whole frame and is none itself is passed over.
            Err(_) if self.is_between => {
                self.is_over = true;
                Ok(Step { read: input.len(), written: 0 })
            }
            Err(_) => Err(Broken),
        }
    }

    fn is_complete(&self) -> bool {
        self.is_between
    }
}
