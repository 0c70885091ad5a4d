//! A simulated provider on loopback that speaks several dialects: real sockets, scripted behaviour that can be
//! changed while it runs, a log of every call and of the exact bytes that were sent for it.

mod call;
mod control;
pub mod script;
mod socket;
#[cfg(test)]
mod tests;
pub mod things;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use common::tasks::Tasks;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use control::control;
pub use script::Script;
use script::{Asked, Wanted};
use socket::Socket;
use things::Things;

/// How the answer to a call ended on the provider's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything was handed to the socket.
    Complete,
    /// The script broke it off.
    Broken,
    /// The caller went away before.
    Dropped,
}

/// One call and what became of it.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it arrived.
    pub at: Instant,
    /// From 1.
    pub number: u64,
    /// Path and query.
    pub path: String,
    /// As they came.
    pub headers: HeaderMap,
    /// As it came.
    pub body: Bytes,
    /// The model that was asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// What a good answer is made of.
    pub wanted: Wanted,
    /// What the script of that moment was.
    pub script: Script,
    /// The body so far, byte by byte.
    pub sent: Vec<u8>,
    /// `None` while it is being answered.
    pub ended: Option<Ended>,
}

impl Call {
    /// The id of the answer.
    pub fn answer_id(&self, provider: &str) -> String {
        script::answer_id(&self.path, provider, self.number)
    }

    /// The file in it, of a form.
    pub fn file(&self) -> Option<Bytes> {
        script::file(&self.body)
    }

    /// The text that a good answer to it carries, wherever it stands there.
    pub fn healthy_text(&self, provider: &str) -> String {
        script::healthy_text(&Asked {
            provider: provider.to_owned(),
            number: self.number,
            path: self.path.clone(),
            model: self.model.clone(),
            stream: self.stream,
            wanted: Wanted::Text,
        })
    }
}

#[derive(Default)]
struct Scripts {
    all: Option<Script>,
    by_model: BTreeMap<String, Script>,
}

struct Shared {
    name: String,
    scripts: Mutex<Scripts>,
    calls: Mutex<Vec<Call>>,
    things: Mutex<Things>,
    connections: AtomicUsize,
    forgets: AtomicBool,
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn things(&self) -> MutexGuard<'_, Things> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scripts(&self) -> MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self, model: &str) -> Script {
        let scripts = self.scripts();
        scripts.by_model.get(model).or(scripts.all.as_ref()).cloned().unwrap_or(Script::Healthy)
    }
}

/// A provider that runs; it stops when it is dropped.
pub struct Provider {
    shared: Arc<Shared>,
    address: SocketAddr,
    wanted: watch::Sender<bool>,
    listening: watch::Receiver<bool>,
    tasks: Tasks,
}

impl Provider {
    /// Starts a healthy provider on a free port.
    pub async fn start(name: &str) -> anyhow::Result<Self> {
        Provider::start_at(name, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a healthy provider on `address`.
    pub async fn start_at(name: &str, address: SocketAddr) -> anyhow::Result<Self> {
        let listener = bind(address)?.listen(1024)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            scripts: Mutex::default(),
            calls: Mutex::default(),
            things: Mutex::default(),
            connections: AtomicUsize::new(0),
            forgets: AtomicBool::new(false),
        });
        let (wanted, wanted_rx) = watch::channel(true);
        let (listening_tx, listening) = watch::channel(true);
        let tasks = Tasks::new();
        let port = Port { address, shared: shared.clone(), tasks: tasks.clone(), listening: listening_tx };
        tasks.spawn("provider", |token| port.run(listener, wanted_rx, token));
        Ok(Provider { shared, address, wanted, listening, tasks })
    }

    /// Its name, as in its answers.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of a channel that leads here.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What it does from the next call on, for every model. Returns when that is so.
    pub async fn set(&self, script: Script) {
        let listen = script != Script::Refuse;
        {
            let mut scripts = self.shared.scripts();
            scripts.all = Some(script);
            scripts.by_model.clear();
        }
        self.wanted.send_replace(listen);
        let mut listening = self.listening.clone();
        // An error means that the provider has stopped: then it does not listen either.
        let _ = listening.wait_for(|now| *now == listen).await;
    }

    /// What it does from the next call on for one model (the upstream's name); not for `refuse`.
    pub fn set_for(&self, model: &str, script: Script) {
        self.shared.scripts().by_model.insert(model.to_owned(), script);
    }

    /// What it does with a call for `model` now.
    pub fn script(&self, model: &str) -> Script {
        self.shared.script(model)
    }

    /// From now on a call that has ended keeps no headers and no bytes: for runs without an end.
    pub fn forget_ended(&self) {
        self.shared.forgets.store(true, Ordering::Relaxed);
    }

    /// Every call so far, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls().clone()
    }

    /// How many calls there were.
    pub fn call_count(&self) -> usize {
        self.shared.calls().len()
    }

    /// How many connections were opened to it so far.
    pub fn connection_count(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The call whose answer has this id.
    pub fn call_of(&self, answer_id: &str) -> Option<Call> {
        let number: usize = answer_id.rsplit('-').next()?.parse().ok()?;
        self.shared.calls().get(number.checked_sub(1)?).cloned()
    }

    /// What was sent for the last call.
    pub fn last_sent(&self) -> Vec<u8> {
        self.shared.calls().last().map(|call| call.sent.clone()).unwrap_or_default()
    }

    /// Ends it and every connection.
    pub async fn stop(self) {
        self.tasks.stop(Duration::from_secs(2)).await;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

/// A socket that holds its port without listening: who connects is refused.
fn bind(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address).with_context(|| format!("provider cannot take {address}"))?;
    Ok(socket)
}

struct Port {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Tasks,
    listening: watch::Sender<bool>,
}

impl Port {
    async fn run(self, listener: TcpListener, mut wanted: watch::Receiver<bool>, stop: CancellationToken) {
        let mut listener = Some(listener);
        let mut held: Option<TcpSocket> = None;
        let mut generation = stop.child_token();
        loop {
            let want = *wanted.borrow_and_update();
            if want && listener.is_none() {
                let socket = held.take().map_or_else(|| bind(self.address), Ok);
                listener = socket.and_then(|s| Ok(s.listen(1024)?)).ok();
                generation = stop.child_token();
            } else if !want && listener.take().is_some() {
                generation.cancel();
                held = bind(self.address).ok();
            }
            self.listening.send_replace(listener.is_some());
            tokio::select! {
                () = stop.cancelled() => return,
                changed = wanted.changed() => if changed.is_err() { return },
                accepted = accept(listener.as_ref()) => {
                    self.shared.connections.fetch_add(1, Ordering::Relaxed);
                    let shared = self.shared.clone();
                    let generation = generation.clone();
                    self.tasks.spawn("provider connection", |_| connection(accepted, shared, generation));
                }
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let socket = Socket { stream, reset: reset.clone() };
    let service = service_fn(move |request| call::answer(request, shared.clone(), reset.clone()));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(socket), service);
    tokio::select! {
        _ = connection => {}
        () = stop.cancelled() => {}
    }
}
