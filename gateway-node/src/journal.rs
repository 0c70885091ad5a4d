//! The frames of a journal: what a killed process or a full disk left half-written is stepped over, and everything
//! after it is still found. Pure but for `file`. A frame is
//!
//! ```text
//! magic (4) · length (4, little endian) · first 8 bytes of the payload's sha256 · payload
//! ```

pub mod file;

use common::snapshot::digest;
use prost::Message;

const HEAD: usize = 4 + 4 + 8;

/// What a journal's frames begin with: each kind of journal has its own.
pub type Magic = [u8; 4];

/// A message as one frame, to be written by one append.
pub fn encode(magic: &Magic, message: &impl Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut frame = Vec::with_capacity(HEAD + length);
    frame.extend_from_slice(magic);
    frame.extend_from_slice(&(length as u32).to_le_bytes());
    frame.extend_from_slice(&[0; 8]);
    // A Vec grows as it must: this cannot fail.
    let encoded = message.encode(&mut frame);
    debug_assert!(encoded.is_ok());
    let sum = digest(&frame[HEAD..]);
    frame[8..HEAD].copy_from_slice(&sum[..8]);
    frame
}

/// Reads every whole frame, in order. Returns how many bytes belong to none.
pub fn read<M: Message + Default>(magic: &Magic, bytes: &[u8], mut on_message: impl FnMut(M)) -> usize {
    let (mut at, mut torn) = (0, 0);
    while at < bytes.len() {
        match decode(magic, &bytes[at..]) {
            Some((message, length)) => {
                on_message(message);
                at += length;
            }
            None => {
                let rest = &bytes[at + 1..];
                let skipped = memchr::memmem::find(rest, magic).unwrap_or(rest.len()) + 1;
                torn += skipped;
                at += skipped;
            }
        }
    }
    torn
}

fn decode<M: Message + Default>(magic: &Magic, bytes: &[u8]) -> Option<(M, usize)> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (found, length, sum) = (head.get(..4)?, head.get(4..8)?, head.get(8..)?);
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let payload = rest.get(..length)?;
    let is_whole = found == magic && digest(payload)[..8] == *sum;
    Some((M::decode(is_whole.then_some(payload)?).ok()?, HEAD + length))
}

#[cfg(test)]
mod tests {
    use common::pb::fleet as pb;

    use super::*;

    const MAGIC: Magic = *b"\xa5TST";

    fn frame(model: &str) -> Vec<u8> {
        encode(&MAGIC, &pb::RequestCount { model: model.into(), outcome: "served".into(), count: 1 })
    }

    #[test]
    fn a_half_written_frame_costs_only_itself() {
        for cut in 0..frame("torn").len() {
            let mut bytes = frame("before");
            bytes.extend_from_slice(&frame("torn")[..cut]);
            bytes.extend_from_slice(&frame("after"));
            let mut models = Vec::new();
            let torn = read(&MAGIC, &bytes, |count: pb::RequestCount| models.push(count.model));
            assert_eq!((models, torn), (vec!["before".to_owned(), "after".to_owned()], cut), "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_byte_and_another_journals_frames_are_no_frames() {
        let good = frame("m");
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            let torn = read(&MAGIC, &bytes, |count: pb::RequestCount| panic!("{count:?} at {at}"));
            assert_eq!(torn, good.len());
        }
        assert_eq!(read(b"\xa5SJ1", &good, |_: pb::RequestCount| panic!("another magic")), good.len());
    }
}
