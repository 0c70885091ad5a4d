//! `zstd`: frames one after the other, with a window of at most 8 MiB, as RFC 9659 has it for this use.

use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::{Broken, Codec, Step};

const WINDOW_LOG_MAX: u32 = 23;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A frame that says nothing; the low half of its first byte is free.
const SKIPPED: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// Undoes zstd.
pub struct Zstd {
    state: Decoder<'static>,
    place: Place,
}

enum Place {
    /// In a frame, or before the first one.
    Frame,
    /// A frame is complete; these bytes may begin another one.
    Between { begun: [u8; 4], count: usize },
    /// Behind the last frame.
    Rest,
}

impl Zstd {
    pub fn new() -> Result<Self, Broken> {
        let mut state = Decoder::new().map_err(|_| Broken)?;
        state.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(|_| Broken)?;
        Ok(Zstd { state, place: Place::Frame })
    }

    fn run(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let status = self.state.run_on_buffers(input, output).map_err(|_| Broken)?;
        if status.remaining == 0 {
            self.place = Place::Between { begun: [0; 4], count: 0 };
        }
        Ok(Step { read: status.bytes_read, written: status.bytes_written })
    }
}

impl Codec for Zstd {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        match &mut self.place {
            Place::Frame => self.run(input, output),
            Place::Rest => Ok(Step { read: input.len(), written: 0 }),
            // Gathered here and not by the decoder, so that it does not matter how the reads cut what is no frame.
            Place::Between { begun, count } => {
                let mut read = 0;
                for (place, byte) in begun.iter_mut().skip(*count).zip(input) {
                    *place = *byte;
                    read += 1;
                }
                *count += read;
                let (begun, count) = (*begun, *count);
                if !may_begin(&begun, count) {
                    self.place = Place::Rest;
                } else if count == begun.len() {
                    self.place = Place::Frame;
                    self.run(&begun, &mut [])?;
                }
                Ok(Step { read, written: 0 })
            }
        }
    }

    fn is_complete(&self) -> bool {
        !matches!(self.place, Place::Frame)
    }
}

/// Whether a frame may begin with these bytes.
fn may_begin(begun: &[u8; 4], count: usize) -> bool {
    let [first, rest @ ..] = *begun;
    let skipped = [first & 0xf0, rest[0], rest[1], rest[2]];
    begun.iter().zip(MAGIC).take(count).all(|(byte, magic)| *byte == magic)
        || skipped.iter().zip(SKIPPED).take(count).all(|(byte, magic)| *byte == magic)
}
