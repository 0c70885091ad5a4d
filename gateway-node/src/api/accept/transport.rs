//! The transport of a caller's connection, which sees what no parser tells: that a head does not get on, that the caller
//! takes nothing more. Until the first bytes tell HTTP/1.1 from HTTP/2 there is not even a parser.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::conn::Conn;
use crate::portion::Portions;

const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A byte stream whose reads fail when the head of a request takes too long.
pub struct Transport<I> {
    io: Portions<I>,
    conn: Arc<Conn>,
    head_timeout: Duration,
    /// Bytes of the preface of HTTP/2 that came; `None` when the protocol is known.
    preface: Option<usize>,
    is_http_2: bool,
    /// What came until the protocol was known, to be read once more.
    first: Vec<u8>,
    head: Option<Head>,
}

/// What a caller speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or what is none of both.
    Http1,
    /// HTTP/2.
    Http2,
}

/// The head of a request that is not complete.
struct Head {
    deadline: Instant,
    /// Made when there is something to wait for: most heads come at once.
    timer: Option<Pin<Box<Sleep>>>,
    /// Requests whose head came before.
    before: usize,
}

impl<I: AsyncRead + Unpin> Transport<I> {
    /// Gives the caller `head_timeout` for the head of each request; the first one begins now.
    pub fn new(io: I, conn: Arc<Conn>, head_timeout: Duration) -> Self {
        let io = Portions::new(io);
        let (preface, first) = (Some(0), Vec::new());
        let mut transport =
            Transport { io, conn, head_timeout, preface, is_http_2: false, first, head: None };
        transport.begin_head();
        transport
    }

    /// Tells the protocol by the first bytes, which are then read as if nobody had seen them. hyper could tell it too,
    /// but reads these few by themselves, and makes its buffer twice as large for the rest of the head.
    pub async fn protocol(&mut self) -> io::Result<Protocol> {
        while self.preface.is_some() {
            let mut bytes = [0; HTTP_2_PREFACE.len()];
            let wanted = bytes.get_mut(self.first.len()..).unwrap_or_default();
            let mut buf = ReadBuf::new(wanted);
            poll_fn(|cx| self.poll_new(cx, &mut buf)).await?;
            if buf.filled().is_empty() {
                break;
            }
            self.first.extend_from_slice(buf.filled());
        }
        Ok(if self.is_http_2 { Protocol::Http2 } else { Protocol::Http1 })
    }

    fn poll_new(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.head.as_ref().is_some_and(|head| head.before != self.conn.begun()) {
            self.head = None;
        }
        let before = buf.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buf) {
            Poll::Pending => self.poll_late(cx),
            Poll::Ready(read) => {
                self.on_bytes(buf.filled().get(before..).unwrap_or_default());
                Poll::Ready(read)
            }
        }
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
        if self.first.is_empty() {
            return self.poll_new(cx, buf);
        }
        let seen = self.first.len().min(buf.remaining());
        let rest = self.first.split_off(seen);
        buf.put_slice(&std::mem::replace(&mut self.first, rest));
        // Together with what is there by now.
        match self.poll_new(cx, buf) {
            Poll::Pending => Poll::Ready(Ok(())),
            read @ Poll::Ready(_) => read,
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Transport<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(self.io.inner_mut()).poll_write(cx, buf);
        self.wrote(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(self.io.inner_mut()).poll_flush(cx);
        self.wrote(polled)
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
        let polled = Pin::new(self.io.inner_mut()).poll_write_vectored(cx, bufs);
        self.wrote(polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn the_protocol_is_told_however_its_first_bytes_are_cut_and_none_of_them_is_lost() {
        let http_2 = [HTTP_2_PREFACE, b"and what follows"].concat();
        for (sent, protocol) in [
            (&b"POST /v1/chat/completions HTTP/1.1\r\nhost: node\r\n\r\n"[..], Protocol::Http1),
            (b"PRI * HTTP/1.1\r\n\r\n", Protocol::Http1),
            (b"PRI", Protocol::Http1),
            (b"", Protocol::Http1),
            (&http_2, Protocol::Http2),
            (HTTP_2_PREFACE, Protocol::Http2),
        ] {
            for step in 1..=sent.len().max(1) {
                let (near, mut far) = duplex(1024);
                let mut transport = Transport::new(near, Arc::default(), Duration::from_secs(30));
                let writing = async move {
                    for piece in sent.chunks(step) {
                        far.write_all(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                };
                let reading = async {
                    let told = transport.protocol().await.unwrap();
                    let mut all = Vec::new();
                    transport.read_to_end(&mut all).await.unwrap();
                    (told, all)
                };
                let (read, ()) = tokio::join!(reading, writing);
                assert_eq!(read, (protocol, sent.to_vec()), "in pieces of {step}");
            }
        }
    }
}
