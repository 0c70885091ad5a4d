//! `deflate`: with the frame of zlib as its standard has it, or without, as many servers send it.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Broken, Codec, Step};

/// Undoes deflate.
pub struct Deflate {
    /// The first two bytes tell which of the two it is.
    opening: [u8; 2],
    /// How many of them have come, and how many were handed on.
    came: usize,
    fed: usize,
    inflate: Option<Inflate>,
}

impl Deflate {
    pub fn new() -> Self {
        Deflate { opening: [0; 2], came: 0, fed: 0, inflate: None }
    }
}

impl Codec for Deflate {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let mut read = 0;
        while let (Some(place), Some(byte)) = (self.opening.get_mut(self.came), input.get(read)) {
            *place = *byte;
            self.came += 1;
            read += 1;
        }
        if self.came < self.opening.len() {
            return Ok(Step { read, written: 0 });
        }
        let has_frame = is_zlib(self.opening);
        let inflate = self.inflate.get_or_insert_with(|| Inflate::new(has_frame));
        let mut written = 0;
        while let Some(opening) = self.opening.get(self.fed..).filter(|rest| !rest.is_empty()) {
            let step = inflate.step(opening, output.get_mut(written..).unwrap_or_default())?;
            self.fed += step.read;
            written += step.written;
            if step == Step::default() {
                return Ok(Step { read, written });
            }
        }
        let (rest, room) = (input.get(read..), output.get_mut(written..));
        let step = inflate.step(rest.unwrap_or_default(), room.unwrap_or_default())?;
        Ok(Step { read: read + step.read, written: written + step.written })
    }

    fn is_complete(&self) -> bool {
        self.inflate.as_ref().is_some_and(|inflate| inflate.is_over)
    }
}

fn is_zlib([method, flags]: [u8; 2]) -> bool {
    method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
}

/// One compressed stream. What follows it is passed over.
pub struct Inflate {
    state: Decompress,
    /// Its end came, and all of it was handed out.
    pub is_over: bool,
}

impl Inflate {
    pub fn new(has_zlib_frame: bool) -> Self {
        Inflate { state: Decompress::new(has_zlib_frame), is_over: false }
    }

    /// Once it is over, reads the rest and makes nothing of it.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        if self.is_over {
            return Ok(Step { read: input.len(), written: 0 });
        }
        let (read, written) = (self.state.total_in(), self.state.total_out());
        let status = self.state.decompress(input, output, FlushDecompress::None).map_err(|_| Broken)?;
        self.is_over = status == Status::StreamEnd;
        let moved = |now: u64, before: u64| usize::try_from(now - before).map_err(|_| Broken);
        Ok(Step {
            read: moved(self.state.total_in(), read)?,
            written: moved(self.state.total_out(), written)?,
        })
    }
}
