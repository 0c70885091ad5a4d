//! Somebody who is told of alerts: a webhook on loopback that keeps what it was sent, and answers as it is told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use common::tasks::Tasks;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::eventually::eventually;

/// What was sent at once.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Where to.
    pub path: String,
    /// With what.
    pub headers: HeaderMap,
    /// As it came.
    pub body: Bytes,
}

impl Sent {
    /// The body as JSON; `Null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// A header as text; empty without it.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A receiver that runs; it stops when it is dropped.
pub struct Receiver {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<Sent>>>,
    status: Arc<AtomicU16>,
    tasks: Tasks,
}

impl Receiver {
    /// Starts one that takes everything.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sent, status) = (Arc::default(), Arc::new(AtomicU16::new(200)));
        let (tasks, port) = (Tasks::new(), Port { sent: Arc::clone(&sent), status: status.clone() });
        let serving = tasks.clone();
        tasks.spawn("receiver", |token| async move {
            let _ = token.run_until_cancelled(port.accept(listener, serving)).await;
        });
        Ok(Receiver { address, sent, status, tasks })
    }

    /// The URL of a path of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it answers from now on.
    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Release);
    }

    /// All that was sent to a path.
    pub fn sent(&self, path: &str) -> Vec<Sent> {
        let all = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|sent| sent.path == path).cloned().collect()
    }

    /// Waits until something was sent to a path that is so, and returns the first.
    pub async fn gets(
        &self,
        path: &str,
        what: &str,
        limit: Duration,
        is_it: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Sent> {
        eventually(&format!("the receiver is told: {what}"), limit, || async {
            let all = self.sent(path);
            let found = all.iter().find(|sent| is_it(&sent.json()));
            let bodies = || all.iter().map(|sent| sent.json()["summary"].clone()).collect::<Vec<_>>();
            found.cloned().with_context(|| format!("{} messages: {:?}", all.len(), bodies()))
        })
        .await
    }

    /// Fails if any of these texts stands anywhere in what was sent.
    pub fn holds_none_of(&self, secrets: &[&str]) -> anyhow::Result<()> {
        let all = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        for sent in all.iter() {
            let text = format!("{:?} {}", sent.headers, String::from_utf8_lossy(&sent.body));
            for secret in secrets {
                ensure!(!text.contains(secret), "a secret stands in {text}");
            }
        }
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

#[derive(Clone)]
struct Port {
    sent: Arc<Mutex<Vec<Sent>>>,
    status: Arc<AtomicU16>,
}

impl Port {
    async fn accept(self, listener: TcpListener, tasks: Tasks) {
        while let Ok((socket, _)) = listener.accept().await {
            let port = self.clone();
            tasks.spawn("receiver's connection", |token| port.serve(socket, token));
        }
    }

    async fn serve(self, socket: TcpStream, token: CancellationToken) {
        let service = service_fn(|request: Request<Incoming>| self.take(request));
        let conn = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        // A client that goes away is no fault.
        let _ = token.run_until_cancelled(conn).await;
    }

    async fn take(&self, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let sent = Sent { path: head.uri.path().to_owned(), headers: head.headers, body };
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
        let mut answer = Response::new(Empty::new());
        *answer.status_mut() =
            http::StatusCode::from_u16(self.status.load(Ordering::Acquire)).unwrap_or_default();
        Ok(answer)
    }
}
