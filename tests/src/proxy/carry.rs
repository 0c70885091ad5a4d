//! Carries the bytes of one connection, both ways, as far as what is wrong with the proxy allows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Shared, Side, Way, Wrong};

/// Portions of what is throttled go out this often.
const THROTTLED_EVERY: Duration = Duration::from_millis(100);
const PORTION: usize = 16 * 1024;

/// One connection.
pub(super) struct Carrier<'a> {
    number: u64,
    shared: &'a Shared,
    wrong: watch::Receiver<Wrong>,
}

/// How a direction ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Closed,
    Reset,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(number: u64, shared: &'a Shared) -> Self {
        Carrier { number, shared, wrong: shared.wrong.subscribe() }
    }

    /// Waits until something may go through; false where the connection is reset before.
    pub(super) async fn may_begin(&self) -> bool {
        let mut wrong = self.wrong.clone();
        tokio::select! {
            () = self.is_reset() => false,
            () = self.passable(&mut wrong) => true,
        }
    }

    /// Carries until both sides have ended, or until the connection is to be reset: then returns true.
    pub(super) async fn carry(
        &self,
        client: &mut (impl AsyncRead + AsyncWrite + Unpin),
        target: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> bool {
        let (client_reads, client_writes) = split(client);
        let (target_reads, target_writes) = split(target);
        let both = async {
            tokio::try_join!(
                self.direction(Side::Client, client_reads, target_writes),
                self.direction(Side::Target, target_reads, client_writes),
            )
        };
        tokio::select! {
            () = self.is_reset() => true,
            ended = both => ended.is_err(),
        }
    }

    /// The error is a reset.
    async fn direction(
        &self,
        from: Side,
        reads: impl AsyncRead + Unpin,
        mut writes: impl AsyncWrite + Unpin,
    ) -> Result<(), Ended> {
        let ended = tokio::select! {
            ended = self.copy(from, reads, &mut writes) => ended,
            () = self.is_half_closed(from) => Ended::Closed,
        };
        if ended == Ended::Reset {
            return Err(ended);
        }
        // The other side may be gone already.
        let _ = writes.shutdown().await;
        Ok(())
    }

    async fn copy(
        &self,
        from: Side,
        mut reads: impl AsyncRead + Unpin,
        writes: &mut (impl AsyncWrite + Unpin),
    ) -> Ended {
        let mut wrong = self.wrong.clone();
        let mut buffer = vec![0; PORTION];
        loop {
            self.passable(&mut wrong).await;
            let room = match wrong.borrow().way {
                Way::Throttled(rate) => (rate / 10).clamp(1, PORTION),
                Way::Open | Way::Blackhole | Way::Delayed(_) => PORTION,
            };
            // What comes while nothing goes through any more stays on its way, as everything behind it.
            let read = reads.read(&mut buffer[..room]).await;
            self.passable(&mut wrong).await;
            let bytes = match read {
                Ok(0) => return Ended::Closed,
                Ok(bytes) => bytes,
                Err(_) => return Ended::Reset,
            };
            let way = wrong.borrow().way;
            match way {
                Way::Throttled(_) => sleep(THROTTLED_EVERY).await,
                Way::Delayed(time) => sleep(time).await,
                Way::Open | Way::Blackhole => {}
            }
            let (allowed, is_cut) = self.shared.allow(from, bytes);
            if writes.write_all(&buffer[..allowed]).await.is_err() {
                return Ended::Reset;
            }
            self.shared.carried[from as usize].fetch_add(allowed as u64, Ordering::SeqCst);
            if is_cut {
                self.shared.cuts.fetch_add(1, Ordering::SeqCst);
                return Ended::Reset;
            }
        }
    }

    /// Resolves when bytes of this connection may go through.
    async fn passable(&self, wrong: &mut watch::Receiver<Wrong>) {
        let is_passable =
            |wrong: &Wrong| wrong.way != Way::Blackhole && wrong.forgotten_through < self.number;
        if wrong.wait_for(is_passable).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn is_reset(&self) {
        let mut wrong = self.wrong.clone();
        if wrong.wait_for(|wrong| wrong.reset_through >= self.number).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn is_half_closed(&self, from: Side) {
        let mut wrong = self.wrong.clone();
        let is_so = |wrong: &Wrong| from == Side::Target && wrong.half_closed_through >= self.number;
        if wrong.wait_for(is_so).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
