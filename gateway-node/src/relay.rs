//! The committed body on its way to the caller: bytes pass untouched, and what they mean is read as
//! they go by. How the answer ended is counted before the last bytes are handed on. An answer that
//! breaks off ends in the dialect's error frame, or, where it is no stream, by aborting the connection.
//!
//! Dropped before its end, the caller has gone away: the upstream request is closed with it.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::api::Open;
use crate::bindings::Binder;
use crate::budget::Share;
use crate::dialect::Rules;
use crate::gate::{Committed, Flow, Tap, TapEnd};
use crate::upstream::UpstreamBody;

/// An answer that is no stream broke off after commit.
#[derive(Debug, thiserror::Error)]
#[error("the upstream broke off in the middle of the answer")]
pub struct BrokenOff;

/// A committed answer.
pub struct Relay {
    held: VecDeque<Bytes>,
    /// Of the gates' budget, until `held` is handed out.
    share: Option<Share>,
    rest: Option<UpstreamBody>,
    tap: Tap,
    idle: Idle,
    open: Open,
    rules: &'static Rules,
    request_id: Arc<str>,
    /// Waits for the id of what the answer makes.
    binder: Option<Binder>,
    /// Bytes still to come of a body whose length the caller was told.
    remaining: Option<u64>,
    closing: Option<Bytes>,
    /// The answer has failed, and there is no frame that could say so.
    is_broken: bool,
    is_over: bool,
}

/// What a relay is made of.
pub struct Parts {
    /// What the gate held; sent first.
    pub committed: Committed,
    /// The rest.
    pub rest: Option<UpstreamBody>,
    /// What `committed` takes of the gates' budget.
    pub share: Share,
    /// How long the answer may stand still.
    pub idle: Duration,
    /// Ends with the answer.
    pub open: Open,
    /// The dialect.
    pub rules: &'static Rules,
    /// For the error frame.
    pub request_id: Arc<str>,
    /// What was not found in the held bytes is bound before the bytes that show it go on.
    pub binder: Option<Binder>,
    /// The length that the caller was told, of an answer that is no stream.
    pub length: Option<u64>,
}

enum Came {
    Bytes(Bytes),
    End,
    Broken,
}

impl Relay {
    /// Begins to pass an answer on.
    pub fn new(parts: Parts) -> Self {
        let Committed { held, tap, flow, .. } = parts.committed;
        let held_bytes: usize = held.iter().map(Bytes::len).sum();
        let mut relay = Relay {
            held: held.into(),
            share: Some(parts.share),
            rest: parts.rest,
            tap,
            idle: Idle::new(parts.idle),
            open: parts.open,
            rules: parts.rules,
            request_id: parts.request_id,
            binder: parts.binder,
            remaining: parts.length,
            closing: None,
            is_broken: false,
            is_over: false,
        };
        relay.follow(flow);
        relay.count_down(held_bytes);
        relay
    }

    fn poll_came(&mut self, cx: &mut Context<'_>) -> Poll<Came> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(Came::End) };
        loop {
            match Pin::new(&mut *rest).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(Came::End),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Came::Broken),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Came::Bytes(bytes));
                    }
                }
                Poll::Pending => return self.idle.poll_expired(cx).map(|()| Came::Broken),
            }
        }
    }

    /// Counts an ending that is in the bytes about to be sent.
    fn follow(&mut self, flow: Flow) {
        match flow {
            Flow::Pass => {}
            Flow::Finish => self.serve(),
            Flow::Raised => self.cut(),
            Flow::Replace { .. } => {
                self.cut();
                if self.tap.takes_frame() {
                    self.close_with_error_frame(false);
                } else {
                    self.is_broken = true;
                    self.rest = None;
                }
            }
        }
    }

    fn count_down(&mut self, bytes: usize) {
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.saturating_sub(bytes as u64);
            // The caller takes the answer for whole with its last byte, not with the end behind it.
            if *remaining == 0 {
                self.serve();
            }
        }
    }

    fn serve(&mut self) {
        self.open.spend(self.tap.spent());
        self.open.serve();
    }

    fn cut(&mut self) {
        self.open.spend(self.tap.spent());
        self.open.cut(Instant::now());
    }

    /// Takes a chunk, and returns the first of what may be passed on now; the rest is held.
    fn pass(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        if self.binder.as_mut().is_some_and(|binder| binder.on_bytes(&bytes)) {
            self.binder = None;
        }
        let flow = self.tap.on_bytes(&bytes);
        if let Flow::Replace { keep } = flow {
            bytes.truncate(keep);
        }
        self.open.trace().passed(bytes.len());
        self.follow(flow);
        if self.tap.saw_event() {
            self.idle.rearm();
        }
        self.count_down(bytes.len());
        if !bytes.is_empty() {
            self.tap.pass(bytes, &mut self.held);
        }
        self.held.pop_front()
    }

    fn close_with_error_frame(&mut self, is_mid_event: bool) {
        let frame = (self.rules.closing_frame)(&self.request_id);
        let mut closing = BytesMut::with_capacity(frame.len() + 2);
        // A half-sent event is closed first, so that the frame is read on its own.
        if is_mid_event {
            closing.put_slice(b"\n\n");
        }
        closing.put_slice(&frame);
        self.closing = Some(closing.freeze());
        self.rest = None;
    }

    fn end(&mut self) {
        match self.tap.on_end() {
            TapEnd::Complete => {
                self.is_over = true;
                self.tap.release(&mut self.held);
                if self.tap.lacks_blank_line() {
                    self.closing = Some(Bytes::from_static(b"\n\n"));
                }
                self.serve();
            }
            TapEnd::Truncated => self.break_off(),
        }
    }

    fn break_off(&mut self) {
        self.is_over = true;
        self.tap.release(&mut self.held);
        // Behind the terminal frame, or an error frame that the SDKs raise, nothing can be cut any more.
        if self.open.is_over() {
            return;
        }
        self.cut();
        if self.tap.takes_frame() {
            self.close_with_error_frame(self.tap.is_mid_event());
        } else {
            self.is_broken = true;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // What is still open then was left by its caller.
        self.open.spend(self.tap.spent());
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        loop {
            if let Some(held) = this.held.pop_front() {
                if this.held.is_empty() {
                    (this.held, this.share) = (VecDeque::new(), None);
                }
                this.idle.suspend();
                return Poll::Ready(Some(Ok(Frame::data(held))));
            }
            if let Some(closing) = this.closing.take() {
                this.is_over = true;
                return Poll::Ready(Some(Ok(Frame::data(closing))));
            }
            if std::mem::take(&mut this.is_broken) {
                this.is_over = true;
                return Poll::Ready(Some(Err(BrokenOff)));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            this.idle.resume();
            match std::task::ready!(this.poll_came(cx)) {
                Came::Bytes(bytes) => {
                    if let Some(bytes) = this.pass(bytes) {
                        this.idle.suspend();
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                Came::End => this.end(),
                Came::Broken => this.break_off(),
            }
        }
    }
}

/// Times how long the upstream gives no sign. A caller that reads slowly stops the clock: the time
/// between handing a frame out and being asked for the next one is not the upstream's.
struct Idle {
    timeout: Duration,
    deadline: Instant,
    suspended_at: Option<Instant>,
    sleep: Pin<Box<Sleep>>,
}

impl Idle {
    fn new(timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Idle { timeout, deadline, suspended_at: None, sleep: Box::pin(tokio::time::sleep_until(deadline)) }
    }

    fn rearm(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }

    fn suspend(&mut self) {
        self.suspended_at = Some(Instant::now());
    }

    fn resume(&mut self) {
        if let Some(at) = self.suspended_at.take() {
            self.deadline += at.elapsed();
        }
    }

    /// The timer itself is moved only when it fires, not with every chunk.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            std::task::ready!(self.sleep.as_mut().poll(cx));
            if self.sleep.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            let deadline = self.deadline;
            self.sleep.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_a_caller_takes_no_bytes_is_not_the_upstreams() {
        let s = Duration::from_secs;
        let mut idle = Idle::new(s(300));
        tokio::time::sleep(s(100)).await;
        idle.suspend();
        tokio::time::sleep(s(1000)).await;
        idle.resume();
        let resumed = Instant::now();
        assert!(timeout(s(199), poll_fn(|cx| idle.poll_expired(cx))).await.is_err(), "200 s were left");
        poll_fn(|cx| idle.poll_expired(cx)).await;
        assert_eq!(resumed.elapsed(), s(200));
    }
}
