//! The transport of a caller's connection, which sees what no parser tells: that a head does not get on, that the caller
//! takes nothing more. Until the first bytes tell HTTP/1.1 from HTTP/2 there is not even a parser.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::conn::Conn;

const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A byte stream whose reads fail when the head of a request takes too long.
pub struct Transport<I> {
    io: I,
    conn: Arc<Conn>,
    head_timeout: Duration,
    /// Bytes of the preface of HTTP/2 that came; `None` when the protocol is known.
    preface: Option<usize>,
    is_http_2: bool,
    head: Option<Head>,
}

/// The head of a request that is not complete.
struct Head {
    deadline: Instant,
    /// Made when there is something to wait for: most heads come at once.
    timer: Option<Pin<Box<Sleep>>>,
    /// Requests whose head came before.
    before: usize,
}

impl<I> Transport<I> {
    /// Gives the caller `head_timeout` for the head of each request; the first one begins now.
    pub fn new(io: I, conn: Arc<Conn>, head_timeout: Duration) -> Self {
        let mut transport =
            Transport { io, conn, head_timeout, preface: Some(0), is_http_2: false, head: None };
        transport.begin_head();
        transport
    }

    fn begin_head(&mut self) {
        let deadline = Instant::now() + self.head_timeout;
        self.head = Some(Head { deadline, timer: None, before: self.conn.begun() });
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        if let Some(matched) = &mut self.preface {
            let rest = HTTP_2_PREFACE.get(*matched..).unwrap_or_default();
            let same = rest.iter().zip(bytes).take_while(|(expected, byte)| expected == byte).count();
            *matched += same;
            self.is_http_2 = *matched == HTTP_2_PREFACE.len();
            if same < bytes.len() || self.is_http_2 {
                self.preface = None;
            }
        }
        if self.is_http_2 {
            // A frame that is not finished leaves the pings of the connection without an answer.
            self.head = None;
        } else if self.head.is_none() && !self.conn.is_busy() {
            self.begin_head();
        }
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(head) = &mut self.head else { return Poll::Pending };
        let timer = head.timer.get_or_insert_with(|| Box::pin(sleep_until(head.deadline)));
        timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn wrote<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.conn.set_blocked(polled.is_pending());
        polled
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Transport<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.head.as_ref().is_some_and(|head| head.before != this.conn.begun()) {
            this.head = None;
        }
        let before = buf.filled().len();
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Pending => this.poll_late(cx),
            Poll::Ready(read) => {
                this.on_bytes(buf.filled().get(before..).unwrap_or_default());
                Poll::Ready(read)
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Transport<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.wrote(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        self.wrote(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.wrote(polled)
    }
}
