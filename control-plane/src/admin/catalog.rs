//! `CatalogService`.

use common::catalog::{Change, Checked, Fault};
use common::pb::admin as pb;
use common::snapshot::hex;
use pb::catalog_service_server::CatalogService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::error::Error;
use crate::grpc::status;
use crate::nodes::{self, Lacking};
use crate::revision::change::{self, Rollback, To};
use crate::revision::probe::ProbedNode;
use crate::revision::{self, Apply, Replaces};
use crate::rollout::Strategy;
use crate::secrets;
use crate::store::rows::Revision;

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1000;

#[tonic::async_trait]
impl CatalogService for Admin {
    async fn validate_catalog(
        &self,
        request: Request<pb::ValidateCatalogRequest>,
    ) -> Result<Response<pb::ValidateCatalogResponse>, Status> {
        let secrets = Some(secrets::names(&self.plane).await.map_err(status::of)?);
        let document = request.into_inner().document.into();
        let read = revision::read_knowing(document, secrets).await.map_err(status::of)?;
        let (faults, warnings) = match read {
            Ok(Checked { mut warnings, secrets, .. }) => {
                warnings.extend(secrets::withheld(&self.plane, &secrets).map_err(status::of)?);
                (Vec::new(), warnings)
            }
            Err(faults) => (faults, Vec::new()),
        };
        let (faults, warnings) = (findings(faults), findings(warnings));
        Ok(Response::new(pb::ValidateCatalogResponse { faults, warnings }))
    }

    async fn apply_catalog(
        &self,
        request: Request<pb::ApplyCatalogRequest>,
    ) -> Result<Response<pb::ApplyCatalogResponse>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let apply = Apply {
            document: request.document.into(),
            expected: request.expected_revision,
            message: &request.message,
            caller,
            idempotency_key: &request.idempotency_key,
            dry_run: request.dry_run,
            action: "catalog.apply",
            strategy: strategy(request.strategy)?,
            reason: &request.reason,
            replaces: Replaces::Superseded,
            probe: request.probe as usize,
        };
        let applied = revision::apply(&self.plane, apply).await.map_err(status::of)?;
        Ok(Response::new(pb::ApplyCatalogResponse {
            revision: Some(convert(applied.revision)),
            changed: applied.changed,
            warnings: findings(applied.warnings),
            changes: changes(applied.changes),
            incompatible: incompatible(applied.incompatible),
            probes: applied.probed.into_iter().map(probed).collect(),
        }))
    }

    async fn rollback_catalog(
        &self,
        request: Request<pb::RollbackCatalogRequest>,
    ) -> Result<Response<pb::RollbackCatalogResponse>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ask = Rollback {
            revision: request.revision,
            expected: request.expected_revision,
            message: &request.message,
            caller,
            idempotency_key: &request.idempotency_key,
            strategy: strategy(request.strategy)?,
            reason: &request.reason,
        };
        let applied = change::roll_back(&self.plane, ask).await.map_err(status::of)?;
        Ok(Response::new(pb::RollbackCatalogResponse {
            revision: Some(convert(applied.revision)),
            changed: applied.changed,
            warnings: findings(applied.warnings),
            changes: changes(applied.changes),
            incompatible: incompatible(applied.incompatible),
        }))
    }

    async fn diff_catalog(
        &self,
        request: Request<pb::DiffCatalogRequest>,
    ) -> Result<Response<pb::DiffCatalogResponse>, Status> {
        let pb::DiffCatalogRequest { from, to } = request.into_inner();
        let to = match to {
            Some(pb::diff_catalog_request::To::Document(document)) => To::Document(document.into()),
            Some(pb::diff_catalog_request::To::Revision(revision)) => To::Revision(revision),
            None => To::Revision(0),
        };
        let compared = change::compare(&self.plane, from, to).await.map_err(status::of)?;
        Ok(Response::new(pb::DiffCatalogResponse {
            from: compared.from,
            to: compared.to,
            changes: changes(compared.changes),
            warnings: findings(compared.warnings),
        }))
    }

    async fn get_catalog(
        &self,
        request: Request<pb::GetCatalogRequest>,
    ) -> Result<Response<pb::GetCatalogResponse>, Status> {
        let found = revision::find(&self.plane, request.into_inner().revision).await.map_err(status::of)?;
        let (revision, document) = (Some(convert(found.revision)), found.document.to_vec());
        Ok(Response::new(pb::GetCatalogResponse { revision, document }))
    }

    async fn list_revisions(
        &self,
        request: Request<pb::ListRevisionsRequest>,
    ) -> Result<Response<pb::ListRevisionsResponse>, Status> {
        let pb::ListRevisionsRequest { limit, before } = request.into_inner();
        let limit = if limit == 0 { LIMIT_DEFAULT } else { limit.min(LIMIT_MAX) };
        let before = if before == 0 { u64::MAX } else { before };
        let listed = self.plane.store.revisions(before, limit).await;
        let revisions = listed.map_err(|error| status::of(error.into()))?;
        Ok(Response::new(pb::ListRevisionsResponse {
            revisions: revisions.into_iter().map(convert).collect(),
        }))
    }
}

/// A strategy of a later version is refused, and not taken for one that this version has.
fn strategy(asked: i32) -> Result<Strategy, Status> {
    match pb::RolloutStrategy::try_from(asked) {
        Ok(pb::RolloutStrategy::Unspecified | pb::RolloutStrategy::Staged) => Ok(Strategy::Staged),
        Ok(pb::RolloutStrategy::Immediate) => Ok(Strategy::Immediate),
        Err(_unknown) => {
            let message = "must be staged or immediate".to_owned();
            Err(status::of(Error::Argument { field: "strategy", message }))
        }
    }
}

fn convert(revision: Revision) -> pb::Revision {
    pb::Revision {
        number: revision.number,
        sha256: hex(&revision.sha256),
        author: revision.author,
        message: revision.message,
        created_at_ms: status::time(revision.created_at_ms),
    }
}

fn changes(changes: Vec<Change>) -> Vec<pb::Change> {
    let convert = |Change { path, before, after }| pb::Change { path, before, after };
    changes.into_iter().map(convert).collect()
}

fn incompatible(nodes: Vec<Lacking>) -> Vec<pb::IncompatibleNode> {
    let convert = |Lacking { node_id, version, lacks }| pb::IncompatibleNode { node_id, version, lacks };
    nodes.into_iter().map(convert).collect()
}

fn probed(node: ProbedNode) -> pb::NodeProbe {
    let findings = |found: Vec<nodes::Finding>| {
        let convert = |f: nodes::Finding| pb::Finding { path: f.path, line: 0, message: f.message };
        found.into_iter().map(convert).collect()
    };
    let ProbedNode { node_id, version, probed } = node;
    let (violations, warnings) = (findings(probed.violations), findings(probed.warnings));
    pb::NodeProbe { node_id, version, violations, warnings, not_tried: probed.not_tried }
}

fn findings(faults: Vec<Fault>) -> Vec<pb::Finding> {
    let finding = |fault: Fault| pb::Finding { path: fault.path, line: fault.line, message: fault.message };
    faults.into_iter().map(finding).collect()
}
