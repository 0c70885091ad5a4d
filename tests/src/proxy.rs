//! A TCP proxy that fails the way networks do: it stands between a node and its control plane, or between that and its
//! database, and swallows, resets, half-closes, delays, cuts and throttles what goes through. One file says how a
//! connection is carried (`carry`), this one what is wrong with it and when.

mod carry;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Where a proxy leads.
#[derive(Debug, Clone)]
pub enum Target {
    /// A listener on loopback.
    Tcp(SocketAddr),
    /// A socket in the file system, such as that of PostgreSQL.
    Unix(PathBuf),
}

/// How bytes go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As they come.
    Open,
    /// Not at all, and nobody is told: connections stand, no byte, no end and no reset comes through.
    Blackhole,
    /// Each portion so much later.
    Delayed(Duration),
    /// So many in a second, in each direction of each connection.
    Throttled(usize),
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who connects to the proxy.
    Client,
    /// Where it leads.
    Target,
}

/// What is wrong now. Connections are numbered from 1.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    way: Way,
    /// Connections up to this number are reset.
    reset_through: u64,
    /// They carry nothing any more, whatever the way is.
    forgotten_through: u64,
    /// The target says nothing more to their clients.
    half_closed_through: u64,
}

#[derive(Debug)]
struct Cut {
    from: Side,
    left: usize,
}

#[derive(Debug)]
struct Shared {
    target: Target,
    wrong: watch::Sender<Wrong>,
    /// The next connection that says so much is reset in the middle of it.
    cut: Mutex<Option<Cut>>,
    cuts: AtomicU64,
    accepted: AtomicU64,
    open: AtomicUsize,
    carried: [AtomicU64; 2],
}

impl Shared {
    fn cut(&self) -> MutexGuard<'_, Option<Cut>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of these bytes still go through, and whether the reset comes behind them.
    fn allow(&self, from: Side, bytes: usize) -> (usize, bool) {
        let mut cut = self.cut();
        match cut.as_mut().filter(|cut| cut.from == from) {
            None => (bytes, false),
            Some(wanted) if wanted.left > bytes => {
                wanted.left -= bytes;
                (bytes, false)
            }
            Some(wanted) => {
                let left = wanted.left;
                *cut = None;
                (left, true)
            }
        }
    }
}

/// A proxy that runs; it ends, and its connections with it, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Tasks,
}

impl Proxy {
    /// Starts a proxy on a free port of loopback that lets everything through.
    pub async fn start(target: Target) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let nothing =
            Wrong { way: Way::Open, reset_through: 0, forgotten_through: 0, half_closed_through: 0 };
        let shared = Arc::new(Shared {
            target,
            wrong: watch::Sender::new(nothing),
            cut: Mutex::default(),
            cuts: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            carried: Default::default(),
        });
        let tasks = Tasks::new();
        let (accepting, connections) = (shared.clone(), tasks.clone());
        tasks.spawn("proxy", |stop| async move {
            while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
                let Ok((client, _)) = accepted else {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let number = accepting.accepted.fetch_add(1, Ordering::SeqCst) + 1;
                let shared = accepting.clone();
                connections.spawn("proxy connection", |stop| async move {
                    shared.open.fetch_add(1, Ordering::SeqCst);
                    stop.run_until_cancelled(connection(number, client, &shared)).await;
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(Proxy { address, shared, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets bytes go through like this from now on.
    pub fn set(&self, way: Way) {
        self.shared.wrong.send_modify(|wrong| wrong.way = way);
    }

    /// Resets every open connection.
    pub fn reset(&self) {
        let through = self.accepted();
        self.shared.wrong.send_modify(|wrong| wrong.reset_through = through);
    }

    /// Every open connection carries nothing any more, for ever, as if a firewall had forgotten it.
    pub fn forget(&self) {
        let through = self.accepted();
        self.shared.wrong.send_modify(|wrong| wrong.forgotten_through = through);
    }

    /// The client of every open connection is told that the target says nothing more; what it says itself still arrives.
    pub fn half_close(&self) {
        let through = self.accepted();
        self.shared.wrong.send_modify(|wrong| wrong.half_closed_through = through);
    }

    /// After so many bytes of this side, the connection that carries the last of them is reset. Once.
    pub fn cut_after(&self, from: Side, bytes: usize) {
        *self.shared.cut() = Some(Cut { from, left: bytes });
    }

    /// How many connections were cut so.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections were ever opened.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// How many bytes of this side went through.
    pub fn carried(&self, from: Side) -> u64 {
        self.shared.carried[from as usize].load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

/// Carries one connection to its end.
async fn connection(number: u64, mut client: TcpStream, shared: &Shared) {
    let _ = client.set_nodelay(true);
    let carrier = carry::Carrier::new(number, shared);
    if !carrier.may_begin().await {
        let _ = client.set_zero_linger();
        return;
    }
    let is_reset = match &shared.target {
        Target::Tcp(address) => {
            let Ok(mut target) = TcpStream::connect(address).await else { return };
            let _ = target.set_nodelay(true);
            let is_reset = carrier.carry(&mut client, &mut target).await;
            if is_reset {
                let _ = target.set_zero_linger();
            }
            is_reset
        }
        Target::Unix(path) => {
            let Ok(mut target) = UnixStream::connect(path).await else { return };
            carrier.carry(&mut client, &mut target).await
        }
    };
    if is_reset {
        let _ = client.set_zero_linger();
    }
}
