//! A connection to an upstream beneath the HTTP client: any transport, which remembers whether it ever answered and is
//! read in portions so small that the client's buffers do not grow.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::portion::Portions;

/// A byte stream to an upstream.
pub trait Io: AsyncRead + AsyncWrite + Connection + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Connection + Send + Unpin> Io for T {}

/// What a connection has been through.
#[derive(Debug, Default)]
pub struct Usage {
    /// A request on it got its response headers.
    pub has_served: AtomicBool,
    /// Bytes came in after the last bytes that went out.
    pub is_answering: AtomicBool,
}

/// A connection that remembers whether it ever answered.
pub struct Conn {
    io: Portions<Box<dyn Io>>,
    usage: Arc<Usage>,
}

impl Conn {
    /// A connection that was just made.
    pub fn new(io: Box<dyn Io>) -> Self {
        Conn { io: Portions::new(io), usage: Arc::default() }
    }
}

impl Connection for Conn {
    fn connected(&self) -> Connected {
        self.io.inner().connected().extra(self.usage.clone())
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.usage.is_answering.store(true, Ordering::Release);
        }
        polled
    }
}

impl AsyncWrite for Conn {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.usage.is_answering.store(false, Ordering::Release);
        Pin::new(self.io.inner_mut()).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.inner_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.inner_mut()).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.inner().is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.usage.is_answering.store(false, Ordering::Release);
        Pin::new(self.io.inner_mut()).poll_write_vectored(cx, bufs)
    }
}
