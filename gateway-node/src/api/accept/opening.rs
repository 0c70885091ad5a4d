//! The opening of a connection: until its first bytes tell HTTP/1.1 from HTTP/2, no parser is there that
//! would give a silent caller up.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose reads fail when its opening takes too long.
pub struct Opening<I> {
    io: I,
    undecided: Option<Undecided>,
}

struct Undecided {
    timer: Pin<Box<Sleep>>,
    /// Bytes of the preface of HTTP/2 that came.
    matched: usize,
}

impl<I> Opening<I> {
    /// Gives the caller `time` for its opening.
    pub fn within(time: Duration, io: I) -> Self {
        Opening { io, undecided: Some(Undecided { timer: Box::pin(sleep(time)), matched: 0 }) }
    }
}

impl Undecided {
    /// Whether these bytes settle which protocol it is.
    fn is_settled_by(&mut self, bytes: &[u8]) -> bool {
        let rest = HTTP_2_PREFACE.get(self.matched..).unwrap_or_default();
        let same = rest.iter().zip(bytes).take_while(|(expected, byte)| expected == byte).count();
        self.matched += same;
        same < bytes.len() || self.matched == HTTP_2_PREFACE.len()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Opening<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.io).poll_read(cx, buf);
        let Some(undecided) = &mut this.undecided else { return polled };
        match polled {
            Poll::Pending => undecided.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            Poll::Ready(read) => {
                if undecided.is_settled_by(buf.filled().get(before..).unwrap_or_default()) {
                    this.undecided = None;
                }
                Poll::Ready(read)
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Opening<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
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
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}
