//! Brings windows home, in order and one at a time, while the control plane can be reached. Each is
//! counted there exactly once, so that whatever is cut may be sent again.

use std::sync::Arc;
use std::time::Duration;

use common::backoff::full_jitter;
use common::clock::Clock;
use common::id::BootId;
use common::limits::{RECONNECT_BASE, RECONNECT_MAX};
use common::pb::fleet as pb;
use pb::fleet_report_client::FleetReportClient;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connect::{Link, describe};
use crate::api::Gateway;

/// An answer takes one transaction over there.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Reports the windows of a node's spool.
#[derive(Clone)]
pub(crate) struct Reporter {
    node_id: String,
    gateway: Arc<Gateway>,
    link: watch::Receiver<Option<Link>>,
    clock: Clock,
}

/// Why a report was not counted.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the spool cannot be read or written")]
    Spool(#[from] std::io::Error),
    #[error("the report failed")]
    Call(#[from] tonic::Status),
    #[error("the report was not answered in time")]
    Unanswered,
    #[error("window {window} of boot {boot} was not counted; the control plane is at {through}")]
    NotCounted { boot: BootId, window: u64, through: u64 },
    #[error("the spool's thread ended")]
    Ended,
}

impl Reporter {
    /// Reports over whatever connection `link` holds.
    pub(crate) fn new(
        node_id: String,
        gateway: Arc<Gateway>,
        link: watch::Receiver<Option<Link>>,
        clock: Clock,
    ) -> Self {
        Reporter { node_id, gateway, link, clock }
    }

    /// Reports until `stop`: when a window was sealed, when a connection opens, and again after a
    /// failure, by jitter.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let step = async {
                let is_linked = self.link.borrow_and_update().is_some();
                if is_linked && self.report_all().await {
                    failures = 0;
                    self.wake().await
                } else if is_linked {
                    let wait = full_jitter(failures, RECONNECT_BASE, RECONNECT_MAX, fastrand::f64());
                    failures = failures.saturating_add(1);
                    // At least the base: each try writes to the other side's database.
                    sleep(RECONNECT_BASE + wait).await;
                    true
                } else {
                    self.gateway.observer.set_away(true);
                    self.link.changed().await.is_ok()
                }
            };
            if stop.run_until_cancelled(step).await != Some(true) {
                return;
            }
        }
    }

    /// Waits for something to report or another connection; false when there will be none.
    async fn wake(&mut self) -> bool {
        tokio::select! {
            () = self.gateway.observer.sealed() => true,
            changed = self.link.changed() => changed.is_ok(),
        }
    }

    /// Reports everything that waits; returns whether all of it was counted.
    pub(crate) async fn report_all(&self) -> bool {
        let mut is_complete = true;
        for boot in self.gateway.observer.boots() {
            // A boot that the control plane is at odds with does not hold up the others.
            if let Err(fault) = self.report_boot(&boot).await {
                is_complete = false;
                let causes = describe(&fault);
                tracing::info!(boot.id = %boot, "windows wait on: {causes}");
            }
        }
        self.gateway.observer.set_away(!is_complete);
        if is_complete {
            self.gateway.metrics.beat("report", self.clock.now_ms());
        }
        is_complete
    }

    async fn report_boot(&self, boot: &BootId) -> Result<(), Fault> {
        while let Some(report) = self.on_spool(boot, |observer, boot| observer.next(boot)).await? {
            let last_seq = report.window.as_ref().map_or(0, |window| window.last_seq);
            let through = self.report(report).await?;
            self.on_spool(boot, move |observer, boot| observer.claimed(boot, through)).await?;
            if through < last_seq {
                return Err(Fault::NotCounted { boot: boot.clone(), window: last_seq, through });
            }
        }
        Ok(())
    }

    async fn report(&self, mut report: pb::ReportRequest) -> Result<u64, Fault> {
        report.node_id = self.node_id.clone();
        let link = self.link.borrow().clone();
        let Some(link) = link else { return Err(Fault::Unanswered) };
        let mut client = FleetReportClient::new(link.channel.clone());
        let answer = timeout(ANSWER_WITHIN, client.report(link.request(report))).await;
        Ok(answer.map_err(|_| Fault::Unanswered)??.into_inner().claimed_through)
    }

    async fn on_spool<T: Send + 'static>(
        &self,
        boot: &BootId,
        step: impl FnOnce(&crate::observe::Observer, &BootId) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let (observer, boot) = (self.gateway.observer.clone(), boot.clone());
        let done = tokio::task::spawn_blocking(move || step(&observer, &boot)).await;
        Ok(done.map_err(|_| Fault::Ended)??)
    }
}
