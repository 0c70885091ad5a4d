//! `BackupService`.

use std::time::Duration;

use common::pb::admin as pb;
use pb::backup_service_server::BackupService;
use pb::create_backup_response::Part as Sent;
use pb::restore_backup_request::Part as Received;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Admin;
use crate::access::Caller;
use crate::backup::{self, BackupFault, Copy};
use crate::error::Error;
use crate::grpc::status;

/// One message; gRPC takes four megabytes.
const PIECE_BYTES: usize = 256 * 1024;
/// A sender that says nothing for this long has gone away.
const PIECE_WITHIN: Duration = Duration::from_secs(60);

#[tonic::async_trait]
impl BackupService for Admin {
    type CreateBackupStream = ReceiverStream<Result<pb::CreateBackupResponse, Status>>;

    async fn create_backup(
        &self,
        request: Request<pb::CreateBackupRequest>,
    ) -> Result<Response<Self::CreateBackupStream>, Status> {
        let copy = backup::create(&self.plane, &Caller::of(&request)?).await.map_err(status::of)?;
        let (tx, rx) = mpsc::channel(1);
        self.plane.streams.spawn("send backup", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => drop(tx.try_send(Err(Status::unavailable("the control plane ends")))),
                sent = send(&copy, &tx) => {
                    if let Err(fault) = sent {
                        drop(tx.send(Err(status::of(fault.into()))).await);
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(rx)))
    }

    async fn restore_backup(
        &self,
        request: Request<Streaming<pb::RestoreBackupRequest>>,
    ) -> Result<Response<pb::RestoreBackupResponse>, Status> {
        let caller = Caller::of(&request)?;
        let copy = backup::receive(&self.plane).map_err(status::of)?;
        receive(request.into_inner(), &copy).await?;
        let restored = backup::restore(&self.plane, &copy, &caller).await.map_err(status::of)?;
        let backup::Restored { epoch, revision, .. } = restored;
        Ok(Response::new(pb::RestoreBackupResponse { epoch, revision }))
    }
}

/// Sends a copy in pieces. Ends early when nobody listens.
async fn send(
    copy: &Copy,
    tx: &mpsc::Sender<Result<pb::CreateBackupResponse, Status>>,
) -> Result<(), BackupFault> {
    let mut file = tokio::fs::File::open(copy.path()).await?;
    let (mut bytes, mut sha256) = (0, Sha256::new());
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let length = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).await?;
        bytes += length as u64;
        sha256.update(&piece);
        let is_end = length == 0;
        let part = if is_end {
            Sent::End(pb::BackupEnd { bytes, sha256: sha256.clone().finalize().to_vec() })
        } else {
            Sent::Piece(piece)
        };
        if tx.send(Ok(pb::CreateBackupResponse { part: Some(part) })).await.is_err() || is_end {
            return Ok(());
        }
    }
}

/// Writes what comes into a file, to its end.
async fn receive(mut stream: Streaming<pb::RestoreBackupRequest>, copy: &Copy) -> Result<(), Status> {
    let fault = |fault: BackupFault| status::of(Error::Backup(fault));
    let mut file = tokio::fs::File::create(copy.path()).await.map_err(|error| fault(error.into()))?;
    let (mut bytes, mut sha256) = (0, Sha256::new());
    loop {
        let message = timeout(PIECE_WITHIN, stream.message())
            .await
            .map_err(|_elapsed| fault(BackupFault::NotWhole("nothing more came")))??;
        match message.and_then(|message| message.part) {
            Some(Received::Piece(piece)) => {
                bytes += piece.len() as u64;
                sha256.update(&piece);
                file.write_all(&piece).await.map_err(|error| fault(error.into()))?;
            }
            Some(Received::End(end)) => {
                if (end.bytes, end.sha256.as_slice()) != (bytes, sha256.finalize().as_slice()) {
                    return Err(fault(BackupFault::NotWhole("its digest is another one")));
                }
                return file.sync_all().await.map_err(|error| fault(error.into()));
            }
            None => return Err(fault(BackupFault::NotWhole("its end is missing"))),
        }
    }
}
