//! How the provider answers one call: noted when it comes, its script played step by step, noted when it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Request, Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep};

use super::script::{self, Asked, Plan, Script, Step};
use super::{Call, Ended, Shared};

/// Why a connection ends without an answer, or in the middle of one.
#[derive(Debug, thiserror::Error)]
#[error("the script ends the connection here")]
pub(super) struct Broken;

/// Answers a call as the script of this moment says.
pub(super) async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    reset: Arc<AtomicBool>,
) -> Result<Response<Scripted>, Broken> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let (model, stream, wanted) = script::read_call(&path, &body);
    let script = shared.script(&model);
    let number = {
        let mut calls = shared.calls();
        let number = calls.len() as u64 + 1;
        calls.push(Call {
            at: Instant::now(),
            number,
            path: path.clone(),
            headers: head.headers,
            body: body.clone(),
            model: model.clone(),
            stream,
            wanted: wanted.clone(),
            script: script.clone(),
            sent: Vec::new(),
            ended: None,
        });
        number
    };
    let mut record = Record { shared: shared.clone(), number, ended: Ended::Dropped };
    let asked = Asked { provider: shared.name.clone(), number, path, model, stream, wanted };
    // What is broken is so for things too.
    let kept = if matches!(script, Script::Healthy | Script::Slow { .. }) {
        shared.things().answer(head.method.as_str(), &asked, &body)
    } else {
        None
    };
    match kept.unwrap_or_else(|| script.plan(&asked)) {
        Plan::Reset => {
            record.ended = Ended::Broken;
            reset.store(true, Ordering::Release);
            Err(Broken)
        }
        Plan::Hang => {
            let _record = record;
            std::future::pending().await
        }
        Plan::Answer { status, headers, steps } => {
            let mut response = Response::builder().status(StatusCode::from_u16(status).map_err(|_| Broken)?);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Scripted { steps: steps.into(), pause: None, record, reset }).map_err(|_| Broken)
        }
    }
}

/// Notes how a call ended, also when its answer is dropped.
struct Record {
    shared: Arc<Shared>,
    number: u64,
    ended: Ended,
}

impl Record {
    fn with_call(&self, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.shared.calls().get_mut(self.number as usize - 1) {
            change(call);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let ended = self.ended;
        let forgets = self.shared.forgets.load(Ordering::Relaxed);
        self.with_call(|call| {
            call.ended = Some(ended);
            if forgets {
                (call.headers, call.body, call.sent) = Default::default();
            }
        });
    }
}

/// The body of an answer: its steps, one after the other.
pub(super) struct Scripted {
    steps: std::collections::VecDeque<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    record: Record,
    reset: Arc<AtomicBool>,
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match self.steps.pop_front() {
                None => {
                    self.record.ended = Ended::Complete;
                    return Poll::Ready(None);
                }
                Some(Step::Send(bytes)) => {
                    self.record.with_call(|call| call.sent.extend_from_slice(&bytes));
                    if self.steps.is_empty() {
                        self.record.ended = Ended::Complete;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Step::Wait(time)) => self.pause = Some(Box::pin(sleep(time))),
                Some(Step::Stall) => {
                    self.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
                Some(step @ (Step::Close | Step::Abort)) => {
                    self.record.ended = Ended::Broken;
                    self.reset.store(step == Step::Abort, Ordering::Release);
                    return Poll::Ready(Some(Err(Broken)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.pause.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // A body of one piece has a length, as the whole answers of real providers do.
        match (self.steps.len(), self.steps.front()) {
            (1, Some(Step::Send(bytes))) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
