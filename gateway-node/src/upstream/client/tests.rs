use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use http::StatusCode;
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::task::JoinSet;

use super::*;

struct Http2(DuplexStream);

impl Connection for Http2 {
    fn connected(&self) -> Connected {
        Connected::new().negotiated_h2()
    }
}

impl AsyncRead for Http2 {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Http2 {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// What an HTTP/2 upstream does with its n-th stream.
#[derive(Clone, Copy)]
enum Does {
    Answer,
    Refuse,
    /// Stops reading and writing on the whole connection.
    Freeze,
}

/// An HTTP/2 upstream that does as told with the streams of every connection, the last thing for good.
fn upstream(script: &'static [Does]) -> (Client, Arc<AtomicUsize>, Arc<Mutex<JoinSet<()>>>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let tasks = Arc::new(Mutex::new(JoinSet::new()));
    let (counted, spawner) = (connections.clone(), tasks.clone());
    let dial: Dial = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::AcqRel);
        let (near, far) = tokio::io::duplex(64 * 1024);
        spawner.lock().unwrap().spawn(async move {
            let mut connection = h2::server::handshake(far).await.unwrap();
            for n in 0.. {
                let Some(Ok((_, mut reply))) = connection.accept().await else { return };
                match script[n.min(script.len() - 1)] {
                    Does::Answer => drop(reply.send_response(Response::new(()), true).unwrap()),
                    Does::Refuse => reply.send_reset(h2::Reason::REFUSED_STREAM),
                    Does::Freeze => std::future::pending().await,
                }
            }
        });
        let io: Box<dyn Io> = Box::new(Http2(near));
        Box::pin(std::future::ready(Ok(io)))
    });
    (Client::new(dial, Duration::from_secs(10)), connections, tasks)
}

fn request() -> Request<RequestBody> {
    Request::post("http://a/v1/chat/completions").body(Bytes::from_static(b"{}").into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn br_126_a_refused_stream_may_be_sent_again_and_leaves_its_connection_in_use() {
    let (client, connections, _tasks) = upstream(&[Does::Answer, Does::Refuse, Does::Answer]);
    assert_eq!(client.send(request()).await.unwrap().status(), StatusCode::OK);
    let fault = client.send(request()).await.unwrap_err();
    assert_eq!((fault.kind, fault.was_stale), (TransportFault::StreamRefused, true));
    assert_eq!(client.send(request()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(connections.load(Ordering::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn an_http_2_connection_whose_other_end_is_silent_is_given_up_and_not_used_again() {
    let (client, connections, _tasks) = upstream(&[Does::Answer, Does::Freeze]);
    client.send(request()).await.unwrap();
    let minute = Duration::from_secs(60);
    let fault = tokio::time::timeout(minute, client.send(request())).await.expect("given up").unwrap_err();
    assert_eq!(fault.kind, TransportFault::Closed);
    assert_eq!(client.send(request()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(connections.load(Ordering::Acquire), 2);
}
