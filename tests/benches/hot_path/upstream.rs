//! An upstream that costs next to nothing, so that what is measured is the node: fixed bytes, no log.
//! The simulated provider of the harness keeps every call and would be the bottleneck.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use common::tasks::Tasks;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// Deltas of a stream.
pub const DELTAS: usize = 30;

/// What the upstream answers with.
#[derive(Clone)]
struct Answers {
    whole: Bytes,
    first: [Bytes; 2],
    delta: Bytes,
    last: [Bytes; 2],
}

/// Starts it on a free port.
pub async fn start(tasks: &Tasks) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let (answers, connections) = (Answers::new(), tasks.clone());
    tasks.spawn("upstream", |stop| async move {
        while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
            let answers = answers.clone();
            connections.spawn("upstream connection", |stop| async move {
                stop.run_until_cancelled(serve(stream, answers)).await;
            });
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, answers: Answers) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, answers.clone()));
    // A caller that goes away is no fault.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, answers: Answers) -> Result<Response<Answer>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let asks = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
    let (kind, pieces, is_idle) = if !asks("\"stream\":true") {
        ("application/json", VecDeque::from([answers.whole]), false)
    } else if asks("idle") {
        ("text/event-stream", VecDeque::from([answers.first.concat().into(), answers.delta]), true)
    } else {
        let deltas = std::iter::repeat_n(answers.delta, DELTAS);
        let pieces = answers.first.into_iter().chain(deltas).chain(answers.last);
        ("text/event-stream", pieces.collect(), false)
    };
    let mut response = Response::new(Answer { pieces, is_idle, yields: false });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

impl Answers {
    fn new() -> Answers {
        let frame = |delta: &str, finish: &str| {
            Bytes::from(format!(
                "data: {{\"id\":\"chatcmpl-benchmark\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
                 \"model\":\"bench-v1\",\"system_fingerprint\":\"fp_0123456789\",\"choices\":[{{\"index\":0,\
                 \"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
            ))
        };
        let text = "word ".repeat(200);
        Answers {
            whole: Bytes::from(format!(
                "{{\"id\":\"chatcmpl-benchmark\",\"object\":\"chat.completion\",\"created\":1700000000,\
                 \"model\":\"bench-v1\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\
                 \"content\":\"{text}\",\"refusal\":null}},\"logprobs\":null,\"finish_reason\":\"stop\"}}],\
                 \"usage\":{{\"prompt_tokens\":400,\"completion_tokens\":200,\"total_tokens\":600}}}}"
            )),
            first: [
                Bytes::from_static(b": hello\n\n"),
                frame("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null"),
            ],
            delta: frame("{\"content\":\" word\"}", "null"),
            last: [frame("{}", "\"stop\""), Bytes::from_static(b"data: [DONE]\n\n")],
        }
    }
}

/// A body that hands out one piece at a time, and lets the server send each before the next.
struct Answer {
    pieces: VecDeque<Bytes>,
    is_idle: bool,
    yields: bool,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::take(&mut self.yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.pieces.pop_front() {
            Some(piece) => {
                self.yields = !self.pieces.is_empty();
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            None if self.is_idle => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && !self.is_idle
    }

    fn size_hint(&self) -> SizeHint {
        match (self.pieces.len(), self.pieces.front(), self.is_idle) {
            (1, Some(piece), false) => SizeHint::with_exact(piece.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
