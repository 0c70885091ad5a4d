//! Long streams and callers that read them slowly, both with small buffers in the system, so that what nobody has read
//! yet waits in a node or is not written at all. Bytes over bare sockets: nothing here is to be the bottleneck.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::tasks::Tasks;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::system::resident;

/// Buffers that the system lends to a socket at either end.
const SOCKET_BYTES: u32 = 16 * 1024;
/// Half seconds in which nobody reads.
const FILLING: usize = 20;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;
/// What a whole body ends with, behind the data of the chunk before.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// The data that a whole stream ends with.
const DONE: &[u8] = b"data: [DONE]\n\n";
/// As much of the end as shows [`DONE`] were each of its bytes in a chunk of its own.
const LAST_BYTES: usize = 256;

/// An upstream whose streams begin at once and go on when it is told so, as fast as they are taken.
pub struct Flood {
    /// Where it listens.
    pub address: SocketAddr,
    go: watch::Sender<bool>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    written: AtomicU64,
    open: AtomicUsize,
}

impl Flood {
    /// Starts it; each stream has `bytes` in events of `event` bytes.
    pub async fn start(tasks: &Tasks, bytes: usize, event: usize) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(SOCKET_BYTES)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let (go, went) = watch::channel(false);
        let seen = Arc::<Seen>::default();
        let (counted, connections) = (seen.clone(), tasks.clone());
        let piece: Arc<[u8]> = chunk(&delta(&"x".repeat(event))).into();
        tasks.spawn("flood", move |stop| async move {
            while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
                let (seen, went, piece) = (counted.clone(), went.clone(), piece.clone());
                connections.spawn("flood stream", move |stop| async move {
                    seen.open.fetch_add(1, Ordering::AcqRel);
                    // A node that goes away is no fault.
                    let _ = stop.run_until_cancelled(serve(stream, went, &piece, bytes, &seen)).await;
                    seen.open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        });
        Ok(Flood { address, go, seen })
    }

    /// Lets all streams go on, those that are open and those to come.
    pub fn go(&self) {
        self.go.send_replace(true);
    }

    /// Bytes of bodies that the system has taken.
    pub fn written(&self) -> u64 {
        self.seen.written.load(Ordering::Acquire)
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.seen.open.load(Ordering::Acquire)
    }
}

async fn serve(
    mut stream: TcpStream,
    mut went: watch::Receiver<bool>,
    piece: &[u8],
    bytes: usize,
    seen: &Seen,
) -> anyhow::Result<()> {
    let mut request = Vec::new();
    loop {
        read_request(&mut stream, &mut request).await?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(&[head.as_bytes(), &chunk(&delta("first"))].concat()).await?;
        went.wait_for(|goes| *goes).await?;
        for _ in 0..bytes.div_ceil(piece.len()) {
            stream.write_all(piece).await?;
            seen.written.fetch_add(piece.len() as u64, Ordering::AcqRel);
        }
        let finish =
            "data: {\"id\":\"f\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        stream.write_all(&[&chunk(finish), &chunk("data: [DONE]\n\n"), &b"0\r\n\r\n"[..]].concat()).await?;
    }
}

async fn read_request(stream: &mut TcpStream, request: &mut Vec<u8>) -> anyhow::Result<()> {
    loop {
        let text = String::from_utf8_lossy(request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                request.clear();
                return Ok(());
            }
        }
        ensure!(stream.read_buf(request).await? > 0, "closed");
    }
}

fn delta(text: &str) -> String {
    format!("data: {{\"id\":\"f\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A caller that reads a stream as it is told.
pub struct SlowCaller {
    stream: TcpStream,
    read: u64,
    last: Vec<u8>,
}

impl SlowCaller {
    /// Asks a node for a stream and waits for its first event.
    pub async fn ask(node: SocketAddr, key: &str, model: &str) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(SOCKET_BYTES)?;
        let mut stream = socket.connect(node).await?;
        stream.set_nodelay(true)?;
        let body = format!("{{\"model\":\"{model}\",\"stream\":true,\"messages\":[]}}");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {node}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        let mut last = Vec::new();
        while !last.ends_with(b"\n\n\r\n") {
            ensure!(stream.read_buf(&mut last).await? > 0, "closed: {}", String::from_utf8_lossy(&last));
        }
        ensure!(last.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&last));
        Ok(SlowCaller { stream, read: 0, last })
    }

    /// Reads at most `bytes` at a time with `pause` between, to the end; returns how many there were.
    pub async fn read(mut self, bytes: usize, pause: Duration) -> anyhow::Result<u64> {
        let mut buffer = vec![0; bytes];
        while !self.last.ends_with(LAST_CHUNK) {
            let read = self.stream.read(&mut buffer).await?;
            let new = buffer.get(..read).filter(|new| !new.is_empty()).context("cut")?;
            self.read += read as u64;
            self.last.extend_from_slice(new);
            let spare = self.last.len().saturating_sub(LAST_BYTES);
            self.last.drain(..spare);
            sleep(pause).await;
        }
        let data = without_framing(&self.last);
        ensure!(data.ends_with(DONE), "another end: {}", String::from_utf8_lossy(&data));
        Ok(self.read)
    }
}

/// The data in the last chunks of a body. A border between chunks may lie anywhere in it, so that its end is sought
/// only here. Of a chunk whose beginning is not there it may take the size for data.
fn without_framing(last: &[u8]) -> Vec<u8> {
    let chunks = last.strip_suffix(LAST_CHUNK).unwrap_or(last);
    // No data of a stream has a CR in it: every line before the last one is a size or a whole chunk, in turn.
    let lines = String::from_utf8_lossy(chunks);
    let mut pieces: Vec<&str> = lines.rsplit("\r\n").step_by(2).collect();
    pieces.reverse();
    pieces.concat().into()
}

/// Resident memory of a node, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Before the streams.
    pub idle: u64,
    /// All of them are open, and nothing comes.
    pub open: u64,
    /// The most while they flow, all at once.
    pub peak: u64,
    /// What was written upstream when nobody had read yet, a stream.
    pub ahead: u64,
}

impl Memory {
    /// What a stream takes above an idle node.
    pub fn per_stream(&self, resident: u64, streams: usize) -> u64 {
        resident.saturating_sub(self.idle) / streams.max(1) as u64
    }
}

/// How callers read.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// At most so many bytes at a time.
    pub bytes: usize,
    /// With this between.
    pub pause: Duration,
}

/// Opens `streams` of `model` through a node, lets them flow all at once to callers that read at `pace`, each to its
/// end, and watches the memory of the node's process.
pub async fn measure(
    flood: &Flood,
    node: (u32, SocketAddr),
    key: &str,
    model: &str,
    streams: usize,
    pace: Pace,
) -> anyhow::Result<Memory> {
    let (pid, address) = node;
    flood.go.send_replace(false);
    let (idle, written) = (resident(pid)?, flood.written());
    let mut callers = Vec::with_capacity(streams);
    for _ in 0..streams {
        callers.push(SlowCaller::ask(address, key, model).await?);
    }
    let open = resident(pid)?;
    flood.go();
    let mut peak = open;
    // Time for every buffer on the way to fill, since nobody reads.
    for _ in 0..FILLING {
        sleep(Duration::from_millis(500)).await;
        peak = peak.max(resident(pid)?);
    }
    let ahead = (flood.written() - written) / streams.max(1) as u64;
    let mut reading = JoinSet::new();
    for caller in callers {
        reading.spawn(caller.read(pace.bytes, pace.pause));
    }
    while !reading.is_empty() {
        peak = peak.max(resident(pid)?);
        let look = sleep(Duration::from_millis(100));
        tokio::pin!(look);
        loop {
            tokio::select! {
                () = &mut look => break,
                read = reading.join_next() => match read {
                    Some(read) => drop(read??),
                    None => break,
                },
            }
        }
    }
    Ok(Memory { idle, open, peak, ahead })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_known_wherever_the_borders_of_its_chunks_lie() {
        for step in 1..=DONE.len() {
            let mut last = b"3e8\r\nxx\n\n".to_vec();
            for piece in DONE.chunks(step) {
                last.extend(format!("\r\n{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()));
            }
            last.extend(LAST_CHUNK);
            let seen = last.get(last.len().saturating_sub(LAST_BYTES)..).unwrap_or_default();
            assert!(
                seen.ends_with(LAST_CHUNK) && without_framing(seen).ends_with(DONE),
                "in pieces of {step}"
            );
        }
        let cut = b"xx\n\n\r\nd\r\ndata: [DONE]\n\r\n0\r\n\r\n";
        assert_eq!(without_framing(cut), b"xx\n\ndata: [DONE]\n");
        assert!(!without_framing(cut).ends_with(DONE));
    }
}
