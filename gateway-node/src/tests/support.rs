//! A node in one process between pipes: scripted upstreams below, a real HTTP client above.

mod pipe;
mod world;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::clock::Clock;
use common::pb::fleet as pb;
use http::Request;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::Digest as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use crate::api::auth::Keys;
use crate::api::{Gateway, Settings, serve};
use crate::bindings::{Bindings, Lookup};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::records::Records;
use crate::table::build::build;
use crate::upstream::Connections;
use crate::upstream::client::{Dial, Io};
pub use pipe::Pipe;
pub use world::Unreachable;
use world::folder;

mod answered;
mod plane;
mod recorded;

pub use answered::Answered;
pub use plane::Plane;
pub use recorded::Recorded;

pub const KEY: &str = "sk-caller";

pub fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One step of what an upstream does with a request that it has read.
#[derive(Clone)]
pub enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Says nothing more and keeps the connection.
    Hang,
}

use Act::{Close, Hang, Send, Wait};

pub type Script = Vec<Act>;

pub fn sse_head() -> Act {
    Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// A piece of a chunked body.
pub fn chunk(text: &str) -> Act {
    Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

pub fn end() -> Act {
    Send(b"0\r\n\r\n".to_vec())
}

pub fn role() -> String {
    delta(r#"{"role":"assistant","content":""}"#)
}

pub fn content(text: &str) -> String {
    delta(&format!(r#"{{"content":"{text}"}}"#))
}

fn delta(delta: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
    )
}

pub fn finish() -> String {
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned()
}

pub const DONE: &str = "data: [DONE]\n\n";

/// A healthy stream that says `text`.
pub fn stream(text: &str) -> Script {
    vec![sse_head(), chunk(&role()), chunk(&content(text)), chunk(&finish()), chunk(DONE), end()]
}

pub fn stream_bytes(text: &str) -> String {
    [role(), content(text), finish(), DONE.to_owned()].concat()
}

pub fn answer(status: u16, headers: &str, body: &str) -> Script {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![Send([head.as_bytes(), body.as_bytes()].concat())]
}

pub fn whole_body(text: &str) -> String {
    format!(
        r#"{{"id":"c","object":"chat.completion","model":"up","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}]}}"#
    )
}

pub fn whole(text: &str) -> Script {
    answer(200, "", &whole_body(text))
}

pub fn failing(status: u16) -> Script {
    answer(status, "", r#"{"error":{"message":"m","type":"t","param":null,"code":null}}"#)
}

/// What an upstream saw of a request.
#[derive(Debug, Clone)]
pub struct Call {
    pub head: String,
    pub body: String,
}

/// A scripted upstream. Scripts are used up one a request; the last one stays.
#[derive(Default)]
pub struct Upstream {
    scripts: Mutex<VecDeque<Script>>,
    calls: Mutex<Vec<Call>>,
    pub connections: AtomicUsize,
    /// Connections whose other side is gone.
    pub closed: AtomicUsize,
    /// Bytes that could be written.
    pub written: AtomicUsize,
    unreachable: Mutex<Option<Unreachable>>,
}

impl Upstream {
    pub fn does(&self, scripts: impl IntoIterator<Item = Script>) {
        *self.unreachable.lock().unwrap() = None;
        *self.scripts.lock().unwrap() = scripts.into_iter().collect();
    }

    pub fn refuses(&self) {
        self.is(Unreachable::Refused);
    }

    pub fn is(&self, unreachable: Unreachable) {
        *self.unreachable.lock().unwrap() = Some(unreachable);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub fn called(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    fn script(&self) -> Script {
        let mut scripts = self.scripts.lock().unwrap();
        if scripts.len() > 1 {
            scripts.pop_front().unwrap()
        } else {
            scripts.front().cloned().unwrap_or_default()
        }
    }

    async fn serve(&self, mut io: DuplexStream) {
        let mut read = Vec::new();
        loop {
            let Some(call) = read_request(&mut io, &mut read).await else {
                self.closed.fetch_add(1, Ordering::AcqRel);
                return;
            };
            self.calls.lock().unwrap().push(call);
            for act in self.script() {
                let is_gone = match act {
                    Send(bytes) => {
                        let is_gone = io.write_all(&bytes).await.is_err();
                        self.written.fetch_add(bytes.len(), Ordering::AcqRel);
                        is_gone
                    }
                    Wait(time) => wait_or_gone(&mut io, sleep(time)).await,
                    Close => return,
                    Hang => wait_or_gone(&mut io, std::future::pending()).await,
                };
                if is_gone {
                    self.closed.fetch_add(1, Ordering::AcqRel);
                    return;
                }
            }
        }
    }
}

/// Waits, and tells when the other side closed meanwhile.
async fn wait_or_gone(io: &mut DuplexStream, wait: impl Future<Output = ()>) -> bool {
    let mut byte = [0];
    tokio::select! {
        () = wait => false,
        read = io.read(&mut byte) => read.is_err() || read.is_ok_and(|n| n == 0),
    }
}

async fn read_request(io: &mut DuplexStream, read: &mut Vec<u8>) -> Option<Call> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(read, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if read.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&read[end + 4..end + 4 + length]).into_owned();
                read.drain(..end + 4 + length);
                return Some(Call { head, body });
            }
        }
        match io.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => read.extend_from_slice(&buffer[..n]),
        }
    }
}

/// A node with a model `m` on the channels `a`, `b` and `c`, or as many as wanted.
pub struct Node {
    pub gateway: Arc<Gateway>,
    pub upstreams: BTreeMap<&'static str, Arc<Upstream>>,
    /// What the control plane says of ids.
    pub plane: Arc<Plane>,
    pub records: Recorded,
    tasks: TaskTracker,
    pub dir: tempfile::TempDir,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

pub fn snapshot(revision: u64, channels: usize) -> pb::Snapshot {
    snapshot_speaking("openai-chat", revision, channels)
}

pub fn snapshot_speaking(dialect: &str, revision: u64, channels: usize) -> pb::Snapshot {
    let channel = |name: &&str| pb::Channel {
        id: (*name).to_owned(),
        dialects: vec![dialect.into()],
        base_url: format!("http://{name}/v1"),
        breaker: Some(pb::Breaker { failures: 3, window_ms: 300_000, cooldown_ms: 60_000 }),
        ..Default::default()
    };
    let route = |name: &&str| pb::Route {
        channel: (*name).to_owned(),
        upstream_model: format!("m-at-{name}"),
        gate: Some(pb::Gate { timeout_ms: 30_000, until: pb::GateUntil::Content.into() }),
        timeouts: Some(pb::Timeouts { connect_ms: 10_000, headers_ms: 240_000, idle_ms: 300_000 }),
        context_window: 0,
    };
    pb::Snapshot {
        revision,
        channels: NAMES[..channels].iter().map(channel).collect(),
        models: vec![pb::Model {
            name: "m".into(),
            chains: vec![pb::Chain {
                dialect: dialect.into(),
                routes: NAMES[..channels].iter().map(route).collect(),
            }],
        }],
        ..Default::default()
    }
}

impl Node {
    pub fn new(channels: usize) -> Self {
        Node::speaking("openai-chat", channels)
    }

    /// The same for channels that speak another dialect.
    pub fn speaking(dialect: &str, channels: usize) -> Self {
        Node::bare().with(dialect, channels)
    }

    /// The same with a table and a key.
    pub fn with(self, dialect: &str, channels: usize) -> Self {
        self.install(&snapshot_speaking(dialect, 1, channels));
        let keys = vec![pb::ClientKey { id: "k".into(), sha256: sha2::Sha256::digest(KEY).to_vec() }];
        let keys = Keys::build(&pb::KeySet { version: 1, keys_exist: true, keys }).unwrap();
        self.gateway.keys.store(Arc::new(keys));
        self
    }

    /// A node that never had a config.
    pub fn bare() -> Self {
        let upstreams: BTreeMap<&str, Arc<Upstream>> = NAMES.map(|name| (name, Arc::default())).into();
        let tasks = TaskTracker::new();
        let (known, spawner) = (upstreams.clone(), tasks.clone());
        let dial: Dial = Arc::new(move |uri| {
            let (upstream, spawner) = (known[uri.host().unwrap()].clone(), spawner.clone());
            Box::pin(async move {
                let unreachable = *upstream.unreachable.lock().unwrap();
                if let Some(unreachable) = unreachable {
                    return Err(unreachable.error().await);
                }
                upstream.connections.fetch_add(1, Ordering::AcqRel);
                let (near, far) = tokio::io::duplex(64 * 1024);
                spawner.spawn(async move { upstream.serve(far).await });
                let io: Box<dyn Io> = Box::new(Pipe { io: near, is_http_2: false });
                Ok(io)
            })
        });
        Node { upstreams, tasks, ..Node::over(dial) }
    }

    /// A node whose upstreams are reached by `dial`; its own are none.
    pub fn over(dial: Dial) -> Self {
        let dir = folder();
        let observer = Observer::open(dir.path(), "boot".into(), Clock::system()).unwrap();
        let (records, written) = Records::open(dir.path()).unwrap();
        let bindings = Bindings::open(dir.path(), Clock::system()).unwrap();
        let plane = Arc::<Plane>::default();
        let asked = plane.clone();
        let lookup = Lookup::new(Arc::new(move |name| {
            let plane = asked.clone();
            Box::pin(async move { plane.tell(name).await })
        }));
        let gateway = Gateway::new(
            Settings::default(),
            (observer, records),
            (bindings, lookup),
            Metrics::new(),
            Connections::over(move |_| Ok(dial.clone())),
            Clock::system(),
        );
        let records = Recorded::of(written);
        Node { gateway, upstreams: BTreeMap::new(), plane, records, tasks: TaskTracker::new(), dir }
    }

    pub fn install(&self, snapshot: &pb::Snapshot) {
        let previous = self.gateway.tables.load();
        let Gateway { connections, sources, metrics, .. } = &*self.gateway;
        let table = build(snapshot, 1, previous.as_deref(), (connections, sources), metrics)
            .unwrap_or_else(|violations| panic!("{violations:?}"));
        self.gateway.tables.install(Arc::new(table));
    }

    pub fn up(&self, name: &str) -> &Upstream {
        &self.upstreams[name]
    }

    /// Calls of `a`, `b` and `c`.
    pub fn called(&self) -> [usize; 3] {
        NAMES.map(|name| self.up(name).called())
    }

    pub async fn call(&self, stream: bool) -> Answered {
        self.send(chat(stream)).await
    }

    /// Sends a request and waits for response headers.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answered {
        let began = Instant::now();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let gateway = self.gateway.clone();
        self.tasks.spawn(async move {
            let service = service_fn(move |request| {
                let gateway = gateway.clone();
                async move { Ok::<_, std::convert::Infallible>(serve(gateway, request).await) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            // A connection that is aborted is how a cut shows; there is nothing to say about it here.
            let _ended = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(far), service).await;
        });
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
        let driver = tokio::task::JoinSet::from_iter([async move {
            let _ended = connection.await;
        }]);
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Answered {
            status: parts.status,
            headers: parts.headers,
            after: began.elapsed(),
            began,
            body,
            _driver: driver,
            _sender: sender,
        }
    }

    /// What was counted, as `end` or `channel end`: attempts then requests.
    pub fn counted(&self) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
        self.gateway.observer.seal().unwrap();
        let (mut attempts, mut requests) = (BTreeMap::new(), BTreeMap::new());
        for boot in self.gateway.observer.boots() {
            while let Some(report) = self.gateway.observer.next(&boot).unwrap() {
                let window = report.window.unwrap();
                for a in window.attempts {
                    *attempts.entry(format!("{} {}", a.channel, a.class)).or_default() += a.count;
                }
                for r in window.requests {
                    *requests.entry(r.outcome).or_default() += r.count;
                }
                self.gateway.observer.claimed(&boot, window.last_seq).unwrap();
            }
        }
        (attempts, requests)
    }

    /// Waits until an upstream sees that the node hung up.
    pub async fn until_closed(&self, name: &str, within: Duration) {
        let deadline = Instant::now() + within;
        while self.up(name).closed.load(Ordering::Acquire) == 0 {
            assert!(Instant::now() < deadline, "the upstream request of {name} was not given up");
            sleep(ms(10)).await;
        }
    }
}

pub fn chat(stream: bool) -> Request<Full<Bytes>> {
    with_body(&format!(r#"{{"model":"m","stream":{stream},"messages":[{{"role":"user","content":"hi"}}]}}"#))
}

pub fn with_body(body: &str) -> Request<Full<Bytes>> {
    post_json("/v1/chat/completions", body)
}

pub fn post_json(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("host", "node")
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}

/// A form whose boundary is `B`.
pub fn post_form(path: &str, body: &str) -> Request<Full<Bytes>> {
    let mut request = post_json(path, body);
    let content_type = http::HeaderValue::from_static("multipart/form-data; boundary=\"B\"");
    request.headers_mut().insert("content-type", content_type);
    request
}

/// A field of such a form.
pub fn field(name: &str, value: &str) -> String {
    format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

/// A file of such a form.
pub fn file(name: &str, content: &str) -> String {
    format!(
        "--B\r\ncontent-type: application/octet-stream\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"a;name=\\\"model\\\"\"\r\n\r\n{content}\r\n"
    )
}

/// The end of such a form.
pub const CLOSED: &str = "--B--\r\n";

/// Waits until `seconds` after `t0`.
pub async fn until(t0: Instant, seconds: f64) {
    sleep_until(t0 + Duration::from_secs_f64(seconds)).await;
}
