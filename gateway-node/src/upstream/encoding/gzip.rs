//! `gzip`: members one after the other, each a header, a deflate stream and its checksum.
//!
//! ```text
//!   Header ──► Body ──► Trailer ──► Between ──► (a magic number) Header
//!                                      └──────► (anything else)  Rest
//! ```

use flate2::Crc;

use super::deflate::Inflate;
use super::{Broken, Codec, Step};

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const DEFLATE: u8 = 8;
const HAS_CRC: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0xe0;

/// Undoes gzip.
pub struct Gzip {
    part: Part,
    /// Bytes of a part of fixed length.
    gathered: [u8; 10],
    count: usize,
    flags: u8,
    crc: Crc,
}

enum Part {
    /// The ten bytes that every member begins with.
    Fixed,
    ExtraLength,
    Extra {
        left: usize,
    },
    Name,
    Comment,
    HeaderCrc,
    Body(Box<Inflate>),
    Trailer,
    /// A member is complete; another one may follow.
    Between,
    /// Behind the last member.
    Rest,
}

impl Gzip {
    pub fn new() -> Self {
        Gzip { part: Part::Fixed, gathered: [0; 10], count: 0, flags: 0, crc: Crc::new() }
    }

    /// Gathers `wanted` bytes over as many steps as it takes; says how many it read, and whether they are there.
    fn gather(&mut self, wanted: usize, input: &[u8]) -> (usize, bool) {
        let mut read = 0;
        let places = self.gathered.iter_mut().take(wanted).skip(self.count);
        for (place, byte) in places.zip(input) {
            *place = *byte;
            read += 1;
        }
        self.count += read;
        let is_there = self.count == wanted;
        if is_there {
            self.count = 0;
        }
        (read, is_there)
    }

    /// What comes next in a header, and takes its flag away.
    fn next_field(&mut self) -> Part {
        let mut takes = |flag: u8| {
            let is_set = self.flags & flag != 0;
            self.flags &= !flag;
            is_set
        };
        if takes(HAS_EXTRA) {
            Part::ExtraLength
        } else if takes(HAS_NAME) {
            Part::Name
        } else if takes(HAS_COMMENT) {
            Part::Comment
        } else if takes(HAS_CRC) {
            Part::HeaderCrc
        } else {
            self.crc.reset();
            Part::Body(Box::new(Inflate::new(false)))
        }
    }

    fn skip_text(&mut self, input: &[u8]) -> usize {
        match memchr::memchr(0, input) {
            None => input.len(),
            Some(end) => {
                self.part = self.next_field();
                end + 1
            }
        }
    }

    fn on_fixed(&mut self) -> Result<(), Broken> {
        let [magic_1, magic_2, method, flags, ..] = self.gathered;
        if [magic_1, magic_2] != MAGIC || method != DEFLATE || flags & RESERVED != 0 {
            return Err(Broken);
        }
        self.flags = flags;
        self.part = self.next_field();
        Ok(())
    }

    fn on_trailer(&mut self) -> Result<(), Broken> {
        let [a, b, c, d, e, f, g, h, ..] = self.gathered;
        let is_same = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
            && u32::from_le_bytes([e, f, g, h]) == self.crc.amount();
        self.part = Part::Between;
        if is_same { Ok(()) } else { Err(Broken) }
    }
}

impl Codec for Gzip {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let read = match &mut self.part {
            Part::Fixed => {
                let (read, is_there) = self.gather(10, input);
                // Said with the first byte that is wrong: whoever waits for the tenth waits for nothing.
                let came = self.gathered.iter().take(if is_there { 10 } else { self.count });
                if came.zip(&MAGIC).any(|(byte, magic)| byte != magic) {
                    return Err(Broken);
                }
                if is_there {
                    self.on_fixed()?;
                }
                read
            }
            Part::ExtraLength => {
                let (read, is_there) = self.gather(2, input);
                if is_there {
                    let [low, high, ..] = self.gathered;
                    self.part = Part::Extra { left: usize::from(u16::from_le_bytes([low, high])) };
                }
                read
            }
            Part::Extra { left } => {
                let read = input.len().min(*left);
                *left -= read;
                if *left == 0 {
                    self.part = self.next_field();
                    return self.step_on(read, input, output);
                }
                read
            }
            Part::Name | Part::Comment => self.skip_text(input),
            Part::HeaderCrc => {
                let (read, is_there) = self.gather(2, input);
                if is_there {
                    self.part = self.next_field();
                }
                read
            }
            Part::Body(inflate) => {
                let step = inflate.step(input, output)?;
                self.crc.update(output.get(..step.written).unwrap_or_default());
                if inflate.is_over {
                    self.part = Part::Trailer;
                    if step == Step::default() {
                        return self.step_on(0, input, output);
                    }
                }
                return Ok(step);
            }
            Part::Trailer => {
                let (read, is_there) = self.gather(8, input);
                if is_there {
                    self.on_trailer()?;
                }
                read
            }
            Part::Between => {
                self.part = if input.first() == MAGIC.first() {
                    Part::Fixed
                } else if input.is_empty() {
                    Part::Between
                } else {
                    Part::Rest
                };
                return if input.is_empty() { Ok(Step::default()) } else { self.step_on(0, input, output) };
            }
            Part::Rest => input.len(),
        };
        Ok(Step { read, written: 0 })
    }

    fn is_complete(&self) -> bool {
        matches!(self.part, Part::Between | Part::Rest)
    }
}

impl Gzip {
    /// Goes on in the next part, so that a step which moved nothing is not taken for the need of more input.
    fn step_on(&mut self, read: usize, input: &[u8], output: &mut [u8]) -> Result<Step, Broken> {
        let step = self.step(input.get(read..).unwrap_or_default(), output)?;
        Ok(Step { read: read + step.read, written: step.written })
    }
}
