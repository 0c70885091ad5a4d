//! A node in this process, or as a process of its own that can be killed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clap::Parser as _;
use common::tasks::Tasks;
use gateway_node::{Addresses, Config, Settings, serve_with};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::plane::TOKEN;

const PATIENCE: Duration = Duration::from_secs(20);

/// Asks until it holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "{what} does not come true");
        sleep(Duration::from_millis(10)).await;
    }
}

pub fn args(dir: &Path, planes: &str) -> Vec<String> {
    let token = dir.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let pairs = [
        ("--data-dir", dir.join("node").to_str().unwrap().to_owned()),
        ("--node-token-file", token.to_str().unwrap().to_owned()),
        ("--control-plane", planes.to_owned()),
        ("--listen", "127.0.0.1:0".to_owned()),
        ("--ops-listen", "127.0.0.1:0".to_owned()),
        ("--window", "100ms".to_owned()),
        ("--shutdown-grace", "1s".to_owned()),
    ];
    let args = pairs.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    args.chain(["--allow-anonymous".to_owned()]).collect()
}

/// A node in this process.
pub struct Node {
    pub addresses: Addresses,
    shutdown: CancellationToken,
    ended: watch::Receiver<Option<Result<(), String>>>,
    _tasks: Tasks,
}

impl Node {
    /// Starts on the data folder of `dir`.
    pub async fn start(dir: &Path, planes: &str) -> Node {
        Node::start_with(dir, planes, vec![]).await
    }

    /// With more flags.
    pub async fn start_with(dir: &Path, planes: &str, more: Vec<String>) -> Node {
        let settings = Settings::parse_from([vec!["node".to_owned()], args(dir, planes), more].concat());
        let config = Config::check(settings).unwrap();
        let (ready, addresses) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        let (shutdown, tasks) = (CancellationToken::new(), Tasks::new());
        let until = shutdown.clone().cancelled_owned();
        tasks.spawn("node", |_| async move {
            let served = serve_with(config, until, |at| ready.send(at).unwrap()).await;
            end.send_replace(Some(served.map_err(|error| format!("{error:#}"))));
        });
        let addresses = timeout(PATIENCE, addresses).await.expect("the node is ready").unwrap();
        Node { addresses, shutdown, ended, _tasks: tasks }
    }

    pub fn begin_shutdown(&self) {
        self.shutdown.cancel();
    }

    pub async fn ended(&mut self) {
        let ended = timeout(PATIENCE, self.ended.wait_for(Option::is_some)).await.expect("the node ends");
        assert_eq!(*ended.unwrap(), Some(Ok(())));
    }

    pub async fn stop(mut self) {
        self.begin_shutdown();
        self.ended().await;
    }

    pub async fn ops(&self, path: &str) -> (u16, String) {
        get(&format!("http://{}{path}", self.addresses.ops)).await.unwrap()
    }

    pub async fn call(&self, model: &str) -> u16 {
        call(&self.addresses.data.to_string(), model).await.unwrap()
    }

    pub async fn revision(&self) -> Option<u64> {
        let chains: serde_json::Value = serde_json::from_str(&self.ops("/debug/chains").await.1).unwrap();
        chains["revision"].as_u64()
    }
}

/// A node as a process; killed when dropped.
pub struct Process {
    pub data: String,
    child: Child,
}

impl Process {
    pub async fn start(dir: &Path, planes: &str) -> Process {
        let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
        let listen = dir.join("node/listen.json");
        drop(std::fs::remove_file(&listen));
        let child = Command::new(env!("CARGO_BIN_EXE_gateway-node"))
            .args(args(dir, planes))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually("listen.json", || async { listen.exists() }).await;
        let text = std::fs::read_to_string(&listen).unwrap();
        let listen: serde_json::Value = serde_json::from_str(&text).unwrap();
        Process { data: listen["data"].as_str().unwrap().to_owned(), child }
    }

    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

fn client() -> Client<HttpConnector, Full<bytes::Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

async fn get(url: &str) -> Result<(u16, String), String> {
    let answer = client().get(url.parse().unwrap()).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}

/// One request for a model; the status when the whole answer came.
pub async fn call(address: &str, model: &str) -> Result<u16, String> {
    let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
    let request = http::Request::post(format!("http://{address}/v1/chat/completions"));
    let request = request.body(Full::from(body)).unwrap();
    let answer = client().request(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    answer.into_body().collect().await.map_err(|error| error.to_string())?;
    Ok(status)
}
