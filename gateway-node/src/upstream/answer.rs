//! The body of an upstream's answer as the gate and the relay read it: as it comes, or decoded where the upstream
//! encoded it. A plain body passes through one match.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;

use super::encoding::{Broken, Coding, Decoder};

/// The body of an answer.
pub enum UpstreamBody<B = Incoming> {
    /// As the upstream sent it.
    Plain(B),
    /// Decoded as it comes.
    Decoded(Box<Decoded<B>>),
}

/// A body in an encoding.
pub struct Decoded<B> {
    encoded: B,
    decoder: Decoder,
}

/// Why a body ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// The connection or the stream broke off.
    #[error("the answer broke off")]
    BrokenOff,
    /// It is not in the encoding that its headers name, or not all of it is there.
    #[error(transparent)]
    Encoding(#[from] Broken),
}

impl<B> UpstreamBody<B> {
    /// A body to which these codings were applied.
    pub fn new(body: B, codings: &[Coding]) -> Result<Self, Broken> {
        if codings.is_empty() {
            return Ok(UpstreamBody::Plain(body));
        }
        Ok(UpstreamBody::Decoded(Box::new(Decoded { encoded: body, decoder: Decoder::new(codings)? })))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for UpstreamBody<B> {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match &mut *self {
            UpstreamBody::Plain(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|f| f.map_err(|_| BodyFault::BrokenOff)))
            }
            UpstreamBody::Decoded(decoded) => decoded.poll_frame(cx),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Decoded<B> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        loop {
            if let Some(decoded) = self.decoder.next()? {
                return Poll::Ready(Some(Ok(Frame::data(decoded))));
            }
            match ready!(Pin::new(&mut self.encoded).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers are no part of what is encoded.
                    if let Ok(encoded) = frame.into_data() {
                        self.decoder.push(encoded);
                    }
                }
                Some(Err(_)) => return Poll::Ready(Some(Err(BodyFault::BrokenOff))),
                None if self.decoder.may_end() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Err(Broken.into()))),
            }
        }
    }
}
