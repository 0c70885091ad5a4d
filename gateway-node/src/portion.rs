//! How much of a connection is read at a time. hyper makes room for [`ROOM`] bytes before each read, and for twice as much
//! after every read that filled it: on a connection that is read in smaller portions its buffers stay as small as they
//! begin, however fast the peer sends and however large a head may be.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf, Take};

/// The room that hyper makes for the first read.
const ROOM: u64 = 8 * 1024;

/// A transport that is read in portions.
#[derive(Debug)]
pub struct Portions<I>(Take<I>);

impl<I: AsyncRead> Portions<I> {
    /// Reads `io` in portions.
    pub fn new(io: I) -> Self {
        Portions(io.take(0))
    }

    /// The transport itself.
    pub fn inner(&self) -> &I {
        self.0.get_ref()
    }

    /// The transport itself, to write to.
    pub fn inner_mut(&mut self) -> &mut I {
        self.0.get_mut()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Portions<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // What is in the buffer already is part of the portion.
        let filled = buf.filled().len() as u64;
        self.0.set_limit((ROOM - 1).saturating_sub(filled).max(1));
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// Notes the most room that it is given for a read.
    struct Watched<R> {
        read: R,
        room: Arc<AtomicUsize>,
        write: DuplexStream,
    }

    impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.room.fetch_max(buf.remaining(), Ordering::AcqRel);
            Pin::new(&mut self.read).poll_read(cx, buf)
        }
    }

    impl<R: Unpin> AsyncWrite for Watched<R> {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.write).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.write).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.write).poll_shutdown(cx)
        }
    }

    /// The most room that hyper makes for a read of a long request which is there at once.
    async fn room<R: AsyncRead + Unpin + Send + 'static>(read: impl Fn(DuplexStream) -> R) -> usize {
        let length = 500_000;
        let (near, mut far) = duplex(1_000_000);
        let (write, _answers) = duplex(1024);
        let head =
            format!("POST / HTTP/1.1\r\nhost: node\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        far.write_all(&[head.as_bytes(), &vec![b'x'; length]].concat()).await.unwrap();
        let room = Arc::<AtomicUsize>::default();
        let watched = Watched { read: read(near), room: room.clone(), write };
        let service = service_fn(move |request: Request<Incoming>| async move {
            assert_eq!(request.into_body().collect().await.unwrap().to_bytes().len(), length);
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let server = hyper::server::conn::http1::Builder::new();
        server.serve_connection(TokioIo::new(watched), service).await.unwrap();
        room.load(Ordering::Acquire)
    }

    #[tokio::test]
    async fn hypers_buffer_stays_as_it_begins_where_it_is_read_in_portions_and_only_there() {
        assert_eq!(room(Portions::new).await as u64, ROOM);
        assert!(room(|io| io).await as u64 > 4 * ROOM);
    }
}
