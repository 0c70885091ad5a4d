//! The load generator: connections that each send one request after the other, as fast as answers
//! come or at a pace, and note when the first and the last bytes of each answer came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use common::tasks::Tasks;
use harness::meter::percentile;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Where requests go and what they ask for.
#[derive(Clone)]
pub struct Target {
    /// A node, or the upstream itself.
    pub address: SocketAddr,
    /// Shown as `Authorization`.
    pub key: String,
}

/// How requests are sent.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// Requests a second over all connections; none: as fast as answers come.
    pub rate: Option<f64>,
    /// Ask for a stream.
    pub stream: bool,
    /// For how long.
    pub time: Duration,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// From sending to the first byte of the body, sorted.
    pub first: Vec<Duration>,
    /// From sending to the end of the body, sorted.
    pub whole: Vec<Duration>,
    /// From the first request to the last answer.
    pub time: Duration,
}

impl Measured {
    /// Answers a second.
    pub fn rate(&self) -> f64 {
        self.whole.len() as f64 / self.time.as_secs_f64()
    }

    /// p50 and p99 of the first bytes.
    pub fn first(&self) -> (Duration, Duration) {
        (percentile(&self.first, 0.5), percentile(&self.first, 0.99))
    }

    /// p50 and p99 of the ends.
    pub fn whole(&self) -> (Duration, Duration) {
        (percentile(&self.whole, 0.5), percentile(&self.whole, 0.99))
    }
}

/// One connection.
pub struct Caller {
    target: Target,
    send: SendRequest<Full<Bytes>>,
}

/// A chat request of about two kilobytes.
pub fn body(model: &str, stream: bool) -> Bytes {
    let text = "the quick brown fox jumps over the lazy dog ".repeat(42);
    let messages = serde_json::json!([
        {"role": "system", "content": "You are a benchmark."},
        {"role": "user", "content": text},
    ]);
    let body =
        serde_json::json!({"model": model, "messages": messages, "temperature": 0.5, "stream": stream});
    Bytes::from(body.to_string())
}

impl Caller {
    /// Connects.
    pub async fn connect(target: &Target, tasks: &Tasks) -> anyhow::Result<Caller> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tasks.spawn("caller", |stop| async move {
            // Its end shows at the request that it breaks.
            let _ = stop.run_until_cancelled(connection).await;
        });
        Ok(Caller { target: target.clone(), send })
    }

    /// Sends a request and returns the body of its answer.
    pub async fn ask(&mut self, body: Bytes) -> anyhow::Result<Incoming> {
        let Target { address, key } = &self.target;
        let request = Request::post("/v1/chat/completions")
            .header("host", address.to_string())
            .header("authorization", key)
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        self.send.ready().await?;
        let response = self.send.send_request(request).await?;
        ensure!(response.status() == 200, "{address} answers {}", response.status());
        Ok(response.into_body())
    }

    async fn time(&mut self, body: Bytes) -> anyhow::Result<(Duration, Duration)> {
        let since = Instant::now();
        let mut answer = self.ask(body).await?;
        let mut first = None;
        while let Some(frame) = answer.frame().await {
            frame?;
            first.get_or_insert_with(|| since.elapsed());
        }
        let whole = since.elapsed();
        Ok((first.context("an empty answer")?, whole))
    }
}

/// Sends requests in this pattern, and measures. Any answer but a 200 ends it with an error.
pub async fn run(target: &Target, pattern: Pattern, tasks: &Tasks) -> anyhow::Result<Measured> {
    let measured = Arc::new(Mutex::new(Ok(Measured::default())));
    let body = body("bench", pattern.stream);
    let mut callers = Vec::with_capacity(pattern.connections);
    for _ in 0..pattern.connections {
        callers.push(Caller::connect(target, tasks).await?);
    }
    let since = Instant::now();
    let deadline = since + pattern.time;
    let every = pattern.rate.map(|rate| Duration::from_secs_f64(pattern.connections as f64 / rate));
    let mut running = Vec::with_capacity(pattern.connections);
    for (at, mut caller) in (0_u32..).zip(callers) {
        let (body, measured) = (body.clone(), measured.clone());
        running.push(tasks.spawn("load", |stop| async move {
            // Spread over the interval, or all would send at once.
            let first = every.map(|every| since + every * at / pattern.connections as u32);
            let mut pace = every.map(|every| interval_at(first.unwrap_or(since), every));
            if let Some(pace) = &mut pace {
                pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            }
            let mut times = Vec::with_capacity(4096);
            let result = loop {
                if let Some(pace) = &mut pace {
                    pace.tick().await;
                }
                if Instant::now() >= deadline || stop.is_cancelled() {
                    break Ok(());
                }
                match caller.time(body.clone()).await {
                    Ok(time) => times.push(time),
                    Err(error) => break Err(error),
                }
            };
            let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
            match (result, &mut *measured) {
                (Err(error), _) => *measured = Err(error),
                (Ok(()), Ok(measured)) => {
                    measured.first.extend(times.iter().map(|(first, _)| *first));
                    measured.whole.extend(times.iter().map(|(_, whole)| *whole));
                }
                (Ok(()), Err(_)) => {}
            }
        }));
    }
    for one in running {
        one.await?;
    }
    let time = since.elapsed();
    let taken = std::mem::replace(
        &mut *measured.lock().unwrap_or_else(PoisonError::into_inner),
        Ok(Measured::default()),
    );
    let mut measured = taken?;
    measured.first.sort_unstable();
    measured.whole.sort_unstable();
    measured.time = time;
    Ok(measured)
}
