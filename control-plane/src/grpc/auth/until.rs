//! An answer that ends when its caller may no longer have it: a watch would otherwise outlive the token that it was
//! asked for with.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tonic::Status;

/// A body that ends with a status once that is known.
pub struct Until {
    inner: Option<Body>,
    gone: Pin<Box<dyn Future<Output = Status> + Send>>,
}

impl Until {
    /// `inner`, until `gone` says why not.
    pub fn new(inner: Body, gone: impl Future<Output = Status> + Send + 'static) -> Self {
        Until { inner: Some(inner), gone: Box::pin(gone) }
    }
}

impl http_body::Body for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        if let Poll::Ready(status) = this.gone.as_mut().poll(cx) {
            this.inner = None;
            let mut trailers = HeaderMap::new();
            let told = status.add_header(&mut trailers).map_err(axum::Error::new);
            return Poll::Ready(Some(told.map(|()| Frame::trailers(trailers))));
        }
        Pin::new(inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};

    use http_body::Body as _;

    use super::*;

    async fn frame(body: &mut Until) -> Option<Frame<Bytes>> {
        poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.map(Result::unwrap)
    }

    #[tokio::test]
    async fn what_was_not_sent_yet_is_not_sent_to_who_may_no_longer_have_it() {
        let gone = async { Status::unauthenticated("the token was revoked") };
        let mut body = Until::new(Body::from("secret"), gone);
        let trailers = frame(&mut body).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "16");
        assert!(frame(&mut body).await.is_none() && body.is_end_stream());
    }

    #[tokio::test]
    async fn until_then_it_is_the_answer_as_it_was() {
        let mut body = Until::new(Body::from("all"), pending());
        assert_eq!(frame(&mut body).await.unwrap().into_data().unwrap(), "all");
        assert!(frame(&mut body).await.is_none());
    }
}
