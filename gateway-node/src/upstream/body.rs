//! The body of a request to an upstream: parts of buffers that are shared with every other hop, sent one after the
//! other under one length. A clone costs a count, so that a request can be sent again.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Parts smaller than this go out together with what follows, up to so much: over HTTP/2 each would be a frame of its own,
/// and some servers end the connection of who sends many small ones.
const FRAME_BYTES: usize = 16 * 1024;

/// A request body in parts.
#[derive(Debug, Clone, Default)]
pub struct RequestBody {
    parts: Arc<[Bytes]>,
    /// The part that is sent next, and how much of it was.
    at: usize,
    sent: usize,
    /// Bytes of the parts that were not sent.
    left: u64,
}

impl RequestBody {
    fn next_frame(&mut self) -> Option<Bytes> {
        let rest = self.rest()?;
        if rest.len() >= FRAME_BYTES || rest.len() as u64 == self.left {
            self.advance(rest.len());
            return Some(rest);
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(FRAME_BYTES);
        let mut frame = BytesMut::with_capacity(room);
        while let Some(rest) = self.rest().filter(|_| frame.len() < room) {
            let taken = rest.len().min(room - frame.len());
            frame.put_slice(&rest[..taken]);
            self.advance(taken);
        }
        Some(frame.freeze())
    }

    /// What was not sent of the first part of which there is something.
    fn rest(&mut self) -> Option<Bytes> {
        while self.parts.get(self.at).is_some_and(|part| part.len() <= self.sent) {
            (self.at, self.sent) = (self.at + 1, 0);
        }
        self.parts.get(self.at).map(|part| part.slice(self.sent..))
    }

    fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        self.left -= bytes as u64;
    }
}

impl From<Vec<Bytes>> for RequestBody {
    fn from(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        RequestBody { parts: parts.into(), at: 0, sent: 0, left }
    }
}

impl From<Bytes> for RequestBody {
    fn from(body: Bytes) -> Self {
        Vec::from([body]).into()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_frame().map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn small_parts_go_out_together_and_large_ones_as_they_are() {
        let large = Bytes::from(vec![b'x'; 2 * FRAME_BYTES]);
        let small = |text: &'static str| Bytes::from_static(text.as_bytes());
        let parts = vec![small("ab"), Bytes::new(), small("c"), large.clone(), small("d"), small("e")];
        let whole = parts.concat();
        let mut body = RequestBody::from(parts);
        let again = body.clone();
        let mut sent = Vec::new();
        while let Some(frame) = body.frame().await {
            sent.push(frame.unwrap().into_data().unwrap());
            let left = whole.len() - sent.iter().map(Bytes::len).sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            assert_eq!(body.is_end_stream(), left == 0);
        }
        let lengths: Vec<usize> = sent.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [FRAME_BYTES, FRAME_BYTES + 3, 2]);
        assert_eq!(sent[1].as_ptr(), large[FRAME_BYTES - 3..].as_ptr(), "nothing of it is copied");
        assert_eq!(sent.concat(), whole);
        assert_eq!(again.collect().await.unwrap().to_bytes(), whole, "a clone begins where it was cloned");
    }

    #[tokio::test]
    async fn a_body_in_one_part_is_sent_as_it_is() {
        let whole = Bytes::from_static(b"{}");
        let sent = RequestBody::from(whole.clone()).frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(sent.as_ptr(), whole.as_ptr());
    }

    #[test]
    fn no_body_is_at_its_end() {
        assert!(RequestBody::default().is_end_stream() && RequestBody::from(Bytes::new()).is_end_stream());
    }
}
