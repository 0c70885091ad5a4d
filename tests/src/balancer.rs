//! A load balancer as small as one can be: connections go round the nodes that say that they are ready. It asks
//! `/readyz` of each every [`ASK_EVERY`], and knows nothing else of them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::process::get;

/// How often each node is asked.
pub const ASK_EVERY: Duration = Duration::from_millis(50);

/// A running balancer. Dropping it ends it, and every connection through it.
pub struct Balancer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    /// Where nodes that are ready take callers, by their folder.
    ready: Mutex<BTreeMap<PathBuf, SocketAddr>>,
    next: AtomicUsize,
    /// Connections that no node took.
    refused: AtomicUsize,
    taken: Mutex<BTreeMap<SocketAddr, usize>>,
}

impl Balancer {
    /// Balances over the nodes with these data folders, wherever they listen at the time.
    pub async fn start(nodes: impl IntoIterator<Item = PathBuf>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, state) = (listener.local_addr()?, Arc::new(State::default()));
        let mut tasks = JoinSet::new();
        for folder in nodes {
            tasks.spawn(watch(folder, state.clone()));
        }
        tasks.spawn(accept(listener, state.clone()));
        Ok(Balancer { address, state, _tasks: tasks })
    }

    /// Where callers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many nodes are ready now.
    pub fn ready_count(&self) -> usize {
        lock(&self.state.ready).len()
    }

    /// Connections that found no node.
    pub fn refused_count(&self) -> usize {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// How many connections each address took.
    pub fn taken(&self) -> BTreeMap<SocketAddr, usize> {
        lock(&self.state.taken).clone()
    }
}

async fn watch(folder: PathBuf, state: Arc<State>) {
    loop {
        match ready_at(&folder).await {
            Ok(address) => drop(lock(&state.ready).insert(folder.clone(), address)),
            Err(_) => drop(lock(&state.ready).remove(&folder)),
        }
        sleep(ASK_EVERY).await;
    }
}

/// Where a node takes callers; an error while it is not ready.
async fn ready_at(folder: &Path) -> anyhow::Result<SocketAddr> {
    let listen = std::fs::read_to_string(folder.join("listen.json"))?;
    let listen: BTreeMap<String, SocketAddr> = serde_json::from_str(&listen)?;
    let address = |name: &str| listen.get(name).copied().with_context(|| format!("no listener {name}"));
    let (status, text) = get(address("ops")?, "/readyz").await?;
    anyhow::ensure!(status == 200, "{status} {text}");
    address("data")
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((caller, _)) = listener.accept() => drop(connections.spawn(carry(caller, state.clone()))),
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A node that is ready and does not take the connection is passed over, as balancers do.
async fn carry(mut caller: TcpStream, state: Arc<State>) {
    let ready: Vec<SocketAddr> = lock(&state.ready).values().copied().collect();
    let first = state.next.fetch_add(1, Ordering::Relaxed);
    for turn in 0..ready.len() {
        let Some(address) = ready.get((first + turn) % ready.len()).copied() else { break };
        if let Ok(mut node) = TcpStream::connect(address).await {
            *lock(&state.taken).entry(address).or_default() += 1;
            // Either side may break off; the caller tells what it saw.
            let _ = copy_bidirectional(&mut caller, &mut node).await;
            return;
        }
    }
    state.refused.fetch_add(1, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
