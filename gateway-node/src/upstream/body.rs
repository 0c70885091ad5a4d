//! The body of a request to an upstream: parts of buffers that are shared with every other hop, sent one after the
//! other under one length. A clone costs a count, so that a request can be sent again.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A request body in parts.
#[derive(Debug, Clone, Default)]
pub struct RequestBody {
    parts: Arc<[Bytes]>,
    sent: usize,
    /// Bytes of the parts that were not sent.
    left: u64,
}

impl From<Vec<Bytes>> for RequestBody {
    fn from(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        RequestBody { parts: parts.into(), sent: 0, left }
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
        while let Some(part) = self.parts.get(self.sent).cloned() {
            self.sent += 1;
            if !part.is_empty() {
                self.left -= part.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
        }
        Poll::Ready(None)
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
    async fn parts_go_out_in_order_under_one_length_and_a_clone_begins_where_it_was_cloned() {
        let parts = ["ab", "", "c"].map(|part| Bytes::from_static(part.as_bytes()));
        let mut body = RequestBody::from(parts.to_vec());
        let again = body.clone();
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(1), false));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "c");
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert_eq!(again.collect().await.unwrap().to_bytes(), "abc");
    }

    #[test]
    fn no_body_is_at_its_end() {
        assert!(RequestBody::default().is_end_stream() && RequestBody::from(Bytes::new()).is_end_stream());
    }
}
