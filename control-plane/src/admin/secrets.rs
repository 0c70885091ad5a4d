//! `SecretService`.

use common::pb::admin as pb;
use common::secret::Secret;
use pb::secret_service_server::SecretService;
use tonic::{Request, Response, Status};
use zeroize::Zeroizing;

use super::Admin;
use crate::access::Caller;
use crate::error::Error;
use crate::grpc::status;
use crate::secrets::{self, InUse, Known};

#[tonic::async_trait]
impl SecretService for Admin {
    async fn set_secret(
        &self,
        request: Request<pb::SetSecretRequest>,
    ) -> Result<Response<pb::SetSecretResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::SetSecretRequest { name, value } = request.into_inner();
        let value = Secret::parse_bytes(&Zeroizing::new(value)).map_err(|unusable| {
            status::of(Error::Argument { field: "value", message: unusable.to_string() })
        })?;
        let set = secrets::set(&self.plane, &caller, &name, &value).await.map_err(status::of)?;
        Ok(Response::new(pb::SetSecretResponse { secret: Some(convert(set)) }))
    }

    async fn list_secrets(
        &self,
        _request: Request<pb::ListSecretsRequest>,
    ) -> Result<Response<pb::ListSecretsResponse>, Status> {
        let secrets = secrets::list(&self.plane).await.map_err(status::of)?;
        Ok(Response::new(pb::ListSecretsResponse { secrets: secrets.into_iter().map(convert).collect() }))
    }

    async fn delete_secret(
        &self,
        request: Request<pb::DeleteSecretRequest>,
    ) -> Result<Response<pb::DeleteSecretResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::DeleteSecretRequest { name, force } = request.into_inner();
        let in_use = if force { InUse::Delete } else { InUse::Keep };
        let deleted = secrets::delete(&self.plane, &caller, &name, in_use).await.map_err(status::of)?;
        Ok(Response::new(pb::DeleteSecretResponse { secret: Some(convert(deleted)) }))
    }

    async fn rekey_secrets(
        &self,
        request: Request<pb::RekeySecretsRequest>,
    ) -> Result<Response<pb::RekeySecretsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let (resealed, key_id) = secrets::rekey(&self.plane, &caller).await.map_err(status::of)?;
        let resealed = u32::try_from(resealed).unwrap_or(u32::MAX);
        Ok(Response::new(pb::RekeySecretsResponse { resealed, key_id }))
    }
}

fn convert(known: Known) -> pb::Secret {
    let Known { kept, used_by } = known;
    let used_by = used_by.into_iter();
    pb::Secret {
        name: kept.name,
        version: kept.version,
        key_id: kept.key_id,
        created_at_ms: status::time(kept.created_at_ms),
        created_by: kept.created_by,
        changed_at_ms: status::time(kept.changed_at_ms),
        changed_by: kept.changed_by,
        used_by: used_by.map(|one| pb::SecretUse { channel: one.channel, revision: one.revision }).collect(),
    }
}
