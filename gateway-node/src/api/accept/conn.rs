//! What the transport of a caller's connection, the requests on it and their answers know of each other: whether one
//! is under way, and whether the caller takes what is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::sleep;

use crate::api::answer::AnswerBody;
use crate::relay::BrokenOff;

/// One connection of a caller.
#[derive(Debug, Default)]
pub struct Conn {
    /// Requests whose head came.
    begun: AtomicUsize,
    /// Those that have not ended.
    open: AtomicUsize,
    /// The last write found no room.
    is_blocked: AtomicBool,
}

/// A request that is under way on a connection.
pub struct Used(Arc<Conn>);

impl Conn {
    /// A request begins; it ends when what is returned is dropped.
    pub fn begin_request(self: &Arc<Self>) -> Used {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.open.fetch_add(1, Ordering::AcqRel);
        Used(self.clone())
    }

    /// How many requests have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Whether a request is under way.
    pub fn is_busy(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Takes note whether the caller has room for more.
    pub fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Release);
    }

    /// Returns when for at least `limit`, and less than twice as long, no request was under way.
    pub async fn until_idle(&self, limit: Duration) {
        loop {
            let (begun, was_busy) = (self.begun(), self.is_busy());
            sleep(limit).await;
            if !was_busy && !self.is_busy() && self.begun() == begun {
                return;
            }
        }
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An answer that is asked for more only when the caller took what it has. Left to itself hyper fills a buffer as large
/// as the largest head of a request first, for every caller that reads slowly.
pub struct Paced {
    body: AnswerBody,
    used: Used,
    /// No other answer is on the connection, whose next wake-up is therefore the one of this answer.
    is_alone: bool,
}

impl Paced {
    /// The answer to a request.
    pub fn new(body: AnswerBody, used: Used, is_alone: bool) -> Self {
        Paced { body, used, is_alone }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        // The write that found no room wakes the connection, which then asks again.
        if self.is_alone && self.used.0.is_blocked.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
