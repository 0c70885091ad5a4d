//! Content codings that an upstream used although none was asked for: which ones its headers name, and how they are
//! undone while the bytes come. Pure: bytes in, at most one buffer of bytes out, so that what a few bytes swell to is
//! made only as fast as it is taken.

mod brotli;
mod deflate;
mod gzip;
mod zstd;

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, header};

use common::limits::CONTENT_CODINGS_MAX;

/// Decoded bytes that are made at a time.
const STEP_BYTES: usize = 8 * 1024;
/// A buffer with less room than this is left to who holds the rest of it.
const ROOM_MIN: usize = 1024;
/// More encoded bytes than this have to say something: the largest block of any coding is half of it.
const SILENT_BYTES_MAX: usize = 256 * 1024;

/// One coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952
    Gzip,
    /// RFC 1950, or RFC 1951 without its frame: both are sent under this name.
    Deflate,
    /// RFC 7932
    Brotli,
    /// RFC 8878
    Zstd,
}

/// The body is in an encoding that is not known, or in more of them than are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is in an encoding that is not known")]
pub struct Unknown;

/// The bytes are not what their label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not in the encoding that its headers name")]
pub struct Broken;

/// Headers that describe the encoded body and say nothing true of the decoded one.
const OF_THE_ENCODED: [&str; 5] =
    ["content-encoding", "content-length", "content-md5", "content-digest", "digest"];

/// The codings that these headers name, in the order in which they were applied. None of a plain body.
pub fn named(headers: &HeaderMap) -> Result<Vec<Coding>, Unknown> {
    let mut codings = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for name in value.to_str().map_err(|_| Unknown)?.split(',') {
            codings.extend(match name.trim().to_ascii_lowercase().as_str() {
                "gzip" | "x-gzip" => Some(Coding::Gzip),
                "deflate" => Some(Coding::Deflate),
                "br" => Some(Coding::Brotli),
                "zstd" => Some(Coding::Zstd),
                "" | "identity" => None,
                _ => return Err(Unknown),
            });
        }
    }
    if codings.len() > CONTENT_CODINGS_MAX { Err(Unknown) } else { Ok(codings) }
}

/// Takes away what is no longer true once the body is decoded.
pub fn strip(headers: &mut HeaderMap) {
    for name in OF_THE_ENCODED {
        headers.remove(name);
    }
}

/// How far one step of a codec came. Neither read nor written: it needs more input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    read: usize,
    written: usize,
}

/// Undoes one coding.
trait Codec: Send {
    /// Reads from `input` and writes to `output`, as much of both as it likes.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Broken>;

    /// Whether what came is complete; bytes behind that are passed over.
    fn is_complete(&self) -> bool;
}

fn codec(coding: Coding) -> Result<Box<dyn Codec>, Broken> {
    Ok(match coding {
        Coding::Gzip => Box::new(gzip::Gzip::new()),
        Coding::Deflate => Box::new(deflate::Deflate::new()),
        Coding::Brotli => Box::new(brotli::Brotli::new()),
        Coding::Zstd => Box::new(zstd::Zstd::new()?),
    })
}

/// Undoes one coding of a body, chunk by chunk.
struct Layer {
    codec: Box<dyn Codec>,
    input: Bytes,
    output: BytesMut,
    has_begun: bool,
    /// Input since the last output.
    silent: usize,
}

impl Layer {
    /// The next decoded bytes; `None` when more input is needed.
    fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        while self.has_begun {
            // The same memory again, as soon as nobody holds what was made in it before.
            if self.output.capacity() < ROOM_MIN {
                self.output.reserve(STEP_BYTES);
            }
            self.output.resize(self.output.capacity().min(STEP_BYTES), 0);
            let step = self.codec.step(&self.input, &mut self.output)?;
            self.input.advance(step.read);
            self.output.truncate(step.written);
            if step.written > 0 {
                self.silent = 0;
                return Ok(Some(self.output.split().freeze()));
            }
            self.silent += step.read;
            let is_stuck = step.read == 0 && !self.input.is_empty();
            if is_stuck || self.silent > SILENT_BYTES_MAX {
                return Err(Broken);
            }
            if step.read == 0 {
                break;
            }
        }
        Ok(None)
    }

    fn push(&mut self, input: Bytes) {
        self.has_begun |= !input.is_empty();
        self.input = input;
    }
}

/// Undoes the codings of a body.
pub struct Decoder {
    /// The outermost first: the last one that was applied.
    layers: Vec<Layer>,
}

impl Decoder {
    /// A decoder of what `codings` were applied to, in this order.
    pub fn new(codings: &[Coding]) -> Result<Self, Broken> {
        let layer = |coding: &Coding| {
            let output = BytesMut::new();
            Ok(Layer { codec: codec(*coding)?, input: Bytes::new(), output, has_begun: false, silent: 0 })
        };
        Ok(Decoder { layers: codings.iter().rev().map(layer).collect::<Result<_, _>>()? })
    }

    /// The next decoded bytes of what was pushed; `None` when more must be pushed first.
    pub fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        next(&mut self.layers)
    }

    /// Takes the next encoded bytes. Only to be called when [`Decoder::next`] had nothing more.
    pub fn push(&mut self, encoded: Bytes) {
        if let Some(outermost) = self.layers.first_mut() {
            outermost.push(encoded);
        }
    }

    /// Whether the body may end here. One without a byte is empty, whatever its label says.
    pub fn may_end(&self) -> bool {
        self.layers.iter().all(|layer| !layer.has_begun || layer.codec.is_complete())
    }
}

fn next(layers: &mut [Layer]) -> Result<Option<Bytes>, Broken> {
    let Some((innermost, outer)) = layers.split_last_mut() else { return Ok(None) };
    loop {
        if let Some(decoded) = innermost.next()? {
            return Ok(Some(decoded));
        }
        match next(outer)? {
            Some(input) => innermost.push(input),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
