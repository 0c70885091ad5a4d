//! `AuditService`.

use common::pb::admin as pb;
use common::snapshot::{Sha, hex};
use pb::audit_service_server::AuditService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::audit;
use crate::error::Error;
use crate::grpc::status;
use crate::store::entry::{Ask, Kept, LogHead};

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1000;

#[tonic::async_trait]
impl AuditService for Admin {
    async fn list_entries(
        &self,
        request: Request<pb::ListEntriesRequest>,
    ) -> Result<Response<pb::ListEntriesResponse>, Status> {
        let pb::ListEntriesRequest { limit, before, since_ms, actor, action } = request.into_inner();
        for (field, text) in [("actor", &actor), ("action", &action)] {
            if text.contains('\0') {
                let message = "a zero is in it".to_owned();
                return Err(status::of(Error::Argument { field, message }));
            }
        }
        let ask = Ask {
            before: if before == 0 { u64::MAX } else { before },
            since_ms: u64::try_from(since_ms).unwrap_or(0),
            actor,
            action,
            limit: if limit == 0 { LIMIT_DEFAULT } else { limit.min(LIMIT_MAX) },
        };
        let listed = self.plane.store.log(&ask).await.map_err(|error| status::of(error.into()))?;
        Ok(Response::new(pb::ListEntriesResponse { entries: listed.into_iter().map(convert).collect() }))
    }

    async fn verify_log(
        &self,
        request: Request<pb::VerifyLogRequest>,
    ) -> Result<Response<pb::VerifyLogResponse>, Status> {
        let from = request.into_inner().from.map(place).transpose().map_err(status::of)?;
        let walked = audit::walk(&self.plane, from).await.map_err(status::of)?;
        let broken = walked.broken.map(|broken| {
            let (seq, reason) = broken.said();
            pb::BrokenEntry { seq, reason: reason.to_owned() }
        });
        let (through, head) = (Some(told(walked.through)), Some(told(walked.head)));
        Ok(Response::new(pb::VerifyLogResponse { through, head, broken }))
    }
}

fn place(place: pb::LogPlace) -> Result<LogHead, Error> {
    let sha256 = Sha::try_from(place.sha256.as_slice());
    let sha256 =
        sha256.map_err(|_| Error::Argument { field: "from", message: "a digest has 32 bytes".into() })?;
    Ok(LogHead { seq: place.seq, sha256 })
}

fn told(place: LogHead) -> pb::LogPlace {
    pb::LogPlace { seq: place.seq, sha256: place.sha256.to_vec() }
}

fn convert(kept: Kept) -> pb::Entry {
    let entry = kept.entry;
    pb::Entry {
        seq: kept.seq,
        at_ms: status::time(entry.at_ms),
        actor: entry.actor,
        role: entry.role,
        credential: entry.credential,
        origin: entry.origin,
        action: entry.action,
        object: entry.object,
        before: entry.before,
        after: entry.after,
        revision: entry.revision,
        sha256: hex(&kept.sha256),
    }
}
