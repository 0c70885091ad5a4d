//! Brings records of requests home, file by file, over the connection that is open. The control plane takes each once,
//! so that a file of which the answer was lost is sent again.

use std::sync::Arc;
use std::time::Duration;

use common::backoff::full_jitter;
use common::clock::Clock;
use common::limits::{RECONNECT_BASE, RECONNECT_MAX, RECORDS_IN_UPLOAD_MAX};
use common::pb::fleet as pb;
use pb::fleet_records_client::FleetRecordsClient;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::connect::{Link, describe};
use crate::api::Gateway;
use crate::records::{Records, Sealed};

/// An answer takes one transaction over there.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Records that come together go together.
const GATHER: Duration = Duration::from_secs(1);
/// An older control plane takes none; it is asked again this seldom.
const UNKNOWN_AGAIN: Duration = Duration::from_secs(60);

/// Uploads the records of a node.
#[derive(Clone)]
pub(crate) struct Uploader {
    node_id: String,
    gateway: Arc<Gateway>,
    link: watch::Receiver<Option<Link>>,
    clock: Clock,
}

/// Why records wait.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the records cannot be read or removed")]
    Files(#[from] std::io::Error),
    #[error("the upload failed")]
    Call(#[from] tonic::Status),
    #[error("the upload was not answered in time")]
    Unanswered,
    #[error("there is no connection")]
    Unlinked,
    #[error("the thread that reads records ended")]
    Ended,
}

impl Uploader {
    /// Uploads over whatever connection `link` holds.
    pub(crate) fn new(
        node_id: String,
        gateway: Arc<Gateway>,
        link: watch::Receiver<Option<Link>>,
        clock: Clock,
    ) -> Self {
        Uploader { node_id, gateway, link, clock }
    }

    /// Uploads until `stop`: when records were written, when a connection opens, and again after a failure, by jitter.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let step = async {
                if self.link.borrow_and_update().is_none() {
                    return self.link.changed().await.is_ok();
                }
                match self.upload_all().await {
                    Ok(()) => {
                        failures = 0;
                        self.wake().await
                    }
                    Err(fault) => {
                        tracing::info!("records wait on: {}", describe(&fault));
                        let wait = full_jitter(failures, RECONNECT_BASE, RECONNECT_MAX, fastrand::f64());
                        failures = failures.saturating_add(1);
                        let is_unknown =
                            matches!(&fault, Fault::Call(status) if status.code() == Code::Unimplemented);
                        sleep(if is_unknown { UNKNOWN_AGAIN } else { RECONNECT_BASE + wait }).await;
                        true
                    }
                }
            };
            if stop.run_until_cancelled(step).await != Some(true) {
                return;
            }
        }
    }

    /// Waits for something to upload or another connection; false when there will be none.
    async fn wake(&mut self) -> bool {
        tokio::select! {
            () = self.gateway.records.written() => {
                sleep(GATHER).await;
                true
            }
            changed = self.link.changed() => changed.is_ok(),
        }
    }

    /// Uploads everything that waits.
    async fn upload_all(&self) -> Result<(), Fault> {
        while let Some(sealed) = self.on_files(|records| records.next()).await? {
            self.upload(&sealed).await?;
            let seq = sealed.seq;
            self.on_files(move |records| records.done(seq)).await?;
        }
        let Gateway { records, metrics, .. } = &*self.gateway;
        metrics.records(records.waiting_bytes(), records.lost());
        metrics.beat("upload", self.clock.now_ms());
        Ok(())
    }

    /// The last try at shutdown.
    pub(crate) async fn upload_rest(&self) {
        if let Err(fault) = self.upload_all().await {
            tracing::info!("records wait on disk for the next start: {}", describe(&fault));
        }
    }

    async fn upload(&self, sealed: &Sealed) -> Result<(), Fault> {
        for records in sealed.records.chunks(RECORDS_IN_UPLOAD_MAX) {
            let link = self.link.borrow().clone().ok_or(Fault::Unlinked)?;
            let request =
                pb::UploadRecordsRequest { node_id: self.node_id.clone(), records: records.to_vec() };
            let mut client = FleetRecordsClient::new(link.channel.clone());
            let answer = timeout(ANSWER_WITHIN, client.upload_records(link.request(request))).await;
            match answer.map_err(|_| Fault::Unanswered)? {
                Ok(_) => {}
                // They will not get better: the rest must not wait for them.
                Err(status) if status.code() == Code::InvalidArgument => {
                    self.gateway.records.lose(records.len() as u64, status.message());
                }
                Err(status) => return Err(status.into()),
            }
        }
        Ok(())
    }

    async fn on_files<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Records) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let records = self.gateway.records.clone();
        let done = tokio::task::spawn_blocking(move || step(&records)).await;
        Ok(done.map_err(|_| Fault::Ended)??)
    }
}
